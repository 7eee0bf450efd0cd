//! The blocks near the surface, with the function's values on their nodes.
//!
//! Blocks that lie wholly inside or outside, and whose neighbours do too, are looked at and forgotten: memory goes with
//! the surface, not with the volume.

use super::block::{EDGE, NODES, Values, node, pack, step_index, steps, unpack};
use super::cloud::{Cloud, Reached};
use super::field::Field;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// No block.
pub const NONE: u32 = u32::MAX;
/// Nodes along the edge of a block and its upper neighbours' first ones.
pub const WIDE: usize = EDGE + 1;
/// Nodes along the edge of a block and one on either side.
const PADDED: usize = EDGE + 2;

/// The blocks near the surface.
pub struct Band {
    /// Their places among the reached blocks.
    pub reached: Vec<u32>,
    /// Each one's 27 neighbours in the band, or [`NONE`].
    neighbors: Vec<[u32; 27]>,
    /// The function itself.
    raw: Vec<Values>,
    /// The function smoothed.
    values: Vec<Values>,
}

/// How a block lies.
#[derive(Clone)]
enum Lies {
    Inside,
    Outside,
    Across(Box<Values>),
}

impl Lies {
    fn of(values: &Values) -> Self {
        let inside = values.iter().filter(|value| **value < 0.0).count();
        match inside {
            0 => Self::Outside,
            NODES => Self::Inside,
            _ => Self::Across(Box::new(*values)),
        }
    }
}

impl Band {
    /// Evaluates `field` on all reached blocks and keeps those near its zero.
    pub fn new(cloud: &Cloud, reached: &Reached, field: &impl Field) -> Self {
        let cell = cloud.lattice.cell as f32;
        let fill = |near: &mut Vec<_>, i: usize| -> Values {
            cloud.near_block(reached.keys[i], reached.homes(i), 0.0, near);
            let mut values = [0.0; NODES];
            field.fill(near, cell, &mut values);
            values
        };
        let count = reached.keys.len();
        let lies: Vec<Lies> = (0..count)
            .into_par_iter()
            .map_init(Vec::new, |near, i| Lies::of(&fill(near, i)))
            .collect();
        let kept: Vec<u32> = (0..count)
            .into_par_iter()
            .filter(|&i| is_near_surface(&reached.keys, &lies, i))
            .map(|i| i as u32)
            .collect();
        let raw: Vec<Values> = kept
            .par_iter()
            .map_init(Vec::new, |near, &i| match &lies[i as usize] {
                Lies::Across(values) => **values,
                _ => fill(near, i as usize),
            })
            .collect();
        let keys: Vec<u64> = kept.iter().map(|&i| reached.keys[i as usize]).collect();
        Self {
            reached: kept,
            neighbors: keys.par_iter().map(|&key| neighbors(&keys, key)).collect(),
            values: raw.clone(),
            raw,
        }
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.reached.len()
    }

    /// The neighbour of `block` one `step` away, or [`NONE`].
    pub fn neighbor(&self, block: usize, step: IVec3) -> u32 {
        self.neighbors[block][step_index(step)]
    }

    /// Lowers values to the mean of their six neighbours where that is lower: hollows fill, nothing is worn away
    /// (Zhu & Bridson 2005).
    pub fn smooth(&mut self, passes: u32) {
        for _ in 0..passes {
            self.values = (0..self.len())
                .into_par_iter()
                .map(|block| self.smoothed(block))
                .collect();
        }
    }

    fn smoothed(&self, block: usize) -> Values {
        let padded = self.padded(block);
        let mut new = self.values[block];
        for (i, value) in new.iter_mut().enumerate() {
            let at =
                1 + i % EDGE + PADDED * (1 + i / EDGE % EDGE + PADDED * (1 + i / (EDGE * EDGE)));
            let sum: f32 = [1, PADDED, PADDED * PADDED]
                .iter()
                .map(|step| padded[at - step] + padded[at + step])
                .sum();
            *value = value.min(sum / 6.0);
        }
        new
    }

