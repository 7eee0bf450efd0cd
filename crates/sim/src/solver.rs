//! What every method of simulation must answer.

use crate::coupling::Impulse;
use crate::model::Model;
use crate::state::State;
use barchan_base::column::ColumnSpec;

/// A method of simulation. It reads the model, advances the state, and owns nothing but scratch: dropped and made
/// again, it gives the same bits.
pub trait Solver: Send {
    /// Columns it needs for each particle beyond the common ones.
    fn columns(&self) -> &'static [ColumnSpec] {
        &[]
    }

    /// Those of its columns that tell nobody else anything: checkpoints have them, frames do not.
    fn private_columns(&self) -> &'static [ColumnSpec] {
        &[]
    }

    /// What it keeps in the state's memory beyond its particles: none, or all of these in this order.
    fn memory(&self) -> &'static [ColumnSpec] {
        &[]
    }

    /// The longest step [s] that is stable and accurate now.
    fn max_dt(&self, model: &Model, state: &State) -> f64;

    /// Whether it can work with steps of at most `max_step` [s], which the scene asks for.
    ///
    /// # Errors
    /// What is wrong with it, and what would work.
    fn admit(&self, max_step: f64) -> Result<(), String> {
        let _ = max_step;
        Ok(())
    }

    /// Advances the particles by `dt` [s]. The solids are already placed for this step, the clock is not yet advanced.
    ///
    /// # Errors
    /// Only where going on makes no sense; what physics allows is in the report.
    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError>;

    /// Notes that particles or the model were changed from outside since the last step: nothing may be taken for at rest.
    fn disturb(&self, state: &mut State) {
        let _ = state;
    }

    /// What a run of `model` will cost.
    fn cost(&self, model: &Model) -> Cost;
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct StepReport {
    /// Kinetic energy after the step [J].
    pub kinetic_energy: f64,
    /// The fastest particle [m/s].
    pub max_speed: f64,
    /// Impulses on the bodies.
    pub impulses: Vec<Impulse>,
    /// Indices, increasing, of particles that are lost or not finite; the caller takes them out.
    pub lost: Vec<usize>,
    /// Whatever else the method wants to tell, by name.
    pub measures: Vec<(&'static str, f64)>,
}

/// A step that cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StepError(pub String);

/// What a method needs, for estimates before a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes a particle while it runs, state and scratch together.
    pub bytes_per_particle: f64,
    /// Processor seconds for one particle and one step on one core.
    pub seconds_per_particle_step: f64,
    /// Steps in a second of simulated time, roughly.
    pub steps_per_second: f64,
}
