//! The run: frames, steps, and whoever wants to know about them.

use crate::body::SequenceError;
use crate::clock::Step;
use crate::coupling::Coupling;
use crate::emit;
use crate::model::Model;
use crate::sink;
use crate::solver::{Solver, StepError, StepReport};
use crate::state::State;
use crate::wet;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// A line of the run's report.
#[derive(Clone, Debug, Serialize)]
pub struct StepLine {
    /// Frame that the step leads to, from 1.
    pub frame: u32,
    /// Number of the step, from 1.
    pub step: u64,
    /// Time at its end [s].
    pub time: f64,
    /// Its length [s].
    pub dt: f64,
    /// Particles after it.
    pub particles: usize,
    /// Particles that arrived.
    pub emitted: u64,
    /// Particles that sinks removed.
    pub removed: u64,
    /// Ids of particles taken out because they were lost or not finite.
    pub quarantined: Vec<u64>,
    /// Kinetic energy [J].
    pub kinetic_energy: f64,
    /// The fastest particle [m/s].
    pub max_speed: f64,
    /// What else the solver tells.
    #[serde(flatten)]
    pub measures: std::collections::BTreeMap<&'static str, f64>,
}

/// Whoever keeps what a run makes.
pub trait Recorder {
    /// After each step.
    ///
    /// # Errors
    /// If it cannot be kept; ends the run.
    fn step(&mut self, line: StepLine) -> Result<(), RecordError>;

    /// After each frame; a checkpoint must hold what `coupling` saves.
    ///
    /// # Errors
    /// If it cannot be kept; ends the run.
    fn frame(&mut self, state: &State, coupling: &dyn Coupling) -> Result<(), RecordError>;

    /// When the run is interrupted: the state must be kept, if it is not yet.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn interrupted(&mut self, state: &State, coupling: &dyn Coupling) -> Result<(), RecordError>;
}

/// Results could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);

/// Why a run ended before its last frame.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The solver gave up.
    #[error("step {step} (frame {frame}) failed: {source}")]
    Step {
        /// Number of the step.
        step: u64,
        /// Frame it was leading to.
        frame: u32,
        /// What the solver says.
        source: StepError,
    },
    /// A body's mesh file failed.
    #[error("a body cannot be placed: {0}")]
    Body(#[from] SequenceError),
    /// Results could not be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All frames are done.
    Done,
    /// Someone asked it to stop.
    Interrupted,
}

/// The parts of a run.
pub struct Run<'a> {
    /// What does not change.
    pub model: &'a Model,
    /// The method.
    pub solver: &'a mut dyn Solver,
    /// Whoever moves the dynamic bodies.
    pub coupling: &'a mut dyn Coupling,
    /// The longest step allowed by the scene [s].
    pub max_step: f64,
    /// Set from outside to stop after the current step.
    pub stop: &'a AtomicBool,
}

impl Run<'_> {
    /// Advances `state` until frame `last` is complete.
    ///
    /// # Errors
    /// If a step fails or results cannot be kept.
    pub fn until(
        &mut self,
        last: u32,
        state: &mut State,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, RunError> {
        // The solids follow from the model, the time and the bodies: after a resume they do not stand yet.
        let now = state.clock.time();
        state.solids.place(self.model, now, now)?;
        self.coupling.show(self.model, &mut state.solids);
        while state.clock.frame < last {
            let line = self.step(state)?;
            recorder.step(line)?;
            if state.clock.tick == 0 {
                recorder.frame(state, self.coupling)?;
            }
            if self.stop.load(Ordering::Relaxed) && state.clock.frame < last {
                recorder.interrupted(state, self.coupling)?;
                return Ok(Outcome::Interrupted);
            }
        }
        Ok(Outcome::Done)
    }

    /// One step: place the solids, let particles in, advance them, let them out.
    fn step(&mut self, state: &mut State) -> Result<StepLine, RunError> {
        let step = state
            .clock
            .plan(self.solver.max_dt(self.model, state).min(self.max_step));
        let frame = state.clock.frame + 1;
        state.solids.place(self.model, step.start, step.end)?;
        self.coupling
            .place_solids(self.model, &mut state.solids, &step);
        let emitted = emit::emit(self.model, state, &step);
        wet::soak(self.model, state, &step);
        let report = self
            .solver
            .step(self.model, state, step.dt)
            .map_err(|source| RunError::Step {
                step: state.clock.step + 1,
                frame,
                source,
            })?;
        self.coupling
            .return_impulses(self.model, &mut state.solids, &report.impulses);
        let quarantined = sink::quarantine(state, &report.lost);
        let removed = sink::drain(self.model, state, &step);
        state.clock.advance(&step);
        Ok(line(
            state,
            &step,
            frame,
            report,
            (emitted, removed, quarantined),
        ))
    }
}

fn line(
    state: &State,
    step: &Step,
    frame: u32,
    report: StepReport,
    (emitted, removed, quarantined): (u64, u64, Vec<u64>),
) -> StepLine {
    StepLine {
        frame,
        step: state.clock.step,
        time: step.end,
        dt: step.dt,
        particles: state.particles.len(),
        emitted,
        removed,
        quarantined,
        kinetic_energy: report.kinetic_energy,
        max_speed: report.max_speed,
        measures: report.measures.into_iter().collect(),
    }
}
