//! A grain's way through a step: free flight, impacts, contact.

use super::ChunkReport;
use super::flight::Flight;
use crate::material::contact::bounce;
use barchan_base::parallel::fold_chunks;
use barchan_base::shape::Touch;
use barchan_sim::model::Model;
use barchan_sim::solids::{Solid, Solids};
use barchan_sim::state::Particles;
use glam::Vec3;

/// Touches of one grain in one step; after that the body it touched last takes it along until the next.
const MOST_TOUCHES: usize = 8;

/// In contact a grain is swept as a smaller ball, so that it follows gentle curves; it is set right at the end.
const CONTACT_RADIUS: f32 = 0.75;

/// Impacts slower than this many times what the pull gives in the whole step are contact, not bounces.
const RESTING: f32 = 1.5;

/// One grain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    pub position: Vec3,
    pub velocity: Vec3,
    pub radius: f32,
    pub mass: f32,
    pub material: u16,
}

/// The bodies of a step, as grains meet them.
pub(super) struct Collider<'a> {
    solids: &'a [Solid],
    restitutions: Vec<f32>,
    dt: f32,
    /// Mass [kg] of all grains that meet each body in this step; counted for dynamic bodies only.
    met: Vec<f32>,
}

/// The solids that a grain can meet in a step.
#[derive(Clone, Copy)]
struct Near {
    /// One bit a solid; beyond 64 solids share bits, which costs time but misses nothing.
    mask: u64,
    /// True as long as the grain stays within `way` of here.
    from: Vec3,
    way: f32,
    /// The grain may overlap one of them now.
    overlaps: bool,
}

fn bit(body: usize) -> u64 {
    1 << (body % 64)
}

/// Overlaps below this part of the radius are rounding.
const OVERLAP: f32 = 1e-3;

/// How a grain moves for the rest of the step.
#[derive(Clone, Copy)]
enum Mode {
    Free,
    /// Along a body at this mean velocity.
    Contact(Vec3),
}

impl<'a> Collider<'a> {
    pub fn new(model: &Model, solids: &'a Solids, dt: f32) -> Self {
        Self {
            solids: solids.all(),
            restitutions: model
                .materials
                .iter()
                .map(|material| material.restitution as f32)
                .collect(),
            dt,
            met: vec![0.0; solids.all().len()],
        }
    }

    /// Weighs the grains that will meet each dynamic body.
    pub fn weigh(&mut self, particles: &Particles, flights: &[Flight]) {
        for (body, solid) in self.solids.iter().enumerate() {
            if solid.inertia().inverse_mass == 0.0 {
                continue;
            }
            let mass = |grain: usize| {
                let (from, radius) = (particles.position[grain], particles.radius[grain]);
                let flight = &flights[particles.material[grain] as usize];
                let (way, _) = flight.after(particles.velocity[grain], self.dt);
                let reach = radius + way.length();
                // Written so that NaN meets nothing.
                let near = solid.bounds().distance_squared(from) <= reach * reach;
                match near && solid.sweep(from, from + way, radius, 0.0).is_some() {
                    true => f64::from(particles.mass[grain]),
                    false => 0.0,
                }
            };
            let sum = |range: std::ops::Range<usize>| range.map(mass).sum();
            self.met[body] = fold_chunks(particles.len(), 0.0, sum, |a, b| a + b) as f32;
        }
    }

    /// The part of an impulse that a grain at `point` gives to its share of a body, of what it would give to a wall.
    /// `momentum` is what a wall would take.
    fn share(&self, body: usize, grain: &Grain, momentum: Vec3) -> f32 {
        let inertia = self.solids[body].inertia();
        match momentum.try_normalize() {
            Some(direction) if inertia.inverse_mass > 0.0 => {
                let met = self.met[body].max(grain.mass);
                1.0 / (1.0 + met * inertia.yielding(grain.position, direction))
            }
            _ => 1.0,
        }
    }

    /// Takes `grain` through the step.
    #[inline]
    pub fn advance(&self, grain: &mut Grain, flight: &Flight, report: &mut ChunkReport) {
        let (way, velocity) = flight.after(grain.velocity, self.dt);
        if !self.solids.is_empty() {
            let near = self.near(grain.position, grain.radius, way.length());
            if near.mask != 0 {
                return self.advance_near(grain, flight, near, report);
            }
        }
        // Most grains are far from everything, and done.
        grain.position += way;
        grain.velocity = velocity;
    }

    /// The solids that a ball of `radius` can meet within `way` [m] of `point` during this step.
    fn near(&self, point: Vec3, radius: f32, way: f32) -> Near {
        let reach = radius + way;
        let mut near = Near {
            mask: 0,
            from: point,
            way,
            overlaps: false,
        };
        for (body, solid) in self.solids.iter().enumerate() {
            if solid.bounds().distance_squared(point) > reach * reach {
                continue;
            }
            if solid.moves() {
                near.overlaps = true; // perhaps: where it was at the start is not known here
            } else {
                if solid.is_beyond(point, reach) {
                    continue;
                }
                near.overlaps |= solid.distance(point) < radius * (1.0 - OVERLAP);
            }
            near.mask |= bit(body);
        }
        near
    }

