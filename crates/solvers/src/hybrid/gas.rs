//! Single grains: what evaporates from the liquid, what condenses, and what grains above it borrow from it.

use super::cells::{CROSS, Cells, FULL};
use super::frozen::Frozen;
use super::scale::Scale;
use super::{LIQUID, PHASE};
use barchan_base::grid::{CELLS, cell_at};
use barchan_base::parallel::CHUNK;
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Liquid with at most so many particles in a cell and all around it is gas.
const ALONE: u16 = 3;
/// The same for liquid faster than `FAST` √(g Δx). Grains that pass the surface as fast skim it; slower ones join what is there.
const SPARSE: u16 = 8;
const FAST: f32 = 4.0;
/// Gas with so many particles in its cell and the six beside it is liquid; more than `SPARSE`, so that it does not turn back at once.
const CROWD: u16 = 12;
/// How often a grain skims in one step; then it stops.
const MOST_SKIMS: usize = 4;

/// Flags of the liquid particles that evaporate.
pub(super) fn evaporating(cells: &Cells, liquid: &Particles, scale: &Scale) -> Vec<bool> {
    let around: Vec<u16> = (0..cells.grid.len() * CELLS)
        .map(|cell| match cells.liquid[cell] {
            1..=SPARSE if !cells.solid[cell] => cells.count_around(cell, 0..27),
            _ => u16::MAX,
        })
        .collect();
    let fast = FAST / scale.per_speed;
    let each = cells.of_liquid.iter().zip(&liquid.velocity);
    each.map(|(cell, velocity)| {
        let around = around.get(*cell as usize).copied().unwrap_or(u16::MAX);
        around <= ALONE || (around <= SPARSE && velocity.length_squared() > fast * fast)
    })
    .collect()
}

/// Flags of the grains that condense: those in a crowd.
pub(super) fn condensing(cells: &Cells) -> Vec<bool> {
    let crowded = |cell: &u32| {
        let cell = *cell as usize;
        cell < cells.grid.len() * CELLS && cells.count_around(cell, CROSS) >= CROWD
    };
    cells.of_gas.iter().map(crowded).collect()
}

/// Lets grains near the surface, but for fast ones, take up the velocity of the liquid there, the more the nearer they are; the
/// liquid gives the momentum, or the solid beneath it.
pub(super) fn borrow(
    cells: &Cells,
    (liquid, gas): (&mut Particles, &mut Particles),
    scale: &Scale,
    dt: f32,
) {
    let (position, mass) = (&gas.position, &gas.mass);
    let given: Vec<Vec<Given>> = gas
        .velocity
        .par_chunks_mut(CHUNK)
        .zip(position.par_chunks(CHUNK).zip(mass.par_chunks(CHUNK)))
        .map(|(velocity, (position, mass))| {
            let mut given = Vec::new();
            for ((velocity, position), mass) in velocity.iter_mut().zip(position).zip(mass) {
                let near = nearby(cells, *position * scale.inverse);
                let gain = loan(cells, &near, *velocity, scale, dt);
                if gain == Vec3::ZERO {
                    continue;
                }
                *velocity += gain;
                let total: f32 = near.iter().map(|(_, weight)| weight).sum();
                let lent = |(cell, w): &(usize, f32)| (*cell as u32, gain * (-mass * w / total));
                given.extend(near.iter().filter(|(_, w)| *w > 0.0).map(lent));
            }
            given
        })
        .collect();
    give(cells, liquid, given);
}

/// What a grain with these cells about it takes up of their velocity within `dt` [s].
fn loan(cells: &Cells, near: &[(usize, f32); 8], velocity: Vec3, scale: &Scale, dt: f32) -> Vec3 {
    let total: f32 = near.iter().map(|(_, weight)| weight).sum();
    if total <= 0.0 {
        return Vec3::ZERO;
    }
    let there: Vec3 = near
        .iter()
        .map(|(cell, w)| cells.velocity(*cell) * (w / total))
        .sum();
    let lack = there - velocity;
    if lack.length() * scale.per_speed > FAST {
        return Vec3::ZERO;
    }
    // Half full is the surface itself.
    lack * -(-(2.0 * total).min(1.0) * dt / scale.borrow_time).exp_m1()
}

