//! The grid of a step: which blocks there are, which particles are in them, and what its faces and cells hold.

use barchan_base::grid::{BlockGrid, CELLS, EDGE};
use barchan_sim::state::Particles;
use glam::Vec3;
use std::ops::Range;

/// One array for each axis: the faces of cells that look down that axis.
pub(super) type Faces = [Vec<f32>; 3];

/// Part of a cell that must be filled before it carries pressure; less is carried by what it lies on. A cell that is next to empty but
/// bears pressure cannot close, as if it were full: what falls in it pushes sideways, and the surface of every slope gives way.
pub(super) const LEAST_FILL: f32 = 0.4;
/// The same at a floor, where no other cell carries it, and under a body that lies on it. Low, so that the last layer of a pile still rubs.
pub(super) const FILL_AT_FLOOR: f32 = 0.05;
/// The same for fluids, which need no friction where they are thin: less is spray, and flies.
pub(super) const FILL_OF_FLUID: f32 = 0.25;

/// The largest number below the edge of a block.
const LAST: f32 = (EDGE as f32).next_down();

/// Everything on the grid. Masses are in units of a full cell of the lightest material.
#[derive(Default)]
pub(super) struct Field {
    pub grid: BlockGrid,
    /// Edge of a cell [m] and its inverse.
    pub dx: f32,
    pub inverse: f32,
    /// Blocks that hold particles.
    pub occupied: Vec<u32>,
    /// Particles, cell by cell.
    pub order: Vec<u32>,
    /// Velocity of the lower faces of each cell [m/s].
    pub velocity: Faces,
    /// The same as the particles brought it.
    pub before: Faces,
    /// Mass about each face.
    pub mass: Faces,
    /// Filled part of each cell.
    pub fill: Vec<f32>,
    /// Sine of the friction angle and cohesion over density [m²/s²], averaged over what is in the cell.
    pub sine: Vec<f32>,
    pub cohesion: Vec<f32>,
    /// Density of what is in the cell, over that of the lightest material.
    pub density: Vec<f32>,
    /// True where a cell carries pressure.
    pub active: Vec<bool>,
    /// True where a cell is wholly inside solids.
    pub solid: Vec<bool>,
    /// True where a cell stands still whatever pushes it.
    pub held: Vec<bool>,
    /// The cell of each particle, and where each cell's particles begin.
    cells: Vec<u32>,
    starts: Vec<u32>,
}

impl Field {
    /// Lays the grid around the particles and sorts them into its blocks.
    pub fn lay(&mut self, particles: &Particles, dx: f32) {
        self.dx = dx;
        self.inverse = 1.0 / dx;
        self.grid.rebuild(&particles.position, self.inverse);
        self.grid
            .locate(&particles.position, self.inverse, &mut self.cells);
        self.sort();
        let cells = self.grid.cells();
        // What they hold is of the last step until the particles bring anew.
        for axis in 0..3 {
            for faces in [&mut self.velocity, &mut self.before, &mut self.mass] {
                faces[axis].resize(cells, 0.0);
            }
        }
        for values in [
            &mut self.fill,
            &mut self.sine,
            &mut self.cohesion,
            &mut self.density,
        ] {
            values.resize(cells, 0.0);
        }
        for flags in [&mut self.active, &mut self.solid, &mut self.held] {
            flags.clear();
            flags.resize(cells, false);
        }
    }

    /// A stable counting sort of the particles by cell; lost ones come last.
    fn sort(&mut self) {
        let cells = self.grid.cells();
        self.starts.clear();
        self.starts.resize(cells + 1, 0);
        for &cell in &self.cells {
            self.starts[cell as usize] += 1;
        }
        let mut begin = 0;
        for start in &mut self.starts {
            begin += std::mem::replace(start, begin);
        }
        self.order.resize(self.cells.len(), 0);
        for (particle, &cell) in self.cells.iter().enumerate() {
            let place = &mut self.starts[cell as usize];
            self.order[*place as usize] = particle as u32;
            *place += 1;
        }
        // Every start has moved to the next one's place: move them back.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
        self.occupied.clear();
        let starts = &self.starts;
        let holds = |block: &u32| {
            let first = *block as usize * CELLS;
            starts[first] < starts[first + CELLS]
        };
        self.occupied
            .extend((0..self.grid.len() as u32).filter(holds));
    }

    /// Lets the cells carry pressure that hold a particle, as Zhu and Bridson mark them, and no others.
    pub fn activate_occupied(&mut self) {
        for cell in 0..self.grid.len() * CELLS {
            self.active[cell] = self.starts[cell] < self.starts[cell + 1] && !self.solid[cell];
        }
    }

    /// Particles that are in a block; those after them are lost.
    pub fn found(&self) -> usize {
        self.starts[self.grid.len() * CELLS] as usize
    }

    /// The particles in a block, once they are in order.
    pub fn particles_in(&self, block: usize) -> Range<usize> {
        let first = block * CELLS;
        self.starts[first] as usize..self.starts[first + CELLS] as usize
    }

    /// The particles in a cell, once they are in order.
    pub fn particles_of_cell(&self, cell: usize) -> Range<usize> {
        self.starts[cell] as usize..self.starts[cell + 1] as usize
    }

    /// Splits a column of the particles, in order, into what is in each occupied block.
    pub fn split<'a, T>(&self, mut column: &'a mut [T]) -> Vec<&'a mut [T]> {
        let take = |block: &u32| {
            let (mine, rest) =
                std::mem::take(&mut column).split_at_mut(self.particles_in(*block as usize).len());
            column = rest;
            mine
        };
        self.occupied.iter().map(take).collect()
    }

    /// Centre [m] of a cell.
    pub fn center(&self, block: usize, local: usize) -> Vec3 {
        let cell = self.grid.origin(block) + barchan_base::grid::place_in_block(local);
        (cell.as_vec3() + 0.5) * self.dx
    }

    /// A point [m] of a block, in cells from the block's corner: from 0 to just below 4, whatever rounding says of a point a
    /// hair below the corner of the next one.
    #[inline]
    pub fn within(&self, block: usize, point: Vec3) -> Vec3 {
        let inner = point * self.inverse - self.grid.origin(block).as_vec3();
        inner.min(Vec3::splat(LAST))
    }

    /// The corner [m] of a block.
    pub fn corner(&self, block: usize) -> Vec3 {
        self.grid.origin(block).as_vec3() * self.dx
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::IVec3;

    #[test]
    fn a_point_a_hair_below_a_block_stays_in_its_own() {
        let mut particles = Particles::default();
        particles.resize(1);
        particles.position[0] = Vec3::splat(-1e-9);
        let mut field = Field::default();
        field.lay(&particles, 0.01);
        let block = field.occupied[0] as usize;
        let inner = field.within(block, particles.position[0]);
        assert_eq!(inner.floor().as_ivec3(), IVec3::splat(3));
    }
}
