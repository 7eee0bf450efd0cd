//! A grid that exists only where it is needed: blocks of 4×4×4 cells, found by their coordinates.
//!
//! Blocks are kept in the order of their coordinates, so a grid made from the same points is the same grid. Values live
//! in plain arrays of [`BlockGrid::cells`] entries, block after block; one block past the last stands for everywhere else
//! and holds what is true far away, so that stencils need no tests at the rim.

mod mask;
mod shared;

pub use mask::{Mask, bits_of, places};
pub use shared::SharedFloats;

use crate::parallel;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Cells along the edge of a block.
pub const EDGE: usize = 4;
/// Cells in a block.
pub const CELLS: usize = EDGE * EDGE * EDGE;
/// The largest coordinate of a cell, either way.
pub const MOST_CELL: i32 = 1 << 21;

/// Half of the range of a block coordinate in a key.
const BIAS: i32 = 1 << 20;

/// The 3×3×3 blocks around a block; 13 is the block itself.
pub type Neighborhood = [u32; 27];

/// Where the neighbours of a cell are: for each of the 27 offsets and each local index, the slot in the neighbourhood and
/// the local index there.
static STEPS: [[(u8, u8); CELLS]; 27] = steps();

const fn steps() -> [[(u8, u8); CELLS]; 27] {
    let mut table = [[(0, 0); CELLS]; 27];
    let mut offset = 0;
    while offset < 27 {
        let mut cell = 0;
        while cell < CELLS {
            let x = 3 + offset % 3 + cell % EDGE;
            let y = 3 + offset / 3 % 3 + cell / EDGE % EDGE;
            let z = 3 + offset / 9 + cell / (EDGE * EDGE);
            let slot = x / EDGE + 3 * (y / EDGE) + 9 * (z / EDGE);
            let local = x % EDGE + EDGE * (y % EDGE) + EDGE * EDGE * (z % EDGE);
            table[offset][cell] = (slot as u8, local as u8);
            cell += 1;
        }
        offset += 1;
    }
    table
}

/// The sparse grid's blocks and how they lie to each other.
#[derive(Clone, Debug, Default)]
pub struct BlockGrid {
    keys: Vec<u64>,
    neighbors: Vec<Neighborhood>,
    /// Scratch of [`rebuild`](Self::rebuild).
    found: Vec<u64>,
}

/// The block that a cell is in.
pub fn block_of(cell: IVec3) -> IVec3 {
    cell >> 2
}

/// The colour, one of eight, of a block. Blocks of a colour are two apart: what one cell beyond them is reached from one is not from
/// another.
pub fn color_of(block: IVec3) -> usize {
    let odd = block & 1;
    (odd.x + 2 * odd.y + 4 * odd.z) as usize
}

/// The index of a cell within its block.
#[inline]
pub fn local_of(cell: IVec3) -> usize {
    let local = cell & 3;
    (local.x + 4 * local.y + 16 * local.z) as usize
}

/// The place of a local index within its block.
pub fn place_in_block(local: usize) -> IVec3 {
    IVec3::new(
        (local % EDGE) as i32,
        (local / EDGE % EDGE) as i32,
        (local / (EDGE * EDGE)) as i32,
    )
}

/// The number, below 27, of an offset with components −1, 0 or 1.
pub const fn offset_number(x: i32, y: i32, z: i32) -> usize {
    (x + 1 + 3 * (y + 1) + 9 * (z + 1)) as usize
}

/// Numbers of the offsets to the cells beside a cell: −x, +x, −y, +y, −z, +z.
pub const BESIDE: [usize; 6] = [
    offset_number(-1, 0, 0),
    offset_number(1, 0, 0),
    offset_number(0, -1, 0),
    offset_number(0, 1, 0),
    offset_number(0, 0, -1),
    offset_number(0, 0, 1),
];

/// One number for the coordinates of a block; sorts by z, then y, then x.
#[inline]
pub fn key_of(block: IVec3) -> u64 {
    let part = |v: i32| (v + BIAS) as u64;
    part(block.z) << 42 | part(block.y) << 21 | part(block.x)
}

/// The coordinates of the block with this key.
pub fn block_of_key(key: u64) -> IVec3 {
    let part = |shift: u32| ((key >> shift) & 0x1f_ffff) as i32 - BIAS;
    IVec3::new(part(0), part(21), part(42))
}

/// The cell that `point` is in, for cells of edge 1/`inverse`.
#[inline]
pub fn cell_at(point: Vec3, inverse: f32) -> IVec3 {
    (point * inverse).floor().as_ivec3()
}

