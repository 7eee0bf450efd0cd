//! The same bytes on any number of threads, and after any crash: a cache made on a laptop must match one made on a
//! cluster node, and a killed run must go on as if nothing had happened.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::cache::{CacheRecorder, Record, RunFolder};
use barchan::sim::run::{Outcome, Run};
use barchan::sim::scene;
use barchan::sim::start::start;
use common::{barchan, folder_with_scene, frames, root, run};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn first_scene() -> String {
    root()
        .join("scenes/gallery/first.toml")
        .display()
        .to_string()
}

fn complete_run(
    folder: &Path,
    scene: &str,
    name: &str,
    threads: &str,
) -> std::collections::BTreeMap<String, Vec<u8>> {
    let output = run(
        folder,
        &[
            "run",
            scene,
            "-q",
            "--no-render",
            "-o",
            name,
            "--threads",
            threads,
        ],
    );
    assert!(output.status.success(), "{}", common::told(&output));
    frames(&folder.join(name))
}

#[test]
fn the_first_scene_has_the_same_bytes_on_one_two_and_three_threads() {
    let folder = tempfile::tempdir().unwrap();
    let alone = complete_run(folder.path(), &first_scene(), "one", "1");
    assert_eq!(alone.len(), 49);
    for threads in ["2", "3"] {
        assert!(
            alone == complete_run(folder.path(), &first_scene(), threads, threads),
            "{threads} threads"
        );
    }
}

#[test]
fn a_run_killed_at_ten_random_moments_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let expected = complete_run(folder.path(), &first_scene(), "whole", "2");
    let random = barchan_base::random::Random::new(2026, 0);
    for kill in 0..10 {
        let mut child = barchan(folder.path())
            .args([
                "run",
                &first_scene(),
                "-q",
                "--no-render",
                "-o",
                "killed",
                "--threads",
                "2",
            ])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs_f32(
            0.05 + 0.7 * random.uniform(kill, 0),
        ));
        child.kill().unwrap(); // SIGKILL on Unix
        child.wait().unwrap();
    }
    let found = complete_run(folder.path(), &first_scene(), "killed", "2");
    assert!(found == expected, "the frames differ after ten kills");
    let lines = std::fs::read_to_string(folder.path().join("killed/report.jsonl")).unwrap();
    let whole = std::fs::read_to_string(folder.path().join("whole/report.jsonl")).unwrap();
    assert!(
        lines == whole,
        "the report tells a step twice or not at all"
    );
}

#[test]
fn emitters_sinks_wind_and_moving_bodies_resume_too() {
    for scene in ["fountain", "sandstorm", "paddle", "target"] {
        let folder = tempfile::tempdir().unwrap();
        let path = root()
            .join(format!("scenes/gallery/{scene}.toml"))
            .display()
            .to_string();
        let args = |output: &'static str, frames: &'static str, threads: &'static str| {
            vec![
                "run".to_owned(),
                path.clone(),
                "-q".into(),
                "--no-render".into(),
                "-o".into(),
                output.into(),
                "--frames".into(),
                frames.into(),
                "--threads".into(),
                threads.into(),
            ]
        };
        let go = |args: Vec<String>| {
            let output = barchan(folder.path()).args(args).output().unwrap();
            assert!(
                output.status.success(),
                "{scene}: {}",
                common::told(&output)
            );
        };
        go(args("whole", "..12", "1"));
        go(args("parts", "..5", "3"));
        go(args("parts", "..9", "2"));
        go(args("parts", "6..12", "1"));
        assert!(
            frames(&folder.path().join("whole")) == frames(&folder.path().join("parts")),
            "{scene}"
        );
    }
}