/// Momentum [N s] for the liquid of a cell.
type Given = (u32, Vec3);

/// Hands momentum to the liquid of each cell named; where there is none, the ground beneath takes it.
fn give(cells: &Cells, liquid: &mut Particles, given: Vec<Vec<Given>>) {
    if given.iter().all(Vec::is_empty) {
        return;
    }
    let mut change = vec![Vec3::ZERO; cells.grid.cells()];
    for (cell, momentum) in given.into_iter().flatten() {
        change[cell as usize] += momentum;
    }
    for (velocity, cell) in liquid.velocity.iter_mut().zip(&cells.of_liquid) {
        let cell = *cell as usize;
        if change[cell] != Vec3::ZERO && cells.mass[cell] > 0.0 {
            *velocity += change[cell] / cells.mass[cell];
        }
    }
}

/// The eight cells about a point, given in cells, each with its filled part times its weight.
fn nearby(cells: &Cells, point: Vec3) -> [(usize, f32); 8] {
    let base = (point - 0.5).floor();
    let beyond = point - 0.5 - base;
    std::array::from_fn(|corner| {
        let bit = IVec3::new(
            corner as i32 & 1,
            corner as i32 >> 1 & 1,
            corner as i32 >> 2,
        );
        let Some(cell) = cells.at(base.as_ivec3() + bit) else {
            return (0, 0.0);
        };
        let weights = Vec3::select(bit.cmpgt(IVec3::ZERO), beyond, 1.0 - beyond);
        (cell, weights.element_product() * fill(cells, cell))
    })
}

/// The part of a cell that liquid or solid fills.
fn fill(cells: &Cells, cell: usize) -> f32 {
    let solid = if cells.solid[cell] { FULL } else { 0 };
    let count = cells.liquid[cell].saturating_add(solid);
    (f32::from(count) / f32::from(FULL)).min(1.0)
}

/// What grains meet on their way.
pub(super) struct Ground<'a> {
    pub cells: &'a Cells,
    pub frozen: &'a Frozen,
    pub scale: &'a Scale,
    /// Coefficient of friction of each material; none for fluids, which never skim.
    pub friction: &'a [Option<f32>],
}

/// Where a way leads into the crowd.
struct Met {
    /// The last point before it, and the first in it.
    free: Vec3,
    point: Vec3,
    /// The part of the way that is left.
    left: f32,
}

