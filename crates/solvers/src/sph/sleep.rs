//! Sleeping (Ihmsen et al. 2013, section 3.2): what has been still for a while is left out until something moves it.
//!
//! A particle that was slower than the sleep velocity for a while sleeps. Sleeping ones in and around cells with someone
//! awake, or with a moving body near, doze: their load is solved for, and they wake when it would move them. Everyone
//! else costs a sorted place and nothing more.

use super::QUIET;
use super::kernel::Kernel;
use super::work::Work;
use barchan_sim::model::{Model, Wet};
use barchan_sim::solids::Solids;
use barchan_sim::state::Particles;
use rayon::prelude::*;

/// Still for this long [s], a particle sleeps.
pub const AFTER: f32 = 0.25;
/// Sleep velocity over what a fall through one spacing gives, √(g d).
const SLEEP: f32 = 1e-3;
/// Wake velocity over the same.
const WAKE: f32 = 2e-3;

/// Time in which a dozing particle forgets what pulled at it, over that of a fall through one spacing, √(d/g). What pulls
/// by more than `WAKE / FADE` of gravity, 0.4 degrees of slope, wakes it.
const FADE: f32 = 0.3;

/// The velocities below and above which particles fall asleep and wake [m/s].
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    sleep: f32,
    wake: f32,
    fade: f32,
}

impl Thresholds {
    /// For particles of `spacing` [m] under `gravity` [m/s²].
    pub fn new(spacing: f32, gravity: f32) -> Self {
        let scale = (spacing * gravity).sqrt();
        Self {
            sleep: SLEEP * scale,
            wake: WAKE * scale,
            fade: FADE * (spacing / gravity.max(f32::MIN_POSITIVE)).sqrt(),
        }
    }

    /// The part of its velocity that a dozing particle keeps through a step of `dt` [s].
    pub fn kept(&self, dt: f32) -> f32 {
        (1.0 - dt / self.fade).max(0.0)
    }

    /// How long a particle has been quiet [s] after `dt` more at `speed`, given how long before.
    pub fn quiet(&self, before: f32, speed: f32, dt: f32) -> f32 {
        if before >= AFTER {
            if speed > self.wake { 0.0 } else { before }
        } else if speed < self.sleep {
            before + dt
        } else {
            0.0
        }
    }
}

/// The regions that turn material wet or dry in this step.
pub struct Soaking<'a> {
    regions: Vec<&'a Wet>,
}

impl<'a> Soaking<'a> {
    /// Those of `model` that work at `time` [s].
    pub fn at(model: &'a Model, time: f64) -> Self {
        let works = |wet: &&Wet| (wet.active.from..wet.active.until).contains(&time);
        Self {
            regions: model.wet.iter().filter(works).collect(),
        }
    }

    fn any(&self) -> bool {
        !self.regions.is_empty()
    }

    fn changes(&self, particles: &Particles, i: usize) -> bool {
        self.regions.iter().any(|region| {
            (region.wetness - particles.wetness[i]).abs() > 0.0
                && region.shape.contains(particles.position[i])
        })
    }
}

impl Work {
    /// Flags the cells where something moves, and drops those that nobody awake can feel. True where nobody is awake.
    pub fn let_sleep(
        &mut self,
        particles: &Particles,
        disturbers: (&Solids, &Soaking<'_>),
        kernel: &Kernel,
    ) -> bool {
        self.find_awake(particles, disturbers, kernel);
        let asleep = self.awake.iter().filter(|awake| !**awake).count();
        if asleep == self.awake.len() {
            return true;
        }
        self.solved.clear();
        if asleep == 0 {
            self.solved.resize(self.cells.len(), true);
            return false;
        }
        // One ring is solved for, the next lends its stress, and the last its places.
        self.cells.dilate(&self.awake, &mut self.solved);
        self.cells.dilate(&self.solved, &mut self.wider);
        self.cells.dilate(&self.wider, &mut self.kept);
        self.cells.keep(&self.kept);
        let mut kept = self.kept.iter();
        self.solved
            .retain(|_| kept.next().is_some_and(|kept| *kept));
        false
    }

    fn find_awake(
        &mut self,
        particles: &Particles,
        (solids, wet): (&Solids, &Soaking<'_>),
        kernel: &Kernel,
    ) {
        let (cells, quiet) = (&self.cells, particles.extra[QUIET].entries::<f32>());
        let reach = (0.8661 + 1.0) * kernel.reach;
        let near_moving = |cell: usize| {
            let middle = (cells.coordinates(cell).as_vec3() + 0.5) * kernel.reach;
            solids.all().iter().any(|solid| {
                // A body that moves by force must be carried even where nothing moves.
                (solid.moves() || solid.inertia().inverse_mass > 0.0)
                    && solid.bounds().distance_squared(middle) < reach * reach
                    && !solid.is_beyond(middle, reach)
            })
        };
        let soaking = wet.any();
        self.awake.resize(cells.len(), false);
        self.awake
            .par_iter_mut()
            .enumerate()
            .with_min_len(256)
            .for_each(|(cell, awake)| {
                let members = &cells.order()[cells.places(cell)];
                *awake = near_moving(cell)
                    || members.iter().any(|member| {
                        let member = *member as usize;
                        quiet[member] < AFTER || (soaking && wet.changes(particles, member))
                    });
            });
    }
}
