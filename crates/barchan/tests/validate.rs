//! `barchan validate` as a user meets it: the quickest cases, their figures, their report.
#![allow(clippy::unwrap_used)]

mod common;

use common::{run, told};
use serde_json::Value;

fn lines(bytes: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn figures_come_as_json_lines_and_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "validate",
        "--case",
        "fall",
        "--case",
        "water-rest",
        "--json",
        "-o",
        "report",
    ];
    let ran = run(folder.path(), &args);
    let figures = lines(&ran.stdout);
    let mut methods: Vec<&str> = figures
        .iter()
        .filter(|figure| figure["case"] == "fall")
        .map(|figure| figure["method"].as_str().unwrap())
        .collect();
    methods.dedup();
    assert!(
        methods.starts_with(&["flip", "sph"]) && methods.contains(&"ballistic"),
        "{methods:?}"
    );
    assert!(!methods.contains(&"zhu-bridson"), "{methods:?}");
    for figure in &figures {
        for key in ["reference", "obtained", "error", "tolerance", "seconds"] {
            assert!(figure[key].is_f64(), "{key} of {figure}");
        }
        assert!(figure["particles"].as_u64().unwrap() > 500, "{figure}");
        let off = figure["error"].as_f64().unwrap().abs();
        let right = off <= figure["tolerance"].as_f64().unwrap();
        assert_eq!(figure["pass"].as_bool().unwrap(), right, "{figure}");
    }
    let wrong = figures
        .iter()
        .filter(|figure| figure["pass"] == false)
        .count();
    assert_eq!(
        ran.status.code(),
        Some(i32::from(wrong > 0)),
        "{}",
        told(&ran)
    );
    let page = std::fs::read_to_string(folder.path().join("report/index.html")).unwrap();
    assert!(
        page.contains("water-rest") && !page.contains("http"),
        "{page}"
    );
}

#[test]
fn wet_sand_stands_and_flows_when_it_dries() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(
        folder.path(),
        &["validate", "--case", "wet", "--method", "flip"],
    );
    assert!(ran.status.success(), "{}", told(&ran));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(
        text.lines().all(|line| line.starts_with("right wet")),
        "{text}"
    );
}

#[test]
fn unknown_names_are_told_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let case = run(folder.path(), &["validate", "--case", "castle"]);
    assert!(told(&case).starts_with("exit code 2") && told(&case).contains("hourglass"));
    let method = run(folder.path(), &["validate", "--method", "mpm"]);
    assert!(told(&method).starts_with("exit code 2") && told(&method).contains("flip"));
    let neither = run(
        folder.path(),
        &["validate", "--case", "vortex", "--method", "ballistic"],
    );
    assert!(
        told(&neither).starts_with("exit code 2"),
        "{}",
        told(&neither)
    );
}

#[test]
fn numbers_of_a_case_can_be_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["validate", "--case", "slide", "--method", "flip", "--json"];
    let with = |more: &[&str]| run(folder.path(), &[&args[..], more].concat());
    let ran = with(&[
        "--angle", "28", "--ratio", "12", "--across", "16", "--step", "0.5",
    ]);
    let figures = lines(&ran.stdout);
    assert_eq!(figures.len(), 1, "{}", told(&ran));
    for (key, value) in [
        ("angle", 28.0),
        ("ratio", 12.0),
        ("across", 16.0),
        ("step", 0.5),
    ] {
        assert_eq!(figures[0][key], value, "{key} of {}", figures[0]);
    }
    let ran = with(&["--angle", "95"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(told(&ran).contains("from 1 to 60"), "{}", told(&ran));
}

#[test]
fn keys_of_a_cases_scenes_can_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "validate", "--case", "slide", "--method", "flip", "--json", "--angle", "34", "--ratio",
        "10", "--across", "16",
    ];
    let with = |more: &[&str]| run(folder.path(), &[&args[..], more].concat());
    let acceleration = |more: &[&str]| {
        let figures = lines(&with(more).stdout);
        (figures[0]["obtained"].as_f64().unwrap(), figures[0].clone())
    };
    let (usual, _) = acceleration(&[]);
    let change = "materials.m.friction_angle=20";
    let (changed, figure) = acceleration(&["--set", change]);
    assert!(changed > usual + 1.0, "{changed} {usual}");
    assert_eq!(figure["set"], serde_json::json!([change]));

    let wrong = with(&["--set", "solver.lwa=inertial"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(told(&wrong).contains("solver.lwa"), "{}", told(&wrong));
}

#[test]
fn side_by_side_trials_find_the_same_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["validate", "--case", "wet", "--case", "flight", "--json"];
    let found = |threads: &str| {
        let ran = run(
            folder.path(),
            &[&args[..], &["--threads", threads]].concat(),
        );
        let mut figures = lines(&ran.stdout);
        for figure in &mut figures {
            figure["seconds"] = Value::Null;
        }
        figures
    };
    let alone = found("1");
    assert!(alone.len() > 8, "{alone:?}");
    assert_eq!(alone, found("3"));
}
