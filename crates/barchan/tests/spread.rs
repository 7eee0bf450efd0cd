//! Grains spread on a surface, as a user does it.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::cache::read_frame;
use barchan::sim::scene;
use barchan::sim::solids::Solids;
use common::{files, frames, root, run, told};
use std::path::Path;
use std::process::Output;

/// A run of the first scene after Munns, in `folder`.
fn clusters(folder: &Path) {
    let scene = root().join("scenes/munns2015/clusters_low.toml");
    let made = run(folder, &["run", scene.to_str().unwrap(), "-q"]);
    assert!(made.status.success(), "{}", told(&made));
}

fn spread(folder: &Path, more: &[&str]) -> Output {
    let mut args = vec![
        "spread",
        "out/clusters_low",
        "--frames",
        "8",
        "--json",
        "-q",
    ];
    args.extend(more);
    run(folder, &args)
}

fn line(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", told(output));
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("\"spread\"")).collect();
    serde_json::from_str(lines[0]).unwrap()
}

/// How far from the scene's bodies the nearest grain of a frame is, in radii; faces ten centimetres wide bend by more than that.
fn deepest(frame: &Path) -> f32 {
    let scene = scene::load(&root().join("scenes/munns2015/clusters_low.toml"), &[]).unwrap();
    let mut solids = Solids::default();
    solids.place(&scene.model, 0.0, 0.0).unwrap();
    let particles = read_frame(frame).unwrap().particles;
    let each = particles.position.iter().zip(&particles.radius);
    let away = each.map(|(at, radius)| {
        let all = solids.all().iter();
        all.map(|solid| solid.distance(*at))
            .fold(f32::INFINITY, f32::min)
            / radius
    });
    away.fold(f32::INFINITY, f32::min)
}

#[test]
fn clusters_are_spread_and_the_new_frames_are_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    clusters(folder);
    // Twenty a face, as the scene asks, can be: there are more than six hundred faces.
    let eased = line(&spread(folder, &["-o", "eased"]));
    assert_eq!(eased["feasible"], true, "{eased}");
    assert!(eased["after"]["most"].as_f64().unwrap() <= 1.05, "{eased}");
    assert!(deepest(&folder.join("eased/frames/000008.arrow")) > 0.5);
    // Ten cannot: that is told, and what can be is done.
    let asked = line(&spread(folder, &["--max-per-face", "10"]));
    assert_eq!(asked["feasible"], false);
    let grains = asked["points"].as_f64().unwrap();
    assert!(grains > 9500.0, "{asked}");
    let allowed = asked["allowed"].as_f64().unwrap();
    assert!(allowed > grains / asked["faces"].as_f64().unwrap());
    assert!(asked["before"]["most"].as_f64().unwrap() > 3.0, "{asked}");
    assert!(asked["after"]["most"].as_f64().unwrap() <= 1.05, "{asked}");
    let first = frames(&folder.join("out/clusters_low/spread"));
    assert_eq!(first.len(), 1);
    let stats = run(folder, &["stats", "out/clusters_low/spread", "--json"]);
    assert!(stats.status.success(), "{}", told(&stats));
    // With the bound that was told, and with another number of threads, the same bytes.
    let bound = allowed.to_string();
    let again = spread(
        folder,
        &["--max-per-face", &bound, "--threads", "1", "-o", "one"],
    );
    assert_eq!(line(&again)["feasible"], true);
    let three = spread(
        folder,
        &["--max-per-face", &bound, "--threads", "3", "-o", "three"],
    );
    assert_eq!(line(&three)["feasible"], true);
    assert_eq!(frames(&folder.join("one")), frames(&folder.join("three")));
    // The grains' own spacing, and the material's own surface.
    let own = [
        "--set",
        "spread.max_per_face=1e9",
        "--cell",
        "2 cm",
        "-o",
        "own",
    ];
    assert_eq!(line(&spread(folder, &own))["moved"], 0);
    let material = ["--on", "material", "--cell", "1 cm", "-o", "material"];
    assert!(line(&spread(folder, &material))["faces"].as_u64().unwrap() > 10);
}

#[test]
fn what_cannot_be_spread_has_a_clear_answer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    clusters(folder);
    let down = "v 0 0 0\nv 1 0 0\nv 0 0 1\nf 1 2 3\n";
    std::fs::write(folder.join("down.obj"), down).unwrap();
    let scene = root().join("scenes/munns2015/clusters_low.toml");
    for (name, seed) in [("same", "seed=0"), ("other", "seed=7")] {
        let more = ["-q", "--frames", "..1", "-o", name, "--set", seed];
        let made = [&["run", scene.to_str().unwrap()][..], &more].concat();
        assert!(run(folder, &made).status.success());
        let before = files(&folder.join(name));
        let output = spread(folder, &["-o", name]);
        assert!(
            told(&output).contains("of another run"),
            "{}",
            told(&output)
        );
        assert!(files(&folder.join(name)) == before, "something was written");
    }
    for (args, code, words) in [
        (&["--max-per-face", "0"][..], 2, "must be positive"),
        (&["--max-per-face", "0.2"], 1, "points on a face"),
        (&["--on", "down.obj"], 1, "no face that looks up"),
        (&["--on", "nothing.obj"], 2, "a mesh file"),
        (&["--cell", "1 um"], 1, "choose a larger cell"),
        (&["--passes", "0"], 2, "passes"),
        (&["-o", "out/clusters_low"], 2, "would replace"),
        (&["-o", "./out/../out/clusters_low"], 2, "would replace"),
    ] {
        let output = spread(folder, args);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}
