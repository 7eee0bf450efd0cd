//! Points carried down the pressure: its gradient on the mesh, and how a point takes it up.

use super::crowd::{Crowd, Spot};
use super::faces::{Faces, NONE, sides};
use super::locate::Locator;
use crate::parallel::CHUNK;
use glam::{Mat2, Vec2, Vec3};
use rayon::prelude::*;

/// How far a gradient is felt, in widths of a face.
const FELT: f32 = 1.5;

/// The nearest a point comes to a gradient as far as weights go, in widths of a face.
const NEAR: f32 = 0.15;

/// Gradients that a point may feel: those of its face and of the faces around.
const MOST: usize = 16;

/// How often a way that leads off the surface is halved before the point stays.
const HALVINGS: u32 = 4;

/// What is known when points are carried.
pub struct Carry<'a> {
    pub faces: &'a Faces,
    pub locator: &'a Locator,
    /// On every face.
    pub pressure: &'a [f32],
    /// Points per area that are aimed at where there are too many.
    pub aim: f32,
    /// Part of the way that is gone.
    pub step: f32,
}

/// How much the pressure falls from one face to the next: a number along a direction, halfway between.
#[derive(Clone, Copy, Default)]
struct Fall {
    at: Vec3,
    /// Direction in the plane of the face that is asked about.
    along: Vec2,
    /// Pressure over length.
    amount: f32,
}

/// The gradients around one face.
struct Around {
    face: u32,
    falls: [Fall; MOST],
    count: usize,
    /// The face's plane: two unit vectors in it.
    axes: [Vec3; 2],
    width: f32,
    /// What turns flow of points into a way: one over points per area.
    inverse_density: f32,
    /// Pressure touches it.
    moves: bool,
}

impl Carry<'_> {
    /// Moves all points that the pressure reaches; returns how far the furthest went.
    pub fn all(&self, crowd: &mut Crowd) -> f32 {
        let starts = &crowd.starts;
        let furthest = crowd
            .spots
            .par_chunks_mut(CHUNK)
            .map(|spots| {
                let mut around: Option<Around> = None;
                let mut furthest = 0.0f32;
                for spot in spots {
                    if around.as_ref().is_none_or(|a| a.face != spot.face) {
                        let face = spot.face as usize;
                        around = Some(self.around(face, starts[face + 1] - starts[face]));
                    }
                    if let Some(around) = around.as_ref().filter(|a| a.moves) {
                        furthest = furthest.max(self.carry(around, spot));
                    }
                }
                furthest
            })
            .reduce(|| 0.0, f32::max);
        crowd.sort(self.faces.len());
        furthest
    }

    /// Collects what a face's points feel.
    fn around(&self, face: usize, count: u32) -> Around {
        let faces = self.faces;
        let normal = faces.normals[face];
        let first = Vec3::new(normal.z, 0.0, -normal.x).normalize();
        let density = (count as f32 / faces.areas[face]).max(self.aim);
        let mut around = Around {
            face: face as u32,
            falls: [Fall::default(); MOST],
            count: 0,
            axes: [first, normal.cross(first)],
            width: faces.areas[face].sqrt(),
            // Between what is there and what shall be: a disc that is s² times too dense must grow s-fold, and the flow over the
            // density before would let it grow by half at most, over the density after by s²/2. Over their geometric mean it
            // never grows too far, and at least half of what it must.
            inverse_density: 1.0 / (density * self.aim).sqrt(),
            moves: false,
        };
        let own = self.pressure[face];
        around.moves = own > 0.0
            || faces.neighbors[face]
                .iter()
                .any(|n| *n != NONE && self.pressure[*n as usize] > 0.0);
        if around.moves {
            self.collect(&mut around, face, NONE);
            for neighbor in faces.neighbors[face].into_iter().filter(|n| *n != NONE) {
                self.collect(&mut around, neighbor as usize, face as u32);
            }
        }
        around
    }

    /// Adds the falls over the sides of `face`, but for the side towards `but`.
    fn collect(&self, around: &mut Around, face: usize, but: u32) {
        let faces = self.faces;
        for side in 0..sides(&faces.corners[face]) {
            let other = faces.neighbors[face][side];
            if other == but && but != NONE || around.count == MOST {
                continue;
            }
            let (here, [a, b]) = (faces.centers[face], faces.side(face, side));
            let (at, way, fall) = if other == NONE {
                // Nothing flows over a rim.
                let middle = 0.5 * (a + b);
                (middle, (b - a).cross(faces.normals[face]), 0.0)
            } else {
                let there = faces.centers[other as usize];
                let fall = self.pressure[face] - self.pressure[other as usize];
                (0.5 * (here + there), there - here, fall)
            };
            let along = Vec2::new(way.dot(around.axes[0]), way.dot(around.axes[1]));
            let Some(along) = along.try_normalize() else {
                continue;
            };
            around.falls[around.count] = Fall {
                at,
                along,
                amount: fall / way.length(),
            };
            around.count += 1;
        }
    }

    /// The flow at a place: what fits the falls around it best, near ones above all (weights of metaballs, Blinn 1982).
    fn flow(around: &Around, at: Vec3) -> Vec3 {
        let reach = FELT * around.width;
        let near = NEAR * around.width;
        let weight = |squared: f32| 1.0 / (squared + near * near);
        let least = weight(reach * reach);
        let (mut matrix, mut right) = (Mat2::ZERO, Vec2::ZERO);
        for fall in &around.falls[..around.count] {
            let weight = weight(fall.at.distance_squared(at)) - least;
            if weight > 0.0 {
                let weighted = fall.along * weight;
                matrix.x_axis += weighted * fall.along.x;
                matrix.y_axis += weighted * fall.along.y;
                right += weighted * fall.amount;
            }
        }
        // Where all falls lie along one line nothing is known across it.
        let trace = matrix.x_axis.x + matrix.y_axis.y;
        if trace <= 0.0 {
            return Vec3::ZERO;
        }
        let firm = matrix + Mat2::from_diagonal(Vec2::splat(1e-3 * trace));
        let flow = firm.inverse() * right;
        around.axes[0] * flow.x + around.axes[1] * flow.y
    }

    /// Moves one point; returns how far.
    fn carry(&self, around: &Around, spot: &mut Spot) -> f32 {
        let faces = self.faces;
        let face = spot.face as usize;
        let from = spot.at.extend(faces.height(face, spot.at));
        let mut way = Self::flow(around, from) * (around.inverse_density * self.step);
        for _ in 0..=HALVINGS {
            let to = from + way;
            if let Some(found) = self.locator.find(faces, to) {
                spot.face = found;
                spot.at = to.truncate();
                return way.length();
            }
            way *= 0.5;
        }
        0.0
    }
}
