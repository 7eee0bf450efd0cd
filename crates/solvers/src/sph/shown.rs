//! What the neighbours see of a particle in a sweep: a matrix, and three numbers in its spare lanes.

use glam::{Mat3A, Vec3A};
use wide::{f32x4, f32x8};

/// A particle as its neighbours see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    columns: [f32x4; 3],
}

/// Where a column keeps its number beside the matrix: the first the pressure, the second the viscosity, the third the lightness.
pub const SPARE: usize = 3;

impl Shown {
    /// With a pressure [Pa], an artificial viscosity and an inverse density [m³/kg], and no matrix yet.
    pub fn new(pressure: f32, viscosity: f32, lightness: f32) -> Self {
        let spare = |number| f32x4::new([0.0, 0.0, 0.0, number]);
        Self {
            columns: [pressure, viscosity, lightness].map(spare),
        }
    }

    /// Pressure [Pa].
    #[inline]
    pub fn pressure(&self) -> f32 {
        self.columns[0].to_array()[SPARE]
    }

    /// Artificial viscosity.
    #[inline]
    pub fn viscosity(&self) -> f32 {
        self.columns[1].to_array()[SPARE]
    }

    /// Inverse of the density [m³/kg].
    #[inline]
    pub fn lightness(&self) -> f32 {
        self.columns[2].to_array()[SPARE]
    }

    /// What it takes of an exchange with another over what equals would: 2 m_j / (m_i + m_j), for all have the same volume. That keeps
    /// momentum, and is exactly 1 between equals.
    #[inline]
    pub fn share(&self, other: &Self) -> f32 {
        2.0 * self.lightness() / (self.lightness() + other.lightness())
    }

    /// The same of four of `all`.
    #[inline]
    pub fn shares(&self, all: &[Self], who: [usize; 4]) -> f32x4 {
        let mine = f32x4::splat(self.lightness());
        let theirs = f32x4::new(who.map(|j| all[j].lightness()));
        // Most scenes are of one material.
        if theirs.simd_eq(mine).all() {
            return f32x4::ONE;
        }
        f32x4::splat(2.0) * mine / (mine + theirs)
    }

    /// Another pressure [Pa].
    #[inline]
    pub fn set_pressure(&mut self, pressure: f32) {
        let [x, y, z, _] = self.columns[0].to_array();
        self.columns[0] = f32x4::new([x, y, z, pressure]);
    }

    /// σ L, or the velocity gradient, or whatever else is summed over neighbours.
    #[inline]
    pub fn matrix(&self) -> Mat3A {
        let [x, y, z] = self.columns.map(vector);
        Mat3A::from_cols(x, y, z)
    }

    /// Another matrix.
    #[inline]
    pub fn set_matrix(&mut self, matrix: &Mat3A) {
        let axes = [matrix.x_axis, matrix.y_axis, matrix.z_axis];
        for (column, axis) in self.columns.iter_mut().zip(axes) {
            *column = f32x4::new([axis.x, axis.y, axis.z, column.to_array()[SPARE]]);
        }
    }

    /// The matrix times a vector.
    #[inline]
    pub fn times(&self, by: Vec3A) -> Vec3A {
        vector(self.times_lanes(by))
    }

    /// The matrix times a vector, in the first three lanes.
    #[inline]
    pub fn times_lanes(&self, by: Vec3A) -> f32x4 {
        let [x, y, z] = self.columns;
        let sum = y.mul_add(f32x4::splat(by.y), x * f32x4::splat(by.x));
        z.mul_add(f32x4::splat(by.z), sum)
    }
}

/// Four numbers each of two particles, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Two(f32x8);

impl Two {
    /// Nothing.
    pub const ZERO: Self = Self(f32x8::ZERO);

    /// One beside the other.
    #[inline]
    pub fn new(first: f32x4, second: f32x4) -> Self {
        // Number by number: a cast of the pair goes through memory where a compiler optimizes less.
        let ([a, b, c, d], [e, f, g, h]) = (first.to_array(), second.to_array());
        Self(f32x8::new([a, b, c, d, e, f, g, h]))
    }

    /// The same of both.
    #[inline]
    pub fn same(vector: Vec3A) -> Self {
        Self::new(lanes(vector), lanes(vector))
    }

    /// A number for each.
    #[inline]
    pub fn splat([a, b]: [f32; 2]) -> Self {
        Self(f32x8::new([a, a, a, a, b, b, b, b]))
    }

    /// The vectors of two.
    #[inline]
    pub fn vectors(all: &[Vec3A], [first, second]: [usize; 2]) -> Self {
        Self::new(lanes(all[first]), lanes(all[second]))
    }

