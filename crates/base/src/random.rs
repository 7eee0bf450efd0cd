//! Randomness that depends on what is drawn, never on when: a hash of seed, stream and index.
//!
//! Two runs, or two threads, that ask for the same number get the same number, in any order.

use glam::Vec3;
use std::f32::consts::TAU;

/// A source of numbers, identified by a seed and a stream.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: u64,
}

/// The finaliser of SplitMix64 (Steele, Lea & Flood 2014): every input bit changes half the output bits.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 2⁶⁴ over the golden ratio: the odd step of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number for a place, the same for places equal to a sixteenth of a unit.
pub fn hash_place(place: Vec3) -> u64 {
    let at = (place * 16.0).round().as_ivec3();
    let part = |x: i32| u64::from(x as u32);
    mix(mix(mix(part(at.x)).wrapping_add(part(at.y))).wrapping_add(part(at.z)))
}

impl Random {
    /// The numbers of one `stream` under `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self {
            key: mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(stream.wrapping_mul(GOLDEN))),
        }
    }

    /// 64 random bits for `index`; `lane` tells the numbers of one index apart.
    pub fn bits(&self, index: u64, lane: u32) -> u64 {
        mix(self.key.wrapping_add(mix(
            index.wrapping_mul(GOLDEN) ^ u64::from(lane).rotate_left(48)
        )))
    }

    /// A uniform number in [0, 1).
    pub fn uniform(&self, index: u64, lane: u32) -> f32 {
        // 24 bits are all that an f32 in [0, 1) can tell apart.
        (self.bits(index, lane) >> 40) as f32 * (1.0 / (1u32 << 24) as f32)
    }

    /// A uniform point in the unit cube; uses three lanes from `lane` on.
    pub fn in_cube(&self, index: u64, lane: u32) -> Vec3 {
        Vec3::new(
            self.uniform(index, lane),
            self.uniform(index, lane + 1),
            self.uniform(index, lane + 2),
        )
    }

    /// A uniform direction within `half_angle` [rad] of `axis` (a unit vector); uses two lanes from `lane` on.
    pub fn in_cone(&self, axis: Vec3, half_angle: f32, index: u64, lane: u32) -> Vec3 {
        let cos_limit = half_angle.cos();
        let cos = 1.0 - self.uniform(index, lane) * (1.0 - cos_limit);
        let sin = (1.0 - cos * cos).max(0.0).sqrt();
        let (sin_turn, cos_turn) = (self.uniform(index, lane + 1) * TAU).sin_cos();
        let (side, other) = axis.any_orthonormal_pair();
        axis * cos + (side * cos_turn + other * sin_turn) * sin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_numbers_have_the_mean_and_variance_of_a_uniform() {
        let random = Random::new(7, 0);
        let n = 100_000;
        let (mut sum, mut squares) = (0.0f64, 0.0f64);
        for i in 0..n {
            let x = f64::from(random.uniform(i, 0));
            assert!((0.0..1.0).contains(&x));
            sum += x;
            squares += x * x;
        }
        let mean = sum / n as f64;
        let variance = squares / n as f64 - mean * mean;
        assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0 / n as f64).sqrt()); // four standard errors
        assert!((variance - 1.0 / 12.0).abs() < 1e-3); // four standard errors of a uniform's variance
    }

    #[test]
    fn streams_lanes_and_seeds_differ() {
        let bits = |seed, stream, index, lane| Random::new(seed, stream).bits(index, lane);
        let all = [
            bits(1, 2, 3, 0),
            bits(1, 2, 3, 1),
            bits(1, 2, 4, 0),
            bits(1, 3, 3, 0),
            bits(2, 2, 3, 0),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(a));
        }
    }

    #[test]
    fn cone_directions_stay_in_the_cone() {
        let random = Random::new(1, 1);
        let axis = Vec3::new(1.0, 2.0, -0.5).normalize();
        for i in 0..1000 {
            let direction = random.in_cone(axis, 0.2, i, 0);
            assert!((direction.length() - 1.0).abs() < 1e-5);
            assert!(direction.dot(axis) >= 0.2f32.cos() - 1e-5);
        }
        assert!((random.in_cone(axis, 0.0, 5, 0) - axis).length() < 1e-3); // sin of a rounded cos of 1
    }
}