impl BlockGrid {
    /// Makes the grid of all blocks that hold one of `points` (cells of edge 1/`inverse`), and all blocks around those.
    /// Points beyond [`MOST_CELL`] or not finite are left out.
    pub fn rebuild(&mut self, points: &[Vec3], inverse: f32) {
        let runs = parallel::fold_chunks(
            points.len(),
            Vec::new(),
            |range| vec![distinct_blocks(&points[range], inverse)],
            |mut all, more| {
                all.extend(more);
                all
            },
        );
        self.found.clear();
        self.found.extend(runs.into_iter().flatten());
        self.found.sort_unstable();
        self.found.dedup();
        self.keys.clear();
        for &key in &self.found {
            let center = block_of_key(key);
            for offset in 0..27 {
                let o = IVec3::new(offset % 3, offset / 3 % 3, offset / 9) - 1;
                self.keys.push(key_of(center + o));
            }
        }
        self.keys.sort_unstable();
        self.keys.dedup();
        self.connect();
    }

    fn connect(&mut self) {
        let keys = &self.keys;
        let outside = keys.len() as u32;
        let connect = |key: &u64| {
            let center = block_of_key(*key);
            std::array::from_fn(|offset| {
                let offset = offset as i32;
                let o = IVec3::new(offset % 3, offset / 3 % 3, offset / 9) - 1;
                keys.binary_search(&key_of(center + o))
                    .map_or(outside, |found| found as u32)
            })
        };
        let ranges = parallel::fold_chunks(
            keys.len(),
            Vec::new(),
            |range| vec![keys[range].iter().map(connect).collect::<Vec<_>>()],
            |mut all: Vec<Vec<Neighborhood>>, more| {
                all.extend(more);
                all
            },
        );
        self.neighbors.clear();
        self.neighbors.extend(ranges.into_iter().flatten());
        self.neighbors.push([outside; 27]);
    }

    /// Blocks there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Entries in an array of cell values: every cell of every block, and the block that stands for everywhere else.
    pub fn cells(&self) -> usize {
        (self.keys.len() + 1) * CELLS
    }

    /// Keys of all blocks, increasing.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The first cell of a block.
    pub fn origin(&self, block: usize) -> IVec3 {
        block_of_key(self.keys[block]) * EDGE as i32
    }

    /// The index of the block at these block coordinates.
    pub fn find(&self, block: IVec3) -> Option<usize> {
        self.keys.binary_search(&key_of(block)).ok()
    }

