//! Barchan simulates granular material: sand, gravel, soil, grain, and the water they meet.
//!
//! This crate is the command `barchan` and the facade to the library behind it:
//!
//! - [`base`]: columns, shapes, meshes, signed distances, sampling;
//! - [`sim`]: the scene file, the model, the state, the clock, the run;
//! - [`solvers`]: the methods;
//! - [`out`]: frames, statistics, exports;
//! - [`command`]: the command line as a library function.
//!
//! ```no_run
//! use barchan::sim::{run::Run, scene, start};
//! let scene = scene::load("scenes/gallery/first.toml".as_ref(), &[])?;
//! let mut solver = barchan::solvers::solver(&scene);
//! let mut state = start::start(&scene.model, scene.fps, solver.columns())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use barchan_base as base;
pub use barchan_out as out;
pub use barchan_sim as sim;
pub use barchan_solvers as solvers;

pub mod command;
mod validate;
