//! What is made of a run's frames: from the frames that were asked for, of what was simulated, as the scene's file asks for it now.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::cache::read_frame;
use barchan::out::render::Picture;
use common::{SCENE, files, folder_with_run, run, told};
use std::path::Path;

/// The ends of file names that two frames have, and what is made of them.
const MADE: [&str; 4] = [
    "frames/F.arrow",
    "images/F.png",
    "meshes/F.ply",
    "detail/frames/F.arrow",
];

/// Gives what was made of frames 3 and 4 of the run in out/drop each other's names.
fn swap(folder: &Path, what: &str) {
    let run = folder.join("out/drop");
    let [three, four] = ["000003", "000004"].map(|name| run.join(what.replace('F', name)));
    let aside = run.join("aside");
    std::fs::rename(&three, &aside).unwrap();
    std::fs::rename(&four, &three).unwrap();
    std::fs::rename(&aside, &four).unwrap();
}

#[test]
fn frames_that_have_each_other_s_names_are_refused_by_all() {
    let folder = folder_with_run();
    let make = |args: &str| run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let copy = make("run drop.toml -q -o out/other");
    assert!(copy.status.success(), "{}", told(&copy));
    let commands = [
        "stats out/drop",
        "render out/drop --size 32x18 --samples 1",
        "surface out/drop",
        "detail out/drop --grains 2",
        "export out/drop --format ply",
        "export out/drop --format usdc",
        "spread out/drop --on material",
        "compare out/drop out/other --size 32x18 --samples 1",
        "run drop.toml",
    ];
    for command in commands {
        let made = make(command);
        assert!(made.status.success(), "{command}: {}", told(&made));
    }
    // Pictures and meshes of the two frames change their names as well, so that what was made of each file lies where it would go.
    MADE.iter().for_each(|what| swap(folder.path(), what));
    let before = files(&folder.path().join("out/drop/frames"));
    for command in commands {
        let said = told(&make(command));
        let named = "out/drop/frames/000003.arrow is frame 4, not frame 3";
        assert!(
            said.starts_with("exit code 1") && said.contains(named),
            "{command}: {said}"
        );
    }
    assert!(told(&make("info out/drop")).contains("000004.arrow is frame 3, not frame 4"));
    assert!(files(&folder.path().join("out/drop/frames")) == before);
    // Under their own names they are what they were.
    MADE.iter().for_each(|what| swap(folder.path(), what));
    for command in commands {
        let made = make(command);
        assert!(made.status.success(), "{command}: {}", told(&made));
    }
}

#[test]
fn a_misnamed_frame_is_named_and_the_others_still_told() {
    let folder = folder_with_run();
    swap(folder.path(), MADE[0]);
    let stats = run(folder.path(), &["stats", "out/drop", "--json"]);
    insta::assert_snapshot!("misnamed_frames", told(&stats));
    assert_eq!(String::from_utf8_lossy(&stats.stdout).lines().count(), 3);
    insta::assert_snapshot!(
        "misnamed_frames_resumed",
        told(&run(folder.path(), &["run", "drop.toml"]))
    );
}

/// The small scene, and what it asks of the stages.
fn asking(grains: u32, width: u32, moments: u32, crowd: u32) -> String {
    format!(
        "{SCENE}\n[detail]\ngrains_per_particle = {grains}\n\n[render]\nsize = \"{width}x18\"\nsamples = 1\n\n\
         [surface]\nshutter = {{ samples = {moments} }}\n\n[spread]\non = \"material\"\nmax_per_face = {crowd}\n"
    )
}

/// The stages, and arguments that let them take one frame.
const STAGES: [&[&str]; 4] = [
    &["detail", "out/drop", "--frames", "4", "-q"],
    &["render", "out/drop", "--frames", "4", "-q"],
    &["surface", "out/drop", "--frames", "4", "-q"],
    &["spread", "out/drop", "--frames", "4", "-q", "--json"],
];

