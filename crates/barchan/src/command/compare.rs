//! `barchan compare`: runs side by side, as a page and a strip of pictures: those given, or one scene by every method.

use super::frames::FrameRange;
use super::render::LookArgs;
use super::run::{RunArgs, interrupted, run_scene};
use super::say::{out, talk};
use super::{Failure, SceneArgs, default_folder, start_threads};
use crate::validate::{METHODS, Method, method};
use barchan_out::cache::RunFolder;
use barchan_out::compare::{Comparison, Side, compare as compare_runs, page};
use barchan_sim::atomic;
use barchan_sim::scene::{self, ByMethod};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `compare`.
#[derive(clap::Args)]
pub struct CompareArgs {
    /// Folder of the first run; with --methods, a scene
    first: PathBuf,
    /// Folders of the runs to compare it with
    #[arg(required_unless_present = "methods", conflicts_with = "methods")]
    others: Vec<PathBuf>,
    /// Run the scene by each of these methods, as flip,sph,dem, with as many particles, and compare the runs
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
    /// With --methods, change a key of the scene
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "methods")]
    set: Vec<String>,
    /// With --methods, stop after frame B
    #[arg(long, value_name = "A..B", requires = "methods")]
    frames: Option<FrameRange>,
    /// Folder for the page and the strip, and with --methods for the runs [default: out/compare-FIRST-SECOND, out/NAME-methods]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    look: LookArgs,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Size of each picture in the strip, if nobody says [pixels].
const SIZE: [u32; 2] = [480, 270];

/// Runs `compare`.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    if !args.methods.is_empty() {
        return compare_methods(args);
    }
    let folders: Vec<PathBuf> = std::iter::once(&args.first)
        .chain(&args.others)
        .cloned()
        .collect();
    let names = names(&folders);
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| Path::new("out").join(format!("compare-{}", names.join("-"))));
    show(args, &folders, names, &output)
}

/// Compares the runs in `folders` and writes the page to `output`.
fn show(
    args: &CompareArgs,
    folders: &[PathBuf],
    names: Vec<String>,
    output: &Path,
) -> Result<(), Failure> {
    let open = |path: &PathBuf| RunFolder::open(path).map_err(Failure::input);
    let runs = folders.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let scenes = runs.iter().map(|run| run.scene().map_err(Failure::Scene));
    let scenes = scenes.collect::<Result<Vec<_>, _>>()?;
    let mut settings = runs[0].asked(&[]).render().map_err(Failure::Scene)?;
    settings.size = SIZE;
    args.look.apply(&mut settings);
    let sides: Vec<Side<'_>> = names
        .into_iter()
        .zip(runs.iter().zip(&scenes))
        .map(|(name, (run, scene))| Side { name, run, scene })
        .collect();
    let comparison = compare_runs(&sides, &settings).map_err(Failure::run)?;
    write(output, &comparison)
        .map_err(|error| Failure::Run(format!("cannot write to {}: {error}", output.display())))?;
    tell(&comparison, args.json);
    talk(&format!("open {}", output.join("index.html").display()));
    if comparison.trouble.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(comparison.trouble.join("\n")))
    }
}

/// Runs the scene by every method that was asked for, then compares those that came to their end.
fn compare_methods(args: &CompareArgs) -> Result<(), Failure> {
    let methods = args.methods.iter().map(|name| known(name));
    let methods = methods.collect::<Result<Vec<_>, _>>()?;
    let own = scene::load(&args.first, &args.set).map_err(Failure::Scene)?;
    let output = args.output.clone().unwrap_or_else(|| {
        let mut folder = default_folder(&own).into_os_string();
        folder.push("-methods");
        folder.into()
    });
    let (mut folders, mut names, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for method in methods {
        talk(&format!("{}:", method.name));
        let folder = output.join(method.name);
        match run_by(args, method, own.method.word(), &folder) {
            Ok(()) => {
                folders.push(folder);
                names.push(method.name.to_owned());
            }
            Err(failure) if interrupted() => return Err(failure),
            Err(failure) => {
                let reason = failure.message();
                talk(&format!("{} is left out: {reason}", method.name));
                failed.push(format!("{}: {reason}", method.name));
            }
        }
    }
    if folders.is_empty() {
        return Err(Failure::Run(failed.join("\n")));
    }
    show(args, &folders, names, &output)?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Run(failed.join("\n"))),
    }
}

