//! `barchan bench`: fixed work, measured.

use super::bench_history::history;
use super::bench_ledger::{Ledger, bytes_of_state};
use super::machine::peak_memory;
use super::say::{bytes, grouped, talk};
use super::{
    Failure, bench_correction, bench_dem, bench_detail, bench_flip, bench_io, bench_render,
    bench_sph, bench_surface, start_threads,
};
use barchan_base::Pose;
use barchan_base::mesh::{Mesh, load_mesh};
use barchan_base::sampling::Layout;
use barchan_base::shape::{MeshShape, Shape};
use barchan_sim::body::{Body, Form};
use barchan_sim::model::{Air, Fill, Model};
use barchan_sim::scene::PRESETS;
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use glam::{Quat, Vec3};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

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
    /// Particles [default: 10 million; 10,000 and 10 million for correction, 50,000 for dem, 433,479 for flip and surface,
    /// 100,000 for sph, 4 million for detail, 20 million for render, 1 million for io]
    #[arg(long)]
    particles: Option<u64>,
    /// For dem: what a ball costs in layers of so many, all equally deep
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        conflicts_with = "particles"
    )]
    sizes: Vec<u64>,
    /// Steps
    #[arg(long, default_value_t = 100)]
    steps: u32,
    /// Mesh to collide with [default: a knobbly ball of 70,000 triangles]
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
}

/// Particles of the ballistic benchmark, if nobody says.
const PARTICLES: u64 = 10_000_000;
/// Particles of the column of Zhu & Bridson (2005).
const PAPER_PARTICLES: u64 = 433_479;
/// Length of a step [s]: five to a frame of 24 a second.
const STEP: f64 = 1.0 / 120.0;
const FPS: f64 = 24.0;
/// Edge of the cube of grains [m]; the mesh in its middle is half as large.
const EDGE: f32 = 2.0;

/// Runs `bench`.
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    if args.particles == Some(0) || args.steps == 0 {
        return Err(Failure::Input(
            "--particles and --steps must be at least 1".into(),
        ));
    }
    if !args.sizes.is_empty() && args.name.as_deref() != Some("dem") {
        return Err(Failure::Input("--sizes is for bench dem".into()));
    }
    if args.against.is_some() && args.name.as_deref() != Some("surface") {
        return Err(Failure::Input("--against is for bench surface".into()));
    }
    if let Some(file) = &args.history {
        return history(file, args.output.as_deref());
    }
    let ledger = Ledger::new(args.json, args.append.clone());
    measure_all(args, &ledger)?;
    ledger.close()
}

fn measure_all(args: &BenchArgs, ledger: &Ledger) -> Result<(), Failure> {
    let particles = |usual: u64| args.particles.unwrap_or(usual);
    let folder = args.output.as_deref();
    match args.name.as_deref().unwrap_or_default() {
        "correction" => bench_correction::bench(args.particles, ledger),
        "dem" if !args.sizes.is_empty() => bench_dem::sizes(&args.sizes, args.steps, ledger),
        "dem" => bench_dem::bench(particles(bench_dem::GRAINS), args.steps, ledger),
        "flip" => bench_flip::bench(particles(bench_flip::PARTICLES), ledger),
        "sph" => bench_sph::bench(particles(100_000), args.steps, ledger),
        "detail" => bench_detail::bench(particles(bench_detail::GRAINS), ledger),
        "surface" => {
            bench_surface::bench(particles(PAPER_PARTICLES), args.against.as_deref(), ledger)
        }
        "render" => bench_render::bench(particles(bench_render::GRAINS), ledger, folder),
        "io" => bench_io::bench(particles(bench_io::PARTICLES), ledger, folder),
        _ => ballistic(args, particles(PARTICLES), ledger),
    }
}

fn ballistic(args: &BenchArgs, particles: u64, ledger: &Ledger) -> Result<(), Failure> {
    let mesh = match &args.mesh {
        Some(path) => load_mesh(path).map_err(Failure::input)?,
        None => knobbly_ball(),
    };
    let prepared = Instant::now();
    let collider = collider(mesh)?;
    talk(&format!(
        "distances sampled in {:.2} s",
        prepared.elapsed().as_secs_f64()
    ));
    let air = Air {
        density: 1.204,
        viscosity: 1.82e-5,
        wind: Vec3::new(3.0, 0.0, 0.0),
    };
    // Side figures with a tenth of the work, then the headline.
    let few = (args.steps / 10).max(1);
    let cases = [
        ("ballistic, no collider", model(None, None, particles), few),
        (
            "ballistic, mesh, air",
            model(Some(&collider), Some(air), particles),
            few,
        ),
        (
            "ballistic",
            model(Some(&collider), None, particles),
            args.steps,
        ),
    ];
    cases
        .iter()
        .try_for_each(|(name, model, steps)| measure(name, model, *steps, ledger))
}

