//! `barchan bench sph`: a block of sand that collapses, and the same sand asleep.

use super::Failure;
use super::bench_ledger::{Ledger, bytes_of_state};
use super::machine::peak_memory;
use super::say::{bytes, grouped};
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
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Frames a second, as Ihmsen et al. (2013) count them, and the length of a step [s].
const FPS: f64 = 50.0;
const STEP: f64 = 1e-3;
/// Spacing of the particles [m].
const SPACING: f32 = 0.02;
/// Steps before the clock starts: the block begins to fall.
const WARM_UP: u32 = 20;

/// What was measured.
struct Figures {
    name: &'static str,
    particles: usize,
    bytes_of_state: f64,
    steps: u32,
    seconds: f64,
}

/// Runs `bench sph`.
pub fn bench(particles: u64, steps: u32, ledger: &Ledger) -> Result<(), Failure> {
    let before = peak_memory().unwrap_or(0.0);
    let three = SphSettings {
        iterations: 3,
        ..SphSettings::default()
    };
    let few = (steps / 4).max(1);
    let small = (particles / 10).max(1000);
    moving("sph, a tenth", three, small, few)?.tell(None, ledger);
    moving("sph, 6 sweeps", SphSettings::default(), small, few)?.tell(None, ledger);
    asleep(small, few)?.tell(None, ledger);
    let headline = moving("sph", three, particles, steps)?;
    let memory = (peak_memory().unwrap_or(0.0) - before) / headline.particles as f64;
    headline.tell(Some(memory), ledger);
    Ok(())
}

fn moving(
    name: &'static str,
    settings: SphSettings,
    particles: u64,
    steps: u32,
) -> Result<Figures, Failure> {
    let model = model(particles);
    let mut solver = Sph::new(settings);
    let mut state = start(&model, FPS, solver.columns()).map_err(Failure::input)?;
    take_steps(&mut solver, &model, &mut state, WARM_UP)?;
    let began = Instant::now();
    take_steps(&mut solver, &model, &mut state, steps)?;
    Ok(Figures {
        name,
        particles: state.particles.len(),
        bytes_of_state: bytes_of_state(&state.particles),
        steps,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn asleep(particles: u64, steps: u32) -> Result<Figures, Failure> {
    let model = model(particles);
    let mut solver = Sph::new(SphSettings::default());
    let mut state = start(&model, FPS, solver.columns()).map_err(Failure::input)?;
    let mut columns = state.particles.extra.iter_mut();
    let quiet = columns.find(|column| column.spec.name == "quiet");
    if let Some(quiet) = quiet {
        quiet.entries_mut::<f32>().fill(1.0);
    }
    take_steps(&mut solver, &model, &mut state, WARM_UP)?;
    let began = Instant::now();
    take_steps(&mut solver, &model, &mut state, steps)?;
    Ok(Figures {
        name: "sph, asleep",
        particles: state.particles.len(),
        bytes_of_state: bytes_of_state(&state.particles),
        steps,
        seconds: began.elapsed().as_secs_f64(),
    })
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

impl Figures {
    fn tell(&self, memory: Option<f64>, ledger: &Ledger) {
        let rate = self.particles as f64 * f64::from(self.steps) / self.seconds;
        let per_frame = self.seconds / f64::from(self.steps) / STEP / FPS;
        let mut line = json!({
            "name": self.name, "particles": self.particles,
            "steps": self.steps, "particle_steps_per_second": rate, "seconds_per_frame": per_frame,
            "of_possible_bytes": ledger.of_possible_bytes(self.bytes_of_state, rate),
        });
        if let Some(memory) = memory {
            line["bytes_per_particle"] = memory.into();
        }
        let memory = memory.map_or(String::new(), |memory| {
            format!("  {} a particle at most", bytes(memory))
        });
        ledger.tell(line, || {
            format!(
                "{:24} {} particles  {} particle-steps/s  {per_frame:.3} s a frame{memory}",
                self.name,
                grouped(self.particles as f64),
                grouped(rate)
            )
        });
    }
}
