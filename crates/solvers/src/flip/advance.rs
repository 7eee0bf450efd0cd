//! From the grid back to the particles: their velocity, and their way through the velocity field, around solids.

use super::boundary::Boundary;
use super::eight::{LANES, SEEN, SEEN_WIDE, Vectors, sample, sample_wide, sample_with_slopes};
use super::field::{Faces, Field};
use crate::material::contact::bounce;
use barchan_base::bounds::Bounds;
use barchan_base::grid::{CELLS, Halo, block_of, local_of};
use barchan_base::parallel;
use barchan_sim::scene::Transfer;
use barchan_sim::solids::Solid;
use barchan_sim::state::Particles;
use glam::{IVec3, Mat3, Vec3};
use rayon::prelude::*;
use wide::f32x8;

/// A particle that is slower than this part of what gravity gives in a step, under pressure or carried by others, is at rest.
const REST: f32 = 0.02;
/// Particles keep this part of their radius from solids.
const CLEARANCE: f32 = 0.5;
/// The most parts that a particle's way is taken in.
const MOST_PARTS: f32 = 16.0;

/// What moves the particles of a step.
pub(super) struct Advance<'a> {
    pub field: &'a Field,
    pub boundary: &'a Boundary,
    pub solids: &'a [Solid],
    pub transfer: Transfer,
    /// Displacement that mends the density, in cells; only positions feel it.
    pub repair: Option<&'a Faces>,
    /// Displacement of each particle [m] that keeps it from the others; empty where none is wanted.
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
}

/// A block's surroundings in small arrays.
struct View {
    velocity: [[f32; SEEN]; 3],
    /// The change of velocity in this step; for FLIP.
    change: [[f32; SEEN]; 3],
    repair: [[f32; SEEN]; 3],
    /// The velocity as far as the blocks beside it reach, where particles cross more than a cell.
    wide: Option<Box<[[f32; SEEN_WIDE]; 3]>>,
}

/// The halos that a block's surroundings are gathered by.
#[derive(Default)]
struct Halos {
    near: Halo<2>,
    wide: Halo<4>,
}

/// Up to eight particles of a block.
struct Few<'a> {
    positions: &'a mut [Vec3],
    velocities: &'a mut [Vec3],
    affine: Option<&'a mut [Mat3]>,
    masses: &'a [f32],
    shift: &'a [Vec3],
}

