//! Where a particle's grains begin.

use super::settings::Sampling;
use barchan_base::random::Random;
use glam::Vec3;

/// Draws of a point in a sphere: one in two fails, so that so many never do.
const MOST_DRAWS: u32 = 64;
/// Lanes of random numbers before these are a grain's looks.
const LANE: u32 = 8;

/// Where grain `id` of a particle at the origin with radius 1 begins; `number` counts the particle's grains.
pub fn place(sampling: Sampling, random: &Random, id: u64, number: u32) -> Vec3 {
    match sampling {
        // The centre and the six points where the sphere meets its box, each with a cube as wide as the particle about it.
        Sampling::SupportPoints => {
            let support = match number % 7 {
                0 => Vec3::ZERO,
                1 => Vec3::X,
                2 => Vec3::NEG_X,
                3 => Vec3::Y,
                4 => Vec3::NEG_Y,
                5 => Vec3::Z,
                _ => Vec3::NEG_Z,
            };
            support + cube(random, id, LANE)
        }
        Sampling::Sphere => (0..MOST_DRAWS)
            .map(|draw| cube(random, id, LANE + 3 * draw))
            .find(|point| point.length_squared() <= 1.0)
            .unwrap_or(Vec3::ZERO),
    }
}

fn cube(random: &Random, id: u64, lane: u32) -> Vec3 {
    random.in_cube(id, lane) * 2.0 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(sampling: Sampling, count: u32) -> Vec<Vec3> {
        let random = Random::new(3, 4);
        (0..count)
            .map(|number| place(sampling, &random, u64::from(number), number))
            .collect()
    }

    #[test]
    fn support_points_put_four_of_seven_inside_the_box_and_fill_a_lattice_evenly() {
        let points = points(Sampling::SupportPoints, 70_000);
        let inside = points
            .iter()
            .filter(|p| p.abs().max_element() <= 1.0)
            .count();
        // The middle cube and half of each of the six others; four standard errors.
        assert!(
            (inside as f64 / 70_000.0 - 4.0 / 7.0).abs() < 0.008,
            "{inside}"
        );
        // On a lattice of particles every place gets as much as every other: fold all into one cell, in eight parts.
        let mut parts = [0u32; 8];
        for point in &points {
            let cell = ((*point + 1.0) / 2.0).fract_gl() * 2.0;
            let part = cell.as_ivec3().min(glam::IVec3::ONE);
            parts[(part.x + 2 * part.y + 4 * part.z) as usize] += 1;
        }
        let even = 70_000.0 / 8.0;
        assert!(
            parts
                .iter()
                .all(|n| (f64::from(*n) - even).abs() < 4.0 * even.sqrt()),
            "{parts:?}"
        );
    }

    #[test]
    fn spheres_are_filled_evenly() {
        let points = points(Sampling::Sphere, 40_000);
        assert!(points.iter().all(|p| p.length() <= 1.0));
        let half = points.iter().filter(|p| p.length() < 0.5f32.cbrt()).count();
        assert!((half as f64 - 20_000.0).abs() < 4.0 * 100.0, "{half}"); // four standard errors
    }
}
