//! The house rules that a compiler does not keep: which way dependencies point, how long files may be, and that the
//! documents speak of things that exist.
#![allow(clippy::unwrap_used)]

mod common;

use common::root;
use std::path::PathBuf;

/// Crates, and the crates of ours that each may use: arrows point one way.
const MAY_USE: [(&str, &[&str]); 5] = [
    ("base", &[]),
    ("sim", &["base"]),
    ("solvers", &["base", "sim"]),
    ("out", &["base", "sim"]),
    ("barchan", &["base", "sim", "solvers", "out"]),
];

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut pending = vec![root().join(folder)];
    while let Some(path) = pending.pop() {
        if path.is_dir() && !path.is_symlink() {
            pending.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

#[test]
fn dependencies_point_one_way() {
    for (name, allowed) in MAY_USE {
        let manifest =
            std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest
            .split("[dependencies]")
            .nth(1)
            .unwrap()
            .split("[dev-")
            .next()
            .unwrap();
        let used = dependencies
            .lines()
            .filter_map(|line| line.strip_prefix("barchan-")?.split(['.', ' ']).next());
        for used in used {
            assert!(allowed.contains(&used), "{name} must not use {used}");
        }
    }
    let crates = std::fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(
        crates,
        MAY_USE.len(),
        "a new crate needs its place in MAY_USE"
    );
}

#[test]
fn solver_families_do_not_import_each_other() {
    let families = ["ballistic", "dem", "flip", "hybrid", "sph"];
    for family in families {
        for (path, text) in sources(&format!("crates/solvers/src/{family}")) {
            for other in families
                .iter()
                .filter(|other| **other != family && family != "hybrid")
            {
                assert!(
                    !text.contains(&format!("crate::{other}")),
                    "{} imports {other}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn base_does_not_know_what_its_points_are() {
    for (path, text) in sources("crates/base/src") {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        let found = words.find(|word| ["sand", "Sand", "grain", "Grain"].contains(word));
        assert!(found.is_none(), "{} speaks of {found:?}", path.display());
    }
}

#[test]
fn files_stay_short_and_finished() {
    for (path, text) in sources("crates") {
        assert!(
            text.lines().count() <= 800,
            "{} has more than 800 lines",
            path.display()
        );
        for mark in [
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("XX", "X"),
        ] {
            assert!(!text.contains(mark), "{} has a {mark}", path.display());
        }
    }
}

#[test]
fn the_architecture_document_names_only_what_exists() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let paths = text.split('`').skip(1).step_by(2).filter(|code| {
        ["crates/", "scenes/", "docs/"]
            .iter()
            .any(|start| code.starts_with(start))
            && !code.contains(['*', ' ', '<'])
    });
    let mut count = 0;
    for path in paths {
        assert!(
            root().join(path).exists(),
            "docs/ARCHITECTURE.md names {path}, which does not exist"
        );
        count += 1;
    }
    assert!(count > 20, "the document names only {count} paths");
}

#[test]
fn every_crate_and_module_of_the_code_is_in_the_architecture_document() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    for (name, _) in MAY_USE {
        for entry in std::fs::read_dir(root().join("crates").join(name).join("src")).unwrap() {
            let entry = entry.unwrap().file_name().to_string_lossy().into_owned();
            if entry != "lib.rs" && entry != "main.rs" {
                let path = format!("`crates/{name}/src/{entry}`");
                assert!(
                    text.contains(&path),
                    "docs/ARCHITECTURE.md does not name {path}"
                );
            }
        }
    }
}

/// The text of the first block of `language` in a document.
fn block(document: &str, language: &str) -> String {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let after = text.split(&format!("```{language}\n")).nth(1).unwrap();
    after.split("```").next().unwrap().to_owned()
}

#[test]
fn the_documents_show_what_works() {
    let scene = block("docs/scene.md", "toml");
    let loaded = barchan::sim::scene::parse(&scene, "docs/scene.toml".as_ref(), &[]);
    assert!(loaded.is_ok(), "docs/scene.md: {}", loaded.unwrap_err());
    let script = std::fs::read_to_string(root().join("docs/read_frame.py")).unwrap();
    assert_eq!(block("docs/frames.md", "python"), script);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(readme.contains("cargo test --workspace") && ci.contains("cargo test --workspace"));
}

#[test]
fn the_scenes_of_ihmsen_2013_have_their_numbers_of_particles() {
    for (name, expected) in [
        ("piles", 45_000.0),
        ("spheres", 96_000.0),
        ("splash", 83_000.0),
        ("bulldozer", 38_000.0),
        ("rope_ladder", 138_000.0),
        ("resolution_7k", 7_000.0),
        ("resolution_60k", 60_000.0),
        ("resolution_500k", 500_000.0),
    ] {
        let path = root().join(format!("scenes/ihmsen2013/{name}.toml"));
        let scene = barchan::sim::scene::load(&path, &[]).unwrap();
        let volume = scene.model.particle_volume();
        let filled: f64 = scene
            .model
            .fills
            .iter()
            .map(|fill| fill.shape.estimate_volume() / volume)
            .sum();
        let emitted: f64 = scene
            .model
            .emitters
            .iter()
            .map(|emitter| emitter.rate * emitter.active.elapsed(1e9))
            .sum();
        let found = filled + emitted;
        assert!(
            (found / expected - 1.0).abs() < 0.03,
            "{name}: {found} particles"
        );
    }
}
