//! Points on a surface, spread until nowhere there are too many (Munns 2015, chapter 4).
//!
//! 1. [`Net`] makes a surface of quads and triangles from signed distances; [`Faces`] keeps what looks up of it, or of any other
//!    mesh, with who lies beside whom.
//! 2. Each point is counted on the face it lies over ([`locate`], [`crowd`]); points over area is a density.
//! 3. Where a bound is exceeded a pressure p ≥ 0 is found that pushes just enough away ([`pressure`]).
//! 4. Points move with the flow that it makes ([`transport`], or down its gradient as the thesis has it, [`carry`]), and the last few,
//!    one by one, over a side ([`settle`]).
//!
//! Steps 2 to 4 are repeated. The same on any number of threads, and points that nothing pushes keep their bits.

mod carry;
mod crowd;
mod cut;
mod faces;
mod graph;
mod locate;
mod net;
mod pressure;
mod settle;
#[cfg(test)]
mod tests;
mod transport;

pub use cut::Detail;
pub use faces::{Faces, FacesError, NONE, Plan};
pub use net::{Lattice, Net};
pub use pressure::{Pressure, pressure};

use crate::linear::Tolerance;
use carry::Carry;
use crowd::Crowd;
use glam::Vec3;
use locate::Locator;
use rayon::prelude::*;
use transport::Transport;

/// Faces that differ from straight up by more than this are left out, if nobody says [rad]: 85°, as Munns has it.
pub const STEEPEST: f32 = 85.0 * std::f32::consts::PI / 180.0;

/// What is aimed at where there are too many, in parts of the bound: some room is left for points that come whole.
const AIM: f64 = 0.9;

/// A bound at least this much above the mean density can be reached.
const ROOM: f64 = 1.02;

/// The bound that is used in place of one that cannot be reached, over the mean density.
const ENOUGH: f64 = 1.1;

/// How many more points than the bound a face may hold in the end.
const TOLERATED: f32 = 1.05;

/// Points stop flowing and begin to step when the excess is this part of all, or no longer falls by much. A pass halves the
/// excess at the cost of moving all points; a step is short and moves one.
const FEW: f64 = 0.01;
const FALLS: f64 = 0.8;

/// How many points there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// As many as lie this far apart [m] on a square lattice.
    Spacing(f32),
    /// This many on a face of mean area.
    PerFace(f32),
}

/// How points take up the pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// They go with its flow until the densities are what it wants.
    #[default]
    Transport,
    /// They take a step along its gradient, felt with the weights of metaballs (the thesis, equations 4 and 5).
    Metaballs,
}

/// How points are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How many there may be.
    pub bound: Bound,
    /// How points take up the pressure.
    pub rule: Rule,
    /// How far above or below the surface a point counts as on it [m].
    pub reach: f32,
    /// Passes at most. One is what the thesis does; crowds that are many times too dense take several.
    pub passes: u32,
    /// Part of the way that points go in a pass: 1, or less in a simulation with short steps. Below 1 none steps over sides.
    pub step: f32,
    /// How well the pressure is solved for.
    pub tolerance: Tolerance,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bound: Bound::PerFace(20.0),
            rule: Rule::default(),
            reach: f32::INFINITY,
            passes: 40,
            step: 1.0,
            // A pass carries points all the way, so what is not solved for is carried again: iterations are the cheaper part.
            tolerance: Tolerance {
                relative: 3e-3,
                max_iterations: 400,
            },
        }
    }
}

/// How crowded a surface is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Crowding {
    /// The most points on a face, over what it may hold.
    pub most: f32,
    /// The most points on a face.
    pub count: u32,
    /// Faces with more than they may hold.
    pub faces: usize,
    /// Points that they have too many, together.
    pub excess: f64,
}

/// What spreading did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Points on the surface.
    pub points: usize,
    /// Points not on it: over no face, or out of reach.
    pub elsewhere: usize,
    /// Points that are not finite; left as they are.
    pub broken: usize,
    /// Points that moved.
    pub moved: usize,
    /// Points on a face of mean area that were asked for at most.
    pub asked: f64,
    /// Points on a face of mean area that were allowed: what was asked, or more where that cannot be reached.
    pub allowed: f64,
    /// Crowding before and after, against what was allowed.
    pub before: Crowding,
    /// After.
    pub after: Crowding,
    /// Passes taken.
    pub passes: u32,
    /// Iterations of all solves.
    pub iterations: usize,
}

impl Report {
    /// Whether what was asked for can be reached.
    pub fn is_feasible(&self) -> bool {
        self.allowed <= self.asked
    }
}

/// Why points cannot be spread.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SpreadError {
    /// No points may be anywhere.
    #[error(
        "the bound on points must be more than zero and finite, not {0}; leave it out to have it follow the points' own spacing"
    )]
    Bound(f32),
    /// Faces too small to count on.
    #[error(
        "the bound allows {0:.3} points on a face, and less than one cannot be counted; use faces {1:.1} times as wide, or a larger bound"
    )]
    TooFine(f64, f64),
    /// Not a part of a way.
    #[error("the part of the way to go must be above 0 and at most 1, not {0}")]
    Step(f32),
}

