//! Who is near whom: flat lists, made once a step and used by every sweep.

use super::boundary::{Boundary, Placed};
use super::kernel::Kernel;
use super::operator::{Grain, Moments, Role};
use super::shown::{dot, lanes as vector_lanes};
use barchan_base::cells::{Cells, Cursor};
use glam::{IVec3, Vec3A};
use rayon::prelude::*;
use std::ops::Range;
use wide::{f32x4, f32x8, u32x8};

/// Particles in one list, and in one piece of every loop.
pub const CHUNK: usize = 512;

/// Neighbours of a particle in a lattice.
const USUAL: usize = 26;

/// The neighbours of one chunk of particles.
#[derive(Default)]
pub struct List {
    /// For each particle, where its neighbours among the particles end, where its boundary samples end, and where its touches do.
    ends: Vec<[u32; 3]>,
    near: Vec<u32>,
    /// Slope of the kernel over the distance, times the neighbour's volume, in units.
    factor: Vec<u16>,
    /// The unit [1/m²].
    unit: f32,
    touches: Vec<Touch>,
}

/// Samples near a particle that are one to it: what depends on their places is summed once a step, not once a sweep. On a
/// flat wall all are; on a curved one each is alone.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// One of them.
    pub sample: u32,
    /// Sum of their factors [1/m²].
    pub factor: f32,
    /// Sum of the ways from them times their factors [1/m].
    pub pull: [f32; 3],
}

/// The largest volume of a boundary sample, a lone one's, is below this many times that of a particle.
const MOST_SHARE: f32 = 4.0;

/// Factors are kept as whole multiples of this, which is negative as they are. Everything is measured with what is kept, so
/// that linear fields are still differentiated exactly and forces are equal and opposite.
fn unit(kernel: &Kernel) -> f32 {
    MOST_SHARE * kernel.slope(0.0) * kernel.volume / f32::from(u16::MAX)
}

/// A stretch of neighbours: indices and factors.
#[derive(Clone, Copy)]
pub struct Near<'a> {
    indices: &'a [u32],
    factors: &'a [u16],
    unit: f32,
}

impl<'a> Near<'a> {
    /// Index and factor of each.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (usize, f32)> + 'a {
        self.indices
            .iter()
            .zip(self.factors)
            .map(move |(index, factor)| (*index as usize, f32::from(*factor) * self.unit))
    }

    /// Four of them at a time; the last are filled up with `pad`, whose factor is zero.
    #[inline]
    pub fn fours(self, pad: usize) -> impl Iterator<Item = ([usize; LANES], f32x4)> + 'a {
        let fours = self.indices.chunks(LANES).zip(self.factors.chunks(LANES));
        fours.map(move |(indices, factors)| {
            let (mut four, mut weights) = ([pad; LANES], [0.0; LANES]);
            for k in 0..indices.len().min(LANES) {
                four[k] = indices[k] as usize;
                weights[k] = f32::from(factors[k]);
            }
            (four, f32x4::new(weights) * f32x4::splat(self.unit))
        })
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
            unit: self.unit,
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

    /// The same, those that are one together.
    #[inline]
    pub fn touches(&self, k: usize) -> &[Touch] {
        let begin = if k == 0 { 0 } else { self.ends[k - 1][2] };
        &self.touches[begin as usize..self.ends[k][2] as usize]
    }

    fn clear(&mut self) {
        self.ends.clear();
        self.near.clear();
        self.factor.clear();
        self.touches.clear();
    }

    /// Makes room for what `count` particles have in a full lattice.
    fn begin(&mut self, count: usize, unit: f32) {
        self.clear();
        self.unit = unit;
        if self.near.capacity() == 0 {
            self.make_room(count * USUAL);
        }
    }

    fn make_room(&mut self, more: usize) {
        self.near.reserve_exact(more);
        self.factor.reserve_exact(more);
    }

    /// Adds the neighbours of a particle at `here`; `placed` are all samples.
    fn add(&mut self, here: Vec3A, particles: &Found, (samples, placed): (&Found, &[Placed])) {
        let (more, room) = (particles.count + samples.count, self.near.capacity());
        if self.near.len() + more > room {
            // Not twice as much, as vectors grow by themselves: the lists are most of the memory.
            self.make_room(more.max(room / 64));
        }
        let [first, second] = [particles, samples].map(|found| {
            self.near.extend_from_slice(&found.near[..found.count]);
            self.factor.extend_from_slice(&found.factor[..found.count]);
            self.near.len() as u32
        });
        self.touch(here, samples, placed);
        self.ends.push([first, second, self.touches.len() as u32]);
    }

    /// Sums up the samples near a place that are one.
    fn touch(&mut self, here: Vec3A, found: &Found, placed: &[Placed]) {
        let begin = self.touches.len();
        for (near, steps) in found.near.iter().zip(&found.factor).take(found.count) {
            let sample = &placed[*near as usize];
            let factor = f32::from(*steps) * self.unit;
            let pull = (here - sample.position) * factor;
            let is_one = |touch: &&mut Touch| placed[touch.sample as usize].is_one_with(sample);
            let mut own = self.touches[begin..].iter_mut().take(MOST_FLAT);
            if let Some(touch) = own.find(is_one) {
                touch.factor += factor;
                touch.pull = (Vec3A::from(touch.pull) + pull).into();
            } else {
                self.touches.push(Touch {
                    sample: *near,
                    factor,
                    pull: pull.into(),
                });
            }
        }
    }

    /// Lets go of memory far beyond what is needed. Not sooner: what is let go and taken again leaves holes between the lists.
    fn give_back(&mut self) {
        let len = self.near.len();
        if self.near.capacity() > 2 * len {
            self.near.shrink_to(len + len / 32);
            self.factor.shrink_to(len + len / 32);
        }
    }
}

