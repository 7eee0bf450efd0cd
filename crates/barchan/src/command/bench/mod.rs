//! `barchan bench`: fixed work, measured several times; over sizes and threads if asked.
//!
//! A benchmark is a file here. It hands each of its cases to the [`Ledger`], which does it as often as asked and tells of the median.

mod ballistic;
mod correction;
mod dem;
mod detail;
mod flip;
mod history;
mod io;
mod ledger;
mod render;
mod sph;
mod surface;

use super::Failure;
use ledger::{Ledger, Manner};
use std::path::PathBuf;

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// What to measure
    #[arg(required_unless_present = "history", value_parser = ["ballistic", "correction", "dem", "flip", "sph", "detail", "surface", "render", "io"])]
    name: Option<String>,
    /// Show what a file of earlier lines tells; -o DIR makes a page with plots of it
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    history: Option<PathBuf>,
    /// Keep the lines, with machine, commit and time, at the end of a file [default file: bench.jsonl]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "bench.jsonl")]
    append: Option<PathBuf>,
    /// Print JSON lines, the last one the headline
    #[arg(long)]
    json: bool,
    /// How often each measurement is taken; the median is told
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Particles [default: 10 million; 10,000 and 10 million for correction, 50,000 for dem, 433,479 for flip and surface,
    /// 100,000 for sph, 4 million for detail, 20 million for render, 1 million for io]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    particles: Option<u64>,
    /// The headline alone with so many particles each, and what one costs over the first; for dem in layers, all equally deep
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        conflicts_with = "particles",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    sizes: Vec<u64>,
    /// Steps of ballistic, dem and sph
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Mesh that ballistic collides with [default: a knobbly ball of 70,000 triangles]
    #[arg(long, value_name = "FILE")]
    mesh: Option<PathBuf>,
    /// Folder for the pictures that render makes, for the files that io writes, or for the page of --history
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// For surface: measure splashsurf too, on the same particles, cells and threads, through a Python that has pysplashsurf
    #[arg(long, value_name = "PYTHON")]
    against: Option<PathBuf>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The headline alone on so many threads each, and what a particle costs over the first
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        conflicts_with = "threads",
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    thread_counts: Vec<u16>,
}

/// Which cases of a benchmark are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cases {
    /// All that it has, the headline last.
    All,
    /// The headline alone.
    Headline,
}

/// Runs `bench`.
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    if args.against.is_some() && args.name.as_deref() != Some("surface") {
        return Err(Failure::Input("--against is for bench surface".into()));
    }
    if let Some(file) = &args.history {
        return history::history(file, args.output.as_deref());
    }
    let sizes: Vec<Option<u64>> = match args.sizes.as_slice() {
        [] => vec![args.particles],
        sizes => sizes.iter().copied().map(Some).collect(),
    };
    let thread_counts = match args.thread_counts.as_slice() {
        // None is as many as there are cores.
        [] => vec![args.threads.unwrap_or(0)],
        counts => counts.to_vec(),
    };
    let mut ledger = Ledger::new(Manner {
        json: args.json,
        keep: args.append.clone(),
        runs: args.runs,
        scaling: args.cases() == Cases::Headline,
    });
    for threads in thread_counts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
        let pool = pool.build().map_err(Failure::run)?;
        pool.install(|| {
            ledger.weigh_machine();
            let mut sizes = sizes.iter();
            sizes.try_for_each(|size| args.measure(*size, &mut ledger))
        })?;
    }
    ledger.close()
}

impl BenchArgs {
    fn cases(&self) -> Cases {
        match self.sizes.is_empty() && self.thread_counts.is_empty() {
            true => Cases::All,
            false => Cases::Headline,
        }
    }

    fn measure(&self, particles: Option<u64>, ledger: &mut Ledger) -> Result<(), Failure> {
        let (cases, steps) = (self.cases(), self.steps);
        let or = |usual: u64| particles.unwrap_or(usual);
        let folder = self.output.as_deref();
        match self.name.as_deref().unwrap_or_default() {
            "correction" => correction::bench(particles, cases, ledger),
            "dem" if !self.sizes.is_empty() => dem::layer(or(dem::GRAINS), steps, ledger),
            "dem" => dem::bench(or(dem::GRAINS), steps, cases, ledger),
            "flip" => flip::bench(or(flip::PARTICLES), cases, ledger),
            "sph" => sph::bench(or(sph::PARTICLES), steps, cases, ledger),
            "detail" => detail::bench(or(detail::GRAINS), cases, ledger),
            "surface" => {
                let against = self.against.as_deref();
                surface::bench(or(surface::PARTICLES), against, cases, ledger)
            }
            "render" => render::bench(or(render::GRAINS), folder, cases, ledger),
            "io" => io::bench(or(io::PARTICLES), folder, cases, ledger),
            _ => {
                let work = (or(ballistic::PARTICLES), steps);
                ballistic::bench(self.mesh.as_deref(), work, cases, ledger)
            }
        }
    }
}
