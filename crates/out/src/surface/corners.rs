//! The triangles of a cell, by which of its eight corners are inside (after Lorensen & Cline 1987).
//!
//! The table is worked out, not copied, so that two rules hold. On a face whose inside corners lie across from each other they are
//! kept apart, whichever cell looks at it: surfaces are closed. No edge of a triangle crosses a face except along the
//! line where the surface meets it: every edge belongs to exactly two triangles.

use std::sync::LazyLock;

/// Corner `c` of a cell is at x = bit 0, y = bit 1, z = bit 2 of `c`. Edge `e` runs along axis `e / 4` from corner `FIRST[e]`.
pub const FIRST: [usize; 12] = [0, 2, 4, 6, 0, 1, 4, 5, 0, 1, 2, 3];

/// For each set of inside corners (a bit each): the triangles, as edges, counter-clockwise seen from outside.
pub static TRIANGLES: LazyLock<Vec<Vec<[u8; 3]>>> =
    LazyLock::new(|| (0..256).map(|inside| triangles(inside as u8)).collect());

fn edge(a: usize, b: usize) -> usize {
    let (first, axis) = (a.min(b), (a ^ b).trailing_zeros() as usize);
    4 * axis
        + (0..4)
            .find(|i| FIRST[4 * axis + i] == first)
            .expect("corners of an edge differ in one axis")
}

/// The corners of each face, counter-clockwise seen from outside the cell.
fn faces() -> impl Iterator<Item = [usize; 4]> {
    (0..6).map(|face| {
        let (axis, side) = (face / 2, face % 2);
        let (u, v) = (1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3));
        let base = side << axis;
        let ring = [base, base + u, base + u + v, base + v];
        if side == 1 {
            ring
        } else {
            [ring[3], ring[2], ring[1], ring[0]]
        }
    })
}

/// The closed lines along which the surface meets the faces, as edges in order.
fn loops(inside: u8) -> Vec<Vec<usize>> {
    let is_inside = |corner: usize| inside >> corner & 1 == 1;
    let mut next = [None; 12];
    for ring in faces() {
        for i in (0..4).filter(|i| is_inside(ring[*i]) && !is_inside(ring[(i + 1) % 4])) {
            // The line cuts off this run of inside corners: from where the run ends to where it began.
            let mut first = i;
            while is_inside(ring[(first + 3) % 4]) {
                first = (first + 3) % 4;
            }
            next[edge(ring[i], ring[(i + 1) % 4])] = Some(edge(ring[(first + 3) % 4], ring[first]));
        }
    }
    let mut loops = Vec::new();
    for start in 0..12 {
        let mut ring = Vec::new();
        let mut at = start;
        while let Some(following) = next[at].take() {
            ring.push(at);
            at = following;
        }
        if !ring.is_empty() {
            loops.push(ring);
        }
    }
    loops
}

fn share_a_face(a: usize, b: usize) -> bool {
    let on = |ring: &[usize; 4], e: usize| (0..4).any(|i| edge(ring[i], ring[(i + 1) % 4]) == e);
    faces().any(|ring| on(&ring, a) && on(&ring, b))
}

/// Cuts a loop into triangles without an inner edge on a face; `None` where that cannot be done.
fn cut(ring: &[usize]) -> Option<Vec<[u8; 3]>> {
    let count = ring.len();
    if count < 3 {
        return Some(Vec::new());
    }
    // The triangle on the side from the last to the first, then what it leaves to its left and right.
    let (first, last) = (ring[0], ring[count - 1]);
    (1..count - 1).find_map(|middle| {
        let inner = |a: usize, b: usize, apart: bool| apart && share_a_face(a, b);
        if inner(first, ring[middle], middle > 1) || inner(ring[middle], last, middle < count - 2) {
            return None;
        }
        let mut triangles = cut(&ring[..=middle])?;
        triangles.extend(cut(&ring[middle..])?);
        // The loop runs clockwise seen from outside.
        triangles.push([first, last, ring[middle]].map(|e| e as u8));
        Some(triangles)
    })
}

fn triangles(inside: u8) -> Vec<[u8; 3]> {
    let cuts = loops(inside)
        .into_iter()
        .flat_map(|ring| cut(&ring).expect("every loop can be cut: a test goes through them all"));
    cuts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_case_can_be_cut_and_meets_its_edges_once_around() {
        for inside in 0..=255u8 {
            let triangles = &TRIANGLES[inside as usize];
            let crossing = |e: &usize| {
                let (a, axis) = (FIRST[*e], e / 4);
                (inside >> a & 1) != (inside >> (a + (1 << axis)) & 1)
            };
            let used: std::collections::BTreeSet<usize> =
                triangles.iter().flatten().map(|e| *e as usize).collect();
            assert_eq!(used, (0..12).filter(crossing).collect());
            // Inner sides are there in both directions; the rest are the lines on the faces.
            let mut sides = BTreeMap::new();
            for [a, b, c] in triangles {
                for side in [(a, b), (b, c), (c, a)] {
                    *sides.entry(side).or_insert(0) += 1;
                }
            }
            for ((a, b), count) in &sides {
                assert_eq!(*count, 1);
                if sides.contains_key(&(*b, *a)) {
                    assert!(!share_a_face(**a as usize, **b as usize), "case {inside}");
                } else {
                    assert!(share_a_face(**a as usize, **b as usize), "case {inside}");
                }
            }
        }
    }

    #[test]
    fn one_corner_is_cut_off_facing_outward() {
        assert_eq!(TRIANGLES[1].len(), 1);
        let [a, b, c] = TRIANGLES[1][0].map(|e| glam::Vec3::AXES[e as usize / 4]);
        assert!((b - a).cross(c - a).dot(glam::Vec3::ONE) > 0.0);
    }
}
