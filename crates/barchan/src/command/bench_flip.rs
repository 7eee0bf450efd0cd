//! `barchan bench flip`: the collapsing columns of Zhu & Bridson (2005), whole steps, each kind of solve in turn.

use super::Failure;
use super::machine::peak_memory;
use super::say::{bytes, grouped, out};
use barchan_sim::coupling::coupling;
use barchan_sim::run::{RecordError, Recorder, Run, StepLine};
use barchan_sim::scene;
use barchan_sim::start::start;
use barchan_sim::state::State;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const SAND: &str = include_str!("../../scenes/zhu2005/sand_column.toml");
const WATER: &str = include_str!("../../scenes/zhu2005/water_column.toml");
/// Particles in those scenes.
pub const PARTICLES: u64 = 433_479;
/// Frames that are measured, after one to warm up: the collapse.
const FRAMES: u32 = 12;

/// Runs `bench flip`; the headline, implicit friction, comes last.
pub fn bench(particles: u64, as_json: bool) -> Result<(), Failure> {
    let cases = [
        ("flip, water", WATER, "implicit"),
        ("flip, zhu-bridson", SAND, "zhu-bridson"),
        ("flip", SAND, "implicit"),
    ];
    for (name, text, friction) in cases {
        measure(name, (text, friction), particles, as_json)?;
    }
    Ok(())
}

/// Counts steps.
#[derive(Default)]
struct Counter {
    steps: u32,
    particle_steps: f64,
    sweeps: f64,
}

impl Recorder for Counter {
    fn step(&mut self, line: StepLine) -> Result<(), RecordError> {
        self.steps += 1;
        self.particle_steps += line.particles as f64;
        self.sweeps += line.measures.get("sweeps").copied().unwrap_or(0.0);
        Ok(())
    }

    fn frame(&mut self, _: &State, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn interrupted(&mut self, _: &State, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }
}

fn measure(
    name: &str,
    (text, friction): (&str, &str),
    particles: u64,
    as_json: bool,
) -> Result<(), Failure> {
    let plain = scene::parse(text, Path::new("bench.toml"), &[]).map_err(Failure::input)?;
    let finer = (PARTICLES as f64 / particles as f64).cbrt();
    let changes = [
        format!("solver.friction={friction}"),
        format!(
            "solver.resolution={}",
            f64::from(plain.model.resolution) * finer
        ),
    ];
    let scene = scene::parse(text, Path::new("bench.toml"), &changes).map_err(Failure::input)?;
    let mut solver = barchan_solvers::solver(&scene);
    let mut state = start(&scene.model, scene.fps, solver.columns()).map_err(Failure::input)?;
    let mut coupling = coupling(&scene.model);
    let stop = AtomicBool::new(false);
    let mut run = Run {
        model: &scene.model,
        solver: &mut *solver,
        coupling: &mut *coupling,
        max_step: scene.max_step,
        stop: &stop,
    };
    let mut counter = Counter::default();
    run.until(1, &mut state, &mut counter)
        .map_err(Failure::run)?; // warm up
    let mut counter = Counter::default();
    let began = Instant::now();
    run.until(1 + FRAMES, &mut state, &mut counter)
        .map_err(Failure::run)?;
    let seconds = began.elapsed().as_secs_f64();
    report(name, &state, &counter, seconds, as_json);
    Ok(())
}

fn report(name: &str, state: &State, counter: &Counter, seconds: f64, as_json: bool) {
    let rate = counter.particle_steps / seconds;
    let frame = seconds / f64::from(FRAMES);
    let particles = state.particles.len() as f64;
    let memory = peak_memory().unwrap_or(0.0);
    let sweeps = counter.sweeps / f64::from(counter.steps.max(1));
    if as_json {
        let line = json!({
            "name": name, "particles": particles, "threads": rayon::current_num_threads(),
            "particle_steps_per_second": rate, "seconds_per_frame": frame, "steps": counter.steps,
            "sweeps_per_step": sweeps, "peak_memory_bytes": memory,
            "peak_bytes_per_particle": memory / particles,
        });
        out(&line.to_string());
    } else {
        out(&format!(
            "{name:20} {} particles  {} particle-steps a second  {frame:.2} s a frame  {} steps  {} a particle at most",
            grouped(particles),
            grouped(rate),
            counter.steps,
            bytes(memory / particles),
        ));
    }
}
