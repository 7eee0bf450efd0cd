//! The cubic spline (Monaghan 1992) with a support of two spacings, and the volume that makes a lattice exactly full.

use wide::f32x8;

/// The support over the spacing.
pub const SUPPORT: f32 = 2.0;
/// Pairs further apart than this many spacings are left out: the kernel has two thousandths of what it has in the middle there,
/// and the last tenth of its radius a quarter of the pairs. A lattice has none of them.
const REACH: f32 = 1.8;

/// The kernel for one spacing.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Spacing [m].
    pub spacing: f32,
    /// Where the kernel ends [m].
    pub support: f32,
    /// How far particles look for each other [m].
    pub reach: f32,
    /// Volume [m³] of one particle: a lattice of them has density one.
    pub volume: f32,
    /// Relative density of a particle that is alone.
    pub alone: f32,
    inverse: f32,
    scale: f32,
}

impl Kernel {
    /// The kernel for particles `spacing` [m] apart.
    pub fn new(spacing: f32) -> Self {
        let mut kernel = Self {
            spacing,
            support: SUPPORT * spacing,
            reach: REACH * spacing,
            volume: 0.0,
            alone: 0.0,
            inverse: 1.0 / spacing,
            scale: 1.0 / (std::f32::consts::PI * spacing.powi(3)),
        };
        kernel.volume = 1.0 / kernel.lattice_sum();
        kernel.alone = kernel.value(0.0) * kernel.volume;
        kernel
    }

    fn lattice_sum(&self) -> f32 {
        let reach = SUPPORT as i32;
        let axis = || -reach..=reach;
        axis()
            .flat_map(|x| axis().flat_map(move |y| axis().map(move |z| x * x + y * y + z * z)))
            .map(|squared| self.value(squared as f32 * self.spacing * self.spacing))
            .sum()
    }

    /// Its value [1/m³] at a squared distance [m²].
    pub fn value(&self, squared: f32) -> f32 {
        self.lanes(f32x8::splat(squared)).0.to_array()[0]
    }

    /// Its slope over the distance [1/m⁵]; times the way from the other particle it is the gradient.
    pub fn slope(&self, squared: f32) -> f32 {
        self.lanes(f32x8::splat(squared)).1.to_array()[0]
    }

    /// Value and slope at eight distances.
    #[inline]
    pub fn lanes(&self, squared: f32x8) -> (f32x8, f32x8) {
        let q = squared.sqrt() * self.inverse;
        let far = (2.0 - q).fast_max(f32x8::ZERO);
        let near = q.simd_lt(f32x8::ONE);
        let value = near.select(1.0 + q * q * (0.75 * q - 1.5), 0.25 * far * far * far);
        let slope = near.select(2.25 * q - 3.0, -0.75 * far * far / q);
        let steepness = self.scale * self.inverse * self.inverse;
        (value * self.scale, slope * steepness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_integrates_to_one_and_ends_at_its_support() {
        let kernel = Kernel::new(0.03);
        let steps = 4000;
        let width = kernel.support / steps as f32;
        let total: f64 = (0..steps)
            .map(|i| {
                let r = (i as f32 + 0.5) * width;
                f64::from(kernel.value(r * r) * 4.0 * std::f32::consts::PI * r * r * width)
            })
            .sum();
        assert!((total - 1.0).abs() < 1e-4, "{total}");
        assert!(kernel.value(kernel.support * kernel.support).abs() < 1e-3);
        assert!(kernel.slope(kernel.support * kernel.support).abs() < 1e-3);
    }

    #[test]
    fn its_slope_is_its_derivative() {
        let kernel = Kernel::new(1.0);
        for r in [0.01f32, 0.3, 0.9, 1.1, 1.7, 1.99] {
            let step = 1e-3;
            let (a, b) = (r - step, r + step);
            let slope = (kernel.value(b * b) - kernel.value(a * a)) / (2.0 * step);
            assert!((slope - kernel.slope(r * r) * r).abs() < 2e-4, "{r}");
        }
    }

    #[test]
    fn a_lattice_is_exactly_full() {
        let kernel = Kernel::new(0.01);
        assert!((kernel.volume * kernel.lattice_sum() - 1.0).abs() < 1e-6);
        // Nearly the cube of the spacing; the rest is what the kernel's sum is off its integral.
        assert!((kernel.volume / 1e-6 - 1.0).abs() < 0.05);
    }
}
