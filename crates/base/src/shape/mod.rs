//! Shapes: signed distance and normal at a point, and the first touch of a moving ball.
//!
//! A closed family, dispatched by `match`. Distances are negative inside and never overestimate how far away
//! the surface is, so a ball may always move by the distance it is told.

mod combine;
mod distance_grid;
mod heightfield;
mod mesh;
mod mesh_band;
mod moments;
mod primitive;
mod sweep;
mod tessellate;

pub use distance_grid::{DistanceGrid, DistanceGridError, NodeBlock, SignedDistance};
pub use heightfield::{Heightfield, HeightfieldError};
pub use mesh::MeshShape;
pub use moments::Moments;
pub use sweep::Touch;

use crate::{Bounds, Pose};
use glam::Vec3;
use std::sync::Arc;

/// What a shape answers at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// Signed distance [m], negative inside.
    pub distance: f32,
    /// Unit vector away from the solid: the gradient of the distance.
    pub normal: Vec3,
}

/// A solid in its own coordinates. Bodies of revolution stand along +y and are centred on the origin.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Everything below the plane through the origin with this unit normal.
    HalfSpace {
        /// Unit normal, pointing out of the solid.
        normal: Vec3,
    },
    /// A ball.
    Sphere {
        /// Radius [m].
        radius: f32,
    },
    /// A box.
    Cuboid {
        /// Half of each edge [m].
        half: Vec3,
    },
    /// An upright cylinder.
    Cylinder {
        /// Radius [m].
        radius: f32,
        /// Half of the height [m].
        half_height: f32,
    },
    /// A cylinder with hemispherical ends.
    Capsule {
        /// Radius [m].
        radius: f32,
        /// Half of the straight part's length [m].
        half_height: f32,
    },
    /// An upright cone, apex up.
    Cone {
        /// Radius of the base [m].
        radius: f32,
        /// Half of the height [m].
        half_height: f32,
    },
    /// A ring that lies flat.
    Torus {
        /// From the axis to the middle of the tube [m].
        major: f32,
        /// Radius of the tube [m].
        minor: f32,
    },
    /// A triangle mesh, closed or not.
    Mesh(Arc<MeshShape>),
    /// What is in any of the parts.
    Union(Vec<Shape>),
    /// What is in all of the parts.
    Intersection(Vec<Shape>),
    /// The first without the others.
    Difference(Box<Shape>, Vec<Shape>),
    /// A union whose creases are filled over a width [m].
    SmoothUnion(Vec<Shape>, f32),
    /// A shape moved, turned and scaled evenly.
    Placed(Box<Shape>, Pose, f32),
}

impl Shape {
    /// This shape, scaled evenly, then placed. Placing twice is placing once, elsewhere.
    pub fn placed(self, pose: Pose, scale: f32) -> Self {
        let unscaled = scale.to_bits() == 1f32.to_bits();
        match self {
            shape if pose == Pose::IDENTITY && unscaled => shape,
            Self::Placed(shape, inner, inner_scale) => {
                let position = pose.point(inner.position * scale);
                Self::Placed(
                    shape,
                    Pose::new(position, pose.rotation * inner.rotation),
                    scale * inner_scale,
                )
            }
            shape => Self::Placed(Box::new(shape), pose, scale),
        }
    }

    /// Distance and normal at `point`.
    pub fn surface(&self, point: Vec3) -> Surface {
        match self {
            Self::HalfSpace { normal } => Surface {
                distance: normal.dot(point),
                normal: *normal,
            },
            Self::Sphere { radius } => primitive::sphere(point, *radius),
            Self::Cuboid { half } => primitive::cuboid(point, *half),
            Self::Cylinder {
                radius,
                half_height,
            } => primitive::cylinder(point, *radius, *half_height),
            Self::Capsule {
                radius,
                half_height,
            } => primitive::capsule(point, *radius, *half_height),
            Self::Cone {
                radius,
                half_height,
            } => primitive::cone(point, *radius, *half_height),
            Self::Torus { major, minor } => primitive::torus(point, *major, *minor),
            Self::Mesh(mesh) => mesh.surface(point),
            Self::Union(parts) => combine::union(parts, point),
            Self::Intersection(parts) => combine::intersection(parts, point),
            Self::Difference(kept, removed) => combine::difference(kept, removed, point),
            Self::SmoothUnion(parts, width) => combine::smooth_union(parts, *width, point),
            Self::Placed(shape, pose, scale) => {
                let local = shape.surface(pose.local_point(point) / *scale);
                Surface {
                    distance: local.distance * scale,
                    normal: pose.vector(local.normal),
                }
            }
        }
    }

    /// Signed distance [m] at `point`.
    pub fn distance(&self, point: Vec3) -> f32 {
        match self {
            // Only these are cheaper without the normal.
            Self::Mesh(mesh) => mesh.distance(point),
            Self::Placed(shape, pose, scale) => {
                shape.distance(pose.local_point(point) / *scale) * scale
            }
            _ => self.surface(point).distance,
        }
    }

