//! Sleeping (Ihmsen et al. 2013, section 3.2): what has been still for a while is left out until something moves it.
//!
//! A particle that was slower than the sleep velocity for a while sleeps. Sleeping ones in and around cells with someone
//! awake, or with a moving body near, doze: their load is solved for, and they wake when it would move them. Who is turned wet or
//! dry wakes at once. Everyone else costs a sorted place and nothing more.

use super::QUIET;
use super::kernel::Kernel;
use super::work::Work;
use barchan_sim::model::{Model, Sink};
use barchan_sim::solids::{Solid, Solids};
use barchan_sim::state::Particles;
use barchan_sim::wet::Turned;
use glam::Vec3;
use rayon::prelude::*;

/// Still for this long [s], a particle sleeps.
pub const AFTER: f32 = 0.25;
/// Sleep velocity over what a fall through one spacing gives, √(g d).
const SLEEP: f32 = 1e-2;
/// Wake velocity over the same: not of motion, but of a pull that adds up while a particle is held.
const WAKE: f32 = 6e-3;

/// Time in which a dozing particle forgets what pulled at it, over that of a fall through one spacing, √(d/g). What pulls
/// by more than `WAKE / FADE` of gravity, 1.1 degrees of slope, wakes it.
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

/// Wakes who sleeps where it may have been turned wet or dry in the step from `start` to `end` [s].
pub fn wake_turned(model: &Model, particles: &mut Particles, [start, end]: [f64; 2]) {
    let Some(turned) = Turned::within(model, start, end) else {
        return;
    };
    let Particles {
        position,
        wetness,
        extra,
        ..
    } = particles;
    let lying = (&*position, &*wetness, extra[QUIET].entries_mut::<f32>());
    lying.into_par_iter().for_each(|(place, wetness, quiet)| {
        if *quiet >= AFTER && turned.holds(*place, *wetness) {
            *quiet = 0.0;
        }
    });
}

/// What may move sleeping material from outside in a step: bodies, and sinks, which take away what it leans on.
pub struct Disturbers<'a> {
    solids: &'a Solids,
    sinks: Vec<&'a Sink>,
}

impl<'a> Disturbers<'a> {
    /// Those of `model` at `time` [s].
    pub fn at(model: &'a Model, solids: &'a Solids, time: f64) -> Self {
        // What has lost its hold needs a while to wake.
        let matters =
            |sink: &&Sink| (sink.active.from..sink.active.until + f64::from(AFTER)).contains(&time);
        Self {
            solids,
            sinks: model.sinks.iter().filter(matters).collect(),
        }
    }

    /// True where one is within `reach` [m] of a place.
    fn near(&self, place: Vec3, reach: f32) -> bool {
        let moving = self.solids.all().iter().any(|solid| {
            // A body that moves by force must be carried even where nothing moves.
            (solid.moves() || solid.inertia().inverse_mass > 0.0)
                && solid.bounds().distance_squared(place) < reach * reach
                && !solid.is_beyond(place, reach)
        });
        let sunk = |sink: &&Sink| !sink.shape.is_beyond(place, reach);
        moving || self.sinks.iter().any(sunk)
    }
}

impl Work {
    /// Flags the cells where something moves, and drops those that neither anybody awake nor a body can feel. True where
    /// nobody is awake.
    pub fn let_sleep(
        &mut self,
        particles: &Particles,
        disturbers: &Disturbers<'_>,
        kernel: &Kernel,
    ) -> bool {
        self.find_awake(particles, disturbers, kernel);
        let asleep = self.awake.iter().filter(|awake| !**awake).count();
        if asleep == 0 {
            self.solved.clear();
            self.solved.resize(self.cells.len(), true);
            self.leaning.clear();
            self.leaning.resize(self.cells.len(), false);
            self.wider.clear();
            self.wider.resize(self.cells.len(), true);
            return self.awake.is_empty();
        }
        // One ring is solved for, the next lends its stress, and the last its places.
        self.cells.dilate(&self.awake, &mut self.solved);
        self.find_leaning(particles, disturbers.solids, kernel);
        self.cells.dilate(&self.solved, &mut self.wider);
        for (wider, leaning) in self.wider.iter_mut().zip(&self.leaning) {
            *wider |= *leaning;
        }
        self.cells.dilate(&self.wider, &mut self.kept);
        self.cells.keep(&self.kept);
        for flags in [&mut self.solved, &mut self.leaning, &mut self.wider] {
            let mut kept = self.kept.iter();
            flags.retain(|_| kept.next().is_some_and(|kept| *kept));
        }
        asleep == self.awake.len()
    }

    /// Flags the cells that are left out but have someone beside a body.
    fn find_leaning(&mut self, particles: &Particles, solids: &Solids, kernel: &Kernel) {
        let (cells, solved) = (&self.cells, &self.solved);
        let reach = (0.8661 + 1.0) * kernel.reach;
        self.leaning.resize(cells.len(), false);
        self.leaning
            .par_iter_mut()
            .enumerate()
            .with_min_len(256)
            .for_each(|(cell, leaning)| {
                let middle = (cells.coordinates(cell).as_vec3() + 0.5) * kernel.reach;
                let beside = |solid: &Solid| {
                    solid.bounds().distance_squared(middle) < reach * reach
                        && !solid.is_beyond(middle, reach)
                        && cells.order()[cells.places(cell)].iter().any(|member| {
                            !solid.is_beyond(particles.position[*member as usize], kernel.reach)
                        })
                };
                *leaning = !solved[cell] && solids.all().iter().any(beside);
            });
    }

    fn find_awake(&mut self, particles: &Particles, disturbers: &Disturbers<'_>, kernel: &Kernel) {
        let (cells, quiet) = (&self.cells, particles.extra[QUIET].entries::<f32>());
        let reach = (0.8661 + 1.0) * kernel.reach;
        self.awake.resize(cells.len(), false);
        self.awake
            .par_iter_mut()
            .enumerate()
            .with_min_len(256)
            .for_each(|(cell, awake)| {
                let middle = (cells.coordinates(cell).as_vec3() + 0.5) * kernel.reach;
                let mut members = cells.order()[cells.places(cell)].iter();
                *awake = disturbers.near(middle, reach)
                    || members.any(|member| quiet[*member as usize] < AFTER);
            });
    }
}
