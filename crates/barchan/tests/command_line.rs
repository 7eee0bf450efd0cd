//! The command as a user meets it.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::cache::read_frame;
use common::{folder_with_scene, root, run, told};
use serde_json::Value;

fn lines(bytes: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn stats_of_one_material_leave_out_the_others() {
    let folder = folder_with_scene();
    let gravel = "\n[materials.gravel]\npreset = \"gravel\"\n[[fill]]\nmaterial = \"gravel\"\nshape = { sphere = { radius = 0.2, at = [2, 0.5, 0] } }\n";
    let path = folder.path().join("drop.toml");
    let text = std::fs::read_to_string(&path).unwrap() + gravel;
    std::fs::write(&path, text).unwrap();
    assert!(run(folder.path(), &["run", "drop.toml"]).status.success());
    let count = |material: &[&str]| {
        let told = ["stats", "out/drop", "--json", "--frames", "4"];
        let told = run(folder.path(), &[&told, material].concat());
        lines(&told.stdout)[0]["particles"].as_u64().unwrap()
    };
    let (sand, gravel) = (
        count(&["--material", "sand"]),
        count(&["--material", "gravel"]),
    );
    assert!(sand > gravel && gravel > 0, "{sand} and {gravel}");
    assert_eq!(sand + gravel, count(&[]));
    let wrong = run(folder.path(), &["stats", "out/drop", "--material", "snad"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        told(&wrong).contains("it has gravel, sand"),
        "{}",
        told(&wrong)
    );
}

#[test]
fn run_stats_info_and_export_work_together() {
    let folder = folder_with_scene();
    let ran = run(folder.path(), &["run", "drop.toml"]);
    assert!(
        ran.status.success() && ran.stdout.is_empty(),
        "{}",
        told(&ran)
    );
    let talk = told(&ran);
    assert!(
        talk.contains("frame 4/4") && talk.contains("barchan stats out/drop"),
        "{talk}"
    );

    let stats = lines(&run(folder.path(), &["stats", "out/drop", "--json"]).stdout);
    assert_eq!(stats.len(), 5);
    for (i, frame) in stats.iter().enumerate() {
        assert_eq!(frame["frame"], i);
        assert!((frame["time"].as_f64().unwrap() - i as f64 / 24.0).abs() < 1e-12);
        assert_eq!(frame["particles"], stats[0]["particles"]);
        assert_eq!(frame["mass"], stats[0]["mass"]);
        for key in [
            "kinetic_energy",
            "potential_energy",
            "max_speed",
            "center_of_mass",
            "bounds_min",
            "bounds_max",
        ] {
            assert!(!frame[key].is_null(), "{key} is missing");
        }
    }
    // Free fall: v = g t, and what is lost in height is gained in speed.
    let energy = |frame: &Value| {
        frame["kinetic_energy"].as_f64().unwrap() + frame["potential_energy"].as_f64().unwrap()
    };
    assert!((stats[2]["max_speed"].as_f64().unwrap() - 9.81 * 2.0 / 24.0).abs() < 1e-3);
    assert!((energy(&stats[2]) / energy(&stats[0]) - 1.0).abs() < 1e-4);

    let info = run(folder.path(), &["info", "out/drop"]);
    assert!(String::from_utf8_lossy(&info.stdout).contains("frames       0 to 4"));
    for (format, file) in [
        ("abc", "particles.abc"),
        ("usd", "particles.usda"),
        ("usdc", "particles.usdc"),
        ("vdb", "particles_000001.vdb"),
        ("bgeo", "particles_000001.bgeo"),
        ("ply", "particles_000001.ply"),
        ("vtk", "particles_000001.vtp"),
        ("glb", "particles_000001.glb"),
        ("pbrt", "particles_000001.pbrt"),
        ("mitsuba", "particles_000001.xml"),
    ] {
        let exported = run(
            folder.path(),
            &["export", "out/drop", "--format", format, "-o", format],
        );
        assert!(exported.status.success(), "{}", told(&exported));
        assert!(folder.path().join(format).join(file).is_file());
    }
    assert!(folder.path().join("vtk/particles.pvd").is_file());
}

#[test]
fn frames_are_without_the_columns_that_only_the_method_reads() {
    let folder = folder_with_scene();
    let args = "run drop.toml -q --frames ..1 --set solver.method=flip";
    let output = run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", told(&output));
    let frame = read_frame(&folder.path().join("out/drop/frames/000001.arrow")).unwrap();
    let own = frame.particles.extra.iter().map(|column| column.spec.name);
    assert_eq!(own.collect::<Vec<_>>(), ["pressure"]);
}

#[test]
fn a_finished_run_says_so_and_a_longer_one_goes_on() {
    let folder = folder_with_scene();
    assert!(
        run(folder.path(), &["run", "drop.toml", "-q"])
            .status
            .success()
    );
    let again = told(&run(folder.path(), &["run", "drop.toml"]));
    assert!(
        again.starts_with("exit code 0") && again.contains("all 4 frames are there already"),
        "{again}"
    );
    let longer = told(&run(
        folder.path(),
        &["run", "drop.toml", "--set", "frames=7"],
    ));
    assert!(longer.contains("going on after frame 4 of 7"), "{longer}");
    assert_eq!(common::frames(&folder.path().join("out/drop")).len(), 8);
}

#[test]
fn machines_get_json_and_quiet_is_quiet() {
    let folder = folder_with_scene();
    let ran = run(folder.path(), &["run", "drop.toml", "--json"]);
    let events = lines(&ran.stdout);
    assert_eq!(events.len(), 5);
    assert!(
        events[..4].iter().all(|event| event["event"] == "frame") && events[4]["event"] == "done"
    );
    let quiet = run(folder.path(), &["run", "drop.toml", "-q", "--fresh"]);
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
    let check = &lines(&run(folder.path(), &["check", "drop.toml", "--json"]).stdout)[0];
    let particles = check["particles_at_start"].as_f64().unwrap();
    let real = events[0]["particles"].as_f64().unwrap();
    assert!(
        (particles / real - 1.0).abs() < 0.03,
        "estimated {particles}, found {real}"
    );
}

#[test]
fn the_scene_can_ask_for_exports() {
    let folder = folder_with_scene();
    let ran = run(
        folder.path(),
        &[
            "run",
            "drop.toml",
            "-q",
            "--set",
            "export.formats=['ply', 'vtk']",
        ],
    );
    assert!(ran.status.success(), "{}", told(&ran));
    assert!(
        folder
            .path()
            .join("out/drop/export/ply/particles_000004.ply")
            .is_file()
    );
    assert!(
        folder
            .path()
            .join("out/drop/export/vtk/particles.pvd")
            .is_file()
    );
}

#[test]
fn gallery_scenes_are_listed_copied_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let list = run(folder.path(), &["new"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("first"));
    assert!(run(folder.path(), &["new", "first"]).status.success());
    let copied = std::fs::read(folder.path().join("first.toml")).unwrap();
    assert_eq!(
        copied,
        std::fs::read(root().join("scenes/gallery/first.toml")).unwrap()
    );
    let again = told(&run(folder.path(), &["new", "first"]));
    assert!(
        again.starts_with("exit code 2") && again.contains("exists already"),
        "{again}"
    );
    let wrong = told(&run(folder.path(), &["new", "frist"]));
    assert!(wrong.contains("did you mean \"first\""), "{wrong}");
}

#[test]
fn every_gallery_scene_runs_its_first_frames() {
    for entry in std::fs::read_dir(root().join("scenes/gallery")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let folder = tempfile::tempdir().unwrap();
            let scene = path.display().to_string();
            let mut arguments = vec!["run", &scene, "-q", "--no-render", "--frames", "..2"];
            // Two grains in place of each particle find their way as well as forty do.
            if std::fs::read_to_string(&path).unwrap().contains("[detail]") {
                arguments.extend(["--set", "detail.grains_per_particle=2"]);
            }
            let ran = run(folder.path(), &arguments);
            assert!(ran.status.success(), "{}: {}", path.display(), told(&ran));
        }
    }
}

#[test]
fn the_schema_is_json_and_help_goes_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let schema: Value = serde_json::from_slice(&run(folder.path(), &["schema"]).stdout).unwrap();
    assert!(schema["$defs"]["SceneDoc"]["properties"]["frames"].is_object());
    let help = run(folder.path(), &["--help"]);
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Exit codes"));
    let presets = run(folder.path(), &["info", "presets"]);
    assert!(String::from_utf8_lossy(&presets.stdout).contains("dry-sand"));
}

