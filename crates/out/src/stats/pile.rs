//! The slope, height and reach of a pile, from the particles alone.
//!
//! **The fit.** Seen from above, space is cut into square columns two particle diameters wide. The top particle of
//! each column is a sample of the surface: its own place, and its height plus its radius. The ground is the level of the
//! lowest particles (their 1st percentile, less a radius); a first guess of the height comes from the 97th. A cone `height = H − tan θ · distance from the axis` is fitted
//! to the samples between 15 % and 85 % of the height: below lies the thin toe, above the rounded tip. The axis
//! begins at the mean place of the samples above half height and is fitted too (Gauss–Newton). Samples that lie far off,
//! grains in the air or beside the pile, lose their weight (Tukey's biweight, scale from the median). Every azimuth
//! counts alike: a slope is a mean over all sides. Heaps that are not round are fitted by the best round one.

use crate::cache::Frame;
use glam::{DMat4, DVec2, DVec4, Vec3};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is known of a pile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pile {
    /// Slope of its sides [degrees].
    pub repose_angle_deg: f64,
    /// Height of its top over the ground [m].
    pub pile_height: f64,
    /// Distance from its axis to where its side meets the ground [m]: the mean over all azimuths in which it has a side of the
    /// farthest particle joined to the pile.
    pub runout_radius: f64,
}

/// Column width in particle diameters.
const COLUMN: f64 = 2.0;
/// Part of the height that is fitted.
const FITTED: std::ops::Range<f64> = 0.15..0.85;
/// A percentile of the particles' heights that a few grains in the air cannot move,
const HIGH: f64 = 0.97;
/// and the part of a cone's height that lies below it: 1 − 0.03^⅓.
const HIGH_IN_A_CONE: f64 = 0.689;
/// Fewest samples for a fit.
const FEWEST: usize = 12;
/// Gauss–Newton steps; it settles in a handful.
const ROUNDS: usize = 30;
/// Tukey's constant: 95 % efficiency for normal errors.
const TUKEY: f64 = 4.685;
/// Median of |error| over the standard deviation, for normal errors.
const MAD: f64 = 0.6745;
/// Sectors in which the reach is looked for.
const SECTORS: usize = 36;
/// The base of a cone that is a pile's reaches at most so many times as far as the material.
const BEYOND: f64 = 2.0;

/// A sample of the surface: where seen from above, and how high.
#[derive(Clone, Copy, Debug)]
struct Sample {
    place: DVec2,
    height: f64,
}

/// A cone: axis, top and slope.
#[derive(Clone, Copy, Debug)]
struct Cone {
    axis: DVec2,
    top: f64,
    slope: f64,
}

impl Cone {
    fn error(&self, sample: &Sample) -> f64 {
        sample.height - (self.top - self.slope * sample.place.distance(self.axis))
    }
}

/// Fits a pile to a frame; `None` where there are too few particles or no slope.
pub fn fit_pile(frame: &Frame) -> Option<Pile> {
    let particles = &frame.particles;
    let up = frame.meta.up;
    if particles.len() < FEWEST {
        return None;
    }
    let diameter = 2.0 * median(particles.radius.iter().map(|r| f64::from(*r)).collect())?;
    let samples = surface(
        &particles.position,
        &particles.radius,
        up,
        COLUMN * diameter,
    );
    let lowest = percentile(
        particles
            .position
            .iter()
            .map(|p| f64::from(p.dot(up)))
            .collect(),
        0.01,
    )?;
    let ground = lowest - 0.5 * diameter;
    let heights: Vec<Sample> = samples
        .values()
        .map(|s| Sample {
            height: s.height - ground,
            ..*s
        })
        .collect();
    let high = percentile(
        particles
            .position
            .iter()
            .map(|p| f64::from(p.dot(up)))
            .collect(),
        HIGH,
    )?;
    let guess = (high - ground) / HIGH_IN_A_CONE;
    let side = |top: f64| {
        heights
            .iter()
            .filter(|s| FITTED.contains(&(s.height / top)))
            .copied()
            .collect::<Vec<_>>()
    };
    // The guess finds the sides, the first fit finds the height, the second fit is the answer.
    let rough = fit(&side(guess), guess)?;
    let cone = fit(&side(rough.top), rough.top)?;
    let runout = reach(&particles.position, up, &cone, diameter)?;
    if cone.top / cone.slope > BEYOND * runout {
        return None;
    }
    Some(Pile {
        repose_angle_deg: cone.slope.atan().to_degrees(),
        pile_height: height(&heights, &cone, diameter)?,
        runout_radius: runout,
    })
}

