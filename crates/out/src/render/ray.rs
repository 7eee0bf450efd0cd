//! Rays, and numbers for their samples that depend on the pixel and the sample alone.

use glam::{Vec2, Vec3};
use std::f32::consts::TAU;

/// A half-line.
#[derive(Clone, Copy, Debug)]
pub struct Ray {
    /// Where it begins [m].
    pub origin: Vec3,
    /// Unit direction.
    pub direction: Vec3,
}

impl Ray {
    /// The point at distance `t` [m].
    pub fn at(&self, t: f32) -> Vec3 {
        self.origin + self.direction * t
    }
}

/// A direction about `normal`, as likely as light from it counts on a matte surface: with the cosine.
pub fn cosine_direction(normal: Vec3, u: Vec2) -> Vec3 {
    let (sin, cos) = (u.x * TAU).sin_cos();
    let radius = u.y.sqrt();
    let (side, other) = normal.any_orthonormal_pair();
    (side * (radius * cos) + other * (radius * sin) + normal * (1.0 - u.y).max(0.0).sqrt())
        .normalize_or(normal)
}

/// A point of the unit disc.
pub fn in_disc(u: Vec2) -> Vec2 {
    let (sin, cos) = (u.x * TAU).sin_cos();
    Vec2::new(cos, sin) * u.y.sqrt()
}

/// 32 well mixed bits of `x` (the finaliser of MurmurHash3).
pub fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// Bits as a number in [0, 1).
pub fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 * (1.0 / (1 << 24) as f32)
}

/// The numbers of one ray: an even sequence over a pixel's rays, shifted from pixel to pixel.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    pixel: u32,
    sample: u32,
    lane: u32,
}

impl Sampler {
    /// The numbers of ray `sample` through pixel `x`, `y`; the same in every frame, so that still things stay still.
    pub fn new(x: u32, y: u32, sample: u32) -> Self {
        Self {
            pixel: mix(x.wrapping_mul(0x9e37_79b9) ^ mix(y.wrapping_add(0x7f4a_7c15))),
            sample,
            lane: 0,
        }
    }

    /// Two numbers in [0, 1): the R2 sequence (Roberts 2018), shifted.
    pub fn pair(&mut self) -> Vec2 {
        // One over the plastic number and over its square, in 32 bits: additive steps that fill a square evenly.
        const STEP: [u32; 2] = [3_242_174_889, 2_447_445_414];
        self.lane += 1;
        let shift = [
            mix(self.pixel ^ self.lane.wrapping_mul(0x68e3_1da4)),
            mix(self.pixel ^ self.lane.wrapping_mul(0xb529_7a4d)),
        ];
        Vec2::new(
            unit(self.sample.wrapping_mul(STEP[0]).wrapping_add(shift[0])),
            unit(self.sample.wrapping_mul(STEP[1]).wrapping_add(shift[1])),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_pixel_fill_the_square_evenly() {
        // Each of 16 squares gets its share of 256 samples, give or take a few.
        let mut counts = [0; 16];
        for sample in 0..256 {
            let u = Sampler::new(17, 4, sample).pair();
            assert!((0.0..1.0).contains(&u.x) && (0.0..1.0).contains(&u.y));
            counts[(u.x * 4.0) as usize * 4 + (u.y * 4.0) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (12..=20).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn directions_follow_the_cosine() {
        let normal = Vec3::new(0.3, -0.8, 0.5).normalize();
        let mean: f32 = (0..4096)
            .map(|i| cosine_direction(normal, Sampler::new(1, 2, i).pair()).dot(normal))
            .sum::<f32>()
            / 4096.0;
        // The mean cosine of a cosine-weighted direction is 2/3.
        assert!((mean - 2.0 / 3.0).abs() < 0.01, "{mean}");
    }
}
