//! What commands that go through a run's frames have in common: `surface`, `spread`, `detail`.

use super::progress::Voice;
use super::stats::chosen;
use super::{Failure, FramesArg, start_threads};
use barchan_out::cache::RunFolder;
use std::path::PathBuf;

/// Their common arguments.
#[derive(clap::Args)]
pub struct StageArgs {
    /// The run's folder
    folder: PathBuf,
    #[command(flatten)]
    pub frames: FramesArg,
    /// Change a key of the scene's table for this command, as in --set surface.cell="2 mm"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Tell of each frame as a line of JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

impl StageArgs {
    /// Starts the threads and opens the run.
    pub fn open(&self) -> Result<RunFolder, Failure> {
        start_threads(self.threads);
        RunFolder::open(&self.folder).map_err(Failure::input)
    }

    /// The frames that were asked for.
    pub fn chosen(&self, folder: &RunFolder) -> Result<Vec<u32>, Failure> {
        chosen(folder, &self.frames)
    }

    /// How much to say.
    pub fn voice(&self) -> Voice {
        match self.quiet {
            true => Voice::Quiet,
            false => Voice::Normal,
        }
    }

    /// Options of their own as changes to the scene's `table`, and what --set says, so that one reader checks them all.
    pub fn changes(&self, table: &str, options: &[(&str, &Option<String>)]) -> Vec<String> {
        let given = options
            .iter()
            .filter_map(|(key, value)| Some(format!("{table}.{key}={}", value.as_ref()?)));
        given.chain(self.set.iter().cloned()).collect()
    }
}
