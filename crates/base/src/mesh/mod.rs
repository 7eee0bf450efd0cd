//! Triangle meshes: checked once when made, trusted afterwards.

mod gltf_file;
mod load;
mod ply_file;
mod winding;

pub use load::{LoadError, load_mesh, parse_mesh, side_files};
pub use winding::{WindingTree, winding_number};

use crate::Bounds;
use glam::Vec3;
use std::path::Path;

/// Vertices and triangles as a file gives them, before they are checked.
type Soup = (Vec<Vec3>, Vec<[u32; 3]>);

/// Reads a whole file, which must be a plain one: devices and pipes may never end.
///
/// # Errors
/// If it cannot be read or is not a plain file.
pub fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a plain file"));
    }
    std::fs::read(path)
}

/// A triangle mesh with finite vertices, indices in range and at least one triangle of positive area.
#[derive(Clone, Debug, PartialEq)]
pub struct Mesh {
    vertices: Vec<Vec3>,
    triangles: Vec<[u32; 3]>,
}

/// Why vertices and triangles do not make a mesh.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// NaN or infinite coordinates.
    #[error("{count} of {total} vertices are not finite numbers; the first is vertex {first}")]
    NotFinite {
        /// How many are bad.
        count: usize,
        /// Of how many.
        total: usize,
        /// Index of the first bad one, from 0.
        first: usize,
    },
    /// An index past the end.
    #[error("triangle {triangle} uses vertex {vertex}, but there are only {total}")]
    Index {
        /// Index of the triangle, from 0.
        triangle: usize,
        /// The vertex it asks for.
        vertex: u32,
        /// How many there are.
        total: usize,
    },
    /// Nothing to collide with or to fill.
    #[error("it has no triangle with an area ({0} triangles in all)")]
    NoTriangles(usize),
    /// More than 32-bit indices can name.
    #[error("it has {0} vertices or triangles, more than 2³² − 1")]
    TooLarge(usize),
}

impl Mesh {
    /// Checks vertices [m] and triangles; triangles without area are dropped.
    ///
    /// # Errors
    /// If a vertex is not finite, an index is out of range, or no triangle has an area.
    pub fn new(vertices: Vec<Vec3>, triangles: Vec<[u32; 3]>) -> Result<Self, MeshError> {
        let largest = vertices.len().max(triangles.len());
        if largest >= u32::MAX as usize {
            return Err(MeshError::TooLarge(largest));
        }
        let mut bad = vertices
            .iter()
            .enumerate()
            .filter(|(_, v)| !v.is_finite())
            .map(|(i, _)| i);
        if let Some(first) = bad.next() {
            return Err(MeshError::NotFinite {
                count: 1 + bad.count(),
                total: vertices.len(),
                first,
            });
        }
        for (triangle, corners) in triangles.iter().enumerate() {
            if let Some(&vertex) = corners
                .iter()
                .find(|&&corner| corner as usize >= vertices.len())
            {
                return Err(MeshError::Index {
                    triangle,
                    vertex,
                    total: vertices.len(),
                });
            }
        }
        let all = triangles.len();
        let mut mesh = Self {
            vertices,
            triangles,
        };
        let areas: Vec<bool> = (0..all)
            .map(|i| mesh.area_vector(i).length_squared() > 0.0)
            .collect();
        let mut has_area = areas.iter();
        mesh.triangles
            .retain(|_| *has_area.next().expect("one flag a triangle"));
        if mesh.triangles.is_empty() {
            return Err(MeshError::NoTriangles(all));
        }
        Ok(mesh)
    }

    /// Vertices [m].
    pub fn vertices(&self) -> &[Vec3] {
        &self.vertices
    }

    /// Corners of each triangle, counter-clockwise seen from outside.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// Corner positions [m] of triangle `index`.
    pub fn corners(&self, index: usize) -> [Vec3; 3] {
        self.triangles[index].map(|corner| self.vertices[corner as usize])
    }

    /// Normal of triangle `index` times its area [m²].
    pub fn area_vector(&self, index: usize) -> Vec3 {
        let [a, b, c] = self.corners(index);
        (b - a).cross(c - a) * 0.5
    }

    /// The smallest box around the vertices.
    pub fn bounds(&self) -> Bounds {
        Bounds::of(self.vertices.iter().copied())
    }

    /// The mesh with every vertex moved by `place`.
    ///
    /// # Errors
    /// If a moved vertex is not finite or no area is left.
    pub fn mapped(&self, place: impl Fn(Vec3) -> Vec3) -> Result<Self, MeshError> {
        Self::new(
            self.vertices.iter().map(|v| place(*v)).collect(),
            self.triangles.clone(),
        )
    }
}

/// A closed unit cube about the origin, for tests and examples.
pub fn unit_cube() -> Mesh {
    let vertices =
        (0..8).map(|i| Vec3::new((i & 1) as f32, (i >> 1 & 1) as f32, (i >> 2) as f32) - 0.5);
    let quads = [
        [0, 4, 6, 2],
        [1, 3, 7, 5],
        [0, 1, 5, 4],
        [2, 6, 7, 3],
        [0, 2, 3, 1],
        [4, 5, 7, 6],
    ];
    let triangles = quads
        .iter()
        .flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]);
    Mesh::new(vertices.collect(), triangles.collect()).expect("a cube is a mesh")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_meshes_are_refused_with_the_reason() {
        let corners = vec![Vec3::ZERO, Vec3::X, Vec3::Y];
        let bad = vec![Vec3::ZERO, Vec3::NAN, Vec3::INFINITY];
        assert_eq!(
            Mesh::new(bad, vec![[0, 1, 2]]),
            Err(MeshError::NotFinite {
                count: 2,
                total: 3,
                first: 1
            })
        );
        assert_eq!(
            Mesh::new(corners.clone(), vec![[0, 1, 3]]),
            Err(MeshError::Index {
                triangle: 0,
                vertex: 3,
                total: 3
            })
        );
        assert_eq!(
            Mesh::new(corners.clone(), vec![[0, 1, 1]]),
            Err(MeshError::NoTriangles(1))
        );
        assert_eq!(
            Mesh::new(corners.clone(), vec![]),
            Err(MeshError::NoTriangles(0))
        );
        assert!(
            Mesh::new(corners, vec![[0, 1, 2], [0, 0, 1]])
                .is_ok_and(|mesh| mesh.triangles().len() == 1)
        );
    }

    #[test]
    fn the_cube_is_closed_and_faces_outward() {
        let cube = unit_cube();
        let total: Vec3 = (0..12).map(|i| cube.area_vector(i)).sum();
        assert!(total.length() < 1e-6);
        for i in 0..12 {
            let centre: Vec3 = cube.corners(i).iter().sum::<Vec3>() / 3.0;
            assert!(cube.area_vector(i).dot(centre) > 0.0);
        }
    }
}
