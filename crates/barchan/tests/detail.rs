//! Grains of a run: made once, the same on any number of threads and after any stop, whatever some frames are like.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::cache::read_frame;
#[cfg(unix)]
use common::told_on_a_full_disk;
use common::{SCENE, change_frame, files, run, told};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A folder with a run of five frames in out/drop: grains that rain on the ground while an emitter adds to them and a
/// sink takes some away.
fn a_run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let more = "\n[[emit]]\nmaterial = \"sand\"\nshape = { box = { size = [0.2, 0.2, 0.2], at = [0.6, 0.5, 0] } }\nrate = \"500 particles/s\"\n\
                \n[[sink]]\nshape = { box = { size = [0.3, 0.3, 2], at = [-0.4, 0.4, 0] } }\n\
                \n[detail]\ngrains_per_particle = 20\n";
    let text = format!("{SCENE}{more}").replace("4 cm", "8 cm");
    std::fs::write(folder.path().join("drop.toml"), text).unwrap();
    let ran = run(folder.path(), &["run", "drop.toml", "-q"]);
    assert!(ran.status.success(), "{}", told(&ran));
    folder
}

fn detail(folder: &Path, args: &[&str]) -> String {
    let all: Vec<&str> = ["detail", "out/drop"].iter().chain(args).copied().collect();
    told(&run(folder, &all))
}

fn frames(folder: &Path) -> PathBuf {
    folder.join("out/drop/detail/frames")
}

/// The frames of grains, by name.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(&frames(folder))
}

fn clear(folder: &Path) {
    std::fs::remove_dir_all(folder.join("out/drop/detail")).unwrap();
}

#[test]
fn grains_come_and_go_with_their_particles_and_other_commands_take_them() {
    let folder = a_run();
    let run_folder = folder.path().join("out/drop");
    for number in 0..=4 {
        let name = format!("frames/{number:06}.arrow");
        let base = read_frame(&run_folder.join(&name)).unwrap();
        let fine = read_frame(&run_folder.join("detail").join(&name)).unwrap();
        assert_eq!(fine.particles.len(), 20 * base.particles.len());
        let mut ids: Vec<u64> = fine.particles.id.iter().map(|id| id / 20).collect();
        ids.dedup();
        let mut expected = base.particles.id.clone();
        expected.sort_unstable();
        assert_eq!(ids, expected, "frame {number}");
        let (coarse, small): (f32, f32) = (
            base.particles.mass.iter().sum(),
            fine.particles.mass.iter().sum(),
        );
        assert!((coarse / small - 1.0).abs() < 1e-3);
        assert_eq!(fine.meta.bodies.len(), 1);
    }
    for args in [
        &["info", "out/drop/detail"][..],
        &["stats", "out/drop/detail", "--frames", "4"],
        &[
            "export",
            "out/drop/detail",
            "--format",
            "ply",
            "--frames",
            "4",
        ],
        &[
            "render",
            "out/drop/detail",
            "--size",
            "32x24",
            "--samples",
            "1",
            "--frames",
            "4",
            "--no-movie",
        ],
    ] {
        let done = run(folder.path(), args);
        assert!(done.status.success(), "{args:?}: {}", told(&done));
    }
}

#[test]
fn the_same_bytes_on_any_number_of_threads_and_wherever_it_stopped() {
    for storage in ["full", "compact"] {
        let folder = a_run();
        let set = format!("detail.storage={storage}");
        let make = |args: &[&str]| {
            let all: Vec<&str> = args.iter().copied().chain(["--set", &set]).collect();
            detail(folder.path(), &all)
        };
        clear(folder.path());
        assert!(make(&["--threads", "1"]).contains("5 frames of grains"));
        let whole = bytes(folder.path());
        assert_eq!(whole.len(), 5);
        assert!(make(&[]).contains("5 were there already"));
        for threads in ["2", "3"] {
            clear(folder.path());
            make(&["--threads", threads]);
            assert!(
                bytes(folder.path()) == whole,
                "{storage}, {threads} threads"
            );
        }
        // A stop after frame 2, and a range that begins where frames are there.
        std::fs::remove_file(frames(folder.path()).join("000003.arrow")).unwrap();
        std::fs::remove_file(frames(folder.path()).join("000004.arrow")).unwrap();
        assert!(make(&["--frames", "3"]).contains("1 frames of grains"));
        make(&[]);
        assert!(bytes(folder.path()) == whole, "{storage}, resumed");
        // Other settings are other grains; with the first ones again they are the same as before.
        assert!(make(&["--grains", "3"]).contains("5 frames of grains"));
        assert!(bytes(folder.path()) != whole);
        make(&[]);
        assert!(bytes(folder.path()) == whole);
    }
}

