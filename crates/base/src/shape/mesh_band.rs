//! Exact distances to a mesh, one point at a time or, much faster, for all the nodes of a block.
//!
//! **Distance.** Each triangle is compared with the nodes within a band's width of it. Nodes further out get the best
//! bound that a few exact distances in the block give: no point is further from the mesh than another point's distance
//! plus the way between them. **Sign.** The winding number w is evaluated only where it can change: between two nodes it
//! does not if one of them is further from the mesh than from the other, unless the mesh has holes nearby. What holes do
//! follows from their rims, as the field of a wire follows from its current (Biot & Savart):
//! ∇w = Σ dl × r / 4π r³ over the open edges.

use super::distance_grid::{NODES_PER_BLOCK, NodeBlock, SignedDistance};
use crate::Bounds;
use crate::convert::Convert;
use crate::mesh::{Mesh, WindingTree};
use glam::Vec3;
use parry3d::bounding_volume::Aabb;
use parry3d::query::PointQueryWithLocation;
use parry3d::shape::TriMesh;
use std::collections::HashMap;

/// The triangles, ready for questions.
#[derive(Clone)]
pub(super) struct ExactMesh {
    pub triangles: TriMesh,
    pub winding: WindingTree,
}

impl ExactMesh {
    pub fn new(mesh: &Mesh) -> Self {
        let vertices = mesh.vertices().iter().map(|vertex| vertex.convert());
        let triangles = TriMesh::new(vertices.collect(), mesh.triangles().to_vec());
        Self {
            triangles: triangles.expect("a checked mesh has triangles"),
            winding: WindingTree::new(mesh),
        }
    }

    /// Unsigned distance, the nearest point of the surface, and its triangle.
    pub fn nearest(&self, point: Vec3) -> (f32, Vec3, u32) {
        let (projection, (triangle, _)) = self
            .triangles
            .project_local_point_and_get_location(point.convert(), false);
        let place: Vec3 = projection.point.convert();
        ((place - point).length(), place, triangle)
    }

    pub fn distance(&self, point: Vec3) -> f32 {
        let distance = self.nearest(point).0;
        if self.winding.contains(point) {
            -distance
        } else {
            distance
        }
    }
}

/// An edge that only one triangle has.
#[derive(Clone, Copy, Debug)]
struct OpenEdge {
    middle: Vec3,
    /// From end to end, in its triangle's sense; longer where several triangles share it.
    along: Vec3,
}

/// Samples a mesh block by block.
pub(super) struct MeshBand<'a> {
    mesh: &'a Mesh,
    exact: &'a ExactMesh,
    open_edges: Vec<OpenEdge>,
}

/// With more open edges than this the mesh is a heap of triangles, and every node is asked for its sign.
const MOST_OPEN_EDGES: usize = 20_000;
/// The most that holes may change the winding number within a block for its signs to be passed on.
const CALM: f32 = 0.1;
/// How far from one half the winding number must be for that.
const CLEAR: f64 = 0.2;
/// Exact distances along a block's edge, from which those beyond the band are bounded.
const PROBES: usize = 3;
const EDGE: usize = NodeBlock::EDGE;

impl<'a> MeshBand<'a> {
    pub fn new(mesh: &'a Mesh, exact: &'a ExactMesh) -> Self {
        Self {
            mesh,
            exact,
            open_edges: open_edges(mesh),
        }
    }

    /// True where no hole is near enough to change the winding number noticeably within `bounds`.
    fn is_calm(&self, bounds: Bounds) -> bool {
        if self.open_edges.is_empty() {
            return true;
        }
        if self.open_edges.len() > MOST_OPEN_EDGES {
            return false;
        }
        let centre = 0.5 * (bounds.min + bounds.max);
        let radius = 0.5 * bounds.size().length();
        // Taylor: the gradient at the centre, and a bound of its change on the way to the corners.
        let (mut gradient, mut change) = (Vec3::ZERO, 0.0);
        for edge in &self.open_edges {
            let away = centre - edge.middle;
            let (distance, length) = (away.length(), edge.along.length());
            let nearest = (distance - radius - 0.5 * length).max(1e-3 * radius);
            gradient +=
                edge.along.cross(away) / (distance * distance * distance).max(f32::MIN_POSITIVE);
            change += 2.0 * length / (nearest * nearest * nearest);
        }
        let most = (gradient.length() * radius + 0.5 * change * radius * radius)
            / (4.0 * std::f32::consts::PI);
        let winding = self.exact.winding.rough_winding_number(centre).abs();
        most < CALM && (winding - winding.floor() - 0.5).abs() > CLEAR
    }

