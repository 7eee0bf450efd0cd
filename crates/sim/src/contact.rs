//! A grain against a wall: restitution along the normal, Coulomb friction across it.

use glam::Vec3;

/// Velocity [m/s] after an impact, relative to the wall. `normal` points away from the wall; `restitution` is the part
/// of the normal speed kept, `friction` the Coulomb coefficient. A grain that does not approach is left alone.
pub fn bounce(velocity: Vec3, normal: Vec3, restitution: f32, friction: f32) -> Vec3 {
    let approach = -velocity.dot(normal);
    if approach <= 0.0 {
        return velocity;
    }
    let along = velocity + normal * approach;
    let speed = along.length();
    // Coulomb: the tangential impulse is at most μ times the normal one, and never reverses the sliding.
    let most = friction * (1.0 + restitution) * approach;
    let kept = if speed > most {
        along * (1.0 - most / speed)
    } else {
        Vec3::ZERO
    };
    kept + normal * (restitution * approach)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    #[test]
    fn impacts_obey_restitution_coulomb_and_never_add_energy() {
        let random = Random::new(1, 0);
        for i in 0..4096 {
            let velocity = random.in_cube(i, 0) * 2.0 - 1.0;
            let normal = (random.in_cube(i, 3) - 0.5).normalize();
            let (restitution, friction) = (random.uniform(i, 6), 2.0 * random.uniform(i, 7));
            let after = bounce(velocity, normal, restitution, friction);
            let approach = -velocity.dot(normal);
            if approach <= 0.0 {
                assert_eq!(after, velocity);
                continue;
            }
            assert!((after.dot(normal) - restitution * approach).abs() < 1e-6); // rounding
            assert!(after.length() <= velocity.length() + 1e-6);
            let impulse = after - velocity;
            let (along, across) = (
                impulse.dot(normal),
                impulse.reject_from_normalized(normal).length(),
            );
            assert!(
                across <= friction * along + 1e-6,
                "outside the friction cone"
            );
            let (before, later) = (
                velocity.reject_from_normalized(normal),
                after.reject_from_normalized(normal),
            );
            assert!(later.dot(before) >= -1e-6, "friction reversed the sliding");
        }
    }

    #[test]
    fn strong_friction_stops_and_none_does_nothing() {
        let velocity = Vec3::new(1.0, -1.0, 0.0);
        assert_eq!(bounce(velocity, Vec3::Y, 0.0, 1.0), Vec3::ZERO);
        assert_eq!(
            bounce(velocity, Vec3::Y, 1.0, 0.0),
            Vec3::new(1.0, 1.0, 0.0)
        );
    }
}
