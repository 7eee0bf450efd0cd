//! Points moved so that the densities come out as the pressure wants them: not a step along its gradient, but the whole way
//! (Moser 1965; Dacorogna & Moser 1990).
//!
//! Over a time from 0 to 1 let each face's number of points change evenly, N(t) = N₀ + t (N₁ − N₀), N₁ what is left when the flows
//! over its sides have passed. Points that move with flow over density then have, at any time, the density N(t), and at the end N₁.
//! A step of the whole length along the first direction has not: points at the rim of a heap would be sent far ahead of it.
//!
//! Within a face the flow is the simplest that passes each side with the right amount (Raviart & Thomas 1977; along lines,
//! Pollock 1988). In coordinates of the face, in which points are N(t) to the unit, a coordinate x obeys
//! N(t) dx/dt = a + b x: its course and the moment it reaches a side are known, and nothing is stepped through.

use super::crowd::{Crowd, Spot};
use super::faces::{Faces, NONE, sides};
use crate::parallel::CHUNK;
use glam::{DVec2, Vec2};
use rayon::prelude::*;

/// Sides that a point crosses at most.
const MOST_SIDES: u32 = 4096;

/// No face is taken to hold fewer points than this: a time of nothing is no time.
const LEAST: f64 = 1e-6;

/// Changes smaller than this are none.
const NOTHING: f64 = 1e-12;

/// What flows over the sides of a face.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Points that leave over each side.
    out: [f32; 4],
    /// Points at the start.
    count: f32,
    /// Any flow at all.
    moves: bool,
}

/// All flows of a pass.
pub struct Transport<'a> {
    faces: &'a Faces,
    flows: Vec<Flow>,
}

/// A coordinate of a point in its face: it obeys N dx/dt = a + b x.
#[derive(Clone, Copy)]
struct Course {
    x: f64,
    a: f64,
    b: f64,
}

/// The end of a course: which side is reached, and when.
#[derive(Clone, Copy)]
struct Exit {
    side: usize,
    /// ∫ dt / N until then.
    after: f64,
}

impl Course {
    /// Where it is after ∫ dt / N = `after`.
    fn at(&self, after: f64) -> f64 {
        let grown = self.b * after;
        let growth = if grown.abs() < NOTHING {
            after
        } else {
            grown.exp_m1() / self.b
        };
        self.x + (self.a + self.b * self.x) * growth
    }

    /// When it leaves over its `end`, 0 or 1, if it does.
    fn reaches(&self, end: f64) -> Option<f64> {
        let (now, then) = (self.a + self.b * self.x, self.a + self.b * end);
        let way = end - self.x;
        // It must be on its way out, and not stop before. One that has just come in is at an end, too.
        let outwards = 2.0 * end - 1.0;
        if now * outwards <= 0.0 || then * outwards <= 0.0 {
            return None;
        }
        let part = self.b * way / now;
        let after = if part.abs() < NOTHING {
            way / now
        } else {
            part.ln_1p() / self.b
        };
        Some(after.max(0.0))
    }
}

/// A point on its way.
struct Traveller {
    face: usize,
    /// Coordinates: two of a quad, from 0 to 1, or the three weights of a triangle's corners.
    x: [f64; 3],
    /// From 0 to 1.
    time: f64,
}

impl<'a> Transport<'a> {
    /// The flows under a pressure on every face; `step` is the part of them that passes.
    pub fn new(faces: &'a Faces, crowd: &Crowd, pressure: &[f32], step: f32) -> Self {
        let flow = |face: usize| {
            let mut flow = Flow {
                count: crowd.count(face) as f32,
                ..Flow::default()
            };
            for side in 0..4 {
                let other = faces.neighbors[face][side];
                let fall = match other {
                    NONE => 0.0,
                    other => pressure[face] - pressure[other as usize],
                };
                if fall != 0.0 {
                    flow.out[side] = step * fall * faces.ease(face, side);
                    flow.moves = true;
                }
            }
            flow
        };
        let flows = (0..faces.len()).into_par_iter().with_min_len(CHUNK);
        Self {
            faces,
            flows: flows.map(flow).collect(),
        }
    }

