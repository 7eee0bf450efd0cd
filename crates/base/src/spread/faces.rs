//! A surface of quads and triangles, each knowing who lies across each of its sides (in the manner of Ptex, Burley &
//! Lacewell 2008).

use glam::{Vec2, Vec3};
use rayon::prelude::*;

/// No face, no vertex.
pub const NONE: u32 = u32::MAX;

/// Faces smaller than this part of the mean are slivers that no point could ever be counted on.
pub(super) const LEAST_AREA: f32 = 1e-4;

/// How a surface is looked at: from above, along −up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    right: Vec3,
    ahead: Vec3,
    up: Vec3,
}

impl Plan {
    /// The view along −`up`, a unit vector.
    pub fn new(up: Vec3) -> Self {
        let (right, ahead) = up.any_orthonormal_pair();
        Self { right, ahead, up }
    }

    /// A point or vector as seen in plan (x, y) and its height (z).
    #[inline]
    pub fn view(&self, point: Vec3) -> Vec3 {
        Vec3::new(
            point.dot(self.right),
            point.dot(self.ahead),
            point.dot(self.up),
        )
    }

    /// The point that is seen at `view`.
    #[inline]
    pub fn point(&self, view: Vec3) -> Vec3 {
        self.right * view.x + self.ahead * view.y + self.up * view.z
    }
}

/// The upward part of a surface. All places are as [`Plan`] sees them: x and y in plan, z the height.
#[derive(Clone, Debug)]
pub struct Faces {
    pub(super) plan: Plan,
    pub(super) vertices: Vec<Vec3>,
    /// Corners of each face, counter-clockwise from above; the last is [`NONE`] for a triangle.
    pub(super) corners: Vec<[u32; 4]>,
    /// The face across each side; side k joins corners k and k + 1. [`NONE`] at a rim.
    pub(super) neighbors: Vec<[u32; 4]>,
    pub(super) centers: Vec<Vec3>,
    pub(super) normals: Vec<Vec3>,
    pub(super) areas: Vec<f32>,
    /// The first face of the connected part that each face is of.
    pub(super) parts: Vec<u32>,
}

/// Why there is no surface to spread on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FacesError {
    /// Nothing looks up.
    #[error(
        "the surface has no face that looks up: all {0} are steeper than the limit, turned down, or without area"
    )]
    NoneUp(usize),
    /// A corner past the end.
    #[error("face {face} uses vertex {vertex}, but there are only {total}")]
    Index {
        /// The face, from 0.
        face: usize,
        /// The vertex it asks for.
        vertex: u32,
        /// How many there are.
        total: usize,
    },
}

/// Corners of a face, three or four.
#[inline]
pub(super) fn sides(corners: &[u32; 4]) -> usize {
    if corners[3] == NONE { 3 } else { 4 }
}

/// Centre, normal and area of a face.
pub(super) fn measure(vertices: &[Vec3], corners: &[u32; 4]) -> (Vec3, Vec3, f32) {
    let [a, b, c] = [0, 1, 2].map(|k| vertices[corners[k] as usize]);
    if corners[3] == NONE {
        let cross = (b - a).cross(c - a);
        return (
            (a + b + c) / 3.0,
            cross.normalize_or_zero(),
            0.5 * cross.length(),
        );
    }
    let d = vertices[corners[3] as usize];
    // Half the cross product of the diagonals, whether or not the quad is flat.
    let cross = (c - a).cross(d - b);
    (
        0.25 * (a + b + c + d),
        cross.normalize_or_zero(),
        0.5 * cross.length(),
    )
}

impl Faces {
    /// The faces that look up: whose normal is less than `steepest` [rad] from `up`. Corners run counter-clockwise seen from
    /// outside; the last of four is [`NONE`] for a triangle. Faces with a corner that is not finite are left out.
    ///
    /// # Errors
    /// If none looks up, or a corner does not exist.
    pub fn new(
        up: Vec3,
        vertices: &[Vec3],
        corners: &[[u32; 4]],
        steepest: f32,
    ) -> Result<Self, FacesError> {
        let plan = Plan::new(up);
        let total = vertices.len();
        for (face, corners) in corners.iter().enumerate() {
            let used = &corners[..sides(corners)];
            if let Some(&vertex) = used.iter().find(|v| **v as usize >= total) {
                return Err(FacesError::Index {
                    face,
                    vertex,
                    total,
                });
            }
        }
        let vertices: Vec<Vec3> = vertices.par_iter().map(|v| plan.view(*v)).collect();
        let limit = steepest.cos();
        let kept: Vec<([u32; 4], (Vec3, Vec3, f32))> = corners
            .par_iter()
            .map(|corners| (*corners, measure(&vertices, corners)))
            .filter(|(_, (center, normal, area))| {
                center.is_finite() && *area > 0.0 && area.is_finite() && normal.z > limit
            })
            .collect();
        let mean = kept.iter().map(|k| f64::from(k.1.2)).sum::<f64>() / kept.len().max(1) as f64;
        let least = LEAST_AREA * mean as f32;
        let kept: Vec<_> = kept.into_iter().filter(|k| k.1.2 >= least).collect();
        if kept.is_empty() {
            return Err(FacesError::NoneUp(corners.len()));
        }
        let mut faces = Self {
            plan,
            vertices,
            corners: kept.iter().map(|k| k.0).collect(),
            neighbors: Vec::new(),
            centers: kept.iter().map(|k| k.1.0).collect(),
            normals: kept.iter().map(|k| k.1.1).collect(),
            areas: kept.iter().map(|k| k.1.2).collect(),
            parts: Vec::new(),
        };
        faces.neighbors = adjacency(faces.vertices.len(), &faces.corners);
        faces.parts = parts(&faces.neighbors);
        Ok(faces)
    }