/// What the stages make of frame 4 of the run in out/drop: grains a particle, the picture's width, meshes of the shutter, grains a face.
fn made(folder: &Path) -> [u32; 4] {
    let results = STAGES.map(|args| {
        let output = run(folder, args);
        assert!(output.status.success(), "{args:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    });
    let run = folder.join("out/drop");
    let particles = |of: &str| read_frame(&run.join(of).join("frames/000004.arrow")).unwrap();
    let [fine, coarse] = ["detail", ""].map(|of| particles(of).particles.len());
    let picture = Picture::read(&run.join("images/000004.png")).unwrap();
    let meshes = files(&run.join("meshes/shutter")).len();
    std::fs::remove_dir_all(run.join("meshes")).unwrap();
    let spread: serde_json::Value = serde_json::from_str(results[3].trim()).unwrap();
    let asked = spread["asked"].as_f64().unwrap().round() as u32;
    [
        (fine / coarse) as u32,
        picture.width as u32,
        meshes as u32,
        asked,
    ]
}

/// A folder with a run of such a scene.
fn folder_asking(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("drop.toml"), text).unwrap();
    let args = ["run", "drop.toml", "-q", "--no-detail", "--no-render"];
    let ran = run(folder.path(), &args);
    assert!(ran.status.success(), "{}", told(&ran));
    let meshes = folder.path().join("out/drop/meshes");
    if meshes.exists() {
        std::fs::remove_dir_all(meshes).unwrap();
    }
    folder
}

#[test]
fn stages_do_what_the_scene_s_file_asks_for_now_with_what_was_simulated() {
    let folder = folder_asking(&asking(2, 32, 2, 50));
    let (path, file) = (folder.path(), folder.path().join("drop.toml"));
    assert_eq!(made(path), [2, 32, 2, 50]);
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(&asking(3, 48, 3, 60));
    assert_eq!(made(path), [3, 48, 3, 60]);
    // The rest may be another scene by now, or none: what was simulated is as the record has it.
    let other = asking(4, 64, 4, 70).replace("\"4 cm\"", "\"1 kg\"");
    write(&other.replace("preset = \"dry-sand\"", "preset = \"gold\""));
    assert_eq!(made(path), [4, 64, 4, 70]);
    // Where it does not ask, or is gone, it is what the run was asked for.
    write(SCENE);
    assert_eq!(made(path), [2, 32, 2, 50]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(made(path), [2, 32, 2, 50]);
}

#[test]
fn a_mistake_in_what_is_asked_for_is_told_and_nothing_else_is_made_instead() {
    let folder = folder_asking(&asking(2, 32, 2, 50));
    let file = folder.path().join("drop.toml");
    let before = files(&folder.path().join("out"));
    let refused = |args: &[&str], word: &str| {
        let said = told(&run(folder.path(), args));
        assert!(
            said.starts_with("exit code 2") && said.contains(word),
            "{args:?}: {said}"
        );
    };
    for (args, table) in STAGES.iter().zip(["detail", "render", "surface", "spread"]) {
        let wrong = asking(2, 32, 2, 50).replace(
            &format!("[{table}]"),
            &format!("[{table}]\nreahc = \"none\""),
        );
        std::fs::write(&file, wrong).unwrap();
        refused(args, "reahc");
        std::fs::write(&file, "[detail\n").unwrap();
        refused(args, "drop.toml:1");
        std::fs::write(&file, asking(2, 32, 2, 50)).unwrap();
        // What was simulated cannot be changed afterwards.
        let set = [*args, &["--set", "solver.resolution=1 cm"]].concat();
        refused(&set, "\"solver.resolution\" is not a key of");
    }
    assert!(files(&folder.path().join("out")) == before);
}

#[test]
fn grains_are_near_the_camera_that_is_asked_for_now() {
    let scene = |away: u32| {
        format!(
            "{SCENE}\n[detail]\ngrains_per_particle = 4\nnear = 2\n\n\
             [render]\ncamera = {{ at = [0, 0.5, {away}], look_at = [0, 0.5, 0] }}\n"
        )
    };
    let folder = folder_asking(&scene(1));
    let count = || {
        let output = run(folder.path(), STAGES[0]);
        assert!(output.status.success(), "{}", told(&output));
        let frames = folder.path().join("out/drop/detail/frames");
        let frame = read_frame(&frames.join("000004.arrow")).unwrap();
        frame.particles.len()
    };
    let near = count();
    std::fs::write(folder.path().join("drop.toml"), scene(30)).unwrap();
    assert_eq!(4 * count(), near);
}
