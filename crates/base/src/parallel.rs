//! Loops that give the same bits on any number of threads: fixed chunks, sums in chunk order.

use rayon::prelude::*;
use std::ops::Range;

/// Items in one chunk of a parallel loop. Fixed, so that how sums are grouped never depends on the threads.
pub const CHUNK: usize = 4096;

/// The chunk ranges that cover `0..len`.
pub fn chunks(len: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    (0..len.div_ceil(CHUNK))
        .into_par_iter()
        .map(move |chunk| chunk * CHUNK..((chunk + 1) * CHUNK).min(len))
}

/// Maps every chunk and folds the results in chunk order.
pub fn fold_chunks<T: Send>(
    len: usize,
    start: T,
    map: impl Fn(Range<usize>) -> T + Sync + Send,
    fold: impl FnMut(T, T) -> T,
) -> T {
    let parts: Vec<T> = chunks(len).map(map).collect();
    parts.into_iter().fold(start, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_number_of_threads() {
        let values: Vec<f32> = (0..50_000).map(|i| (i as f32).sin()).collect();
        let sum = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                fold_chunks(
                    values.len(),
                    0.0f32,
                    |range| values[range].iter().sum(),
                    |a, b| a + b,
                )
            })
        };
        assert_eq!(sum(1).to_bits(), sum(2).to_bits());
        assert_eq!(sum(1).to_bits(), sum(5).to_bits());
    }

    #[test]
    fn chunks_cover_everything_once() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let ranges: Vec<_> = chunks(len).collect();
            assert_eq!(
                ranges.iter().map(ExactSizeIterator::len).sum::<usize>(),
                len
            );
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
