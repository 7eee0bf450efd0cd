//! `barchan bench sph`: a block of sand that collapses, and the same sand asleep.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::{forget_peak_memory, peak_memory};
use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Form};
use barchan_sim::model::{Fill, Model};
use barchan_sim::scene::{PRESETS, SphSettings};
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use barchan_solvers::sph::Sph;
use glam::{Quat, Vec3};
use std::sync::Arc;
use std::time::Instant;

/// Particles of the headline.
pub const PARTICLES: u64 = 100_000;
/// Frames a second, as Ihmsen et al. (2013) count them, and the length of a step [s].
const FPS: f64 = 50.0;
const STEP: f64 = 1e-3;
/// Spacing of the particles [m].
const SPACING: f32 = 0.02;
/// Steps before the clock starts: the block begins to fall.
const WARM_UP: u32 = 20;

/// How the block is when the clock starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Moving,
    Asleep,
}

/// Runs `bench sph`; the headline comes last.
pub fn bench(particles: u64, steps: u32, cases: Cases, ledger: &mut Ledger) -> Result<(), Failure> {
    let usual = SphSettings::default();
    let three = SphSettings {
        iterations: 3,
        ..usual
    };
    let program = ledger.program();
    let measure = |name, settings, block, work| {
        forget_peak_memory();
        measure(name, settings, block, work, program)
    };
    if cases == Cases::All {
        let small = ((particles / 10).max(1000), (steps / 4).max(1));
        ledger.measure(|| measure("sph, a tenth", three, Block::Moving, small))?;
        ledger.measure(|| measure("sph, usual sweeps", usual, Block::Moving, small))?;
        ledger.measure(|| measure("sph, asleep", usual, Block::Asleep, small))?;
    }
    ledger.measure(|| measure("sph", three, Block::Moving, (particles, steps)))
}

fn measure(
    name: &str,
    settings: SphSettings,
    block: Block,
    (particles, steps): (u64, u32),
    program: f64,
) -> Result<Finding, Failure> {
    let model = model(particles);
    let mut solver = Sph::new(settings);
    let mut state = start(&model, FPS, solver.columns()).map_err(Failure::input)?;
    if block == Block::Asleep {
        let mut columns = state.particles.extra.iter_mut();
        let quiet = columns.find(|column| column.spec.name == "quiet");
        if let Some(quiet) = quiet {
            quiet.entries_mut::<f32>().fill(1.0);
        }
    }
    take_steps(&mut solver, &model, &mut state, WARM_UP)?;
    let began = Instant::now();
    take_steps(&mut solver, &model, &mut state, steps)?;
    let seconds = began.elapsed().as_secs_f64();
    let memory = peak_memory().unwrap_or(0.0) - program;
    let work = (steps, seconds);
    let per_frame = 1.0 / STEP / FPS;
    Ok(Finding::of_steps(
        name,
        &state.particles,
        work,
        per_frame,
        memory,
    ))
}

fn take_steps(
    solver: &mut dyn Solver,
    model: &Model,
    state: &mut State,
    steps: u32,
) -> Result<(), Failure> {
    for _ in 0..steps {
        let step = state.clock.plan(solver.max_dt(model, state).min(STEP));
        state
            .solids
            .place(model, step.start, step.end)
            .map_err(Failure::run)?;
        solver.step(model, state, step.dt).map_err(Failure::run)?;
        state.clock.advance(&step);
    }
    Ok(())
}

/// A block twice as wide as high on the ground.
fn model(particles: u64) -> Model {
    let height = SPACING * (particles as f32 / 4.0).cbrt();
    let half = Vec3::new(height, 0.5 * height, height);
    let block = Shape::Cuboid { half }.placed(Pose::new(Vec3::Y * half.y, Quat::IDENTITY), 1.0);
    let mut model = Model::empty();
    model.resolution = SPACING;
    model.spacing = SPACING;
    model.materials.push(PRESETS["dry-sand"].material("sand"));
    model.fills.push(Fill {
        material: 0,
        shape: block,
        velocity: Vec3::ZERO,
        layout: Layout::Jittered,
    });
    model.bodies.push(Body {
        name: "ground".into(),
        form: Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y })),
        friction: 0.6,
        restitution: None,
    });
    model
}
