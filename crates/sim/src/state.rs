//! Everything that changes during a run, and all that a checkpoint holds.

use crate::clock::Clock;
use crate::solids::Solids;
use barchan_base::column::Column;
use glam::Vec3;
use serde::{Deserialize, Serialize};

barchan_base::columns! {
    /// The particles, a column a quantity.
    pub struct Particles {
        /// Unique for ever: never given again, even after the particle is gone.
        id: u64 [1],
        /// Where each is.
        position: Vec3 [m],
        /// How fast.
        velocity: Vec3 [m/s],
        /// Half its spacing or its size.
        radius: f32 [m],
        /// What it weighs.
        mass: f32 [kg],
        /// Index of its material.
        material: u16 [1],
        /// How wet it is, from 0 to 1.
        wetness: f32 [1],
    }
}

impl Particles {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }
}

/// What has been counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The id that the next particle gets.
    pub next_id: u64,
    /// Particles each emitter has made.
    pub emitted: Vec<u64>,
    /// What each sink has removed.
    pub sunk: Vec<Sunk>,
    /// Particles taken out because they were lost or not finite.
    pub quarantined: u64,
}

/// What a sink has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sunk {
    /// Particles.
    pub particles: u64,
    /// Their mass [kg].
    pub mass: f64,
}

/// A run at one moment.
#[derive(Clone, Debug)]
pub struct State {
    /// Where in time.
    pub clock: Clock,
    /// The particles.
    pub particles: Particles,
    /// Counts.
    pub tally: Tally,
    /// What the solver must remember beyond its particles, such as stresses on a grid; empty at the start. Each column
    /// has its own length.
    pub memory: Vec<Column>,
    /// The solids over the step being taken; follows from the model and the clock.
    pub solids: Solids,
}
