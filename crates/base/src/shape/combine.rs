//! Constructive combinations. Each picks, part by part, the distance that decides, and its normal.

use super::{Shape, Surface};
use crate::Bounds;
use glam::Vec3;

/// Far outside everything: the answer of a combination without parts.
const NOTHING: Surface = Surface {
    distance: f32::INFINITY,
    normal: Vec3::Y,
};

pub(super) fn union(parts: &[Shape], point: Vec3) -> Surface {
    parts.iter().fold(NOTHING, |nearest, part| {
        let surface = part.surface(point);
        if surface.distance < nearest.distance {
            surface
        } else {
            nearest
        }
    })
}

fn further(a: Surface, b: Surface) -> Surface {
    if b.distance > a.distance { b } else { a }
}

pub(super) fn intersection(parts: &[Shape], point: Vec3) -> Surface {
    parts
        .iter()
        .map(|part| part.surface(point))
        .reduce(further)
        .unwrap_or(NOTHING)
}

pub(super) fn difference(kept: &Shape, removed: &[Shape], point: Vec3) -> Surface {
    removed.iter().fold(kept.surface(point), |surface, part| {
        let hole = part.surface(point);
        further(
            surface,
            Surface {
                distance: -hole.distance,
                normal: -hole.normal,
            },
        )
    })
}

/// The polynomial smooth minimum of Quilez (2008), taken part by part: min(a, b) − h² w / 4 where
/// h = max(0, 1 − |a − b| / w). Its gradient is a convex combination of the parts' gradients, so the
/// result still never overestimates.
pub(super) fn smooth_union(parts: &[Shape], width: f32, point: Vec3) -> Surface {
    let blended = parts.iter().fold(NOTHING, |a, part| {
        let b = part.surface(point);
        let h = (1.0 - (a.distance - b.distance).abs() / width).max(0.0);
        let (near, far) = if a.distance < b.distance {
            (a, b)
        } else {
            (b, a)
        };
        Surface {
            distance: near.distance - 0.25 * h * h * width,
            normal: near.normal.lerp(far.normal, 0.5 * h),
        }
    });
    Surface {
        normal: blended.normal.normalize_or(Vec3::Y),
        ..blended
    }
}

/// How far a smooth union of so many parts bulges past their union, over its width. Each part adds h²/4 to the
/// bulge b before it, and can be no nearer to it than h = 1 − b.
pub(super) fn most_bulge(parts: usize) -> f32 {
    (1..parts).fold(0.0, |bulge: f32, _| bulge + 0.25 * (1.0 - bulge).powi(2))
}

pub(super) fn bounds_of_any(parts: &[Shape]) -> Bounds {
    parts
        .iter()
        .map(Shape::bounds)
        .fold(Bounds::EMPTY, Bounds::union)
}

pub(super) fn bounds_of_all(parts: &[Shape]) -> Bounds {
    parts
        .iter()
        .map(Shape::bounds)
        .fold(Bounds::EVERYTHING, Bounds::intersection)
}
