//! The mesh a surface is made of: what render and export take, whoever made it.

use glam::Vec3;

/// Triangles around material, with what the particles beneath carry to the vertices.
///
/// Columns are as long as `positions`, or empty where nobody asked for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurfaceMesh {
    /// Vertices [m].
    pub positions: Vec<Vec3>,
    /// Outward unit normals.
    pub normals: Vec<Vec3>,
    /// Velocities [m/s], for motion blur.
    pub velocities: Vec<Vec3>,
    /// Linear colours, red, green, blue in 0..1.
    pub colors: Vec<Vec3>,
    /// The material beneath each vertex, as in the particles' material column.
    pub materials: Vec<u16>,
    /// Corners of each triangle, counter-clockwise seen from outside.
    pub triangles: Vec<[u32; 3]>,
}