/// Where a point is, seen from above.
fn from_above(point: Vec3, up: Vec3) -> DVec2 {
    let (east, north) = up.any_orthonormal_pair();
    DVec2::new(f64::from(point.dot(east)), f64::from(point.dot(north)))
}

/// The top particle of each column.
fn surface(
    positions: &[Vec3],
    radii: &[f32],
    up: Vec3,
    width: f64,
) -> BTreeMap<(i64, i64), Sample> {
    let mut columns = BTreeMap::new();
    for (position, radius) in positions
        .iter()
        .zip(radii)
        .filter(|(position, _)| position.is_finite())
    {
        let place = from_above(*position, up);
        let sample = Sample {
            place,
            height: f64::from(position.dot(up) + radius),
        };
        let key = (
            (place.x / width).floor() as i64,
            (place.y / width).floor() as i64,
        );
        let top = columns.entry(key).or_insert(sample);
        if sample.height > top.height {
            *top = sample;
        }
    }
    columns
}

fn fit(samples: &[Sample], top: f64) -> Option<Cone> {
    if samples.len() < FEWEST {
        return None;
    }
    let upper: Vec<&Sample> = samples.iter().filter(|s| s.height > 0.5 * top).collect();
    if upper.is_empty() {
        return None;
    }
    let axis = upper.iter().map(|s| s.place).sum::<DVec2>() / upper.len() as f64;
    let far = percentile(
        samples.iter().map(|s| s.place.distance(axis)).collect(),
        0.9,
    )?;
    let mut cone = Cone {
        axis,
        top,
        slope: top * (FITTED.end - FITTED.start) / far.max(1e-9),
    };
    for round in 0..ROUNDS {
        let errors: Vec<f64> = samples.iter().map(|s| cone.error(s)).collect();
        let scale = median(errors.iter().map(|e| e.abs()).collect())? / MAD;
        // The first rounds find the pile, the later ones forget what is not part of it.
        let cutoff = if round < 3 {
            f64::INFINITY
        } else {
            TUKEY * scale.max(1e-9)
        };
        let step = gauss_newton(samples, &errors, &cone, cutoff)?;
        cone.axis += DVec2::new(step.x, step.y);
        cone.top += step.z;
        cone.slope += step.w;
    }
    (cone.slope.is_finite() && cone.slope > 0.0).then_some(cone)
}

/// One weighted least-squares step for axis, top and slope.
fn gauss_newton(samples: &[Sample], errors: &[f64], cone: &Cone, cutoff: f64) -> Option<DVec4> {
    let (mut normal, mut right) = (DMat4::ZERO, DVec4::ZERO);
    for (sample, error) in samples
        .iter()
        .zip(errors)
        .filter(|(_, error)| error.abs() < cutoff)
    {
        let weight = if cutoff.is_finite() {
            (1.0 - (error / cutoff).powi(2)).powi(2)
        } else {
            1.0
        };
        let away = sample.place - cone.axis;
        let distance = away.length().max(1e-12);
        // Derivatives of the cone's height at the sample.
        let row = DVec4::new(
            cone.slope * away.x / distance,
            cone.slope * away.y / distance,
            1.0,
            -distance,
        );
        for i in 0..4 {
            *normal.col_mut(i) += row * (row[i] * weight);
        }
        right += row * (weight * error);
    }
    // A whisper of damping keeps the axis in place where all samples lie on one side.
    for i in 0..4 {
        normal.col_mut(i)[i] *= 1.0 + 1e-9;
    }
    let step = normal.inverse() * right;
    step.is_finite().then_some(step)
}

