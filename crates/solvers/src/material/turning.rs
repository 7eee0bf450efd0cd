//! Which way friction points in material that shears.
//!
//! Friction opposes the strain rate, turned by half the friction angle against the spin: the plane of shearing is then one that Mohr
//! and Coulomb's law lets slide. How much of that turn is taken depends on how much of the motion is spin. Without spin there is no plane
//! to turn to; what spins far more than it shears turns as a whole, which it may do as fast as it likes.

use wide::f32x8;

/// What counts as a motion that turns friction.
#[derive(Clone, Copy, Debug)]
pub struct Turning {
    /// Motion much slower than this [1/s] turns hardly anything.
    pub slow: f32,
    /// Friction is turned in full up to so many times as much spin as shear. Layers that slide over each other also sway: at one
    /// place they spin more than they shear, at another less, and were friction turned less at both, they would slide too easily.
    pub most_spin: f32,
}

/// The part of the turn that is taken, 0 to 1, in material that spins and shears so fast; both are equal in layers that slide. What
/// does not move at all turns nothing.
#[inline]
pub fn part_turned(spin: f32, shear: f32, turning: Turning) -> f32 {
    let slow = turning.slow.max(f32::MIN_POSITIVE);
    (spin / (shear + slow))
        .min(turning.most_spin * shear / (spin + slow))
        .min(1.0)
}

/// [`part_turned`], eight side by side.
#[inline]
pub fn parts_turned(spin: f32x8, shear: f32x8, turning: Turning) -> f32x8 {
    let slow = f32x8::splat(turning.slow.max(f32::MIN_POSITIVE));
    let most = f32x8::splat(turning.most_spin) * shear / (spin + slow);
    (spin / (shear + slow)).fast_min(most).fast_min(f32x8::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turning(slow: f32) -> Turning {
        Turning {
            slow,
            most_spin: 2.0,
        }
    }

    #[test]
    fn friction_turns_in_full_where_layers_slide_and_hardly_in_what_turns_as_a_whole() {
        let shear = 3.0;
        // So many times as much spin as shear, and the part of the turn.
        for (times, part) in [(0.0, 0.0), (0.4, 0.4), (1.0, 1.0), (1.9, 1.0), (8.0, 0.25)] {
            let found = part_turned(times * shear, shear, turning(1e-6));
            assert!((found - part).abs() < 1e-5, "{times}: {found}");
        }
    }

    #[test]
    fn what_hardly_moves_turns_nothing() {
        assert!(part_turned(0.0, 0.0, turning(0.0)).abs() < 1e-12);
        assert!(part_turned(1e-4, 1e-4, turning(0.1)) < 2e-3);
    }

    #[test]
    fn eight_turn_as_one_does() {
        let spins = [0.0, 1e-9, 0.3, 1.0, 1.7, 2.5, 40.0, 1e6];
        for shear in [0.0, 1e-8, 0.5, 1.0, 30.0] {
            let eight = parts_turned(spins.into(), f32x8::splat(shear), turning(0.01));
            let one = spins.map(|spin| part_turned(spin, shear, turning(0.01)));
            let bits = |parts: [f32; 8]| parts.map(f32::to_bits);
            assert_eq!(bits(eight.to_array()), bits(one));
        }
    }
}
