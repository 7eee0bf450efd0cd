//! Who is near whom is found: cell by cell, eight candidates at a time.

use super::boundary::Boundary;
use super::kernel::Kernel;
use super::lists::{CHUNK, List, Stretch, unit};
use super::operator::{Grain, Moments, Role};
use barchan_base::cells::{Cells, Cursor};
use glam::Vec3A;
use rayon::prelude::*;
use std::ops::Range;
use wide::{f32x8, i16x8, u32x8};

/// Candidates looked at side by side.
const WIDE: usize = 8;

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

/// Nobody's index.
const NOBODY: u32 = u32::MAX;

/// All that lies around one cell, side by side, filled up to whole eights with nobody.
#[derive(Default)]
struct Block {
    who: Vec<u32>,
    places: [Vec<f32>; 3],
    /// With those who fill up.
    count: usize,
}

impl Block {
    /// Takes those of `all` that lie in `stretches`.
    #[inline]
    fn fill<T>(&mut self, all: &[T], stretches: &[Range<usize>; 9], place: impl Fn(&T) -> Vec3A) {
        let count = stretches.iter().map(Range::len).sum::<usize>();
        self.count = count.next_multiple_of(WIDE);
        if self.who.len() < self.count {
            self.who.resize(self.count, NOBODY);
            for places in &mut self.places {
                places.resize(self.count, 0.0);
            }
        }
        let [xs, ys, zs] = &mut self.places;
        let mut begin = 0;
        for stretch in stretches {
            let room = begin..begin + stretch.len();
            let who = self.who[room.clone()].iter_mut();
            let places = xs[room.clone()].iter_mut().zip(&mut ys[room.clone()]);
            let places = places.zip(&mut zs[room.clone()]);
            for (((who, ((x, y), z)), i), one) in who
                .zip(places)
                .zip(stretch.clone())
                .zip(&all[stretch.clone()])
            {
                *who = i as u32;
                [*x, *y, *z] = place(one).to_array();
            }
            begin = room.end;
        }
        self.who[count..self.count].fill(NOBODY);
        xs[count..self.count].fill(f32::INFINITY);
    }
}

/// The neighbours of one particle while they are searched.
#[derive(Default)]
struct Found {
    near: Vec<u32>,
    /// The ways from them, axis by axis.
    ways: [Vec<f32>; 3],
    factor: Vec<u16>,
    count: usize,
}

impl Found {
    /// Takes those of a block that are within `reach` of the place `here`, all but the particle `own` itself.
    #[inline]
    fn take(&mut self, block: &Block, own: u32, here: Vec3A, reach: f32) {
        self.make_room(block.count);
        let here = here.to_array().map(f32x8::splat);
        let (own, most) = (u32x8::splat(own), f32x8::splat(reach * reach));
        let [x, y, z] = &block.places;
        let mut count = 0;
        for first in (0..block.count).step_by(WIDE) {
            let who = u32x8::new(eight(&block.who, first));
            let x = here[0] - f32x8::new(eight(x, first));
            let y = here[1] - f32x8::new(eight(y, first));
            let z = here[2] - f32x8::new(eight(z, first));
            let near = squares([x, y, z]).simd_lt(most);
            let other: f32x8 = bytemuck::cast(who.simd_ne(own));
            let hits = (near & other).to_bitmask() as usize % HITS.len();
            // Eight are written, and those that were hit are kept: no branch that would be guessed wrong.
            let order = u32x8::new(HITS[hits]);
            let kept = count..count + WIDE;
            self.near[kept.clone()].copy_from_slice(&who.shuffle(order).to_array());
            for (ways, way) in self.ways.iter_mut().zip([x, y, z]) {
                let way: u32x8 = bytemuck::cast(way);
                let way: [f32; WIDE] = bytemuck::cast(way.shuffle(order));
                ways[kept.clone()].copy_from_slice(&way);
            }
            count += hits.count_ones() as usize;
        }
        self.count = count;
    }

