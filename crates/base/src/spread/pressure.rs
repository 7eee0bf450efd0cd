//! The pressure on the faces: what pushes points off where there are too many, and nowhere else.
//!
//! With A the Laplacian of the mesh and b how many points a face holds beyond what it may hold, p minimises ½ pᵀA p − bᵀp
//! with p ≥ 0 (Narain, Golas & Lin 2010; Munns 2015, equation 2, whose b has the other sign). Then each face gives
//! (A p)ᵢ points away in all, and none where p vanishes.
//!
//! p is zero away from crowded faces, so only faces around those are solved for. That region is a guess; where the solution would
//! push too much over its rim it is widened and solved again, so that what comes out is the solution on all faces. The
//! first solve starts from that of coarser and coarser graphs, which knows already how far the pressure will reach.

use super::faces::{Faces, NONE};
use super::graph::Graph;
use crate::linear::{Jacobi, Operator, Scratch, Tolerance, nonnegative};

/// Graphs this small are solved from nothing.
const SMALL: usize = 500;

/// How well coarse graphs are solved.
const COARSE: Tolerance = Tolerance {
    relative: 1e-2,
    max_iterations: 50,
};

/// Rounds of widening the region; each doubles how far it is widened.
const ROUNDS: u32 = 24;

/// A pressure.
#[derive(Clone, Debug, Default)]
pub struct Pressure {
    /// Its value on every face.
    pub values: Vec<f32>,
    /// Iterations on the faces themselves.
    pub iterations: usize,
    /// Faces that were solved for.
    pub solved: usize,
    /// Norm of what is left of the optimality conditions, over that of b.
    pub residual: f64,
}

/// The pressure for the `surplus` on each face: points beyond what it may hold, negative where there is room. In every connected
/// part of the surface the sum must be negative.
pub fn pressure(faces: &Faces, surplus: &[f32], tolerance: Tolerance) -> Pressure {
    let mut region = Region::around(faces, surplus);
    let mut result = Pressure {
        values: vec![0.0; faces.len()],
        ..Pressure::default()
    };
    if region.members.is_empty() {
        return result;
    }
    let most = region
        .members
        .iter()
        .map(|f| surplus[*f as usize])
        .fold(0.0, f32::max);
    let slack = tolerance.relative as f32 * most;
    let mut scratch = Scratch::default();
    let mut rings = 2;
    for round in 0..ROUNDS {
        let graph = region.graph();
        let b = region.gather(surplus);
        let mut x = match round {
            0 => start(&graph, &b),
            _ => region.gather(&result.values),
        };
        let mut jacobi = Jacobi {
            diagonal: graph.diagonal(),
        };
        let solved = nonnegative(&graph, &mut jacobi, &b, &mut x, tolerance, &mut scratch);
        result.iterations += solved.iterations;
        result.residual = solved.residual;
        for (face, value) in region.members.iter().zip(&x) {
            result.values[*face as usize] = *value;
        }
        let spilling = region.spilling(&x, surplus, slack);
        if spilling.is_empty() {
            break;
        }
        region.widen(spilling, rings);
        rings *= 2;
    }
    result.solved = region.members.len();
    result
}

/// A start for the solve: the solution on coarser graphs.
fn start(graph: &Graph, b: &[f32]) -> Vec<f32> {
    if graph.len() <= SMALL {
        return vec![0.0; b.len()];
    }
    let (coarse, pieces) = graph.coarser();
    let mut sum = vec![0.0; coarse.len()];
    for (piece, b) in pieces.iter().zip(b) {
        sum[*piece as usize] += b;
    }
    // A graph that no longer shrinks has no links left.
    let mut x = if coarse.len() < graph.len() {
        start(&coarse, &sum)
    } else {
        return vec![0.0; b.len()];
    };
    let mut jacobi = Jacobi {
        diagonal: coarse.diagonal(),
    };
    let scratch = &mut Scratch::default();
    nonnegative(&coarse, &mut jacobi, &sum, &mut x, COARSE, scratch);
    pieces.iter().map(|piece| x[*piece as usize]).collect()
}

