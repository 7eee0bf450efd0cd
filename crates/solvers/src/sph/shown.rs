//! What the neighbours see of a particle in a sweep: a matrix, and two numbers in its spare lanes.

use glam::swizzles::Vec3Swizzles;
use glam::{Mat3A, Vec3A, Vec4};

/// A particle as its neighbours see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    columns: [Vec4; 3],
}

impl Shown {
    /// With a pressure [Pa] and an artificial viscosity, and no matrix yet.
    pub fn new(pressure: f32, viscosity: f32) -> Self {
        let mut shown = Self::default();
        shown.columns[0].w = pressure;
        shown.columns[1].w = viscosity;
        shown
    }

    /// Pressure [Pa].
    #[inline]
    pub fn pressure(&self) -> f32 {
        self.columns[0].w
    }

    /// Artificial viscosity.
    #[inline]
    pub fn viscosity(&self) -> f32 {
        self.columns[1].w
    }

    /// Another pressure [Pa].
    #[inline]
    pub fn set_pressure(&mut self, pressure: f32) {
        self.columns[0].w = pressure;
    }

    /// σ L, or the velocity gradient, or whatever else is summed over neighbours.
    #[inline]
    pub fn matrix(&self) -> Mat3A {
        let [x, y, z] = self.columns.map(Vec3A::from_vec4);
        Mat3A::from_cols(x, y, z)
    }

    /// Another matrix.
    #[inline]
    pub fn set_matrix(&mut self, matrix: &Mat3A) {
        let axes = [matrix.x_axis, matrix.y_axis, matrix.z_axis];
        for (column, axis) in self.columns.iter_mut().zip(axes) {
            *column = axis.extend(column.w);
        }
    }

    /// The matrix times a vector.
    #[inline]
    pub fn times(&self, vector: Vec3A) -> Vec3A {
        let [x, y, z] = self.columns.map(Vec3A::from_vec4);
        x * vector.xxx() + y * vector.yyy() + z * vector.zzz()
    }
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
