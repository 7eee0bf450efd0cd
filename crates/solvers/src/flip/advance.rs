//! From the grid back to the particles: their velocity, and their way through the velocity field, around solids.

use super::boundary::Boundary;
use super::field::{Faces, Field};
use super::transfer::Weights;
use crate::material::contact::bounce;
use barchan_base::bounds::Bounds;
use barchan_base::grid::{CELLS, Halo, block_of, local_of};
use barchan_base::parallel;
use barchan_sim::scene::Transfer;
use barchan_sim::solids::Solid;
use barchan_sim::state::Particles;
use glam::{IVec3, Mat3, Vec3};
use rayon::prelude::*;

/// Cells of a block with two more on each side: what a particle can see on its way.
const EDGE: usize = Halo::<2>::EDGE;
const SEEN: usize = Halo::<2>::CELLS;
/// A particle that is slower than this part of what gravity gives in a step, under pressure, is at rest.
const REST: f32 = 0.02;
/// Particles keep this part of their radius from solids.
const CLEARANCE: f32 = 0.5;

/// What moves the particles of a step.
pub(super) struct Advance<'a> {
    pub field: &'a Field,
    pub boundary: &'a Boundary,
    pub solids: &'a [Solid],
    pub transfer: Transfer,
    /// Displacement that mends the density, in cells; only positions feel it.
    pub repair: Option<&'a Faces>,
    /// Displacement of each particle [m] that keeps it from the others.
    pub shift: &'a [Vec3],
    /// Pressure of the cells, where particles may fall asleep under it.
    pub pressure: Option<&'a [f32]>,
    pub dt: f32,
    /// Gravity × time step [m/s].
    pub push: f32,
    pub radius: f32,
}

/// What the particles did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub kinetic_energy: f64,
    pub max_speed_squared: f32,
    pub resting: u64,
}

/// A block's surroundings in small arrays.
struct View {
    velocity: [[f32; SEEN]; 3],
    /// The change of velocity in this step; for FLIP.
    change: [[f32; SEEN]; 3],
    repair: [[f32; SEEN]; 3],
}

