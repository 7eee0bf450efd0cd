//! The cells that liquid and gas are in: what each holds, and what is solid about it.

use super::frozen::Frozen;
use super::{PRESSURE, REST};
use barchan_base::grid::{BlockGrid, CELLS};
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};

/// Particles in a full cell.
pub(super) const FULL: u16 = 8;

/// The grid around liquid and gas, and what is in its cells.
#[derive(Default)]
pub(super) struct Cells {
    pub grid: BlockGrid,
    /// The cell of each liquid particle, and of each grain of gas.
    pub of_liquid: Vec<u32>,
    pub of_gas: Vec<u32>,
    /// How many of each there are.
    pub liquid: Vec<u16>,
    pub gas: Vec<u16>,
    /// Mass [kg] and momentum [N s] of the liquid, and the sum of its particles' pressure [Pa].
    pub mass: Vec<f32>,
    pub momentum: Vec<Vec3>,
    pub pressure: Vec<f32>,
    /// The shortest time [s] that a liquid particle has rested.
    pub rest: Vec<f32>,
    /// True where a cell is solid.
    pub solid: Vec<bool>,
    points: Vec<Vec3>,
}

impl Cells {
    /// Lays the grid for a step.
    pub fn lay(&mut self, (liquid, gas): (&Particles, &Particles), frozen: &Frozen, inverse: f32) {
        self.points.clear();
        self.points.extend_from_slice(&liquid.position);
        self.points.extend_from_slice(&gas.position);
        self.grid.rebuild(&self.points, inverse);
        self.grid
            .locate(&liquid.position, inverse, &mut self.of_liquid);
        self.grid.locate(&gas.position, inverse, &mut self.of_gas);
        let cells = self.grid.cells();
        reset(&mut self.liquid, cells, 0);
        reset(&mut self.gas, cells, 0);
        reset(&mut self.mass, cells, 0.0);
        reset(&mut self.momentum, cells, Vec3::ZERO);
        reset(&mut self.pressure, cells, 0.0);
        reset(&mut self.rest, cells, f32::INFINITY);
        reset(&mut self.solid, cells, false);
        let pressure = liquid.extra[PRESSURE].entries::<f32>();
        let rest = liquid.extra[REST].entries::<f32>();
        for (i, cell) in self.of_liquid.iter().map(|cell| *cell as usize).enumerate() {
            self.liquid[cell] = self.liquid[cell].saturating_add(1);
            self.mass[cell] += liquid.mass[i];
            self.momentum[cell] += liquid.velocity[i] * liquid.mass[i];
            self.pressure[cell] += pressure[i];
            self.rest[cell] = self.rest[cell].min(rest[i]);
        }
        for cell in &self.of_gas {
            let count = &mut self.gas[*cell as usize];
            *count = count.saturating_add(1);
        }
        // What is nowhere counts nowhere.
        let nowhere = self.grid.len() * CELLS;
        self.liquid[nowhere..].fill(0);
        self.gas[nowhere..].fill(0);
        for (block, key) in self.grid.keys().iter().enumerate() {
            let solid = frozen.cells_of(*key);
            for local in (0..CELLS).filter(|local| solid >> local & 1 == 1) {
                self.solid[block * CELLS + local] = true;
            }
        }
    }

    /// Particles in a cell, all phases together; a solid cell counts as full.
    pub fn count(&self, cell: usize) -> u16 {
        let solid = if self.solid[cell] { FULL } else { 0 };
        solid
            .saturating_add(self.liquid[cell])
            .saturating_add(self.gas[cell])
    }

    /// Particles in a cell and some of those around it, by the numbers of their offsets.
    pub fn count_around(&self, cell: usize, offsets: impl IntoIterator<Item = usize>) -> u16 {
        let there = |offset| self.count(self.grid.step(cell / CELLS, cell % CELLS, offset));
        offsets.into_iter().map(there).fold(0, u16::saturating_add)
    }

    /// The velocity [m/s] of the liquid in a cell.
    pub fn velocity(&self, cell: usize) -> Vec3 {
        match self.mass[cell] {
            mass if mass > 0.0 => self.momentum[cell] / mass,
            _ => Vec3::ZERO,
        }
    }

    /// The cell at these coordinates, if the grid has it.
    pub fn at(&self, cell: IVec3) -> Option<usize> {
        self.grid.index(cell)
    }
}

/// Offsets of a cell itself and of the six beside it.
pub(super) const CROSS: [usize; 7] = [13, 12, 14, 10, 16, 4, 22];

fn reset<T: Clone>(values: &mut Vec<T>, len: usize, value: T) {
    values.clear();
    values.resize(len, value);
}