    /// Makes room for `most` neighbours, and for those who fill up the last eight.
    fn make_room(&mut self, most: usize) {
        let most = most + WIDE;
        if self.near.len() < most {
            self.near.resize(most, 0);
            self.factor.resize(most, 0);
            for ways in &mut self.ways {
                ways.resize(most, 0.0);
            }
        }
    }

    /// Finds the factors, and adds to the moments of the particle whose neighbours these are. `volumes` are those of the eight
    /// from one on.
    #[inline]
    fn weigh(&mut self, kernel: &Kernel, volumes: impl Fn(usize) -> f32x8, sums: &mut Moments) {
        // Who fills up the last eight is far away, where the kernel is zero.
        let rest = self.count..self.count + WIDE;
        for (ways, far) in self.ways.iter_mut().zip([2.0 * kernel.support, 0.0, 0.0]) {
            ways[rest.clone()].fill(far);
        }
        let unit = unit(kernel);
        for first in (0..self.count).step_by(WIDE) {
            let way = self.ways.each_ref();
            let way = way.map(|ways| f32x8::new(eight(ways, first)));
            let (value, slope) = kernel.lanes(squares(way));
            let volume = volumes(first);
            let steps = (slope * volume * f32x8::splat(1.0 / unit)).fast_round_int();
            let kept: [u16; WIDE] = bytemuck::cast(i16x8::from_i32x8_truncate(steps));
            self.factor[first..first + WIDE].copy_from_slice(&kept);
            let factor = f32x8::from_i32x8(steps) * f32x8::splat(unit);
            sums.add(way, value * volume, factor);
        }
    }

    fn stretch(&self) -> Stretch<'_> {
        Stretch {
            near: &self.near[..self.count],
            factor: &self.factor[..self.count],
        }
    }
}

/// The squared lengths of vectors, given axis by axis.
#[inline]
fn squares([x, y, z]: [f32x8; 3]) -> f32x8 {
    z.mul_add(z, y.mul_add(y, x * x))
}

#[inline]
fn eight<T: Copy>(column: &[T], first: usize) -> [T; WIDE] {
    column[first..first + WIDE]
        .try_into()
        .expect("a slice of eight")
}

/// What is searched.
pub struct Search<'a> {
    /// The particles, sorted.
    pub cells: &'a Cells,
    /// Their places, in the order of the cells.
    pub x: &'a [Vec3A],
    /// The bodies.
    pub boundary: &'a Boundary,
    /// The kernel; its reach is the edge of the cells.
    pub kernel: Kernel,
}

/// Where a chunk's neighbours are collected: of the particles, and of the samples.
#[derive(Default)]
struct Scratch {
    cursors: [Cursor; 2],
    blocks: [Block; 2],
    found: [Found; 2],
    volumes: Vec<f32>,
}