    /// Moves all points that a flow reaches.
    pub fn all(&self, crowd: &mut Crowd) {
        crowd.spots.par_chunks_mut(CHUNK).for_each(|spots| {
            for spot in spots {
                if self.flows[spot.face as usize].moves {
                    self.carry(spot);
                }
            }
        });
        crowd.sort(self.faces.len());
    }

    fn carry(&self, spot: &mut Spot) {
        let mut traveller = Traveller {
            face: spot.face as usize,
            x: self.coordinates(spot.face as usize, spot.at),
            time: 0.0,
        };
        for _ in 0..MOST_SIDES {
            if !self.advance(&mut traveller) {
                break;
            }
        }
        spot.face = traveller.face as u32;
        spot.at = self.place(&traveller);
    }

    /// Goes on within a face, up to the end of the time or into the next; true where it is in another face.
    fn advance(&self, traveller: &mut Traveller) -> bool {
        let flow = &self.flows[traveller.face];
        let is_quad = self.is_quad(traveller.face);
        let courses = courses(flow, &traveller.x, is_quad);
        let exit = first_exit(&courses, is_quad);
        let change = -f64::from(flow.out.iter().sum::<f32>());
        let count = (f64::from(flow.count) + traveller.time * change).max(LEAST);
        let last = (f64::from(flow.count) + change).max(LEAST);
        // ∫ dt / N up to the end, and the time that a shorter one takes.
        let whole = if change.abs() < NOTHING * count {
            (1.0 - traveller.time) / count
        } else {
            (last / count).ln() / change
        };
        let arrives = exit.filter(|exit| exit.after < whole);
        let after = arrives.map_or(whole, |exit| exit.after).max(0.0);
        for (x, course) in traveller.x.iter_mut().zip(&courses) {
            *x = course.at(after).clamp(0.0, 1.0);
        }
        let Some(exit) = arrives else {
            return false;
        };
        let grown = change * after;
        traveller.time += if grown.abs() < NOTHING {
            after * count
        } else {
            count * grown.exp_m1() / change
        };
        self.cross(traveller, exit.side)
    }

    /// Takes a point over a side of its face.
    fn cross(&self, traveller: &mut Traveller, side: usize) -> bool {
        let (face, faces) = (traveller.face, self.faces);
        let other = faces.neighbors[face][side];
        if other == NONE || traveller.time >= 1.0 {
            return false;
        }
        let ends = |face: usize, side: usize| {
            let corners = &faces.corners[face];
            [corners[side], corners[(side + 1) % sides(corners)]]
        };
        let here = ends(face, side);
        let matches = |ends: [u32; 2]| ends == here || ends == [here[1], here[0]];
        let other = other as usize;
        let count = sides(&faces.corners[other]);
        let Some(entry) = (0..count).find(|side| matches(ends(other, *side))) else {
            return false;
        };
        let along = along_side(&traveller.x, side, self.is_quad(face));
        let along = if ends(other, entry) == here {
            along
        } else {
            1.0 - along
        };
        traveller.face = other;
        traveller.x = on_side(along, entry, count == 4);
        true
    }

    fn is_quad(&self, face: usize) -> bool {
        self.faces.corners[face][3] != NONE
    }

    fn corner(&self, face: usize, corner: usize) -> DVec2 {
        let vertex = self.faces.corners[face][corner] as usize;
        self.faces.vertices[vertex].truncate().as_dvec2()
    }

