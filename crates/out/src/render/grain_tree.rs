//! How the tree of one root is built: spheres to cells they touch, cells sorted, nodes from the sorted cells.

use super::grains::{Node, PackedBlocks, ROOT, Root, bit_of, cube};
use glam::{IVec3, Vec3, Vec4};

/// A cell's number within its root: two bits an axis and level, so that the cells of a node follow each other.
fn cell_number(cell: IVec3) -> u32 {
    let level = |shift: i32| {
        let local = (cell >> shift) & 3;
        ((local.z * 16 + local.y * 4 + local.x) as u32) << (3 * shift)
    };
    level(4) | level(2) | level(0)
}

/// Builds the tree of the root at `corner` from the spheres in `list`; `deep` blocks become opaque.
pub fn build(
    list: &[u32],
    corner: IVec3,
    sphere: &impl Fn(usize) -> Vec4,
    deep: &PackedBlocks,
) -> Root {
    let touches = sorted(touching_cells(list, corner, sphere, deep));
    let mut root = Root::default();
    let mut place_of = vec![u32::MAX; list.len()];
    let mut cells: Vec<u32> = Vec::new();
    for touch in &touches {
        let (number, local) = ((touch >> 32) as u32, *touch as u32 as usize);
        if cells.last() != Some(&number) {
            cells.push(number);
            root.starts.push(root.touching.len() as u32);
        }
        if place_of[local] == u32::MAX {
            let moved = sphere(list[local] as usize) - corner.as_vec3().extend(0.0);
            place_of[local] = root.add(moved, list[local]);
        }
        root.touching.push(place_of[local]);
    }
    root.starts.push(root.touching.len() as u32);
    root.nodes = nodes(&cells, deep);
    root
}

/// The cells that each sphere touches: cell number in the high half, place in `list` in the low one.
fn touching_cells(
    list: &[u32],
    corner: IVec3,
    sphere: &impl Fn(usize) -> Vec4,
    deep: &PackedBlocks,
) -> Vec<u64> {
    let mut touches = Vec::with_capacity(list.len());
    for (local, &i) in list.iter().enumerate() {
        let sphere = sphere(i as usize);
        let centre = sphere.truncate() - corner.as_vec3();
        let low = (centre - sphere.w).max(Vec3::ZERO).as_ivec3();
        let high = (centre + sphere.w).as_ivec3().min(IVec3::splat(ROOT - 1));
        for cell in cube(low, high) {
            let nearest = centre.clamp(cell.as_vec3(), cell.as_vec3() + Vec3::ONE);
            let near = nearest.distance_squared(centre) <= sphere.w * sphere.w;
            if near && !bit_of(deep, cell >> 2) {
                touches.push(u64::from(cell_number(cell)) << 32 | local as u64);
            }
        }
    }
    touches
}

/// Sorts by cell number, 18 bits, in two stable passes of 9.
fn sorted(mut touches: Vec<u64>) -> Vec<u64> {
    let mut other = vec![0; touches.len()];
    for shift in [32, 41] {
        let digit = |touch: u64| (touch >> shift & 511) as usize;
        let mut starts = [0usize; 513];
        for touch in &touches {
            starts[digit(*touch) + 1] += 1;
        }
        for i in 0..512 {
            starts[i + 1] += starts[i];
        }
        for touch in &touches {
            other[starts[digit(*touch)]] = *touch;
            starts[digit(*touch)] += 1;
        }
        std::mem::swap(&mut touches, &mut other);
    }
    touches
}

/// The nodes over sorted, distinct `cells`: the top one, those below it, the blocks; opaque where `deep` says so.
fn nodes(cells: &[u32], deep: &PackedBlocks) -> Vec<Node> {
    let mut opaque = vec![0u64; 64];
    for block in cube(IVec3::ZERO, IVec3::splat(15)) {
        if bit_of(deep, block) {
            let number = cell_number(block * 4) >> 6;
            opaque[(number >> 6) as usize] |= 1 << (number & 63);
        }
    }
    // Which middle nodes and blocks are there at all.
    let (mut top, mut middle) = (0u64, [0u64; 64]);
    for cell in cells {
        top |= 1 << (cell >> 12);
        middle[(cell >> 12) as usize] |= 1 << (cell >> 6 & 63);
    }
    for (number, opaque) in opaque.iter().enumerate() {
        top |= u64::from(*opaque != 0) << number;
    }
    let mut nodes = vec![Node {
        mask: top,
        opaque: 0,
        first: 1,
    }];
    let mut first = 1 + top.count_ones();
    for number in (0..64).filter(|number| top >> number & 1 == 1) {
        let mask = middle[number];
        nodes.push(Node {
            mask,
            opaque: opaque[number],
            first,
        });
        first += mask.count_ones();
    }
    for (index, cell) in cells.iter().enumerate() {
        let begins = index == 0 || cells[index - 1] >> 6 != cell >> 6;
        if begins {
            nodes.push(Node {
                mask: 0,
                opaque: 0,
                first: index as u32,
            });
        }
        let block = nodes.last_mut().expect("the top node is there");
        block.mask |= 1 << (cell & 63);
    }
    nodes
}
