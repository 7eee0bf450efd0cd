//! A camera that frames the whole run: chosen once, so that it does not move from frame to frame.

use super::camera::FILM;
use barchan_base::Bounds;
use barchan_sim::scene::View;
use glam::{Quat, Vec3};

/// Part of the points beyond either end of [`central_bounds`], along each axis.
const TAIL: f64 = 0.01;
/// Focal length of the automatic camera [m]: a short portrait lens, which hardly distorts.
const FOCAL: f32 = 0.045;
/// How far it is turned about up [rad].
const TURN: f32 = 0.55;
/// Room left around what is framed.
const MARGIN: f32 = 1.06;

/// The box around nearly all `points`: a few stray ones do not count.
pub fn central_bounds(points: impl Iterator<Item = Vec3>) -> Bounds {
    let mut axes: [Vec<f32>; 3] = Default::default();
    for point in points.filter(|point| point.is_finite()) {
        for (axis, value) in axes.iter_mut().zip(point.to_array()) {
            axis.push(value);
        }
    }
    if axes[0].is_empty() {
        return Bounds::EMPTY;
    }
    let end = |axis: &mut Vec<f32>, part: f64| {
        let at = ((axis.len() - 1) as f64 * part).round() as usize;
        *axis.select_nth_unstable_by(at, f32::total_cmp).1
    };
    let min = axes.each_mut().map(|axis| end(axis, TAIL));
    let max = axes.each_mut().map(|axis| end(axis, 1.0 - TAIL));
    Bounds {
        min: Vec3::from_array(min),
        max: Vec3::from_array(max),
    }
}

/// The level direction that a scene is seen from when the camera is not turned.
pub fn front(up: Vec3) -> Vec3 {
    if up == Vec3::Z {
        Vec3::NEG_Y
    } else if up == Vec3::X {
        Vec3::Y
    } else {
        Vec3::Z
    }
}

/// The nearest view of all of `points` in a picture of `size` pixels, from `rise` [rad] above the level.
pub fn frame(points: &[Vec3], up: Vec3, size: [u32; 2], rise: f32) -> View {
    let level = Quat::from_axis_angle(up, TURN) * front(up);
    let back = level * rise.cos() + up * rise.sin();
    let right = up.cross(back).normalize();
    let above = back.cross(right);
    // A camera at c, distance d back, sees a point at x aside and z towards it if |x - c| <= half (d - z): two bounds on c for
    // every point, which leave room from the d on at which the lowest upper one meets the highest lower one.
    let half_width = 0.5 * FILM / FOCAL / MARGIN;
    let half_height = half_width * size[1] as f32 / size[0] as f32;
    let mut distance = 0f32;
    let mut centre = Vec3::ZERO;
    for (axis, half) in [(right, half_width), (above, half_height)] {
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for point in points {
            let (x, z) = (point.dot(axis), point.dot(back));
            low = low.min(x - half * z);
            high = high.max(x + half * z);
        }
        distance = distance.max((high - low) / (2.0 * half));
        centre += axis * (0.5 * (low + high));
    }
    let depths = points.iter().map(|point| point.dot(back));
    let nearest = depths.clone().fold(f32::NEG_INFINITY, f32::max);
    let middle = 0.5 * (nearest + depths.fold(f32::INFINITY, f32::min));
    // Not into the picture's own foreground, and somewhere even if there is nothing to see.
    let distance = distance.max(nearest + 0.05 * (nearest - middle) + 1e-3);
    if !(distance.is_finite() && centre.is_finite() && middle.is_finite()) {
        return View {
            at: back * 3.0,
            look_at: Vec3::ZERO,
            focal: FOCAL,
        };
    }
    View {
        at: centre + back * distance,
        look_at: centre + back * middle,
        focal: FOCAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::camera::Camera;
    use crate::render::ray::Sampler;
    use glam::Vec2;

    #[test]
    fn strays_do_not_count() {
        let points = (0..1000).map(|i| Vec3::splat(i as f32 / 1000.0));
        let strays = [Vec3::splat(1e9), Vec3::NAN, Vec3::new(0.0, -1e9, 0.0)];
        let bounds = central_bounds(points.chain(strays));
        assert!(bounds.min.cmpge(Vec3::ZERO).all() && bounds.max.cmple(Vec3::ONE).all());
        assert!(bounds.size().min_element() > 0.95);
        assert!(central_bounds(std::iter::empty()).is_empty());
    }

    #[test]
    fn nothing_and_a_single_point_have_a_view() {
        for points in [&[][..], &[Vec3::splat(2.0)], &[Vec3::splat(f32::INFINITY)]] {
            let view = frame(points, Vec3::Y, [320, 180], 0.3);
            assert!(
                view.at.is_finite() && view.at.distance(view.look_at) > 1e-4,
                "{view:?}"
            );
        }
    }

    #[test]
    fn every_corner_is_in_the_picture() {
        let bounds = Bounds {
            min: Vec3::new(-3.0, 0.0, 1.0),
            max: Vec3::new(2.0, 0.4, 9.0),
        };
        for up in [Vec3::X, Vec3::Y, Vec3::Z] {
            let view = frame(&bounds.corners(), up, [320, 180], 0.3);
            let mut touching = 0;
            let camera = Camera::new(view, up, [320, 180], (0.0, None));
            let edge = |x: f32, y: f32| {
                camera
                    .ray(Vec2::new(x, y), &mut Sampler::new(0, 0, 0))
                    .direction
            };
            let (side, top) = (edge(320.0, 90.0), edge(160.0, 0.0));
            let tangent = |direction: Vec3| {
                let off = direction / direction.dot(camera.forward) - camera.forward;
                [
                    off.dot(side - camera.forward * camera.forward.dot(side)),
                    off.dot(top - camera.forward * camera.forward.dot(top)),
                ]
            };
            let most = [tangent(side)[0], tangent(top)[1]];
            for point in bounds.corners() {
                let at = tangent((point - view.at).normalize());
                assert!(
                    at[0].abs() < most[0] && at[1].abs() < most[1],
                    "{point} is outside"
                );
                touching += usize::from(at[0].abs() > 0.9 * most[0] || at[1].abs() > 0.9 * most[1]);
            }
            assert!(touching >= 2, "the view is too wide");
        }
    }
}
