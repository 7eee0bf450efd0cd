//! A coarse mesh around any bounded shape, by surface nets (Gibson 1998): a vertex in each cell that the surface
//! crosses, drawn onto the surface, and a quad across each edge.

use super::Shape;
use crate::mesh::Mesh;
use crate::parallel::chunks;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

impl Shape {
    /// A mesh of its surface with about `cells` cells along its longest edge; a mesh's own triangles where it is one.
    /// `None` where it has no end or nothing is inside.
    pub fn surface_mesh(&self, cells: u32) -> Option<Mesh> {
        match self {
            Self::Mesh(mesh) => Some(mesh.mesh().clone()),
            Self::Placed(shape, pose, scale) => shape
                .surface_mesh(cells)?
                .mapped(|vertex| pose.point(vertex * *scale))
                .ok(),
            _ => Net::new(self, cells)?.mesh(self),
        }
    }
}

/// Distances on a lattice that reaches past the shape on all sides.
struct Net {
    origin: Vec3,
    edge: f32,
    counts: IVec3,
    distances: Vec<f32>,
}

impl Net {
    fn new(shape: &Shape, cells: u32) -> Option<Self> {
        let bounds = shape.bounds();
        if bounds.is_empty() || !bounds.is_finite() {
            return None;
        }
        let edge = bounds.size().max_element() / cells as f32;
        let counts = (bounds.size() / edge).ceil().as_ivec3() + 3;
        let mut net = Self {
            // Off the symmetry planes, so that no node lies exactly on a face.
            origin: bounds.min - edge * Vec3::new(1.03, 1.05, 1.07),
            edge,
            counts,
            distances: Vec::new(),
        };
        let parts: Vec<Vec<f32>> = chunks(counts.element_product() as usize)
            .map(|range| {
                range
                    .map(|i| shape.distance(net.place(net.node(i))))
                    .collect()
            })
            .collect();
        net.distances = parts.concat();
        Some(net)
    }

    fn node(&self, index: usize) -> IVec3 {
        let (index, n) = (index as i32, self.counts);
        IVec3::new(index % n.x, index / n.x % n.y, index / n.x / n.y)
    }

    fn index(&self, node: IVec3) -> usize {
        (node.x + self.counts.x * (node.y + self.counts.y * node.z)) as usize
    }

    fn place(&self, node: IVec3) -> Vec3 {
        self.origin + node.as_vec3() * self.edge
    }

    fn inside(&self, node: IVec3) -> bool {
        self.distances[self.index(node)] < 0.0
    }

    fn mesh(&self, shape: &Shape) -> Option<Mesh> {
        let mut vertices = Vec::new();
        let mut vertex_of = vec![u32::MAX; self.distances.len()];
        for (i, number) in vertex_of.iter_mut().enumerate() {
            let cell = self.node(i);
            if cell.cmpge(self.counts - 1).any() {
                continue;
            }
            if let Some(vertex) = self.vertex(cell, shape) {
                *number = u32::try_from(vertices.len()).ok()?;
                vertices.push(vertex);
            }
        }
        let mut triangles = Vec::new();
        for i in 0..self.distances.len() {
            let node = self.node(i);
            for axis in 0..3 {
                let along = IVec3::AXES[axis];
                let (u, v) = (IVec3::AXES[(axis + 1) % 3], IVec3::AXES[(axis + 2) % 3]);
                let border = (node + along).cmpge(self.counts).any()
                    || (node - u - v).cmplt(IVec3::ZERO).any();
                if border || self.inside(node) == self.inside(node + along) {
                    continue;
                }
                let corner = |cell: IVec3| vertex_of[self.index(cell)];
                let quad = [node - u - v, node - v, node, node - u].map(corner);
                let [a, b, c, d] = match self.inside(node) {
                    true => quad,
                    false => [quad[3], quad[2], quad[1], quad[0]],
                };
                triangles.extend([[a, b, c], [a, c, d]]);
            }
        }
        Mesh::new(vertices, triangles).ok()
    }

    /// The vertex of a cell: the mean of where the surface crosses its edges, drawn onto the surface.
    fn vertex(&self, cell: IVec3, shape: &Shape) -> Option<Vec3> {
        let corner = |i: i32| cell + IVec3::new(i & 1, i >> 1 & 1, i >> 2);
        let (mut sum, mut count) = (Vec3::ZERO, 0.0);
        for (a, b) in (0..8).flat_map(|a| [1, 2, 4].map(|bit| (a, a | bit))) {
            if a == b {
                continue;
            }
            let (a, b) = (corner(a), corner(b));
            let (from, to) = (self.distances[self.index(a)], self.distances[self.index(b)]);
            if (from < 0.0) != (to < 0.0) {
                sum += self.place(a).lerp(self.place(b), from / (from - to));
                count += 1.0;
            }
        }
        if count == 0.0 {
            return None;
        }
        let mean = sum / count;
        let drawn = (0..3).fold(mean, |point, _| {
            let surface = shape.surface(point);
            point - surface.normal * surface.distance
        });
        // Where the distance is no true one, as inside a corner, the mean is the better vertex.
        Some(match drawn.distance(mean) < self.edge {
            true => drawn,
            false => mean,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::MeshShape;
    use std::sync::Arc;

    #[test]
    fn a_net_is_closed_and_holds_the_volume_of_its_shape() {
        let ball = Shape::Sphere { radius: 0.5 };
        let ring = Shape::Torus {
            major: 0.5,
            minor: 0.2,
        };
        let holed = Shape::Difference(
            Box::new(Shape::Cuboid {
                half: Vec3::new(0.5, 0.4, 0.3),
            }),
            vec![Shape::Sphere { radius: 0.35 }],
        );
        for shape in [ball, ring, holed] {
            let expected = shape.moments().unwrap();
            let mesh = MeshShape::new(shape.surface_mesh(32).unwrap(), 0.05).unwrap();
            assert!(mesh.is_closed(), "{shape:?}");
            let found = Shape::Mesh(Arc::new(mesh)).moments().unwrap();
            assert!(
                (found.volume / expected.volume - 1.0).abs() < 0.03,
                "{shape:?}: {} for {}",
                found.volume,
                expected.volume
            );
        }
        assert!(
            Shape::HalfSpace { normal: Vec3::Y }
                .surface_mesh(8)
                .is_none()
        );
    }
}
