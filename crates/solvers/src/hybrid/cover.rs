//! How much lies on a cell: the cells of material above it, one on the other.
//!
//! A solid cell keeps the stress it froze under, whatever comes to lie on it or is taken away. So what lies on it is counted now
//! and then; where that is no longer what it was, the cell and all that is above it thaw, and the solve finds how it is borne.

use barchan_base::grid::{CELLS, EDGE, block_of_key, key_of};
use glam::{IVec3, Vec3};

/// Columns of cells in a block.
const COLUMNS: usize = EDGE * EDGE;
/// Blocks that are looked through above a cell.
const MOST_BLOCKS: usize = 1 << 14;

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

    /// The cells of material above each cell of a block, up to the first that has none. `material` gives those of a block, a
    /// bit each.
    pub fn covers(self, key: u64, material: impl Fn(u64) -> u64) -> [u16; CELLS] {
        let mut above = [0u16; COLUMNS];
        let mut open = [true; COLUMNS];
        let mut block = block_of_key(key);
        for _ in 0..MOST_BLOCKS {
            block += self.up();
            let filled = material(key_of(block));
            for column in (0..COLUMNS)
                .filter(|column| filled != 0 && open[*column])
                .collect::<Vec<_>>()
            {
                let layers =
                    (0..EDGE).take_while(|layer| filled >> self.local(column, *layer) & 1 == 1);
                let layers = layers.count();
                above[column] = above[column].saturating_add(layers as u16);
                open[column] = layers == EDGE;
            }
            if filled == 0 || !open.contains(&true) {
                break;
            }
        }
        let filled = material(key);
        let mut covers = [0; CELLS];
        for (column, mut over) in above.into_iter().enumerate() {
            for layer in (0..EDGE).rev() {
                let local = self.local(column, layer);
                covers[local] = over;
                over = if filled >> local & 1 == 1 {
                    over.saturating_add(1)
                } else {
                    0
                };
            }
        }
        covers
    }

    /// The cell above another.
    pub fn above(self, cell: IVec3) -> IVec3 {
        cell + self.up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::{block_of, local_of};
    use std::collections::BTreeMap;

    #[test]
    fn covers_count_up_to_the_first_gap_whichever_way_is_up() {
        for (gravity, up) in [
            (Vec3::NEG_Y, IVec3::Y),
            (Vec3::new(9.0, 1.0, -2.0), IVec3::NEG_X),
            (Vec3::new(0.0, 3.0, -4.0), IVec3::Z),
        ] {
            let plumb = Plumb::new(gravity).expect("it pulls");
            let mut material: BTreeMap<u64, u64> = BTreeMap::new();
            // Eleven cells, a gap, and three more.
            let foot = IVec3::new(2, -3, 5);
            for i in (0..11).chain(12..15) {
                let cell = foot + up * i;
                *material.entry(key_of(block_of(cell))).or_default() |= 1 << local_of(cell);
            }
            let of = |key: u64| material.get(&key).copied().unwrap_or(0);
            for (i, expected) in [(0, 10), (3, 7), (10, 0), (11, 3), (12, 2), (14, 0)] {
                let cell = foot + up * i;
                let covers = plumb.covers(key_of(block_of(cell)), of);
                assert_eq!(covers[local_of(cell)], expected, "cell {i} along {up}");
            }
        }
        assert_eq!(Plumb::new(Vec3::ZERO), None);
    }
}