impl Search<'_> {
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
            self.look_around(cell, scratch);
            let last = self.cells.places(cell).end.min(end);
            for i in place..last {
                let (density, grain) = (&mut densities[i - first], &mut grains[i - first]);
                if grain.role == Role::Apart {
                    list.add_alone();
                } else {
                    *density = self.meet(i, grain, scratch);
                    let [particles, samples] = scratch.found.each_ref().map(Found::stretch);
                    list.add(self.x[i], particles, (samples, self.boundary.samples()));
                }
            }
            place = last;
        }
        list.give_back();
    }

    /// Collects all that lies around a cell.
    fn look_around(&self, cell: usize, scratch: &mut Scratch) {
        let at = self.cells.coordinates(cell);
        let [particles, samples] = &mut scratch.blocks;
        let [cursor, others] = &mut scratch.cursors;
        let around = self.cells.stretches(&self.cells.rows(at, cursor));
        particles.fill(self.x, &around, |x| *x);
        let around = self.boundary.around(at, others);
        samples.fill(self.boundary.samples(), &around, |sample| sample.position);
    }

    /// Finds the neighbours of particle `i` in what lies around its cell, and measures it; returns its density.
    fn meet(&self, i: usize, grain: &mut Grain, scratch: &mut Scratch) -> f32 {
        let (here, kernel) = (self.x[i], &self.kernel);
        let [particles, samples] = &mut scratch.found;
        let own = kernel.volume;
        let mut sums = Moments::default();
        particles.take(&scratch.blocks[0], i as u32, here, kernel.reach);
        particles.weigh(kernel, |_| f32x8::splat(own), &mut sums);
        let alone = sums.clone();
        samples.take(&scratch.blocks[1], NOBODY, here, kernel.reach);
        let placed = self.boundary.samples();
        let volumes = &mut scratch.volumes;
        volumes.clear();
        let near = samples.near[..samples.count].iter();
        volumes.extend(near.map(|b| placed[*b as usize].volume));
        volumes.resize(samples.count.next_multiple_of(WIDE), 0.0);
        samples.weigh(kernel, |first| f32x8::new(eight(volumes, first)), &mut sums);
        grain.measure(&alone, &sums);
        sums.density() + kernel.alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;
    use glam::Vec3;

    /// A cloud of several lists, with a stray and two in one place.
    fn cloud() -> Vec<Vec3> {
        let random = Random::new(5, 1);
        let size = Vec3::new(12.0, 9.0, 11.0);
        let mut points: Vec<Vec3> = (0..1100).map(|i| random.in_cube(i, 0) * size).collect();
        points.extend([Vec3::splat(300.0), Vec3::ONE, Vec3::ONE]);
        points
    }

    #[test]
    fn lists_hold_whom_a_plain_search_finds() {
        let kernel = Kernel::new(1.0);
        let mut cells = Cells::default();
        cells.sort(&cloud(), kernel.reach);
        let points = cloud();
        let order = cells.order().iter();
        let x: Vec<Vec3A> = order.map(|i| points[*i as usize].into()).collect();
        let search = Search {
            cells: &cells,
            x: &x,
            boundary: &Boundary::default(),
            kernel,
        };
        let apart = 77;
        let mut grains = vec![Grain::default(); x.len()];
        grains[apart].role = Role::Apart;
        let (mut lists, mut densities) = (Vec::new(), vec![0.0; x.len()]);
        search.fill(&mut lists, &mut densities, &mut grains);
        for (i, here) in x.iter().enumerate() {
            let list = lists[i / CHUNK].particles(i % CHUNK);
            let found: Vec<usize> = list.iter().map(|(j, _)| j).collect();
            let near =
                |j: &usize| *j != i && here.distance_squared(x[*j]) < kernel.reach * kernel.reach;
            let plain: Vec<usize> = (0..x.len()).filter(near).collect();
            if i == apart {
                assert!(found.is_empty() && !plain.is_empty());
                continue;
            }
            // In the order of the cells, which is not that of rows around one.
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, plain);
            let own = kernel.volume;
            for (j, factor) in list.iter() {
                let expected = kernel.slope(here.distance_squared(x[j])) * own;
                assert!((factor - expected).abs() < 1e-4, "{factor} {expected}");
            }
            let others = plain.iter();
            let others = others.map(|j| kernel.value(here.distance_squared(x[*j])));
            let density = (kernel.value(0.0) + others.sum::<f32>()) * own;
            assert!((densities[i] - density).abs() < 1e-4 * density);
            // Four at a time, and nobody twice.
            let fours: Vec<_> = list.fours(i).collect();
            let who = fours.iter().flat_map(|four| four.who);
            let factors = fours.iter().flat_map(|four| four.factors.to_array());
            let all: Vec<(usize, f32)> = who.zip(factors).collect();
            let (real, pad) = all.split_at(found.len());
            assert!(pad.len() < 4 && pad.iter().all(|(j, f)| *j == i && f.abs() < 1e-12));
            for ((j, factor), (k, other)) in real.iter().zip(list.iter()) {
                assert!(*j == k && (factor - other).abs() <= 1e-6 * other.abs());
            }
        }
    }
}
