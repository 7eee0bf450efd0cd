//! The matrix of a sparse grid: every cell is coupled to at most six neighbours.

use super::Operator;
use super::vector::each_chunk;
use glam::IVec3;
use rayon::prelude::*;

/// No neighbour.
pub const NONE: u32 = u32::MAX;

/// One row of a [`Stencil`], in the order −x, +x, −y, +y, −z, +z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Indices of the neighbours, or [`NONE`].
    pub neighbors: [u32; 6],
    /// How strongly the cell is coupled to each; the same number in the neighbour's row. Ignored where there is none.
    pub coefficients: [f32; 6],
    /// What the diagonal has beyond the sum of the coefficients: coupling to a boundary where the unknown is zero.
    pub excess: f32,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            neighbors: [NONE; 6],
            coefficients: [0.0; 6],
            excess: 0.0,
        }
    }
}

/// (A x)ᵢ = eᵢ xᵢ + Σₖ cᵢₖ (xᵢ − xₖ) over the face neighbours k, with c ≥ 0 symmetric and the excess e ≥ 0.
///
/// A connected part without any excess is singular: constants on it are in the kernel.
#[derive(Clone, Debug, Default)]
pub struct Stencil {
    cells: Vec<IVec3>,
    /// Neighbours; the cell itself where there is none, so that loops need not ask.
    neighbors: Vec<[u32; 6]>,
    coefficients: Vec<[f32; 6]>,
    excess: Vec<f32>,
    diagonal: Vec<f32>,
    floating: Floating,
}

impl Stencil {
    /// Makes the matrix of these cells. See [`Stencil::rebuild`].
    pub fn new(cells: &[IVec3], row: impl Fn(usize) -> Row + Sync) -> Self {
        let mut stencil = Self::default();
        stencil.rebuild(cells, row);
        stencil
    }

    /// Makes the matrix anew in the memory of the old one. `row(i)` describes the cell at `cells[i]`; it is called once
    /// for every cell, in parallel. Cells may come in any order; neighbouring cells near each other is fastest.
    pub fn rebuild(&mut self, cells: &[IVec3], row: impl Fn(usize) -> Row + Sync) {
        let len = cells.len();
        self.cells.clear();
        self.cells.extend_from_slice(cells);
        self.neighbors.resize(len, [0; 6]);
        self.coefficients.resize(len, [0.0; 6]);
        self.excess.resize(len, 0.0);
        self.diagonal.resize(len, 0.0);
        self.neighbors
            .par_iter_mut()
            .zip(&mut self.coefficients)
            .zip(self.excess.par_iter_mut().zip(&mut self.diagonal))
            .enumerate()
            .for_each(|(i, ((neighbors, coefficients), (excess, diagonal)))| {
                let row = row(i);
                for side in 0..6 {
                    let neighbor = row.neighbors[side];
                    let none = neighbor == NONE || row.coefficients[side] <= 0.0;
                    neighbors[side] = if none { i as u32 } else { neighbor };
                    coefficients[side] = if none { 0.0 } else { row.coefficients[side] };
                }
                *excess = row.excess;
                *diagonal = row.excess + coefficients.iter().sum::<f32>();
            });
        self.floating
            .find(&self.neighbors, &self.coefficients, &self.excess);
    }

    /// Integer coordinates of the cells.
    pub fn cells(&self) -> &[IVec3] {
        &self.cells
    }

    /// Indices of the six neighbours of every cell; the cell itself where there is none.
    pub fn neighbors(&self) -> &[[u32; 6]] {
        &self.neighbors
    }

    /// Coefficients towards the six neighbours; zero where there is none.
    pub fn coefficients(&self) -> &[[f32; 6]] {
        &self.coefficients
    }

    /// What each diagonal has beyond the sum of the coefficients.
    pub fn excess(&self) -> &[f32] {
        &self.excess
    }

    /// The first cell of the connected part each cell belongs to.
    pub fn first_of_part(&self) -> &[u32] {
        &self.floating.parents
    }

    /// The connected parts without excess, each as the sorted indices of its cells. On them only right sides with
    /// mean zero have solutions.
    pub fn floating(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.floating
            .starts
            .windows(2)
            .map(|bounds| &self.floating.members[bounds[0] as usize..bounds[1] as usize])
    }
}

impl Operator for Stencil {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn apply(&self, x: &[f32], y: &mut [f32]) {
        // Differences first: next to a large common value the sum over d x − Σ c x would lose the digits.
        each_chunk(y, |range, y| {
            let rows = self.neighbors[range.clone()]
                .iter()
                .zip(&self.coefficients[range.clone()]);
            let own = x[range.clone()].iter().zip(&self.excess[range]);
            for ((y, (neighbors, coefficients)), (&own, excess)) in y.iter_mut().zip(rows).zip(own)
            {
                let mut sum = excess * own;
                for side in 0..6 {
                    sum += coefficients[side] * (own - x[neighbors[side] as usize]);
                }
                *y = sum;
            }
        });
    }

    fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }

    fn make_compatible(&self, b: &mut [f32]) {
        for part in self.floating() {
            let total: f64 = part.iter().map(|&i| f64::from(b[i as usize])).sum();
            let mean = (total / part.len() as f64) as f32;
            for &i in part {
                b[i as usize] -= mean;
            }
        }
    }

    fn is_unbounded(&self, b: &[f32], slope: f64) -> bool {
        self.floating().any(|part| {
            let total: f64 = part.iter().map(|&i| f64::from(b[i as usize])).sum();
            total > slope * (part.len() as f64).sqrt()
        })
    }

    fn scaled_norm(&self) -> Option<f32> {
        // By Gershgorin: no row's coefficients sum to more than its diagonal.
        Some(2.0)
    }
}

/// The connected parts that no boundary holds.
#[derive(Clone, Debug, Default)]
struct Floating {
    /// A cell of the same part with a smaller index; the first cell of a part is its own.
    parents: Vec<u32>,
    /// Number of the part that begins at a cell, or [`NONE`].
    parts: Vec<u32>,
    members: Vec<u32>,
    /// Where each part begins in the members, and the end.
    starts: Vec<u32>,
}

/// Cells whose connections are followed in parallel, before those between such spans.
const SPAN: usize = 1 << 15;

/// The part has a boundary.
const HELD: u32 = NONE - 1;

impl Floating {
    fn find(&mut self, neighbors: &[[u32; 6]], coefficients: &[[f32; 6]], excess: &[f32]) {
        self.join(neighbors, coefficients);
        let Self { parents, parts, .. } = self;
        // Parents are smaller and come first, so one sweep leads every cell to the first of its part.
        parts.clear();
        parts.resize(parents.len(), NONE);
        for i in 0..parents.len() {
            parents[i] = parents[parents[i] as usize];
            if excess[i] > 0.0 {
                parts[parents[i] as usize] = HELD;
            }
        }
        self.collect();
    }

    /// Links the cells that are coupled.
    fn join(&mut self, neighbors: &[[u32; 6]], coefficients: &[[f32; 6]]) {
        let parents = &mut self.parents;
        parents.clear();
        parents.extend(0..neighbors.len() as u32);
        let links = |i: usize| {
            (0..6)
                .filter(move |&side| coefficients[i][side] > 0.0)
                .map(move |side| neighbors[i][side] as usize)
                .filter(move |&neighbor| neighbor < i)
        };
        parents
            .par_chunks_mut(SPAN)
            .enumerate()
            .for_each(|(span, parents)| {
                let start = span * SPAN;
                for i in start..start + parents.len() {
                    for neighbor in links(i).filter(|&neighbor| neighbor >= start) {
                        unite(parents, start, i, neighbor);
                    }
                }
            });
        for i in SPAN..neighbors.len() {
            let start = i / SPAN * SPAN;
            for neighbor in links(i).filter(|&neighbor| neighbor < start) {
                unite(parents, 0, i, neighbor);
            }
        }
    }

    /// Numbers the parts without boundary and lists their cells.
    fn collect(&mut self) {
        let Self {
            parents,
            parts,
            members,
            starts,
        } = self;
        starts.clear();
        members.clear();
        let mut count = 0;
        for i in 0..parents.len() {
            if parents[i] as usize == i && parts[i] == NONE {
                parts[i] = count;
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        let part = |i: usize| parts[parents[i] as usize] as usize;
        starts.resize(count as usize + 1, 0);
        for i in (0..parents.len()).filter(|&i| part(i) < count as usize) {
            starts[part(i) + 1] += 1;
        }
        for i in 0..count as usize {
            starts[i + 1] += starts[i];
        }
        members.resize(starts[count as usize] as usize, 0);
        for i in (0..parents.len()).filter(|&i| part(i) < count as usize) {
            members[starts[part(i)] as usize] = i as u32;
            starts[part(i)] += 1;
        }
        // Each start has moved to the end of its part, which is where the next begins.
        starts.pop();
        starts.insert(0, 0);
    }
}

/// Links the parts of cells a and b. `parents` begins at cell `start`.
fn unite(parents: &mut [u32], start: usize, a: usize, b: usize) {
    let (a, b) = (first(parents, start, a), first(parents, start, b));
    parents[a.max(b) - start] = a.min(b) as u32;
}

/// The first known cell of the part of `cell`; halves the way there.
fn first(parents: &mut [u32], start: usize, mut cell: usize) -> usize {
    loop {
        let parent = parents[cell - start] as usize;
        if parent == cell {
            return cell;
        }
        let above = parents[parent - start];
        parents[cell - start] = above;
        cell = above as usize;
    }
}
