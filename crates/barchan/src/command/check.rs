//! `barchan check`: what a scene will cost, and whether it fits, before anything runs.

use super::say::{bytes, duration, grouped, out};
use super::{Failure, SceneArgs, default_folder, machine};
use barchan_base::column::ColumnSpec;
use barchan_sim::estimate::{Estimate, estimate};
use barchan_sim::scene::Scene;
use barchan_sim::solver::Solver;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `check`.
#[derive(clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    scene: SceneArgs,
    /// Folder the run would go to [default: out/NAME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The most particles a run may have: ids in other programs' files are often 32-bit.
const MOST_PARTICLES: f64 = 4.0e9;

/// Runs `check`.
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let threads = args.scene.start_threads();
    let scene = args.scene.load()?;
    let solver = barchan_solvers::solver(&scene);
    let cost = estimate_run(&scene, &*solver, threads);
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| default_folder(&scene));
    let verdict = allow(&scene, &*solver).and_then(|()| admit(&scene, &cost, &folder));
    if args.json {
        let mut object = json!(cost);
        object["fits"] = verdict.is_ok().into();
        object["name"] = scene.name.clone().into();
        object["frames"] = scene.frames.into();
        object["method"] = scene.method.word().into();
        out(&object.to_string());
    } else {
        print(&scene, &cost, threads);
    }
    verdict
}

/// What a run of `scene` will cost.
pub fn estimate_run(scene: &Scene, solver: &dyn Solver, threads: usize) -> Estimate {
    let shown = |column: &&ColumnSpec| !solver.private_columns().contains(column);
    let columns = solver.columns().iter().filter(shown);
    let extra = columns.map(|column| column.kind.size()).sum();
    estimate(scene, solver.cost(), extra, threads)
}

fn print(scene: &Scene, cost: &Estimate, threads: usize) {
    let seconds = f64::from(scene.frames) / scene.fps;
    out(&format!(
        "{}: {} frames, {seconds:.2} s, method {}",
        scene.name,
        scene.frames,
        scene.method.word()
    ));
    let arriving = cost.particles_at_end - cost.particles_at_start;
    let more = if arriving > 0.0 {
        format!(", {} more to come", grouped(arriving))
    } else {
        String::new()
    };
    out(&format!(
        "  particles  {}{more}",
        grouped(cost.particles_at_start)
    ));
    out(&format!("  memory     {}", bytes(cost.memory_bytes)));
    out(&format!("  disk       {}", bytes(cost.disk_bytes)));
    out(&format!(
        "  time       about {} on {threads} threads, {} steps",
        duration(cost.seconds),
        grouped(cost.steps)
    ));
}

/// Whether the method can take steps as long as the scene asks for.
pub fn allow(scene: &Scene, solver: &dyn Solver) -> Result<(), Failure> {
    solver.admit(scene.max_step).map_err(Failure::Input)
}

/// Refuses what cannot fit, and says what to change.
pub fn admit(scene: &Scene, cost: &Estimate, folder: &Path) -> Result<(), Failure> {
    let advice = "choose a coarser solver.resolution or a smaller fill";
    let particles = grouped(cost.particles_at_end);
    if cost.particles_at_end > MOST_PARTICLES {
        let most = grouped(MOST_PARTICLES);
        return Err(Failure::Input(format!(
            "the scene asks for {particles} particles, more than {most}; {advice}"
        )));
    }
    if cost.particles_at_end < 1.0 && scene.model.emitters.is_empty() {
        let resolution = scene.model.resolution;
        return Err(Failure::Input(format!(
            "no particle fits into the fills at solver.resolution = {resolution} m; choose a finer one or larger shapes"
        )));
    }
    if let Some(available) =
        machine::available_memory().filter(|available| cost.memory_bytes > *available)
    {
        return Err(Failure::Input(format!(
            "the scene asks for {particles} particles and {} of memory, but {} is free; {advice}",
            bytes(cost.memory_bytes),
            bytes(available)
        )));
    }
    if let Some(free) = machine::free_disk(folder).filter(|free| cost.disk_bytes > *free) {
        return Err(Failure::Input(format!(
            "the run needs {} of disk, but {} is free at {}; choose another folder with -o, fewer frames, \
             output.compression = \"zstd\", or a coarser solver.resolution",
            bytes(cost.disk_bytes),
            bytes(free),
            folder.display()
        )));
    }
    Ok(())
}