/// Moves those of `points` that lie on the surface apart, until no face has more than the bound allows or the passes run out.
///
/// A bound that the whole surface, or a part of it that is connected to no other, is too small for is raised as little as
/// needed; the report says so. Heights above the surface are kept. Points that are not finite are left alone.
///
/// # Errors
/// If the bound or the step makes no sense.
pub fn spread(
    faces: &Faces,
    points: &mut [Vec3],
    settings: &Settings,
) -> Result<Report, SpreadError> {
    let density = bound_density(faces, settings.bound)?;
    if !(settings.step > 0.0 && settings.step <= 1.0) {
        return Err(SpreadError::Step(settings.step));
    }
    let locator = Locator::new(faces);
    let mut crowd = Crowd::new(faces, &locator, points, settings.reach);
    let room = Room::new(faces, &crowd, density);
    let area = faces.mean_area();
    let mut report = Report {
        points: crowd.spots.len(),
        elsewhere: crowd.elsewhere,
        broken: crowd.broken,
        asked: density * area,
        allowed: room.density * area,
        before: room.crowding(faces, &crowd),
        ..Report::default()
    };
    report.after = report.before;
    let whole = settings.step >= 1.0;
    while report.passes < settings.passes && report.after.most > TOLERATED {
        let push = pressure(faces, &room.surplus(faces, &crowd), settings.tolerance);
        report.iterations += push.iterations;
        match settings.rule {
            Rule::Transport => {
                Transport::new(faces, &crowd, &push.values, settings.step).all(&mut crowd);
            }
            Rule::Metaballs => {
                let carry = Carry {
                    faces,
                    locator: &locator,
                    pressure: &push.values,
                    aim: (AIM * room.density) as f32,
                    step: settings.step,
                };
                carry.all(&mut crowd);
            }
        }
        report.passes += 1;
        let before = report.after.excess;
        report.after = room.crowding(faces, &crowd);
        let few = report.after.excess < FEW * report.points as f64;
        if whole && (few || report.after.excess > FALLS * before) {
            break;
        }
    }
    if whole && report.passes < settings.passes && report.after.most > TOLERATED {
        settle::settle(faces, |face| room.most(faces, face) as u32, &mut crowd);
        report.passes += 1;
        report.after = room.crowding(faces, &crowd);
    }
    report.moved = crowd.write(faces, points);
    Ok(report)
}

/// How many points lie over each face, within `reach` [m] above or below it.
pub fn counts(faces: &Faces, points: &[Vec3], reach: f32) -> Vec<u32> {
    let crowd = Crowd::new(faces, &Locator::new(faces), points, reach);
    (0..faces.len()).map(|face| crowd.count(face)).collect()
}

/// Points per area that a bound allows.
fn bound_density(faces: &Faces, bound: Bound) -> Result<f64, SpreadError> {
    let (given, density) = match bound {
        Bound::Spacing(spacing) => (spacing, f64::from(spacing).powi(-2)),
        Bound::PerFace(count) => (count, f64::from(count) / faces.mean_area()),
    };
    let sensible = given > 0.0 && given.is_finite() && density.is_finite() && density > 0.0;
    if !sensible {
        return Err(SpreadError::Bound(given));
    }
    let on_a_face = density * faces.mean_area();
    if on_a_face < 1.0 {
        return Err(SpreadError::TooFine(on_a_face, on_a_face.powf(-0.5)));
    }
    Ok(density)
}

/// How much room there is.
struct Room {
    /// Points per area allowed.
    density: f64,
    /// Points per area aimed at, on the part that begins at a face.
    aims: Vec<f32>,
}

impl Room {
    fn new(faces: &Faces, crowd: &Crowd, asked: f64) -> Self {
        let mut sums = vec![[0.0f64; 2]; faces.len()];
        for (face, part) in faces.parts.iter().enumerate() {
            let sum = &mut sums[*part as usize];
            sum[0] += f64::from(crowd.count(face));
            sum[1] += f64::from(faces.areas[face]);
        }
        let mean = |[count, area]: [f64; 2]| if area > 0.0 { count / area } else { 0.0 };
        let fullest = sums.iter().map(|sum| mean(*sum)).fold(0.0, f64::max);
        let density = if asked >= ROOM * fullest {
            asked
        } else {
            ENOUGH * fullest
        };
        let aim = |sum: &[f64; 2]| (ROOM * mean(*sum)).max(AIM * density).min(density) as f32;
        Self {
            density,
            aims: sums.iter().map(aim).collect(),
        }
    }

    /// How many points a face may hold; one always.
    fn most(&self, faces: &Faces, face: usize) -> f32 {
        (self.density as f32 * faces.areas[face]).max(1.0)
    }

    /// Points on each face beyond what is aimed at. Faces that have more than that, but no more than they may, stay as they are.
    fn surplus(&self, faces: &Faces, crowd: &Crowd) -> Vec<f32> {
        let one = |face: usize| {
            let (count, most) = (crowd.count(face) as f32, self.most(faces, face));
            let aim = self.aims[faces.parts[face] as usize] * faces.areas[face];
            let aim = aim.max(1.0).min(most);
            if count > aim && count <= most {
                0.0
            } else {
                count - aim
            }
        };
        (0..faces.len()).into_par_iter().map(one).collect()
    }

    fn crowding(&self, faces: &Faces, crowd: &Crowd) -> Crowding {
        let mut crowding = Crowding::default();
        for face in 0..faces.len() {
            let (count, most) = (crowd.count(face), self.most(faces, face));
            crowding.count = crowding.count.max(count);
            crowding.most = crowding.most.max(count as f32 / most);
            if count as f32 > most {
                crowding.faces += 1;
                crowding.excess += f64::from(count as f32 - most);
            }
        }
        crowding
    }
}
