//! Who is near whom: flat lists, made once a step and used by every sweep.

use super::boundary::Boundary;
use super::kernel::Kernel;
use barchan_base::cells::{Cells, Cursor};
use glam::{IVec3, Vec3A};
use rayon::prelude::*;
use std::ops::Range;

/// Particles in one list, and in one piece of every loop.
pub const CHUNK: usize = 512;

/// The neighbours of one chunk of particles.
#[derive(Default)]
pub struct List {
    /// For each particle, where its neighbours among the particles end and where its boundary samples end.
    ends: Vec<[u32; 2]>,
    near: Vec<u32>,
    /// Slope of the kernel over the distance, times the neighbour's volume [1/m²].
    factor: Vec<f32>,
}

/// A stretch of neighbours: indices and factors.
#[derive(Clone, Copy)]
pub struct Near<'a> {
    indices: &'a [u32],
    factors: &'a [f32],
}

impl<'a> Near<'a> {
    /// Index and factor of each.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (usize, f32)> + 'a {
        self.indices
            .iter()
            .zip(self.factors)
            .map(|(index, factor)| (*index as usize, *factor))
    }

    /// How many.
    pub fn len(self) -> usize {
        self.indices.len()
    }

    /// True where there are none.
    pub fn is_empty(self) -> bool {
        self.indices.is_empty()
    }
}

impl List {
    fn stretch(&self, range: Range<usize>) -> Near<'_> {
        Near {
            indices: &self.near[range.clone()],
            factors: &self.factor[range],
        }
    }

    /// Particles near the `k`th particle of the chunk.
    #[inline]
    pub fn particles(&self, k: usize) -> Near<'_> {
        let begin = if k == 0 { 0 } else { self.ends[k - 1][1] };
        self.stretch(begin as usize..self.ends[k][0] as usize)
    }

    /// Boundary samples near the `k`th particle of the chunk.
    #[inline]
    pub fn samples(&self, k: usize) -> Near<'_> {
        self.stretch(self.ends[k][0] as usize..self.ends[k][1] as usize)
    }

    /// The relative density of the `k`th particle is written by `density`.
    fn fill(&mut self, range: Range<usize>, search: &Search, densities: &mut [f32]) {
        self.ends.clear();
        self.near.clear();
        self.factor.clear();
        let mut squared = Vec::new();
        let mut cursors = (Cursor::default(), Cursor::default());
        let mut place = range.start;
        while place < range.end {
            let cell = search.cells.cell_of(place);
            let at = search.cells.coordinates(cell);
            let around = search.around(at, &mut cursors);
            let end = search.cells.places(cell).end.min(range.end);
            for i in place..end {
                densities[i - range.start] = self.find(i, search, &around, &mut squared);
            }
            place = end;
        }
    }

    /// Finds the neighbours of particle `i`; returns its relative density.
    fn find(
        &mut self,
        i: usize,
        search: &Search,
        (particles, samples): &Around,
        squared: &mut Vec<f32>,
    ) -> f32 {
        let Search { x, kernel, .. } = search;
        let begin = self.near.len();
        squared.clear();
        let reach = kernel.support * kernel.support;
        for stretch in particles {
            for (j, other) in stretch.clone().zip(&x[stretch.clone()]) {
                let r2 = (x[i] - *other).length_squared();
                if r2 < reach && i != j {
                    self.near.push(j as u32);
                    squared.push(r2);
                }
            }
        }
        let middle = self.near.len();
        let placed = search.boundary.samples();
        for stretch in samples {
            for (j, sample) in stretch.clone().zip(&placed[stretch.clone()]) {
                let r2 = (x[i] - sample.position).length_squared();
                if r2 < reach {
                    self.near.push(j as u32);
                    squared.push(r2);
                }
            }
        }
        self.ends.push([middle as u32, self.near.len() as u32]);
        let slopes = squared.iter().map(|r2| kernel.slope(*r2) * kernel.volume);
        self.factor.extend(slopes);
        let (among, walls) = squared.split_at(middle - begin);
        let mut density = kernel.value(0.0) + among.iter().map(|r2| kernel.value(*r2)).sum::<f32>();
        density *= kernel.volume;
        for (k, r2) in walls.iter().enumerate() {
            let volume = placed[self.near[middle + k] as usize].volume;
            density += volume * kernel.value(*r2);
            self.factor[middle + k] *= volume / kernel.volume;
        }
        density
    }
}

type Around = ([Range<usize>; 9], [Range<usize>; 9]);

/// What is searched.
pub struct Search<'a> {
    /// The particles, sorted.
    pub cells: &'a Cells,
    /// Their places, in the order of the cells.
    pub x: &'a [Vec3A],
    /// The bodies.
    pub boundary: &'a Boundary,
    /// The kernel; its support is the edge of the cells.
    pub kernel: Kernel,
}

impl Search<'_> {
    fn around(&self, at: IVec3, cursors: &mut (Cursor, Cursor)) -> Around {
        let rows = self.cells.rows(at, &mut cursors.0);
        (
            self.cells.stretches(&rows),
            self.boundary.around(at, &mut cursors.1),
        )
    }

    /// Fills the lists of all particles, and their relative densities.
    pub fn fill(&self, lists: &mut Vec<List>, densities: &mut Vec<f32>) {
        let count = self.x.len();
        densities.resize(count, 0.0);
        lists.resize_with(count.div_ceil(CHUNK), List::default);
        lists
            .par_iter_mut()
            .zip(densities.par_chunks_mut(CHUNK))
            .enumerate()
            .for_each(|(chunk, (list, densities))| {
                let first = chunk * CHUNK;
                list.fill(first..first + densities.len(), self, densities);
            });
    }
}