    /// The block with this key.
    pub fn find_key(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The blocks around a block; those that do not exist are the block past the last.
    #[inline]
    pub fn around(&self, block: usize) -> &Neighborhood {
        &self.neighbors[block]
    }

    /// The index of the cell next to cell `local` of `block`, by the number of the offset.
    #[inline]
    pub fn step(&self, block: usize, local: usize, offset: usize) -> usize {
        let (slot, there) = STEPS[offset][local];
        self.neighbors[block][slot as usize] as usize * CELLS + there as usize
    }

    /// The cell of each point, whose coordinates times `inverse` are cells. A point that is nowhere is in the block that stands for
    /// everywhere else.
    pub fn locate(&self, points: &[Vec3], inverse: f32, cells: &mut Vec<u32>) {
        let nowhere = (self.len() * CELLS) as u32;
        cells.resize(points.len(), nowhere);
        cells
            .par_chunks_mut(parallel::CHUNK)
            .zip(points.par_chunks(parallel::CHUNK))
            .for_each(|(cells, points)| {
                let (mut last, mut first) = (IVec3::MAX, nowhere);
                for (point, to) in points.iter().zip(cells) {
                    let cell = *point * inverse;
                    if !is_on_grid(cell) {
                        *to = nowhere;
                        continue;
                    }
                    let cell = cell.floor().as_ivec3();
                    let block = block_of(cell);
                    if block != last {
                        last = block;
                        let found = self.find(block);
                        first = found.map_or(nowhere, |found| (found * CELLS) as u32);
                    }
                    *to = first + local_of(cell) as u32;
                }
            });
    }

    /// The index of a cell anywhere; `None` where there is no block.
    pub fn index(&self, cell: IVec3) -> Option<usize> {
        Some(self.find(block_of(cell))? * CELLS + local_of(cell))
    }
}

/// True where a point, in cells, is near enough to the origin to have a cell; false for what is not a number.
#[inline]
fn is_on_grid(point: Vec3) -> bool {
    point.is_finite() && point.abs().max_element() < (MOST_CELL - 8) as f32
}

fn distinct_blocks(points: &[Vec3], inverse: f32) -> Vec<u64> {
    let mut keys = Vec::new();
    let mut last = u64::MAX;
    for point in points {
        let cell = point * inverse;
        if !is_on_grid(cell) {
            continue;
        }
        let key = key_of(block_of(cell.floor().as_ivec3()));
        if key != last {
            keys.push(key);
            last = key;
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Cells of a block with `PAD` more on each side, in one small array: what a stencil on a block looks at.
#[derive(Clone, Debug)]
pub struct Halo<const PAD: usize> {
    /// For each row along x: the slot of the block that holds its middle, and the first cell of the row there.
    rows: Vec<(u8, u8)>,
}

impl<const PAD: usize> Halo<PAD> {
    /// Cells along its edge.
    pub const EDGE: usize = EDGE + 2 * PAD;
    /// Cells in it.
    pub const CELLS: usize = Self::EDGE * Self::EDGE * Self::EDGE;

    /// The places of its cells.
    pub fn new() -> Self {
        let row = |i: usize| {
            let up = |v: usize| v + EDGE - PAD;
            let (y, z) = (up(i % Self::EDGE), up(i / Self::EDGE));
            let slot = 1 + 3 * (y / EDGE) + 9 * (z / EDGE);
            let local = EDGE * (y % EDGE) + EDGE * EDGE * (z % EDGE);
            (slot as u8, local as u8)
        };
        Self {
            rows: (0..Self::EDGE * Self::EDGE).map(row).collect(),
        }
    }

    /// Fills `to` with `get` of the index of each of its cells.
    #[inline]
    pub fn gather<T>(&self, around: &Neighborhood, to: &mut [T], get: impl Fn(usize) -> T) {
        self.scatter(around, |cell, i| to[i] = get(cell));
    }

    /// Calls `put` with the index of each of its cells and the cell's place in the halo.
    #[inline]
    pub fn scatter(&self, around: &Neighborhood, mut put: impl FnMut(usize, usize)) {
        let mut place = 0;
        for &(slot, start) in &self.rows {
            // Along x a row ends in the block before its middle one and in the block after it.
            let first = |slot: usize| around[slot] as usize * CELLS + start as usize;
            let slot = slot as usize;
            let (before, middle, after) = (first(slot - 1), first(slot), first(slot + 1));
            for i in 0..PAD {
                put(before + EDGE - PAD + i, place + i);
            }
            for i in 0..EDGE {
                put(middle + i, place + PAD + i);
            }
            for i in 0..PAD {
                put(after + i, place + PAD + EDGE + i);
            }
            place += Self::EDGE;
        }
    }

    /// Where the block's own cell `local` is in the halo.
    #[inline]
    pub const fn inner(local: usize) -> usize {
        let (x, y, z) = (
            local % EDGE + PAD,
            local / EDGE % EDGE + PAD,
            local / (EDGE * EDGE) + PAD,
        );
        x + Self::EDGE * (y + Self::EDGE * z)
    }
}

impl<const PAD: usize> Default for Halo<PAD> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn points(count: u64, size: f32) -> Vec<Vec3> {
        let random = Random::new(3, 7);
        (0..count)
            .map(|i| (random.in_cube(i, 0) - 0.5) * size)
            .collect()
    }

    #[test]
    fn every_step_leads_to_the_cell_beside() {
        let mut grid = BlockGrid::default();
        grid.rebuild(&points(300, 40.0), 1.0);
        for block in 0..grid.len() {
            for local in 0..CELLS {
                let cell = grid.origin(block) + place_in_block(local);
                assert_eq!(grid.index(cell), Some(block * CELLS + local));
                for offset in 0..27i32 {
                    let o = IVec3::new(offset % 3, offset / 3 % 3, offset / 9) - 1;
                    let found = grid.step(block, local, offset_number(o.x, o.y, o.z));
                    let expected = grid
                        .index(cell + o)
                        .unwrap_or(grid.len() * CELLS + local_of(cell + o));
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn a_grid_has_a_block_around_every_point_and_no_more() {
        let mut grid = BlockGrid::default();
        let mut points = points(50, 20.0);
        points.push(Vec3::new(1e5, -1e5, 7.0));
        points.push(Vec3::NAN);
        points.push(Vec3::splat(f32::INFINITY));
        points.push(Vec3::splat(1e9));
        grid.rebuild(&points, 1.0);
        let held: std::collections::BTreeSet<u64> = points[..51]
            .iter()
            .map(|p| key_of(block_of(cell_at(*p, 1.0))))
            .collect();
        for &key in grid.keys() {
            let block = block_of_key(key);
            let near = (0..27).any(|i: i32| {
                held.contains(&key_of(block + IVec3::new(i % 3, i / 3 % 3, i / 9) - 1))
            });
            assert!(near);
        }
        assert!(held.iter().all(|key| grid.find_key(*key).is_some()));
        assert!(grid.len() <= 27 * held.len());
    }

    #[test]
    fn a_halo_sees_what_steps_see() {
        let mut grid = BlockGrid::default();
        grid.rebuild(&points(100, 30.0), 1.0);
        let halo = Halo::<2>::new();
        let mut seen = vec![0; Halo::<2>::CELLS];
        for block in 0..grid.len() {
            halo.gather(grid.around(block), &mut seen, |index| index);
            for local in 0..CELLS {
                let inner = Halo::<2>::inner(local);
                assert_eq!(seen[inner], block * CELLS + local);
                assert_eq!(seen[inner + 1], grid.step(block, local, 14));
                assert_eq!(seen[inner - 8], grid.step(block, local, 10));
                assert_eq!(seen[inner + 64], grid.step(block, local, 22));
            }
        }
    }
}
