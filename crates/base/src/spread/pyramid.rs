//! Coarser and coarser graphs of one surface: where a solve begins, and what carries its corrections far in one go.

use super::graph::{Graph, Pieces};
use crate::linear::{Operator, Preconditioner, Scratch, Tolerance, nonnegative};
use rayon::prelude::*;

/// Graphs this small are not made coarser.
const SMALL: usize = 500;

/// How well coarse graphs are solved for a start.
const COARSE: Tolerance = Tolerance {
    relative: 1e-2,
    max_iterations: 50,
};

/// Part of the correction by the diagonal that a visit takes; no eigenvalue of D⁻¹A is above 2.
const RELAX: f32 = 2.0 / 3.0;

/// Visits on the coarsest graph.
const LAST_VISITS: usize = 16;

/// Nodes in one stretch of a parallel loop.
const STRETCH: usize = 4096;

/// Graphs, the finest first, and how the nodes of each make up those of the next.
pub struct Pyramid {
    graphs: Vec<Graph>,
    pieces: Vec<Pieces>,
}

impl Pyramid {
    /// Builds it on a graph.
    pub fn new(finest: Graph) -> Self {
        let mut pyramid = Self {
            graphs: vec![finest],
            pieces: Vec::new(),
        };
        loop {
            let last = &pyramid.graphs[pyramid.pieces.len()];
            if last.len() <= SMALL {
                return pyramid;
            }
            let (coarser, pieces) = last.coarser();
            // A graph that no longer shrinks has no links left.
            if coarser.len() == last.len() {
                return pyramid;
            }
            pyramid.graphs.push(coarser);
            pyramid.pieces.push(pieces);
        }
    }

    /// The graph it stands on.
    pub fn finest(&self) -> &Graph {
        &self.graphs[0]
    }

    /// A start for the solve on the finest graph: the solution on the next one, which starts from that on the next.
    pub fn start(&self, b: &[f32]) -> Vec<f32> {
        let mut sums = vec![b.to_vec()];
        for (level, pieces) in self.pieces.iter().enumerate() {
            let mut sum = vec![0.0; pieces.members.len()];
            pieces.sum(&sums[level], &mut sum);
            sums.push(sum);
        }
        let last = self.graphs.len() - 1;
        let mut x = vec![0.0; self.graphs[last].len()];
        let scratch = &mut Scratch::default();
        for level in (0..last).rev() {
            let (graph, b) = (&self.graphs[level + 1], &sums[level + 1]);
            nonnegative(
                graph,
                &mut self.cycle(level + 1),
                b,
                &mut x,
                COARSE,
                scratch,
            );
            x = self.pieces[level]
                .of
                .iter()
                .map(|p| x[*p as usize])
                .collect();
        }
        x
    }

    /// A preconditioner for the graph of a level.
    pub fn cycle(&self, level: usize) -> Cycle<'_> {
        let graphs = &self.graphs[level..];
        let zeros = |graph: &Graph| vec![0.0; graph.len()];
        Cycle {
            graphs,
            pieces: &self.pieces[level..],
            right: graphs.iter().map(zeros).collect(),
            found: graphs.iter().map(zeros).collect(),
            image: graphs.iter().map(zeros).collect(),
        }
    }
}

/// One way down to the coarsest graph and back: what is wrong here and there is mended on the graph itself, what is
/// wrong everywhere on those below. Symmetric, as conjugate gradients ask.
pub struct Cycle<'a> {
    graphs: &'a [Graph],
    pieces: &'a [Pieces],
    right: Vec<Vec<f32>>,
    found: Vec<Vec<f32>>,
    image: Vec<Vec<f32>>,
}

impl Cycle<'_> {
    /// found += RELAX D⁻¹ (right − A found).
    fn visit(&mut self, level: usize) {
        let graph = &self.graphs[level];
        graph.apply(&self.found[level], &mut self.image[level]);
        let (right, image, diagonal) = (&self.right[level], &self.image[level], graph.diagonal());
        stretches(&mut self.found[level], |node, found| {
            if diagonal[node] > 0.0 {
                *found += RELAX * (right[node] - image[node]) / diagonal[node];
            }
        });
    }

    /// Solves roughly on a level and all below it.
    fn descend(&mut self, level: usize) {
        self.found[level].fill(0.0);
        if level == self.pieces.len() {
            // From nothing, and as often forth as back: one polynomial of the matrix.
            for _ in 0..LAST_VISITS {
                self.visit(level);
            }
            return;
        }
        self.visit(level);
        let graph = &self.graphs[level];
        graph.apply(&self.found[level], &mut self.image[level]);
        let right = &self.right[level];
        stretches(&mut self.image[level], |node, image| {
            *image = right[node] - *image;
        });
        self.pieces[level].sum(&self.image[level], &mut self.right[level + 1]);
        self.descend(level + 1);
        let (of, coarse) = (
            &self.pieces[level].of,
            std::mem::take(&mut self.found[level + 1]),
        );
        stretches(&mut self.found[level], |node, found| {
            *found += coarse[of[node] as usize];
        });
        self.found[level + 1] = coarse;
        self.visit(level);
    }
}

impl Preconditioner for Cycle<'_> {
    fn precondition(&mut self, r: &[f32], z: &mut [f32]) {
        self.right[0].copy_from_slice(r);
        self.descend(0);
        z.copy_from_slice(&self.found[0]);
    }
}

/// Calls `update` with every place and value.
fn stretches(values: &mut [f32], update: impl Fn(usize, &mut f32) + Sync) {
    let one = |(stretch, values): (usize, &mut [f32])| {
        for (node, value) in (stretch * STRETCH..).zip(values) {
            update(node, value);
        }
    };
    if values.len() <= STRETCH {
        one((0, values));
    } else {
        values.par_chunks_mut(STRETCH).enumerate().for_each(one);
    }
}
