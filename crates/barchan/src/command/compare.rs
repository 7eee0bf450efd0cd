//! `barchan compare`: two runs side by side, as a page and a strip of pictures.

use super::render::{LookArgs, scene_of};
use super::say::{out, talk};
use super::{Failure, start_threads};
use barchan_out::cache::RunFolder;
use barchan_out::compare::{Comparison, Side, compare as compare_runs, page};
use barchan_sim::atomic;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `compare`.
#[derive(clap::Args)]
pub struct CompareArgs {
    /// Folder of the first run
    first: PathBuf,
    /// Folder of the second run
    second: PathBuf,
    /// Folder for the page and the strip [default: out/compare-FIRST-SECOND]
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
    let folders = [&args.first, &args.second];
    let open = |path: &PathBuf| RunFolder::open(path).map_err(Failure::input);
    let runs = [open(folders[0])?, open(folders[1])?];
    let (first, mut settings) = scene_of(&runs[0], &[])?;
    let (second, _) = scene_of(&runs[1], &[])?;
    settings.size = SIZE;
    args.look.apply(&mut settings);
    let names = names(folders);
    let side = |i: usize, scene| Side {
        name: names[i].clone(),
        run: &runs[i],
        scene,
    };
    let comparison =
        compare_runs(&[side(0, &first), side(1, &second)], &settings).map_err(Failure::run)?;
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| Path::new("out").join(format!("compare-{}-{}", names[0], names[1])));
    write(&folder, &comparison)
        .map_err(|error| Failure::Run(format!("cannot write to {}: {error}", folder.display())))?;
    tell(&comparison, args.json);
    talk(&format!("open {}", folder.join("index.html").display()));
    if comparison.trouble.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(comparison.trouble.join("\n")))
    }
}

/// What the runs are called: the names of their folders, told apart.
fn names(folders: [&PathBuf; 2]) -> [String; 2] {
    let name = |path: &PathBuf| {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        whole
            .file_name()
            .map_or("run".into(), |name| name.to_string_lossy().into_owned())
    };
    let [a, b] = folders.map(name);
    if a == b {
        [format!("{a} (1)"), format!("{b} (2)")]
    } else {
        [a, b]
    }
}

fn write(folder: &Path, comparison: &Comparison) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    comparison.strip.write(&folder.join("strip.png"), "")?;
    atomic::write_bytes(&folder.join("index.html"), page(comparison).as_bytes())
}

fn tell(comparison: &Comparison, as_json: bool) {
    let [a, b] = &comparison.names;
    if as_json {
        let rows: Vec<_> = comparison
            .table()
            .into_iter()
            .map(|[name, first, second, difference]| {
                json!({ "what": name, "first": first, "second": second, "difference": difference })
            })
            .collect();
        out(&json!({ "first": a, "second": b, "at_the_end": rows }).to_string());
        return;
    }
    out(&format!(
        "{:22} {a:>16} {b:>16} {:>12}",
        "at the end", "difference"
    ));
    for [name, first, second, difference] in comparison.table() {
        out(&format!(
            "{name:22} {first:>16} {second:>16} {difference:>12}"
        ));
    }
}
