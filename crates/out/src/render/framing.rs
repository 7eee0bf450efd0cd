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

/// A view of all of `bounds` in a picture of `size` pixels, from `rise` [rad] above the level.
pub fn frame(bounds: Bounds, up: Vec3, size: [u32; 2], rise: f32) -> View {
    let bounds = if bounds.is_empty() || !bounds.is_finite() {
        Bounds {
            min: Vec3::splat(-0.5),
            max: Vec3::splat(0.5),
        }
    } else {
        bounds.grown(1e-3 * bounds.size().max_element().max(1e-3))
    };
    let level = Quat::from_axis_angle(up, TURN) * front(up);
    let back = level * rise.cos() + up * rise.sin();
    let right = up.cross(back).normalize();
    let above = back.cross(right);
    let centre = 0.5 * (bounds.min + bounds.max);
    let half_width = 0.5 * FILM / FOCAL / MARGIN;
    let half_height = half_width * size[1] as f32 / size[0] as f32;
    // The nearest distance at which every corner is in the picture.
    let distance = bounds.corners().into_iter().map(|corner| {
        let to = corner - centre;
        let aside = (to.dot(right).abs() / half_width).max(to.dot(above).abs() / half_height);
        to.dot(back) + aside
    });
    let distance = distance.fold(0.0, f32::max);
    View {
        at: centre + back * distance,
        look_at: centre,
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
    fn every_corner_is_in_the_picture() {
        let bounds = Bounds {
            min: Vec3::new(-3.0, 0.0, 1.0),
            max: Vec3::new(2.0, 0.4, 9.0),
        };
        for up in [Vec3::X, Vec3::Y, Vec3::Z] {
            let view = frame(bounds, up, [320, 180], 0.3);
            let camera = Camera::new(view, up, [320, 180], (0.0, None));
            let edge = |x: f32, y: f32| {
                camera
                    .ray(Vec2::new(x, y), &mut Sampler::new(0, 0, 0))
                    .direction
            };
            let corner = edge(320.0, 0.0);
            for point in bounds.corners() {
                let to = (point - view.at).normalize();
                let depth = to.dot(camera.forward) / corner.dot(camera.forward);
                let off = to / depth - camera.forward * camera.forward.dot(to / depth);
                let most = corner - camera.forward * camera.forward.dot(corner);
                assert!(off.length() <= most.length(), "{point} is outside");
            }
        }
    }
}
