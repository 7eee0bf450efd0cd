//! Exports of runs that are not as they should be: every format tells what is wrong and writes the rest.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::sim::scene::Format;
use barchan::sim::state::Particles;
#[cfg(unix)]
use common::told_on_a_full_disk;
use common::{change_frame, damage_frame, files, folder_with_run, run, told};
use std::path::Path;

fn export(folder: &Path, format: &str, more: &[&str]) -> String {
    let args = ["export", "out/drop", "--format", format, "-o", format];
    told(&run(folder, &[&args[..], more].concat()))
}

/// A file for all frames, not one each.
fn is_one_file(format: &str) -> bool {
    ["abc", "usd", "usdc"].contains(&format)
}

#[test]
fn odd_frames_do_not_keep_the_others_from_being_exported() {
    let folder = folder_with_run();
    change_frame(folder.path(), 0, |particles| {
        *particles = Particles::default();
    });
    change_frame(folder.path(), 1, |particles| particles.resize(1));
    damage_frame(folder.path(), 2);
    change_frame(folder.path(), 3, |particles| {
        particles.position[7].x = f32::NAN;
        particles.velocity[8].y = f32::INFINITY;
        particles.radius[9] = f32::NAN;
    });
    for format in Format::WORDS {
        let said = export(folder.path(), format, &[]);
        assert!(
            said.starts_with("exit code 1") && said.contains("000002.arrow is damaged"),
            "{format}: {said}"
        );
        let lost = "frame 3: 3 particles without a finite place, velocity or radius are left out";
        assert!(said.contains(lost), "{format}: {said}");
        let made = files(&folder.path().join(format));
        let made = made
            .keys()
            .filter(|path| path.extension() != Some("pvd".as_ref()));
        let expected = if is_one_file(format) { 1 } else { 4 };
        assert_eq!(made.count(), expected, "{format}");
    }
}

#[test]
fn meshes_that_are_missing_or_damaged_are_told_of() {
    let folder = folder_with_run();
    change_frame(folder.path(), 0, |particles| particles.resize(0));
    let made = run(folder.path(), &["surface", "out/drop", "-q"]);
    assert!(made.status.success(), "{}", told(&made));
    let mesh = |frame: u32| {
        folder
            .path()
            .join(format!("out/drop/meshes/{frame:06}.ply"))
    };
    std::fs::remove_file(mesh(1)).unwrap();
    let bytes = std::fs::read(mesh(3)).unwrap();
    std::fs::write(mesh(3), &bytes[..bytes.len() / 2]).unwrap();
    for format in Format::WORDS.iter().filter(|word| **word != "bgeo") {
        let said = export(folder.path(), format, &["--what", "mesh"]);
        assert!(said.starts_with("exit code 1"), "{format}: {said}");
        assert!(
            said.contains("make it with barchan surface"),
            "{format}: {said}"
        );
        assert!(
            said.contains("the mesh of frame 3 cannot be used"),
            "{format}: {said}"
        );
        let made = files(&folder.path().join(format));
        let named = |frame: &str| {
            made.keys()
                .any(|path| path.to_string_lossy().contains(frame))
        };
        if !is_one_file(format) {
            assert!(
                ["000000", "000002", "000004"]
                    .iter()
                    .all(|frame| named(frame)),
                "{format}"
            );
            assert!(!named("000001") && !named("000003"), "{format}");
        }
    }
    let said = export(folder.path(), "bgeo", &["--what", "mesh"]);
    assert!(
        said.starts_with("exit code 1") && said.contains("hold particles only"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_half_and_a_clear_word() {
    let folder = folder_with_run();
    for format in Format::WORDS {
        let args = format!("export out/drop --format {format} -o {format}");
        let said = told_on_a_full_disk(folder.path(), 4, &args);
        assert!(
            said.starts_with("exit code 1") && said.contains("cannot write"),
            "{format}: {said}"
        );
        assert!(files(&folder.path().join(format)).is_empty(), "{format}");
        let said = export(folder.path(), format, &[]);
        assert!(said.starts_with("exit code 0"), "{format}: {said}");
    }
}