    #[inline(never)] // the loop over free grains stays small
    fn advance_near(
        &self,
        grain: &mut Grain,
        flight: &Flight,
        mut near: Near,
        report: &mut ChunkReport,
    ) {
        if !grain.position.is_finite() {
            return; // lost, and noticed after the step
        }
        if near.overlaps {
            self.push_out(grain, near.mask, 0.0, report);
        }
        let (mut begin, mut last, mut passed) = (0.0, 0, 0);
        let mut mode = Mode::Free;
        for _ in 0..MOST_TOUCHES {
            let time = self.dt * (1.0 - begin);
            let (way, velocity, radius) = match mode {
                Mode::Free => {
                    let (way, velocity) = flight.after(grain.velocity, time);
                    (way, velocity, grain.radius)
                }
                Mode::Contact(drift) => {
                    (drift * time, grain.velocity, grain.radius * CONTACT_RADIUS)
                }
            };
            // A moving body may have batted it further than it could have gone by itself.
            if grain.position.distance(near.from) + way.length() > near.way {
                near = self.near(grain.position, grain.radius, way.length());
                near.mask &= !passed;
            }
            let Some((body, touch)) =
                self.first_touch(grain.position, way, (radius, begin), near.mask)
            else {
                grain.position += way;
                grain.velocity = velocity;
                self.push_out(grain, near.mask, 1.0, report);
                return;
            };
            report.contacts += 1;
            grain.position += way * touch.fraction;
            grain.velocity = grain.velocity.lerp(velocity, touch.fraction);
            begin += (1.0 - begin) * touch.fraction;
            mode = self.touch(grain, (body, touch), flight, (begin, mode), report);
            last = body;
            // A body that gives way is not where it seems to be: for the rest of the step the grain does not see it,
            // nor, beyond 64 solids, those that share its bit.
            let solid = &self.solids[body];
            if solid.inertia().inverse_mass > 0.0
                && (grain.velocity - solid.velocity(grain.position)).dot(touch.normal) < 0.0
            {
                near.mask &= !bit(body);
                passed |= bit(body);
            }
        }
        // Wedged: for the rest of the step it goes where the body it touched last goes.
        report.held += 1;
        let carried = self.solids[last].carry(grain.position, begin);
        let after = self.solids[last].velocity(carried);
        grain.position = carried;
        self.change(grain, last, (grain.velocity, after), report);
        self.push_out(grain, near.mask, 1.0, report);
    }

    fn first_touch(
        &self,
        from: Vec3,
        way: Vec3,
        (radius, begin): (f32, f32),
        mask: u64,
    ) -> Option<(usize, Touch)> {
        self.solids
            .iter()
            .enumerate()
            .filter(|(body, _)| mask & bit(*body) != 0)
            .filter_map(|(body, solid)| Some((body, solid.sweep(from, from + way, radius, begin)?)))
            .min_by(|a, b| a.1.fraction.total_cmp(&b.1.fraction))
    }

    /// Changes the velocity at a touch: a bounce, or contact for the rest of the step.
    fn touch(
        &self,
        grain: &mut Grain,
        (body, touch): (usize, Touch),
        flight: &Flight,
        (begin, mode): (f32, Mode),
        report: &mut ChunkReport,
    ) -> Mode {
        let solid = &self.solids[body];
        let wall = solid.velocity(grain.position);
        let relative = grain.velocity - wall;
        let pull = flight.pull(grain.velocity);
        let resting_speed = RESTING * -pull.dot(touch.normal).min(0.0) * self.dt;
        let approach = -relative.dot(touch.normal);
        if approach > resting_speed && matches!(mode, Mode::Free) {
            let restitution = solid
                .restitution
                .unwrap_or(self.restitutions[grain.material as usize]);
            let after = wall + bounce(relative, touch.normal, restitution, solid.friction);
            self.change(grain, body, (grain.velocity, after), report);
            return Mode::Free;
        }
        // In contact the pull of the rest of the step acts at once: the body takes its normal part, friction the rest.
        let kicked = match mode {
            Mode::Free => flight.after(grain.velocity, self.dt * (1.0 - begin)).1,
            Mode::Contact(_) => grain.velocity,
        };
        let after = wall + bounce(kicked - wall, touch.normal, 0.0, solid.friction);
        // The speed changes evenly on the way, as on a parabola: the mean is what moves the grain.
        let before = wall + relative + touch.normal * approach.max(0.0);
        self.change(grain, body, (kicked, after), report);
        Mode::Contact(0.5 * (before + grain.velocity))
    }

    /// Changes the velocity from `before` to `after`, as far as the body holds against it, which takes the difference.
    fn change(
        &self,
        grain: &mut Grain,
        body: usize,
        (before, after): (Vec3, Vec3),
        report: &mut ChunkReport,
    ) {
        let momentum = (before - after) * grain.mass;
        let share = self.share(body, grain, momentum);
        report.impulses.push(body, grain.position, momentum * share);
        grain.velocity = if share < 1.0 {
            before.lerp(after, share)
        } else {
            after
        };
    }

    /// Moves a grain out of what it overlaps at a moment of the step (0 or 1), and takes away the speed into it.
    fn push_out(&self, grain: &mut Grain, mask: u64, moment: f32, report: &mut ChunkReport) {
        for _ in 0..2 {
            let mut moved = false;
            for (body, solid) in self
                .solids
                .iter()
                .enumerate()
                .filter(|(body, _)| mask & bit(*body) != 0)
            {
                let surface = solid.surface_at(grain.position, moment);
                let depth = grain.radius - surface.distance;
                if depth <= 0.0 {
                    continue;
                }
                grain.position += surface.normal * depth;
                if moment > 0.5 {
                    let wall = solid.velocity(grain.position);
                    let after =
                        wall + bounce(grain.velocity - wall, surface.normal, 0.0, solid.friction);
                    self.change(grain, body, (grain.velocity, after), report);
                }
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}
