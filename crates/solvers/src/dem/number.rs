//! Numbers one at a time or four side by side: a law of contact is written once, for walls that are met one by one and for
//! pairs of grains that are worked out in fours.

use glam::DVec3;
use std::ops::{Add, Div, Mul, Neg, Sub};
use wide::f64x4;

/// Pairs that are worked out together.
pub const LANES: usize = 4;

/// A number, or several.
pub trait Number:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The same value in all lanes.
    fn of(value: f64) -> Self;
    /// Square root.
    fn root(self) -> Self;
    /// The larger of the two.
    fn at_least(self, other: Self) -> Self;
    /// The smaller of the two.
    fn at_most(self, other: Self) -> Self;
    /// `yes` where it is at most `limit`, else `no`.
    fn within(self, limit: Self, yes: Self, no: Self) -> Self;
}

impl Number for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn at_least(self, other: Self) -> Self {
        self.max(other)
    }

    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        self.min(other)
    }

    #[inline(always)]
    fn within(self, limit: Self, yes: Self, no: Self) -> Self {
        if self <= limit { yes } else { no }
    }
}

impl Number for f64x4 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        f64x4::splat(value)
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn at_least(self, other: Self) -> Self {
        self.fast_max(other)
    }

    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        self.fast_min(other)
    }

    #[inline(always)]
    fn within(self, limit: Self, yes: Self, no: Self) -> Self {
        self.simd_le(limit).bitselect(yes, no)
    }
}

/// Three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector<N>(pub [N; 3]);

impl<N: Number> Vector<N> {
    /// Inner product.
    #[inline(always)]
    pub fn dot(self, other: Self) -> N {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        a * d + b * e + c * f
    }

    /// Cross product.
    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([b * f - c * e, c * d - a * f, a * e - b * d])
    }

    /// `self` where `square` is at most `limit`, else `other`.
    #[inline(always)]
    pub fn within(self, (square, limit): (N, N), other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([
            square.within(limit, a, d),
            square.within(limit, b, e),
            square.within(limit, c, f),
        ])
    }
}

impl<N: Number> Add for Vector<N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a + d, b + e, c + f])
    }
}

impl<N: Number> Sub for Vector<N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Self([a - d, b - e, c - f])
    }
}

impl<N: Number> Neg for Vector<N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.map(Neg::neg))
    }
}

impl<N: Number> Mul<N> for Vector<N> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: N) -> Self {
        Self(self.0.map(|part| part * factor))
    }
}

impl From<DVec3> for Vector<f64> {
    #[inline(always)]
    fn from(vector: DVec3) -> Self {
        Self(vector.to_array())
    }
}

impl From<Vector<f64>> for DVec3 {
    #[inline(always)]
    fn from(vector: Vector<f64>) -> Self {
        Self::from_array(vector.0)
    }
}

/// What `make` makes of each lane, written out: `map` and `from_fn` are calls where this is a few loads.
#[inline(always)]
pub fn each<T>(make: impl Fn(usize) -> T) -> [T; LANES] {
    [make(0), make(1), make(2), make(3)]
}

/// Four rows of four numbers, each row a lane's; returns the numbers, each with its four lanes.
#[inline(always)]
pub fn lanes([a, b, c, d]: [&[f64; LANES]; LANES]) -> [f64x4; LANES] {
    each(|k| f64x4::new([a[k], b[k], c[k], d[k]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_lanes() {
        let rows = [0, 1, 2, 3].map(|lane| [0, 1, 2, 3].map(|k| f64::from(10 * lane + k)));
        let columns = lanes([&rows[0], &rows[1], &rows[2], &rows[3]]);
        for (k, column) in (0..).zip(columns) {
            let found = column.to_array().map(|number| number as i32);
            assert_eq!(found, [0, 10, 20, 30].map(|lane| lane + k));
        }
    }
}
