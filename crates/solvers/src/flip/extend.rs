//! Velocity beyond the material: faces without mass take the mean of their neighbours nearer to it, layer by layer.
//!
//! Layers are the distance to the material in cells, and a face takes its value from the layers within: ∇u·∇φ = 0 to the
//! order that carries particles over a rim of a few cells.

use super::field::Faces;
use barchan_base::grid::{BESIDE, BlockGrid, CELLS, Mask, places};
use rayon::prelude::*;

/// Layers beyond the material that particles see which cross at most a cell in a step.
const LAYERS: u8 = 3;
/// Layers there are room for: blocks without particles are four cells wide.
const MOST_LAYERS: f32 = 16.0;

/// Layers that particles see which cross at most so many cells in a step. Layers are counted along the axes: aslant, a way is √3
/// times as many.
pub(super) fn layers(crossing: f32) -> u8 {
    let beyond = (3f32.sqrt() * (crossing - 1.0)).ceil();
    LAYERS + beyond.clamp(0.0, MOST_LAYERS) as u8
}

/// Scratch of the extension.
#[derive(Default)]
pub(super) struct Extension {
    known: Mask,
    /// Faces of the next layer, block by block; the blocks that have any, and their values.
    layer: Vec<u64>,
    blocks: Vec<usize>,
    found: Vec<[f32; CELLS]>,
}

impl Extension {
    /// Fills in the values of faces within so many `layers` of those that are `known`, axis by axis.
    pub fn extend(&mut self, grid: &BlockGrid, faces: &mut Faces, layers: u8, known: &[Mask; 3]) {
        for (faces, known) in faces.iter_mut().zip(known) {
            self.known.clone_from(known);
            for _ in 0..layers {
                self.add_layer(grid, faces);
            }
        }
    }

    fn add_layer(&mut self, grid: &BlockGrid, faces: &mut [f32]) {
        let known = &self.known;
        (0..grid.len())
            .into_par_iter()
            .with_min_len(64)
            .map(|block| known.beside_any(grid.around(block)) & !known.of(block))
            .collect_into_vec(&mut self.layer);
        let (layer, values) = (&self.layer, &*faces);
        self.blocks.clear();
        self.blocks
            .extend((0..grid.len()).filter(|block| layer[*block] != 0));
        self.blocks
            .par_iter()
            .with_min_len(16)
            .map(|block| mean_of_known(grid, known, values, (*block, layer[*block])))
            .collect_into_vec(&mut self.found);
        for (block, found) in self.blocks.iter().zip(&self.found) {
            let bits = self.layer[*block];
            self.known.add(*block, bits);
            for local in places(bits) {
                faces[block * CELLS + local] = found[local];
            }
        }
    }
}

/// The mean of the known neighbours of some cells of a block; nothing for the others.
fn mean_of_known(
    grid: &BlockGrid,
    known: &Mask,
    values: &[f32],
    (block, bits): (usize, u64),
) -> [f32; CELLS] {
    let around = grid.around(block);
    let sides: [u64; 6] = std::array::from_fn(|side| known.beside(around, side));
    let mut means = [0.0; CELLS];
    for local in places(bits) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (side, offset) in sides.iter().zip(BESIDE) {
            if side >> local & 1 == 1 {
                sum += values[grid.step(block, local, offset)];
                count += 1.0;
            }
        }
        means[local] = sum / count;
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::bits_of;
    use glam::{IVec3, Vec3};

    /// One known face: those at distance n in steps take its value in layer n, and no others.
    #[test]
    fn layers_are_steps_from_what_is_known() {
        let mut grid = BlockGrid::default();
        grid.rebuild(&[Vec3::splat(3.5)], 1.0);
        let from = IVec3::new(3, 1, 2);
        let start = grid.index(from).expect("it is on the grid");
        let known: [Mask; 3] = std::array::from_fn(|axis| {
            let mut known = Mask::default();
            let is_known = |cell: usize| axis == 0 && cell == start;
            known.fill(&grid, |block| {
                bits_of(|local| is_known(block * CELLS + local))
            });
            known
        });
        let mut faces: Faces = std::array::from_fn(|_| vec![0.0; grid.cells()]);
        faces[0][start] = 7.0;
        Extension::default().extend(&grid, &mut faces, LAYERS, &known);
        for x in -3..8 {
            let cell = IVec3::new(x, 2, 2);
            let steps = (cell - from).abs().element_sum();
            let value = faces[0][grid.index(cell).expect("it is on the grid")];
            let expected = if steps <= i32::from(LAYERS) { 7.0 } else { 0.0 };
            assert!((value - expected).abs() < 1e-6, "{cell}: {value}");
        }
        assert!(faces[1].iter().all(|value| *value == 0.0));
    }
}
