//! All grains from one frame to the next.

use super::advance::Stepper;
use super::contact::Contacts;
use super::field::Field;
use super::guides::{Guide, Guides};
use super::order::by_place;
use super::rule::Law;
use super::settings::{Rule, Settings};
use super::walls::{Moment, Walls};
use crate::cache::Grains;
use barchan_base::parallel::{CHUNK, chunks};
use barchan_sim::body::SequenceError;
use barchan_sim::clock::{Clock, TICKS_PER_FRAME};
use barchan_sim::model::Model;
use barchan_sim::solids::BodyPlace;
use glam::Vec3;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Moves grains from frame to frame; holds scratch only.
pub struct Advancer {
    settings: Settings,
    field: Field,
    walls: Walls,
    guides: Vec<Guide>,
    points: Vec<Guide>,
    /// Grain at each place of the order, and where they are.
    order: Vec<u32>,
    position: Vec<Vec3>,
    velocity: Vec<Vec3>,
}

/// What lies between two frames.
pub struct Interval<'a> {
    /// Number of the first frame.
    pub frame: u32,
    /// Frames a second.
    pub fps: f64,
    /// The particles on their way.
    pub guides: &'a Guides,
    /// Where the bodies are at both ends.
    pub bodies: (&'a [BodyPlace], &'a [BodyPlace]),
    /// Radius of a grain [m].
    pub radius: f32,
}

impl Advancer {
    /// An advancer with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            field: Field::default(),
            walls: Walls::default(),
            guides: Vec::new(),
            points: Vec::new(),
            order: Vec::new(),
            position: Vec::new(),
            velocity: Vec::new(),
        }
    }

    /// Moves `grains` over an interval; returns how many steps it took.
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn advance(
        &mut self,
        model: &Model,
        grains: &mut Grains,
        interval: &Interval<'_>,
    ) -> Result<u32, SequenceError> {
        let largest = interval.guides.largest_radius();
        self.take(grains, self.settings.reach * largest);
        let mut clock = Clock {
            frame: interval.frame,
            ..Clock::new(interval.fps)
        };
        loop {
            let step = clock.plan(self.settings.step);
            let part = |tick: u64| tick as f32 / TICKS_PER_FRAME as f32;
            let moment = Moment {
                times: (step.start, step.end),
                parts: (part(clock.tick), part(clock.tick + step.ticks)),
            };
            self.walls.place(model, moment, interval.bodies)?;
            self.step(model, interval, moment, clock.step as u32);
            if clock.advance(&step) {
                break;
            }
        }
        self.give_back(grains);
        Ok(clock.step as u32)
    }

    fn step(&mut self, model: &Model, interval: &Interval<'_>, moment: Moment, number: u32) {
        let settings = &self.settings;
        let dt = (moment.times.1 - moment.times.0) as f32;
        let alduan = settings.rule == Rule::Alduan;
        let interpolates = !alduan || number.is_multiple_of(settings.every);
        if interpolates {
            let largest = interval.guides.largest_radius();
            interval.guides.during(moment.parts, dt, &mut self.guides);
            self.field
                .sort_particles(&self.guides, settings.reach, largest);
            self.points.clear();
            if !alduan {
                let spacing = 2.0 * largest;
                let (cells, size) = (self.field.cells(), self.field.cell());
                self.walls.points(cells, size, spacing, &mut self.points);
            }
            self.field.sort_walls(&self.points, settings.reach);
        }
        let stepper = Stepper {
            law: interpolates.then(|| Law::new(settings)),
            field: &self.field,
            contacts: Contacts::new(model, &self.walls.solids, interval.radius, dt),
            pull: model.gravity * dt,
            dt,
        };
        stepper.advance(&mut self.position, &mut self.velocity);
    }

    /// Copies grains in the order of their places.
    fn take(&mut self, grains: &Grains, reach: f32) {
        self.order = by_place(&grains.position, reach.max(f32::MIN_POSITIVE));
        gather(&grains.position, &self.order, &mut self.position);
        gather(&grains.velocity, &self.order, &mut self.velocity);
    }

    /// Copies them back.
    fn give_back(&mut self, grains: &mut Grains) {
        let place: Vec<AtomicU32> = (0..self.order.len())
            .into_par_iter()
            .map(|_| AtomicU32::new(0))
            .collect();
        // Each is written once, by whomever.
        chunks(self.order.len()).for_each(|range| {
            for i in range {
                place[self.order[i] as usize].store(i as u32, Ordering::Relaxed);
            }
        });
        let place: Vec<u32> = place.into_iter().map(AtomicU32::into_inner).collect();
        gather(&self.position, &place, &mut grains.position);
        gather(&self.velocity, &place, &mut grains.velocity);
    }
}

/// Makes entry `i` of `to` entry `order[i]` of `from`.
fn gather(from: &[Vec3], order: &[u32], to: &mut Vec<Vec3>) {
    to.resize(order.len(), Vec3::ZERO);
    to.par_chunks_mut(CHUNK)
        .zip(order.par_chunks(CHUNK))
        .for_each(|(to, order)| {
            for (to, i) in to.iter_mut().zip(order) {
                *to = from[*i as usize];
            }
        });
}