impl Advance<'_> {
    /// Moves all particles.
    pub fn particles(&self, particles: &mut Particles, affine: Option<&mut [Mat3]>) -> Moved {
        let field = self.field;
        let found = field.found();
        let Particles {
            position,
            velocity,
            mass,
            ..
        } = particles;
        let positions = field.split(&mut position[..found]);
        let velocities = field.split(&mut velocity[..found]);
        let affines: Vec<Option<&mut [Mat3]>> = match affine {
            Some(affine) => field
                .split(&mut affine[..found])
                .into_iter()
                .map(Some)
                .collect(),
            None => positions.iter().map(|_| None).collect(),
        };
        let halo = Halo::<2>::new();
        let parts: Vec<Moved> = (&field.occupied, positions, velocities, affines)
            .into_par_iter()
            .map(|(block, positions, velocities, affine)| {
                let block = *block as usize;
                let masses = &mass[field.particles_in(block)];
                self.block(&halo, block, (positions, velocities, affine), masses)
            })
            .collect();
        parts.into_iter().fold(Moved::default(), |a, b| Moved {
            kinetic_energy: a.kinetic_energy + b.kinetic_energy,
            max_speed_squared: a.max_speed_squared.max(b.max_speed_squared),
            resting: a.resting + b.resting,
        })
    }

    fn view(&self, halo: &Halo<2>, block: usize) -> Box<View> {
        let around = self.field.grid.around(block);
        let mut view = Box::new(View {
            velocity: [[0.0; SEEN]; 3],
            change: [[0.0; SEEN]; 3],
            repair: [[0.0; SEEN]; 3],
        });
        for axis in 0..3 {
            let (now, before) = (&self.field.velocity[axis], &self.field.before[axis]);
            halo.gather(around, &mut view.velocity[axis], |cell| now[cell]);
            if matches!(self.transfer, Transfer::Flip(_)) {
                halo.gather(around, &mut view.change[axis], |cell| {
                    now[cell] - before[cell]
                });
            }
            if let Some(repair) = self.repair {
                halo.gather(around, &mut view.repair[axis], |cell| repair[axis][cell]);
            }
        }
        view
    }

    fn block(
        &self,
        halo: &Halo<2>,
        block: usize,
        (positions, velocities, mut affine): (&mut [Vec3], &mut [Vec3], Option<&mut [Mat3]>),
        masses: &[f32],
    ) -> Moved {
        let view = self.view(halo, block);
        let corner = self.field.grid.origin(block).as_vec3();
        let near = self.boundary.is_near(block);
        let first = self.field.particles_in(block).start;
        let mut moved = Moved::default();
        for i in 0..positions.len() {
            let at = self.field.within(block, positions[i]);
            let (flow, slopes) = sample(&view.velocity, at, affine.is_some());
            let mut velocity = match self.transfer {
                Transfer::Apic => flow,
                Transfer::Flip(ratio) => {
                    let (change, _) = sample(&view.change, at, false);
                    flow.lerp(velocities[i] + change, ratio)
                }
            };
            let cell = block * CELLS + local_of(at.floor().as_ivec3());
            let pressed = self.pressure.is_some_and(|pressure| pressure[cell] > 0.0);
            let rests = pressed && velocity.length_squared() < (REST * self.push).powi(2);
            if rests {
                velocities[i] = Vec3::ZERO;
                if let Some(affine) = &mut affine {
                    affine[i] = Mat3::ZERO;
                }
                moved.resting += 1;
                continue;
            }
            let mut to = self.flow(&view, (block, corner), at, flow);
            if self.repair.is_some() {
                to += sample(&view.repair, at, false).0;
            }
            let mut to = (to + corner) * self.field.dx + self.shift[first + i];
            if near {
                // What bears pressure was rubbed in the solve; walls rub the others here.
                let rubs = !pressed;
                self.keep_out(positions[i], &mut to, (&mut velocity, rubs));
            }
            positions[i] = to;
            velocities[i] = velocity;
            if let Some(affine) = &mut affine {
                affine[i] = slopes * self.field.inverse;
            }
            let square = velocity.length_squared();
            moved.kinetic_energy += 0.5 * f64::from(masses[i]) * f64::from(square);
            moved.max_speed_squared = moved.max_speed_squared.max(square);
        }
        moved
    }

    /// Where a particle flows to, in cells from the block's corner: Runge's midpoint rule, in steps of at most a cell.
    fn flow(&self, view: &View, block: (usize, Vec3), from: Vec3, flow: Vec3) -> Vec3 {
        let way = self.dt * self.field.inverse;
        let cells = flow.length() * way;
        if cells <= 1.0 {
            let middle = from + flow * (0.5 * way);
            return from + sample(&view.velocity, middle, false).0 * way;
        }
        let parts = cells.ceil().min(16.0);
        let way = way / parts;
        let (mut at, mut flow) = (from, flow);
        for _ in 0..parts as u32 {
            let middle = self.anywhere(block, at + flow * (0.5 * way));
            at += middle * way;
            flow = self.anywhere(block, at);
        }
        at
    }

    /// The velocity at a point that may be far from the block.
    fn anywhere(&self, (block, corner): (usize, Vec3), point: Vec3) -> Vec3 {
        let mut result = Vec3::ZERO;
        let origin = corner.as_ivec3();
        for axis in 0..3 {
            let weights = Weights::new(point, axis);
            let base = IVec3::from_array(weights.base);
            for (node, weight) in weights.eight().into_iter().enumerate() {
                let n = node as i32;
                let cell = base + IVec3::new(n & 1, n >> 1 & 1, n >> 2);
                result[axis] += weight * self.face(block, origin, cell, axis);
            }
        }
        result
    }

    fn face(&self, block: usize, origin: IVec3, cell: IVec3, axis: usize) -> f32 {
        let beside = block_of(cell);
        let index = if beside.cmpge(IVec3::NEG_ONE).all() && beside.cmple(IVec3::ONE).all() {
            let slot = (beside.x + 1 + 3 * (beside.y + 1) + 9 * (beside.z + 1)) as usize;
            self.field.grid.around(block)[slot] as usize * CELLS + local_of(cell)
        } else {
            match self.field.grid.index(origin + cell) {
                Some(index) => index,
                None => return 0.0,
            }
        };
        self.field.velocity[axis][index]
    }

    /// Stops a particle at the first solid on its way, and keeps it clear of all.
    fn keep_out(&self, from: Vec3, to: &mut Vec3, (velocity, rubs): (&mut Vec3, bool)) {
        let clear = CLEARANCE * self.radius;
        let way = from.distance(*to);
        for solid in self.solids {
            if !solid.moves() && solid.is_beyond(*to, way + clear) {
                continue;
            }
            let reach = way + clear;
            if solid.bounds().distance_squared(*to) > reach * reach {
                continue;
            }
            let room = solid.distance(from);
            // A way longer than the room before it may lead through.
            let radius = clear.min(0.5 * room);
            if room > 0.0
                && (way > room || solid.moves())
                && let Some(touch) = solid.sweep(from, *to, radius, 0.0)
            {
                let stop = from.lerp(*to, touch.fraction);
                let rest = *to - stop;
                *to = stop + rest - touch.normal * rest.dot(touch.normal).min(0.0);
            }
            let contact = solid.contact(*to);
            if contact.distance < clear {
                *to += contact.normal * (clear - contact.distance);
                let relative = *velocity - contact.velocity;
                if relative.dot(contact.normal) < 0.0 {
                    let friction = if rubs { solid.friction } else { 0.0 };
                    *velocity = contact.velocity + bounce(relative, contact.normal, 0.0, friction);
                }
            }
        }
    }
}