#[test]
fn strange_frames_are_told_of_and_what_was_done_stays() {
    let folder = a_run();
    let whole = bytes(folder.path());
    let path = folder.path().join("out/drop/frames/000003.arrow");
    let kept = std::fs::read(&path).unwrap();
    // A frame is missing in the middle.
    std::fs::remove_file(&path).unwrap();
    let said = detail(folder.path(), &[]);
    assert!(
        said.starts_with("exit code 1") && said.contains("frame 3 of the run is not there"),
        "{said}"
    );
    std::fs::write(&path, &kept).unwrap();
    assert!(detail(folder.path(), &[]).contains("exit code 0"));
    assert!(bytes(folder.path()) == whole);
    // Two particles with one id.
    change_frame(folder.path(), 3, |particles| {
        particles.id[1] = particles.id[0];
    });
    let said = detail(folder.path(), &[]);
    assert!(
        said.starts_with("exit code 1") && said.contains("have the id"),
        "{said}"
    );
    assert_eq!(bytes(folder.path()).len(), 5);
    // Ids that jump: all others than before.
    change_frame(folder.path(), 3, |particles| {
        for (i, id) in particles.id.iter_mut().enumerate() {
            *id = 1_000_000 + i as u64;
        }
    });
    let said = detail(folder.path(), &[]);
    assert!(
        said.starts_with("exit code 0") && said.contains("most ids are not"),
        "{said}"
    );
    // Particles that forgot how fast they are, and one that is nowhere.
    std::fs::write(&path, &kept).unwrap();
    for frame in [2, 3] {
        change_frame(folder.path(), frame, |particles| {
            particles.velocity.fill(Default::default());
            particles.position[5].x = f32::NAN;
        });
    }
    let said = detail(folder.path(), &[]);
    assert!(
        said.starts_with("exit code 0") && said.contains("velocities are zero"),
        "{said}"
    );
    let frame = read_frame(&frames(folder.path()).join("000003.arrow")).unwrap();
    assert!(frame.particles.position.iter().all(|p| p.is_finite()));
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_whole_frames_and_a_way_on() {
    let folder = a_run();
    let whole = bytes(folder.path());
    clear(folder.path());
    // Frames grow, for particles are emitted: those after the middle one
    // do not fit.
    let sizes: Vec<usize> = whole.values().map(Vec::len).collect();
    let blocks = sizes[2].div_ceil(1024);
    assert!(sizes[4] > 1024 * blocks, "{sizes:?}");
    let said = told_on_a_full_disk(folder.path(), blocks, "detail out/drop -q");
    assert!(
        said.starts_with("exit code 1") && said.contains("to go on"),
        "{said}"
    );
    let made = bytes(folder.path());
    assert!(made.len() >= 3 && made.len() < 5, "{}", made.len());
    assert!(made.iter().all(|(name, bytes)| whole[name] == *bytes));
    assert!(detail(folder.path(), &[]).starts_with("exit code 0"));
    assert!(bytes(folder.path()) == whole);
}

#[test]
fn wrong_settings_are_explained() {
    let folder = a_run();
    let said = detail(folder.path(), &["--rule", "ihmse"]);
    assert!(
        said.starts_with("exit code 2") && said.contains("ihmsen"),
        "{said}"
    );
    let said = detail(folder.path(), &["--grains", "0"]);
    assert!(
        said.starts_with("exit code 2") && said.contains("at least 1"),
        "{said}"
    );
}

#[test]
fn a_run_with_grains_ends_in_pictures_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let more = "\n[detail]\ngrains_per_particle = 5\n\n[render]\nsize = \"32x18\"\nsamples = 1\nmovie = false\n";
    let text = format!("{SCENE}{more}").replace("4 cm", "16 cm");
    std::fs::write(folder.path().join("drop.toml"), &text).unwrap();
    let pictures = |of: &str| {
        let images = folder.path().join("out/drop").join(of).join("images");
        std::fs::read_dir(images).map_or(0, Iterator::count)
    };
    let ran = run(folder.path(), &["run", "drop.toml", "-q"]);
    assert!(ran.status.success(), "{}", told(&ran));
    assert_eq!((pictures("detail"), pictures("")), (5, 0));
    // Without them, it is what the run itself has.
    let plain = run(folder.path(), &["run", "drop.toml", "-q", "--no-detail"]);
    assert!(plain.status.success(), "{}", told(&plain));
    assert_eq!(pictures(""), 5);
}

#[test]
fn the_detail_bench_ends_with_the_default_rule() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        folder.path(),
        &["bench", "detail", "--json", "--particles", "20000"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["name"], &last["grains"]),
        (&"detail".into(), &20_000.into())
    );
    assert!(last["grain_steps_per_second"].as_f64().unwrap() > 1e4);
}
