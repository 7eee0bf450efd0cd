//! Volume, centre and second moments of a solid: what makes it turn. Exact for primitives and closed meshes, sampled
//! for everything else.

use super::{MeshShape, Shape};
use crate::Pose;
use crate::mesh::Mesh;
use crate::parallel::fold_chunks;
use glam::{DMat3, DVec3, Vec3};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Cells along the longest edge where a solid is sampled.
const CELLS: f32 = 64.0;

/// What a solid of density one weighs, and how it resists turning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Volume [m³].
    pub volume: f64,
    /// Centre of volume [m].
    pub center: DVec3,
    /// Inertia about the centre, for a density of one [m⁵].
    pub inertia: DMat3,
}

/// Integrals of 1, x and x xᵀ over a solid.
#[derive(Clone, Copy)]
struct Integrals {
    volume: f64,
    first: DVec3,
    second: DMat3,
}

impl Shape {
    /// Its moments; `None` where it has no end or no volume.
    pub fn moments(&self) -> Option<Moments> {
        let found = match self {
            Self::HalfSpace { .. } => None,
            Self::Mesh(mesh) => closed_mesh(mesh.mesh()).or_else(|| self.sampled_moments()),
            Self::Placed(shape, pose, scale) => Some(shape.moments()?.placed(*pose, *scale)),
            Self::Union(_)
            | Self::Intersection(_)
            | Self::Difference(..)
            | Self::SmoothUnion(..) => self.sampled_moments(),
            _ => Some(self.primitive_moments()),
        };
        found.filter(|moments| moments.volume > 0.0 && moments.volume.is_finite())
    }

    fn primitive_moments(&self) -> Moments {
        let square = |x: f32| f64::from(x) * f64::from(x);
        // Volume, inertia per volume across the axis and along it (y), and how far the centre is below the origin.
        let round = |volume: f64, across: f64, along: f64, below: f32| Moments {
            volume,
            center: DVec3::new(0.0, -f64::from(below), 0.0),
            inertia: DMat3::from_diagonal(DVec3::new(across, along, across) * volume),
        };
        match *self {
            Self::Sphere { radius } => {
                let inertia = 0.4 * square(radius);
                round(ball_volume(radius), inertia, inertia, 0.0)
            }
            Self::Cuboid { half } => {
                let [x, y, z] = half.to_array().map(square);
                let volume = 8.0 * f64::from(half.x) * f64::from(half.y) * f64::from(half.z);
                Moments {
                    volume,
                    center: DVec3::ZERO,
                    inertia: DMat3::from_diagonal(DVec3::new(y + z, x + z, x + y) * (volume / 3.0)),
                }
            }
            Self::Cylinder {
                radius,
                half_height,
            } => round(
                2.0 * PI * square(radius) * f64::from(half_height),
                square(radius) / 4.0 + square(half_height) / 3.0,
                square(radius) / 2.0,
                0.0,
            ),
            Self::Capsule {
                radius,
                half_height,
            } => {
                let tube = 2.0 * PI * square(radius) * f64::from(half_height);
                let caps = ball_volume(radius);
                // A half ball about its own centre, which is 3/8 of the radius from its flat side.
                let cap = 83.0 / 320.0 * square(radius) + square(half_height + 0.375 * radius);
                let across = tube * (square(radius) / 4.0 + square(half_height) / 3.0) + caps * cap;
                let along = square(radius) * (tube / 2.0 + caps * 0.4);
                let volume = tube + caps;
                round(volume, across / volume, along / volume, 0.0)
            }
            Self::Cone {
                radius,
                half_height,
            } => round(
                2.0 / 3.0 * PI * square(radius) * f64::from(half_height),
                0.15 * (square(radius) + square(half_height)),
                0.3 * square(radius),
                0.5 * half_height,
            ),
            Self::Torus { major, minor } => round(
                2.0 * PI * PI * f64::from(major) * square(minor),
                0.5 * square(major) + 0.625 * square(minor),
                square(major) + 0.75 * square(minor),
                0.0,
            ),
            _ => round(0.0, 0.0, 0.0, 0.0),
        }
    }