    /// Number of faces.
    pub fn len(&self) -> usize {
        self.corners.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.corners.is_empty()
    }

    /// How many of them are triangles.
    pub fn triangles(&self) -> usize {
        self.corners.iter().filter(|c| c[3] == NONE).count()
    }

    /// Areas [m²].
    pub fn areas(&self) -> &[f32] {
        &self.areas
    }

    /// The faces across each side of each face; [`NONE`] at a rim.
    pub fn neighbors(&self) -> &[[u32; 4]] {
        &self.neighbors
    }

    /// Corners of a face in space.
    pub fn outline(&self, face: usize) -> impl Iterator<Item = Vec3> + '_ {
        let corners = &self.corners[face];
        corners[..sides(corners)]
            .iter()
            .map(|v| self.plan.point(self.vertices[*v as usize]))
    }

    /// Area of the whole [m²].
    pub fn total_area(&self) -> f64 {
        self.areas.iter().map(|a| f64::from(*a)).sum()
    }

    /// Mean area of a face [m²].
    pub fn mean_area(&self) -> f64 {
        self.total_area() / self.len() as f64
    }

    /// Length of the side between a face and its neighbour over the distance of their centres: how easily points pass.
    #[inline]
    pub(super) fn ease(&self, face: usize, side: usize) -> f32 {
        let other = self.neighbors[face][side];
        if other == NONE {
            return 0.0;
        }
        let [a, b] = self.side(face, side);
        // In the order of the faces, so that both see the same number.
        let (low, high) = (face.min(other as usize), face.max(other as usize));
        let apart = self.centers[low].distance(self.centers[high]);
        // Centres closer than a tenth of the side would make a pair of slivers as stiff as one face.
        let length = a.distance(b);
        length / apart.max(0.1 * length)
    }

    /// Ends of a side.
    #[inline]
    pub(super) fn side(&self, face: usize, side: usize) -> [Vec3; 2] {
        let corners = &self.corners[face];
        let next = (side + 1) % sides(corners);
        [side, next].map(|k| self.vertices[corners[k] as usize])
    }

    /// Height of a face's plane at a place in plan.
    #[inline]
    pub(super) fn height(&self, face: usize, at: Vec2) -> f32 {
        let (center, normal) = (self.centers[face], self.normals[face]);
        let away = at - center.truncate();
        center.z - normal.truncate().dot(away) / normal.z
    }

    /// Whether a face covers a place in plan. A place on the line between two faces is covered by exactly one.
    #[inline]
    pub(super) fn covers(&self, face: usize, at: Vec2) -> bool {
        let corners = &self.corners[face];
        let count = sides(corners);
        let mut inside = false;
        let mut before = self.vertices[corners[count - 1] as usize];
        for corner in &corners[..count] {
            let here = self.vertices[*corner as usize];
            if (here.y > at.y) != (before.y > at.y) {
                // In one order of the ends, whichever face asks.
                let (low, high) = if before.y < here.y {
                    (before, here)
                } else {
                    (here, before)
                };
                let part = (at.y - low.y) / (high.y - low.y);
                inside ^= at.x < low.x + part * (high.x - low.x);
            }
            before = here;
        }
        inside
    }
}

/// The face across each side. Where more than two share a side they are paired in their order.
fn adjacency(vertices: usize, corners: &[[u32; 4]]) -> Vec<[u32; 4]> {
    let mut starts = vec![0u32; vertices + 1];
    for corner in corners.iter().flat_map(|c| &c[..sides(c)]) {
        starts[*corner as usize + 1] += 1;
    }
    for i in 0..vertices {
        starts[i + 1] += starts[i];
    }
    let mut around = vec![0u32; starts[vertices] as usize];
    let mut next = starts.clone();
    for (face, corners) in corners.iter().enumerate() {
        for corner in &corners[..sides(corners)] {
            around[next[*corner as usize] as usize] = face as u32;
            next[*corner as usize] += 1;
        }
    }
    let joins = |face: u32, a: u32, b: u32| {
        let corners = &corners[face as usize];
        let count = sides(corners);
        (0..count).any(|k| {
            let (from, to) = (corners[k], corners[(k + 1) % count]);
            (from, to) == (a, b) || (from, to) == (b, a)
        })
    };
    let across = |(face, own): (usize, &[u32; 4])| {
        let mut found = [NONE; 4];
        let count = sides(own);
        for side in 0..count {
            let (a, b) = (own[side], own[(side + 1) % count]);
            let near = &around[starts[a as usize] as usize..starts[a as usize + 1] as usize];
            let sharing = || near.iter().copied().filter(|other| joins(*other, a, b));
            let place = sharing().position(|other| other as usize == face);
            found[side] = place.and_then(|p| sharing().nth(p ^ 1)).unwrap_or(NONE);
        }
        found
    };
    corners.par_iter().enumerate().map(across).collect()
}

/// The first face of the connected part of each face.
fn parts(neighbors: &[[u32; 4]]) -> Vec<u32> {
    let mut parts = vec![NONE; neighbors.len()];
    let mut pending = Vec::new();
    for first in 0..neighbors.len() {
        if parts[first] != NONE {
            continue;
        }
        parts[first] = first as u32;
        pending.push(first as u32);
        while let Some(face) = pending.pop() {
            for &other in neighbors[face as usize].iter().filter(|n| **n != NONE) {
                if parts[other as usize] == NONE {
                    parts[other as usize] = first as u32;
                    pending.push(other);
                }
            }
        }
    }
    parts
}
