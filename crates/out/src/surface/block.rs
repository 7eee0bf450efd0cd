//! Space in blocks of 8³ nodes, each with a key; blocks exist only where they are asked for.
//!
//! The nodes stand still in space, at whole multiples of the cell, whatever the particles do: surfaces do not flicker because
//! their grid moves.

use glam::{DVec3, IVec3, Vec3};

/// Nodes along the edge of a block.
pub const EDGE: usize = 8;
/// Nodes in a block.
pub const NODES: usize = EDGE * EDGE * EDGE;
/// Bins along the edge of a block: particles are sorted more finely than nodes, so that fewer are looked at in vain.
pub const BINS: usize = 2;
/// Bits of a key for each axis.
const BITS: u32 = 21;
/// Blocks on either side of the origin, on each axis.
const REACH: i32 = 1 << (BITS - 1);

/// One number for each node of a block, x running fastest.
pub type Values = [f32; NODES];

/// The place of a node in a block's values.
pub fn node(x: usize, y: usize, z: usize) -> usize {
    x + EDGE * (y + EDGE * z)
}

/// Nodes whose spacing is `cell` [m].
#[derive(Clone, Copy, Debug)]
pub struct Lattice {
    /// Distance between nodes [m].
    pub cell: f64,
}

impl Lattice {
    /// The farthest from the origin [m] that a block can be, on each axis.
    pub fn reach(self) -> f64 {
        // Bins have keys too, and two blocks are left for those that reach over the rim.
        f64::from(REACH / BINS as i32 - 2) * self.edge()
    }

    fn edge(self) -> f64 {
        self.cell * EDGE as f64
    }

    /// The bin that `place` is in.
    pub fn bin_of(self, place: DVec3) -> IVec3 {
        (place * BINS as f64 / self.edge()).floor().as_ivec3()
    }

    /// Where a bin begins.
    pub fn bin_origin(self, bin: IVec3) -> DVec3 {
        bin.as_dvec3() * (self.edge() / BINS as f64)
    }

    /// The block that `place` is in.
    pub fn block_of(self, place: DVec3) -> IVec3 {
        (place / self.edge()).floor().as_ivec3()
    }

    /// Where the first node of a block is.
    pub fn origin(self, block: IVec3) -> DVec3 {
        block.as_dvec3() * self.edge()
    }

    /// `place` as seen from the first node of a block.
    pub fn local(self, place: Vec3, origin: DVec3) -> Vec3 {
        (place.as_dvec3() - origin).as_vec3()
    }
}

/// A block's or bin's key. Keys of one row follow each other.
pub fn pack(block: IVec3) -> u64 {
    let part = |value: i32| u64::from((value + REACH) as u32);
    part(block.z) << (2 * BITS) | part(block.y) << BITS | part(block.x)
}

/// The block or bin of a key.
pub fn unpack(key: u64) -> IVec3 {
    let part = |shift: u32| ((key >> shift) & ((1 << BITS) - 1)) as i32 - REACH;
    IVec3::new(part(0), part(BITS), part(2 * BITS))
}

/// The 27 steps to a block's neighbours, itself in the middle.
pub fn steps() -> impl Iterator<Item = IVec3> {
    (0..27).map(|i| IVec3::new(i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1))
}

/// Where `step` stands among [`steps`].
pub fn step_index(step: IVec3) -> usize {
    (step.x + 1 + 3 * (step.y + 1) + 9 * (step.z + 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_blocks_agree() {
        for block in [
            IVec3::ZERO,
            IVec3::new(-5, 7, 123_456),
            IVec3::splat(REACH - 1),
            IVec3::splat(-REACH),
        ] {
            assert_eq!(unpack(pack(block)), block);
        }
        assert_eq!(pack(IVec3::new(4, -2, 9)) + 1, pack(IVec3::new(5, -2, 9)));
        for (i, step) in steps().enumerate() {
            assert_eq!(step_index(step), i);
        }
    }

    #[test]
    fn places_fall_into_their_blocks() {
        let lattice = Lattice { cell: 0.25 };
        assert_eq!(
            lattice.block_of(DVec3::new(-0.1, 0.0, 2.0)),
            IVec3::new(-1, 0, 1)
        );
        let origin = lattice.origin(IVec3::new(-1, 0, 1));
        assert_eq!(
            lattice.local(Vec3::new(-0.5, 0.5, 2.25), origin),
            Vec3::new(1.5, 0.5, 0.25)
        );
    }
}
