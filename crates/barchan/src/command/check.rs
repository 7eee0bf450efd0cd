//! `barchan check`: what a scene will cost, and whether it fits, before anything runs.

use super::say::{bytes, duration, grouped, out};
use super::{Failure, SceneArgs, default_folder, machine};
use barchan_base::column::ColumnSpec;
use barchan_out::cache::RunFolder;
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
    let verdict = allow(&scene, &*solver).and_then(|()| admit(&scene, &cost, &folder, false));
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
    estimate(scene, solver.cost(&scene.model), extra, threads)
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
        "  time       about {} on {threads} {}, {} steps",
        duration(cost.seconds),
        if threads == 1 { "thread" } else { "threads" },
        grouped(cost.steps)
    ));
}

/// Whether the method can take steps as long as the scene asks for.
pub fn allow(scene: &Scene, solver: &dyn Solver) -> Result<(), Failure> {
    solver.admit(scene.max_step).map_err(Failure::Input)
}

/// Bytes of frames, checkpoints and report in `folder` that a run of `scene` need not find room for: it has them already, or, if it
/// begins `fresh`, takes their place.
fn kept_bytes(folder: &Path, scene: &Scene, fresh: bool) -> f64 {
    let identity = format!("{:032x}", scene.identity);
    let is_its_own =
        |run: &RunFolder| fresh || run.recorded("identity").as_ref() == Some(&identity);
    let Some(run) = RunFolder::open(folder).ok().filter(is_its_own) else {
        return 0.0;
    };
    let files = [run.frame_path(0), run.checkpoint_path(0)];
    let folders = files
        .iter()
        .filter_map(|file| file.parent()?.read_dir().ok());
    let entries = folders.flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len() as f64));
    let report = run.report_path().metadata();
    let report = report.map_or(0.0, |report| report.len() as f64);
    sizes.fold(report, |sum, size| sum + size)
}

/// Refuses what cannot fit into `folder`, or into the memory, and says what to change; `fresh` throws away what is there.
pub fn admit(scene: &Scene, cost: &Estimate, folder: &Path, fresh: bool) -> Result<(), Failure> {
    let advice = "choose a coarser solver.resolution or a smaller fill";
    let particles = grouped(cost.particles_at_end);
    // Written so that what is not a number is refused.
    if !(..=MOST_PARTICLES).contains(&cost.particles_at_end) {
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
    let needed = cost.disk_bytes - kept_bytes(folder, scene, fresh);
    if let Some(free) = machine::free_disk(folder).filter(|free| needed > *free) {
        return Err(Failure::Input(format!(
            "the run needs {} of disk, but {} is free at {}; choose another folder with -o, fewer frames, \
             output.compression = \"zstd\", or a coarser solver.resolution",
            bytes(needed),
            bytes(free),
            folder.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_out::cache::Record;

    fn ball() -> Scene {
        let text = "schema = 1\nframes = 1\n[solver]\nmethod = \"ballistic\"\nresolution = 0.1\n[materials.sand]\n\
                    [[fill]]\nmaterial = \"sand\"\nshape = { sphere = { radius = 1 } }\n";
        barchan_sim::scene::parse(text, Path::new("s.toml"), &[]).expect("a scene")
    }

    #[test]
    fn what_a_run_has_written_needs_no_room_again() {
        let scene = ball();
        let place = tempfile::tempdir().expect("a folder");
        assert!(kept_bytes(place.path(), &scene, true).abs() < 0.5);
        let record = Record::starting(&scene, 1);
        let run = RunFolder::prepare(place.path(), &record, false).expect("a run");
        let frames = [run.frame_path(0), run.frame_path(1)];
        for file in frames
            .iter()
            .chain([&run.checkpoint_path(7), &run.report_path()])
        {
            std::fs::write(file, [0; 1000]).expect("a file");
        }
        let mut other = scene.clone();
        other.identity += 1;
        let kept = |scene: &Scene, fresh: bool| kept_bytes(place.path(), scene, fresh) as usize;
        assert_eq!((kept(&scene, false), kept(&other, true)), (4000, 4000));
        assert_eq!(kept(&other, false), 0);
    }

    #[test]
    fn half_the_resolution_costs_what_the_manual_says() {
        for (method, times) in [
            ("flip", 16.0),
            ("hybrid", 16.0),
            ("sph", 11.3),
            ("ballistic", 8.0),
        ] {
            let seconds = |resolution: f64| {
                let text = format!(
                    "schema = 1\nframes = 100\n[solver]\nmethod = \"{method}\"\nresolution = {resolution}\n[materials.sand]\n\
                     [[fill]]\nmaterial = \"sand\"\nshape = {{ sphere = {{ radius = 1 }} }}\n"
                );
                let scene =
                    barchan_sim::scene::parse(&text, Path::new("s.toml"), &[]).expect("a scene");
                estimate_run(&scene, &*barchan_solvers::solver(&scene), 1).seconds
            };
            let found = seconds(0.01) / seconds(0.02);
            assert!((found / times - 1.0).abs() < 0.02, "{method}: {found}");
        }
    }

    #[test]
    fn what_is_not_a_number_of_particles_is_refused() {
        let scene = ball();
        let cost = Estimate {
            particles_at_end: f64::NAN,
            ..estimate_run(&scene, &*barchan_solvers::solver(&scene), 1)
        };
        let place = tempfile::tempdir().expect("a folder");
        assert!(admit(&scene, &cost, place.path(), false).is_err());
    }
}
