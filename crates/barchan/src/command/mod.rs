//! The command line: what was typed becomes a job, a job becomes an exit code.
//!
//! Results go to stdout, talk to stderr. Exit codes: 0 done, 1 the run failed, 2 wrong use or bad input.

mod bench;
mod calibrate;
mod check;
mod compare;
mod detail;
mod export;
mod frames;
mod info;
mod machine;
mod new;
mod progress;
mod render;
mod run;
mod say;
mod spread;
mod stage;
mod stats;
mod surface;
mod validate;

use barchan_sim::scene::{self, Scene, SceneError};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use frames::FrameRange;
use say::{lost, out, talk};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Simulates granular material: sand, gravel, soil, grain, and the water they meet.
#[derive(Parser)]
#[command(
    name = "barchan",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 the run failed or was interrupted, 2 wrong use or bad input."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scene; given again, go on where it stopped
    Run(run::RunArgs),
    /// Check a scene and estimate particles, memory, time and disk, without running it
    Check(check::CheckArgs),
    /// List the gallery scenes, or copy one to start from
    New(new::NewArgs),
    /// Tell what is in a run's folder, or list the material presets
    Info(info::InfoArgs),
    /// Print figures about each frame
    Stats(stats::StatsArgs),
    /// Make many small grains in place of each particle; given again, make what is missing
    Detail(detail::DetailArgs),
    /// Make surface meshes around the material of each frame; given again, make what is missing
    Surface(surface::SurfaceArgs),
    /// Move grains that lie too dense on a surface apart
    Spread(spread::SpreadArgs),
    /// Make pictures and a movie of a run
    Render(render::RenderArgs),
    /// Put runs, or one scene by every method, side by side: pictures and figures, as a page
    Compare(compare::CompareArgs),
    /// Write frames as files for other programs
    Export(export::ExportArgs),
    /// Find which contacts between grains give which angle of repose
    Calibrate(calibrate::CalibrateArgs),
    /// Measure speed and memory, and tell how they changed
    Bench(bench::BenchArgs),
    /// Check every method against what sand and water must do
    Validate(validate::ValidateArgs),
    /// Print the JSON Schema of scene files, for editors
    Schema(SchemaArgs),
}

/// Arguments of `schema`.
#[derive(clap::Args)]
struct SchemaArgs {
    /// Print it as a page of the manual instead
    #[arg(long)]
    markdown: bool,
}

fn print_schema(args: &SchemaArgs) {
    match args.markdown {
        true => out(scene::reference().trim_end()),
        false => {
            out(&serde_json::to_string_pretty(&scene::schema()).expect("a schema is JSON"));
        }
    }
}

/// A scene and changes to it.
#[derive(clap::Args)]
struct SceneArgs {
    /// The scene file
    scene: PathBuf,
    /// Change a key of the scene, as in --set solver.resolution="4 mm" or --set body.0.friction=0.4
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Which frames of a run.
#[derive(clap::Args)]
struct FramesArg {
    /// Only these frames, as 10, 10..20, 10.. or ..20 (both ends included)
    #[arg(long, value_name = "A..B")]
    frames: Option<FrameRange>,
}

/// Why a command did not do what was asked.
enum Failure {
    /// Bad input or wrong use: exit code 2.
    Input(String),
    /// A bad scene: exit code 2.
    Scene(SceneError),
    /// The run failed or was interrupted: exit code 1.
    Run(String),
}

impl Failure {
    fn input(error: impl std::fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    fn run(error: impl std::fmt::Display) -> Self {
        Self::Run(error.to_string())
    }

    /// What happened, in words.
    fn message(&self) -> String {
        match self {
            Self::Input(message) | Self::Run(message) => message.clone(),
            Self::Scene(error) => error.to_string(),
        }
    }
}

impl SceneArgs {
    fn load(&self) -> Result<Scene, Failure> {
        let scene = scene::load(&self.scene, &self.set).map_err(Failure::Scene)?;
        for caution in scene::cautions(&scene) {
            say::talk(&format!("warning: {caution}"));
        }
        Ok(scene)
    }

    /// Sets up the threads that all parallel loops use; returns how many.
    fn start_threads(&self) -> usize {
        start_threads(self.threads)
    }
}

/// Sets up the threads that all parallel loops use, all cores if nobody says; returns how many.
fn start_threads(threads: Option<u16>) -> usize {
    if let Some(threads) = threads {
        // Fails only if a pool was made before, which no command does.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build_global();
    }
    rayon::current_num_threads()
}

/// A reader of words that --help lists, and what each stands for.
fn one_of<T: Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
    meaning: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(words.iter().copied());
    words.try_map(move |word| meaning(&word).ok_or("it is not one of the words"))
}

/// A reader of numbers from `least` to `most`.
fn within(least: f64, most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("a number from {least} to {most} is needed")),
    }
}

/// Where a scene's run goes if nobody says.
fn default_folder(scene: &Scene) -> PathBuf {
    Path::new("out").join(&scene.name)
}

/// Whether the command line `args`, the program's name first, is one that `main` takes.
///
/// # Errors
/// What is wrong with it.
pub fn understands(args: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let parsed = Cli::try_parse_from(args);
    parsed.map(drop).map_err(|error| error.to_string())
}

/// Runs the command line `args`, the program's name first.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; everything else is wrong use.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::New(args) => new::new(&args),
        Command::Info(args) => info::info(&args),
        Command::Stats(args) => stats::stats(&args),
        Command::Detail(args) => detail::detail(&args),
        Command::Surface(args) => surface::surface(&args),
        Command::Spread(args) => spread::spread(&args),
        Command::Render(args) => render::render(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Export(args) => export::export(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Schema(args) => {
            print_schema(&args);
            Ok(())
        }
    };
    match result {
        Ok(()) => match lost() {
            None => ExitCode::SUCCESS,
            Some(error) => {
                talk(&format!("error: the results could not be written: {error}"));
                ExitCode::from(1)
            }
        },
        Err(Failure::Run(message)) => {
            talk(&format!("error: {message}"));
            ExitCode::from(1)
        }
        Err(Failure::Input(message)) => {
            talk(&format!("error: {message}"));
            ExitCode::from(2)
        }
        Err(Failure::Scene(error)) => {
            let count = error.problems.len();
            for problem in error.problems {
                talk(&format!("{:?}", miette::Report::new(problem)));
            }
            if count > 1 {
                talk(&format!("{count} problems in the scene"));
            }
            ExitCode::from(2)
        }
    }
}
