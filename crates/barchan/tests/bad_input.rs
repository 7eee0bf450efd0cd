//! Whatever is wrong: exit code 2 or 1, a sentence that tells what to change, no panic, nothing overwritten.
#![allow(clippy::unwrap_used)]

mod common;

use common::{SCENE, files, folder_with_scene, run, told};
use std::path::Path;

/// What `check` says about the small scene with `from` replaced by `to`.
fn check(from: &str, to: &str) -> String {
    let folder = folder_with_scene();
    let text = SCENE.replace(from, to);
    assert_ne!(text, SCENE, "\"{from}\" is not in the scene");
    check_text(folder.path(), &text)
}

fn check_text(folder: &Path, text: &str) -> String {
    std::fs::write(folder.join("drop.toml"), text).unwrap();
    let before = files(folder);
    let output = run(folder, &["run", "drop.toml"]);
    assert!(files(folder) == before, "something was written");
    told(&output)
}

/// The small scene with a mesh body whose file has these bytes.
fn check_mesh(name: &str, bytes: &[u8]) -> String {
    let folder = folder_with_scene();
    std::fs::write(folder.path().join(name), bytes).unwrap();
    let body = format!("shape    = {{ mesh = {{ file = \"{name}\" }} }}");
    check_text(
        folder.path(),
        &SCENE.replace("shape    = \"ground\"", &body),
    )
}

#[test]
fn mistakes_in_the_scene() {
    insta::assert_snapshot!("unknown_key", check("friction = 0.5", "fricton = 0.5"));
    insta::assert_snapshot!(
        "unknown_shape",
        check("sphere = { radius", "spere = { radius")
    );
    insta::assert_snapshot!("wrong_type", check("frames = 4", "frames = \"many\""));
    insta::assert_snapshot!("wrong_unit", check("\"4 cm\"", "\"4 kg\""));
    insta::assert_snapshot!("negative_size", check("radius = 0.3", "radius = -0.3"));
    insta::assert_snapshot!("not_a_number", check("radius = 0.3", "radius = nan"));
    insta::assert_snapshot!("no_frames", check("frames = 4", "frames = 0"));
    insta::assert_snapshot!("missing_key", check("method     = \"ballistic\"\n", ""));
    insta::assert_snapshot!("other_method", check("ballistic", "balistic"));
    insta::assert_snapshot!("unknown_preset", check("dry-sand", "dry-snad"));
    insta::assert_snapshot!(
        "unknown_material",
        check("material = \"sand\"", "material = \"snad\"")
    );
    insta::assert_snapshot!(
        "endless_fill",
        check(
            "{ sphere = { radius = 0.3, at = [0, 0.5, 0] } }",
            "\"ground\""
        )
    );
    insta::assert_snapshot!("broken_toml", check("frames = 4", "frames = = 4"));
    insta::assert_snapshot!(
        "two_problems",
        check("preset = \"dry-sand\"", "density = -1\nfriction_angle = 95")
    );
}

