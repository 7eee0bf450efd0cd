//! Surfaces from particles.

mod mesh;

pub use mesh::SurfaceMesh;