impl Ground<'_> {
    /// Ends the flights of grains, from `before`, that lead into the crowd. What is still fast once it has lost its velocity into
    /// the ground and what friction takes with it skims on along the tangent, and the liquid has that momentum; all else stops
    /// and is liquid from then on.
    pub fn land(&self, before: &[Vec3], (liquid, gas): (&mut Particles, &mut Particles), dt: f32) {
        let Particles {
            position,
            velocity,
            mass,
            material,
            extra,
            ..
        } = gas;
        let phases = extra[PHASE].entries_mut::<u16>();
        let given: Vec<Vec<Given>> = position
            .par_chunks_mut(CHUNK)
            .zip(velocity.par_chunks_mut(CHUNK))
            .zip(phases.par_chunks_mut(CHUNK))
            .enumerate()
            .map(|(chunk, ((position, velocity), phases))| {
                let mut given = Vec::new();
                for k in 0..position.len() {
                    let i = chunk * CHUNK + k;
                    let friction = self.friction[material[i] as usize];
                    let moving = (&mut position[k], &mut velocity[k]);
                    let stops = self.end_flight(before[i], moving, (friction, dt), |cell, loss| {
                        given.push((cell, loss * mass[i]));
                    });
                    if stops {
                        phases[k] = LIQUID;
                    }
                }
                given
            })
            .collect();
        give(self.cells, liquid, given);
    }

    /// Lets one grain, which flew from `from`, skim or stop; true where it stops. `lose` is told what it leaves in which cell
    /// [m/s].
    fn end_flight(
        &self,
        mut from: Vec3,
        (position, velocity): (&mut Vec3, &mut Vec3),
        (friction, mut time): (Option<f32>, f32),
        mut lose: impl FnMut(u32, Vec3),
    ) -> bool {
        for touch in 0.. {
            let Some(met) = self.meet(from, *position) else {
                break;
            };
            let skims = match friction {
                Some(friction) if touch < MOST_SKIMS && !self.is_crowded(from) => {
                    self.skim(met.point, *velocity, friction)
                }
                _ => None,
            };
            let Some(after) = skims else {
                *position = met.point;
                return true;
            };
            if let Some(cell) = self.cells.at(cell_at(met.point, self.scale.inverse)) {
                lose(cell as u32, *velocity - after);
            }
            *velocity = after;
            time *= met.left;
            from = met.free;
            *position = met.free + after * time;
        }
        false
    }

    /// Follows a way in half cells until it is in the crowd.
    fn meet(&self, from: Vec3, to: Vec3) -> Option<Met> {
        let way = to - from;
        let steps = (2.0 * way.length() * self.scale.inverse).ceil();
        if !steps.is_finite() {
            return None;
        }
        let steps = steps.clamp(1.0, 256.0);
        let at = |step: u32| from + way * (step as f32 / steps);
        let met = (1..=steps as u32).find(|step| self.is_crowded(at(*step)))?;
        Some(Met {
            free: at(met - 1),
            point: at(met),
            left: 1.0 - met as f32 / steps,
        })
    }

    /// The velocity after an impact without bounce, if that is still fast.
    fn skim(&self, point: Vec3, velocity: Vec3, friction: f32) -> Option<Vec3> {
        let cell = cell_at(point, self.scale.inverse);
        let normal = self.normal(cell)?;
        let ground = self
            .cells
            .at(cell)
            .map_or(Vec3::ZERO, |c| self.cells.velocity(c));
        let relative = velocity - ground;
        let into = -relative.dot(normal);
        let along = relative + normal * into;
        let speed = along.length();
        let kept = speed - friction * into.max(0.0);
        (kept * self.scale.per_speed > FAST).then(|| ground + along * (kept / speed))
    }

    /// Out of the crowd: away from where most of it is around a cell.
    fn normal(&self, cell: IVec3) -> Option<Vec3> {
        let toward = (0..27).map(|offset| {
            let way = way_to(offset);
            way.as_vec3() * self.fill(cell + way)
        });
        (-toward.sum::<Vec3>()).try_normalize()
    }

    fn fill(&self, cell: IVec3) -> f32 {
        match self.cells.at(cell) {
            Some(cell) => fill(self.cells, cell),
            None if self.frozen.contains(cell) => 1.0,
            None => 0.0,
        }
    }

    fn is_crowded(&self, point: Vec3) -> bool {
        let Self { cells, frozen, .. } = self;
        let cell = cell_at(point, self.scale.inverse);
        if let Some(cell) = cells.at(cell)
            && cells
                .grid
                .around(cell / CELLS)
                .iter()
                .all(|block| (*block as usize) < cells.grid.len())
        {
            return cells.count_around(cell, CROSS) >= CROWD;
        }
        let solid = |offset: &usize| frozen.contains(cell + way_to(*offset));
        CROSS.iter().filter(|offset| solid(offset)).count() * usize::from(FULL)
            >= usize::from(CROWD)
    }
}

/// The way to one of the 27 cells around a cell, by the number of its offset.
fn way_to(offset: usize) -> IVec3 {
    let offset = offset as i32;
    IVec3::new(offset % 3, offset / 3 % 3, offset / 9) - 1
}
