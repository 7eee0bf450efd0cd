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
    found: Found,
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
        let found = &mut self.found;
        let mut cursors = (Cursor::default(), Cursor::default());
        let mut place = range.start;
        while place < range.end {
            let cell = search.cells.cell_of(place);
            let at = search.cells.coordinates(cell);
            let around = search.around(at, &mut cursors);
            let end = search.cells.places(cell).end.min(range.end);
            for i in place..end {
                found.search(i, search, &around);
                self.near.extend_from_slice(&found.near[..found.count]);
                let ends = [found.count - found.among, 0].map(|after| self.near.len() - after);
                self.ends.push(ends.map(|end| end as u32));
                densities[i - range.start] = found.weigh(search);
                self.factor.extend_from_slice(&found.factor[..found.count]);
            }
            place = end;
        }
        give_back(&mut self.near);
        give_back(&mut self.factor);
    }
}

/// Lets go of memory far beyond what a list needs; growing doubles it.
fn give_back<T>(list: &mut Vec<T>) {
    if list.capacity() > list.len() + list.len() / 4 {
        list.shrink_to(list.len() + list.len() / 10);
    }
}

/// Candidates looked at in one go.
const BATCH: usize = 64;

/// The neighbours of one particle while they are searched.
#[derive(Default)]
struct Found {
    near: Vec<u32>,
    squared: Vec<f32>,
    value: Vec<f32>,
    factor: Vec<f32>,
    /// How many are particles, and how many there are.
    among: usize,
    count: usize,
}

impl Found {
    fn search(&mut self, i: usize, search: &Search, (particles, samples): &Around) {
        let most: usize = particles.iter().chain(samples).map(Range::len).sum();
        if self.near.len() < most {
            for floats in [&mut self.squared, &mut self.value, &mut self.factor] {
                floats.resize(most, 0.0);
            }
            self.near.resize(most, 0);
        }
        let here = search.x[i];
        let reach = search.kernel.reach * search.kernel.reach;
        self.count = 0;
        for stretch in particles {
            for begin in stretch.clone().step_by(BATCH) {
                let batch = begin..(begin + BATCH).min(stretch.end);
                self.take(batch, i, here, (search.axes, reach));
            }
        }
        self.among = self.count;
        let placed = search.boundary.samples();
        for stretch in samples {
            for (j, sample) in stretch.clone().zip(&placed[stretch.clone()]) {
                let squared = (here - sample.position).length_squared();
                self.near[self.count] = j as u32;
                self.squared[self.count] = squared;
                self.count += usize::from(squared < reach);
            }
        }
    }

    /// Takes the near ones of a batch of particles; written so that distances are measured side by side and a miss is
    /// overwritten by the next.
    #[inline]
    fn take(
        &mut self,
        batch: Range<usize>,
        i: usize,
        here: Vec3A,
        (axes, reach): (&[Vec<f32>; 3], f32),
    ) {
        let mut squared = [0.0f32; BATCH];
        let [xs, ys, zs] = axes.each_ref().map(|axis| &axis[batch.clone()]);
        for (((squared, x), y), z) in squared.iter_mut().zip(xs).zip(ys).zip(zs) {
            let (x, y, z) = (x - here.x, y - here.y, z - here.z);
            *squared = x * x + y * y + z * z;
        }
        let room = batch.len();
        let (near, kept) = (
            &mut self.near[self.count..self.count + room],
            &mut self.squared[self.count..self.count + room],
        );
        let mut count = 0;
        for (j, squared) in batch.zip(squared) {
            near[count] = j as u32;
            kept[count] = squared;
            count += usize::from(squared < reach && j != i);
        }
        self.count += count;
    }

    /// Finds the factors; returns the relative density.
    fn weigh(&mut self, search: &Search) -> f32 {
        let kernel = &search.kernel;
        let pairs = self.value.iter_mut().zip(&mut self.factor);
        for ((value, factor), squared) in pairs.zip(&self.squared[..self.count]) {
            let (height, slope) = kernel.both(*squared);
            *value = height * kernel.volume;
            *factor = slope * kernel.volume;
        }
        let placed = search.boundary.samples();
        for k in self.among..self.count {
            let share = placed[self.near[k] as usize].volume / kernel.volume;
            self.value[k] *= share;
            self.factor[k] *= share;
        }
        self.value[..self.count].iter().sum::<f32>() + kernel.value(0.0) * kernel.volume
    }
}

type Around = ([Range<usize>; 9], [Range<usize>; 9]);

/// What is searched.
pub struct Search<'a> {
    /// The particles, sorted.
    pub cells: &'a Cells,
    /// Their places, in the order of the cells.
    pub x: &'a [Vec3A],
    /// The same, axis by axis.
    pub axes: &'a [Vec<f32>; 3],
    /// The bodies.
    pub boundary: &'a Boundary,
    /// The kernel; its reach is the edge of the cells.
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
