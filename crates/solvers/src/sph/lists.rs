//! Who is near whom: flat lists, made once a step and used by every sweep.

use super::boundary::Boundary;
use super::kernel::Kernel;
use super::operator::{Grain, Moments};
use barchan_base::cells::{Cells, Cursor};
use glam::{IVec3, Vec3A};
use rayon::prelude::*;
use std::ops::Range;
use wide::f32x4;

/// Particles in one list, and in one piece of every loop.
pub const CHUNK: usize = 512;

/// Neighbours of a particle in a packing.
const USUAL: usize = 29;

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

    fn clear(&mut self) {
        self.ends.clear();
        self.near.clear();
        self.factor.clear();
    }

    /// Makes room for what `count` particles have in a full lattice.
    fn begin(&mut self, count: usize) {
        self.clear();
        if self.near.capacity() == 0 {
            self.make_room(count * USUAL);
        }
    }

    fn make_room(&mut self, more: usize) {
        self.near.reserve_exact(more);
        self.factor.reserve_exact(more);
    }

    fn add(&mut self, particles: &Found, samples: &Found) {
        let (more, room) = (particles.count + samples.count, self.near.capacity());
        if self.near.len() + more > room {
            // Not twice as much, as vectors grow by themselves: the lists are most of the memory.
            self.make_room(more.max(room / 16));
        }
        let ends = [particles, samples].map(|found| {
            self.near.extend_from_slice(&found.near[..found.count]);
            self.factor.extend_from_slice(&found.factor[..found.count]);
            self.near.len() as u32
        });
        self.ends.push(ends);
    }

    /// Lets go of memory far beyond what is needed.
    fn give_back(&mut self) {
        let len = self.near.len();
        if self.near.capacity() > len + len / 4 {
            self.near.shrink_to(len + len / 32);
            self.factor.shrink_to(len + len / 32);
        }
    }
}

/// Candidates looked at in one go.
const BATCH: usize = 64;
/// Numbers worked on side by side.
const LANES: usize = 4;

/// The neighbours of one particle while they are searched. Columns end in entries out of the kernel's reach, to a
/// multiple of the lanes.
#[derive(Default)]
struct Found {
    near: Vec<u32>,
    /// From the neighbour to the particle, axis by axis [m].
    way: [Vec<f32>; 3],
    /// The neighbour's volume over that of a particle.
    share: Vec<f32>,
    factor: Vec<f32>,
    count: usize,
}

impl Found {
    /// Makes room for `most` neighbours, and forgets those there were.
    fn begin(&mut self, most: usize) {
        self.count = 0;
        let most = most + BATCH;
        if self.near.len() < most {
            self.near.resize(most, 0);
            let [x, y, z] = &mut self.way;
            for floats in [x, y, z, &mut self.share, &mut self.factor] {
                floats.resize(most, 1.0);
            }
        }
    }

    /// Takes the near ones of a batch of particles, all but `i` itself.
    #[inline]
    fn take(
        &mut self,
        batch: Range<usize>,
        i: usize,
        here: [f32; 3],
        (axes, reach): (&[Vec<f32>; 3], f32),
    ) {
        let [x, y, z] = axes.each_ref().map(|axis| &axis[batch.start..]);
        let [hx, hy, hz] = here.map(f32x4::splat);
        let reach = f32x4::splat(reach);
        let mut hits = 0u64;
        for first in (0..batch.len()).step_by(LANES) {
            let (x, y, z) = (
                hx - lanes(x, first),
                hy - lanes(y, first),
                hz - lanes(z, first),
            );
            let near = (x * x + y * y + z * z).simd_lt(reach);
            hits |= u64::from(near.to_bitmask()) << first;
        }
        // What lies behind the batch is not its own.
        hits &= u64::MAX >> (BATCH - batch.len());
        if batch.contains(&i) {
            hits &= !(1 << (i - batch.start));
        }
        while hits != 0 {
            let j = hits.trailing_zeros() as usize;
            self.push(
                batch.start + j,
                [here[0] - x[j], here[1] - y[j], here[2] - z[j]],
            );
            hits &= hits - 1;
        }
    }

    #[inline]
    fn push(&mut self, j: usize, way: [f32; 3]) {
        self.near[self.count] = j as u32;
        for (column, way) in self.way.iter_mut().zip(way) {
            column[self.count] = way;
        }
        self.count += 1;
    }

    /// Finds the factors, and adds to the moments of the particle whose neighbours these are.
    fn weigh(&mut self, kernel: &Kernel, sums: &mut Moments) {
        let end = self.count.next_multiple_of(LANES);
        for (axis, column) in self.way.iter_mut().enumerate() {
            let beyond = if axis == 0 { 2.0 * kernel.support } else { 0.0 };
            column[self.count..end].fill(beyond);
        }
        let volume = f32x4::splat(kernel.volume);
        for first in (0..end).step_by(LANES) {
            let way = self.way.each_ref().map(|column| lanes(column, first));
            let [x, y, z] = way;
            let (value, slope) = kernel.lanes(x * x + y * y + z * z);
            let share = lanes(&self.share, first) * volume;
            let factor = slope * share;
            self.factor[first..first + LANES].copy_from_slice(&factor.to_array());
            sums.add(way, value * share, factor);
        }
    }
}

