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

/// The blocks near the surface.
pub struct Band {
    /// Their places among the reached blocks.
    pub reached: Vec<u32>,
    /// Each one's 27 neighbours in the band, or [`NONE`].
    neighbors: Vec<[u32; 27]>,
    /// The function itself.
    raw: Vec<Values>,
    /// The function mended and smoothed.
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
        let both: Vec<(Values, Values)> = kept
            .par_iter()
            .map_init(Vec::new, |near, &i| {
                let Lies::Across(raw) = &lies[i as usize] else {
                    let raw = fill(near, i as usize);
                    return (raw, raw);
                };
                let mut mended = **raw;
                cloud.near_block(
                    reached.keys[i as usize],
                    reached.homes(i as usize),
                    0.0,
                    near,
                );
                field.mend(near, cell, &mut mended);
                (**raw, mended)
            })
            .collect();
        let keys: Vec<u64> = kept.iter().map(|&i| reached.keys[i as usize]).collect();
        let (raw, values) = both.into_iter().unzip();
        Self {
            reached: kept,
            neighbors: keys.par_iter().map(|&key| neighbors(&keys, key)).collect(),
            raw,
            values,
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
        let old = &self.values[block];
        let mut new = *old;
        for (i, value) in new.iter_mut().enumerate() {
            let place = IVec3::new(i as i32 % 8, i as i32 / 8 % 8, i as i32 / 64);
            let sum: f32 = IVec3::AXES
                .iter()
                .map(|axis| self.value(block, place - axis) + self.value(block, place + axis))
                .sum();
            *value = value.min(sum / 6.0);
        }
        new
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
        let step = IVec3::new(place.x >> 3, place.y >> 3, place.z >> 3);
        let (block, place) = match self.neighbor(block, step) {
            NONE => (
                block,
                place.clamp(IVec3::ZERO, IVec3::splat(EDGE as i32 - 1)),
            ),
            other => (other as usize, place & 7),
        };
        get(
            self,
            block,
            node(place.x as usize, place.y as usize, place.z as usize),
        )
    }

    /// Values on the nodes of a block and on its upper neighbours' first ones.
    pub fn wide(&self, block: usize) -> Box<[f32; WIDE * WIDE * WIDE]> {
        let mut wide = Box::new([0.0; WIDE * WIDE * WIDE]);
        for (i, value) in wide.iter_mut().enumerate() {
            let place = IVec3::new(
                (i % WIDE) as i32,
                (i / WIDE % WIDE) as i32,
                (i / (WIDE * WIDE)) as i32,
            );
            *value = self.value(block, place);
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
