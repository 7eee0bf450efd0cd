//! What the neighbours see of a particle in a sweep: a matrix, and two numbers in its spare lanes.

use glam::{Mat3A, Vec3A};
use wide::f32x4;

/// A particle as its neighbours see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    columns: [f32x4; 3],
}

/// Where a column keeps its number beside the matrix.
const SPARE: usize = 3;

impl Shown {
    /// With a pressure [Pa] and an artificial viscosity, and no matrix yet.
    pub fn new(pressure: f32, viscosity: f32) -> Self {
        let spare = |number| f32x4::new([0.0, 0.0, 0.0, number]);
        Self {
            columns: [spare(pressure), spare(viscosity), f32x4::ZERO],
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

    /// Adds the matrix times a vector to three sums, column by column.
    #[inline]
    pub fn add_times(&self, by: Vec3A, sums: &mut [f32x4; 3]) {
        for (axis, sum) in sums.iter_mut().enumerate() {
            *sum = self.columns[axis].mul_add(f32x4::splat(by[axis]), *sum);
        }
    }
}

/// The products of four vectors with four others, given axis by axis.
#[inline]
pub fn dot(a: [f32x4; 3], b: [f32x4; 3]) -> f32x4 {
    a[2].mul_add(b[2], a[1].mul_add(b[1], a[0] * b[0]))
}

/// The sum of four vectors, each times its part.
#[inline]
pub fn weighted(vectors: &[f32x4; 4], parts: f32x4) -> f32x4 {
    let [a, b, c, d] = parts.to_array().map(f32x4::splat);
    let pair = vectors[1].mul_add(b, vectors[0] * a);
    pair + vectors[3].mul_add(d, vectors[2] * c)
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
        let mut shown = Shown::new(10.0, 0.5);
        shown.set_matrix(&matrix);
        assert_eq!(shown.matrix(), matrix);
        shown.set_pressure(11.0);
        let vector = vec3a(1.0, -1.0, 0.5);
        assert_eq!(shown.times(vector), matrix * vector);
        let numbers = [shown.pressure(), shown.viscosity()];
        assert_eq!(numbers.map(f32::to_bits), [11.0f32, 0.5].map(f32::to_bits));
    }
}
