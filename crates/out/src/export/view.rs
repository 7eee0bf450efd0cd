//! How a picture of a run is taken: the same camera, sun and ground for all its frames, and colours for its materials.

use super::snapshot::Snapshot;
use glam::Vec3;

/// Field of view across the shorter side [degrees].
pub const FIELD_OF_VIEW: f32 = 30.0;
/// Size of the picture [pixels], and samples in each.
pub const SIZE: [u32; 2] = [1280, 720];
pub const SAMPLES: u32 = 64;
/// Light of the sky, and of the sun where it falls straight.
pub const SKY: [f32; 3] = [0.45, 0.55, 0.7];
pub const SUN: [f32; 3] = [3.2, 2.9, 2.4];
/// Linear colours: the ground's, and the materials' in turn.
pub const GROUND: [f32; 3] = [0.32, 0.31, 0.3];
const MATERIALS: [[f32; 3]; 6] = [
    [0.55, 0.40, 0.23],
    [0.35, 0.34, 0.33],
    [0.22, 0.13, 0.07],
    [0.75, 0.74, 0.70],
    [0.16, 0.30, 0.42],
    [0.50, 0.18, 0.10],
];

/// The colour of material `index`.
pub fn color(index: usize) -> [f32; 3] {
    MATERIALS[index % MATERIALS.len()]
}

/// Where everything stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    pub eye: Vec3,
    pub target: Vec3,
    pub up: Vec3,
    /// The direction in which the sun's light goes.
    pub sunlight: Vec3,
    /// Four corners of the ground.
    pub ground: [Vec3; 4],
}

impl View {
    /// A view of everything in `frames`.
    pub fn of(frames: impl Iterator<Item = Snapshot>) -> Self {
        let mut up = Vec3::Y;
        let around = frames
            .filter_map(|snapshot| {
                up = snapshot.meta.up.normalize_or(Vec3::Y);
                snapshot.bounds()
            })
            .reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
        let (least, most) = around.unwrap_or((-Vec3::ONE, Vec3::ONE));
        Self::around(least, most, up)
    }

    fn around(least: Vec3, most: Vec3, up: Vec3) -> Self {
        let target = (least + most) / 2.0;
        let radius = ((most - least).length() / 2.0).max(1e-4);
        let side = up.any_orthonormal_vector();
        let front = side.cross(up);
        let distance = radius / (FIELD_OF_VIEW / 2.0).to_radians().sin();
        let towards_eye = (front + 0.45 * side + 0.5 * up).normalize();
        let height = (most - least).dot(up.abs()) / 2.0;
        let below = target - height * up;
        let far = 40.0 * radius;
        let corner = |a: f32, b: f32| below + far * (a * side + b * front);
        Self {
            eye: target + distance * towards_eye,
            target,
            up,
            sunlight: -(0.6 * front - 0.8 * side + 1.1 * up).normalize(),
            ground: [
                corner(-1.0, -1.0),
                corner(1.0, -1.0),
                corner(1.0, 1.0),
                corner(-1.0, 1.0),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn everything_is_in_sight_above_the_ground() {
        for up in [Vec3::X, Vec3::Y, Vec3::Z] {
            let mut frames = [samples::particles(3, 0), samples::particles(5, 9)];
            for frame in &mut frames {
                frame.meta.up = up;
            }
            let view = View::of(frames.clone().into_iter());
            let ahead = (view.target - view.eye).normalize();
            let widest = (FIELD_OF_VIEW / 2.0).to_radians();
            for place in frames.iter().flat_map(|frame| frame.positions()) {
                assert!(
                    (*place - view.eye).angle_between(ahead) <= widest,
                    "{place}"
                );
                assert!((*place - view.ground[0]).dot(up) >= 0.0, "{place}");
            }
            assert!(view.sunlight.dot(up) < 0.0);
        }
    }
}