/// Faces that are solved for.
struct Region<'a> {
    faces: &'a Faces,
    members: Vec<u32>,
    /// Number among the members, or [`NONE`].
    places: Vec<u32>,
}

impl<'a> Region<'a> {
    /// The crowded faces and so many around them that twice what they have too much would fit.
    fn around(faces: &'a Faces, surplus: &[f32]) -> Self {
        let mut region = Self {
            faces,
            members: Vec::new(),
            places: vec![NONE; faces.len()],
        };
        let crowded = (0..faces.len() as u32).filter(|f| surplus[*f as usize] > 0.0);
        let mut ring: Vec<u32> = crowded.collect();
        let excess: f64 = ring.iter().map(|f| f64::from(surplus[*f as usize])).sum();
        region.add(&ring);
        let mut total = excess;
        while total > -excess && !ring.is_empty() {
            ring = region.ring(&ring);
            total += ring
                .iter()
                .map(|f| f64::from(surplus[*f as usize]))
                .sum::<f64>();
        }
        region.sort();
        region
    }

    /// Numbers the members as the faces are: then neighbours lie near each other in memory.
    fn sort(&mut self) {
        self.members.sort_unstable();
        for (place, face) in self.members.iter().enumerate() {
            self.places[*face as usize] = place as u32;
        }
    }

    fn gather(&self, values: &[f32]) -> Vec<f32> {
        let value = |face: &u32| values[*face as usize];
        self.members.iter().map(value).collect()
    }

    fn add(&mut self, new: &[u32]) {
        for &face in new {
            if self.places[face as usize] == NONE {
                self.places[face as usize] = self.members.len() as u32;
                self.members.push(face);
            }
        }
    }

    /// Adds the neighbours of `rim` that are not members yet, and returns them.
    fn ring(&mut self, rim: &[u32]) -> Vec<u32> {
        let before = self.members.len();
        for &face in rim {
            let neighbors = self.faces.neighbors[face as usize];
            for other in neighbors.into_iter().filter(|n| *n != NONE) {
                self.add(&[other]);
            }
        }
        self.members[before..].to_vec()
    }

    fn widen(&mut self, from: Vec<u32>, rings: u32) {
        self.add(&from);
        let mut ring = from;
        for _ in 0..rings {
            ring = self.ring(&ring);
        }
        self.sort();
    }

    /// The matrix of the members; faces outside hold the pressure at zero.
    fn graph(&self) -> Graph {
        let center = |face: &u32| self.faces.centers[*face as usize];
        let centers = self.members.iter().map(center).collect();
        Graph::new(centers, |node, link| {
            let face = self.members[node] as usize;
            let mut excess = 0.0;
            for side in 0..4 {
                let other = self.faces.neighbors[face][side];
                if other == NONE {
                    continue;
                }
                let ease = self.faces.ease(face, side);
                match self.places[other as usize] {
                    NONE => excess += ease,
                    place => link(place, ease),
                }
            }
            excess
        })
    }

    /// Faces outside that would get more than they have room for, by more than `slack`.
    fn spilling(&self, x: &[f32], surplus: &[f32], slack: f32) -> Vec<u32> {
        let mut inflow: Vec<(u32, f32)> = Vec::new();
        for (face, x) in self.members.iter().zip(x).filter(|(_, x)| **x > 0.0) {
            let face = *face as usize;
            for side in 0..4 {
                let other = self.faces.neighbors[face][side];
                if other != NONE && self.places[other as usize] == NONE {
                    inflow.push((other, x * self.faces.ease(face, side)));
                }
            }
        }
        inflow.sort_by_key(|(face, _)| *face);
        inflow
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|same| {
                let sum: f32 = same.iter().map(|(_, flow)| flow).sum();
                sum + surplus[same[0].0 as usize] > slack
            })
            .map(|same| same[0].0)
            .collect()
    }
}
