//! The simulation's frame: from a scene file to a validated [`scene::Scene`], and from there, step by step and frame
//! by frame, through any [`solver::Solver`].
//!
//! [`model::Model`] does not change during a run, [`state::State`] is everything a checkpoint holds, a solver's own
//! memory is scratch. The caller owns time and files.

pub mod atomic;
pub mod body;
pub mod checkpoint;
pub mod clock;
pub mod contact;
pub mod coupling;
pub mod emit;
pub mod estimate;
pub mod grain;
pub mod model;
pub mod run;
pub mod scene;
pub mod sink;
pub mod solids;
pub mod solver;
pub mod start;
pub mod state;
pub mod wet;