#[test]
fn scenes_with_meshes_have_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    // A cube with one side missing, to be filled and to be hit; and a sequence that moves it.
    let cube = barchan_base::mesh::unit_cube();
    for (name, shift) in [("cube.obj", 0.0), ("move_1.obj", 0.0), ("move_2.obj", 0.3)] {
        let vertices = cube
            .vertices()
            .iter()
            .map(|v| format!("v {} {} {}\n", v.x + shift, v.y, v.z));
        let faces = cube.triangles()[2..]
            .iter()
            .map(|t| format!("f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1));
        std::fs::write(
            folder.path().join(name),
            vertices.chain(faces).collect::<String>(),
        )
        .unwrap();
    }
    let scene = r#"
schema = 1
frames = 6
[solver]
method = "ballistic"
resolution = "4 cm"
[materials.rice]
preset = "rice"
[[fill]]
material = "rice"
shape = { mesh = { file = "cube.obj", at = [0, 1.2, 0] } }
velocity = [0, -3, 0]
[[body]]
shape = { mesh = { file = "cube.obj", scale = 0.5, rotate = [20, 30, 40] } }
[[body]]
sequence = { files = "move_#.obj", last = 2, fps = 6, at = [0.6, -0.5, 0] }
"#;
    std::fs::write(folder.path().join("meshes.toml"), scene).unwrap();
    let alone = complete_run(folder.path(), "meshes.toml", "one", "1");
    for threads in ["2", "3"] {
        assert!(
            alone == complete_run(folder.path(), "meshes.toml", threads, threads),
            "{threads} threads"
        );
    }
    let output = run(
        folder.path(),
        &["run", "meshes.toml", "-q", "-o", "parts", "--frames", "..3"],
    );
    assert!(output.status.success(), "{}", common::told(&output));
    assert!(
        alone == complete_run(folder.path(), "meshes.toml", "parts", "2"),
        "resumed"
    );
}

#[test]
fn the_sand_of_zhu_and_bridson_has_the_same_bytes_on_any_threads_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let path = root()
        .join("scenes/zhu2005/sand_column.toml")
        .display()
        .to_string();
    let go = |name: &str, frames: &str, threads: &str| {
        let coarse = ["--set", "solver.resolution=4 cm"];
        let rest = ["-q", "-o", name, "--frames", frames, "--threads", threads];
        let output = run(
            folder.path(),
            &[&["run", path.as_str()][..], &coarse, &rest].concat(),
        );
        assert!(output.status.success(), "{}", common::told(&output));
        common::frames(&folder.path().join(name))
    };
    let alone = go("one", "..6", "1");
    assert!(alone == go("two", "..6", "2") && alone == go("three", "..6", "3"));
    go("parts", "..2", "3");
    assert!(alone == go("parts", "..6", "2"), "resumed");
}

#[test]
fn a_stop_at_the_end_of_a_frame_saves_the_state_too() {
    let folder = folder_with_scene();
    let path = folder.path().join("drop.toml");
    // Frames of one step, and checkpoints far apart.
    let sets = ["fps=10000", "output.checkpoint_every=100"].map(str::to_owned);
    let scene = scene::load(&path, &sets).unwrap();
    let mut solver = barchan::solvers::solver(&scene);
    let record = Record::starting(&scene, 1);
    let run = Arc::new(RunFolder::prepare(&folder.path().join("run"), &record, false).unwrap());
    let mut recorder = CacheRecorder::new(run.clone(), &scene, &[], |_| {}, |_, _| {});
    let mut state = start(&scene.model, scene.fps, solver.columns()).unwrap();
    recorder.start(&state, &()).unwrap();
    let mut stopped = Run {
        model: &scene.model,
        solver: &mut *solver,
        coupling: &mut (),
        max_step: scene.max_step,
        stop: &AtomicBool::new(true),
    };
    let outcome = stopped.until(4, &mut state, &mut recorder).unwrap();
    recorder.finish().unwrap();
    assert_eq!((outcome, state.clock.frame), (Outcome::Interrupted, 1));
    let saved = run.resume(&scene, (solver.columns(), solver.memory()));
    assert_eq!(saved.unwrap().unwrap().0.clock, state.clock);
}

