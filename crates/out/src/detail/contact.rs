//! Grains against bodies: the first touch of a moving ball, so that none is missed, restitution and friction.

use barchan_base::shape::Touch;
use barchan_sim::contact::bounce;
use barchan_sim::model::Model;
use barchan_sim::solids::{Solid, Solids};
use glam::Vec3;

/// Touches of one grain in one step; after that the body it touched last takes it along.
const MOST_TOUCHES: usize = 6;
/// After its first touch a grain is swept as a smaller ball, so that it follows gentle curves; it is set right at the end.
const SLIDING: f32 = 0.75;
/// Impacts slower than this many times what gravity gives in the step are contact, not bounces.
const RESTING: f32 = 1.5;
/// Overlaps below this part of the radius are rounding.
const OVERLAP: f32 = 1e-3;

/// The bodies of a step, as grains meet them.
pub struct Contacts<'a> {
    solids: &'a [Solid],
    restitution: f32,
    /// Radius of the largest grain [m].
    largest: f32,
    /// Slower impacts than this are contact [m/s].
    resting: f32,
    /// The furthest that a body moves, or sends a grain, in the step [m].
    batted: f32,
    dt: f32,
}

/// One bit a solid; beyond 64 solids share bits, which costs time but misses nothing.
pub type Mask = u64;

fn bit(body: usize) -> Mask {
    1 << (body % 64)
}

impl<'a> Contacts<'a> {
    /// The bodies of a step of `dt` [s], for grains of which the largest has the radius `largest` [m].
    pub fn new(model: &Model, solids: &'a Solids, largest: f32, dt: f32) -> Self {
        let bounces = model.materials.iter().map(|m| m.restitution as f32);
        Self {
            solids: solids.all(),
            restitution: bounces.fold(1.0, f32::min),
            largest,
            resting: RESTING * model.gravity.length() * dt,
            // A body that meets a grain sends it off at twice its own speed at most.
            batted: 2.0 * solids.all().iter().map(Solid::speed).fold(0.0, f32::max) * dt,
            dt,
        }
    }

    /// The solids that grains within `around` [m] of `middle` can meet on a way of `way` [m].
    pub fn near(&self, middle: Vec3, around: f32, way: f32) -> Mask {
        let reach = around + way + self.batted + self.largest;
        let near = |solid: &Solid| {
            solid.bounds().distance_squared(middle) <= reach * reach
                // What deforms is known at the end of the step only.
                && (solid.is_deforming() || !solid.is_beyond(middle, reach))
        };
        let bodies = self.solids.iter().enumerate();
        bodies
            .filter(|(_, solid)| near(solid))
            .fold(0, |mask, (body, _)| mask | bit(body))
    }

    fn some(&self, mask: Mask) -> impl Iterator<Item = (usize, &'a Solid)> {
        let bodies = self.solids.iter().enumerate();
        bodies.filter(move |(body, _)| mask & bit(*body) != 0)
    }

    /// Moves a grain of radius `size` [m] for the step, among the solids of `mask`.
    pub fn advance(&self, position: &mut Vec3, velocity: &mut Vec3, size: f32, mask: Mask) {
        self.push_out((position, velocity, size), mask, 0.0);
        let (mut begin, mut radius, mut last) = (0.0, size, None);
        for _ in 0..MOST_TOUCHES {
            let way = *velocity * (self.dt * (1.0 - begin));
            let Some((solid, touch)) = self.first_touch(*position, way, (radius, begin), mask)
            else {
                *position += way;
                self.push_out((position, velocity, size), mask, 1.0);
                return;
            };
            *position += way * touch.fraction;
            begin += (1.0 - begin) * touch.fraction;
            radius = SLIDING * size;
            *velocity = self.after(solid, *position, *velocity, touch.normal);
            last = Some(solid);
        }
        // Wedged: for the rest of the step it goes where the body it touched last goes.
        if let Some(solid) = last {
            *position = solid.carry(*position, begin);
            *velocity = solid.velocity(*position);
        }
        self.push_out((position, velocity, size), mask, 1.0);
    }

    fn first_touch(
        &self,
        from: Vec3,
        way: Vec3,
        (radius, begin): (f32, f32),
        mask: Mask,
    ) -> Option<(&'a Solid, Touch)> {
        self.some(mask)
            .filter_map(|(_, solid)| Some((solid, solid.sweep(from, from + way, radius, begin)?)))
            .min_by(|a, b| a.1.fraction.total_cmp(&b.1.fraction))
    }

    /// Velocity after a touch.
    fn after(&self, solid: &Solid, position: Vec3, velocity: Vec3, normal: Vec3) -> Vec3 {
        let wall = solid.velocity(position);
        let relative = velocity - wall;
        let restitution = match -relative.dot(normal) > self.resting {
            true => solid.restitution.unwrap_or(self.restitution),
            false => 0.0,
        };
        wall + bounce(relative, normal, restitution, solid.friction)
    }

    /// Moves a grain out of what it overlaps at a moment of the step (0 or 1), and takes away the speed into it.
    fn push_out(
        &self,
        (position, velocity, radius): (&mut Vec3, &mut Vec3, f32),
        mask: Mask,
        moment: f32,
    ) {
        for _ in 0..2 {
            let mut moved = false;
            for (_, solid) in self.some(mask) {
                let surface = solid.surface_at(*position, moment);
                let depth = radius - surface.distance;
                if depth.is_nan() || depth <= OVERLAP * radius {
                    continue;
                }
                *position += surface.normal * depth;
                if moment > 0.5 {
                    let wall = solid.velocity(*position);
                    let relative = *velocity - wall;
                    *velocity = wall + bounce(relative, surface.normal, 0.0, solid.friction);
                }
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}

/// Parts of the way back to its particle that a grain tries which solids push to and fro.
const BACK: [f32; 4] = [0.75, 0.5, 0.25, 0.0];

/// Puts a new grain of the particle at `centre` where no solid is: as far above a surface as it was below, and out of corners. Between two
/// solids that leave it no room, as where a wall stands on a floor, it is put nearer to its particle.
pub fn mirrored(solids: &Solids, centre: Vec3, wanted: Vec3, radius: f32) -> Vec3 {
    let mut place = wanted;
    for solid in solids.all() {
        let surface = solid.surface_at(place, 1.0);
        if surface.distance < 0.0 && surface.normal.is_finite() {
            place -= surface.normal * (2.0 * surface.distance);
        }
    }
    for _ in 0..3 {
        for solid in solids.all() {
            let surface = solid.surface_at(place, 1.0);
            if surface.distance < radius && surface.normal.is_finite() {
                place += surface.normal * (radius - surface.distance);
            }
        }
    }
    let is_free = |place: &Vec3| {
        let mut all = solids.all().iter();
        all.all(|solid| solid.distance(*place) > -0.5 * radius)
    };
    if is_free(&place) {
        return place;
    }
    let back = BACK.map(|part| centre.lerp(wanted, part));
    back.into_iter().find(is_free).unwrap_or(centre)
}