    /// Exact distances on a coarse lattice in the block.
    fn probe(&self, block: &NodeBlock) -> [(Vec3, f32); PROBES * PROBES * PROBES] {
        let step = (EDGE - 1) / (PROBES - 1);
        std::array::from_fn(|i| {
            let at = [i % PROBES, i / PROBES % PROBES, i / PROBES / PROBES].map(|c| c * step);
            let place = block.place(at[0] + EDGE * (at[1] + EDGE * at[2]));
            (place, self.unsigned(place))
        })
    }

    /// Distance for each node that a triangle is within the band of, infinite for the others; `None` if there is none.
    fn splat(&self, block: &NodeBlock) -> Option<Box<[f32; NODES_PER_BLOCK]>> {
        let bounds = block.bounds().grown(block.band);
        let mut squared = Box::new([f32::INFINITY; NODES_PER_BLOCK]);
        let mut any = false;
        for triangle in self
            .exact
            .triangles
            .bvh()
            .intersect_aabb(&Aabb::new(bounds.min.convert(), bounds.max.convert()))
        {
            let corners = self.mesh.corners(triangle as usize);
            let reach = Bounds::of(corners).grown(block.band);
            let first = ((reach.min - block.origin) / block.cell)
                .ceil()
                .max(Vec3::ZERO);
            let last = ((reach.max - block.origin) / block.cell)
                .floor()
                .min(Vec3::splat((EDGE - 1) as f32));
            if !first.cmple(last).all() {
                continue;
            }
            any = true;
            let (first, last) = (first.as_uvec3(), last.as_uvec3());
            for z in first.z..=last.z {
                for y in first.y..=last.y {
                    for x in first.x..=last.x {
                        let i = x as usize + EDGE * (y as usize + EDGE * z as usize);
                        squared[i] = squared[i].min(distance_squared(block.place(i), &corners));
                    }
                }
            }
        }
        for value in squared.iter_mut() {
            *value = value.sqrt();
        }
        any.then_some(squared)
    }
}

impl SignedDistance for MeshBand<'_> {
    fn signed(&self, point: Vec3) -> f32 {
        self.exact.distance(point)
    }

    fn unsigned(&self, point: Vec3) -> f32 {
        self.exact.nearest(point).0
    }

    fn nodes(&self, block: &NodeBlock) -> Option<Box<[f32; NODES_PER_BLOCK]>> {
        let mut values = self.splat(block)?;
        let probes = self.probe(block);
        for (i, value) in values
            .iter_mut()
            .enumerate()
            .filter(|(_, value)| **value > block.band)
        {
            let place = block.place(i);
            let bound = probes
                .iter()
                .map(|(probe, distance)| distance - probe.distance(place))
                .fold(0.0, f32::max);
            *value = bound.max(block.band);
        }
        let calm = self.is_calm(block.bounds());
        for i in 0..NODES_PER_BLOCK {
            // A neighbour's sign holds here too if a ball about one of them reaches the other without meeting the mesh.
            let known = before(i)
                .find(|&j| calm && values[i].max(values[j].abs()) > 1.01 * block.cell)
                .map(|j| values[j].is_sign_negative());
            let inside = known.unwrap_or_else(|| self.exact.winding.contains(block.place(i)));
            if inside {
                values[i] = -values[i];
            }
        }
        Some(values)
    }
}

/// The nodes before this one along each axis.
fn before(i: usize) -> impl Iterator<Item = usize> {
    let at = [i % EDGE, i / EDGE % EDGE, i / EDGE / EDGE];
    let strides = [1, EDGE, EDGE * EDGE];
    (0..3)
        .filter(move |axis| at[*axis] > 0)
        .map(move |axis| i - strides[axis])
}