    /// Sums over cubes, each counted by the part of it that is inside.
    fn sampled_moments(&self) -> Option<Moments> {
        let bounds = self.bounds();
        if bounds.is_empty() || !bounds.is_finite() {
            return None;
        }
        let edge = bounds.size().max_element() / CELLS;
        let counts = (bounds.size() / edge).ceil().max(Vec3::ONE).as_uvec3() + 1;
        let [nx, ny, nz] = counts.to_array().map(|n| n as usize);
        // Sampled from outside the box on: a cube on the border counts with its part.
        let first = 0.5 * (bounds.min + bounds.max) - 0.5 * edge * (counts - 1).as_vec3();
        let place = |i: usize| {
            first + edge * Vec3::new((i % nx) as f32, (i / nx % ny) as f32, (i / nx / ny) as f32)
        };
        let cube = |i: usize| {
            let point = place(i);
            let part = (0.5 - self.distance(point) / edge).clamp(0.0, 1.0);
            Integrals::of_point(point.as_dvec3(), f64::from(part) * f64::from(edge).powi(3))
        };
        // A surface that encloses nothing still covers parts of cubes.
        let is_inside = |i: usize| self.distance(place(i)) < 0.0;
        if !(0..nx * ny * nz).any(is_inside) {
            return None;
        }
        let total = fold_chunks(
            nx * ny * nz,
            Integrals::NOTHING,
            |range| range.map(cube).fold(Integrals::NOTHING, Integrals::plus),
            Integrals::plus,
        );
        total.moments()
    }
}

fn ball_volume(radius: f32) -> f64 {
    4.0 / 3.0 * PI * f64::from(radius).powi(3)
}

impl Moments {
    /// Of the solid scaled evenly, then placed.
    pub fn placed(self, pose: Pose, scale: f32) -> Self {
        let scale = f64::from(scale);
        let turn = DMat3::from_quat(pose.rotation.as_dquat());
        Self {
            volume: self.volume * scale.powi(3),
            center: turn * (self.center * scale) + pose.position.as_dvec3(),
            inertia: turn * self.inertia * turn.transpose() * scale.powi(5),
        }
    }
}

impl Integrals {
    const NOTHING: Self = Self {
        volume: 0.0,
        first: DVec3::ZERO,
        second: DMat3::ZERO,
    };

    fn of_point(point: DVec3, volume: f64) -> Self {
        Self {
            volume,
            first: point * volume,
            second: outer(point, point) * volume,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            volume: self.volume + other.volume,
            first: self.first + other.first,
            second: self.second + other.second,
        }
    }

    fn moments(self) -> Option<Moments> {
        let center = (self.volume > 0.0).then(|| self.first / self.volume)?;
        let spread = self.second - outer(center, center) * self.volume;
        let trace = spread.x_axis.x + spread.y_axis.y + spread.z_axis.z;
        Some(Moments {
            volume: self.volume,
            center,
            inertia: DMat3::from_diagonal(DVec3::splat(trace)) - spread,
        })
    }
}

fn outer(a: DVec3, b: DVec3) -> DMat3 {
    DMat3::from_cols(a * b.x, a * b.y, a * b.z)
}

/// Sums over the tetrahedra between each triangle and a point; `None` where the mesh has a hole or no volume.
fn closed_mesh(mesh: &Mesh) -> Option<Moments> {
    if !is_closed(mesh) {
        return None;
    }
    // From a point in the middle, so that little cancels.
    let middle = (0.5 * (mesh.bounds().min + mesh.bounds().max)).as_dvec3();
    let mut total = Integrals::NOTHING;
    for triangle in 0..mesh.triangles().len() {
        let [a, b, c] = mesh.corners(triangle).map(|v| v.as_dvec3() - middle);
        let volume = a.dot(b.cross(c)) / 6.0;
        let sum = a + b + c;
        let squares = outer(a, a) + outer(b, b) + outer(c, c) + outer(sum, sum);
        total = total.plus(Integrals {
            volume,
            first: sum * (volume / 4.0),
            second: squares * (volume / 20.0),
        });
    }
    if total.volume < 0.0 {
        // Inside out.
        total = Integrals {
            volume: -total.volume,
            first: -total.first,
            second: total.second * -1.0,
        };
    }
    let moments = total.moments()?;
    Some(Moments {
        center: moments.center + middle,
        ..moments
    })
}

