//! Single grains: what evaporates from the liquid, what condenses, and what grains above it borrow from it.

use super::cells::{CROSS, Cells, FULL};
use super::frozen::Frozen;
use super::scale::Scale;
use super::{LIQUID, PHASE};
use barchan_base::grid::{CELLS, cell_at};
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};

/// Liquid with at most so many particles in a cell and all around it is gas.
const ALONE: u16 = 3;
/// The same for liquid faster than `FAST` √(g Δx).
const SPARSE: u16 = 8;
const FAST: f32 = 4.0;
/// Gas with so many particles in its cell and the six beside it is liquid; more than `SPARSE`, so that it does not turn back at once.
const CROWD: u16 = 12;

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

/// Lets grains near the surface take up the velocity of the liquid there, the more the nearer they are; the liquid gives the
/// momentum, or the solid beneath it.
pub(super) fn borrow(
    cells: &Cells,
    (liquid, gas): (&mut Particles, &mut Particles),
    scale: &Scale,
    dt: f32,
) {
    let mut given: Vec<(u32, Vec3)> = Vec::new();
    for i in 0..gas.len() {
        let near = nearby(cells, gas.position[i] * scale.inverse);
        let total: f32 = near.iter().map(|(_, weight)| weight).sum();
        if total <= 0.0 {
            continue;
        }
        let velocity: Vec3 = near
            .iter()
            .map(|(cell, w)| cells.velocity(*cell) * (w / total))
            .sum();
        // Half full is the surface itself.
        let share = -(-(2.0 * total).min(1.0) * dt / scale.borrow_time).exp_m1();
        let gain = (velocity - gas.velocity[i]) * share;
        gas.velocity[i] += gain;
        let lent = |(cell, w): &(usize, f32)| (*cell as u32, gain * (-gas.mass[i] * w / total));
        given.extend(near.iter().filter(|(_, w)| *w > 0.0).map(lent));
    }
    if given.is_empty() {
        return;
    }
    let mut change = vec![Vec3::ZERO; cells.grid.cells()];
    for (cell, momentum) in given {
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
        let solid = if cells.solid[cell] { FULL } else { 0 };
        let fill = f32::from(cells.liquid[cell].saturating_add(solid)) / f32::from(FULL);
        (cell, weights.element_product() * fill.min(1.0))
    })
}

/// Stops grains that flew from `before` where they meet the crowd: there they turn liquid.
pub(super) fn land(
    (cells, frozen): (&Cells, &Frozen),
    before: &[Vec3],
    gas: &mut Particles,
    scale: &Scale,
) -> usize {
    let mut landed = 0;
    let Particles {
        position, extra, ..
    } = gas;
    let phases = extra[PHASE].entries_mut::<u16>();
    for ((from, to), phase) in before.iter().zip(position).zip(phases) {
        let way = *to - *from;
        let steps = (2.0 * way.length() * scale.inverse)
            .ceil()
            .clamp(1.0, 256.0);
        if !steps.is_finite() {
            continue;
        }
        for step in 1..=steps as u32 {
            let point = *from + way * (step as f32 / steps);
            if is_crowded(cells, frozen, cell_at(point, scale.inverse)) {
                *to = point;
                *phase = LIQUID;
                landed += 1;
                break;
            }
        }
    }
    landed
}

fn is_crowded(cells: &Cells, frozen: &Frozen, cell: IVec3) -> bool {
    if let Some(cell) = cells.at(cell)
        && cells
            .grid
            .around(cell / CELLS)
            .iter()
            .all(|block| (*block as usize) < cells.grid.len())
    {
        return cells.count_around(cell, CROSS) >= CROWD;
    }
    let solid = |offset: &usize| {
        let o = *offset as i32;
        frozen.contains(cell + IVec3::new(o % 3, o / 3 % 3, o / 9) - 1)
    };
    CROSS.iter().filter(|offset| solid(offset)).count() * usize::from(FULL) >= usize::from(CROWD)
}
