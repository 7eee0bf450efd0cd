//! `barchan bench flip`: the collapsing columns of Zhu & Bridson (2005), whole steps, each kind of solve in turn.

use super::Cases;
use super::ledger::{Finding, Ledger, bytes_of_steps};
use crate::command::Failure;
use crate::command::machine::{Possible, forget_peak_memory, peak_memory};
use crate::command::say::{bytes, grouped};
use barchan_sim::coupling::{Coupling, coupling};
use barchan_sim::run::{RecordError, Recorder, Run, StepLine};
use barchan_sim::scene;
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use barchan_solvers::flip::{Flip, PHASES};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const SAND: &str = include_str!("../../../scenes/zhu2005/sand_column.toml");
const WATER: &str = include_str!("../../../scenes/zhu2005/water_column.toml");
/// Particles in those scenes.
pub const PARTICLES: u64 = 433_479;
/// Frames that are measured, after one to warm up: the collapse.
const FRAMES: u32 = 12;

/// Runs `bench flip`; the headline is implicit friction. What needs most memory comes last: what is given back stays with the
/// program, and whoever comes after it would seem to hold as much.
pub fn bench(particles: u64, cases: Cases, ledger: &mut Ledger) -> Result<(), Failure> {
    let all = [
        ("flip, zhu-bridson", SAND, "zhu-bridson"),
        ("flip", SAND, "implicit"),
        ("flip, water", WATER, "implicit"),
    ];
    let chosen = match cases {
        Cases::All => &all[..],
        Cases::Headline => &all[1..2],
    };
    let program = ledger.program();
    let possible = ledger.possible();
    chosen.iter().try_for_each(|(name, text, friction)| {
        ledger.measure(|| {
            forget_peak_memory();
            let measured = measure(name, (text, friction), (particles, program))?;
            Ok(measured.finding(possible))
        })
    })
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

    fn frame(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }

    fn interrupted(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
}

fn measure<'a>(
    name: &'a str,
    (text, friction): (&str, &str),
    (particles, program): (u64, f64),
) -> Result<Measured<'a>, Failure> {
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
    let mut solver = Flip::new(&scene.model, scene.flip);
    let mut state = start(&scene.model, scene.fps, solver.columns()).map_err(Failure::input)?;
    let mut coupling = coupling(&scene.model);
    let stop = AtomicBool::new(false);
    let mut frames = |solver: &mut Flip, last: u32| -> Result<Counter, Failure> {
        let mut counter = Counter::default();
        let mut run = Run {
            model: &scene.model,
            solver,
            coupling: &mut *coupling,
            max_step: scene.max_step,
            stop: &stop,
        };
        run.until(last, &mut state, &mut counter)
            .map_err(Failure::run)?;
        Ok(counter)
    };
    frames(&mut solver, 1)?; // warm up
    let before = solver.spent();
    let began = Instant::now();
    let counter = frames(&mut solver, 1 + FRAMES)?;
    let seconds = began.elapsed().as_secs_f64();
    let after = solver.spent();
    Ok(Measured {
        name,
        mends: friction != "zhu-bridson",
        particles: state.particles.len() as f64,
        memory: peak_memory().unwrap_or(0.0) - program,
        bytes: bytes_of_steps(&state.particles, counter.particle_steps),
        seconds,
        spent: std::array::from_fn(|phase| after[phase] - before[phase]),
        counter,
    })
}

/// What was measured of one kind of solve.
struct Measured<'a> {
    name: &'a str,
    /// False where densities are left as they are.
    mends: bool,
    particles: f64,
    /// The most memory [bytes], without what the program itself needs.
    memory: f64,
    bytes: f64,
    seconds: f64,
    spent: [f64; PHASES.len()],
    counter: Counter,
}

impl Measured<'_> {
    /// Bytes that a phase must move, and numbers it must add or multiply, for each particle and step. Counted in the code:
    /// columns read and written, blocks with the rims they reach over, and for the solve a visit to a cell (stresses of two
    /// sweeps, laws, and the faces of a block with its rim) times the sweeps, eight particles to a cell. Where the number of
    /// iterations is not known only one is counted.
    fn work(&self) -> [(f64, f64); PHASES.len()] {
        let sweeps = (self.counter.sweeps / f64::from(self.counter.steps.max(1))).max(1.0);
        let columns = 85.0;
        [
            (16.0 + 2.0 * columns, 10.0),
            (65.0 + 2.0 * 9.0 * 216.0 / 128.0, 260.0),
            (sweeps * 365.0 / 8.0, sweeps * 950.0 / 8.0),
            if self.mends {
                (24.0 + 12.0, 300.0)
            } else {
                (0.0, 0.0)
            },
            (2.0 * 60.0 + 3.0 * 512.0 / 128.0, 300.0),
        ]
    }

    fn finding(&self, possible: Possible) -> Finding {
        let steps = self.counter.particle_steps;
        let rate = steps / self.seconds;
        let frame = self.seconds / f64::from(FRAMES);
        let memory = self.memory;
        let sweeps = self.counter.sweeps / f64::from(self.counter.steps.max(1));
        let phases = PHASES.iter().zip(self.spent).zip(self.work());
        let phases: Vec<_> = phases
            .map(|((name, spent), (bytes, flops))| Phase {
                name,
                nanoseconds: spent / steps * 1e9,
                bandwidth: bytes * steps / spent / possible.bytes_per_second,
                flops: flops * steps / spent / possible.flops_per_second,
            })
            .collect();
        let line = json!({
            "name": self.name, "particles": self.particles,
            "particle_steps_per_second": rate, "seconds_per_frame": frame, "steps": self.counter.steps,
            "sweeps_per_step": sweeps, "peak_memory_bytes": memory,
            "peak_bytes_per_particle": memory / self.particles,
            "possible_bytes_per_second": possible.bytes_per_second,
            "possible_flops_per_second": possible.flops_per_second,
            "phases": phases.iter().map(Phase::json).collect::<Vec<_>>(),
        });
        let parts: Vec<String> = phases.iter().map(Phase::text).collect();
        let text = format!(
            "{:20} {} particles  {} particle-steps a second  {frame:.2} s a frame  {} steps  {} a particle at most\n{}",
            self.name,
            grouped(self.particles),
            grouped(rate),
            self.counter.steps,
            bytes(memory / self.particles),
            parts.join("\n")
        );
        Finding {
            seconds: self.seconds,
            done: (steps, "particle-step"),
            bytes: self.bytes,
            line,
            text,
        }
    }
}

/// A part of the step, and what it achieved of what is possible.
struct Phase {
    name: &'static str,
    nanoseconds: f64,
    bandwidth: f64,
    flops: f64,
}

impl Phase {
    fn text(&self) -> String {
        format!(
            "  {:14} {:7.1} ns a particle-step  {:5.1} % of the bytes and {:5.1} % of the flops possible",
            self.name,
            self.nanoseconds,
            100.0 * self.bandwidth,
            100.0 * self.flops
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.name, "nanoseconds_per_particle_step": self.nanoseconds,
            "of_possible_bytes": self.bandwidth, "of_possible_flops": self.flops,
        })
    }
}
