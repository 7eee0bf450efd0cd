//! When a cell of sand holds, and the stress that resists where it does not (Zhu 2005, section 2.3).
//!
//! Stresses are scaled by Δt / (ρ Δx) and strain rates by Δx, so that both are velocities. Then the stress that would stop
//! all sliding in a cell within the step, σ_rigid = −ρ D Δx² / Δt (their eq. 2.5), is the scaled strain rate itself, and the
//! time step is gone from the law. Signs: the authors write stresses that resist with a minus and add their divergence;
//! here what resists has the sign of the strain rate, and its divergence is added.

/// A symmetric tensor: xx, yy, zz, yz, xz, xy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Symmetric(pub [f32; 6]);

impl Symmetric {
    /// What is left without a third of the trace on the diagonal.
    #[inline]
    pub fn deviator(self) -> Self {
        let [xx, yy, zz, yz, xz, xy] = self.0;
        let mean = (xx + yy + zz) * (1.0 / 3.0);
        Self([xx - mean, yy - mean, zz - mean, yz, xz, xy])
    }

    /// Von Mises' equivalent shear stress of a deviator, σ̄ = |s|_F / √2.
    #[inline]
    pub fn equivalent(self) -> f32 {
        let [xx, yy, zz, yz, xz, xy] = self.0;
        (0.5 * (xx * xx + yy * yy + zz * zz) + yz * yz + xz * xz + xy * xy).sqrt()
    }

    /// With each shear divided among so many edges.
    #[inline]
    pub fn shared_among(self, counts: [f32; 3]) -> Self {
        let [xx, yy, zz, yz, xz, xy] = self.0;
        let [a, b, c] = counts.map(|count| 1.0 / count.max(1.0));
        Self([xx, yy, zz, yz * a, xz * b, xy * c])
    }

    fn scaled(self, factor: f32) -> Self {
        Self(self.0.map(|entry| entry * factor))
    }
}

/// The factor of σ̄ in the yield condition, `YIELD_FACTOR` · σ̄ < sin φ σ_m + c (eqs. 2.3 and 2.9).
///
/// The authors print √3. In plane strain, where Mohr and Coulomb's law is σ̄ < sin φ σ_m exactly, that makes an asked 34° hold
/// only asin(sin 34° / √3) = 18.8°; and their sliding stress (eq. 2.4), said to lie on the same surface, has √3 σ̄ =
/// 2.1 sin φ σ_m. One factor for both cannot keep both as printed: 1 makes φ the friction angle.
pub(super) const YIELD_FACTOR: f32 = 1.0;

/// What a material can bear: sin φ, and the scaled cohesion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strength {
    pub sine: f32,
    pub cohesion: f32,
}

/// How a cell answers to being sheared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    /// Friction can stop it: the cell is rigid, and the stress is σ_rigid. Else it slides under σ_f.
    pub rigid: bool,
    pub stress: Symmetric,
}

/// The answer of a cell under a scaled pressure to a scaled strain rate.
///
/// The pressure that makes sand incompressible can pull; sand cannot, so a pull counts as no pressure. Cohesion belongs to
/// the sliding stress too: then a cell at the limit has the same stress whichever side it is found on.
pub(super) fn answer(rate: Symmetric, pressure: f32, strength: Strength) -> Answer {
    let needed = rate.deviator();
    let shear = YIELD_FACTOR * needed.equivalent();
    let limit = strength.sine * pressure.max(0.0) + strength.cohesion;
    let rigid = shear < limit;
    Answer {
        rigid,
        stress: if rigid || shear == 0.0 {
            needed
        } else {
            needed.scaled(limit / shear)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    const SAND: Strength = Strength {
        sine: 0.5592, // of 34°
        cohesion: 0.0,
    };

    #[test]
    fn a_cell_holds_below_the_limit_and_slides_at_it_above() {
        let random = Random::new(5, 0);
        for i in 0..500u64 {
            let rate = Symmetric(std::array::from_fn(|j| random.uniform(i, j as u32) - 0.5));
            let cohesion = 0.1 * random.uniform(i, 7);
            let strength = Strength { cohesion, ..SAND };
            let shear = rate.deviator().equivalent();
            // The pressure at which this rate is just stopped.
            let limit = (shear - cohesion) / SAND.sine;
            if limit <= 0.0 {
                continue;
            }
            let above = answer(rate, limit * 1.001, strength);
            assert!(above.rigid && above.stress == rate.deviator());
            let below = answer(rate, limit * 0.999, strength);
            assert!(!below.rigid);
            let size = below.stress.equivalent();
            assert!((size - (SAND.sine * limit * 0.999 + cohesion)).abs() < 1e-5);
            // No jump in stress at the limit, and it resists what slides.
            for (a, b) in below.stress.0.iter().zip(rate.deviator().0) {
                assert!((a - b).abs() < 2e-3 && a * b >= 0.0);
            }
        }
    }

    #[test]
    fn simple_shear_is_stopped_up_to_the_sine_of_the_angle() {
        // Shear stress over pressure on the plane of shearing, as a slope of angle φ in plane strain has it.
        for angle in [20f32, 34.0, 45.0] {
            let sine = angle.to_radians().sin();
            let strength = Strength {
                sine,
                cohesion: 0.0,
            };
            let sheared = |by: f32| answer(Symmetric([0.0, 0.0, 0.0, 0.0, 0.0, by]), 1.0, strength);
            assert!(sheared(0.99 * sine).rigid);
            let slides = sheared(3.0);
            assert!(!slides.rigid && (slides.stress.0[5] - sine).abs() < 1e-6);
        }
    }

    #[test]
    fn pulled_sand_has_no_friction_and_a_little_cohesion_holds_it() {
        let rate = Symmetric([0.2, -0.1, -0.1, 0.0, 0.1, 0.0]);
        let pulled = answer(rate, -3.0, SAND);
        assert!(!pulled.rigid && pulled.stress.equivalent() == 0.0);
        let sticky = Strength {
            cohesion: 1.0,
            ..SAND
        };
        assert!(answer(rate, -3.0, sticky).rigid);
        let still = answer(Symmetric::default(), 0.0, SAND);
        assert!(still.stress.equivalent() == 0.0);
    }
}