#[test]
fn bench_prints_json_lines_with_the_headline_last() {
    let folder = tempfile::tempdir().unwrap();
    let bench = run(
        folder.path(),
        &[
            "bench",
            "ballistic",
            "--json",
            "--particles",
            "20000",
            "--steps",
            "5",
        ],
    );
    let lines = lines(&bench.stdout);
    let headline = lines.last().unwrap();
    assert_eq!(headline["name"], "ballistic");
    for key in [
        "particles",
        "threads",
        "particle_steps_per_second",
        "seconds_per_frame",
        "bytes_per_particle",
    ] {
        assert!(headline[key].as_f64().unwrap() > 0.0, "{key}");
    }
}

#[test]
fn a_bench_tells_the_median_and_all_runs() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "bench io --json --runs 3 --particles 2000 -o .";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let bench = run(folder.path(), &arguments);
    for line in lines(&bench.stdout) {
        let runs = line["seconds_of_runs"].as_array().unwrap().iter();
        let mut runs: Vec<f64> = runs.map(|seconds| seconds.as_f64().unwrap()).collect();
        runs.sort_by(f64::total_cmp);
        assert_eq!(runs.len(), 3);
        assert_eq!(line["seconds"], runs[1]);
        let each = 1e9 * runs[1] / 2000.0;
        assert!((line["nanoseconds_each"].as_f64().unwrap() - each).abs() < 1e-6 * each);
        assert!(line["of_first"].is_null(), "nothing was scaled");
    }
}

