//! Sparse leaves of 8³ voxels in the order of OpenVDB's 5-4-3 tree, and what each is made from.

use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Edge of a leaf [voxels], and voxels in it.
pub const EDGE: i32 = 8;
pub const VOXELS: usize = 512;
/// Bits of an edge in slots: of a leaf, of a node of leaves, of a node of those.
pub const LEAF_BITS: u32 = 3;
pub const LOWER_BITS: u32 = 4;
pub const UPPER_BITS: u32 = 5;
/// Entries that binning may make: some, or so many for each thing (balls as wide as a voxel have eight), but never more than the last.
/// Beyond, sizes and voxels do not fit each other.
const SOME_ENTRIES: u64 = 1 << 22;
const ENTRIES_EACH: u64 = 64;
const MOST_ENTRIES: u64 = 1 << 28;
/// Voxels stay this far from the ends of their numbers.
const FARTHEST: f32 = 1e9;

/// Where a leaf stands in the tree. Sorted, leaves are in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Number of the upper node along each axis.
    pub upper: [i32; 3],
    /// Slot of the lower node in the upper.
    pub lower_slot: u16,
    /// Slot of the leaf in the lower node.
    pub leaf_slot: u16,
}

impl Key {
    /// The key of the leaf with this number along each axis.
    fn of(leaf: IVec3) -> Self {
        let lower: IVec3 = leaf >> 4i32;
        Self {
            upper: (lower >> 5i32).to_array(),
            lower_slot: slot(lower & 31, UPPER_BITS),
            leaf_slot: slot(leaf & 15, LOWER_BITS),
        }
    }

    /// The first voxel of the leaf.
    pub fn origin(self) -> IVec3 {
        let lower = IVec3::from(self.upper) * 32 + place(self.lower_slot, UPPER_BITS);
        (lower * 16 + place(self.leaf_slot, LOWER_BITS)) * EDGE
    }
}

/// The first and last leaf of a box of voxels.
fn leaf_range(least: Vec3, most: Vec3) -> (IVec3, IVec3) {
    let leaf = |voxel: IVec3| -> IVec3 { voxel >> 3i32 };
    (leaf(least.floor().as_ivec3()), leaf(most.ceil().as_ivec3()))
}

fn slot(place: IVec3, bits: u32) -> u16 {
    (place.x << (2 * bits) | place.y << bits | place.z) as u16
}

fn place(slot: u16, bits: u32) -> IVec3 {
    let (slot, mask) = (i32::from(slot), (1 << bits) - 1);
    IVec3::new(slot >> (2 * bits) & mask, slot >> bits & mask, slot & mask)
}

/// The slot in its leaf of a voxel, given from the leaf's origin.
pub fn voxel_slot(voxel: IVec3) -> usize {
    usize::from(slot(voxel, LEAF_BITS))
}

/// Leaves, each with the things that may touch it.
pub struct Bins {
    keys: Vec<Key>,
    starts: Vec<usize>,
    things: Vec<u32>,
}

