//! The matrix of a surface: who is coupled to whom, and coarser ones of the same.

use crate::linear::Operator;
use glam::Vec3;
use rayon::prelude::*;

/// (A x)ᵢ = eᵢ xᵢ + Σₖ cᵢₖ (xᵢ − xₖ), with any number of neighbours k.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    starts: Vec<u32>,
    /// Neighbours with their coefficients, node after node.
    links: Vec<(u32, f32)>,
    excess: Vec<f32>,
    diagonal: Vec<f32>,
    /// Where the nodes are; a coefficient is the length of a border over the distance across it.
    centers: Vec<Vec3>,
}

/// Nodes in one stretch of a parallel loop.
const STRETCH: usize = 4096;

/// Pieces are twice as far from a rim as their nodes.
const FARTHER: f32 = 0.5;

/// Neighbours that join a node to make a piece.
const JOINED: usize = 3;

impl Graph {
    /// Makes it of nodes at `centers`; `row(i)` calls its argument with each neighbour and coefficient, and returns the
    /// coupling to where the unknown is zero.
    pub fn new(centers: Vec<Vec3>, row: impl Fn(usize, &mut dyn FnMut(u32, f32)) -> f32) -> Self {
        let mut graph = Self {
            starts: vec![0],
            ..Self::default()
        };
        for node in 0..centers.len() {
            let links = &mut graph.links;
            let before = links.len();
            let excess = row(node, &mut |other, ease| links.push((other, ease)));
            let sum: f32 = links[before..].iter().map(|link| link.1).sum();
            graph.starts.push(links.len() as u32);
            graph.excess.push(excess);
            graph.diagonal.push(excess + sum);
        }
        graph.centers = centers;
        graph
    }

    /// Neighbours and coefficients of a node.
    pub fn links(&self, node: usize) -> &[(u32, f32)] {
        &self.links[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// A graph of about a quarter of the nodes, and the node there that each node here is part of. Borders of pieces are as long as
    /// those of their nodes together, and pieces as far apart as their centres.
    pub fn coarser(&self) -> (Self, Vec<u32>) {
        const FREE: u32 = u32::MAX;
        let nodes = self.excess.len();
        let mut pieces = vec![FREE; nodes];
        let mut members: Vec<[u32; 1 + JOINED]> = Vec::with_capacity(nodes / 3);
        for node in 0..nodes {
            if pieces[node] != FREE {
                continue;
            }
            let piece = members.len() as u32;
            let mut list = [FREE; 1 + JOINED];
            list[0] = node as u32;
            pieces[node] = piece;
            let mut count = 1;
            for (other, _) in self.links(node) {
                if count <= JOINED && pieces[*other as usize] == FREE {
                    pieces[*other as usize] = piece;
                    list[count] = *other;
                    count += 1;
                }
            }
            members.push(list);
        }
        let center = |list: &[u32; 1 + JOINED]| {
            let there = || list.iter().filter(|m| **m != FREE);
            let sum: Vec3 = there().map(|m| self.centers[*m as usize]).sum();
            sum / there().count() as f32
        };
        let centers: Vec<Vec3> = members.iter().map(center).collect();
        let apart = |a: usize, b: usize| centers[a].distance(centers[b]);
        let border = |node: u32, other: u32, ease: f32| {
            ease * self.centers[node as usize].distance(self.centers[other as usize])
        };
        let coarse = Self::new(centers.clone(), |piece, link| {
            let mut row: Vec<(u32, f32)> = Vec::new();
            let mut excess = 0.0;
            for &member in members[piece].iter().filter(|m| **m != FREE) {
                excess += self.excess[member as usize];
                for &(other, ease) in self.links(member as usize) {
                    let length = border(member.min(other), member.max(other), ease);
                    let other = pieces[other as usize];
                    if other as usize == piece {
                        continue;
                    }
                    match row.iter_mut().find(|(known, _)| *known == other) {
                        Some((_, sum)) => *sum += length,
                        None => row.push((other, length)),
                    }
                }
            }
            for (other, length) in row {
                let (low, high) = (piece.min(other as usize), piece.max(other as usize));
                link(other, length / apart(low, high).max(f32::MIN_POSITIVE));
            }
            FARTHER * excess
        });
        (coarse, pieces)
    }
}

impl Operator for Graph {
    fn len(&self) -> usize {
        self.excess.len()
    }

    fn apply(&self, x: &[f32], y: &mut [f32]) {
        y.par_chunks_mut(STRETCH)
            .enumerate()
            .for_each(|(stretch, y)| {
                for (node, y) in (stretch * STRETCH..).zip(y) {
                    let own = x[node];
                    let mut sum = self.excess[node] * own;
                    for (other, ease) in self.links(node) {
                        sum += ease * (own - x[*other as usize]);
                    }
                    *y = sum;
                }
            });
    }

    fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }

    fn scaled_norm(&self) -> Option<f32> {
        // By Gershgorin: no row's coefficients sum to more than its diagonal.
        Some(2.0)
    }
}