fn known(name: &str) -> Result<&'static Method, Failure> {
    method(name).ok_or_else(|| {
        let all: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        let advice = scene::suggest(name, &all);
        Failure::Input(format!("there is no method \"{name}\"; {advice}"))
    })
}

/// Runs the scene by `method`, with a word about each key that had to change; `own` is the scene's own method, whose keys are kept.
fn run_by(args: &CompareArgs, method: &Method, own: &str, folder: &Path) -> Result<(), Failure> {
    let keys: Vec<&str> = match method.name == own {
        true => Vec::new(),
        false => method.keys.lines().collect(),
    };
    let ByMethod { scene, changes } = fitting(args, &keys)?;
    for change in changes {
        talk(&format!("  {change}"));
    }
    let plain = SceneArgs {
        scene: args.first.clone(),
        set: args.set.clone(),
        threads: args.threads,
    };
    let scene = scene::Scene {
        surface: None,
        exports: Vec::new(),
        ..scene
    };
    run_scene(
        scene,
        &RunArgs::plain(plain, folder.to_owned(), args.frames),
    )
}

/// The scene by the method with `keys`; without the scene's longest step where that is too long for the method.
fn fitting(args: &CompareArgs, keys: &[&str]) -> Result<ByMethod, Failure> {
    let load = |without: &[&str]| {
        scene::load_by(&args.first, &args.set, keys, without).map_err(Failure::Scene)
    };
    let loaded = load(&[])?;
    let solver = barchan_solvers::solver(&loaded.scene);
    match solver.admit(loaded.scene.max_step) {
        Ok(()) => Ok(loaded),
        Err(_) => load(&["max_step"]),
    }
}

/// What the runs are called: the names of their folders, told apart.
fn names(folders: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        whole
            .file_name()
            .map_or("run".into(), |name| name.to_string_lossy().into_owned())
    };
    let plain: Vec<String> = folders.iter().map(name).collect();
    let told_apart = |(number, name): (usize, &String)| {
        let twins = plain.iter().filter(|other| *other == name).count();
        match twins {
            1 => name.clone(),
            _ => format!("{name} ({})", number + 1),
        }
    };
    plain.iter().enumerate().map(told_apart).collect()
}

fn write(folder: &Path, comparison: &Comparison) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    comparison.strip.write(&folder.join("strip.png"), "")?;
    atomic::write_bytes(&folder.join("index.html"), page(comparison).as_bytes())
}

fn tell(comparison: &Comparison, as_json: bool) {
    if as_json {
        let rows: Vec<_> = comparison
            .table()
            .into_iter()
            .map(|row| json!({ "what": row.name, "values": row.values, "difference": row.difference }))
            .collect();
        out(&json!({ "runs": comparison.names, "at_the_end": rows }).to_string());
        return;
    }
    let line = |name: &str, values: &[String], difference: &str| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:>16}")).collect();
        out(format!("{name:22} {} {difference:>12}", values.join(" ")).trim_end());
    };
    let two = comparison.names.len() == 2;
    line(
        "at the end",
        &comparison.names,
        if two { "difference" } else { "" },
    );
    for row in comparison.table() {
        line(&row.name, &row.values, &row.difference);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_are_told_apart() {
        let folders = ["a/x", "b/x", "y"].map(PathBuf::from);
        assert_eq!(names(&folders), ["x (1)", "x (2)", "y"]);
    }
}
