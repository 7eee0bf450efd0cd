//! Symmetric 3×3 tensors in six numbers.

use glam::{Mat3A, Vec3A};

/// A symmetric tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sym3 {
    /// xx, yy, zz.
    pub diagonal: [f32; 3],
    /// yz, xz, xy.
    pub off: [f32; 3],
}

impl Sym3 {
    /// `value` on the diagonal.
    pub fn splat(value: f32) -> Self {
        Self {
            diagonal: [value; 3],
            off: [0.0; 3],
        }
    }

    /// The symmetric part of a matrix.
    pub fn of(m: &Mat3A) -> Self {
        Self {
            diagonal: [m.x_axis.x, m.y_axis.y, m.z_axis.z],
            off: [
                0.5 * (m.y_axis.z + m.z_axis.y),
                0.5 * (m.x_axis.z + m.z_axis.x),
                0.5 * (m.x_axis.y + m.y_axis.x),
            ],
        }
    }

    /// As a matrix.
    pub fn matrix(&self) -> Mat3A {
        let ([xx, yy, zz], [yz, xz, xy]) = (self.diagonal, self.off);
        Mat3A::from_cols(
            Vec3A::new(xx, xy, xz),
            Vec3A::new(xy, yy, yz),
            Vec3A::new(xz, yz, zz),
        )
    }

    /// Sum of the diagonal.
    pub fn trace(&self) -> f32 {
        self.diagonal.iter().sum()
    }

    /// The part without trace.
    pub fn deviator(&self) -> Self {
        let mean = self.trace() / 3.0;
        Self {
            diagonal: self.diagonal.map(|d| d - mean),
            off: self.off,
        }
    }

    /// Frobenius norm.
    pub fn norm(&self) -> f32 {
        let square = |values: &[f32; 3]| values.iter().map(|value| value * value).sum::<f32>();
        (square(&self.diagonal) + 2.0 * square(&self.off)).sqrt()
    }

    /// How much of it points along another: their product over the other's norm.
    pub fn along(&self, other: &Self) -> f32 {
        let dot = |a: &[f32; 3], b: &[f32; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let product = dot(&self.diagonal, &other.diagonal) + 2.0 * dot(&self.off, &other.off);
        product / other.norm().max(f32::MIN_POSITIVE)
    }

    /// Each number times `factor`.
    pub fn scaled(&self, factor: f32) -> Self {
        Self {
            diagonal: self.diagonal.map(|d| d * factor),
            off: self.off.map(|o| o * factor),
        }
    }

    /// Scaled back to a norm of `most`, where it is larger.
    #[must_use]
    pub fn within(&self, most: f32) -> Self {
        let norm = self.norm();
        if norm > most {
            self.scaled(most / norm)
        } else {
            *self
        }
    }

    /// Sum of two.
    pub fn plus(&self, other: &Self) -> Self {
        let add = |a: [f32; 3], b: [f32; 3]| std::array::from_fn(|i| a[i] + b[i]);
        Self {
            diagonal: add(self.diagonal, other.diagonal),
            off: add(self.off, other.off),
        }
    }

    /// This tensor carried along by a material that spins for a moment: `gradient` is that of the velocity times the
    /// moment's length. Its norm does not grow.
    pub fn spun(&self, gradient: &Mat3A) -> Self {
        let s = self.matrix();
        let spin = (*gradient - gradient.transpose()) * 0.5;
        let turned = Self::of(&(s + (spin * s - s * spin)));
        turned.within(self.norm())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sym3 {
        Sym3 {
            diagonal: [1.0, -2.0, 1.0],
            off: [0.3, -0.2, 0.7],
        }
    }

    #[test]
    fn matrices_and_tensors_agree() {
        let s = sample();
        assert_eq!(Sym3::of(&s.matrix()), s);
        let squares = s
            .matrix()
            .to_cols_array()
            .iter()
            .map(|v| v * v)
            .sum::<f32>();
        assert!((s.norm() - squares.sqrt()).abs() < 1e-6);
        assert!(s.plus(&Sym3::splat(3.0)).deviator().trace().abs() < 1e-6);
    }

    #[test]
    fn spinning_turns_a_tensor_as_a_rotation_does() {
        let (s, angle) = (sample(), 1e-3f32);
        let spin = Mat3A::from_cols(Vec3A::Y * angle, -Vec3A::X * angle, Vec3A::ZERO);
        let turn = Mat3A::from_rotation_z(angle);
        let expected = Sym3::of(&(turn * s.matrix() * turn.transpose()));
        let turned = s.spun(&spin);
        assert!(turned.plus(&expected.scaled(-1.0)).norm() < 1e-5);
        assert!(turned.norm() <= s.norm() * (1.0 + 1e-6));
    }

    #[test]
    fn a_tensor_points_along_itself_and_along_nothing_that_is_nothing() {
        let s = sample();
        assert!((s.along(&s.scaled(3.0)) - s.norm()).abs() < 1e-5);
        let across = Sym3 {
            diagonal: [1.0, 0.0, -1.0],
            off: [0.0; 3],
        };
        let level = Sym3 {
            diagonal: [0.0; 3],
            off: [0.0, 2.0, 0.0],
        };
        assert!(across.along(&level).abs() < 1e-12);
        assert!(s.along(&Sym3::default()).abs() < 1e-12);
    }
}