/// Squared distance from a point to a triangle (Ericson 2005, section 5.1.5).
fn distance_squared(p: Vec3, [a, b, c]: &[Vec3; 3]) -> f32 {
    let (ab, ac, ap) = (*b - *a, *c - *a, p - *a);
    let (d1, d2) = (ab.dot(ap), ac.dot(ap));
    if d1 <= 0.0 && d2 <= 0.0 {
        return ap.length_squared();
    }
    let bp = p - *b;
    let (d3, d4) = (ab.dot(bp), ac.dot(bp));
    if d3 >= 0.0 && d4 <= d3 {
        return bp.length_squared();
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        return (ap - ab * (d1 / (d1 - d3))).length_squared();
    }
    let cp = p - *c;
    let (d5, d6) = (ab.dot(cp), ac.dot(cp));
    if d6 >= 0.0 && d5 <= d6 {
        return cp.length_squared();
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        return (ap - ac * (d2 / (d2 - d6))).length_squared();
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 >= d3 && d5 >= d6 {
        return (bp - (*c - *b) * ((d4 - d3) / ((d4 - d3) + (d5 - d6)))).length_squared();
    }
    let denominator = 1.0 / (va + vb + vc);
    (ap - ab * (vb * denominator) - ac * (vc * denominator)).length_squared()
}

/// Edges that are not matched by the same edge of another triangle run the other way; vertices count as one if they
/// are in the same place.
fn open_edges(mesh: &Mesh) -> Vec<OpenEdge> {
    let mut places: HashMap<[u32; 3], u32> = HashMap::new();
    let welded: Vec<u32> = mesh
        .vertices()
        .iter()
        .enumerate()
        .map(|(i, v)| {
            *places
                .entry((*v + Vec3::ZERO).to_array().map(f32::to_bits))
                .or_insert(i as u32)
        })
        .collect();
    let mut balance: HashMap<(u32, u32), i32> = HashMap::new();
    for triangle in mesh.triangles() {
        for (a, b) in [(0, 1), (1, 2), (2, 0)] {
            let (a, b) = (welded[triangle[a] as usize], welded[triangle[b] as usize]);
            *balance.entry((a.min(b), a.max(b))).or_default() += if a < b { 1 } else { -1 };
        }
    }
    let mut open: Vec<((u32, u32), i32)> = balance
        .into_iter()
        .filter(|((a, b), count)| a != b && *count != 0)
        .collect();
    open.sort_unstable();
    let place = |v: u32| mesh.vertices()[v as usize];
    open.iter()
        .map(|&((a, b), count)| OpenEdge {
            middle: 0.5 * (place(a) + place(b)),
            along: (place(b) - place(a)) * count as f32,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::unit_cube;
    use crate::random::Random;

    #[test]
    fn triangle_distances_agree_with_parry() {
        use parry3d::query::PointQuery;
        let random = Random::new(3, 0);
        for i in 0..5000 {
            let [a, b, c, p] = std::array::from_fn(|k| random.in_cube(i, 3 * k as u32));
            let triangle = parry3d::shape::Triangle::new(a.convert(), b.convert(), c.convert());
            let nearest: Vec3 = triangle
                .project_local_point(p.convert(), false)
                .point
                .convert();
            let expected = nearest.distance(p);
            let found = distance_squared(p, &[a, b, c]).sqrt();
            assert!((found - expected).abs() < 1e-4, "{found} for {expected}"); // thin triangles in f32
        }
    }

    #[test]
    fn a_closed_mesh_has_no_open_edges_and_a_holed_one_its_rim() {
        let cube = unit_cube();
        assert!(open_edges(&cube).is_empty());
        let holed = Mesh::new(cube.vertices().to_vec(), cube.triangles()[2..].to_vec()).unwrap();
        let rim: f32 = open_edges(&holed)
            .iter()
            .map(|edge| edge.along.length())
            .sum();
        assert!((rim - 4.0).abs() < 1e-5, "{rim}");
    }

    /// The block sampler against the point sampler, on a closed mesh and on one with a side missing.
    #[test]
    fn blocks_agree_with_points() {
        let cube = unit_cube();
        let holed = Mesh::new(cube.vertices().to_vec(), cube.triangles()[2..].to_vec()).unwrap();
        for mesh in [cube, holed] {
            let exact = ExactMesh::new(&mesh);
            let band = MeshBand::new(&mesh, &exact);
            let random = Random::new(7, 0);
            let mut sampled = 0;
            for i in 0..200 {
                let block = NodeBlock {
                    origin: random.in_cube(i, 0) * 1.6 - 1.0,
                    cell: 0.04,
                    band: 0.12,
                };
                let Some(values) = band.nodes(&block) else {
                    continue;
                };
                for (n, value) in values.iter().enumerate() {
                    let expected = exact.distance(block.place(n));
                    // Beyond the band a probe is at most √3 × 2 cells away, and what it says loses twice that.
                    let tolerance = if expected.abs() < block.band {
                        1e-5
                    } else {
                        7.0 * block.cell
                    };
                    assert!(
                        (value - expected).abs() < tolerance,
                        "{value} for {expected} at {}",
                        block.place(n)
                    );
                    assert!(
                        value.abs() <= expected.abs() + 1e-5,
                        "{value} for {expected}"
                    );
                    sampled += 1;
                }
            }
            assert!(sampled > 50_000);
        }
    }
}
