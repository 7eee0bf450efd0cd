//! Where the light comes from: a sun, and a sky that is blue above and pale towards the horizon.

use super::ray::in_disc;
use glam::{Vec2, Vec3};

/// Light of the whole sun on a surface that faces it.
const SUN: Vec3 = Vec3::new(1.84, 1.52, 1.12);
/// The sky overhead, at the horizon, and what lies below it.
const ZENITH: Vec3 = Vec3::new(0.20, 0.32, 0.52);
const HORIZON: Vec3 = Vec3::new(0.70, 0.74, 0.78);
const BELOW: Vec3 = Vec3::new(0.40, 0.37, 0.33);
/// How wide the glow about the sun is: the power of the cosine.
const GLOW: f32 = 64.0;

/// Sun and sky.
#[derive(Clone, Copy, Debug)]
pub struct Sky {
    /// Unit vector up.
    pub up: Vec3,
    /// Unit vector to the middle of the sun.
    pub sun: Vec3,
    /// Tangent of the sun's radius as seen from here.
    size: f32,
    sun_light: Vec3,
    strength: f32,
}

impl Sky {
    /// A sky over `up` with the sun in direction `sun`, of angular diameter `size` [rad]; strengths are 1 on a clear day.
    pub fn new(up: Vec3, sun: Vec3, size: f32, (sun_strength, sky_strength): (f32, f32)) -> Self {
        Self {
            up,
            sun: sun.normalize_or(up),
            size: (0.5 * size).min(1.5).tan(),
            sun_light: SUN * sun_strength,
            strength: sky_strength,
        }
    }

    /// Light from `direction`, without the sun itself.
    pub fn light(&self, direction: Vec3) -> Vec3 {
        let height = direction.dot(self.up);
        let towards_sun = direction.dot(self.sun).max(0.0);
        let glow = SUN * (0.12 * towards_sun.powf(GLOW) + 0.10 * towards_sun.powi(6));
        let sky = if height >= 0.0 {
            HORIZON.lerp(ZENITH, 1.0 - (1.0 - height.min(1.0)).powi(3))
        } else {
            // A soft line, as through haze.
            HORIZON.lerp(BELOW, (-height * 12.0).min(1.0).sqrt())
        };
        (sky + glow * (1.0 + height.min(0.0)).max(0.0)) * self.strength
    }

    /// The haze that far ground fades into, in the direction of view.
    pub fn haze(&self, direction: Vec3) -> Vec3 {
        let level = direction - self.up * direction.dot(self.up);
        self.light(level.normalize_or(self.up))
    }

    /// A direction to some point of the sun.
    pub fn towards_sun(&self, u: Vec2) -> Vec3 {
        let (side, other) = self.sun.any_orthonormal_pair();
        let shift = in_disc(u) * self.size;
        (self.sun + side * shift.x + other * shift.y).normalize()
    }

    /// Light of the whole sun on a surface that faces it.
    pub fn sun_light(&self) -> Vec3 {
        self.sun_light
    }
}
