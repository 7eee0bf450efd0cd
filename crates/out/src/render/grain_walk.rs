//! A ray's way through the cells of grains.

use super::grains::{GrainHit, Grains, Place, ROOT, Root};
use super::ray::Ray;
use glam::{IVec3, Vec3};

/// How far past a cell's border the walk goes on [cells]: beyond rounding, and less than anyone sees.
const NUDGE: f32 = 1e-3;

/// The first grain that `ray` meets before `limit` [m].
pub fn walk(grains: &Grains, ray: &Ray, limit: f32) -> Option<GrainHit> {
    let (origin, cell, cells) = grains.lattice();
    // In cells; the parameter along the ray stays in metres.
    let start = (ray.origin - origin) / cell;
    let direction = ray.direction / cell;
    let inverse = direction.recip();
    let (enter, leave) = crossing(start, inverse, cells.as_vec3());
    let limit = leave.min(limit);
    let nudge = NUDGE * cell;
    let mut t = enter.max(0.0) + nudge;
    let mut best: Option<Found> = None;
    while t < limit {
        let here = (start + direction * t)
            .as_ivec3()
            .clamp(IVec3::ZERO, cells - 1);
        let edge = match grains.place(here) {
            Place::Empty(edge) => edge,
            Place::Opaque => {
                return best.map(|found| found.hit(ray)).or(Some(GrainHit {
                    t,
                    normal: -ray.direction,
                    grain: None,
                }));
            }
            Place::Cell(root, touching) => {
                let corner = (here & !(ROOT - 1)).as_vec3();
                for &i in touching {
                    let sphere = root.spheres[i as usize];
                    let to = sphere.truncate() + corner - start;
                    let middle = to.dot(direction) * (cell * cell);
                    let aside = to - direction * middle;
                    let depth = sphere.w * sphere.w - aside.length_squared();
                    if depth > 0.0 {
                        let hit = middle - depth.sqrt() * cell;
                        if hit > 0.0 && hit < best.as_ref().map_or(limit, |best| best.t) {
                            let normal = (direction * hit - to) / sphere.w;
                            best = Some(Found {
                                t: hit,
                                normal,
                                root,
                                sphere: i,
                            });
                        }
                    }
                }
                1
            }
        };
        let end = exit(start, inverse, here, edge);
        if let Some(found) = best.as_ref().filter(|found| found.t <= end + nudge) {
            return Some(found.hit(ray));
        }
        t = end.max(t) + nudge;
    }
    best.map(|found| found.hit(ray))
}

/// The nearest sphere so far.
struct Found<'a> {
    t: f32,
    normal: Vec3,
    root: &'a Root,
    sphere: u32,
}

impl Found<'_> {
    fn hit(&self, ray: &Ray) -> GrainHit {
        GrainHit {
            t: self.t,
            normal: self.normal.normalize_or(-ray.direction),
            grain: Some(self.root.source(self.sphere)),
        }
    }
}

/// Where a ray enters and leaves the box from the origin to `size`.
fn crossing(start: Vec3, inverse: Vec3, size: Vec3) -> (f32, f32) {
    let (a, b) = (-start * inverse, (size - start) * inverse);
    (a.min(b).max_element(), a.max(b).min_element())
}

/// Where a ray leaves the cube of `edge` cells that `here` lies in.
#[inline]
fn exit(start: Vec3, inverse: Vec3, here: IVec3, edge: i32) -> f32 {
    let low = (here & !(edge - 1)).as_vec3();
    let far = Vec3::select(inverse.cmpge(Vec3::ZERO), low + edge as f32, low);
    ((far - start) * inverse).min_element()
}