    /// Values on the nodes of a block and of one layer around it.
    fn padded(&self, block: usize) -> Box<[f32; PADDED * PADDED * PADDED]> {
        let mut padded = Box::new([0.0; PADDED * PADDED * PADDED]);
        for (i, row) in padded.chunks_exact_mut(PADDED).enumerate() {
            let (y, z) = ((i % PADDED) as i32 - 1, (i / PADDED) as i32 - 1);
            self.row(block, y, z, &mut row[1..=EDGE]);
            row[0] = self.value(block, IVec3::new(-1, y, z));
            row[EDGE + 1] = self.value(block, IVec3::new(EDGE as i32, y, z));
        }
        padded
    }

    /// Copies a row of a block, or of one beside it.
    fn row(&self, block: usize, y: i32, z: i32, row: &mut [f32]) {
        let (block, place) = self.locate(block, IVec3::new(0, y, z));
        let start = node(0, place.y as usize, place.z as usize);
        row.copy_from_slice(&self.values[block][start..start + EDGE]);
    }

    /// Value at a node of a block or one step outside it. Beyond the band nothing changes.
    fn value(&self, block: usize, place: IVec3) -> f32 {
        self.look(block, place, |band, block, i| band.values[block][i])
    }

    /// How much the function was lowered at a node of a block or one step outside it.
    fn lowered(&self, block: usize, place: IVec3) -> f32 {
        self.look(block, place, |band, block, i| {
            band.raw[block][i] - band.values[block][i]
        })
    }

    fn look(&self, block: usize, place: IVec3, get: impl Fn(&Self, usize, usize) -> f32) -> f32 {
        let (block, place) = self.locate(block, place);
        get(
            self,
            block,
            node(place.x as usize, place.y as usize, place.z as usize),
        )
    }

    /// The block and node at a node of a block or one step outside it; the nearest of the block's own where the band ends.
    fn locate(&self, block: usize, place: IVec3) -> (usize, IVec3) {
        let step = IVec3::new(place.x >> 3, place.y >> 3, place.z >> 3);
        match self.neighbor(block, step) {
            NONE => (
                block,
                place.clamp(IVec3::ZERO, IVec3::splat(EDGE as i32 - 1)),
            ),
            other => (other as usize, place & 7),
        }
    }

    /// Values on the nodes of a block and on its upper neighbours' first ones.
    pub fn wide(&self, block: usize) -> Box<[f32; WIDE * WIDE * WIDE]> {
        let mut wide = Box::new([0.0; WIDE * WIDE * WIDE]);
        for (i, row) in wide.chunks_exact_mut(WIDE).enumerate() {
            let (y, z) = ((i % WIDE) as i32, (i / WIDE) as i32);
            self.row(block, y, z, &mut row[..EDGE]);
            row[EDGE] = self.value(block, IVec3::new(EDGE as i32, y, z));
        }
        wide
    }

    /// How much the function was lowered at a node, and the gradient of that times the cell; `None` where it was not touched.
    pub fn change(&self, block: usize, place: IVec3) -> Option<(f32, Vec3)> {
        let lowered = self.lowered(block, place);
        let gradient = Vec3::from_array(IVec3::AXES.map(|axis| {
            0.5 * (self.lowered(block, place + axis) - self.lowered(block, place - axis))
        }));
        (lowered.abs() > 0.0 || gradient.length_squared() > 0.0).then_some((lowered, gradient))
    }
}

/// True where the surface passes through a block or between it and its neighbours, or through one of those.
fn is_near_surface(keys: &[u64], lies: &[Lies], i: usize) -> bool {
    let (mut inside, mut outside) = (false, false);
    for near in neighbors(keys, keys[i])
        .into_iter()
        .filter(|near| *near != NONE)
    {
        match lies[near as usize] {
            Lies::Across(_) => return true,
            Lies::Inside => inside = true,
            Lies::Outside => outside = true,
        }
    }
    inside && outside
}

/// Places of a block's 27 neighbours among `keys`.
fn neighbors(keys: &[u64], key: u64) -> [u32; 27] {
    let block = unpack(key);
    let mut found = [NONE; 27];
    for (slot, step) in found.iter_mut().zip(steps()) {
        if let Ok(i) = keys.binary_search(&pack(block + step)) {
            *slot = i as u32;
        }
    }
    found
}
