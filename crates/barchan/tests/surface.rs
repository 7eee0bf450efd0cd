//! Surfaces of a run: made once, the same on any number of threads, whatever some frames are like.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::surface::format::read_ply;
use barchan::sim::state::Particles;
#[cfg(unix)]
use common::told_on_a_full_disk;
use common::{change_frame, files, folder_with_run, folder_with_scene, run, told};
use std::path::Path;

/// A folder with a run of five frames in out/drop, and what `change` made of the particles of frame 2.
fn a_run(change: impl FnOnce(&mut Particles)) -> tempfile::TempDir {
    let folder = folder_with_run();
    change_frame(folder.path(), 2, change);
    folder
}

fn surface(folder: &Path, args: &[&str]) -> String {
    let all: Vec<&str> = ["surface", "out/drop"]
        .iter()
        .chain(args)
        .copied()
        .collect();
    told(&run(folder, &all))
}

#[test]
fn a_scene_with_a_surface_gets_its_meshes() {
    let folder = folder_with_scene();
    let ran = run(
        folder.path(),
        &[
            "run",
            "drop.toml",
            "-q",
            "--set",
            "surface.style=zhu-bridson",
        ],
    );
    assert!(ran.status.success(), "{}", told(&ran));
    let meshes = folder.path().join("out/drop/meshes");
    let mesh = read_ply(&meshes.join("000004.ply")).unwrap();
    assert!(mesh.triangles.len() > 1000);
    let count = mesh.positions.len();
    assert!(mesh.normals.len() == count && mesh.velocities.len() == count);
    assert!(mesh.colors.len() == count && mesh.materials.len() == count);
    // Given again, nothing is made again, for the record has the same settings.
    let before = files(&meshes);
    let again = surface(folder.path(), &[]);
    assert!(
        again.contains("0 mesh files") && again.contains("5 frames were there already"),
        "{again}"
    );
    assert!(files(&meshes) == before);
}

#[test]
fn what_is_missing_or_changed_is_made_again_and_threads_do_not_matter() {
    let folder = a_run(|_| {});
    let meshes = folder.path().join("out/drop/meshes");
    assert!(surface(folder.path(), &["--threads", "1"]).contains("5 mesh files"));
    let one = files(&meshes);
    std::fs::remove_file(meshes.join("000001.ply")).unwrap();
    std::fs::write(meshes.join("000003.ply"), "half a file").unwrap();
    let again = surface(folder.path(), &["--threads", "3"]);
    assert!(
        again.contains("2 mesh files") && again.contains("3 frames"),
        "{again}"
    );
    assert!(files(&meshes) == one);
    let other = surface(
        folder.path(),
        &["--frames", "1..2", "--style", "sph", "--cell", "3 cm"],
    );
    assert!(other.contains("2 mesh files"), "{other}");
    assert!(files(&meshes) != one);
}

#[test]
fn every_format_and_the_shutter() {
    let folder = a_run(|_| {});
    let said = surface(
        folder.path(),
        &[
            "--frames",
            "4",
            "--format",
            "ply,obj,stl,glb,vtk",
            "--shutter",
            "-0.5..0.5",
            "--samples",
            "3",
        ],
    );
    assert!(said.contains("20 mesh files"), "{said}");
    let meshes = folder.path().join("out/drop/meshes");
    for extension in ["ply", "obj", "stl", "glb", "vtp"] {
        assert!(meshes.join("000004").with_extension(extension).is_file());
    }
    assert!(meshes.join("surface.pvd").is_file());
    // It falls while the shutter is open, after the last frame too.
    let low = |name: &str| {
        let mesh = read_ply(&meshes.join("shutter").join(name)).unwrap();
        mesh.positions
            .iter()
            .map(|p| p.y)
            .fold(f32::INFINITY, f32::min)
    };
    let [early, middle, late] = ["000004_00.ply", "000004_01.ply", "000004_02.ply"].map(low);
    assert!(early > middle && middle > late, "{early} {middle} {late}");
    let frame = std::fs::read(meshes.join("000004.ply")).unwrap();
    let same = std::fs::read(meshes.join("shutter/000004_01.ply")).unwrap();
    assert_eq!(frame, same, "the shutter's middle is the frame");
}

#[test]
fn odd_frames_do_not_keep_the_others_from_being_made() {
    let meshes = |folder: &Path| files(&folder.join("out/drop/meshes")).len();
    let empty = a_run(|particles| particles.resize(0));
    let said = surface(empty.path(), &[]);
    assert!(
        said.starts_with("exit code 0") && said.contains("frame 2: no material"),
        "{said}"
    );
    assert_eq!(meshes(empty.path()), 5);
    let nan = a_run(|particles| particles.position[7].x = f32::NAN);
    let said = surface(nan.path(), &[]);
    assert!(
        said.starts_with("exit code 0") && said.contains("frame 2: 1 of"),
        "{said}"
    );
    let broken = a_run(|_| {});
    let path = broken.path().join("out/drop/frames/000002.arrow");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[2000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let said = surface(broken.path(), &[]);
    assert!(
        said.starts_with("exit code 1") && said.contains("000002.arrow is damaged"),
        "{said}"
    );
    assert_eq!(meshes(broken.path()), 4);
    std::fs::write(&path, &bytes[..100]).unwrap();
    let said = surface(broken.path(), &[]);
    assert!(
        said.starts_with("exit code 1") && said.contains("000002.arrow is damaged"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_whole_meshes_and_a_clear_word() {
    // The mesh of the frame with one particle fits, those of the others do not.
    let folder = a_run(|particles| particles.resize(1));
    let said = told_on_a_full_disk(folder.path(), 8, "surface out/drop");
    assert!(
        said.starts_with("exit code 1") && said.contains("cannot write"),
        "{said}"
    );
    let meshes = folder.path().join("out/drop/meshes");
    assert!(files(&meshes).values().all(|bytes| bytes.len() <= 8192));
    assert!(surface(folder.path(), &[]).starts_with("exit code 0"));
    assert_eq!(files(&meshes).len(), 5);
}

#[test]
fn one_particle_is_a_mesh() {
    let folder = a_run(|particles| particles.resize(1));
    assert!(surface(folder.path(), &["--frames", "2"]).starts_with("exit code 0"));
    let mesh = read_ply(&folder.path().join("out/drop/meshes/000002.ply")).unwrap();
    assert!(mesh.triangles.len() >= 8);
}

#[test]
fn wrong_use_is_told() {
    let folder = a_run(|_| {});
    insta::assert_snapshot!("style", surface(folder.path(), &["--style", "blob"]));
    insta::assert_snapshot!("cell", surface(folder.path(), &["--cell", "3 kg"]));
    insta::assert_snapshot!("shutter", surface(folder.path(), &["--shutter", "0.5"]));
    insta::assert_snapshot!(
        "shutter_backwards",
        surface(folder.path(), &["--shutter", "0.5..0"])
    );
    let fine = surface(folder.path(), &["--cell", "1 um", "--frames", "1"]);
    assert!(
        fine.starts_with("exit code 1") && fine.contains("choose a larger cell"),
        "{fine}"
    );
    // Where nothing can be written: a file stands in the folder's place.
    std::fs::write(folder.path().join("out/drop/meshes"), "x").unwrap();
    let said = surface(folder.path(), &[]);
    assert!(
        said.starts_with("exit code 1") && said.contains("cannot write"),
        "{said}"
    );
}
