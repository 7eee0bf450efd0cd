//! Floats that several threads may write, each its own places.

use std::sync::atomic::{AtomicU32, Ordering};

/// An array of floats that threads share for a while. Whoever writes a place must be alone with it until all join: then the
/// result does not depend on the threads. Costs what a plain array costs.
#[derive(Clone, Copy, Debug)]
pub struct SharedFloats<'a>(&'a [AtomicU32]);

impl<'a> SharedFloats<'a> {
    /// Shares `floats` for as long as they are borrowed.
    #[expect(
        unsafe_code,
        reason = "std's own AtomicU32::from_mut_slice is not stable yet, and a copy would cost a tenth of a grid's memory"
    )]
    pub fn of(floats: &'a mut [f32]) -> Self {
        let floats = std::ptr::from_mut(floats) as *const [AtomicU32];
        // SAFETY: an AtomicU32 has the size and the bits of a u32, and thereby of an f32, and 4 bytes are the alignment of all three
        // wherever std has atomics of 32 bits. The borrow is the only one for 'a, so that nobody reads or writes the
        // floats but through the atomics.
        Self(unsafe { &*floats })
    }

    /// The value at `index`.
    #[inline]
    pub fn get(self, index: usize) -> f32 {
        f32::from_bits(self.0[index].load(Ordering::Relaxed))
    }

    /// Puts `value` at `index`.
    #[inline]
    pub fn set(self, index: usize, value: f32) {
        self.0[index].store(value.to_bits(), Ordering::Relaxed);
    }

    /// Adds `value` to what is at `index`.
    #[inline]
    pub fn add(self, index: usize, value: f32) {
        self.set(index, self.get(index) + value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    const _: () = assert!(align_of::<AtomicU32>() == align_of::<f32>());

    #[test]
    fn what_threads_write_is_in_the_array() {
        let mut floats: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let shared = SharedFloats::of(&mut floats);
        (0..500).into_par_iter().for_each(|i| {
            shared.set(2 * i, -1.0);
            shared.add(2 * i + 1, 0.5);
        });
        let expected = |i: usize| {
            if i.is_multiple_of(2) {
                -1.0
            } else {
                i as f32 + 0.5
            }
        };
        assert_eq!(shared.get(3).to_bits(), 3.5f32.to_bits());
        assert_eq!(floats, (0..1000).map(expected).collect::<Vec<f32>>());
    }
}
