//! OpenVDB files, version 224: header, then each grid with its tree of masks first and its numbers after, uncompressed but for
//! inactive values, which are not stored.

use super::tree::{Bins, EDGE, Key, LEAF_BITS, LOWER_BITS, Mask, UPPER_BITS, VOXELS, outside};
use glam::{IVec3, Vec3};
use rayon::prelude::*;
use std::io::{self, Seek, SeekFrom, Write};

const MAGIC: i64 = 0x5644_4220;
const FILE_VERSION: u32 = 224;
const LIBRARY_VERSION: [u32; 2] = [10, 0];
const HAS_OFFSETS: u8 = 1;
/// Of inactive values only whether they are inside is stored.
const COMPRESS_ACTIVE_MASK: u32 = 2;
/// Inactive values are the background.
const INACTIVE_IS_BACKGROUND: u8 = 0;
/// Inactive values are the background or its negative, as a mask says.
const INACTIVE_HAS_SIGN: u8 = 3;
/// Leaves made at once.
const BLOCK: usize = 2048;

/// What a voxel holds.
pub trait Value: Copy + Default + Send + Sync {
    const TREE: &'static str;
    fn put(self, to: &mut Vec<u8>);
    /// True inside a level set.
    fn is_inside(self) -> bool;
}

impl Value for f32 {
    const TREE: &'static str = "Tree_float_5_4_3";

    fn put(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }

    fn is_inside(self) -> bool {
        self < 0.0
    }
}

impl Value for Vec3 {
    const TREE: &'static str = "Tree_vec3s_5_4_3";

    fn put(self, to: &mut Vec<u8>) {
        to.extend(self.to_array().iter().flat_map(|v| v.to_le_bytes()));
    }

    fn is_inside(self) -> bool {
        false
    }
}

/// The numbers of a leaf, and which of them count.
pub struct Leaf<V> {
    pub active: Mask,
    pub values: [V; VOXELS],
}

impl<V: Value> Leaf<V> {
    pub fn filled(background: V) -> Self {
        Self {
            active: Mask::empty(LEAF_BITS),
            values: [background; VOXELS],
        }
    }

    fn outside(&self) -> Mask {
        outside(LEAF_BITS, |slot| {
            let inside = self.values[slot].is_inside();
            self.active.get(slot).then_some((inside, inside))
        })
    }
}

/// A field that can be asked leaf by leaf.
pub trait Field: Sync {
    type Value: Value;
    /// Name, and what OpenVDB calls its class.
    fn name(&self) -> (&'static str, &'static str);
    fn background(&self) -> Self::Value;
    /// True for distances, whose inactive voxels have a sign.
    fn is_level_set(&self) -> bool;
    /// The leaf with its first voxel at `origin`, made from `things`.
    fn leaf(&self, origin: IVec3, things: &[u32]) -> Leaf<Self::Value>;
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text.as_bytes());
}

/// Name and type of a piece of metadata, and its bytes.
pub type Metadata = (&'static str, &'static str, Vec<u8>);

fn metadata(to: &mut Vec<u8>, entries: &[Metadata]) {
    to.extend((entries.len() as u32).to_le_bytes());
    for (name, kind, value) in entries {
        text(to, name);
        text(to, kind);
        to.extend((value.len() as u32).to_le_bytes());
        to.extend(value);
    }
}

/// The start of a file of `grids` grids.
pub fn header(to: &mut impl Write, uuid: u128, about: &[Metadata], grids: u32) -> io::Result<()> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(FILE_VERSION.to_le_bytes());
    bytes.extend(LIBRARY_VERSION.iter().flat_map(|v| v.to_le_bytes()));
    bytes.push(HAS_OFFSETS);
    let hex = format!("{uuid:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    bytes.extend(parts.join("-").as_bytes());
    metadata(&mut bytes, about);
    bytes.extend(grids.to_le_bytes());
    to.write_all(&bytes)
}

/// Writes one grid with voxels of edge `voxel` [m].
pub fn grid<F: Field>(
    to: &mut (impl Write + Seek),
    field: &F,
    bins: &Bins,
    voxel: f64,
) -> io::Result<()> {
    let (name, class) = field.name();
    let mut head = Vec::new();
    text(&mut head, name);
    text(&mut head, F::Value::TREE);
    text(&mut head, ""); // not an instance of another grid
    to.write_all(&head)?;
    let offsets = to.stream_position()?;
    to.write_all(&[0; 24])?;
    let start = to.stream_position()?;

    let mut head = COMPRESS_ACTIVE_MASK.to_le_bytes().to_vec();
    metadata(
        &mut head,
        &[
            ("class", "string", class.into()),
            ("name", "string", name.into()),
        ],
    );
    text(&mut head, "UniformScaleMap");
    let scale = [
        voxel,
        voxel,
        1.0 / voxel,
        1.0 / (voxel * voxel),
        0.5 / voxel,
    ];
    head.extend(scale.iter().flat_map(|s| [s.to_le_bytes(); 3]).flatten());
    to.write_all(&head)?;
    let leaves = topology(to, field, bins)?;
    let buffers = to.stream_position()?;
    for block in leaves.chunks(BLOCK) {
        let bytes: Vec<Vec<u8>> = block
            .par_iter()
            .map(|&leaf| {
                let made = field.leaf(bins.key(leaf).origin(), bins.things(leaf));
                leaf_bytes(&made, field.is_level_set())
            })
            .collect();
        bytes.iter().try_for_each(|bytes| to.write_all(bytes))?;
    }
    let end = to.stream_position()?;
    to.seek(SeekFrom::Start(offsets))?;
    for place in [start, buffers, end] {
        to.write_all(&place.to_le_bytes())?;
    }
    to.seek(SeekFrom::Start(end))?;
    Ok(())
}

