//! The distance to a mesh on voxels: negative inside.

use super::file::{Field, Leaf};
use super::particles::{BAND, each_voxel};
use crate::surface::SurfaceMesh;
use glam::{IVec3, Vec3};

/// Signed distance to the surface [m].
pub struct Distance<'a> {
    pub mesh: &'a SurfaceMesh,
    pub voxel: f32,
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

impl Distance<'_> {
    /// The corners of a triangle [voxels].
    pub fn corners(&self, triangle: usize) -> [Vec3; 3] {
        self.mesh.triangles[triangle].map(|v| self.mesh.positions[v as usize] / self.voxel)
    }

    /// The outward direction at a point of a triangle: between the normals of its corners, which is right on edges too.
    fn outward(&self, triangle: usize, share: Vec3, [a, b, c]: [Vec3; 3]) -> Vec3 {
        if self.mesh.normals.is_empty() {
            return (b - a).cross(c - a);
        }
        let [i, j, k] = self.mesh.triangles[triangle].map(|v| self.mesh.normals[v as usize]);
        share.x * i + share.y * j + share.z * k
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
        for triangle in things.iter().map(|&thing| thing as usize) {
            let corners = self.corners(triangle);
            let [a, b, c] = corners;
            let reach = (a.min(b).min(c) - BAND, a.max(b).max(c) + BAND);
            each_voxel(origin, reach, |place, slot| {
                let share = nearest(place, corners);
                let away = place - (share.x * a + share.y * b + share.z * c);
                let distance = away.length() * self.voxel;
                if distance < leaf.values[slot].abs() {
                    let inside = away.dot(self.outward(triangle, share, corners)) < 0.0;
                    leaf.values[slot] = if inside { -distance } else { distance };
                    leaf.active.set(slot);
                }
            });
        }
        leaf
    }
}