    /// The coordinates of a place in plan within a face.
    fn coordinates(&self, face: usize, at: Vec2) -> [f64; 3] {
        let at = at.as_dvec2();
        let corner = |k: usize| self.corner(face, k);
        let (a, b, c) = (corner(0), corner(1), corner(2));
        if !self.is_quad(face) {
            let whole = (b - a).perp_dot(c - a);
            let second = (at - a).perp_dot(c - a) / whole;
            let third = (b - a).perp_dot(at - a) / whole;
            return [1.0 - second - third, second, third].map(|x| x.clamp(0.0, 1.0));
        }
        // at = a + u p + v q + u v r, by Newton's method.
        let d = corner(3);
        let (p, q, r) = (b - a, d - a, a - b + c - d);
        let (mut u, mut v) = (0.5, 0.5);
        for _ in 0..4 {
            let miss = a + u * p + v * q + u * v * r - at;
            let (along, across) = (p + v * r, q + u * r);
            let whole = along.perp_dot(across);
            if whole == 0.0 {
                break;
            }
            u = (u - miss.perp_dot(across) / whole).clamp(0.0, 1.0);
            v = (v - along.perp_dot(miss) / whole).clamp(0.0, 1.0);
        }
        [u, v, 0.0]
    }

    /// The reverse.
    fn place(&self, traveller: &Traveller) -> Vec2 {
        let corner = |k: usize| self.corner(traveller.face, k);
        let (a, b, c) = (corner(0), corner(1), corner(2));
        let [x, y, z] = traveller.x;
        let place = if self.is_quad(traveller.face) {
            let d = corner(3);
            a + x * (b - a) + y * (d - a) + x * y * (a - b + c - d)
        } else {
            let whole = (x + y + z).max(LEAST);
            (a * x + b * y + c * z) / whole
        };
        place.as_vec2()
    }
}

/// The courses of the coordinates; a quad has two.
fn courses(flow: &Flow, x: &[f64; 3], is_quad: bool) -> [Course; 3] {
    let out = flow.out.map(f64::from);
    let rest = Course {
        x: 0.0,
        a: 0.0,
        b: 0.0,
    };
    let course = |k: usize, low: f64, high: f64| Course {
        x: x[k],
        a: -low,
        b: low + high,
    };
    if is_quad {
        return [course(0, out[3], out[1]), course(1, out[0], out[2]), rest];
    }
    // The weight of a corner is none on the side across, which is the next but one.
    let whole = 0.5 * (out[0] + out[1] + out[2]);
    std::array::from_fn(|k| {
        let across = 0.5 * out[(k + 1) % 3];
        course(k, across, whole - across)
    })
}

/// The side that is reached first.
fn first_exit(courses: &[Course; 3], is_quad: bool) -> Option<Exit> {
    let exit = |side: usize, course: usize, end: f64| {
        let after = courses[course].reaches(end)?;
        Some(Exit { side, after })
    };
    let exits = if is_quad {
        [
            exit(0, 1, 0.0),
            exit(1, 0, 1.0),
            exit(2, 1, 1.0),
            exit(3, 0, 0.0),
        ]
    } else {
        [exit(1, 0, 0.0), exit(2, 1, 0.0), exit(0, 2, 0.0), None]
    };
    exits
        .into_iter()
        .flatten()
        .min_by(|a, b| a.after.total_cmp(&b.after))
}

/// How far along a side a point on it is, from its first corner to its second.
fn along_side(x: &[f64; 3], side: usize, is_quad: bool) -> f64 {
    match (is_quad, side) {
        (true, 0) => x[0],
        (true, 1) => x[1],
        (true, 2) => 1.0 - x[0],
        (true, _) => 1.0 - x[1],
        (false, side) => x[(side + 1) % 3],
    }
}

/// The coordinates of a point on a side.
fn on_side(along: f64, side: usize, is_quad: bool) -> [f64; 3] {
    match (is_quad, side) {
        (true, 0) => [along, 0.0, 0.0],
        (true, 1) => [1.0, along, 0.0],
        (true, 2) => [1.0 - along, 1.0, 0.0],
        (true, _) => [0.0, 1.0 - along, 0.0],
        (false, side) => {
            let mut x = [0.0; 3];
            x[side % 3] = 1.0 - along;
            x[(side + 1) % 3] = along;
            x
        }
    }
}