/// The value of the three components at a point given in cells from the block's corner, and their slopes.
#[inline]
fn sample(values: &[[f32; SEEN]; 3], point: Vec3, with_slopes: bool) -> (Vec3, Mat3) {
    let mut result = Vec3::ZERO;
    let mut rows = [Vec3::ZERO; 3];
    for axis in 0..3 {
        let weights = Weights::new(point, axis);
        // A point near the rim of what is seen is drawn back to it.
        let [x, y, z] = weights
            .base
            .map(|b| (b + 2).clamp(0, EDGE as i32 - 2) as usize);
        let first = x + EDGE * (y + EDGE * z);
        let v = &values[axis];
        let corner = |i: usize| v[first + (i & 1) + EDGE * (i >> 1 & 1) + EDGE * EDGE * (i >> 2)];
        let [fx, fy, fz] = weights.beyond;
        let lerp = |a: f32, b: f32, f: f32| a + (b - a) * f;
        // Along x first, then y, then z.
        let low = [0, 2, 4, 6].map(|i| lerp(corner(i), corner(i + 1), fx));
        let bottom = lerp(low[0], low[1], fy);
        let top = lerp(low[2], low[3], fy);
        result[axis] = lerp(bottom, top, fz);
        if with_slopes {
            let step = [0, 2, 4, 6].map(|i| corner(i + 1) - corner(i));
            rows[axis] = Vec3::new(
                lerp(lerp(step[0], step[1], fy), lerp(step[2], step[3], fy), fz),
                lerp(low[1] - low[0], low[3] - low[2], fz),
                top - bottom,
            );
        }
    }
    (
        result,
        Mat3::from_cols(rows[0], rows[1], rows[2]).transpose(),
    )
}

/// The box around the particles.
pub(super) fn around(positions: &[Vec3]) -> Bounds {
    parallel::fold_chunks(
        positions.len(),
        Bounds::of([]),
        |range| Bounds::of(positions[range].iter().copied()),
        Bounds::union,
    )
}

/// Speed, root mean square [m/s], of the particles that bore pressure in the last step: that is in column `pressure`.
pub(super) fn mean_speed(particles: &Particles, pressure: usize) -> f32 {
    let (velocity, pressure) = (
        &particles.velocity,
        particles.extra[pressure].entries::<f32>(),
    );
    let (sum, count) = parallel::fold_chunks(
        velocity.len(),
        (0.0f64, 0u64),
        |range| {
            let pressed = range.filter(|i| pressure[*i] > 0.0);
            let squares = pressed.map(|i| f64::from(velocity[i].length_squared()));
            let finite = squares.filter(|square| square.is_finite());
            finite.fold((0.0, 0), |(sum, count), square| (sum + square, count + 1))
        },
        |a, b| (a.0 + b.0, a.1 + b.1),
    );
    (sum / count.max(1) as f64).sqrt() as f32
}

/// The fastest particle [m/s].
pub(super) fn fastest(velocity: &[Vec3]) -> f32 {
    let square = parallel::fold_chunks(
        velocity.len(),
        0.0f32,
        |range| {
            let squares = velocity[range].iter().map(|v| v.length_squared());
            squares.filter(|v| v.is_finite()).fold(0.0, f32::max)
        },
        f32::max,
    );
    square.sqrt()
}