impl Few<'_> {
    /// Lays one to rest.
    fn stop(&mut self, i: usize) {
        self.velocities[i] = Vec3::ZERO;
        if let Some(affine) = &mut self.affine {
            affine[i] = Mat3::ZERO;
        }
    }
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
        let halos = Halos::default();
        let parts: Vec<Moved> = (&field.occupied, positions, velocities, affines)
            .into_par_iter()
            .map(|(block, positions, velocities, affine)| {
                let block = *block as usize;
                let masses = &mass[field.particles_in(block)];
                self.block(&halos, block, (positions, velocities, affine), masses)
            })
            .collect();
        parts.into_iter().fold(Moved::default(), |a, b| Moved {
            kinetic_energy: a.kinetic_energy + b.kinetic_energy,
            max_speed_squared: a.max_speed_squared.max(b.max_speed_squared),
        })
    }

    fn view(&self, halos: &Halos, block: usize) -> Box<View> {
        let around = self.field.grid.around(block);
        let mut view = Box::new(View {
            velocity: [[0.0; SEEN]; 3],
            change: [[0.0; SEEN]; 3],
            repair: [[0.0; SEEN]; 3],
            wide: None,
        });
        let halo = &halos.near;
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
        let crosses = |velocity: &f32| velocity.abs() * self.dt * self.field.inverse > 0.5;
        if view.velocity.as_flattened().iter().any(crosses) {
            let mut wide = Box::new([[0.0; SEEN_WIDE]; 3]);
            for (to, now) in wide.iter_mut().zip(&self.field.velocity) {
                halos.wide.gather(around, to, |cell| now[cell]);
            }
            view.wide = Some(wide);
        }
        view
    }

    fn block(
        &self,
        halos: &Halos,
        block: usize,
        (positions, velocities, mut affine): (&mut [Vec3], &mut [Vec3], Option<&mut [Mat3]>),
        masses: &[f32],
    ) -> Moved {
        let view = self.view(halos, block);
        let first = self.field.particles_in(block).start;
        let mut moved = Moved::default();
        for start in (0..positions.len()).step_by(LANES) {
            let here = start..positions.len().min(start + LANES);
            let mut few = Few {
                positions: &mut positions[here.clone()],
                velocities: &mut velocities[here.clone()],
                affine: affine.as_mut().map(|affine| &mut affine[here.clone()]),
                masses: &masses[here.clone()],
                shift: (self.shift)
                    .get(first + here.start..first + here.end)
                    .unwrap_or(&[]),
            };
            self.advance_few(&view, block, &mut few, &mut moved);
        }
        moved
    }

    /// Moves up to eight particles.
    fn advance_few(&self, view: &View, block: usize, few: &mut Few, moved: &mut Moved) {
        let at = Vectors::new(few.positions, |point| self.field.within(block, point));
        let (flow, slopes) = sample_with_slopes(&view.velocity, &at);
        let velocity = match self.transfer {
            Transfer::Apic => flow,
            Transfer::Flip(ratio) => {
                let own = Vectors::new(few.velocities, |velocity| velocity);
                let carried = own.plus(&sample(&view.change, &at), 1.0);
                flow.plus(&carried.plus(&flow, -1.0), ratio)
            }
        };
        let pressed: [bool; LANES] = std::array::from_fn(|i| self.is_pressed(block, at.lane(i)));
        let rests: [bool; LANES] = std::array::from_fn(|i| {
            (pressed[i] || self.is_carried(block, at.lane(i)))
                && velocity.lane(i).length() < REST * self.push
        });
        if rests[..few.positions.len()].iter().all(|rests| *rests) {
            (0..few.positions.len()).for_each(|i| few.stop(i));
            return;
        }
        let mut to = self.flow_on(view, block, &at, &flow);
        if self.repair.is_some() {
            to = to.plus(&sample(&view.repair, &at), 1.0);
        }
        let corner = self.field.grid.origin(block).as_vec3();
        let mut goals: [Goal; LANES] = std::array::from_fn(|i| Goal {
            moves: i < few.positions.len() && !rests[i],
            // What bears pressure was rubbed in the solve; walls rub the others here.
            rubs: !pressed[i],
            to: (to.lane(i) + corner) * self.field.dx
                + few.shift.get(i).copied().unwrap_or(Vec3::ZERO),
            velocity: velocity.lane(i),
        });
        if self.boundary.is_near(block) {
            self.keep_out(few.positions, &mut goals[..few.positions.len()]);
        }
        for (i, goal) in goals[..few.positions.len()].iter().enumerate() {
            if !goal.moves {
                few.stop(i);
                continue;
            }
            few.positions[i] = goal.to;
            few.velocities[i] = goal.velocity;
            if let Some(affine) = &mut few.affine {
                let rows = Mat3::from_cols(slopes[0].lane(i), slopes[1].lane(i), slopes[2].lane(i));
                affine[i] = rows.transpose() * self.field.inverse;
            }
            let square = goal.velocity.length_squared();
            moved.kinetic_energy += 0.5 * f64::from(few.masses[i]) * f64::from(square);
            moved.max_speed_squared = moved.max_speed_squared.max(square);
        }
    }

    /// True where particles bear pressure under which they may fall asleep: at a point given in cells from the block's corner.
    fn is_pressed(&self, block: usize, at: Vec3) -> bool {
        let cell = block * CELLS + local_of(at.floor().as_ivec3());
        self.pressure.is_some_and(|pressure| pressure[cell] > 0.0)
    }

    /// True where what does not fall is carried by others.
    fn is_carried(&self, block: usize, at: Vec3) -> bool {
        let cell = block * CELLS + local_of(at.floor().as_ivec3());
        self.pressure.is_some() && !self.field.active[cell]
    }

    /// Where particles flow to, in cells from the block's corner, by the midpoint rule; those that cross more than a cell go in
    /// parts of at most one.
    fn flow_on(&self, view: &View, block: usize, at: &Vectors, flow: &Vectors) -> Vectors {
        let way = self.dt * self.field.inverse;
        let cells = flow.lengths() * f32x8::splat(way);
        let Some(wide) = view
            .wide
            .as_ref()
            .filter(|_| cells.simd_gt(f32x8::ONE).any())
        else {
            return at.plus(&sample(&view.velocity, &at.plus(flow, 0.5 * way)), way);
        };
        let parts = cells.ceil().fast_min(f32x8::splat(MOST_PARTS));
        let parts = parts.fast_max(f32x8::ONE);
        let part = f32x8::splat(way) / parts;
        let (mut to, mut flow_there, mut beyond) = (*at, *flow, f32x8::ZERO);
        for i in 0..MOST_PARTS as usize {
            // Those that have arrived stay.
            let goes_on = parts.simd_gt(f32x8::splat(i as f32));
            if !goes_on.any() {
                break;
            }
            let part = goes_on & part;
            if i > 0 {
                let (there, unseen) = sample_wide(wide, &to);
                (flow_there, beyond) = (there, beyond | (unseen & goes_on));
            }
            let middle = to.plus_each(&flow_there, part * f32x8::splat(0.5));
            let (halfway, unseen) = sample_wide(wide, &middle);
            (to, beyond) = (to.plus_each(&halfway, part), beyond | (unseen & goes_on));
        }
        let beyond = beyond.to_bitmask();
        for lane in (0..LANES).filter(|lane| beyond >> lane & 1 == 1) {
            to.set(lane, self.flow_far(block, at.lane(lane), flow.lane(lane)));
        }
        to
    }

    /// The same for one particle whose way may lead anywhere: beyond the grid it flies on as it does here.
    fn flow_far(&self, block: usize, from: Vec3, own: Vec3) -> Vec3 {
        let way = self.dt * self.field.inverse;
        let parts = (own.length() * way).ceil().clamp(1.0, MOST_PARTS);
        let way = way / parts;
        let (mut at, mut flow) = (from, own);
        for _ in 0..parts as u32 {
            let middle = self.anywhere(block, at + flow * (0.5 * way), own);
            at += middle * way;
            flow = self.anywhere(block, at, own);
        }
        at
    }

    /// The velocity at a point that may be far from the block, for a particle with a velocity of its `own`.
    fn anywhere(&self, block: usize, point: Vec3, own: Vec3) -> Vec3 {
        let mut result = Vec3::ZERO;
        let origin = self.field.grid.origin(block);
        for axis in 0..3 {
            let weights = Weights::new(point, axis);
            let base = IVec3::from_array(weights.base);
            for (node, weight) in weights.eight().into_iter().enumerate() {
                let n = node as i32;
                let cell = base + IVec3::new(n & 1, n >> 1 & 1, n >> 2);
                let face = self.face(block, origin, cell, axis);
                result[axis] += weight * face.unwrap_or(own[axis]);
            }
        }
        result
    }

    fn face(&self, block: usize, origin: IVec3, cell: IVec3, axis: usize) -> Option<f32> {
        let beside = block_of(cell);
        let index = if beside.cmpge(IVec3::NEG_ONE).all() && beside.cmple(IVec3::ONE).all() {
            let slot = (beside.x + 1 + 3 * (beside.y + 1) + 9 * (beside.z + 1)) as usize;
            self.field.grid.around(block)[slot] as usize * CELLS + local_of(cell)
        } else {
            self.field.grid.index(origin + cell)?
        };
        Some(self.field.velocity[axis][index])
    }

    /// Stops particles at the first solid on their way, and keeps them clear of all.
    fn keep_out(&self, from: &[Vec3], goals: &mut [Goal]) {
        let clear = CLEARANCE * self.radius;
        let mut ways = [0.0; LANES];
        for ((way, from), goal) in ways.iter_mut().zip(from).zip(&*goals) {
            *way = from.distance(goal.to);
        }
        for solid in self.solids {
            if !solid.moves() && self.all_beyond(solid, &ways, goals) {
                continue;
            }
            for ((from, goal), way) in from.iter().zip(&mut *goals).zip(ways) {
                let reach = way + clear;
                let far = |to: Vec3| {
                    !solid.moves() && solid.is_beyond(to, reach)
                        || solid.bounds().distance_squared(to) > reach * reach
                };
                if goal.moves && !far(goal.to) {
                    stop_at(solid, (*from, way), clear, goal);
                }
            }
        }
    }

    /// True if a solid is farther from all particles than they go: one question for all that are close together.
    fn all_beyond(&self, solid: &Solid, ways: &[f32; LANES], goals: &[Goal]) -> bool {
        let middle = goals.iter().map(|goal| goal.to).sum::<Vec3>() / goals.len() as f32;
        let reaches = goals.iter().zip(ways);
        let reach = reaches.fold(0.0f32, |most, (goal, way)| {
            most.max(middle.distance(goal.to) + way)
        });
        solid.is_beyond(middle, reach + CLEARANCE * self.radius)
    }
}

