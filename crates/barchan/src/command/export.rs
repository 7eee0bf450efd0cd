//! `barchan export`: frames as other programs' files.

use super::progress::{Progress, Voice};
use super::stats::chosen;
use super::{Failure, FramesArg};
use barchan_out::cache::RunFolder;
use barchan_sim::scene::Format;
use std::path::PathBuf;

/// Arguments of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The run's folder
    folder: PathBuf,
    /// Format of the files
    #[arg(long, value_parser = format_of)]
    format: Format,
    /// Folder to write to [default: export/FORMAT in the run's folder]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    frames: FramesArg,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

fn format_of(word: &str) -> Result<Format, String> {
    match word {
        "ply" => Ok(Format::Ply),
        "vtk" => Ok(Format::Vtk),
        _ => Err(barchan_sim::scene::problem::suggest(word, Format::WORDS)),
    }
}

/// Runs `export`.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let folder = RunFolder::open(&args.folder).map_err(Failure::input)?;
    let frames = chosen(&folder, &args.frames)?;
    let to = args
        .output
        .clone()
        .unwrap_or_else(|| folder.path().join("export").join(args.format.word()));
    let voice = if args.quiet {
        Voice::Quiet
    } else {
        Voice::Normal
    };
    let mut progress = Progress::new("export", 0, frames.len() as u32, voice, false);
    let mut done = 0;
    let told = |_: u32| {
        done += 1;
        progress.tick(done);
    };
    let result = barchan_out::export::export(&folder, &frames, args.format, &to, told);
    progress.finish();
    result.map_err(Failure::run)?;
    progress.say(&format!("{} files in {}", frames.len(), to.display()));
    Ok(())
}
