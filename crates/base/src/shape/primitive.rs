//! Exact signed distances of simple solids, with their gradients.

use super::Surface;
use glam::{Vec2, Vec3};

/// Below this length [m] a direction is rounding noise, and any unit vector is as good.
const TINY: f32 = 1e-12;

fn unit_or(vector: Vec3, fallback: Vec3) -> Vec3 {
    let length = vector.length();
    if length > TINY {
        vector / length
    } else {
        fallback
    }
}

pub(super) fn sphere(point: Vec3, radius: f32) -> Surface {
    Surface {
        distance: point.length() - radius,
        normal: unit_or(point, Vec3::Y),
    }
}

pub(super) fn cuboid(point: Vec3, half: Vec3) -> Surface {
    let sign = Vec3::ONE.copysign(point);
    let beyond = point.abs() - half;
    let outside = beyond.max(Vec3::ZERO);
    let length = outside.length();
    if length > TINY {
        return Surface {
            distance: length,
            normal: outside / length * sign,
        };
    }
    // Inside, the nearest face is the one with the least depth.
    let depth = beyond.max_element();
    let axis = beyond.max_position();
    Surface {
        distance: depth,
        normal: Vec3::AXES[axis] * sign,
    }
}

pub(super) fn capsule(point: Vec3, radius: f32, half_height: f32) -> Surface {
    let along = point.y.clamp(-half_height, half_height);
    let from_axis = point - Vec3::Y * along;
    Surface {
        distance: from_axis.length() - radius,
        normal: unit_or(from_axis, Vec3::X),
    }
}

pub(super) fn torus(point: Vec3, major: f32, minor: f32) -> Surface {
    revolve(point, |p| {
        let from_tube = p - Vec2::new(major, 0.0);
        let length = from_tube.length();
        let normal = if length > TINY {
            from_tube / length
        } else {
            Vec2::Y
        };
        (length - minor, normal)
    })
}

pub(super) fn cylinder(point: Vec3, radius: f32, half_height: f32) -> Surface {
    revolve(point, |p| {
        let up = 1.0f32.copysign(p.y);
        let beyond = Vec2::new(p.x - radius, p.y.abs() - half_height);
        let outside = beyond.max(Vec2::ZERO);
        let length = outside.length();
        if length > TINY {
            (length, outside / length * Vec2::new(1.0, up))
        } else if beyond.x > beyond.y {
            (beyond.x, Vec2::X)
        } else {
            (beyond.y, Vec2::new(0.0, up))
        }
    })
}

pub(super) fn cone(point: Vec3, radius: f32, half_height: f32) -> Surface {
    let (rim, apex) = (Vec2::new(radius, -half_height), Vec2::new(0.0, half_height));
    let slant = (apex - rim).normalize();
    let outward = Vec2::new(slant.y, -slant.x);
    revolve(point, |p| {
        let below_base = -half_height - p.y;
        let past_slant = outward.dot(p - rim);
        if below_base <= 0.0 && past_slant <= 0.0 {
            return if below_base > past_slant {
                (below_base, Vec2::NEG_Y)
            } else {
                (past_slant, outward)
            };
        }
        let on_base = Vec2::new(p.x.min(radius), -half_height);
        let along = slant.dot(p - rim).clamp(0.0, (apex - rim).length());
        let on_slant = rim + slant * along;
        let (to_base, to_slant) = (p - on_base, p - on_slant);
        let away = if to_base.length_squared() < to_slant.length_squared() {
            to_base
        } else {
            to_slant
        };
        let length = away.length();
        (
            length,
            if length > TINY {
                away / length
            } else {
                outward
            },
        )
    })
}

/// Lifts a distance in the half-plane (radius, height) to a solid of revolution about y.
fn revolve(point: Vec3, profile: impl Fn(Vec2) -> (f32, Vec2)) -> Surface {
    let radius = Vec2::new(point.x, point.z).length();
    let (distance, slope) = profile(Vec2::new(radius, point.y));
    let outward = if radius > TINY {
        Vec3::new(point.x / radius, 0.0, point.z / radius)
    } else {
        Vec3::X
    };
    Surface {
        distance,
        normal: outward * slope.x + Vec3::Y * slope.y,
    }
}