fn collider(mesh: Mesh) -> Result<Shape, Failure> {
    let bounds = mesh.bounds();
    let scale = 0.5 * EDGE / bounds.size().max_element();
    let centre = 0.5 * (bounds.min + bounds.max);
    let shape =
        MeshShape::new(mesh, MeshShape::sensible_cell(bounds, 0.0)).map_err(Failure::input)?;
    Ok(Shape::Mesh(Arc::new(shape)).placed(Pose::new(-centre * scale, Quat::IDENTITY), scale))
}

fn model(collider: Option<&Shape>, air: Option<Air>, particles: u64) -> Model {
    let cube = Shape::Cuboid {
        half: Vec3::splat(0.5 * EDGE),
    };
    let hole: f64 = collider.map_or(0.0, Shape::estimate_volume);
    let volume = f64::from(EDGE).powi(3) - hole;
    let spacing = (volume / particles as f64).cbrt() as f32;
    let body = |shape: &Shape| Body {
        name: "mesh".into(),
        form: Form::Static(Arc::new(shape.clone())),
        friction: 0.5,
        restitution: None,
    };
    Model {
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -9.81, 0.0),
        seed: 1,
        resolution: spacing,
        spacing,
        materials: vec![PRESETS["dry-sand"].material("sand")],
        grains: vec![],
        fills: vec![Fill {
            material: 0,
            shape: Shape::Difference(Box::new(cube), collider.cloned().into_iter().collect()),
            velocity: Vec3::ZERO,
            layout: Layout::Jittered,
        }],
        emitters: vec![],
        sinks: vec![],
        wet: vec![],
        bodies: collider.into_iter().map(body).collect(),
        air,
    }
}

fn measure(name: &str, model: &Model, steps: u32, ledger: &Ledger) -> Result<(), Failure> {
    let mut state = start(model, FPS, &[]).map_err(Failure::input)?;
    let mut solver: Box<dyn Solver> = Box::new(barchan_solvers::ballistic::Ballistic::default());
    take_step(&mut *solver, model, &mut state)?; // warm up
    let began = Instant::now();
    let mut contacts = 0.0;
    for _ in 0..steps {
        contacts += take_step(&mut *solver, model, &mut state)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let particles = state.particles.len();
    let rate = particles as f64 * f64::from(steps) / seconds;
    let per_frame = seconds / f64::from(steps) / STEP / FPS;
    let memory = peak_memory().unwrap_or(0.0) / particles as f64;
    let line = json!({
        "name": name, "particles": particles, "steps": steps,
        "particle_steps_per_second": rate, "seconds_per_frame": per_frame, "bytes_per_particle": memory,
        "contacts": contacts, "of_possible_bytes": ledger.of_possible_bytes(bytes_of_state(&state.particles), rate),
    });
    ledger.tell(line, || {
        format!(
            "{name:24} {} particles  {} particle-steps/s  {per_frame:.3} s a frame  {} a particle at most  {} contacts",
            grouped(particles as f64),
            grouped(rate),
            bytes(memory),
            grouped(contacts)
        )
    });
    Ok(())
}

/// One step, and how many contacts it had.
fn take_step(solver: &mut dyn Solver, model: &Model, state: &mut State) -> Result<f64, Failure> {
    let step = state.clock.plan(STEP);
    state
        .solids
        .place(model, step.start, step.end)
        .map_err(Failure::run)?;
    let report = solver.step(model, state, step.dt).map_err(Failure::run)?;
    state.clock.advance(&step);
    Ok(report
        .measures
        .iter()
        .find(|(name, _)| *name == "contacts")
        .map_or(0.0, |(_, count)| *count))
}

/// A ball with bumps, as many triangles as the Stanford bunny.
fn knobbly_ball() -> Mesh {
    const RINGS: u32 = 132;
    let place = |i: u32, j: u32| {
        let theta = i as f32 / RINGS as f32 * std::f32::consts::PI;
        let phi = j as f32 / RINGS as f32 * std::f32::consts::PI;
        let radius = 1.0 + 0.12 * (5.0 * theta).sin() * (4.0 * phi).cos() * theta.sin();
        Vec3::new(
            theta.sin() * phi.cos(),
            theta.cos(),
            -theta.sin() * phi.sin(),
        ) * radius
    };
    let vertices = (0..=RINGS)
        .flat_map(|i| (0..2 * RINGS).map(move |j| place(i, j)))
        .collect();
    let at = |i: u32, j: u32| i * 2 * RINGS + j % (2 * RINGS);
    let quads = (0..RINGS).flat_map(|i| {
        (0..2 * RINGS).map(move |j| [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)])
    });
    let triangles = quads
        .flat_map(|[a, b, c, d]| [[a, b, c], [a, c, d]])
        .collect();
    Mesh::new(vertices, triangles).expect("a ball is a mesh")
}
