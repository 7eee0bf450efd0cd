//! Floats that several threads may write, each its own places.

use std::sync::atomic::{AtomicU32, Ordering};

/// An array of floats that threads share. Whoever writes a place must be alone with it until all join: then the result
/// does not depend on the threads. Costs what a plain array costs.
#[derive(Debug, Default)]
pub struct SharedFloats(Vec<AtomicU32>);

impl SharedFloats {
    /// Makes it `len` zeros.
    pub fn reset(&mut self, len: usize) {
        self.0.clear();
        self.0.resize_with(len, AtomicU32::default);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> f32 {
        f32::from_bits(self.0[index].load(Ordering::Relaxed))
    }

    /// Puts `value` at `index`.
    #[inline]
    pub fn set(&self, index: usize, value: f32) {
        self.0[index].store(value.to_bits(), Ordering::Relaxed);
    }
}