    /// True where the solid is surely further than `reach` [m] from `point`; cheaper than its distance, and never wrong
    /// when it says so.
    #[inline]
    pub fn is_beyond(&self, point: Vec3, reach: f32) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.is_beyond(point, reach),
            Self::Placed(shape, pose, scale) => {
                shape.is_beyond(pose.local_point(point) / *scale, reach / scale)
            }
            _ => self.distance(point) > reach,
        }
    }

    /// True where `point` is inside; for meshes exact, where the sampled distance is only near.
    pub fn contains(&self, point: Vec3) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.contains(point),
            Self::Union(parts) => parts.iter().any(|part| part.contains(point)),
            Self::Intersection(parts) => parts.iter().all(|part| part.contains(point)),
            Self::Difference(kept, removed) => {
                kept.contains(point) && !removed.iter().any(|part| part.contains(point))
            }
            Self::Placed(shape, pose, scale) => shape.contains(pose.local_point(point) / *scale),
            _ => self.distance(point) < 0.0,
        }
    }

    /// A box around the solid; infinite for half-spaces.
    pub fn bounds(&self) -> Bounds {
        let around = |half: Vec3| Bounds {
            min: -half,
            max: half,
        };
        match self {
            Self::HalfSpace { .. } => Bounds::EVERYTHING,
            Self::Sphere { radius } => around(Vec3::splat(*radius)),
            Self::Cuboid { half } => around(*half),
            Self::Cylinder {
                radius,
                half_height,
            }
            | Self::Cone {
                radius,
                half_height,
            } => around(Vec3::new(*radius, *half_height, *radius)),
            Self::Capsule {
                radius,
                half_height,
            } => around(Vec3::new(*radius, half_height + radius, *radius)),
            Self::Torus { major, minor } => around(Vec3::new(major + minor, *minor, major + minor)),
            Self::Mesh(mesh) => mesh.bounds(),
            Self::Union(parts) => combine::bounds_of_any(parts),
            Self::SmoothUnion(parts, width) => {
                combine::bounds_of_any(parts).grown(combine::most_bulge(parts.len()) * width)
            }
            Self::Intersection(parts) => combine::bounds_of_all(parts),
            Self::Difference(kept, _) => kept.bounds(),
            Self::Placed(shape, pose, scale) => {
                let local = shape.bounds();
                pose.bounds(Bounds {
                    min: local.min * *scale,
                    max: local.max * *scale,
                })
            }
        }
    }

    /// Volume [m³], estimated on a lattice of about 40³ points; infinite for unbounded shapes.
    pub fn estimate_volume(&self) -> f64 {
        let bounds = self.bounds();
        if bounds.is_empty() {
            return 0.0;
        }
        if !bounds.is_finite() {
            return f64::INFINITY;
        }
        const POINTS: u32 = 40;
        let step = bounds.size() / POINTS as f32;
        let mut inside = 0u32;
        for i in 0..POINTS.pow(3) {
            let index = Vec3::new(
                (i % POINTS) as f32,
                (i / POINTS % POINTS) as f32,
                (i / POINTS / POINTS) as f32,
            );
            inside += u32::from(self.contains(bounds.min + (index + 0.5) * step));
        }
        let cell = step.as_dvec3();
        f64::from(inside) * cell.x * cell.y * cell.z
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use glam::Quat;

    #[allow(clippy::too_many_lines)] // a list of every shape
    fn samples() -> Vec<(&'static str, Shape)> {
        let sphere = || Shape::Sphere { radius: 0.5 };
        let aside = |shape: Shape| {
            shape.placed(
                Pose::new(Vec3::new(0.4, 0.1, 0.0), Quat::from_rotation_x(0.5)),
                1.0,
            )
        };
        vec![
            (
                "half-space",
                Shape::HalfSpace {
                    normal: Vec3::new(0.6, 0.8, 0.0),
                },
            ),
            ("sphere", sphere()),
            (
                "box",
                Shape::Cuboid {
                    half: Vec3::new(0.5, 0.3, 0.7),
                },
            ),
            (
                "cylinder",
                Shape::Cylinder {
                    radius: 0.4,
                    half_height: 0.6,
                },
            ),
            (
                "capsule",
                Shape::Capsule {
                    radius: 0.3,
                    half_height: 0.4,
                },
            ),
            (
                "cone",
                Shape::Cone {
                    radius: 0.6,
                    half_height: 0.5,
                },
            ),
            (
                "torus",
                Shape::Torus {
                    major: 0.6,
                    minor: 0.2,
                },
            ),
            ("union", Shape::Union(vec![sphere(), aside(sphere())])),
            (
                "intersection",
                Shape::Intersection(vec![sphere(), aside(sphere())]),
            ),
            (
                "difference",
                Shape::Difference(Box::new(sphere()), vec![aside(sphere())]),
            ),
            (
                "smooth union",
                Shape::SmoothUnion(vec![sphere(), aside(sphere())], 0.2),
            ),
            (
                "placed",
                Shape::Cone {
                    radius: 0.6,
                    half_height: 0.5,
                }
                .placed(
                    Pose::new(Vec3::new(0.1, -0.2, 0.3), Quat::from_rotation_z(0.8)),
                    1.3,
                ),
            ),
        ]
    }

    fn points() -> impl Iterator<Item = Vec3> {
        let random = Random::new(3, 0);
        (0..2000).map(move |i| random.in_cube(i, 0) * 3.0 - 1.5)
    }

    #[test]
    fn a_smooth_union_of_many_stays_within_its_bounds() {
        for count in 2..=5 {
            let parts = vec![Shape::Sphere { radius: 0.5 }; count];
            let shape = Shape::SmoothUnion(parts, 0.4);
            let mut inwards = (0..1000).rev().map(|i| i as f32 * 0.001);
            let reach = inwards.find(|y| shape.contains(Vec3::Y * *y));
            let bounds = shape.bounds().max.y;
            assert!(
                reach.unwrap() <= bounds,
                "{count}: {reach:?} beyond {bounds}"
            );
            assert!(reach.unwrap() > bounds - 0.002, "{count}: they are tight");
        }
    }

    #[test]
    fn normals_are_the_gradient_of_the_distance() {
        for (name, shape) in samples() {
            let step = 1e-3;
            let mut off = 0;
            for point in points() {
                let slope = Vec3::from_array([Vec3::X, Vec3::Y, Vec3::Z].map(|axis| {
                    (shape.distance(point + axis * step) - shape.distance(point - axis * step))
                        / (2.0 * step)
                }));
                let normal = shape.surface(point).normal;
                assert!(
                    (normal.length() - 1.0).abs() < 1e-3,
                    "{name} at {point}: {normal}"
                );
                // Inside a fillet the field is flatter than a distance; its direction still counts.
                off += usize::from((slope.normalize() - normal).length() > 0.02); // f32 differences over 2 mm
            }
            // Only points whose difference straddles a crease (edges, medial axes) may disagree.
            assert!(
                off < 40,
                "{name}: {off} of 2000 normals are not the gradient"
            );
        }
    }

    #[test]
    fn distances_never_overestimate() {
        for (name, shape) in samples() {
            let all: Vec<Vec3> = points().collect();
            for pair in all.windows(2) {
                let (a, b) = (shape.distance(pair[0]), shape.distance(pair[1]));
                assert!(
                    (a - b).abs() <= (pair[0] - pair[1]).length() + 1e-5,
                    "{name}: {pair:?}"
                );
            }
        }
    }

    #[test]
    fn placing_twice_is_placing_once_elsewhere() {
        let (a, b) = (
            Pose::new(Vec3::new(0.1, 0.2, -0.3), Quat::from_rotation_x(0.4)),
            Pose::new(Vec3::new(-0.5, 0.0, 0.2), Quat::from_rotation_z(1.1)),
        );
        let cone = || Shape::Cone {
            radius: 0.6,
            half_height: 0.5,
        };
        let folded = cone().placed(a, 1.3).placed(b, 0.7);
        let nested = Shape::Placed(Box::new(Shape::Placed(Box::new(cone()), a, 1.3)), b, 0.7);
        for point in points() {
            let (x, y) = (folded.surface(point), nested.surface(point));
            assert!(
                (x.distance - y.distance).abs() < 1e-5 && (x.normal - y.normal).length() < 1e-3,
                "{point}"
            );
        }
    }

    #[test]
    fn solids_lie_within_their_bounds() {
        for (name, shape) in samples() {
            let bounds = shape.bounds().grown(1e-5);
            for point in points().filter(|point| shape.contains(*point)) {
                assert!(bounds.contains(point), "{name}: {point}");
                assert!(shape.distance(point) < 0.0, "{name}: {point}");
            }
        }
    }

    #[test]
    fn volumes_match_their_formulas() {
        use std::f64::consts::PI;
        let expected = [
            (Shape::Sphere { radius: 0.5 }, PI / 6.0),
            (
                Shape::Cylinder {
                    radius: 0.4,
                    half_height: 0.6,
                },
                PI * 0.16 * 1.2,
            ),
            (
                Shape::Cone {
                    radius: 0.6,
                    half_height: 0.5,
                },
                PI * 0.36 / 3.0,
            ),
            (
                Shape::Torus {
                    major: 0.6,
                    minor: 0.2,
                },
                2.0 * PI * PI * 0.6 * 0.04,
            ),
            (
                Shape::Capsule {
                    radius: 0.3,
                    half_height: 0.4,
                },
                PI * (0.09 * 0.8 + 4.0 / 3.0 * 0.027),
            ),
        ];
        for (shape, volume) in expected {
            let estimate = shape.estimate_volume();
            assert!(
                (estimate / volume - 1.0).abs() < 0.02,
                "{shape:?}: {estimate} for {volume}"
            ); // 40³ points
        }
    }
}