/// A particle is near to no more flat walls than this; where there are more directions, walls are curved.
const MOST_FLAT: usize = 4;

/// Candidates looked at side by side.
const WIDE: usize = 8;
/// Neighbours worked on side by side.
const LANES: usize = 4;

/// For each pattern of eight bits, which of them are set, in order; then zeros.
static HITS: [[u32; WIDE]; 1 << WIDE] = {
    let mut hits = [[0; WIDE]; 1 << WIDE];
    let mut pattern = 0;
    while pattern < hits.len() {
        let (mut bit, mut count) = (0, 0);
        while bit < WIDE {
            if pattern >> bit & 1 == 1 {
                hits[pattern][count] = bit as u32;
                count += 1;
            }
            bit += 1;
        }
        pattern += 1;
    }
    hits
};

/// The neighbours of one particle while they are searched.
#[derive(Default)]
struct Found {
    near: Vec<u32>,
    /// The neighbour's volume over that of a particle.
    share: Vec<f32>,
    factor: Vec<u16>,
    count: usize,
}

impl Found {
    /// Makes room for `most` neighbours.
    fn make_room(&mut self, most: usize) {
        let most = most + WIDE;
        if self.near.len() < most {
            self.near.resize(most, 0);
            self.share.resize(most, 1.0);
            self.factor.resize(most, 0);
        }
    }

    /// Takes the near ones of a stretch, all but the particle `own` itself.
    #[inline]
    fn take(
        &mut self,
        stretch: Range<usize>,
        own: Option<usize>,
        here: [f32x8; 3],
        (axes, reach): (&[Vec<f32>; 3], f32x8),
    ) {
        let [xs, ys, zs] = axes;
        for first in stretch.clone().step_by(WIDE) {
            let x = here[0] - eight(xs, first);
            let y = here[1] - eight(ys, first);
            let z = here[2] - eight(zs, first);
            let near = (x * x + y * y + z * z).simd_lt(reach);
            let mut hits = near.to_bitmask() as usize % HITS.len();
            let left = stretch.end - first;
            if left < WIDE {
                // What lies behind the stretch is not its own.
                hits &= (1 << left) - 1;
            }
            if let Some(own) = own
                && own.wrapping_sub(first) < WIDE
            {
                hits &= !(1 << (own - first));
            }
            // Eight are written, and those that were hit are kept: no branch that would be guessed wrong.
            let found = u32x8::splat(first as u32) + u32x8::new(HITS[hits]);
            self.near[self.count..self.count + WIDE].copy_from_slice(&found.to_array());
            self.count += hits.count_ones() as usize;
        }
    }

    /// Finds the factors, and adds to the moments of the particle at `here` whose neighbours these are.
    fn weigh(
        &mut self,
        kernel: &Kernel,
        (here, place): (Vec3A, impl Fn(usize) -> Vec3A),
        sums: &mut Moments,
    ) {
        // Who fills up the last four has no volume.
        let end = self.count.next_multiple_of(LANES);
        let filler = self.near.first().copied().unwrap_or(0);
        self.near[self.count..end].fill(filler);
        self.share[self.count..end].fill(0.0);
        let (unit, volume) = (unit(kernel), f32x4::splat(kernel.volume));
        for first in (0..end).step_by(LANES) {
            let way = |k: usize| vector_lanes(here - place(self.near[first + k] as usize));
            let [x, y, z, _] = f32x4::transpose(std::array::from_fn(way));
            let (value, slope) = kernel.lanes(dot([x, y, z], [x, y, z]));
            let share = four(&self.share, first) * volume;
            let steps = (slope * share * f32x4::splat(1.0 / unit)).fast_round_int();
            for (factor, steps) in self.factor[first..].iter_mut().zip(steps.to_array()) {
                *factor = steps as u16;
            }
            let factor = f32x4::from_i32x4(steps) * f32x4::splat(unit);
            sums.add([x, y, z], value * share, factor);
        }
        self.share[self.count..end].fill(1.0);
    }
}

#[inline]
fn four(column: &[f32], first: usize) -> f32x4 {
    let four: [f32; LANES] = column[first..first + LANES]
        .try_into()
        .expect("a slice of four");
    f32x4::new(four)
}

#[inline]
fn eight(column: &[f32], first: usize) -> f32x8 {
    let eight: [f32; WIDE] = column[first..first + WIDE]
        .try_into()
        .expect("a slice of eight");
    f32x8::new(eight)
}