    /// Column by column, the matrices of two, and the numbers beside them.
    #[inline]
    pub fn matrices(all: &[Shown], [first, second]: [usize; 2]) -> [Self; 3] {
        let (first, second) = (&all[first].columns, &all[second].columns);
        std::array::from_fn(|column| Self::new(first[column], second[column]))
    }

    /// This less another.
    #[inline]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    /// This times another, number by number.
    #[inline]
    pub fn times(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }

    /// This times another, and a third.
    #[inline]
    pub fn times_plus(self, other: Self, more: Self) -> Self {
        Self(self.0.mul_add(other.0, more.0))
    }

    /// Each one's number along one axis, everywhere.
    #[inline]
    pub fn along<const AXIS: usize>(self) -> Self {
        let all = self.0.to_array();
        Self::splat([all[AXIS], all[LANES + AXIS]])
    }

    /// Each one's numbers.
    #[inline]
    pub fn split(self) -> [f32x4; 2] {
        bytemuck::cast(self.0)
    }

    /// The numbers of both together.
    #[inline]
    pub fn sum(self) -> f32x4 {
        let [first, second] = self.split();
        first + second
    }
}

/// Numbers of one particle.
const LANES: usize = 4;

/// The products of four vectors with four others, given axis by axis.
#[inline]
pub fn dot(a: [f32x4; 3], b: [f32x4; 3]) -> f32x4 {
    a[2].mul_add(b[2], a[1].mul_add(b[1], a[0] * b[0]))
}

/// Four vectors, axis by axis.
#[inline]
pub fn axes(vectors: [f32x4; 4]) -> [f32x4; 3] {
    let [x, y, z, _] = f32x4::transpose(vectors);
    [x, y, z]
}

/// The first three lanes.
#[inline]
pub fn vector(lanes: f32x4) -> Vec3A {
    let [x, y, z, _] = lanes.to_array();
    Vec3A::new(x, y, z)
}

/// A vector in the first three lanes.
#[inline]
pub fn lanes(vector: Vec3A) -> f32x4 {
    f32x4::new([vector.x, vector.y, vector.z, 0.0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::vec3a;

    #[test]
    fn matrix_and_numbers_do_not_mix() {
        let matrix = Mat3A::from_cols(vec3a(1., 2., 3.), vec3a(4., 5., 6.), vec3a(7., 8., 9.));
        let mut shown = Shown::new(10.0, 0.5, 2e-3);
        shown.set_matrix(&matrix);
        assert_eq!(shown.matrix(), matrix);
        shown.set_pressure(11.0);
        let vector = vec3a(1.0, -1.0, 0.5);
        assert_eq!(shown.times(vector), matrix * vector);
        let numbers = [shown.pressure(), shown.viscosity(), shown.lightness()];
        let given = [11.0f32, 0.5, 2e-3];
        assert_eq!(numbers.map(f32::to_bits), given.map(f32::to_bits));
    }

    #[test]
    fn shares_keep_momentum_and_are_one_between_equals() {
        for density in [1.0f32, 400.0, 1234.567, 2e4] {
            let [one, other] = [density, 1550.0].map(|density| Shown::new(0.0, 0.0, 1.0 / density));
            assert_eq!(one.share(&one).to_bits(), 1f32.to_bits());
            let (given, taken) = (density * one.share(&other), 1550.0 * other.share(&one));
            assert!((given / taken - 1.0).abs() < 1e-6, "{given} for {taken}");
        }
    }

    #[test]
    fn two_side_by_side_are_what_each_is_alone() {
        let matrices = [
            Mat3A::from_cols(vec3a(1., 2., 3.), vec3a(4., 5., 6.), vec3a(7., 8., 9.)),
            Mat3A::from_cols(vec3a(-2., 0., 1.), vec3a(3., -1., 2.), vec3a(0., 5., -4.)),
        ];
        let vectors = [vec3a(0.5, -1.0, 2.0), vec3a(3.0, 0.25, -2.0)];
        let shown = matrices.map(|matrix| {
            let mut shown = Shown::new(2.0, 0.0, 0.0);
            shown.set_matrix(&matrix);
            shown
        });
        let [x, y, z] = Two::matrices(&shown, [0, 1]);
        let by = Two::vectors(&vectors, [0, 1]);
        let product = x.times(by.along::<0>());
        let product = y.times_plus(by.along::<1>(), product);
        let product = z.times_plus(by.along::<2>(), product);
        let expected = [0, 1].map(|k| matrices[k] * vectors[k]);
        assert_eq!(product.split().map(vector), expected);
        assert_eq!(vector(product.sum()), expected[0] + expected[1]);
        let moved = by
            .minus(Two::same(vectors[0]))
            .times(Two::splat([2.0, 3.0]));
        let expected = [Vec3A::ZERO, (vectors[1] - vectors[0]) * 3.0];
        assert_eq!(moved.split().map(vector), expected);
    }
}