#[test]
fn a_bench_is_scaled_over_sizes_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "bench sph --json --runs 1 --steps 1 --sizes 500,4000 --thread-counts 2,1";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let lines = lines(&run(folder.path(), &arguments).stdout);
    let first = lines[0]["nanoseconds_each"].as_f64().unwrap();
    assert_eq!(lines.len(), 4);
    for (line, (threads, few)) in lines
        .iter()
        .zip([(2, true), (2, false), (1, true), (1, false)])
    {
        assert_eq!(line["name"], "sph");
        assert_eq!(line["threads"], threads);
        assert_eq!(line["particles"].as_f64().unwrap() < 1500.0, few);
        let ratio = line["nanoseconds_each"].as_f64().unwrap() / first;
        assert!((line["of_first"].as_f64().unwrap() - ratio).abs() < 1e-9);
    }
}

#[test]
fn wrong_use_of_bench_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        ("bench sph --runs 0", "--runs"),
        ("bench sph --sizes 100,0", "--sizes"),
        ("bench sph --sizes 100 --particles 100", "--particles"),
        ("bench sph --thread-counts 1,0", "--thread-counts"),
        ("bench sph --thread-counts 1 --threads 1", "--threads"),
        ("bench sph --steps 0", "--steps"),
        ("bench sph --against python3", "--against"),
        ("bench sand", "flip"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let said = told(&run(folder.path(), &arguments));
        assert!(
            said.starts_with("exit code 2") && said.contains(word),
            "{said}"
        );
    }
}

#[test]
fn benchmarks_are_kept_and_their_history_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let keep = [
        "bench",
        "io",
        "--particles",
        "2000",
        "--append",
        "kept.jsonl",
        "-o",
        ".",
    ];
    for _ in 0..2 {
        let bench = run(folder.path(), &keep);
        assert!(bench.status.success(), "{}", told(&bench));
        let text = String::from_utf8_lossy(&bench.stdout).into_owned();
        assert!(text.contains("written at"), "{text}");
    }
    let kept = lines(&std::fs::read(folder.path().join("kept.jsonl")).unwrap());
    assert_eq!(kept.len(), 6);
    let headline = kept.last().unwrap();
    assert_eq!(headline["name"], "io");
    for key in ["time", "threads", "bytes_per_second", "of_possible_bytes"] {
        assert!(headline[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert!(headline["machine"].as_str().unwrap().contains("cores"));
    // This folder is not Barchan's source.
    assert!(headline["commit"].is_null());
    let history = run(
        folder.path(),
        &["bench", "--history", "kept.jsonl", "-o", "report"],
    );
    assert!(history.status.success(), "{}", told(&history));
    let table = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(
        table.contains("io, lz4") && table.contains("2,000 particles") && table.contains(" %"),
        "{table}"
    );
    let page = std::fs::read_to_string(folder.path().join("report/index.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    // Nothing but what was asked for is left behind.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    let missing = told(&run(folder.path(), &["bench", "--history", "none.jsonl"]));
    assert!(
        missing.starts_with("exit code 2") && missing.contains("none.jsonl"),
        "{missing}"
    );
    std::fs::write(folder.path().join("kept.jsonl"), "{}\nnot json\n").unwrap();
    let hostile = told(&run(folder.path(), &["bench", "--history", "kept.jsonl"]));
    assert!(
        hostile.starts_with("exit code 2") && hostile.contains("line 1 of kept.jsonl"),
        "{hostile}"
    );
}

#[test]
fn the_surface_bench_ends_with_the_default_style() {
    let folder = tempfile::tempdir().unwrap();
    let bench = run(
        folder.path(),
        &["bench", "surface", "--json", "--particles", "5000"],
    );
    let lines = lines(&bench.stdout);
    assert_eq!(lines.len(), 4);
    let headline = lines.last().unwrap();
    assert_eq!(headline["name"], "surface");
    for key in ["particles", "threads", "seconds", "triangles", "blocks"] {
        assert!(headline[key].as_f64().unwrap() > 0.0, "{key}");
    }
}

/// A file is whole or not there.
#[cfg(unix)]
#[test]
fn a_new_scene_that_finds_no_room_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let told = common::told_on_a_full_disk(folder.path(), 1, "new beach_footprints");
    assert!(told.contains("cannot write"), "{told}");
    assert!(common::files(folder.path()).is_empty());
}

#[test]
fn help_lists_words_and_one_thread_is_one() {
    let folder = folder_with_scene();
    let shown = |args: &[&str]| {
        let output = run(folder.path(), args);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(shown(&["render", "--help"]).contains("possible values: auto, grains, mesh"));
    assert!(shown(&["export", "--help"]).contains("possible values: abc"));
    let check = shown(&["check", "drop.toml", "--threads", "1"]);
    assert!(check.contains("on 1 thread,"), "{check}");
}

/// A cut file of results was called done.
#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_barchan"));
    let told = command.arg("schema").stdout(full.unwrap()).output();
    let told = told.unwrap();
    assert_eq!(told.status.code(), Some(1));
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("could not be written"), "{said}");
}
