//! `barchan bench ballistic`: a cube of free grains falls over a mesh.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::peak_memory;
use crate::command::say::{grouped, talk};
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
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Particles, if nobody says.
pub const PARTICLES: u64 = 10_000_000;
/// Length of a step [s]: five to a frame of 24 a second.
const STEP: f64 = 1.0 / 120.0;
const FPS: f64 = 24.0;
/// Edge of the cube of grains [m]; the mesh in its middle is half as large.
const EDGE: f32 = 2.0;

/// Runs `bench ballistic` with a mesh file, or a mesh of our own; the headline comes last.
pub fn bench(
    mesh: Option<&Path>,
    (particles, steps): (u64, u32),
    cases: Cases,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    let mesh = match mesh {
        Some(path) => load_mesh(path).map_err(Failure::input)?,
        None => knobbly_ball(),
    };
    let prepared = Instant::now();
    let collider = collider(mesh)?;
    talk(&format!(
        "distances sampled in {:.2} s",
        prepared.elapsed().as_secs_f64()
    ));
    if cases == Cases::All {
        let air = Air {
            density: 1.204,
            viscosity: 1.82e-5,
            wind: Vec3::new(3.0, 0.0, 0.0),
        };
        // Side figures with a tenth of the work.
        let few = (steps / 10).max(1);
        let free = model(None, None, particles);
        ledger.measure(|| measure("ballistic, no collider", &free, few))?;
        let blown = model(Some(&collider), Some(air), particles);
        ledger.measure(|| measure("ballistic, mesh, air", &blown, few))?;
    }
    let headline = model(Some(&collider), None, particles);
    ledger.measure(|| measure("ballistic", &headline, steps))
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
        shapes: vec![],
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

fn measure(name: &str, model: &Model, steps: u32) -> Result<Finding, Failure> {
    let mut state = start(model, FPS, &[]).map_err(Failure::input)?;
    let mut solver: Box<dyn Solver> = Box::new(barchan_solvers::ballistic::Ballistic::default());
    take_step(&mut *solver, model, &mut state)?; // warm up
    let began = Instant::now();
    let mut contacts = 0.0;
    for _ in 0..steps {
        contacts += take_step(&mut *solver, model, &mut state)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let memory = peak_memory().unwrap_or(0.0);
    let work = (steps, seconds);
    let mut finding = Finding::of_steps(name, &state.particles, work, 1.0 / STEP / FPS, memory);
    finding.line["contacts"] = contacts.into();
    finding.text += &format!("  {} contacts", grouped(contacts));
    Ok(finding)
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