/// Where a particle would go, and how fast it then is.
#[derive(Clone, Copy)]
struct Goal {
    /// False for one that rests.
    moves: bool,
    rubs: bool,
    to: Vec3,
    velocity: Vec3,
}

/// Stops a particle that comes from a point, a way off, at a solid, and keeps it clear of it.
fn stop_at(solid: &Solid, (from, way): (Vec3, f32), clear: f32, goal: &mut Goal) {
    // The room is that at the start: what moves may have come past since.
    let room = match solid.moves() {
        true => solid.surface_at(from, 0.0).distance,
        false => solid.distance(from),
    };
    // A way longer than the room before it may lead through.
    let radius = clear.min(0.5 * room);
    if room > 0.0
        && (way > room || solid.moves())
        && let Some(touch) = solid.sweep(from, goal.to, radius, 0.0)
    {
        // From there on the solid takes the particle along.
        let stop = solid.carry(from.lerp(goal.to, touch.fraction), touch.fraction);
        let rest = goal.to - stop;
        goal.to = stop + rest - touch.normal * rest.dot(touch.normal).min(0.0);
    }
    let contact = solid.contact(goal.to);
    if contact.distance < clear {
        goal.to += contact.normal * (clear - contact.distance);
        let relative = goal.velocity - contact.velocity;
        if relative.dot(contact.normal) < 0.0 {
            let friction = if goal.rubs { solid.friction } else { 0.0 };
            goal.velocity = contact.velocity + bounce(relative, contact.normal, 0.0, friction);
        }
    }
}

