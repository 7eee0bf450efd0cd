//! The distance to a mesh on voxels: negative inside. What lies behind all triangles nearest to it is inside; where they do not agree, at
//! edges and tips, the winding number decides, as for every mesh.

use super::file::{Field, Leaf};
use super::particles::{BAND, each_voxel};
use super::tree::{EDGE, VOXELS};
use crate::surface::SurfaceMesh;
use barchan_base::mesh::{Mesh, WindingTree};
use glam::{IVec3, Vec3};

/// Distances that differ by less than this part are the same: to the edge or the corner that triangles share.
const SAME: f32 = 1e-4;

/// Signed distance to the surface [m].
pub struct Distance<'a> {
    mesh: &'a SurfaceMesh,
    voxel: f32,
    /// Tells what is inside where the triangles do not agree; none where no triangle has an area.
    winding: Option<WindingTree>,
    /// -1 where triangles are counter-clockwise seen from inside.
    outward: f32,
}

/// Where a voxel is, for the triangles nearest to it.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Outside,
    Inside,
    /// Behind some of them, before others.
    Disputed,
}

/// How much of each corner the point of the triangle nearest to `p` has (Ericson, Real-Time Collision Detection, 5.1.5).
fn nearest(p: Vec3, [a, b, c]: [Vec3; 3]) -> Vec3 {
    let (ab, ac) = (b - a, c - a);
    let (d1, d2) = (ab.dot(p - a), ac.dot(p - a));
    let (d3, d4) = (ab.dot(p - b), ac.dot(p - b));
    let (d5, d6) = (ab.dot(p - c), ac.dot(p - c));
    if d1 <= 0.0 && d2 <= 0.0 {
        return Vec3::X;
    }
    if d3 >= 0.0 && d4 <= d3 {
        return Vec3::Y;
    }
    if d6 >= 0.0 && d5 <= d6 {
        return Vec3::Z;
    }
    let (va, vb, vc) = (d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2);
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        let t = d1 / (d1 - d3);
        return Vec3::new(1.0 - t, t, 0.0);
    }
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        let t = d2 / (d2 - d6);
        return Vec3::new(1.0 - t, 0.0, t);
    }
    if va <= 0.0 && d4 >= d3 && d5 >= d6 {
        let t = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        return Vec3::new(0.0, 1.0 - t, t);
    }
    Vec3::new(va, vb, vc) / (va + vb + vc)
}

impl<'a> Distance<'a> {
    pub fn new(mesh: &'a SurfaceMesh, voxel: f32) -> Self {
        let checked = Mesh::new(mesh.positions.clone(), mesh.triangles.clone()).ok();
        let volume = |[a, b, c]: &[u32; 3]| {
            let [a, b, c] = [a, b, c].map(|v| mesh.positions[*v as usize].as_dvec3());
            a.dot(b.cross(c))
        };
        let volume: f64 = mesh.triangles.iter().map(volume).sum();
        Self {
            mesh,
            voxel,
            winding: checked.as_ref().map(WindingTree::new),
            outward: if volume < 0.0 { -1.0 } else { 1.0 },
        }
    }

    /// The corners of a triangle [voxels].
    pub fn corners(&self, triangle: usize) -> [Vec3; 3] {
        self.mesh.triangles[triangle].map(|v| self.mesh.positions[v as usize] / self.voxel)
    }

    /// On which side of a triangle `away` points, which leads there from its nearest point.
    fn side(&self, away: Vec3, [a, b, c]: [Vec3; 3]) -> Side {
        let before = away.dot((b - a).cross(c - a)) * self.outward;
        if before > 0.0 {
            Side::Outside
        } else if before < 0.0 {
            Side::Inside
        } else {
            Side::Disputed
        }
    }

    fn is_inside(&self, voxel: Vec3, side: Side) -> bool {
        let ask = || {
            self.winding
                .as_ref()
                .is_some_and(|tree| tree.contains(voxel * self.voxel))
        };
        side == Side::Inside || side == Side::Disputed && ask()
    }
}

impl Field for Distance<'_> {
    type Value = f32;

    fn name(&self) -> (&'static str, &'static str) {
        ("distance", "level set")
    }

    fn background(&self) -> f32 {
        BAND * self.voxel
    }

    fn is_level_set(&self) -> bool {
        true
    }

    fn leaf(&self, origin: IVec3, things: &[u32]) -> Leaf<f32> {
        let mut leaf = Leaf::filled(self.background());
        let mut sides = [Side::Outside; VOXELS];
        for triangle in things.iter().map(|&thing| thing as usize) {
            let corners = self.corners(triangle);
            let [a, b, c] = corners;
            let reach = (a.min(b).min(c) - BAND, a.max(b).max(c) + BAND);
            each_voxel(origin, reach, |place, slot| {
                let share = nearest(place, corners);
                let away = place - (share.x * a + share.y * b + share.z * c);
                let (distance, known) = (away.length() * self.voxel, leaf.values[slot]);
                let is_nearer = distance < known * (1.0 - SAME);
                if is_nearer || leaf.active.get(slot) && distance < known * (1.0 + SAME) {
                    let side = self.side(away, corners);
                    sides[slot] = match is_nearer || sides[slot] == side {
                        true => side,
                        false => Side::Disputed,
                    };
                    leaf.values[slot] = known.min(distance);
                    leaf.active.set(slot);
                }
            });
        }
        let all = (origin.as_vec3(), (origin + EDGE).as_vec3());
        each_voxel(origin, all, |place, slot| {
            if leaf.active.get(slot) && self.is_inside(place, sides[slot]) {
                leaf.values[slot] = -leaf.values[slot];
            }
        });
        leaf
    }
}
