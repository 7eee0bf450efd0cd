//! Vertices added to the sides of faces: where the surface is steep, and under dense points.
//!
//! A face with a vertex on a side is cut into triangles around it; with vertices on two opposite sides, into two quads; a quad
//! with a vertex in its middle as well, into four quads. Its neighbour across the side is cut at the same vertex, and neither
//! is where a piece would turn over, so that no gap opens.

use super::faces::{Faces, LEAST_AREA, NONE, measure, sides};
use super::net::Net;
use super::{FacesError, STEEPEST};
use glam::Vec3;

/// Where vertices are added on steep edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detail {
    /// Edges that rise by more than this get a vertex [rad].
    pub steep: f32,
    /// Unless the triangles would have less area than this times the square of their longest edge: slivers only cost.
    pub sliver: f32,
    /// And unless the surface is nearer than this to the middle of the edge, in lengths of the edge.
    pub flat: f32,
}

impl Default for Detail {
    fn default() -> Self {
        Self {
            steep: 45f32.to_radians(),
            sliver: 0.1,
            flat: 0.02,
        }
    }
}

/// Vertices to cut faces at.
struct Cuts {
    /// On each side of each face, or [`NONE`].
    sides: Vec<[u32; 4]>,
    /// In the middle of each face, or [`NONE`].
    middles: Vec<u32>,
    /// As [`super::Plan`] sees them.
    vertices: Vec<Vec3>,
}

impl Cuts {
    fn new(faces: &Faces) -> Self {
        Self {
            sides: vec![[NONE; 4]; faces.len()],
            middles: vec![NONE; faces.len()],
            vertices: faces.vertices.clone(),
        }
    }

    fn add(&mut self, vertex: Vec3) -> u32 {
        self.vertices.push(vertex);
        self.vertices.len() as u32 - 1
    }

    /// Puts a vertex on a side, for both faces that share it.
    fn put(&mut self, faces: &Faces, (face, side): (usize, usize), vertex: Vec3) {
        let number = self.add(vertex);
        self.sides[face][side] = number;
        if let Some((other, back)) = across(faces, face, side) {
            self.sides[other][back] = number;
        }
    }

    /// Takes back the cuts of faces of which a piece would hang over, or be next to nothing, where the whole one looks up: such a
    /// piece is left out of the surface, and a gap would open. A face that is bent like a bow tie has no other pieces.
    fn refuse_folds(&mut self, faces: &Faces) {
        let level = STEEPEST.cos();
        let least = LEAST_AREA * faces.mean_area() as f32;
        let is_cut = |face: &usize| self.sides[*face].iter().any(|cut| *cut != NONE);
        let mut suspects: Vec<usize> = (0..faces.len()).filter(is_cut).collect();
        let mut list = Vec::new();
        while let Some(face) = suspects.pop() {
            list.clear();
            self.cut(faces, face, &mut list);
            let holds = |corners: &[u32; 4]| {
                let (_, normal, area) = measure(&self.vertices, corners);
                normal.z > level && area > least
            };
            if faces.normals[face].z <= level || list.iter().all(holds) {
                continue;
            }
            for side in 0..sides(&faces.corners[face]) {
                if self.sides[face][side] == NONE {
                    continue;
                }
                self.sides[face][side] = NONE;
                if let Some((other, back)) = across(faces, face, side) {
                    self.sides[other][back] = NONE;
                    // With fewer cuts it has other pieces.
                    suspects.push(other);
                }
            }
        }
    }

    /// Cuts one face.
    fn cut(&self, faces: &Faces, face: usize, to: &mut Vec<[u32; 4]>) {
        let middle = self.middles[face];
        pieces(&faces.corners[face], &self.sides[face], middle, to);
    }

    /// The mesh of the cut faces.
    fn net(mut self, faces: &Faces) -> Net {
        self.refuse_folds(faces);
        let mut net = Net {
            vertices: self.vertices.iter().map(|v| faces.plan.point(*v)).collect(),
            corners: Vec::with_capacity(faces.len()),
        };
        for face in 0..faces.len() {
            self.cut(faces, face, &mut net.corners);
        }
        net
    }
}

/// The face across a side, and the side of it that is the same.
fn across(faces: &Faces, face: usize, side: usize) -> Option<(usize, usize)> {
    let other = faces.neighbors[face][side];
    if other == NONE {
        return None;
    }
    let ends = |face: usize, side: usize| {
        let corners = &faces.corners[face];
        let mut ends = [corners[side], corners[(side + 1) % sides(corners)]];
        ends.sort_unstable();
        ends
    };
    let other = other as usize;
    let wanted = ends(face, side);
    let back = (0..sides(&faces.corners[other])).find(|s| ends(other, *s) == wanted)?;
    Some((other, back))
}

