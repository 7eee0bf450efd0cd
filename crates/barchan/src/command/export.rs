//! `barchan export`: frames as other programs' files.

use super::progress::{Progress, Voice};
use super::stats::chosen;
use super::{Failure, FramesArg, one_of};
use barchan_out::cache::RunFolder;
use barchan_out::export::{Job, What};
use barchan_sim::scene::Format;
use std::path::PathBuf;

/// Arguments of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The run's folder
    folder: PathBuf,
    /// Formats of the files, with commas between
    #[arg(long, value_parser = one_of(Format::WORDS, Format::from_word), value_delimiter = ',', required = true)]
    format: Vec<Format>,
    /// What to export: the particles, the same as grains with their shapes, or the meshes that `barchan surface` made
    #[arg(long, value_enum, default_value = "particles")]
    what: WhatArg,
    /// Folder to write to; with several formats, each has its folder in it [default: export/FORMAT in the run's folder]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    frames: FramesArg,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum WhatArg {
    Particles,
    Grains,
    Mesh,
}

impl From<WhatArg> for What {
    fn from(what: WhatArg) -> Self {
        match what {
            WhatArg::Particles => Self::Particles,
            WhatArg::Grains => Self::Grains,
            WhatArg::Mesh => Self::Mesh,
        }
    }
}

impl ExportArgs {
    fn folder_of(&self, format: Format, run: &RunFolder) -> PathBuf {
        match &self.output {
            Some(folder) if self.format.len() == 1 => folder.clone(),
            Some(folder) => folder.join(format.word()),
            None => run.path().join("export").join(format.word()),
        }
    }
}

/// Runs `export`.
pub fn export(args: &ExportArgs) -> Result<(), Failure> {
    let run = RunFolder::open(&args.folder).map_err(Failure::input)?;
    let frames = chosen(&run, &args.frames)?;
    let voice = if args.quiet {
        Voice::Quiet
    } else {
        Voice::Normal
    };
    let mut problems = Vec::new();
    for &format in &args.format {
        let to = args.folder_of(format, &run);
        let job = Job {
            run: &run,
            frames: &frames,
            what: args.what.into(),
            format,
            to: &to,
        };
        let mut progress = Progress::new("export", 0, frames.len() as u32, voice, false);
        let mut done = 0;
        let told = |_: u32| {
            done += 1;
            progress.tick(done);
        };
        let result = barchan_out::export::export(&job, told);
        progress.finish();
        let exported = result.map_err(Failure::run)?;
        let files = if exported.files == 1 { "file" } else { "files" };
        progress.say(&format!("{} {files} in {}", exported.files, to.display()));
        problems.extend(exported.problems);
    }
    problems.dedup();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(problems.join("\n")))
    }
}
