//! Internal friction of granular material: how much shear a load can carry.

/// Growth of friction with the inertial number and where half of it is reached (Jop, Forterre & Pouliquen 2006: glass
/// beads have 0.26 and 0.28).
const GROWTH: f32 = 0.26;
const HALF_WAY: f32 = 0.28;
/// Friction of sand at rest over that of sand that flows, less one: half a degree of slope. (Sand has one to three; what is asked for
/// is one angle, so this is as little as lets a slope that stands just there come to rest.)
const AT_REST: f32 = 0.02;
/// Loads below this [Pa] are taken as this much where one is divided by.
const LEAST_LOAD: f32 = 1.0;

/// The largest Frobenius norm [Pa] of a deviator under `pressure` [Pa]: Drucker–Prager with friction coefficient `mu`
/// and cohesion [Pa], matched to a layer in simple shear.
#[inline]
pub fn yield_norm(mu: f32, cohesion: f32, pressure: f32) -> f32 {
    std::f32::consts::SQRT_2 * (mu * pressure.max(0.0) + cohesion)
}

/// The coefficient of material that shears at `rate` [1/s] under `pressure` [Pa]: μ(I) with grains of `grain_size` [m].
#[inline]
pub fn inertial(mu: f32, rate: f32, grain_size: f32, pressure: f32, density: f32) -> f32 {
    let inertial_number = rate * grain_size / (pressure.max(LEAST_LOAD) / density).sqrt();
    mu + GROWTH * inertial_number / (inertial_number + HALF_WAY)
}

/// The coefficient of material that shears at `rate` [1/s]: a little more than `mu` below `creep` [1/s], the most where it does not
/// shear at all.
#[inline]
pub fn at_rest(mu: f32, rate: f32, creep: f32) -> f32 {
    let part = if rate < creep {
        1.0 - rate / creep
    } else {
        0.0
    };
    mu * (1.0 + AT_REST * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_shear_slides_at_the_friction_coefficient() {
        // In simple shear the deviator has two equal components τ; its norm is √2 τ.
        for (mu, pressure) in [(0.3f32, 100.0), (0.7, 2e4)] {
            let tau = yield_norm(mu, 0.0, pressure) / std::f32::consts::SQRT_2;
            assert!((tau / pressure - mu).abs() < 1e-6);
        }
        assert!(yield_norm(0.5, 0.0, -3.0).abs() < 1e-12);
        assert!((yield_norm(0.5, 10.0, 0.0) / 200f32.sqrt() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_at_rest_holds_half_a_degree_more_than_what_flows() {
        let angle = |rate| {
            at_rest(34f32.to_radians().tan(), rate, 0.3)
                .atan()
                .to_degrees()
        };
        assert!((angle(0.0) - 34.53).abs() < 0.1, "{}", angle(0.0));
        assert!(angle(0.1) < angle(0.0) && angle(0.1) > angle(0.2));
        for rate in [0.3, 1e9] {
            assert!((angle(rate) - 34.0).abs() < 1e-4);
        }
        // Where nothing counts as creep, nothing is held.
        assert!((at_rest(0.5, 0.0, 0.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn friction_grows_with_inertia_up_to_a_limit() {
        let at = |rate| inertial(0.5, rate, 1e-3, 1e3, 1600.0);
        assert!((at(0.0) - 0.5).abs() < 1e-6);
        assert!(at(100.0) > at(10.0) && at(1e9) < 0.5 + GROWTH + 1e-3);
        assert!(inertial(0.5, 1.0, 1e-3, 0.0, 1600.0).is_finite());
    }
}