/// Inactive values of a node: nothing, or which of them are outside.
fn inactive(to: &mut Vec<u8>, outside: Option<&Mask>) {
    match outside {
        None => to.push(INACTIVE_IS_BACKGROUND),
        Some(mask) => {
            to.push(INACTIVE_HAS_SIGN);
            put_mask(to, mask);
        }
    }
}

fn put_mask(to: &mut Vec<u8>, mask: &Mask) {
    to.extend(mask.0.iter().flat_map(|word| word.to_le_bytes()));
}

fn leaf_bytes<V: Value>(leaf: &Leaf<V>, level_set: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_mask(&mut bytes, &leaf.active);
    inactive(&mut bytes, level_set.then(|| leaf.outside()).as_ref());
    for slot in (0..VOXELS).filter(|&slot| leaf.active.get(slot)) {
        leaf.values[slot].put(&mut bytes);
    }
    bytes
}

/// A node of the tree as its parent sees it: slot, whether its first and last voxels are inside, its bytes.
struct Node {
    slot: u16,
    ends: (bool, bool),
    bytes: Vec<u8>,
}

/// Writes the masks of the whole tree; the leaves that have something active, in order.
fn topology<F: Field>(to: &mut impl Write, field: &F, bins: &Bins) -> io::Result<Vec<usize>> {
    let mut kept: Vec<(usize, Key, Node)> = Vec::new();
    let all: Vec<usize> = (0..bins.len()).collect();
    for block in all.chunks(BLOCK) {
        let made = block.par_iter().filter_map(|&leaf| {
            let key = bins.key(leaf);
            let made = field.leaf(key.origin(), bins.things(leaf));
            if made.active.is_empty() {
                return None;
            }
            let outside = made.outside();
            let mut bytes = Vec::new();
            put_mask(&mut bytes, &made.active);
            let ends = (!outside.get(0), !outside.get(VOXELS - 1));
            let slot = key.leaf_slot;
            Some((leaf, key, Node { slot, ends, bytes }))
        });
        kept.extend(made.collect::<Vec<_>>());
    }
    let leaves = kept.iter().map(|(leaf, ..)| *leaf).collect();
    let mut uppers: Vec<([i32; 3], Vec<Node>)> = Vec::new();
    let mut lowers: Vec<(Key, Vec<Node>)> = Vec::new();
    for (_, key, node) in kept {
        let parent = Key {
            leaf_slot: 0,
            ..key
        };
        match lowers.last_mut() {
            Some((last, nodes)) if *last == parent => nodes.push(node),
            _ => lowers.push((parent, vec![node])),
        }
    }
    for (key, nodes) in lowers {
        let node = inner(LOWER_BITS, key.lower_slot, nodes, field.is_level_set());
        match uppers.last_mut() {
            Some((last, nodes)) if *last == key.upper => nodes.push(node),
            _ => uppers.push((key.upper, vec![node])),
        }
    }
    let mut root = 1u32.to_le_bytes().to_vec(); // one buffer
    field.background().put(&mut root);
    root.extend(0u32.to_le_bytes()); // no tiles
    root.extend((uppers.len() as u32).to_le_bytes());
    to.write_all(&root)?;
    for (number, nodes) in uppers {
        let origin = IVec3::from(number) * (32 * 16 * EDGE);
        let node = inner(UPPER_BITS, 0, nodes, field.is_level_set());
        to.write_all(bytemuck::cast_slice(&origin.to_array()))?;
        to.write_all(&node.bytes)?;
    }
    Ok(leaves)
}

/// An inner node with its children: masks, no values but the signs of what lies between, then the children's bytes.
fn inner(bits: u32, slot: u16, nodes: Vec<Node>, level_set: bool) -> Node {
    let mut children = Mask::empty(bits);
    let mut ends = vec![None; 1 << (3 * bits)];
    for node in &nodes {
        children.set(usize::from(node.slot));
        ends[usize::from(node.slot)] = Some(node.ends);
    }
    let outside = outside(bits, |slot| ends[slot]);
    let last = ends.len() - 1;
    let ends = (
        ends[0].map_or(!outside.get(0), |(first, _)| first),
        ends[last].map_or(!outside.get(last), |(_, last)| last),
    );
    let mut bytes = Vec::new();
    put_mask(&mut bytes, &children);
    put_mask(&mut bytes, &Mask::empty(bits)); // no active tiles
    inactive(&mut bytes, level_set.then_some(&outside));
    bytes.extend(nodes.into_iter().flat_map(|node| node.bytes));
    Node { slot, ends, bytes }
}
