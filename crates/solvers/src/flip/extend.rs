//! Velocity beyond the material: faces without mass take the mean of their neighbours nearer to it, layer by layer.
//!
//! Layers are the distance to the material in cells, and a face takes its value from the layers within: ∇u·∇φ = 0 to the
//! order that carries particles over a rim of a few cells.

use super::field::Faces;
use barchan_base::grid::{BlockGrid, CELLS};
use rayon::prelude::*;

/// Layers beyond the material; a particle crosses at most so many cells in a step.
pub(super) const LAYERS: u8 = 3;
/// The layer of faces that nobody has reached.
const UNKNOWN: u8 = u8::MAX;
/// Offsets to the six faces beside a face.
const BESIDE: [usize; 6] = [12, 14, 10, 16, 4, 22];

/// Scratch of the extension.
#[derive(Default)]
pub(super) struct Extension {
    layer: Vec<u8>,
}

impl Extension {
    /// Fills in the values of faces within so many `layers` of those for which `known` holds.
    pub fn extend(
        &mut self,
        grid: &BlockGrid,
        faces: &mut Faces,
        layers: u8,
        known: impl Fn(usize, usize) -> bool + Sync,
    ) {
        let cells = grid.len() * CELLS;
        for (axis, faces) in faces.iter_mut().enumerate() {
            self.layer.clear();
            self.layer.resize(grid.cells(), UNKNOWN);
            self.layer[..cells]
                .par_iter_mut()
                .enumerate()
                .for_each(|(cell, layer)| {
                    if known(axis, cell) {
                        *layer = 0;
                    }
                });
            for layer in 1..=layers {
                self.add_layer(grid, faces, layer);
            }
        }
    }

    fn add_layer(&mut self, grid: &BlockGrid, faces: &mut [f32], layer: u8) {
        let (known, values) = (&self.layer, &*faces);
        let found: Vec<Vec<(u32, f32)>> = (0..grid.len())
            .into_par_iter()
            .map(|block| {
                let mut found = Vec::new();
                if !grid
                    .around(block)
                    .iter()
                    .any(|b| has_layer(known, *b as usize, layer - 1))
                {
                    return found;
                }
                for local in 0..CELLS {
                    let cell = block * CELLS + local;
                    if known[cell] != UNKNOWN {
                        continue;
                    }
                    let (mut sum, mut count) = (0.0, 0.0);
                    for offset in BESIDE {
                        let there = grid.step(block, local, offset);
                        if known[there] < layer {
                            sum += values[there];
                            count += 1.0;
                        }
                    }
                    if count > 0.0 {
                        found.push((cell as u32, sum / count));
                    }
                }
                found
            })
            .collect();
        for (cell, value) in found.into_iter().flatten() {
            self.layer[cell as usize] = layer;
            faces[cell as usize] = value;
        }
    }
}

fn has_layer(layers: &[u8], block: usize, layer: u8) -> bool {
    layers[block * CELLS..(block + 1) * CELLS].contains(&layer)
}
