//! Single grains: rigid unions of balls, how large they are, and how they touch.

mod balls;
mod sizes;
mod union;

pub use balls::balls_of;
pub use sizes::{SizeError, Sizes};
pub use union::{GrainShape, ShapeError, Solid};

use barchan_base::column::{ColumnSpec, Kind};
use barchan_base::random::Random;
use glam::{DQuat, Quat};
use std::sync::{Arc, LazyLock};

/// Streams of random numbers, one for each use.
const SIZE_STREAM: u64 = 3 << 32;
const TURN_STREAM: u64 = 4 << 32;

/// The column of a grain's turn, a quaternion x, y, z, w from its principal axes to the world's.
pub const ORIENTATION: ColumnSpec = ColumnSpec::new("orientation", "1", Kind::Vec4);

/// The single grains of a material.
#[derive(Clone, Debug)]
pub struct Grain {
    /// Their form.
    pub shape: Arc<GrainShape>,
    /// Their diameters, those of the smallest ball about the centre of mass that holds a grain.
    pub sizes: Sizes,
    /// Poisson's ratio.
    pub poisson: f64,
    /// Coefficient of Coulomb friction where two touch.
    pub friction: f64,
    /// Coefficient of rolling resistance: the lever of the load over the radius.
    pub rolling: f64,
    /// Pull that it takes to part two dry grains, over their own weight; being wet is the material's.
    pub stickiness: f64,
}

impl Grain {
    /// Balls of one diameter [m], with the numbers of quartz.
    pub fn ball(diameter: f64) -> Self {
        Self {
            shape: Arc::new(GrainShape::ball()),
            sizes: Sizes::one(diameter),
            poisson: 0.25,
            friction: 0.5,
            rolling: 0.0,
            stickiness: 0.0,
        }
    }

    /// The largest diameter [m].
    pub fn largest(&self) -> f64 {
        self.sizes.quantile(1.0)
    }

    /// Radius [m] of grain `id` under `seed`.
    pub fn radius(&self, seed: u64, id: u64) -> f32 {
        let part = f64::from(Random::new(seed, SIZE_STREAM).uniform(id, 0));
        (0.5 * self.sizes.quantile(part)) as f32
    }

    /// Mass [kg] of a grain of this `radius` [m] and of material of this `density` [kg/m³].
    pub fn mass(&self, radius: f32, density: f64) -> f64 {
        density * self.shape.solid().volume * f64::from(radius).powi(3)
    }
}

/// The turn that grain `id` begins with: any is as likely (Shoemake 1992).
pub fn orientation(seed: u64, id: u64) -> Quat {
    let random = Random::new(seed, TURN_STREAM);
    let [a, b, c] = [0, 1, 2].map(|lane| f64::from(random.uniform(id, lane)));
    let ((sin_b, cos_b), (sin_c, cos_c)) = (
        (b * std::f64::consts::TAU).sin_cos(),
        (c * std::f64::consts::TAU).sin_cos(),
    );
    let (p, q) = ((1.0 - a).sqrt(), a.sqrt());
    DQuat::from_xyzw(p * sin_b, p * cos_b, q * sin_c, q * cos_c).as_quat()
}

/// Shapes that have a name: the composites of Alduán, Tena & Otaduy 2009, figure 3, and a ball.
pub static NAMED: LazyLock<Vec<(&'static str, Arc<GrainShape>)>> = LazyLock::new(|| {
    let corners = |places: &[[f64; 3]], radius: f64| -> Vec<[f64; 4]> {
        let scaled = |place: &[f64; 3]| {
            let length = place.iter().map(|x| x * x).sum::<f64>().sqrt();
            let [x, y, z] = place.map(|x| x * (1.0 - radius) / length);
            [x, y, z, radius]
        };
        places.iter().map(scaled).collect()
    };
    let tetrahedron = [[1., 1., 1.], [1., -1., -1.], [-1., 1., -1.], [-1., -1., 1.]];
    let octahedron = [0, 1, 2, 3, 4, 5].map(|i: usize| {
        let mut place = [0.0; 3];
        place[i / 2] = if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        place
    });
    let cube: Vec<[f64; 3]> = (0..8)
        .map(|i| [0, 1, 2].map(|axis| f64::from((i >> axis & 1) * 2 - 1)))
        .collect();
    let mut popcorn = corners(&cube, 0.33);
    popcorn.push([0.0, 0.0, 0.0, 0.5]);
    let shape =
        |balls: &[[f64; 4]]| Arc::new(GrainShape::new(balls).expect("named shapes are whole"));
    vec![
        ("ball", Arc::new(GrainShape::ball())),
        ("tetrahedron", shape(&corners(&tetrahedron, 0.5))),
        ("octahedron", shape(&corners(&octahedron, 0.45))),
        ("cube", shape(&corners(&cube, 0.42))),
        ("popcorn", shape(&popcorn)),
    ]
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_shapes_have_the_papers_numbers_of_balls_and_fit_a_unit_ball() {
        let counts: Vec<usize> = NAMED.iter().map(|(_, shape)| shape.balls().len()).collect();
        assert_eq!(counts, [1, 4, 6, 8, 9]);
        for (name, shape) in NAMED.iter() {
            let reach = shape.balls().iter().map(|b| b.0.length() + b.1);
            let reach = reach.fold(0.0, f64::max);
            assert!((reach - 1.0).abs() < 1e-9, "{name}: {reach}");
            assert!(shape.solid().turns_alike(), "{name}");
        }
    }

    #[test]
    fn orientations_are_turns_and_favour_no_axis() {
        let mut sum = [0.0f32; 4];
        for id in 0..10_000 {
            let turn = orientation(5, id);
            assert!((turn.length() - 1.0).abs() < 1e-6);
            for (sum, part) in sum.iter_mut().zip(turn.to_array()) {
                *sum += part * part / 10_000.0;
            }
        }
        assert!(sum.iter().all(|part| (part - 0.25).abs() < 0.01), "{sum:?}");
    }
}