#[test]
fn meshes_that_cannot_be_used() {
    insta::assert_snapshot!(
        "missing_mesh",
        check(
            "shape    = \"ground\"",
            "shape = { mesh = { file = \"bunny.obj\" } }"
        )
    );
    insta::assert_snapshot!("unknown_mesh_format", check_mesh("bunny.blend", b"x"));
    // A binary STL that promises a thousand triangles and ends after one.
    let mut stl = vec![0u8; 80];
    stl.extend(1000u32.to_le_bytes());
    stl.extend([0u8; 50]);
    insta::assert_snapshot!("truncated_mesh", check_mesh("cut.stl", &stl));
    let faces: String = (0..333_333)
        .map(|i| format!("f {} {} {}\n", 3 * i + 1, 3 * i + 2, 3 * i + 3))
        .collect();
    let nans = "v nan nan nan\n".repeat(1_000_000) + &faces;
    insta::assert_snapshot!("mesh_of_nans", check_mesh("nan.obj", nans.as_bytes()));
    insta::assert_snapshot!(
        "mesh_without_triangles",
        check_mesh("points.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    );
    insta::assert_snapshot!(
        "mesh_with_wrong_index",
        check_mesh("far.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n")
    );
}

#[test]
fn a_trillion_particles() {
    let said = check("\"4 cm\"", "\"50 um\"");
    assert!(
        said.starts_with("exit code 2\nerror: the scene asks for 9"),
        "{said}"
    );
    assert!(
        said.contains("choose a coarser solver.resolution"),
        "{said}"
    );
}

#[test]
fn wrong_use_of_the_command() {
    let folder = folder_with_scene();
    insta::assert_snapshot!("no_scene", told(&run(folder.path(), &["run", "none.toml"])));
    insta::assert_snapshot!(
        "bad_override",
        told(&run(
            folder.path(),
            &["check", "drop.toml", "--set", "solver.resolution=4 kg"]
        ))
    );
    insta::assert_snapshot!(
        "unknown_override",
        told(&run(
            folder.path(),
            &["check", "drop.toml", "--set", "solver.resolutoin=1"]
        ))
    );
    insta::assert_snapshot!("not_a_run", told(&run(folder.path(), &["stats", "."])));
    for args in [
        &["run"][..],
        &["fly"],
        &["run", "drop.toml", "--threads", "0"],
        &["run", "drop.toml", "--frames", "9..2"],
    ] {
        assert_eq!(run(folder.path(), args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(
        run(folder.path(), &["run", "drop.toml", "--frames", "3..4"])
            .status
            .code(),
        Some(2),
        "frame 3 before frame 1"
    );
}

#[test]
fn a_folder_that_belongs_to_someone_else_is_left_alone() {
    let folder = folder_with_scene();
    assert!(
        run(folder.path(), &["run", "drop.toml", "-q"])
            .status
            .success()
    );
    let before = files(folder.path());
    let other = run(
        folder.path(),
        &["run", "drop.toml", "--set", "solver.resolution=5 cm"],
    );
    insta::assert_snapshot!("other_scene", told(&other));
    assert!(files(folder.path()) == before);
    // The same scene with more frames is the same run, longer.
    assert!(
        run(
            folder.path(),
            &["run", "drop.toml", "-q", "--set", "frames=6"]
        )
        .status
        .success()
    );
    // With --fresh the old run gives way.
    assert!(
        run(
            folder.path(),
            &[
                "run",
                "drop.toml",
                "-q",
                "--fresh",
                "--set",
                "solver.resolution=5 cm"
            ]
        )
        .status
        .success()
    );

    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/thesis.txt"), "years of work").unwrap();
    for fresh in [&[][..], &["--fresh"]] {
        let refused = run(
            folder.path(),
            &[&["run", "drop.toml", "-o", "mine"], fresh].concat(),
        );
        insta::assert_snapshot!("not_ours", told(&refused));
    }
    assert_eq!(files(&folder.path().join("mine")).len(), 1);
}

#[test]
fn a_corrupted_frame_is_named_and_the_others_still_told() {
    let folder = folder_with_scene();
    assert!(
        run(folder.path(), &["run", "drop.toml", "-q"])
            .status
            .success()
    );
    let frame = folder.path().join("out/drop/frames/000002.arrow");
    let mut bytes = std::fs::read(&frame).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&frame, &bytes).unwrap();
    let stats = run(folder.path(), &["stats", "out/drop", "--json"]);
    insta::assert_snapshot!("corrupted_frame", told(&stats));
    assert_eq!(String::from_utf8_lossy(&stats.stdout).lines().count(), 4);
    std::fs::write(&frame, &bytes[..bytes.len() / 3]).unwrap();
    insta::assert_snapshot!(
        "cut_frame",
        told(&run(
            folder.path(),
            &["export", "out/drop", "--format", "ply", "-o", "ply"]
        ))
    );
    assert!(
        std::fs::read(&frame).unwrap().len() < bytes.len(),
        "the damaged frame was touched"
    );
    // As the message says: deleted and run again, it is made anew.
    std::fs::remove_file(&frame).unwrap();
    assert!(
        run(folder.path(), &["run", "drop.toml", "-q"])
            .status
            .success()
    );
    bytes[middle] ^= 0xff;
    assert!(std::fs::read(&frame).unwrap() == bytes);
}

#[test]
fn damaged_checkpoints_are_noticed() {
    let folder = folder_with_scene();
    assert!(
        run(folder.path(), &["run", "drop.toml", "-q"])
            .status
            .success()
    );
    let checkpoints: Vec<_> = files(&folder.path().join("out/drop/checkpoint"))
        .into_keys()
        .collect();
    assert_eq!(checkpoints.len(), 2);
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    // The newest is damaged: the one before it serves.
    cut(&checkpoints[1]);
    let resumed = run(folder.path(), &["run", "drop.toml"]);
    assert!(
        resumed.status.success()
            && told(&resumed).contains("going back to the checkpoint before it"),
        "{}",
        told(&resumed)
    );
    // All are damaged: nothing can be done, and nothing is.
    let checkpoints: Vec<_> = files(&folder.path().join("out/drop/checkpoint"))
        .into_keys()
        .collect();
    checkpoints.iter().for_each(|path| cut(path));
    let before = common::frames(&folder.path().join("out/drop"));
    let refused = run(folder.path(), &["run", "drop.toml"]);
    insta::assert_snapshot!("truncated_checkpoints", told(&refused));
    assert!(common::frames(&folder.path().join("out/drop")) == before);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder_with_scene();
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    // The administrator may write anywhere but on a read-only file system.
    let privileged = std::fs::write(locked.join("probe"), "").is_ok();
    let target = if privileged {
        "/proc/barchan"
    } else {
        "locked/run"
    };
    let said = told(&run(folder.path(), &["run", "drop.toml", "-o", target]));
    assert!(
        said.starts_with(&format!("exit code 2\nerror: cannot create {target}")),
        "{said}"
    );
}

/// A small block of sand on the grid, and what else is said.
fn sand(resolution: &str, more: &str) -> String {
    format!(
        "schema = 1\nframes = 2\nfps = 24\n[solver]\nmethod = \"flip\"\nresolution = \"{resolution}\"\n[materials.sand]\npreset = \"dry-sand\"\n\
         [[fill]]\nmaterial = \"sand\"\nshape = {{ box = {{ size = [0.2, 0.2, 0.2], at = [0, 0.1, 0] }} }}\n[[body]]\nshape = \"ground\"\n{more}"
    )
}

#[test]
fn what_sand_cannot_have_is_named() {
    let folder = folder_with_scene();
    for (from, to, says) in [
        ("\"dry-sand\"", "\"dry-sand\"\ndensity = 0", "density"),
        (
            "\"dry-sand\"",
            "\"dry-sand\"\nfriction_angle = 95",
            "friction_angle",
        ),
    ] {
        let said = check_text(folder.path(), &sand("2 cm", "").replace(from, to));
        assert!(
            said.starts_with("exit code 2") && said.contains(says),
            "{said}"
        );
    }
}

#[test]
fn what_is_hardly_meant_is_told_and_runs() {
    let bullet = "[[body]]\nname = \"bullet\"\nshape = { box = { size = [0.05, 0.05, 0.05], at = [-1, 0.1, 0] } }\nmotion = \"dynamic\"\ndensity = 5000\nvelocity = [1000, 0, 0]\n";
    let steep = sand("4 cm", "").replace("flip", "dem");
    let steep = steep.replace("\"dry-sand\"", "\"dry-sand\"\nfriction_angle = 70");
    for (text, says) in [
        (sand("50 cm", ""), "warning: solver.resolution: 0.5 m"),
        (sand("2 cm", bullet), "warning: body.velocity: \"bullet\""),
        (
            steep,
            "warning: materials.sand.friction_angle: piles of grains of shape \"ball\"",
        ),
    ] {
        let folder = folder_with_scene();
        std::fs::write(folder.path().join("odd.toml"), text).unwrap();
        let ran = run(folder.path(), &["run", "odd.toml", "-o", "out"]);
        let said = told(&ran);
        assert!(
            said.starts_with("exit code 0") && said.contains(says),
            "{said}"
        );
        let stats = run(folder.path(), &["stats", "out"]);
        let figures = String::from_utf8_lossy(&stats.stdout).to_lowercase();
        assert!(
            !figures.contains("nan") && !figures.contains("inf "),
            "{figures}"
        );
    }
}

/// What the small scene says with single grains, some of its text replaced and more keys of their material.
fn grains(from: &str, to: &str, grain: &str) -> String {
    let folder = folder_with_scene();
    let text = SCENE.replace("ballistic", "dem").replace(from, to);
    let text = format!("{text}\n[materials.sand.grain]\n{grain}\n");
    std::fs::write(folder.path().join("drop.toml"), text).unwrap();
    told(&run(folder.path(), &["run", "drop.toml"]))
}

#[test]
fn mistakes_with_single_grains() {
    let stiff = "method = \"dem\"\nstiffness = 0";
    let quick = "method = \"dem\"\nmax_step = 1e-9";
    let method = "method     = \"dem\"";
    insta::assert_snapshot!("no_spheres", grains("", "", "shape = []"));
    insta::assert_snapshot!("flat_sphere", grains("", "", "shape = [[0, 0, 0, 0]]"));
    insta::assert_snapshot!("no_stiffness", grains(method, stiff, ""));
    insta::assert_snapshot!("tiny_step", grains(method, quick, ""));
    let again = "[[fill]]\nmaterial = \"sand\"\nshape = { sphere = { radius = 0.3, at = [0.01, 0.51, 0] } }\n\n[[fill]]";
    insta::assert_snapshot!("overlapping_fills", grains("[[fill]]", again, ""));
}
