//! What tests of several methods share: a scene at its start, run by frames, with the lines that it tells.
#![allow(dead_code)] // each test program uses its part

pub mod sand;

use barchan_sim::coupling::Coupling;
use barchan_sim::run::{Outcome, RecordError, Recorder, Run, StepLine};
use barchan_sim::scene::{Scene, parse};
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use glam::DVec3;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A scene of `frames` frames of 10 ms; `solver` is what its table of that name holds.
pub fn scene(solver: &str, frames: u32, rest: &str) -> Scene {
    let text = format!("schema = 1\nframes = {frames}\nfps = 100\n{rest}\n[solver]\n{solver}\n");
    parse(&text, Path::new("test.toml"), &[]).unwrap_or_else(|error| panic!("{:?}", error.problems))
}

/// Four walls without friction about x in 0..length, z in 0..width.
pub fn walls(length: f64, width: f64) -> String {
    let wall = |size: [f64; 3], at: [f64; 3]| {
        format!("[[body]]\nshape = {{ box = {{ size = {size:?}, at = {at:?} }} }}\nfriction = 0\n")
    };
    wall([0.4, 4.0, 4.0], [-0.2, 0.0, 0.0])
        + &wall([0.4, 4.0, 4.0], [length + 0.2, 0.0, 0.0])
        + &wall([8.0, 4.0, 0.4], [0.0, 0.0, -0.2])
        + &wall([8.0, 4.0, 0.4], [0.0, 0.0, width + 0.2])
}

/// A block of a material in the corner at the origin.
pub fn block(material: &str, size: [f64; 3]) -> String {
    let at = size.map(|s| 0.5 * s);
    format!(
        "[materials.m]\npreset = \"{material}\"\n[[fill]]\nmaterial = \"m\"\nshape = {{ box = {{ size = {size:?}, at = {at:?} }} }}\n"
    )
}

/// Keeps the lines of a run.
#[derive(Default)]
pub struct Lines(pub Vec<StepLine>);

impl Recorder for Lines {
    fn step(&mut self, line: StepLine) -> Result<(), RecordError> {
        self.0.push(line);
        Ok(())
    }
    fn frame(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
    fn interrupted(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A scene at its start, ready to run.
pub struct Lab {
    pub scene: Scene,
    pub solver: Box<dyn Solver>,
    pub state: State,
    pub lines: Lines,
}

impl Lab {
    pub fn new(scene: Scene) -> Self {
        let solver = barchan_solvers::solver(&scene);
        let state = start(&scene.model, scene.fps, solver.columns()).expect("it starts");
        Self {
            scene,
            solver,
            state,
            lines: Lines::default(),
        }
    }

    pub fn until(&mut self, frame: u32) {
        self.coupled(frame, &mut ());
    }

    pub fn coupled(&mut self, frame: u32, coupling: &mut dyn Coupling) {
        let stop = AtomicBool::new(false);
        let mut run = Run {
            model: &self.scene.model,
            solver: &mut *self.solver,
            coupling,
            max_step: self.scene.max_step,
            stop: &stop,
        };
        let outcome = run.until(frame, &mut self.state, &mut self.lines);
        assert_eq!(outcome.expect("it runs"), Outcome::Done);
    }

    pub fn mass(&self) -> f64 {
        let p = &self.state.particles;
        p.mass.iter().map(|m| f64::from(*m)).sum()
    }

    pub fn momentum(&self) -> DVec3 {
        let p = &self.state.particles;
        let each = p.mass.iter().zip(&p.velocity);
        each.map(|(m, v)| v.as_dvec3() * f64::from(*m)).sum()
    }
}
