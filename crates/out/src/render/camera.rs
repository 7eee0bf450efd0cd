//! From a place in the picture to a ray.

use super::ray::{Ray, Sampler, in_disc};
use barchan_sim::scene::{CameraPath, View};
use glam::{Vec2, Vec3};

/// Width of the film [m]: focal lengths mean what they do on a full-frame camera.
pub const FILM: f32 = 0.036;

/// A camera at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    /// Where it stands [m].
    pub at: Vec3,
    /// Unit direction of view.
    pub forward: Vec3,
    right: Vec3,
    up: Vec3,
    /// Half the width and height of the picture at distance one.
    half: Vec2,
    /// Radius of the lens [m].
    lens: f32,
    /// Distance that is sharp [m].
    focus: f32,
    size: Vec2,
}

impl Camera {
    /// The camera of `view` for pictures of `size` pixels, with a lens of diameter `aperture` [m] sharp at `focus` [m].
    pub fn new(
        view: View,
        up: Vec3,
        size: [u32; 2],
        (aperture, focus): (f32, Option<f32>),
    ) -> Self {
        let to = view.look_at - view.at;
        let forward = to.normalize_or(Vec3::NEG_Z);
        // Straight up or down, any side will do.
        let side = forward.cross(up);
        let right = if side.length_squared() > 1e-8 {
            side.normalize()
        } else {
            forward.any_orthonormal_vector()
        };
        let half_width = 0.5 * FILM / view.focal;
        let size = Vec2::new(size[0] as f32, size[1] as f32);
        Self {
            at: view.at,
            forward,
            right,
            up: right.cross(forward),
            half: Vec2::new(half_width, half_width * size.y / size.x),
            lens: 0.5 * aperture,
            focus: focus.unwrap_or(to.length()),
            size,
        }
    }

    /// The camera of `path` at `time` [s].
    pub fn on_path(path: &CameraPath, time: f64, up: Vec3, size: [u32; 2]) -> Self {
        Self::new(
            view_at(&path.keys, time),
            up,
            size,
            (path.aperture, path.focus),
        )
    }

    /// A ray through `pixel`, counted from the upper left corner, in units of pixels.
    pub fn ray(&self, pixel: Vec2, sampler: &mut Sampler) -> Ray {
        let film = (pixel / self.size * 2.0 - 1.0) * self.half;
        let to = self.forward + self.right * film.x - self.up * film.y;
        if self.lens == 0.0 {
            return Ray {
                origin: self.at,
                direction: to.normalize(),
            };
        }
        let shift = in_disc(sampler.pair()) * self.lens;
        let origin = self.at + self.right * shift.x + self.up * shift.y;
        let target = self.at + to * self.focus;
        Ray {
            origin,
            direction: (target - origin).normalize(),
        }
    }
}

/// The view at `time` [s], gliding between keys and still outside them.
fn view_at(keys: &[(f64, View)], time: f64) -> View {
    let next = keys.partition_point(|(t, _)| *t <= time);
    if next == 0 || next == keys.len() {
        return keys[next.saturating_sub(1)].1;
    }
    let ((t0, a), (t1, b)) = (keys[next - 1], keys[next]);
    let f = ((time - t0) / (t1 - t0)) as f32;
    let f = f * f * (3.0 - 2.0 * f);
    View {
        at: a.at.lerp(b.at, f),
        look_at: a.look_at.lerp(b.look_at, f),
        focal: a.focal + (b.focal - a.focal) * f,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_looks_at_the_target_and_right_is_right() {
        let view = View {
            at: Vec3::new(0.0, 1.0, 5.0),
            look_at: Vec3::new(0.0, 1.0, 0.0),
            focal: 0.018,
        };
        let camera = Camera::new(view, Vec3::Y, [200, 100], (0.0, None));
        let mut sampler = Sampler::new(0, 0, 0);
        let middle = camera.ray(Vec2::new(100.0, 50.0), &mut sampler);
        assert!((middle.direction - Vec3::NEG_Z).length() < 1e-6);
        // 18 mm on 36 mm film: the edge is 45 degrees off.
        let right = camera.ray(Vec2::new(200.0, 50.0), &mut sampler).direction;
        assert!((right.x + right.z).abs() < 1e-6 && right.x > 0.5);
        assert!(camera.ray(Vec2::new(100.0, 0.0), &mut sampler).direction.y > 0.2);
    }

    #[test]
    fn a_wide_lens_is_sharp_only_at_its_focus() {
        let view = View {
            at: Vec3::ZERO,
            look_at: Vec3::NEG_Z,
            focal: 0.035,
        };
        let camera = Camera::new(view, Vec3::Y, [100, 100], (0.2, Some(3.0)));
        let spread = |distance: f32| {
            let points = (0..64).map(|i| {
                let ray = camera.ray(Vec2::new(70.0, 40.0), &mut Sampler::new(0, 0, i));
                ray.at(-distance / ray.direction.z)
            });
            let points: Vec<Vec3> = points.collect();
            points
                .iter()
                .map(|p| p.distance(points[0]))
                .fold(0.0, f32::max)
        };
        assert!(spread(3.0) < 1e-5 && spread(6.0) > 0.1);
    }

    #[test]
    fn keys_are_met_and_kept() {
        let key = |x: f32| View {
            at: Vec3::new(x, 0.0, 1.0),
            look_at: Vec3::ZERO,
            focal: 0.035,
        };
        let keys = [(1.0, key(0.0)), (2.0, key(4.0))];
        assert_eq!(view_at(&keys, 0.0), key(0.0));
        assert_eq!(view_at(&keys, 1.5), key(2.0));
        assert_eq!(view_at(&keys, 9.0), key(4.0));
    }
}
