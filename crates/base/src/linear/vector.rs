//! Loops over vectors in fixed chunks. Short vectors stay on the calling thread: coarse levels are many and small.

use crate::parallel::CHUNK;
use rayon::prelude::*;
use std::ops::Range;

/// a / b, and zero where b is zero.
pub fn divide(a: f32, b: f32) -> f32 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Calls `update` with the index and a mutable reference of every item.
pub fn each<T: Send>(items: &mut [T], update: impl Fn(usize, &mut T) + Sync) {
    each_chunk(items, |range, chunk| {
        for (i, item) in range.zip(chunk) {
            update(i, item);
        }
    });
}

/// Calls `update` with the range and the items of every chunk.
pub fn each_chunk<T: Send>(items: &mut [T], update: impl Fn(Range<usize>, &mut [T]) + Sync) {
    if items.len() <= CHUNK {
        update(0..items.len(), items);
    } else {
        items
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, items)| {
                let start = chunk * CHUNK;
                update(start..start + items.len(), items);
            });
    }
}

/// Sums in chunk order, in memory that stays.
#[derive(Clone, Debug, Default)]
pub struct Sums(Vec<[f64; 4]>);

impl Sums {
    /// Maps the chunks of `0..len`.
    fn parts(&mut self, len: usize, part: impl Fn(Range<usize>) -> [f64; 4] + Sync) -> &[[f64; 4]] {
        self.0.resize(len.div_ceil(CHUNK), [0.0; 4]);
        let range = |chunk: usize| chunk * CHUNK..((chunk + 1) * CHUNK).min(len);
        if let [only] = &mut self.0[..] {
            *only = part(0..len);
        } else {
            self.0
                .par_iter_mut()
                .enumerate()
                .for_each(|(chunk, sum)| *sum = part(range(chunk)));
        }
        &self.0
    }

    /// Sums of `part` over the chunks of `0..len`, four at once.
    pub fn sum(&mut self, len: usize, part: impl Fn(Range<usize>) -> [f64; 4] + Sync) -> [f64; 4] {
        let add = |a: [f64; 4], b: &[f64; 4]| std::array::from_fn(|i| a[i] + b[i]);
        self.parts(len, part).iter().fold([0.0; 4], add)
    }

    /// The least of `part` over the chunks of `0..len`.
    pub fn min(&mut self, len: usize, part: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
        self.parts(len, |range| [part(range), 0.0, 0.0, 0.0])
            .iter()
            .fold(f64::INFINITY, |least, part| least.min(part[0]))
    }

    /// aᵀb.
    pub fn dot(&mut self, a: &[f32], b: &[f32]) -> f64 {
        self.sum(a.len(), |range| {
            [dot(&a[range.clone()], &b[range]), 0.0, 0.0, 0.0]
        })[0]
    }

    /// Updates the chunks of two vectors and sums what the updates return.
    pub fn update(
        &mut self,
        a: &mut [f32],
        b: &mut [f32],
        update: impl Fn(Range<usize>, &mut [f32], &mut [f32]) -> f64 + Sync,
    ) -> f64 {
        let len = a.len();
        if len <= CHUNK {
            return update(0..len, a, b);
        }
        self.0.resize(len.div_ceil(CHUNK), [0.0; 4]);
        self.0
            .par_iter_mut()
            .zip(a.par_chunks_mut(CHUNK))
            .zip(b.par_chunks_mut(CHUNK))
            .enumerate()
            .for_each(|(chunk, ((sum, a), b))| {
                let start = chunk * CHUNK;
                sum[0] = update(start..start + a.len(), a, b);
            });
        self.0.iter().map(|part| part[0]).sum()
    }
}

/// aᵀb of one chunk, in eight lanes so that the compiler may use them all.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..8 {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    let rest: f64 = a_rest
        .iter()
        .zip(b_rest)
        .map(|(&a, &b)| f64::from(a) * f64::from(b))
        .sum();
    lanes.iter().sum::<f64>() + rest
}
