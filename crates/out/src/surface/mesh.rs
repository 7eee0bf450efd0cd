//! The mesh a surface is made of: what render and export take, whoever made it.

use crate::geometry::Column;
use barchan_base::column::{ColumnSpec, Kind, as_bytes};
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

const fn vectors(name: &'static str, unit: &'static str) -> ColumnSpec {
    ColumnSpec {
        name,
        unit,
        kind: Kind::Vec3,
    }
}

const NORMAL: ColumnSpec = vectors("normal", "1");
const VELOCITY: ColumnSpec = vectors("velocity", "m/s");
const COLOR: ColumnSpec = vectors("color", "1");
const MATERIAL: ColumnSpec = ColumnSpec::new("material", "1", Kind::U16);

impl SurfaceMesh {
    /// What vertices carry, without what nobody asked for.
    pub(crate) fn columns(&self) -> Vec<Column<'_>> {
        let all = [
            (NORMAL, as_bytes(&self.normals)),
            (VELOCITY, as_bytes(&self.velocities)),
            (COLOR, as_bytes(&self.colors)),
            (MATERIAL, as_bytes(&self.materials)),
        ];
        let there = all.into_iter().filter(|(_, bytes)| !bytes.is_empty());
        there.collect()
    }
}