impl Bins {
    /// Sorts things into leaves: `reach(i)` is the box of voxels that thing `i` may touch.
    pub fn new(count: usize, reach: impl Fn(usize) -> (Vec3, Vec3) + Sync) -> Result<Self, String> {
        let leaves = |i: usize| {
            let (least, most) = reach(i);
            let fits = least.min_element() > -FARTHEST && most.max_element() < FARTHEST;
            fits.then(|| leaf_range(least, most))
        };
        let size = |i: usize| -> Option<u64> {
            let (a, b) = leaves(i)?;
            let [x, y, z] = (b - a + 1).to_array().map(|n| n as u64);
            x.checked_mul(y)?.checked_mul(z)
        };
        let sizes: Option<u64> = (0..count)
            .map(size)
            .try_fold(0u64, |sum, size| sum.checked_add(size?));
        let most = (ENTRIES_EACH * count as u64).clamp(SOME_ENTRIES, MOST_ENTRIES);
        if sizes.is_none_or(|entries| entries > most) {
            return Err(
                "the points differ too much in size, or lie too far away, for voxels of one size: leave out the largest, or take \
                 a format of points, such as usd or ply"
                    .into(),
            );
        }
        let each = |i: usize| {
            let (a, b) = leaves(i).expect("counted before");
            let xs = (a.x..=b.x).flat_map(move |x| (a.y..=b.y).map(move |y| (x, y)));
            xs.flat_map(move |(x, y)| (a.z..=b.z).map(move |z| IVec3::new(x, y, z)))
                .map(move |leaf| (Key::of(leaf), i as u32))
        };
        let mut pairs: Vec<(Key, u32)> = (0..count).flat_map(each).collect();
        pairs.par_sort_unstable();
        let mut bins = Self {
            keys: Vec::new(),
            starts: Vec::new(),
            things: Vec::with_capacity(pairs.len()),
        };
        for (key, thing) in pairs {
            if bins.keys.last() != Some(&key) {
                bins.keys.push(key);
                bins.starts.push(bins.things.len());
            }
            bins.things.push(thing);
        }
        bins.starts.push(bins.things.len());
        Ok(bins)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn key(&self, leaf: usize) -> Key {
        self.keys[leaf]
    }

    /// What may touch a leaf.
    pub fn things(&self, leaf: usize) -> &[u32] {
        &self.things[self.starts[leaf]..self.starts[leaf + 1]]
    }
}

/// Bits of the slots of a node, as OpenVDB stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(pub Vec<u64>);

impl Mask {
    pub fn empty(bits: u32) -> Self {
        Self(vec![0; 1 << (3 * bits - 6)])
    }

    pub fn set(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    pub fn get(&self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

/// Which slots of a node lie outside: the known ones tell (inside at their first corner, at their last), the others follow
/// the one before them, as OpenVDB's own flood fill does.
pub fn outside(bits: u32, known: impl Fn(usize) -> Option<(bool, bool)>) -> Mask {
    let (edge, mut outside) = (1usize << bits, Mask::empty(bits));
    let first = (0..edge.pow(3)).find_map(&known);
    let mut at_x = first.is_some_and(|(first, _)| first);
    for x in 0..edge {
        let x_slot = x << (2 * bits);
        at_x = known(x_slot).map_or(at_x, |(_, last)| last);
        let mut at_y = at_x;
        for y in 0..edge {
            let y_slot = x_slot + (y << bits);
            at_y = known(y_slot).map_or(at_y, |(_, last)| last);
            let mut at_z = at_y;
            for slot in y_slot..y_slot + edge {
                at_z = known(slot).map_or(at_z, |(_, last)| last);
                if !at_z {
                    outside.set(slot);
                }
            }
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_know_their_places() {
        for leaf in [
            IVec3::ZERO,
            IVec3::new(-1, 513, -700),
            IVec3::splat(511),
            IVec3::new(15, 16, 17),
        ] {
            assert_eq!(Key::of(leaf).origin(), leaf * EDGE);
        }
        assert_eq!(voxel_slot(IVec3::new(1, 2, 3)), 64 + 16 + 3);
    }

    #[test]
    fn things_are_in_every_leaf_they_touch() {
        let bins = Bins::new(2, |i| (Vec3::splat(-1.0), Vec3::splat(i as f32 * 9.0))).expect("few");
        // Thing 0 reaches from −1 to 0, so eight leaves; thing 1 to 9, so 27.
        assert_eq!(bins.len(), 27);
        let both = (0..27).filter(|&leaf| bins.things(leaf) == [0, 1]).count();
        assert_eq!(both, 8);
        assert!(Bins::new(1, |_| (Vec3::splat(-1e8), Vec3::splat(1e8))).is_err());
        // One among many that is as large as two hundred leaves along each axis.
        let sizes = |i: usize| (Vec3::ZERO, Vec3::splat(if i == 0 { 1600.0 } else { 8.0 }));
        assert!(Bins::new(10_000, sizes).is_err());
        assert!(Bins::new(1, |_| (Vec3::ZERO, Vec3::splat(f32::NAN))).is_err());
    }

    #[test]
    fn what_is_between_walls_is_inside() {
        // A wall at z = 2 entering and at z = 5 leaving, everywhere.
        let known = |slot: usize| match slot % 8 {
            2 => Some((false, true)),
            5 => Some((true, false)),
            _ => None,
        };
        let outside = outside(LEAF_BITS, known);
        let row: Vec<bool> = (0..8).map(|z| outside.get(64 + z)).collect();
        assert_eq!(row, [true, true, false, false, false, true, true, true]);
    }
}