type Around = ([Range<usize>; 9], [Range<usize>; 9]);

/// What is searched.
pub struct Search<'a> {
    /// The particles, sorted.
    pub cells: &'a Cells,
    /// Their places, in the order of the cells.
    pub x: &'a [Vec3A],
    /// The same axis by axis, from [`split_axes`].
    pub axes: &'a [Vec<f32>; 3],
    /// The bodies.
    pub boundary: &'a Boundary,
    /// The kernel; its reach is the edge of the cells.
    pub kernel: Kernel,
}

/// Entries behind the last place, so that lanes may be read beyond it.
const PAD: usize = WIDE;

/// The places of `all`, axis by axis, with [`PAD`] that are nowhere behind the last.
pub fn split_axes<T: Sync>(
    all: &[T],
    place: impl Fn(&T) -> Vec3A + Sync,
    axes: &mut [Vec<f32>; 3],
) {
    for (axis, values) in axes.iter_mut().enumerate() {
        values.clear();
        // The pad, too: without room for it the column would grow to twice its length.
        values.reserve_exact(all.len() + PAD);
        values.par_extend(all.par_iter().map(|one| place(one)[axis]));
        values.extend([f32::INFINITY; PAD]);
    }
}

/// Where a chunk's neighbours are collected.
#[derive(Default)]
struct Scratch {
    particles: Found,
    samples: Found,
    cursors: (Cursor, Cursor),
}

impl Scratch {
    fn make_room(&mut self, (particles, samples): &Around) {
        let all = |stretches: &[Range<usize>; 9]| stretches.iter().map(Range::len).sum();
        self.particles.make_room(all(particles));
        self.samples.make_room(all(samples));
    }
}

impl Search<'_> {
    fn around(&self, at: IVec3, cursors: &mut (Cursor, Cursor)) -> Around {
        let rows = self.cells.rows(at, &mut cursors.0);
        (
            self.cells.stretches(&rows),
            self.boundary.around(at, &mut cursors.1),
        )
    }

    /// Fills the lists of all particles but those apart, and measures what only depends on places: their densities, and what
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
        list.begin(grains.len(), unit(&self.kernel));
        let end = first + grains.len();
        let mut place = first;
        while place < end {
            let cell = self.cells.cell_of(place);
            let at = self.cells.coordinates(cell);
            let around = self.around(at, &mut scratch.cursors);
            scratch.make_room(&around);
            let last = self.cells.places(cell).end.min(end);
            for i in place..last {
                if grains[i - first].role == Role::Apart {
                    list.add(self.x[i], &Found::default(), (&Found::default(), &[]));
                    continue;
                }
                self.find(i, at, &around, scratch);
                let mut sums = Moments::default();
                let (here, samples) = (self.x[i], self.boundary.samples());
                let particles = |j: usize| self.x[j];
                let found = &mut scratch.particles;
                found.weigh(&self.kernel, (here, particles), &mut sums);
                let alone = sums.clone();
                let places = |j: usize| samples[j].position;
                let found = &mut scratch.samples;
                found.weigh(&self.kernel, (here, places), &mut sums);
                densities[i - first] = sums.density() + self.kernel.value(0.0) * self.kernel.volume;
                grains[i - first].measure(&alone, &sums);
                list.add(here, &scratch.particles, (&scratch.samples, samples));
            }
            place = last;
        }
        list.give_back();
    }

    /// Finds the neighbours of particle `i` in the cell at `at`.
    fn find(&self, i: usize, at: IVec3, (particles, samples): &Around, scratch: &mut Scratch) {
        let reach = self.kernel.reach * self.kernel.reach;
        let here = self.axes.each_ref().map(|axis| f32x8::splat(axis[i]));
        let wide = (self.axes, f32x8::splat(reach));
        let aside = self.aside(at, self.x[i]);
        let near = |row: usize| aside[0][row % 3] + aside[1][row / 3] <= FAR;
        let found = &mut scratch.particles;
        found.count = 0;
        for (_, stretch) in particles.iter().enumerate().filter(|(row, _)| near(*row)) {
            found.take(stretch.clone(), Some(i), here, wide);
        }
        let found = &mut scratch.samples;
        found.count = 0;
        let wide = (self.boundary.axes(), f32x8::splat(reach));
        for (_, stretch) in samples.iter().enumerate().filter(|(row, _)| near(*row)) {
            found.take(stretch.clone(), None, here, wide);
        }
        let placed = self.boundary.samples();
        for (share, sample) in found.share.iter_mut().zip(&found.near[..found.count]) {
            *share = placed[*sample as usize].volume / self.kernel.volume;
        }
    }

    /// How far a place in the cell at `at` is from the three rows of cells along y, and from those along z: squared, over the
    /// squared reach.
    fn aside(&self, at: IVec3, here: Vec3A) -> [[f32; 3]; 2] {
        [1, 2].map(|axis| {
            let within = here[axis] / self.kernel.reach - at[axis] as f32;
            [within, 0.0, 1.0 - within].map(|way| way.max(0.0).powi(2))
        })
    }
}

/// Rows of cells further away than this are out of reach; more than one, for rounding.
const FAR: f32 = 1.05;
