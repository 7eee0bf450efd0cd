//! `barchan info`: what is in a folder, and which presets there are.

use super::Failure;
use super::say::{bytes, grouped, out};
use barchan_out::cache::RunFolder;
use barchan_sim::scene::{PRESETS, preset_reference};
use barchan_sim::solids::BodyPlace;
use std::path::{Path, PathBuf};

/// Arguments of `info`.
#[derive(clap::Args)]
pub struct InfoArgs {
    /// A run's folder, or the word "presets"
    what: PathBuf,
    /// Print the presets as a page of the manual
    #[arg(long)]
    markdown: bool,
}

/// Runs `info`.
pub fn info(args: &InfoArgs) -> Result<(), Failure> {
    if args.what == Path::new("presets") {
        match args.markdown {
            true => out(preset_reference().trim_end()),
            false => presets(),
        }
        return Ok(());
    }
    let folder = RunFolder::open(&args.what).map_err(Failure::input)?;
    let frames = folder.frames().map_err(Failure::input)?;
    out(&format!("folder       {}", folder.path().display()));
    for key in [
        "scene",
        "method",
        "status",
        "version",
        "threads",
        "seed",
        "wall_seconds",
    ] {
        if let Some(value) = folder.recorded(key) {
            out(&format!("{key:12} {value}"));
        }
    }
    let size: u64 = frames
        .iter()
        .filter_map(|frame| folder.frame_path(*frame).metadata().ok())
        .map(|m| m.len())
        .sum();
    if let (Some(first), Some(last)) = (frames.first(), frames.last()) {
        let frame = folder.read_frame(*last).map_err(Failure::input)?;
        out(&format!(
            "frames       {first} to {last}, {} on disk, {}",
            frames.len(),
            bytes(size as f64)
        ));
        out(&format!(
            "time         {:.4} s at {} frames a second",
            frame.meta.time, frame.meta.fps
        ));
        out(&format!(
            "particles    {}",
            grouped(frame.particles.len() as f64)
        ));
        out(&format!("materials    {}", frame.meta.materials.join(", ")));
        for body in &frame.meta.bodies {
            out(&format!("body         {}", body_line(body)));
        }
    } else {
        out("frames       none");
    }
    Ok(())
}

/// A body in words: where a dynamic one's centre is and how fast, how far another one has moved.
pub fn body_line(body: &BodyPlace) -> String {
    let vector = |[x, y, z]: [f32; 3]| format!("[{x:.4}, {y:.4}, {z:.4}]");
    let more = match body.motion.as_str() {
        "dynamic" => format!(
            ", centre {} m, velocity {} m/s, spin {} rad/s",
            vector(body.center),
            vector(body.velocity),
            vector(body.spin)
        ),
        "keyframed" => format!(", moved {} m", vector(body.position)),
        _ => String::new(),
    };
    format!("{}, {}{more}", body.name, body.motion)
}

fn presets() {
    for (name, preset) in PRESETS.iter() {
        out(name);
        for [key, value, source] in preset.rows() {
            out(&format!("  {key:14} {value:>14}  {source}"));
        }
    }
}
