//! Every scene that ships is valid, and those after a paper have the size the paper reports.
#![allow(clippy::unwrap_used)]

mod common;

use barchan_base::random::Random;
use barchan_base::sampling::fill;
use barchan_sim::model::Fill;
use barchan_sim::scene;
use common::root;
use std::path::{Path, PathBuf};

fn scenes(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scenes(&path));
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_scene_is_valid_and_says_what_it_shows() {
    let all = scenes(&root().join("scenes"));
    assert!(all.len() >= 9, "{all:?}");
    for path in all {
        let loaded = scene::load(&path, &[]);
        assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
        let stem = path.file_stem().unwrap().to_string_lossy();
        assert_eq!(loaded.unwrap().name, stem);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && text.lines().next().unwrap().len() > 20);
    }
}

#[test]
fn scenes_of_zhu_and_bridson_have_their_particles() {
    for (name, particles) in [
        ("water_column", 433_479.0),
        ("sand_column", 433_479.0),
        ("water_bunny", 269_322.0),
        ("sand_bunny", 269_322.0),
        ("sand_bunny_friction", 269_322.0),
    ] {
        let path = root().join(format!("scenes/zhu2005/{name}.toml"));
        let model = scene::load(&path, &[]).unwrap().model;
        let seeded = |f: &Fill| fill(&f.shape, model.spacing, f.layout, Random::new(0, 0));
        let found: usize = model.fills.iter().map(|f| seeded(f).unwrap().len()).sum();
        let ratio = found as f64 / particles;
        assert!((ratio - 1.0).abs() < 0.02, "{name}: {found}");
        // Eight particles a cell.
        assert!((model.resolution - 2.0 * model.spacing).abs() < 1e-6);
    }
}
