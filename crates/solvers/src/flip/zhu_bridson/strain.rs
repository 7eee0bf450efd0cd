//! Strain rates in cells and the push of stresses on faces, by central differences on the staggered grid.
//!
//! The shear rate of a cell is the mean over its edges of the differences across each; the stress goes back to the edges
//! and pushes the faces about them by the same weights. Inside the material these are the standard central differences.
//! Edges at the surface or at a wall count for nothing: nobody rubs there, or the wall's own friction does.

use super::super::boundary::Boundary;
use super::super::field::{Faces, Field};
use super::law::Symmetric;
use barchan_base::grid::{CELLS, Halo, Mask, bits_of, places};
use rayon::prelude::*;

/// The two axes across the edges of each direction: yz, xz, xy.
const PAIRS: [(usize, usize); 3] = [(1, 2), (0, 2), (0, 1)];
/// Cells of a block with one more on each side, and steps along each axis among them.
const SEEN: usize = Halo::<1>::CELLS;
const STRIDE: [usize; 3] = [1, Halo::<1>::EDGE, Halo::<1>::EDGE * Halo::<1>::EDGE];

/// Strain rates and stresses on the grid. An edge has the index of the cell at whose lower corner it is.
#[derive(Default)]
pub(super) struct Strain {
    halo: Halo<1>,
    /// Faces that move, by axis, and for each pair of axes the edges that are within the material.
    moves: [Mask; 3],
    edges: [Mask; 3],
}

/// What a block sees of the edges: bit p is set where the edge of pair p is within the material.
type Edges = [u8; SEEN];

impl Strain {
    /// Finds the edges that count.
    pub fn find_edges(&mut self, field: &Field, boundary: &Boundary) {
        let grid = &field.grid;
        for (axis, moves) in self.moves.iter_mut().enumerate() {
            moves.fill(grid, |block| {
                let first = block * CELLS;
                let mass = &field.mass[axis][first..first + CELLS];
                let open = |local: usize| {
                    !boundary.is_near(block) || boundary.open(axis, first + local) > 0.0
                };
                bits_of(|local| mass[local] > 0.0 && open(local))
            });
        }
        let moves = &self.moves;
        for ((a, b), edges) in PAIRS.into_iter().zip(&mut self.edges) {
            edges.fill(grid, |block| {
                let around = grid.around(block);
                moves[a].of(block)
                    & moves[b].of(block)
                    & moves[a].beside(around, 2 * b)
                    & moves[b].beside(around, 2 * a)
            });
        }
    }

    fn edges_seen(&self, field: &Field, block: usize) -> Edges {
        let mut seen = [0; SEEN];
        let [yz, xz, xy] = &self.edges;
        let of = |cell: usize| {
            let bit = |edges: &Mask| (edges.of(cell / CELLS) >> (cell % CELLS) & 1) as u8;
            bit(yz) | bit(xz) << 1 | bit(xy) << 2
        };
        self.halo.gather(field.grid.around(block), &mut seen, of);
        seen
    }

    /// Calls `visit` with each active cell of a block, its strain rate × Δx, and how many of its edges count, pair by pair.
    pub fn rates(
        &self,
        field: &Field,
        block: usize,
        mut visit: impl FnMut(usize, Symmetric, [f32; 3]),
    ) {
        let active = &field.active[block * CELLS..][..CELLS];
        if !active.contains(&true) {
            return;
        }
        let around = field.grid.around(block);
        let edges = self.edges_seen(field, block);
        let mut u = [[0.0; SEEN]; 3];
        for (u, velocity) in u.iter_mut().zip(&field.velocity) {
            self.halo.gather(around, u, |cell| velocity[cell]);
        }
        for local in (0..CELLS).filter(|local| active[*local]) {
            let at = Halo::<1>::inner(local);
            let mut rate = [0.0; 6];
            for axis in 0..3 {
                rate[axis] = u[axis][at + STRIDE[axis]] - u[axis][at];
            }
            let mut counts = [0.0f32; 3];
            for (pair, (a, b)) in PAIRS.into_iter().enumerate() {
                let (to_a, to_b) = (STRIDE[a], STRIDE[b]);
                let mut sum = 0.0;
                for edge in [at, at + to_a, at + to_b, at + to_a + to_b] {
                    if edges[edge] >> pair & 1 == 1 {
                        let along_a = u[a][edge] - u[a][edge - to_b];
                        let along_b = u[b][edge] - u[b][edge - to_a];
                        sum += 0.5 * (along_a + along_b);
                        counts[pair] += 1.0;
                    }
                }
                rate[3 + pair] = sum / counts[pair].max(1.0);
            }
            visit(local, Symmetric(rate), counts);
        }
    }

    /// Pushes the faces with the divergence of `stress`, scaled as the law has it. The shear stress of a cell is what each of
    /// its edges gets of it.
    pub fn push(&self, field: &mut Field, stress: &[Symmetric]) {
        let Field { velocity, .. } = field;
        let mut velocity: Faces = std::mem::take(velocity);
        let [u, v, w] = &mut velocity;
        let seen: &Field = field;
        let outside = seen.grid.len();
        (
            u.par_chunks_mut(CELLS),
            v.par_chunks_mut(CELLS),
            w.par_chunks_mut(CELLS),
        )
            .into_par_iter()
            .enumerate()
            .with_min_len(16)
            .filter(|(block, _)| *block < outside)
            .for_each(|(block, (u, v, w))| self.push_block(seen, stress, block, [u, v, w]));
        field.velocity = velocity;
    }

    fn push_block(
        &self,
        field: &Field,
        stress: &[Symmetric],
        block: usize,
        velocity: [&mut [f32]; 3],
    ) {
        let moves = self.moves.each_ref().map(|moves| moves.of(block));
        if moves == [0; 3] {
            return;
        }
        let mut seen = [Symmetric::default(); SEEN];
        self.halo
            .gather(field.grid.around(block), &mut seen, |cell| stress[cell]);
        let shear = shear_of_edges(&self.edges_seen(field, block), &seen);
        for (axis, velocity) in velocity.into_iter().enumerate() {
            for local in places(moves[axis]) {
                let at = Halo::<1>::inner(local);
                let mut push = seen[at].0[axis] - seen[at - STRIDE[axis]].0[axis];
                for (shear, (a, b)) in shear.iter().zip(PAIRS) {
                    if a == axis || b == axis {
                        push += shear[at + STRIDE[a + b - axis]] - shear[at];
                    }
                }
                velocity[local] += push;
            }
        }
    }
}

/// The shear stress of the edges that a block sees, pair by pair: the sum over the cells about each.
fn shear_of_edges(edges: &Edges, stress: &[Symmetric; SEEN]) -> [[f32; SEEN]; 3] {
    let mut shear = [[0.0; SEEN]; 3];
    for (pair, (shear, (a, b))) in shear.iter_mut().zip(PAIRS).enumerate() {
        let (to_a, to_b) = (STRIDE[a], STRIDE[b]);
        // Edges nearer to the rim have cells about them that are not seen; nobody asks for them.
        for edge in to_a + to_b..SEEN {
            if edges[edge] >> pair & 1 == 1 {
                let of = |cell: usize| stress[cell].0[3 + pair];
                shear[edge] = of(edge) + of(edge - to_a) + of(edge - to_b) + of(edge - to_a - to_b);
            }
        }
    }
    shear
}
