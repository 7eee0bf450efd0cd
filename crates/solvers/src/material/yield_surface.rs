//! When granular material gives way: Mohr and Coulomb's law in principal stresses.
//!
//! With compressive principal stresses σ₁ ≥ σ₂ ≥ σ₃, pressure p = (σ₁ + σ₂ + σ₃) / 3 and cohesion c, material holds while
//!
//! (σ₁ − σ₃) / 2 ≤ sin φ (σ₁ + σ₃) / 2 + c cos φ.
//!
//! For a deviator s with J₂ = s:s / 2 and J₃ = det s this is √J₂ · G ≤ p sin φ + c cos φ, where
//! G = cos a + sin φ / √3 · sin a and a = asin(3√3/2 · J₃ / J₂^{3/2}) / 3: 30° in extension, −30° in compression, 0 in plane
//! strain.

use wide::f32x8;

/// Eight symmetric tensors without trace, a lane each: xx, yy, yz, xz, xy; zz follows.
#[derive(Clone, Copy, Debug)]
pub struct Deviators {
    /// Diagonal.
    pub xx: f32x8,
    /// Diagonal.
    pub yy: f32x8,
    /// Off the diagonal.
    pub yz: f32x8,
    /// Off the diagonal.
    pub xz: f32x8,
    /// Off the diagonal.
    pub xy: f32x8,
}

impl Deviators {
    /// The last diagonal entry.
    #[inline]
    pub fn zz(&self) -> f32x8 {
        -(self.xx + self.yy)
    }

    /// The sum of the products of all nine entries.
    #[inline]
    pub fn dot(&self, other: &Self) -> f32x8 {
        let off = self.yz * other.yz + self.xz * other.xz + self.xy * other.xy;
        self.xx * other.xx + self.yy * other.yy + self.zz() * other.zz() + off + off
    }

    /// The sum of the squares of all nine entries.
    #[inline]
    pub fn square(&self) -> f32x8 {
        self.dot(self)
    }

    /// The sums of both.
    #[inline]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            xx: self.xx + other.xx,
            yy: self.yy + other.yy,
            yz: self.yz + other.yz,
            xz: self.xz + other.xz,
            xy: self.xy + other.xy,
        }
    }

    /// The first where `mask` is set, the second elsewhere.
    #[inline]
    pub fn select(mask: f32x8, first: &Self, second: &Self) -> Self {
        Self {
            xx: mask.select(first.xx, second.xx),
            yy: mask.select(first.yy, second.yy),
            yz: mask.select(first.yz, second.yz),
            xz: mask.select(first.xz, second.xz),
            xy: mask.select(first.xy, second.xy),
        }
    }

    /// Each times its number.
    #[inline]
    pub fn times(&self, by: f32x8) -> Self {
        Self {
            xx: self.xx * by,
            yy: self.yy * by,
            yz: self.yz * by,
            xz: self.xz * by,
            xy: self.xy * by,
        }
    }

    /// R S Rᵀ, with the rows of a rotation R.
    #[inline]
    pub fn turned(&self, rows: &[[f32x8; 3]; 3]) -> Self {
        let columns = [
            [self.xx, self.xy, self.xz],
            [self.xy, self.yy, self.yz],
            [self.xz, self.yz, self.zz()],
        ];
        let dot = |a: &[f32x8; 3], b: &[f32x8; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let [x, y, z] = rows;
        let left = |row| columns.each_ref().map(|column| dot(row, column));
        let (first, second) = (left(x), left(y));
        Self {
            xx: dot(&first, x),
            yy: dot(&second, y),
            yz: dot(&second, z),
            xz: dot(&first, z),
            xy: dot(&first, y),
        }
    }

    fn determinant(&self) -> f32x8 {
        let zz = self.zz();
        self.xx * (self.yy * zz - self.yz * self.yz) - self.xy * (self.xy * zz - self.yz * self.xz)
            + self.xz * (self.xy * self.yz - self.yy * self.xz)
    }
}

