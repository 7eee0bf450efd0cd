//! Free grains: gravity, drag, wind, and bodies in the way. Grains do not feel each other.
//!
//! Between touches a grain flies exactly: on a parabola, or, in air, relaxing towards its terminal velocity. Bodies are
//! met by sweeping the grain along its way, so a step of any length and a wall of any thickness are safe. At a touch
//!
//! 1. a grain that arrives faster than gravity could make it within the step bounces (restitution, Coulomb friction);
//! 2. a slower one is in contact: its normal velocity is taken by the body, friction acts on what is left, and it
//!    slides on. Below the friction angle it stops dead.
//!
//! Dynamic bodies take up what grains lose. All grains that meet such a body in a step share it by their masses: each
//! meets its part of the body, so that a light body under many grains is pushed, not fired.
//!
//! It is the gas phase of the hybrid method and the free flight of fine grains.

mod collide;
mod flight;

use barchan_base::parallel::CHUNK;
use barchan_sim::coupling::Impulses;
use barchan_sim::model::{Model, WORLD};
use barchan_sim::solids::Solids;
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::State;
use flight::Flight;
use rayon::prelude::*;

/// The longest step [s]: at 10 ms a parabola bends by half a millimetre between the ends of its chord.
const LONGEST_STEP: f64 = 0.01;
/// The most a body may turn in a step [rad]; a sweep sees the chord of the arc.
const MOST_TURN: f32 = 0.1;

/// The solver of free grains.
#[derive(Default)]
pub struct Ballistic {
    /// What each chunk of grains did in the last step; kept to be reused.
    chunks: Vec<ChunkReport>,
}

/// What one chunk of grains did.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkReport {
    kinetic_energy: f64,
    max_speed_squared: f32,
    contacts: u64,
    held: u64,
    lost: Vec<usize>,
    impulses: Impulses,
}

impl Solver for Ballistic {
    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        let turn = Solids::turn_within(model, state.clock.time(), LONGEST_STEP)
            .max(state.solids.fastest_spin() * LONGEST_STEP as f32);
        LONGEST_STEP * f64::from((MOST_TURN / turn).min(1.0))
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        let flights: Vec<Flight> = model
            .materials
            .iter()
            .map(|material| Flight::new(model, material))
            .collect();
        let State {
            particles, solids, ..
        } = state;
        let mut collider = collide::Collider::new(model, solids, dt as f32);
        collider.weigh(particles, &flights);
        let none = Impulses::new(solids);
        let (radii, masses, materials) = (&particles.radius, &particles.mass, &particles.material);

        // Chunk by chunk, each grain on its own.
        particles
            .position
            .par_chunks_mut(CHUNK)
            .zip(particles.velocity.par_chunks_mut(CHUNK))
            .enumerate()
            .map(|(chunk, (positions, velocities))| {
                let first = chunk * CHUNK;
                let mut report = ChunkReport::new(none.clone());
                for (i, (position, velocity)) in positions.iter_mut().zip(velocities).enumerate() {
                    let grain = first + i;
                    let flight = &flights[materials[grain] as usize];
                    let mut body = collide::Grain {
                        position: *position,
                        velocity: *velocity,
                        radius: radii[grain],
                        mass: masses[grain],
                        material: materials[grain],
                    };
                    collider.advance(&mut body, flight, &mut report);
                    (*position, *velocity) = (body.position, body.velocity);
                    report.note(grain, &body);
                }
                report
            })
            .collect_into_vec(&mut self.chunks);
        Ok(self.summary(none))
    }

    fn cost(&self, _: &Model) -> Cost {
        Cost {
            // The columns, and their copy on the way to the disk.
            bytes_per_particle: 90.0,
            // Between a free grain and one that slides on a body.
            seconds_per_particle_step: 150e-9,
            steps_per_second: 1.0 / LONGEST_STEP,
        }
    }
}

impl ChunkReport {
    fn new(impulses: Impulses) -> Self {
        Self {
            impulses,
            ..Default::default()
        }
    }

    /// Counts a grain after its step.
    #[inline]
    fn note(&mut self, index: usize, grain: &collide::Grain) {
        let reach = grain.position.abs().max_element();
        let speed_squared = grain.velocity.length_squared();
        // Written so that NaN counts as lost.
        if !(reach < WORLD && speed_squared.is_finite()) {
            self.lost.push(index);
            return;
        }
        self.kinetic_energy += 0.5 * f64::from(grain.mass) * f64::from(speed_squared);
        self.max_speed_squared = self.max_speed_squared.max(speed_squared);
    }
}

impl Ballistic {
    /// Adds up the chunks in their order.
    fn summary(&self, mut impulses: Impulses) -> StepReport {
        let mut report = StepReport::default();
        let (mut contacts, mut held) = (0, 0);
        for chunk in &self.chunks {
            report.kinetic_energy += chunk.kinetic_energy;
            report.max_speed = report
                .max_speed
                .max(f64::from(chunk.max_speed_squared).sqrt());
            report.lost.extend(&chunk.lost);
            contacts += chunk.contacts;
            held += chunk.held;
            impulses.add(&chunk.impulses);
        }
        report.impulses = impulses.into_sums();
        report.measures = vec![("contacts", contacts as f64), ("held", held as f64)];
        report
    }
}