/// True where each edge is met by as many triangles one way as the other. Corners count as one by their place:
/// many files repeat them.
fn is_closed(mesh: &Mesh) -> bool {
    let key = |corner: u32| {
        // Adding zero makes −0 and 0 one place.
        (mesh.vertices()[corner as usize] + Vec3::ZERO)
            .to_array()
            .map(f32::to_bits)
    };
    let mut balance: BTreeMap<_, i64> = BTreeMap::new();
    for corners in mesh.triangles() {
        for side in 0..3 {
            let (a, b) = (key(corners[side]), key(corners[(side + 1) % 3]));
            let (edge, sign) = if a < b { ((a, b), 1) } else { ((b, a), -1) };
            *balance.entry(edge).or_default() += sign;
        }
    }
    balance.values().all(|count| *count == 0)
}

impl MeshShape {
    /// True where the mesh has no hole.
    pub fn is_closed(&self) -> bool {
        is_closed(self.mesh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::unit_cube;
    use glam::Quat;
    use std::sync::Arc;

    fn close(a: &Moments, b: &Moments, tolerance: f64) -> bool {
        let size = b.inertia.x_axis.x + b.inertia.y_axis.y + b.inertia.z_axis.z;
        let radius = (size / b.volume).sqrt();
        let inertia = a.inertia - b.inertia;
        let off = inertia
            .to_cols_array()
            .iter()
            .fold(0.0f64, |m, x| m.max(x.abs()));
        (a.volume / b.volume - 1.0).abs() < tolerance
            && (a.center - b.center).length() < tolerance * radius
            && off < tolerance * size
    }

    #[test]
    fn formulas_agree_with_sampling() {
        let (radius, half_height) = (0.4, 0.7);
        for shape in [
            Shape::Sphere { radius: 0.3 },
            Shape::Cuboid {
                half: Vec3::new(0.2, 0.5, 0.3),
            },
            Shape::Cylinder {
                radius,
                half_height,
            },
            Shape::Capsule {
                radius,
                half_height,
            },
            Shape::Cone {
                radius,
                half_height,
            },
            Shape::Torus {
                major: 0.5,
                minor: 0.2,
            },
        ] {
            let pose = Pose::new(Vec3::new(1.0, -2.0, 0.5), Quat::from_rotation_x(0.6));
            let placed = shape.placed(pose, 1.5);
            let (exact, sampled) = (placed.moments().unwrap(), placed.sampled_moments().unwrap());
            assert!(
                close(&sampled, &exact, 5e-3),
                "{placed:?}: {sampled:?} for {exact:?}"
            );
        }
    }

    #[test]
    fn a_closed_mesh_is_exact_in_either_orientation_and_an_open_one_is_sampled() {
        let cube = unit_cube();
        let half = 0.5 * cube.bounds().size();
        let center = 0.5 * (cube.bounds().min + cube.bounds().max);
        let expected = Shape::Cuboid { half }
            .placed(Pose::new(center, Quat::IDENTITY), 1.0)
            .moments()
            .unwrap();
        let moments = |mesh: Mesh| {
            Shape::Mesh(Arc::new(MeshShape::new(mesh, 0.05).unwrap()))
                .moments()
                .unwrap()
        };
        assert!(close(&moments(cube.clone()), &expected, 1e-6));
        let flipped: Vec<[u32; 3]> = cube
            .triangles()
            .iter()
            .map(|[a, b, c]| [*a, *c, *b])
            .collect();
        let flipped = Mesh::new(cube.vertices().to_vec(), flipped).unwrap();
        assert!(close(&moments(flipped), &expected, 1e-6));
        // Without one triangle it still holds most of its volume, as its winding number sees it.
        let open = Mesh::new(cube.vertices().to_vec(), cube.triangles()[1..].to_vec()).unwrap();
        assert!(closed_mesh(&open).is_none());
        assert!(close(&moments(open), &expected, 0.1));
    }

    #[test]
    fn what_has_no_end_or_no_volume_has_no_moments() {
        assert!(Shape::HalfSpace { normal: Vec3::Y }.moments().is_none());
        let ball = || Shape::Sphere { radius: 1.0 };
        assert!(
            Shape::Difference(Box::new(ball()), vec![ball()])
                .moments()
                .is_none()
        );
    }
}