#[inline]
fn lanes(column: &[f32], first: usize) -> f32x4 {
    let four: [f32; LANES] = column[first..first + LANES]
        .try_into()
        .expect("a slice of four");
    f32x4::new(four)
}

type Around = ([Range<usize>; 9], [Range<usize>; 9]);

/// What is searched.
pub struct Search<'a> {
    /// The particles, sorted.
    pub cells: &'a Cells,
    /// Their places, in the order of the cells, axis by axis. They end in [`PAD`] that are nowhere.
    pub axes: &'a [Vec<f32>; 3],
    /// The bodies.
    pub boundary: &'a Boundary,
    /// The kernel; its reach is the edge of the cells.
    pub kernel: Kernel,
}

/// Entries behind the last particle's, so that lanes may be read beyond it.
pub const PAD: usize = LANES;

/// Where a chunk's neighbours are collected.
#[derive(Default)]
struct Scratch {
    particles: Found,
    samples: Found,
    cursors: (Cursor, Cursor),
}

impl Search<'_> {
    fn around(&self, at: IVec3, cursors: &mut (Cursor, Cursor)) -> Around {
        let rows = self.cells.rows(at, &mut cursors.0);
        (
            self.cells.stretches(&rows),
            self.boundary.around(at, &mut cursors.1),
        )
    }

    /// Fills the lists of all particles, and measures what only depends on places: their densities, and what
    /// [`Grain::measure`] notes.
    pub fn fill(&self, lists: &mut Vec<List>, densities: &mut [f32], grains: &mut [Grain]) {
        lists.resize_with(grains.len().div_ceil(CHUNK), List::default);
        lists
            .par_iter_mut()
            .zip(densities.par_chunks_mut(CHUNK))
            .zip(grains.par_chunks_mut(CHUNK))
            .enumerate()
            .for_each_init(
                Scratch::default,
                |scratch, (chunk, ((list, densities), grains))| {
                    scratch.cursors = Default::default();
                    self.fill_one(chunk * CHUNK, list, (densities, grains), scratch);
                },
            );
    }

    /// Fills the list of the particles from `first` on.
    fn fill_one(
        &self,
        first: usize,
        list: &mut List,
        (densities, grains): (&mut [f32], &mut [Grain]),
        scratch: &mut Scratch,
    ) {
        list.begin(grains.len());
        let end = first + grains.len();
        let mut place = first;
        while place < end {
            let cell = self.cells.cell_of(place);
            let at = self.cells.coordinates(cell);
            let around = self.around(at, &mut scratch.cursors);
            let last = self.cells.places(cell).end.min(end);
            for i in place..last {
                self.find(i, at, &around, scratch);
                let mut sums = Moments::default();
                scratch.particles.weigh(&self.kernel, &mut sums);
                let alone = sums.clone();
                scratch.samples.weigh(&self.kernel, &mut sums);
                densities[i - first] = sums.density() + self.kernel.value(0.0) * self.kernel.volume;
                grains[i - first].measure(&alone, &sums);
                list.add(&scratch.particles, &scratch.samples);
            }
            place = last;
        }
        list.give_back();
    }

    /// Finds the neighbours of particle `i` in the cell at `at`.
    fn find(&self, i: usize, at: IVec3, (particles, samples): &Around, scratch: &mut Scratch) {
        let here = self.axes.each_ref().map(|axis| axis[i]);
        let reach = self.kernel.reach * self.kernel.reach;
        let found = &mut scratch.particles;
        found.begin(particles.iter().map(Range::len).sum());
        for (row, stretch) in particles.iter().enumerate() {
            if self.is_far(row, at, here) {
                continue;
            }
            for begin in stretch.clone().step_by(BATCH) {
                let batch = begin..(begin + BATCH).min(stretch.end);
                found.take(batch, i, here, (self.axes, reach));
            }
        }
        let found = &mut scratch.samples;
        found.begin(samples.iter().map(Range::len).sum());
        let placed = self.boundary.samples();
        let here = Vec3A::from_array(here);
        for j in samples.iter().cloned().flatten() {
            let way = here - placed[j].position;
            if way.length_squared() < reach {
                found.share[found.count] = placed[j].volume / self.kernel.volume;
                found.push(j, way.to_array());
            }
        }
    }

    /// True where a row of cells is out of reach of a place in the cell at `at`; rows are numbered as by [`Cells::rows`].
    fn is_far(&self, row: usize, at: IVec3, here: [f32; 3]) -> bool {
        /// More than one, for rounding.
        const FAR: f32 = 1.05;
        let beside = |side: usize, axis: usize| {
            let within = here[axis] / self.kernel.reach - at[axis] as f32;
            [within, 0.0, 1.0 - within][side].max(0.0)
        };
        let (y, z) = (beside(row % 3, 1), beside(row / 3, 2));
        y * y + z * z > FAR
    }
}
