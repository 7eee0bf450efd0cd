//! Who is near whom: flat lists, made once a step and used by every sweep.

use super::boundary::Placed;
use super::kernel::Kernel;
use super::shown::Two;
use glam::Vec3A;
use std::ops::Range;
use wide::f32x4;

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
pub fn unit(kernel: &Kernel) -> f32 {
    MOST_SHARE * kernel.slope(0.0) * kernel.volume / f32::from(u16::MAX)
}

/// Neighbours as they are found: indices, and factors in units.
#[derive(Clone, Copy, Default)]
pub struct Stretch<'a> {
    /// Indices.
    pub near: &'a [u32],
    /// Factors.
    pub factor: &'a [u16],
}

/// Four neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Four {
    /// Which.
    pub who: [usize; LANES],
    /// Their factors.
    pub factors: f32x4,
}

impl Four {
    /// As two pairs, each with its factors.
    #[inline(always)]
    pub fn twos(self) -> [([usize; 2], Two); 2] {
        let ([a, b, c, d], factors) = (self.who, self.factors.to_array());
        let [e, f, g, h] = factors;
        [([a, b], Two::splat([e, f])), ([c, d], Two::splat([g, h]))]
    }
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
    pub fn fours(self, pad: usize) -> Fours<'a> {
        Fours {
            left: self,
            pad: pad as u32,
        }
    }

    /// True where there are none.
    pub fn is_empty(self) -> bool {
        self.indices.is_empty()
    }
}

/// Neighbours, four at a time.
pub struct Fours<'a> {
    left: Near<'a>,
    pad: u32,
}

impl Iterator for Fours<'_> {
    type Item = Four;

    // The sums of the loops over these stay in registers only where this is inlined, which it is not by itself, and where no
    // array of it is indexed by a number that is found while it runs.
    #[inline(always)]
    fn next(&mut self) -> Option<Four> {
        let Near {
            indices,
            factors,
            unit,
        } = self.left;
        let (first, steps): ([u32; LANES], [u16; LANES]);
        match (indices.split_first_chunk(), factors.split_first_chunk()) {
            (Some((indices, others)), Some((factors, rest))) => {
                (first, steps) = (*indices, *factors);
                (self.left.indices, self.left.factors) = (others, rest);
            }
            _ if indices.is_empty() => return None,
            _ => {
                first = std::array::from_fn(|k| indices.get(k).copied().unwrap_or(self.pad));
                steps = std::array::from_fn(|k| factors.get(k).copied().unwrap_or(0));
                self.left.indices = &[];
            }
        }
        Some(Four {
            who: first.map(|index| index as usize),
            factors: f32x4::new(steps.map(f32::from)) * f32x4::splat(unit),
        })
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
    pub fn begin(&mut self, count: usize, unit: f32) {
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

    /// Adds a particle without neighbours.
    pub fn add_alone(&mut self) {
        self.add(Vec3A::ZERO, Stretch::default(), (Stretch::default(), &[]));
    }

    /// Adds the neighbours of a particle at `here`; `placed` are all samples.
    pub fn add(
        &mut self,
        here: Vec3A,
        particles: Stretch<'_>,
        (samples, placed): (Stretch<'_>, &[Placed]),
    ) {
        let (more, room) = (
            particles.near.len() + samples.near.len(),
            self.near.capacity(),
        );
        if self.near.len() + more > room {
            // Not twice as much, as vectors grow by themselves: the lists are most of the memory.
            self.make_room(more.max(room / 64));
        }
        let [first, second] = [particles, samples].map(|found| {
            self.near.extend_from_slice(found.near);
            self.factor.extend_from_slice(found.factor);
            self.near.len() as u32
        });
        self.touch(here, samples, placed);
        self.ends.push([first, second, self.touches.len() as u32]);
    }

    /// Sums up the samples near a place that are one.
    fn touch(&mut self, here: Vec3A, found: Stretch<'_>, placed: &[Placed]) {
        let begin = self.touches.len();
        for (near, steps) in found.near.iter().zip(found.factor) {
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
    pub fn give_back(&mut self) {
        let len = self.near.len();
        if self.near.capacity() > 2 * len {
            self.near.shrink_to(len + len / 32);
            self.factor.shrink_to(len + len / 32);
        }
    }
}

/// A particle is near to no more flat walls than this; where there are more directions, walls are curved.
const MOST_FLAT: usize = 4;

/// Neighbours worked on side by side.
const LANES: usize = 4;
