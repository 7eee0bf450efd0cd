//! Surfaces from particles.
//!
//! [`build`] goes from particles to a mesh in five steps, each a file: particles sorted into blocks ([`cloud`]), a signed function
//! of space on the nodes of the blocks ([`field`], one file a style), only the blocks near its zero kept and smoothed
//! ([`band`]), triangles on the zero ([`polygons`]), crumbs swept away ([`crumbs`]). [`stage`] does it for the frames of a run.

mod anisotropy;
mod averaged;
mod band;
mod blend;
mod block;
mod build;
mod cloud;
mod corners;
mod crumbs;
mod field;
pub mod format;
mod mesh;
mod neighbors;
mod polygons;
mod settings;
pub mod stage;
mod summed;
mod topology;

pub use blend::between;
pub use build::{Points, Surface, SurfaceError, build};
pub use mesh::SurfaceMesh;
pub use settings::{Settings, Style};
pub use topology::{Topology, topology};
