//! How much lies on a cell: the particles above it, cell on cell.
//!
//! A solid cell keeps the stress it froze under, whatever comes to lie on it or is taken away. So what lies on it is counted now
//! and then; where that is no longer what it was, the cell and all that is above it thaw, and the solve finds how it is borne.
//! Particles are counted, solid or not: a cell of the surface with three of them weighs the same before it freezes and after.

use barchan_base::grid::{CELLS, EDGE, block_of_key, key_of};
use glam::{IVec3, Vec3};
use std::collections::BTreeMap;

/// Columns of cells in a block.
const COLUMNS: usize = EDGE * EDGE;
/// So many empty cells, one on the other, bear nothing: a single one is a pore.
const GAP: u8 = 2;

/// The axis along which things weigh most, and which way up is on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plumb {
    axis: usize,
    upwards: bool,
}

impl Plumb {
    /// Against `gravity`; none where nothing pulls.
    pub fn new(gravity: Vec3) -> Option<Self> {
        let axis = gravity.abs().max_position();
        (gravity[axis].abs() > 0.0).then(|| Self {
            axis,
            upwards: gravity[axis] < 0.0,
        })
    }

    fn up(self) -> IVec3 {
        let step = if self.upwards { 1 } else { -1 };
        IVec3::AXES[self.axis] * step
    }

    /// The local index of the cell of a column that is `layer` cells above the lowest.
    fn local(self, column: usize, layer: usize) -> usize {
        let layer = if self.upwards {
            layer
        } else {
            EDGE - 1 - layer
        };
        let (a, b) = (column % EDGE, column / EDGE);
        let place = match self.axis {
            0 => [layer, a, b],
            1 => [a, layer, b],
            _ => [a, b, layer],
        };
        place[0] + EDGE * place[1] + EDGE * EDGE * place[2]
    }

    /// The cell above another.
    pub fn above(self, cell: IVec3) -> IVec3 {
        cell + self.up()
    }
}

/// The particles of a column of cells, down to some cell, and the empty cells it ends with.
#[derive(Clone, Copy, Debug)]
struct Pile {
    particles: u16,
    gap: u8,
}

impl Pile {
    const NONE: Self = Self {
        particles: 0,
        gap: GAP,
    };

    /// With a cell more at its foot.
    fn on(self, count: u16) -> Self {
        match (count, self.gap + 1) {
            (0, GAP..) => Self::NONE,
            (0, gap) => Self { gap, ..self },
            (count, _) => Self {
                particles: self.particles.saturating_add(count),
                gap: 0,
            },
        }
    }
}

/// What lies on cells. Blocks that lie on each other are looked at once, however many of them are asked for.
pub(super) struct Covers<F> {
    plumb: Plumb,
    /// The particles in the cells of a block, if it has any.
    counts: F,
    /// The columns of the blocks that were looked at, down to their lowest cells.
    known: BTreeMap<u64, [Pile; COLUMNS]>,
}

impl<F: Fn(u64) -> Option<[u16; CELLS]>> Covers<F> {
    pub fn new(plumb: Plumb, counts: F) -> Self {
        Self {
            plumb,
            counts,
            known: BTreeMap::new(),
        }
    }

    /// The particles above each cell of a block.
    pub fn of(&mut self, key: u64) -> [u16; CELLS] {
        let above = |key: u64| key_of(block_of_key(key) + self.plumb.up());
        let mut blocks = vec![(key, (self.counts)(key).unwrap_or([0; CELLS]))];
        let mut next = above(key);
        let mut piles = loop {
            if let Some(known) = self.known.get(&next) {
                break *known;
            }
            match (self.counts)(next) {
                Some(counts) => blocks.push((next, counts)),
                None => break [Pile::NONE; COLUMNS],
            }
            next = above(next);
        };
        let mut covers = [0; CELLS];
        for (key, counts) in blocks.into_iter().rev() {
            for (column, pile) in piles.iter_mut().enumerate() {
                for layer in (0..EDGE).rev() {
                    let local = self.plumb.local(column, layer);
                    covers[local] = pile.particles;
                    *pile = pile.on(counts[local]);
                }
            }
            self.known.insert(key, piles);
        }
        covers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::{block_of, local_of};

    #[test]
    fn covers_count_up_to_the_first_gap_whichever_way_is_up() {
        for (gravity, up) in [
            (Vec3::NEG_Y, IVec3::Y),
            (Vec3::new(9.0, 1.0, -2.0), IVec3::NEG_X),
            (Vec3::new(0.0, 3.0, -4.0), IVec3::Z),
        ] {
            let plumb = Plumb::new(gravity).expect("it pulls");
            let mut counts: BTreeMap<u64, [u16; CELLS]> = BTreeMap::new();
            // Eleven cells with a pore among them, the last with three particles; a gap, and three more.
            let foot = IVec3::new(2, -3, 5);
            for (i, count) in (0..11)
                .chain(13..16)
                .map(|i| (i, if i == 10 { 3 } else { 8 }))
            {
                let cell = foot + up * i;
                let block = counts.entry(key_of(block_of(cell)));
                block.or_insert([0; CELLS])[local_of(cell)] = if i == 6 { 0 } else { count };
            }
            let mut covers = Covers::new(plumb, |key: u64| counts.get(&key).copied());
            let found = [
                (0, 67),
                (3, 43),
                (5, 27),
                (6, 27),
                (7, 19),
                (10, 0),
                (11, 24),
                (12, 24),
                (13, 16),
                (15, 0),
            ];
            for (i, expected) in found {
                let cell = foot + up * i;
                let covers = covers.of(key_of(block_of(cell)));
                assert_eq!(covers[local_of(cell)], expected, "cell {i} along {up}");
            }
        }
        assert_eq!(Plumb::new(Vec3::ZERO), None);
    }
}
