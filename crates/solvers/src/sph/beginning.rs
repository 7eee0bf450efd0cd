//! What a scene begins with, laid out evenly before it moves.
//!
//! Fills are random, one particle somewhere in each cube: some are nearly in one place, others lack a neighbour, and all together
//! are an eighth denser at their particles than on a lattice. Were they repaired while they move, nothing would bear much
//! meanwhile: layers would slide by half a spacing, and for as long as that the finer they are.
//!
//! Stresses are zero to begin with, and a step's few sweeps take some hundred steps to build up those that bear the weight. So the
//! first step has more of them: what can stand where it is does not gain speed first.

use super::kernel::Kernel;
use super::sleep::Disturbers;
use super::work::Work;
use super::{SHEAR_RATE, Sph};
use barchan_sim::model::Model;
use barchan_sim::solids::Solids;
use barchan_sim::state::Particles;
use rayon::prelude::*;

/// The most repairs before the first step,
const MOST_REPAIRS: u32 = 60;
/// and the shortest displacement over the spacing that is worth another.
const SHORTEST: f32 = 1e-3;

/// Sweeps of the first step. They reach some dozen rows deep; the rest comes in the steps that follow.
pub const SWEEPS: u32 = 200;

impl Sph {
    /// Repairs the particles' places until they lie evenly, and keeps their velocities. Nothing has sheared meanwhile.
    pub(super) fn lay_out(
        &mut self,
        model: &Model,
        (particles, solids): (&mut Particles, &Solids),
        kernel: &Kernel,
    ) {
        let velocities = particles.velocity.clone();
        for _ in 0..MOST_REPAIRS {
            let disturbers = Disturbers::at(model, solids, 0.0);
            self.sort(particles, &disturbers, kernel);
            self.look_around(model, (particles, solids), kernel);
            self.work.find_repairs(kernel);
            if self.work.longest_repair() < SHORTEST * kernel.spacing {
                break;
            }
            self.finish(model, (particles, solids), 0.0);
        }
        particles.velocity = velocities;
        particles.extra[SHEAR_RATE].entries_mut::<f32>().fill(0.0);
    }
}

impl Work {
    /// The longest displacement [m] of a repair.
    fn longest_repair(&self) -> f32 {
        let squares = self.shifts().par_iter();
        let squares = squares.map(|shift| shift.length_squared());
        squares.reduce(|| 0.0, f32::max).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sph::COLUMNS;
    use barchan_base::sampling::Layout;
    use barchan_base::shape::Shape;
    use barchan_sim::model::Fill;
    use barchan_sim::scene::{PRESETS, SphSettings};
    use barchan_sim::start::start;
    use glam::Vec3;

    #[test]
    fn being_laid_out_is_no_shear() {
        let mut model = Model::empty();
        (model.resolution, model.spacing) = (0.02, 0.02);
        model.materials = vec![PRESETS["dry-sand"].material("sand")];
        model.fills.push(Fill {
            material: 0,
            shape: Shape::Cuboid {
                half: Vec3::splat(0.1),
            },
            velocity: Vec3::ZERO,
            layout: Layout::Jittered,
        });
        let mut state = start(&model, 50.0, COLUMNS).expect("a block can be filled");
        let before = state.particles.position.clone();
        let kernel = Kernel::new(model.resolution);
        let own = (&mut state.particles, &state.solids);
        Sph::new(SphSettings::default()).lay_out(&model, own, &kernel);
        // A rate found in it would weaken the sand in its first step.
        assert_ne!(state.particles.position, before);
        let rates = state.particles.extra[SHEAR_RATE].entries::<f32>();
        assert!(rates.iter().all(|rate| rate.abs() < 1e-12));
    }
}
