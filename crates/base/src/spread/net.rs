//! A surface from signed distances: a vertex in each cell that it crosses, lifted or sunk from the cell's centre onto it, and a
//! quad across each edge (Munns 2015, section 4.3; surface nets, Gibson 1998). Only cells near the surface are looked at.

use super::faces::NONE;
use glam::{IVec3, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;

/// Cells along the edge of a block.
const EDGE: i32 = 4;
const CELLS: usize = 64;

/// Where distances are known: nodes at `origin` plus whole multiples of `cell`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    /// The first node.
    pub origin: Vec3,
    /// Distance between nodes [m].
    pub cell: f32,
    /// Nodes along each axis.
    pub nodes: IVec3,
}

impl Lattice {
    /// The lattice of cubes of edge `cell` that covers a box.
    pub fn covering(low: Vec3, high: Vec3, cell: f32) -> Self {
        Self {
            origin: low,
            cell,
            nodes: ((high - low) / cell).ceil().as_ivec3() + 1,
        }
    }

    /// Where a node is.
    pub fn place(&self, node: IVec3) -> Vec3 {
        self.origin + node.as_vec3() * self.cell
    }
}

/// A surface between nodes.
#[derive(Clone, Debug, Default)]
pub struct Net {
    /// Vertices.
    pub vertices: Vec<Vec3>,
    /// Corners of the faces, counter-clockwise from outside; the last is [`NONE`] for a triangle.
    pub corners: Vec<[u32; 4]>,
}

/// What one block adds to the net.
struct Part {
    vertices: Vec<Vec3>,
    /// Number of each cell's vertex within the block, or [`NONE`].
    numbers: [u32; CELLS],
    /// Crossed edges: the node at the lower end, the axis, and whether the surface faces along it.
    edges: Vec<(IVec3, usize, bool)>,
}

impl Net {
    /// The surface where `distance` of the nodes, negative inside, goes through zero. Distances must never be larger than the
    /// way to the surface really is: space without a surface is skipped by them.
    pub fn new(lattice: &Lattice, distance: impl Fn(IVec3) -> f32 + Sync) -> Self {
        let blocks = near(lattice, &distance);
        let parts: Vec<Part> = blocks
            .par_iter()
            .map(|block| part(lattice, *block, &distance))
            .collect();
        let mut firsts = Vec::with_capacity(parts.len());
        let mut net = Self::default();
        for part in &parts {
            firsts.push(net.vertices.len() as u32);
            net.vertices.extend(&part.vertices);
        }
        let numbers: HashMap<IVec3, usize> = blocks.iter().copied().zip(0..).collect();
        let vertex = |cell: IVec3| {
            let block = *numbers.get(&cell.div_euclid(IVec3::splat(EDGE)))?;
            let number = parts[block].numbers[local(cell)];
            (number != NONE).then(|| firsts[block] + number)
        };
        let quads = |(node, axis, along): &(IVec3, usize, bool)| {
            let (b, c) = (IVec3::AXES[(axis + 1) % 3], IVec3::AXES[(axis + 2) % 3]);
            let mut quad = [
                vertex(*node)?,
                vertex(node - b)?,
                vertex(node - b - c)?,
                vertex(node - c)?,
            ];
            if !along {
                quad.reverse();
            }
            Some(quad)
        };
        net.corners = parts
            .par_iter()
            .flat_map_iter(|part| part.edges.iter().filter_map(quads))
            .collect();
        net
    }
}

fn local(cell: IVec3) -> usize {
    let at = cell.rem_euclid(IVec3::splat(EDGE));
    (at.x + EDGE * (at.y + EDGE * at.z)) as usize
}

/// Blocks that the surface may cross, in a fixed order: found by halving and halving again what is not clear of it.
fn near(lattice: &Lattice, distance: &(impl Fn(IVec3) -> f32 + Sync)) -> Vec<IVec3> {
    let cells = lattice.nodes - 1;
    if cells.min_element() < 1 {
        return Vec::new();
    }
    let mut edge = EDGE;
    while edge < cells.max_element() {
        edge *= 4;
    }
    let mut blocks = vec![IVec3::ZERO];
    while edge > EDGE {
        edge /= 4;
        // From a block's middle to where its farthest vertex may look for nodes.
        let clear = (0.5 * edge as f32 + 1.0) * 3f32.sqrt() * lattice.cell;
        blocks = blocks
            .par_iter()
            .flat_map_iter(|block| {
                (0..64).map(move |i| 4 * *block + IVec3::new(i & 3, i >> 2 & 3, i >> 4))
            })
            .filter(|block| {
                let first = *block * edge;
                let middle = (first + edge / 2).min(cells);
                let off = (first + edge / 2 - middle).as_vec3().length() * lattice.cell;
                // Written so that NaN is looked at, and found to cross nothing.
                let is_clear = distance(middle).abs() > clear + off;
                first.cmplt(cells).all() && !is_clear
            })
            .collect();
    }
    blocks
}

/// The vertices and crossed edges of a block.
fn part(lattice: &Lattice, block: IVec3, distance: &(impl Fn(IVec3) -> f32 + Sync)) -> Part {
    const NODES: i32 = EDGE + 1;
    let first = block * EDGE;
    let cells = lattice.nodes - 1;
    let mut values = [f32::NAN; (NODES * NODES * NODES) as usize];
    let index = |at: IVec3| (at.x + NODES * (at.y + NODES * at.z)) as usize;
    for (i, value) in (0..).zip(&mut values) {
        let at = IVec3::new(i % NODES, i / NODES % NODES, i / NODES / NODES);
        if (first + at).cmple(cells).all() {
            *value = distance(first + at);
        }
    }
    let mut part = Part {
        vertices: Vec::new(),
        numbers: [NONE; CELLS],
        edges: Vec::new(),
    };
    for (i, number) in (0..).zip(&mut part.numbers) {
        let at = IVec3::new(i % EDGE, i / EDGE % EDGE, i / EDGE / EDGE);
        let corner = |k: i32| values[index(at + IVec3::new(k & 1, k >> 1 & 1, k >> 2))];
        let corners: [f32; 8] = std::array::from_fn(|k| corner(k as i32));
        let inside = corners.iter().filter(|c| **c < 0.0).count();
        let known = corners.iter().all(|c| c.is_finite());
        if known && inside > 0 && inside < 8 {
            *number = part.vertices.len() as u32;
            let place = lift(&corners, lattice.cell) + (first + at).as_vec3();
            part.vertices.push(lattice.origin + place * lattice.cell);
        }
        for axis in 0..3 {
            let (here, there) = (corners[0], corners[1 << axis]);
            if here.is_finite() && there.is_finite() && (here < 0.0) != (there < 0.0) {
                part.edges.push((first + at, axis, here < 0.0));
            }
        }
    }
    part
}

/// The point of a cell, in cells from its first corner, that lies on the surface above or below its centre, along the gradient; no
/// further than the cell.
fn lift(corners: &[f32; 8], cell: f32) -> Vec3 {
    let mean = corners.iter().sum::<f32>() / 8.0;
    let slope = |axis: usize| {
        let side = |k: usize| if k >> axis & 1 == 1 { 0.25 } else { -0.25 };
        (0..8).map(|k| side(k) * corners[k]).sum::<f32>() / cell
    };
    let gradient = Vec3::new(slope(0), slope(1), slope(2));
    let steep = gradient.length_squared();
    if steep <= 0.0 {
        return Vec3::splat(0.5);
    }
    let way = gradient * (-mean / steep / cell);
    (Vec3::splat(0.5) + way).clamp(Vec3::splat(0.01), Vec3::splat(0.99))
}