/// The pieces of one face.
fn pieces(corners: &[u32; 4], cut: &[u32; 4], middle: u32, to: &mut Vec<[u32; 4]>) {
    let count = sides(corners);
    let cuts = cut[..count].iter().filter(|c| **c != NONE).count();
    let corner = |k: usize| corners[k % count];
    let opposite = count == 4 && cuts == 2 && (cut[0] == NONE) == (cut[2] == NONE);
    if cuts == 0 {
        to.push(*corners);
    } else if middle != NONE && cuts == 4 {
        for k in 0..4 {
            to.push([corner(k), cut[k], middle, cut[(k + 3) % 4]]);
        }
    } else if opposite {
        let k = usize::from(cut[0] == NONE);
        to.push([cut[k], corner(k + 1), corner(k + 2), cut[k + 2]]);
        to.push([cut[k], cut[k + 2], corner(k + 3), corner(k)]);
    } else {
        // All triangles share one of the new vertices: none has its corners in a line.
        let first = (0..count).find(|k| cut[*k] != NONE).unwrap_or(0);
        let mut before = corner(first + 1);
        for k in first + 1..first + count {
            for next in [cut[k % count], corner(k + 1)] {
                if next != NONE {
                    to.push([cut[first], before, next, NONE]);
                    before = next;
                }
            }
        }
    }
}

/// Area over the square of the longest edge.
fn fullness(a: Vec3, b: Vec3, c: Vec3) -> f32 {
    let longest = a
        .distance_squared(b)
        .max(b.distance_squared(c))
        .max(c.distance_squared(a));
    0.5 * (b - a).cross(c - a).length() / longest.max(f32::MIN_POSITIVE)
}

impl Net {
    /// The same with vertices added on steep edges; `surface` moves a point onto the surface and tells the normal there. A vertex
    /// slides along its edge towards the end where the surface is steeper, and is refused where it would slide so
    /// close that a triangle beside it is a sliver.
    ///
    /// # Errors
    /// If nothing looks up.
    pub fn detailed(
        &self,
        up: Vec3,
        detail: &Detail,
        surface: impl Fn(Vec3) -> (Vec3, Vec3),
    ) -> Result<Self, FacesError> {
        let faces = Faces::new(up, &self.vertices, &self.corners, STEEPEST)?;
        let mut cuts = Cuts::new(&faces);
        for face in 0..faces.len() {
            for side in 0..sides(&faces.corners[face]) {
                let other = faces.neighbors[face][side];
                let mine = other == NONE || face < other as usize;
                let [a, b] = faces.side(face, side);
                let rise = (b.z - a.z).abs().atan2(a.truncate().distance(b.truncate()));
                if !mine || rise <= detail.steep {
                    continue;
                }
                // How much the surface rises at both ends: one over the tangent of the normal's height.
                let steepness = |end: Vec3| {
                    let normal = faces.plan.view(surface(faces.plan.point(end)).1);
                    normal.truncate().length() / normal.z.max(1e-3)
                };
                let (from, to) = (steepness(a), steepness(b));
                let part = if from + to > 0.0 {
                    to / (from + to)
                } else {
                    0.5
                };
                let chord = a.lerp(b, part);
                let vertex = faces.plan.view(surface(faces.plan.point(chord)).0);
                let off = vertex.distance(chord) / a.distance(b);
                if off > detail.flat
                    && vertex.is_finite()
                    && fits(&faces, (face, side), vertex, detail)
                {
                    cuts.put(&faces, (face, side), vertex);
                }
            }
        }
        Ok(cuts.net(&faces))
    }

    /// The same with each quad that `dense` tells of cut into four; `surface` moves a point onto the surface. Faces are numbered
    /// as [`Faces::new`] keeps them.
    pub fn refined(
        faces: &Faces,
        dense: impl Fn(usize) -> bool,
        surface: impl Fn(Vec3) -> Vec3,
    ) -> Self {
        let mut cuts = Cuts::new(faces);
        let onto = |point: Vec3| faces.plan.view(surface(faces.plan.point(point)));
        for face in 0..faces.len() {
            if sides(&faces.corners[face]) < 4 || !dense(face) {
                continue;
            }
            for side in 0..4 {
                if cuts.sides[face][side] == NONE {
                    let [a, b] = faces.side(face, side);
                    cuts.put(faces, (face, side), onto(0.5 * (a + b)));
                }
            }
            cuts.middles[face] = cuts.add(onto(faces.centers[face]));
        }
        cuts.net(faces)
    }
}

/// Whether a vertex on a side leaves no slivers on either side of it.
fn fits(faces: &Faces, (face, side): (usize, usize), vertex: Vec3, detail: &Detail) -> bool {
    let both = [Some((face, side)), across(faces, face, side)];
    both.into_iter().flatten().all(|(face, side)| {
        let corners = &faces.corners[face];
        let count = sides(corners);
        let corner = |k: usize| faces.vertices[corners[k % count] as usize];
        (side + 1..side + count)
            .all(|k| fullness(vertex, corner(k), corner(k + 1)) >= detail.sliver)
    })
}
