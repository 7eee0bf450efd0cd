//! Colour by a column: from numbers to colours.

use glam::Vec3;

/// Colours from low to high, evenly spaced, as sRGB: dark blue over teal and green to yellow, as bright as they are high.
const STOPS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// A scale of colours over numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What gets the first colour.
    pub from: f32,
    /// What gets the last.
    pub to: f32,
}

impl Scale {
    /// The colour of `value`, as sRGB bytes; gray for what is not a number.
    pub fn srgb(&self, value: f32) -> [u8; 3] {
        if value.is_nan() {
            return [128; 3];
        }
        let width = self.to - self.from;
        let part = if width > 0.0 {
            (value - self.from) / width
        } else {
            0.5
        };
        let at = part.clamp(0.0, 1.0) * (STOPS.len() - 1) as f32;
        let low = (at as usize).min(STOPS.len() - 2);
        let f = at - low as f32;
        std::array::from_fn(|i| {
            let (a, b) = (f32::from(STOPS[low][i]), f32::from(STOPS[low + 1][i]));
            (a + (b - a) * f).round() as u8
        })
    }

    /// The colour of `value`, linear.
    pub fn linear(&self, value: f32) -> Vec3 {
        Vec3::from_array(self.srgb(value).map(|byte| linear(f32::from(byte) / 255.0)))
    }
}

/// Linear light of an sRGB value in 0..1.
fn linear(value: f32) -> f32 {
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

/// The sRGB value of linear light in 0..1.
pub fn srgb(light: f32) -> f32 {
    if light <= 0.003_130_8 {
        12.92 * light
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    }
}

/// Ends of a scale for `values`: their least and greatest, without the last thousandth at the top; zero to one for none.
pub fn ends(values: impl Iterator<Item = f32>) -> Scale {
    let mut finite: Vec<f32> = values.filter(|value| value.is_finite()).collect();
    if finite.is_empty() {
        return Scale { from: 0.0, to: 1.0 };
    }
    let from = finite.iter().copied().fold(f32::INFINITY, f32::min);
    let last = ((finite.len() - 1) as f64 * 0.999).round() as usize;
    let to = *finite.select_nth_unstable_by(last, f32::total_cmp).1;
    // What is nearly zero at the bottom is zero: speeds and pressures begin there.
    let from = if from > 0.0 && from < 0.2 * to {
        0.0
    } else {
        from
    };
    Scale { from, to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_run_from_the_first_to_the_last_colour() {
        let scale = Scale { from: 2.0, to: 4.0 };
        assert_eq!(scale.srgb(1.0), STOPS[0]);
        assert_eq!(scale.srgb(3.0), STOPS[4]);
        assert_eq!(scale.srgb(9.0), STOPS[8]);
        assert_eq!(scale.srgb(f32::NAN), [128; 3]);
        assert_eq!(Scale { from: 1.0, to: 1.0 }.srgb(1.0), STOPS[4]);
        assert!((srgb(linear(0.3)) - 0.3).abs() < 1e-5);
    }

    #[test]
    fn ends_ignore_what_is_not_finite_and_begin_at_zero_where_that_is_near() {
        let values = (0..1000)
            .map(|i| 0.01 + i as f32)
            .chain([f32::NAN, f32::INFINITY]);
        let scale = ends(values);
        assert!(
            scale.from.abs() < 1e-9 && scale.to > 990.0 && scale.to < 1000.0,
            "{scale:?}"
        );
        assert_eq!(ends(std::iter::empty()), Scale { from: 0.0, to: 1.0 });
    }
}