/// What each deviator must be multiplied with, at most 1, to lie within the yield surface: `strength` is
/// p sin φ + c cos φ, `sine` is sin φ.
#[inline]
pub fn scale_to_yield(s: &Deviators, strength: f32x8, sine: f32x8) -> f32x8 {
    let tiny = f32x8::splat(1e-24);
    let j2 = f32x8::splat(0.5) * s.square() + tiny;
    let root = j2.sqrt();
    let third = lode(s.determinant() / (j2 * root));
    let square = third * third;
    // Sine and cosine of angles up to 30 degrees.
    let cosine = f32x8::ONE - square * (f32x8::splat(0.5) - square * f32x8::splat(1.0 / 24.0));
    let sinus = third
        * (f32x8::ONE - square * (f32x8::splat(1.0 / 6.0) - square * f32x8::splat(1.0 / 120.0)));
    let g = cosine + sine * f32x8::splat(1.0 / 3f32.sqrt()) * sinus;
    let limit = strength.fast_max(f32x8::ZERO) / (root * g);
    limit.fast_min(f32x8::ONE)
}

/// A third of the arcsine of 3√3/2 × `ratio`.
#[inline]
fn lode(ratio: f32x8) -> f32x8 {
    let x = ratio * f32x8::splat(1.5 * 3f32.sqrt());
    let size = x.abs().fast_min(f32x8::ONE);
    // Abramowitz & Stegun 4.4.45.
    let series = ((f32x8::splat(-0.018_729_3) * size + f32x8::splat(0.074_261)) * size
        - f32x8::splat(0.212_114_4))
        * size
        + f32x8::splat(1.570_728_8);
    let angle = f32x8::splat(std::f32::consts::FRAC_PI_2)
        - (f32x8::ONE - size).fast_max(f32x8::ZERO).sqrt() * series;
    let third = angle * f32x8::splat(1.0 / 3.0);
    x.simd_gt(f32x8::ZERO).select(third, -third)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;
    use glam::{Mat3, Vec3};

    /// Turns diag(a, b, −a−b) by a random rotation, and puts it into lane 2 of eight.
    fn turned(a: f32, b: f32, seed: u64) -> Deviators {
        let random = Random::new(9, seed);
        let axis = (random.in_cube(0, 0) - 0.5).normalize();
        let turn = Mat3::from_axis_angle(axis, 6.0 * random.uniform(0, 9));
        let m = turn * Mat3::from_diagonal(Vec3::new(a, b, -a - b)) * turn.transpose();
        let lane = |v: f32| f32x8::from([0.3, -0.1, v, 0.0, 0.0, 0.0, 0.0, 0.0]);
        Deviators {
            xx: lane(m.x_axis.x),
            yy: lane(m.y_axis.y),
            yz: lane(m.y_axis.z),
            xz: lane(m.x_axis.z),
            xy: lane(m.x_axis.y),
        }
    }

    #[test]
    fn scaled_stress_lies_on_mohr_coulombs_surface() {
        for (i, phi) in [5f32, 20.0, 34.0, 45.0, 60.0].into_iter().enumerate() {
            let sine = phi.to_radians().sin();
            for (j, &(a, b)) in [
                (1.0, 0.0),
                (1.0, 1.0),
                (-1.0, -1.0),
                (2.0, -0.3),
                (0.1, 0.4),
            ]
            .iter()
            .enumerate()
            {
                let p = 0.7;
                let s = turned(a, b, (10 * i + j) as u64);
                let scale =
                    scale_to_yield(&s, f32x8::splat(p * sine), f32x8::splat(sine)).to_array()[2];
                let mut stress = [a, b, -a - b].map(|s| p - scale * s);
                stress.sort_by(f32::total_cmp);
                let [low, _, high] = stress;
                if scale < 1.0 {
                    let ratio = (high - low) / (high + low);
                    assert!(
                        (ratio - sine).abs() < 2e-3,
                        "{phi} {a} {b}: {ratio} for {sine}"
                    );
                } else {
                    assert!((high - low) <= sine * (high + low) * 1.001);
                }
            }
        }
    }

    #[test]
    fn no_strength_means_no_stress_and_zero_stays_zero() {
        let s = turned(1.0, -0.2, 1);
        let (none, sine) = (f32x8::ZERO, f32x8::splat(0.5));
        assert!(scale_to_yield(&s, none, sine).to_array()[2].abs() < 1e-12);
        let still = scale_to_yield(&turned(0.0, 0.0, 1), none, sine).to_array();
        assert!(still.iter().all(|scale| scale.is_finite()));
    }
}