/// Sends a signal.
#[cfg(unix)]
fn send(child: &std::process::Child, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Stops a run by a signal: it ends as interrupted, and tells how to go on.
#[cfg(unix)]
fn stop(child: std::process::Child, signal: &str) {
    send(&child, signal);
    let output = child.wait_with_output().unwrap();
    let talk = common::told(&output);
    assert!(
        talk.starts_with("exit code 1") && talk.contains("Give the same command again to go on"),
        "{talk}"
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_the_state_between_frames_and_the_same_command_goes_on() {
    let folder = folder_with_scene();
    // Long frames of many steps, so that the interrupt falls between frames.
    let args = [
        "run",
        "drop.toml",
        "--set",
        "fps=2",
        "--set",
        "solver.max_step=0.1 ms",
        "--set",
        "solver.resolution=3 cm",
    ];
    let expected = {
        let output = run(folder.path(), &[&args[..], &["-q", "-o", "whole"]].concat());
        assert!(output.status.success(), "{}", common::told(&output));
        frames(&folder.path().join("whole"))
    };
    let child = barchan(folder.path())
        .args(args)
        .args(["-o", "cut"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(900));
    // Twice in a row, as `timeout` does.
    send(&child, "-INT");
    std::thread::sleep(Duration::from_millis(1));
    stop(child, "-INT");
    let again = run(folder.path(), &[&args[..], &["-o", "cut"]].concat());
    assert!(again.status.success(), "{}", common::told(&again));
    assert!(
        common::told(&again).contains("going on after frame"),
        "{}",
        common::told(&again)
    );
    assert!(frames(&folder.path().join("cut")) == expected);
}

#[cfg(unix)]
#[test]
fn an_interrupt_while_grains_are_made_is_heeded_at_once_and_the_same_command_goes_on() {
    let folder = folder_with_scene();
    let scene = folder.path().join("drop.toml");
    let text = std::fs::read_to_string(&scene).unwrap();
    std::fs::write(
        &scene,
        format!("{text}\n[detail]\ngrains_per_particle = 100\n"),
    )
    .unwrap();
    let args = ["run", "drop.toml", "--set", "frames=12", "-q", "-o"];
    let whole = run(folder.path(), &[&args[..], &["whole"]].concat());
    assert!(whole.status.success(), "{}", common::told(&whole));
    let grains = |name: &str| frames(&folder.path().join(name).join("detail"));
    let expected = grains("whole");
    assert_eq!(expected.len(), 13);
    let mut child = barchan(folder.path())
        .args(args)
        .arg("cut")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = folder.path().join("cut/detail/frames/000000.arrow");
    while !begun.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    stop(child, "-TERM");
    assert!(grains("cut").len() < expected.len());
    let again = run(folder.path(), &[&args[..], &["cut"]].concat());
    assert!(again.status.success(), "{}", common::told(&again));
    assert!(grains("cut") == expected);
}

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_costs_only_the_frame_in_flight() {
    let folder = folder_with_scene();
    let expected = complete_run(folder.path(), "drop.toml", "whole", "2");
    let size = expected.values().map(Vec::len).max().unwrap();
    // A limit on file sizes stands for the full disk: the report grows past it after a few frames.
    let blocks = size / 512 + 2;
    let script = format!(
        "trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" run drop.toml -q -o full --set frames=400 --set solver.max_step='\"0.3 ms\"'"
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_barchan")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let talk = common::told(&output);
    assert!(
        talk.starts_with("exit code 1") && talk.contains("what was written before is whole"),
        "{talk}"
    );
    let made = frames(&folder.path().join("full"));
    assert!(
        !made.is_empty(),
        "no frame was written before the disk was full"
    );
    for name in made.keys() {
        assert!(name.ends_with(".arrow"), "litter: {name}");
    }
    let stats = run(folder.path(), &["stats", "full", "--json"]);
    assert!(stats.status.success(), "{}", common::told(&stats));
    let again = run(
        folder.path(),
        &[
            "run",
            "drop.toml",
            "-q",
            "-o",
            "full",
            "--set",
            "solver.max_step=0.3 ms",
        ],
    );
    assert!(again.status.success(), "{}", common::told(&again));
}