/// Height of the top: the highest sample near the axis that is no higher than the cone's own tip allows.
fn height(samples: &[Sample], cone: &Cone, diameter: f64) -> Option<f64> {
    let near = |s: &&Sample| s.place.distance(cone.axis) < 0.25 * cone.top / cone.slope + diameter;
    let below = |s: &&Sample| s.height < cone.top + 2.0 * diameter;
    samples
        .iter()
        .filter(near)
        .filter(below)
        .map(|s| s.height)
        .reduce(f64::max)
}

/// Mean over the sectors that have a side of the farthest particle joined to the pile, from half-way down its side on; gaps wider
/// than three diameters end it.
fn reach(positions: &[Vec3], up: Vec3, cone: &Cone, diameter: f64) -> Option<f64> {
    let mut sectors: Vec<Vec<f64>> = vec![Vec::new(); SECTORS];
    for position in positions {
        let away = from_above(*position, up) - cone.axis;
        let turn = (away.y.atan2(away.x) / std::f64::consts::TAU + 0.5) * SECTORS as f64;
        sectors[(turn as usize).min(SECTORS - 1)].push(away.length());
    }
    let (gap, half) = (3.0 * diameter, 0.5 * cone.top / cone.slope);
    let end = |distances: &mut Vec<f64>| {
        distances.sort_by(f64::total_cmp);
        let joined = |end: f64, d: &f64| if *d <= end.max(half) + gap { *d } else { end };
        distances.iter().fold(0.0, joined)
    };
    // Against a wall a pile has no side, but for what lies between wall and axis.
    let ends: Vec<f64> = sectors
        .iter_mut()
        .map(end)
        .filter(|end| *end > gap)
        .collect();
    let mean = ends.iter().sum::<f64>() / ends.len() as f64;
    (!ends.is_empty()).then_some(mean + 0.5 * diameter)
}

fn percentile(mut values: Vec<f64>, part: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let index = ((values.len() - 1) as f64 * part).round() as usize;
    Some(*values.select_nth_unstable_by(index, f64::total_cmp).1)
}

