//! Strain rates in cells and the push of stresses on faces, by central differences on the staggered grid.
//!
//! The shear rate of a cell is the mean over its edges of the differences across each; the stress goes back to the edges
//! and pushes the faces about them by the same weights. Inside the material these are the standard central differences.
//! Edges at the surface or at a wall count for nothing: nobody rubs there, or the wall's own friction does.

use super::super::boundary::Boundary;
use super::super::field::{Faces, Field};
use super::law::Symmetric;
use barchan_base::grid::{CELLS, offset_number};
use rayon::prelude::*;

/// The two axes across the edges of each direction: yz, xz, xy.
const PAIRS: [(usize, usize); 3] = [(1, 2), (0, 2), (0, 1)];

/// The number of an offset by ±1 along an axis, and along two.
const fn along(axis: usize, by: i32) -> usize {
    both(axis, by, axis, 0)
}

const fn both(a: usize, by_a: i32, b: usize, by_b: i32) -> usize {
    let mut offset = [0; 3];
    offset[a] += by_a;
    offset[b] += by_b;
    offset_number(offset[0], offset[1], offset[2])
}

/// Strain rates and stresses on the grid. An edge has the index of the cell at whose lower corner it is.
#[derive(Default)]
pub(super) struct Strain {
    /// Bit p is set where the edge of pair p is within the material.
    edges: Vec<u8>,
    /// The shear stress of each edge.
    shear: Faces,
}

impl Strain {
    /// Finds the edges that count.
    pub fn find_edges(&mut self, field: &Field, boundary: &Boundary) {
        let moves = |axis: usize, cell: usize| {
            field.mass[axis][cell] > 0.0 && boundary.open(axis, cell) > 0.0
        };
        self.edges.clear();
        self.edges.resize(field.grid.cells(), 0);
        self.edges[..field.grid.len() * CELLS]
            .par_iter_mut()
            .enumerate()
            .with_min_len(CELLS)
            .for_each(|(cell, edges)| {
                let step = |offset: usize| field.grid.step(cell / CELLS, cell % CELLS, offset);
                for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
                    let counts = moves(a, cell)
                        && moves(b, cell)
                        && moves(a, step(along(b, -1)))
                        && moves(b, step(along(a, -1)));
                    *edges |= u8::from(counts) << pair;
                }
            });
    }

    /// The four edges of a cell across a pair of axes that count.
    fn edges_of(&self, field: &Field, cell: usize, pair: usize) -> impl Iterator<Item = usize> {
        let (a, b) = PAIRS[pair];
        let step = |offset: usize| field.grid.step(cell / CELLS, cell % CELLS, offset);
        let four = [
            cell,
            step(along(a, 1)),
            step(along(b, 1)),
            step(both(a, 1, b, 1)),
        ];
        four.into_iter()
            .filter(move |edge| self.edges[*edge] >> pair & 1 == 1)
    }

    /// The strain rate of a cell × Δx.
    pub fn rate(&self, field: &Field, cell: usize) -> Symmetric {
        let u = &field.velocity;
        let mut rate = [0.0; 6];
        for axis in 0..3 {
            let upper = field.grid.step(cell / CELLS, cell % CELLS, along(axis, 1));
            rate[axis] = u[axis][upper] - u[axis][cell];
        }
        for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
            let (mut sum, mut count) = (0.0, 0.0f32);
            for edge in self.edges_of(field, cell, pair) {
                let below = |axis| field.grid.step(edge / CELLS, edge % CELLS, along(axis, -1));
                sum += 0.5 * (u[a][edge] - u[a][below(b)] + u[b][edge] - u[b][below(a)]);
                count += 1.0;
            }
            rate[3 + pair] = sum / count.max(1.0);
        }
        Symmetric(rate)
    }

    /// Pushes the faces with the divergence of `stress`, scaled as the law has it.
    pub fn push(&mut self, field: &mut Field, boundary: &Boundary, stress: &[Symmetric]) {
        self.gather_shear(field, stress);
        let (grid, mass) = (&field.grid, &field.mass);
        let cells = grid.len() * CELLS;
        for (axis, velocity) in field.velocity.iter_mut().enumerate() {
            let shear = &self.shear;
            velocity[..cells]
                .par_iter_mut()
                .enumerate()
                .with_min_len(CELLS)
                .filter(|(cell, _)| mass[axis][*cell] > 0.0 && boundary.open(axis, *cell) > 0.0)
                .for_each(|(cell, velocity)| {
                    let step = |offset: usize| grid.step(cell / CELLS, cell % CELLS, offset);
                    let below = step(along(axis, -1));
                    let mut push = stress[cell].0[axis] - stress[below].0[axis];
                    for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
                        if a == axis || b == axis {
                            let other = a + b - axis;
                            push += shear[pair][step(along(other, 1))] - shear[pair][cell];
                        }
                    }
                    *velocity += push;
                });
        }
    }

    /// Each cell's shear stress, shared out among its edges.
    fn gather_shear(&mut self, field: &Field, stress: &[Symmetric]) {
        let grid = &field.grid;
        let cells = grid.len() * CELLS;
        for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
            let mut shear = std::mem::take(&mut self.shear[pair]);
            shear.clear();
            shear.resize(grid.cells(), 0.0);
            shear[..cells]
                .par_iter_mut()
                .enumerate()
                .with_min_len(CELLS)
                .filter(|(edge, _)| self.edges[*edge] >> pair & 1 == 1)
                .for_each(|(edge, shear)| {
                    let step = |offset: usize| grid.step(edge / CELLS, edge % CELLS, offset);
                    let around = [
                        edge,
                        step(along(a, -1)),
                        step(along(b, -1)),
                        step(both(a, -1, b, -1)),
                    ];
                    for cell in around {
                        let whole = stress[cell].0[3 + pair];
                        if whole != 0.0 {
                            *shear += whole / self.edges_of(field, cell, pair).count() as f32;
                        }
                    }
                });
            self.shear[pair] = shear;
        }
    }
}
