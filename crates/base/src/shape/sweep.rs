//! The first touch of a ball that moves along a straight line, however thin the wall.

use super::Shape;
use glam::Vec3;

/// Where a moving ball first touches a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// How much of the way is free, from 0 to 1.
    pub fraction: f32,
    /// Unit normal of the surface there, against the motion.
    pub normal: Vec3,
}

/// Marching gives up after so many looks and stops the ball where it got to: slower, but never through.
const MOST_LOOKS: usize = 512;

/// A ball counts as touching within this part of its radius.
const SKIN: f32 = 1e-3;

/// Motion within this sine of the surface counts as along it, not into it.
const GRAZING: f32 = 1e-4;

impl Shape {
    /// First touch of a ball of `radius` [m] that moves from `from` to `to`; `None` if the way is free.
    ///
    /// The ball marches by the distance it is told (sphere tracing, Hart 1996). Its centre keeps at least half
    /// a radius away from the surface, so a wall of any thickness stops it. Mesh triangles, which a distance grid
    /// may be too coarse to show, are also met exactly by the centre's path.
    pub fn sweep(&self, from: Vec3, to: Vec3, radius: f32) -> Option<Touch> {
        let length = (to - from).length();
        if length == 0.0 {
            return None;
        }
        // The usual case, a way far from everything, costs one look.
        let start = self.distance(from);
        if start > radius + length {
            return None;
        }
        let direction = (to - from) / length;
        let traced = self.march(from, direction, length, (radius, start));
        let crossed = self.crossing(from, direction, length, radius);
        match (traced, crossed) {
            (Some(a), Some(b)) => Some(if b.fraction < a.fraction { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Marches from a place whose distance `start` is known already.
    fn march(
        &self,
        from: Vec3,
        direction: Vec3,
        length: f32,
        (radius, start): (f32, f32),
    ) -> Option<Touch> {
        let (mut gone, mut last) = (0.0f32, 0.0f32);
        let mut gap = start - radius;
        for _ in 0..MOST_LOOKS {
            let point = from + direction * gone;
            if gap > length - gone {
                return None;
            }
            if gap <= SKIN * radius {
                let normal = self.surface(point).normal;
                if normal.dot(direction) < -GRAZING {
                    let fraction = self.bisect(from, direction, [last, gone], radius) / length;
                    return Some(Touch { fraction, normal });
                }
            }
            if gone >= length {
                return None;
            }
            last = gone;
            gone = (gone + gap.max(0.5 * radius)).min(length);
            gap = self.distance(from + direction * gone) - radius;
        }
        Some(Touch {
            fraction: gone / length,
            normal: self.surface(from + direction * gone).normal,
        })
    }

    /// The least step may have led past the touch: finds it between the `last` look and this one.
    fn bisect(
        &self,
        from: Vec3,
        direction: Vec3,
        [mut free, mut touching]: [f32; 2],
        radius: f32,
    ) -> f32 {
        while touching - free > SKIN * radius {
            let middle = 0.5 * (free + touching);
            if middle <= free || middle >= touching {
                break; // A ball so small that rounding is all that is left.
            }
            if self.distance(from + direction * middle) - radius > 0.5 * SKIN * radius {
                free = middle;
            } else {
                touching = middle;
            }
        }
        free
    }

    /// Where the centre's path first meets a triangle of a mesh, less the room the ball itself needs.
    fn crossing(&self, from: Vec3, direction: Vec3, length: f32, radius: f32) -> Option<Touch> {
        match self {
            Self::Mesh(mesh) => {
                let (hit, normal) = mesh.cast_ray(from, direction, length + radius)?;
                let against = if normal.dot(direction) > 0.0 {
                    -normal
                } else {
                    normal
                };
                // Seen at a grazing angle the ball touches long before its centre would; one radius is kept at least.
                let room = radius / (-against.dot(direction)).max(0.1);
                let free = (hit - room).max(0.0);
                (free < length).then_some(Touch {
                    fraction: free / length,
                    normal: against,
                })
            }
            Self::Union(parts) => parts
                .iter()
                .filter_map(|part| part.crossing(from, direction, length, radius))
                .min_by(|a, b| a.fraction.total_cmp(&b.fraction)),
            Self::Placed(shape, pose, scale) => {
                let touch = shape.crossing(
                    pose.local_point(from) / *scale,
                    pose.local_vector(direction),
                    length / scale,
                    radius / scale,
                )?;
                Some(Touch {
                    normal: pose.vector(touch.normal),
                    ..touch
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_thin_wall_stops_a_fast_ball() {
        let wall = Shape::Cuboid {
            half: Vec3::new(0.0005, 1.0, 1.0),
        };
        for radius in [1e-4, 1e-3, 1e-2] {
            let from = Vec3::new(-0.3, 0.01, 0.02);
            let touch = wall
                .sweep(from, from + Vec3::X * 0.5, radius)
                .expect("the wall is in the way");
            let stop = from.x + 0.5 * touch.fraction;
            assert!(
                (stop - (-0.0005 - radius)).abs() < 0.01 * radius + 1e-6,
                "{stop} for radius {radius}"
            );
            assert!((touch.normal - Vec3::NEG_X).length() < 1e-3);
        }
    }

    #[test]
    fn touches_of_a_sphere_match_the_quadratic_formula() {
        let (big, radius) = (0.5f32, 0.05f32);
        let sphere = Shape::Sphere { radius: big };
        let random = Random::new(11, 0);
        let mut met = 0;
        for i in 0..2000 {
            let from = (random.in_cube(i, 0) - 0.5).normalize() * 0.9;
            let to = random.in_cube(i, 3) * 2.0 - 1.0;
            let motion = to - from;
            let (a, b, c) = (
                motion.length_squared(),
                from.dot(motion),
                from.length_squared() - (big + radius).powi(2),
            );
            let root = b * b - a * c;
            let exact = (root > 0.0 && b < 0.0)
                .then(|| (-b - root.sqrt()) / a)
                .filter(|t| *t <= 1.0);
            // Touches so grazing that rounding decides are left out.
            if root.abs() < 1e-3 {
                continue;
            }
            match (sphere.sweep(from, to, radius), exact) {
                (Some(touch), Some(exact)) => {
                    met += 1;
                    assert!(
                        (touch.fraction - exact).abs() < 2e-3,
                        "{} for {exact}",
                        touch.fraction
                    ); // the skin
                }
                (None, None) => {}
                (found, exact) => panic!("{found:?} for {exact:?}"),
            }
        }
        assert!(met > 300);
    }

    #[test]
    fn a_ball_may_slide_along_a_plane_and_leave_it() {
        let ground = Shape::HalfSpace { normal: Vec3::Y };
        let from = Vec3::new(0.0, 0.01, 0.0);
        assert_eq!(ground.sweep(from, from + Vec3::X, 0.01), None);
        assert_eq!(
            ground.sweep(from, from + Vec3::new(0.1, 0.1, 0.0), 0.01),
            None
        );
        assert_eq!(ground.sweep(from, from, 0.01), None);
        assert!(
            ground
                .sweep(from, from + Vec3::new(0.1, -0.001, 0.0), 0.01)
                .is_some()
        );
    }

    #[test]
    fn a_ball_smaller_than_rounding_finds_its_touch() {
        let ground = Shape::HalfSpace { normal: Vec3::Y };
        let from = Vec3::new(0.0, 0.01, 0.0);
        let touch = ground.sweep(from, -from, 1e-9).expect("it falls on it");
        assert!((touch.fraction - 0.5).abs() < 1e-3, "{}", touch.fraction);
    }
}
