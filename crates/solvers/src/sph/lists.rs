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

    /// Finds the neighbours of the particles in `range`, and their relative densities.
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
        let placed = search.boundary.samples();
        let (here, begin) = (x[i], self.near.len());
        let reach = kernel.support * kernel.support;
        let most: usize = particles.iter().chain(samples).map(Range::len).sum();
        self.near.resize(begin + most, 0);
        squared.resize(most, 0.0);
        let mut count = 0;
        // Written without branches: a miss is overwritten by the next.
        let mut take = |j: usize, other: Vec3A, other_is: bool| {
            let r2 = (here - other).length_squared();
            self.near[begin + count] = j as u32;
            squared[count] = r2;
            count += usize::from(r2 < reach && other_is);
        };
        for stretch in particles {
            for (j, other) in stretch.clone().zip(&x[stretch.clone()]) {
                take(j, *other, i != j);
            }
        }
        let among = count;
        let mut take = |j: usize, other: Vec3A| {
            let r2 = (here - other).length_squared();
            self.near[begin + count] = j as u32;
            squared[count] = r2;
            count += usize::from(r2 < reach);
        };
        for stretch in samples {
            for (j, sample) in stretch.clone().zip(&placed[stretch.clone()]) {
                take(j, sample.position);
            }
        }
        self.near.truncate(begin + count);
        self.ends
            .push([(begin + among) as u32, (begin + count) as u32]);
        self.weigh(begin, &squared[..count], among, search)
    }

    /// Adds the factors of the neighbours from `begin` on; returns the relative density.
    fn weigh(&mut self, begin: usize, squared: &[f32], among: usize, search: &Search) -> f32 {
        let Search { kernel, .. } = search;
        let placed = search.boundary.samples();
        let mut density = kernel.value(0.0);
        for r2 in &squared[..among] {
            let (value, slope) = kernel.both(*r2);
            density += value;
            self.factor.push(slope * kernel.volume);
        }
        density *= kernel.volume;
        for (k, r2) in squared.iter().enumerate().skip(among) {
            let volume = placed[self.near[begin + k] as usize].volume;
            let (value, slope) = kernel.both(*r2);
            density += volume * value;
            self.factor.push(slope * volume);
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
