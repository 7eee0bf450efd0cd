//! Sets of cells: a bit for each cell of a block, so that a whole block is compared, joined or shifted at once.

use super::{BlockGrid, CELLS, Neighborhood};
use rayon::prelude::*;

/// The cells of a block that are first and last along x, and along y.
const FIRST_X: u64 = 0x1111_1111_1111_1111;
const LAST_X: u64 = FIRST_X << 3;
const FIRST_Y: u64 = 0x000f_000f_000f_000f;
const LAST_Y: u64 = FIRST_Y << 12;

/// A set of cells of a grid; nothing beyond the grid is in it.
#[derive(Clone, Debug, Default)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// Makes it the set of which `of` tells the cells of each block, a bit each.
    pub fn fill(&mut self, grid: &BlockGrid, of: impl Fn(usize) -> u64 + Sync) {
        self.0.clear();
        self.0.resize(grid.len() + 1, 0);
        self.0[..grid.len()]
            .par_iter_mut()
            .enumerate()
            .with_min_len(64)
            .for_each(|(block, bits)| *bits = of(block));
    }

    /// The cells of a block.
    #[inline]
    pub fn of(&self, block: usize) -> u64 {
        self.0[block]
    }

    /// Adds cells of a block.
    #[inline]
    pub fn add(&mut self, block: usize, bits: u64) {
        self.0[block] |= bits;
    }

    /// The cells of a block whose neighbour on one side (−x, +x, −y, +y, −z, +z) is in the set.
    #[inline]
    pub fn beside(&self, around: &Neighborhood, side: usize) -> u64 {
        let own = self.0[around[13] as usize];
        let there = |slot: usize| self.0[around[slot] as usize];
        match side {
            0 => (own & !LAST_X) << 1 | (there(12) & LAST_X) >> 3,
            1 => (own & !FIRST_X) >> 1 | (there(14) & FIRST_X) << 3,
            2 => (own & !LAST_Y) << 4 | (there(10) & LAST_Y) >> 12,
            3 => (own & !FIRST_Y) >> 4 | (there(16) & FIRST_Y) << 12,
            4 => own << 16 | there(4) >> 48,
            _ => own >> 16 | there(22) << 48,
        }
    }

    /// The cells of a block that have a neighbour in the set.
    #[inline]
    pub fn beside_any(&self, around: &Neighborhood) -> u64 {
        (0..6).fold(0, |bits, side| bits | self.beside(around, side))
    }
}

/// The bits of those of a block's cells for which `holds` is true.
#[inline]
pub fn bits_of(holds: impl Fn(usize) -> bool) -> u64 {
    (0..CELLS).fold(0, |bits, local| bits | u64::from(holds(local)) << local)
}

/// The places of the bits that are set, increasing.
#[inline]
pub fn places(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        place
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::BESIDE;
    use crate::random::Random;

    #[test]
    fn shifting_a_mask_is_stepping_from_each_cell() {
        let random = Random::new(5, 1);
        let points: Vec<glam::Vec3> = (0..40).map(|i| random.in_cube(i, 0) * 20.0).collect();
        let mut grid = BlockGrid::default();
        grid.rebuild(&points, 1.0);
        let is_in =
            |cell: usize| cell < grid.len() * CELLS && random.in_cube(cell as u64, 1).x < 0.5;
        let mut mask = Mask::default();
        mask.fill(&grid, |block| bits_of(|local| is_in(block * CELLS + local)));
        for block in 0..grid.len() {
            let around = grid.around(block);
            let mut any = 0;
            for (side, offset) in BESIDE.into_iter().enumerate() {
                let expected = bits_of(|local| is_in(grid.step(block, local, offset)));
                assert_eq!(mask.beside(around, side), expected, "{side}");
                any |= expected;
            }
            assert_eq!(mask.beside_any(around), any);
            let set: Vec<usize> = (0..CELLS)
                .filter(|local| is_in(block * CELLS + local))
                .collect();
            assert_eq!(places(mask.of(block)).collect::<Vec<_>>(), set);
        }
    }
}
