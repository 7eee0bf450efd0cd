//! Inside or outside of any mesh, closed or not: the generalised winding number, made fast by a tree.
//!
//! The winding number is the solid angle of all triangles over 4π: 1 inside, 0 outside, in between where the mesh
//! has holes (Jacobson et al. 2013). Far groups of triangles act like one dipole (Barill et al. 2018).

use super::Mesh;
use glam::Vec3;
use std::f64::consts::PI;

/// Solid angle of a triangle seen from the origin (Van Oosterom & Strackee 1983).
fn solid_angle([a, b, c]: [Vec3; 3]) -> f64 {
    let (a, b, c) = (a.as_dvec3(), b.as_dvec3(), c.as_dvec3());
    let (la, lb, lc) = (a.length(), b.length(), c.length());
    let volume = a.dot(b.cross(c));
    let denominator = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
    2.0 * volume.atan2(denominator)
}

/// The same in 32 bits, for sums of many.
fn solid_angle_f32([a, b, c]: [Vec3; 3]) -> f32 {
    let (la, lb, lc) = (a.length(), b.length(), c.length());
    let volume = a.dot(b.cross(c));
    let denominator = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
    2.0 * volume.atan2(denominator)
}

/// The generalised winding number of `mesh` about `point`, triangle by triangle.
pub fn winding_number(mesh: &Mesh, point: Vec3) -> f64 {
    let angles = (0..mesh.triangles().len())
        .map(|i| solid_angle(mesh.corners(i).map(|corner| corner - point)));
    angles.sum::<f64>() / (4.0 * PI)
}

/// Triangles in a leaf.
const LEAF: usize = 8;

/// A group acts as a dipole beyond so many of its radii. The error of the whole falls with the square of this:
/// about 0.05 for [`ROUGHLY`], 0.003 for [`PRECISELY`].
const ROUGHLY: f32 = 2.0;
const PRECISELY: f32 = 8.0;
/// A rough number further than this from one half decides.
const DOUBT: f64 = 0.2;

/// A tree over the triangles of a mesh that answers winding numbers in logarithmic time.
#[derive(Clone, Debug)]
pub struct WindingTree {
    nodes: Vec<Node>,
    /// Corners of the triangles, group by group.
    corners: Vec<[Vec3; 3]>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Area-weighted centre of the group.
    centre: Vec3,
    /// Radius about the centre that holds every corner.
    radius: f32,
    /// Sum of the area vectors.
    dipole: Vec3,
    /// Triangles `start..end` of the sorted corners.
    start: u32,
    end: u32,
    /// The second child; the first follows its parent. Zero for a leaf.
    second: u32,
}

impl WindingTree {
    /// Builds the tree.
    pub fn new(mesh: &Mesh) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            corners: (0..mesh.triangles().len())
                .map(|i| mesh.corners(i))
                .collect(),
        };
        let count = tree.corners.len();
        tree.split(0, count);
        tree
    }

    /// Adds the node of triangles `start..end` and, below it, its halves along the longest axis.
    fn split(&mut self, start: usize, end: usize) -> u32 {
        let group = &mut self.corners[start..end];
        let id = self.nodes.len() as u32;
        self.nodes.push(Node::of(group, start as u32, end as u32));
        if group.len() > LEAF {
            let centroid = |t: &[Vec3; 3]| t[0] + t[1] + t[2];
            let size = crate::Bounds::of(group.iter().map(centroid)).size();
            let axis = size.max_position();
            let middle = group.len() / 2;
            group.select_nth_unstable_by(middle, |a, b| {
                centroid(a)[axis].total_cmp(&centroid(b)[axis])
            });
            self.split(start, start + middle);
            self.nodes[id as usize].second = self.split(start + middle, end);
        }
        id
    }

    /// True where the winding number, of either sign, is above one half.
    pub fn contains(&self, point: Vec3) -> bool {
        let rough = self.rough_winding_number(point).abs();
        if (rough - 0.5).abs() > DOUBT {
            return rough > 0.5;
        }
        self.winding_number(point).abs() > 0.5
    }

    /// The winding number about `point`, to about a twentieth.
    pub fn rough_winding_number(&self, point: Vec3) -> f64 {
        self.sum(point, ROUGHLY)
    }

    /// The winding number about `point`, to a few thousandths.
    pub fn winding_number(&self, point: Vec3) -> f64 {
        self.sum(point, PRECISELY)
    }

    fn sum(&self, point: Vec3, far: f32) -> f64 {
        let mut pending = vec![0u32];
        let mut angle = 0.0;
        while let Some(id) = pending.pop() {
            let node = &self.nodes[id as usize];
            let away = node.centre - point;
            let distance = away.length();
            if distance > far * node.radius {
                angle += f64::from(away.dot(node.dipole) / (distance * distance * distance));
            } else if node.second == 0 {
                let group = &self.corners[node.start as usize..node.end as usize];
                let angles = group
                    .iter()
                    .map(|t| solid_angle_f32(t.map(|corner| corner - point)));
                angle += f64::from(angles.sum::<f32>());
            } else {
                pending.extend([id + 1, node.second]);
            }
        }
        angle / (4.0 * PI)
    }
}