/// Trilinear weights of a point about the eight nodes around it.
#[derive(Clone, Copy)]
struct Weights {
    /// The lowest node, from −1 on, and how far beyond it the point is.
    base: [i32; 3],
    beyond: [f32; 3],
}

impl Weights {
    /// Of a point given in cells; `axis` is that of the faces, 3 for cell centres.
    #[inline]
    fn new(point: Vec3, axis: usize) -> Self {
        let mut shifted = (point - 0.5).to_array();
        if axis < 3 {
            shifted[axis] += 0.5;
        }
        let (mut base, mut beyond) = ([0; 3], [0.0; 3]);
        for i in 0..3 {
            base[i] = shifted[i].floor() as i32;
            beyond[i] = shifted[i] - base[i] as f32;
        }
        Self { base, beyond }
    }

    /// The weights of the eight nodes, x fastest.
    #[inline]
    fn eight(&self) -> [f32; 8] {
        let [fx, fy, fz] = self.beyond;
        let (gx, gy, gz) = (1.0 - fx, 1.0 - fy, 1.0 - fz);
        let (a, b, c, d) = (gy * gz, fy * gz, gy * fz, fy * fz);
        [
            gx * a,
            fx * a,
            gx * b,
            fx * b,
            gx * c,
            fx * c,
            gx * d,
            fx * d,
        ]
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::place_in_block;
    use barchan_base::random::Random;
    use barchan_sim::solids::Solids;

    /// Particles that cross up to six cells in a step, side by side, go where each goes by itself.
    #[test]
    fn fast_particles_side_by_side_go_where_each_goes_alone() {
        let random = Random::new(5, 8);
        let mut particles = Particles::default();
        particles.resize(4000);
        for (i, position) in particles.position.iter_mut().enumerate() {
            *position = random.in_cube(i as u64, 0) * Vec3::new(16.0, 12.0, 8.0);
        }
        let (mut field, mut boundary) = (Field::default(), Boundary::default());
        field.lay(&particles, 1.0);
        particles.permute(&field.order, &mut Vec::new());
        boundary.sample(&field, &Solids::default());
        for block in 0..field.grid.len() {
            for local in 0..CELLS {
                let cell = (field.grid.origin(block) + place_in_block(local)).as_vec3();
                let index = block * CELLS + local;
                field.velocity[0][index] = 4.0 * (0.3 * cell.y).sin();
                field.velocity[1][index] = 3.0 * (0.2 * cell.z + 0.1 * cell.x).cos();
                field.velocity[2][index] = 2.0 * (0.4 * cell.x).sin();
            }
        }
        let advance = Advance {
            field: &field,
            boundary: &boundary,
            solids: &[],
            transfer: Transfer::Apic,
            repair: None,
            shift: &[],
            pressure: None,
            dt: 1.2,
            push: 0.0,
            radius: 0.25,
        };
        let halos = Halos::default();
        let (mut farthest, mut seen) = (0.0f32, 0);
        for &block in &field.occupied {
            let block = block as usize;
            let view = advance.view(&halos, block);
            for eight in particles.position[field.particles_in(block)].chunks(LANES) {
                let at = Vectors::new(eight, |point| field.within(block, point));
                let flow = sample(&view.velocity, &at);
                let together = advance.flow_on(&view, block, &at, &flow);
                for lane in 0..eight.len() {
                    let alone = advance.flow_far(block, at.lane(lane), flow.lane(lane));
                    let way = alone.distance(at.lane(lane));
                    farthest = farthest.max(way);
                    seen += u32::from(way > 1.0);
                    assert!(
                        together.lane(lane).distance(alone) < 1e-4,
                        "{} {alone}",
                        together.lane(lane)
                    );
                }
            }
        }
        assert!(farthest > 5.0 && seen > 2000, "{farthest} {seen}");
    }
}
