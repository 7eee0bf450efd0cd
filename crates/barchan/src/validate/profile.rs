//! Heights of material over a line or around an axis, from its volume, and what is read off them.

use super::lab::Lab;
use glam::Vec3;

/// Heights in bins of equal width, beginning at a wall or an axis.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Width of a bin [m].
    width: f64,
    /// Height in each bin [m].
    heights: Vec<f64>,
}

impl Profile {
    /// Of a slice of `thickness` [m] along x, in bins of `width` [m]: volume over area.
    pub fn of_slice(lab: &Lab, width: f64, thickness: f64) -> Self {
        Self::of(
            lab,
            width,
            |place| f64::from(place.x),
            |_| width * thickness,
        )
    }

    /// Of a quarter around the y axis, in rings of `width` [m].
    pub fn of_quarter(lab: &Lab, width: f64) -> Self {
        let radius = |place: Vec3| f64::from(place.x.hypot(place.z));
        let area = |bin: usize| 0.25 * std::f64::consts::PI * width * width * (2 * bin + 1) as f64;
        Self::of(lab, width, radius, area)
    }

    fn of(lab: &Lab, width: f64, along: impl Fn(Vec3) -> f64, area: impl Fn(usize) -> f64) -> Self {
        let mut heights: Vec<f64> = Vec::new();
        let volume = lab.volume();
        for place in &lab.state.particles.position {
            let bin = (along(*place) / width).max(0.0) as usize;
            heights.resize(heights.len().max(bin + 1), 0.0);
            heights[bin] += volume / area(bin);
        }
        Self { width, heights }
    }

    /// Seen from a wall at `end` [m] instead.
    pub fn turned(mut self, end: f64) -> Self {
        self.heights
            .resize((end / self.width).round() as usize, 0.0);
        self.heights.reverse();
        self
    }

    /// The highest bin [m].
    pub fn top(&self) -> f64 {
        self.heights.iter().copied().fold(0.0, f64::max)
    }

    /// The slope [deg] of the flank that goes down from the wall or axis, fitted between 20 and 80 % of the height.
    pub fn slope(&self) -> Option<f64> {
        let top = self.top();
        let summit = self.heights.iter().position(|height| *height >= top)?;
        let flank: Vec<[f64; 2]> = self
            .points()
            .into_iter()
            .skip(summit)
            .skip_while(|point| point[1] > 0.8 * top)
            .take_while(|point| point[1] > 0.2 * top)
            .collect();
        Some((-line(&flank)?.1).atan().to_degrees())
    }

    /// Where the height falls below `least` [m] for good, between bins.
    pub fn front(&self, least: f64) -> f64 {
        let middle = |bin: usize| (bin as f64 + 0.5) * self.width;
        let Some(last) = self.heights.iter().rposition(|height| *height >= least) else {
            return 0.0;
        };
        let (here, next) = (
            self.heights[last],
            self.heights.get(last + 1).copied().unwrap_or(0.0),
        );
        middle(last) + self.width * (here - least) / (here - next).max(1e-12)
    }

    /// Middles of the bins, and their heights [m].
    pub fn points(&self) -> Vec<[f64; 2]> {
        let bins = self.heights.iter().enumerate();
        bins.map(|(bin, height)| [(bin as f64 + 0.5) * self.width, *height])
            .collect()
    }

    /// The largest difference to another profile [m].
    pub fn difference(&self, other: &Self) -> f64 {
        let height = |profile: &Self, bin: usize| profile.heights.get(bin).copied().unwrap_or(0.0);
        (0..self.heights.len().max(other.heights.len()))
            .map(|bin| (height(self, bin) - height(other, bin)).abs())
            .fold(0.0, f64::max)
    }
}

/// The straight line through points, by least squares: its height at zero, and its slope.
pub fn line(points: &[[f64; 2]]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean = |axis: usize| points.iter().map(|point| point[axis]).sum::<f64>() / count;
    let (x, y) = (mean(0), mean(1));
    let rise: f64 = points.iter().map(|p| (p[0] - x) * (p[1] - y)).sum();
    let run: f64 = points.iter().map(|p| (p[0] - x).powi(2)).sum();
    let slope = rise / run;
    (points.len() > 1 && slope.is_finite()).then_some((y - slope * x, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_flank_has_its_slope_and_its_front() {
        // 30° down from 0.3 m at the wall, in bins of 1 cm.
        let fall = 30f64.to_radians().tan();
        let heights = (0..80)
            .map(|bin| (0.3 - fall * (f64::from(bin) + 0.5) * 0.01).max(0.0))
            .collect();
        let profile = Profile {
            width: 0.01,
            heights,
        };
        assert!((profile.slope().expect("a slope") - 30.0).abs() < 1e-6);
        assert!((profile.front(0.006) - 0.294 / fall).abs() < 1e-6);
    }

    #[test]
    fn nothing_has_no_slope() {
        let profile = Profile {
            width: 0.01,
            heights: vec![],
        };
        assert_eq!(profile.slope(), None);
        assert!(profile.front(0.01) < 1e-12);
    }
}