impl Node {
    fn of(group: &[[Vec3; 3]], start: u32, end: u32) -> Self {
        let area_vector = |[a, b, c]: &[Vec3; 3]| (*b - *a).cross(*c - *a) * 0.5;
        let area: f32 = group.iter().map(|t| area_vector(t).length()).sum();
        let weighted: Vec3 = group
            .iter()
            .map(|t| (t[0] + t[1] + t[2]) / 3.0 * area_vector(t).length())
            .sum();
        let centre = if area > 0.0 {
            weighted / area
        } else {
            group[0][0]
        };
        let radius = group
            .iter()
            .flatten()
            .map(|corner| (*corner - centre).length())
            .fold(0.0, f32::max);
        Self {
            centre,
            radius,
            dipole: group.iter().map(area_vector).sum(),
            start,
            end,
            second: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::unit_cube;
    use super::*;
    use crate::random::Random;

    /// A sphere of `n` × `2n` quads, without the triangles that `keep` refuses.
    fn ball(n: u32, keep: impl Fn(Vec3) -> bool) -> Mesh {
        let place = |i: u32, j: u32| {
            let (theta, phi) = (
                i as f32 / n as f32 * PI as f32,
                j as f32 / n as f32 * PI as f32,
            );
            Vec3::new(
                theta.sin() * phi.cos(),
                theta.cos(),
                -theta.sin() * phi.sin(),
            )
        };
        let vertices: Vec<Vec3> = (0..=n)
            .flat_map(|i| (0..2 * n).map(move |j| place(i, j)))
            .collect();
        let at = |i: u32, j: u32| i * 2 * n + j % (2 * n);
        let quads = (0..n).flat_map(|i| {
            (0..2 * n).map(move |j| [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)])
        });
        let triangles = quads
            .flat_map(|[a, b, c, d]| [[a, b, c], [a, c, d]])
            .filter(|t| keep(t.iter().map(|&v| vertices[v as usize]).sum::<Vec3>() / 3.0));
        let triangles = triangles.collect();
        Mesh::new(vertices, triangles).unwrap()
    }

    #[test]
    fn closed_meshes_have_one_inside_and_zero_outside() {
        let cube = unit_cube();
        let random = Random::new(2, 0);
        for i in 0..500 {
            let point = (random.in_cube(i, 0) - 0.5) * 2.0;
            let reach = point.abs().max_element();
            if (reach - 0.5).abs() > 1e-3 {
                let expected = f64::from(u8::from(reach < 0.5));
                assert!(
                    (winding_number(&cube, point) - expected).abs() < 1e-4,
                    "{point}"
                );
            }
        }
    }

    #[test]
    fn the_tree_finds_what_the_sum_finds_on_open_and_overlapping_meshes() {
        let open = ball(40, |centre| centre.y > -0.8);
        let shifted = ball(30, |_| true)
            .mapped(|v| v * 0.6 + Vec3::X * 0.7)
            .unwrap();
        let mut vertices = open.vertices().to_vec();
        let offset = vertices.len() as u32;
        vertices.extend(shifted.vertices());
        let mut triangles = open.triangles().to_vec();
        triangles.extend(shifted.triangles().iter().map(|t| t.map(|v| v + offset)));
        let mesh = Mesh::new(vertices, triangles).unwrap();
        let tree = WindingTree::new(&mesh);
        let random = Random::new(4, 0);
        let mut wrong = 0;
        for i in 0..2000 {
            let point = random.in_cube(i, 0) * 3.0 - 1.5;
            let (fast, exact) = (tree.winding_number(point), winding_number(&mesh, point));
            assert!((fast - exact).abs() < 5e-3, "{point}: {fast} for {exact}");
            wrong += usize::from(tree.contains(point) != (exact.abs() > 0.5));
        }
        assert!(wrong <= 2, "{wrong} of 2000 on the wrong side"); // 99.9 %
    }
}