fn median(values: Vec<f64>) -> Option<f64> {
    percentile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::FrameMeta;
    use barchan_base::Pose;
    use barchan_base::random::Random;
    use barchan_base::sampling::{Layout, fill};
    use barchan_base::shape::Shape;
    use barchan_sim::state::Particles;
    use glam::Quat;

    const RADIUS: f32 = 1.0;

    fn frame(points: Vec<Vec3>, spacing: f32, up: Vec3) -> Frame {
        let mut particles = Particles::default();
        particles.resize(points.len());
        particles.position = points;
        particles.radius.fill(0.5 * spacing);
        let meta = FrameMeta {
            frame: 0,
            time: 0.0,
            fps: 24.0,
            scene: "s".into(),
            up,
            gravity: -up,
            materials: vec![],
            bodies: Vec::new(),
        };
        Frame { meta, particles }
    }

    /// A cone of slope `angle` [degrees] that stands somewhere, with its base at height 0.3.
    fn cone(angle: f32, spacing: f32, layout: Layout, seed: u64) -> Vec<Vec3> {
        let height = RADIUS * angle.to_radians().tan();
        let shape = Shape::Cone {
            radius: RADIUS,
            half_height: 0.5 * height,
        };
        let shape = shape.placed(
            Pose::new(Vec3::new(0.2, 0.3 + 0.5 * height, -0.1), Quat::IDENTITY),
            1.0,
        );
        fill(&shape, spacing, layout, Random::new(seed, 0)).unwrap()
    }

    fn check(points: Vec<Vec3>, spacing: f32, angle: f32) {
        let pile = fit_pile(&frame(points, spacing, Vec3::Y)).expect("a pile");
        let error = pile.repose_angle_deg - f64::from(angle);
        assert!(
            error.abs() < 0.5,
            "{angle}° at {spacing} m: {} off by {error}",
            pile.repose_angle_deg
        );
        let height = f64::from(RADIUS * angle.to_radians().tan());
        assert!(
            (pile.pile_height - height).abs() < 2.0 * f64::from(spacing),
            "height {} for {height}",
            pile.pile_height
        );
        // A toe thinner than a spacing holds no particles: it begins spacing / tan θ before the edge.
        let toe = f64::from(spacing / angle.to_radians().tan());
        assert!(
            (pile.runout_radius - 1.0).abs() < f64::from(spacing) + 0.5 * toe,
            "reach {}",
            pile.runout_radius
        );
    }

    #[test]
    fn cones_of_twenty_to_forty_five_degrees_are_measured_to_half_a_degree() {
        for angle in [20.0, 25.0, 30.0, 34.0, 40.0, 45.0] {
            for (spacing, layout, seed) in [
                (0.05, Layout::Jittered, 1),
                (0.03, Layout::BlueNoise, 2),
                (0.02, Layout::Jittered, 3),
            ] {
                check(cone(angle, spacing, layout, seed), spacing, angle);
            }
        }
    }

    #[test]
    fn stray_grains_do_not_tilt_the_fit() {
        let random = Random::new(9, 0);
        let mut points = cone(30.0, 0.03, Layout::Jittered, 1);
        // A hundred grains in the air and two hundred on the ground around.
        points.extend(
            (0..100).map(|i| {
                random.in_cube(i, 0) * Vec3::new(2.0, 2.0, 2.0) + Vec3::new(-0.8, 0.9, -1.1)
            }),
        );
        points.extend((0..200).map(|i| {
            let (turn, away) = (random.uniform(i, 3) * 6.3, 1.6 + random.uniform(i, 4));
            Vec3::new(0.2 + away * turn.cos(), 0.31, -0.1 + away * turn.sin())
        }));
        let pile = fit_pile(&frame(points, 0.03, Vec3::Y)).unwrap();
        assert!((pile.repose_angle_deg - 30.0).abs() < 0.5, "{pile:?}");
        assert!((pile.runout_radius - 1.0).abs() < 0.15, "{pile:?}");
        assert!((pile.pile_height - 0.577).abs() < 0.08, "{pile:?}");
    }

    #[test]
    fn sides_that_are_not_there_have_no_reach() {
        let whole = cone(30.0, 0.03, Layout::Jittered, 1);
        let reach = |keep: fn(&Vec3) -> bool| {
            let points = whole.iter().copied().filter(keep).collect();
            fit_pile(&frame(points, 0.03, Vec3::Y))
                .expect("a pile")
                .runout_radius
        };
        let all = reach(|_| true);
        for part in [reach(|p| p.x > 0.2), reach(|p| p.x > 0.2 && p.z > -0.1)] {
            assert!((part - all).abs() < 0.05, "{part} of {all}");
        }
    }

    #[test]
    fn two_piles_are_not_one() {
        let one = cone(30.0, 0.04, Layout::Jittered, 1);
        let other: Vec<Vec3> = one.iter().map(|p| *p + Vec3::X * 2.5).collect();
        let both = fit_pile(&frame([one, other].concat(), 0.04, Vec3::Y));
        assert!(
            both.is_none_or(|pile| pile.repose_angle_deg > 20.0),
            "{both:?}"
        );
    }

    #[test]
    fn any_axis_may_be_up() {
        let points = cone(34.0, 0.03, Layout::Jittered, 1)
            .iter()
            .map(|p| Vec3::new(p.x, -p.z, p.y))
            .collect();
        let pile = fit_pile(&frame(points, 0.03, Vec3::Z)).unwrap();
        assert!((pile.repose_angle_deg - 34.0).abs() < 0.5, "{pile:?}");
    }

    #[test]
    fn no_pile_no_fit() {
        assert_eq!(fit_pile(&frame(vec![], 0.1, Vec3::Y)), None);
        assert_eq!(fit_pile(&frame(vec![Vec3::ZERO; 100], 0.1, Vec3::Y)), None);
        let nan = fit_pile(&frame(vec![Vec3::NAN; 100], 0.1, Vec3::Y));
        assert_eq!(nan, None);
    }
}
