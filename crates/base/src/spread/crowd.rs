//! The points on a surface, sorted by the face they lie over.

use super::faces::{Faces, NONE};
use super::locate::Locator;
use crate::parallel::CHUNK;
use glam::{Vec2, Vec3};
use rayon::prelude::*;

/// One point on the surface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spot {
    /// Which point it is.
    pub who: u32,
    /// The face it lies over.
    pub face: u32,
    /// Where, in plan.
    pub at: Vec2,
    /// How far above the face.
    pub above: f32,
}

/// Points on the surface.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    /// Sorted by face, and within a face by who they are at the start.
    pub spots: Vec<Spot>,
    /// Where each face's points begin, and the end.
    pub starts: Vec<u32>,
    /// Points over no face, or too far from it.
    pub elsewhere: usize,
    /// Points that are not finite.
    pub broken: usize,
    other: Vec<Spot>,
}

impl Crowd {
    /// Finds the points that lie within `reach` above or below a face.
    pub fn new(faces: &Faces, locator: &Locator, points: &[Vec3], reach: f32) -> Self {
        let mut crowd = Self::default();
        let spot = |(who, point): (usize, &Vec3)| {
            let seen = faces.plan.view(*point);
            let finite = point.is_finite() && seen.is_finite();
            let bin = if finite {
                locator.bin(seen.truncate()) as u32
            } else {
                NONE
            };
            Spot {
                who: who as u32,
                face: bin,
                at: seen.truncate(),
                above: seen.z,
            }
        };
        crowd.spots = points.par_iter().enumerate().map(spot).collect();
        crowd.spots.retain(|spot| spot.face != NONE);
        crowd.broken = points.len() - crowd.spots.len();
        // By bin first: then the search walks through the faces in their order, and not at random through memory.
        crowd.sort(locator.bins());
        crowd.spots.par_chunks_mut(CHUNK).for_each(|spots| {
            for spot in spots {
                let found = locator.find(faces, spot.at.extend(spot.above));
                spot.face = found.unwrap_or(NONE);
                if let Some(face) = found {
                    spot.above -= faces.height(face as usize, spot.at);
                    if spot.above.abs() > reach {
                        spot.face = NONE;
                    }
                }
            }
        });
        let seen = crowd.spots.len();
        crowd.spots.retain(|spot| spot.face != NONE);
        crowd.elsewhere = seen - crowd.spots.len();
        crowd.sort(faces.len());
        crowd
    }

    /// Sorts the spots by their face, of which there are `faces`; those of one face keep their order.
    pub fn sort(&mut self, faces: usize) {
        self.starts.clear();
        self.starts.resize(faces + 1, 0);
        for spot in &self.spots {
            self.starts[spot.face as usize + 1] += 1;
        }
        for face in 0..faces {
            self.starts[face + 1] += self.starts[face];
        }
        if self.spots.is_sorted_by_key(|spot| spot.face) {
            return;
        }
        let mut next = self.starts.clone();
        self.other.resize(self.spots.len(), Spot::default());
        for spot in &self.spots {
            let place = &mut next[spot.face as usize];
            self.other[*place as usize] = *spot;
            *place += 1;
        }
        std::mem::swap(&mut self.spots, &mut self.other);
    }

    /// How many points lie over a face.
    #[inline]
    pub fn count(&self, face: usize) -> u32 {
        self.starts[face + 1] - self.starts[face]
    }

    /// Writes the points that moved back to where they came from; the others keep their bits.
    pub fn write(&self, faces: &Faces, points: &mut [Vec3]) -> usize {
        let mut moved = 0;
        for spot in &self.spots {
            let point = &mut points[spot.who as usize];
            if faces.plan.view(*point).truncate() != spot.at {
                let height = faces.height(spot.face as usize, spot.at) + spot.above;
                *point = faces.plan.point(spot.at.extend(height));
                moved += 1;
            }
        }
        moved
    }
}
