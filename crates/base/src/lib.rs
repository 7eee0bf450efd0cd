//! Arrays and shapes for particle simulation: columns, poses, signed distances, meshes, sampling.
//!
//! This crate knows no material, no scene and no output. Lengths are metres, and "inside" always means a
//! negative signed distance. Every parallel loop here is split by data, never by thread, so results do not
//! depend on how many threads run.

pub mod bounds;
pub mod cells;
pub mod column;
pub mod convert;
pub mod grid;
pub mod linear;
pub mod mesh;
pub mod parallel;
pub mod pose;
pub mod random;
pub mod sampling;
pub mod shape;
pub mod shell;
pub mod spread;

pub use bounds::Bounds;
pub use pose::Pose;
