//! `barchan new`: the gallery scenes, ready to be copied.

use super::Failure;
use super::say::{out, talk};
use barchan_sim::atomic;
use barchan_sim::scene::suggest;
use std::path::PathBuf;

/// Arguments of `new`.
#[derive(clap::Args)]
pub struct NewArgs {
    /// The gallery scene to copy; all are listed if left out
    name: Option<String>,
    /// File to write [default: NAME.toml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A scene that comes with Barchan.
struct Gallery {
    name: &'static str,
    text: &'static str,
}

macro_rules! gallery {
    ($($name:literal),* $(,)?) => {
        &[$(Gallery { name: $name, text: include_str!(concat!("../../scenes/gallery/", $name, ".toml")) }),*]
    };
}

const GALLERY: &[Gallery] = gallery!(
    "first",
    "castle",
    "dam",
    "fountain",
    "sandstorm",
    "paddle",
    "target",
    "hourglass",
    "silo",
    "wet_castle",
    "castle_ball",
    "flood",
    "bunny",
    "rocket_small",
    "popcorn_small",
    "bulldozer_small",
    "rope_ladder_small",
    "beach_footprints",
    "dune_avalanche",
    "sack_of_flour",
    "meteor",
);

/// Runs `new`.
pub fn new(args: &NewArgs) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        for scene in GALLERY {
            out(&format!("{:18} {}", scene.name, describe(scene.text)));
        }
        talk("copy one with: barchan new NAME");
        return Ok(());
    };
    let Some(scene) = GALLERY.iter().find(|scene| scene.name == name) else {
        let names: Vec<&str> = GALLERY.iter().map(|scene| scene.name).collect();
        let advice = suggest(name, &names);
        return Err(Failure::Input(format!(
            "there is no gallery scene \"{name}\"; {advice}"
        )));
    };
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    atomic::create(&path, scene.text.as_bytes()).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Input(format!(
            "{} exists already; choose another name with -o",
            path.display()
        )),
        _ => Failure::Input(format!("cannot write {}: {error}", path.display())),
    })?;
    talk(&format!(
        "wrote {}; run it with: barchan run {}",
        path.display(),
        path.display()
    ));
    Ok(())
}

/// The first comment of a scene.
fn describe(text: &str) -> &str {
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches('#')
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_gallery_scene_is_valid_and_described() {
        for scene in GALLERY {
            let loaded = barchan_sim::scene::parse(scene.text, Path::new(scene.name), &[]);
            assert!(loaded.is_ok(), "{}: {}", scene.name, loaded.unwrap_err());
            assert!(
                describe(scene.text).len() > 20,
                "{} has no description",
                scene.name
            );
        }
    }

    #[test]
    fn every_file_of_the_gallery_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/gallery");
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".toml") {
                assert!(
                    GALLERY.iter().any(|scene| scene.name == name),
                    "{name} is not listed"
                );
            }
        }
    }
}
