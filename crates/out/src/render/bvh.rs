//! Triangles, ready for rays: a tree of boxes with four children a node, so that four boxes or triangles are tested at once.

use super::ray::Ray;
use glam::{Vec3, Vec4};

/// Bins along an axis when looking for the best cut.
const BINS: usize = 16;
/// Triangles from which on both sides of a cut are built at the same time.
const SHARED: usize = 8192;
/// Children that are leaves have this bit; the rest is the number of a pack.
const LEAF: u32 = 1 << 31;
/// No child.
const NONE: u32 = u32::MAX;
/// Deepest pile of nodes waiting; trees of 2³² triangles stay below it.
const STACK: usize = 192;

/// A tree of boxes over triangles.
pub struct Bvh {
    nodes: Vec<Node>,
    packs: Vec<Pack>,
}

/// Boxes of four children, an axis a vector.
#[derive(Clone, Copy)]
struct Node {
    min: [Vec4; 3],
    max: [Vec4; 3],
    children: [u32; 4],
}

/// Four triangles: a corner and two edges, an axis a vector. Empty places have no area and are never met.
#[derive(Clone, Copy)]
struct Pack {
    corner: [Vec4; 3],
    edge1: [Vec4; 3],
    edge2: [Vec4; 3],
    triangles: [u32; 4],
}

/// A triangle that a ray meets.
#[derive(Clone, Copy, Debug)]
pub struct TriangleHit {
    /// How far along the ray [m].
    pub t: f32,
    /// Which triangle.
    pub triangle: u32,
    /// Weights of its second and third corner.
    pub weights: [f32; 2],
}

#[derive(Clone, Copy)]
struct Box3 {
    min: Vec3,
    max: Vec3,
}

impl Box3 {
    const EMPTY: Self = Self {
        min: Vec3::INFINITY,
        max: Vec3::NEG_INFINITY,
    };

    fn join(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn area(self) -> f32 {
        let size = (self.max - self.min).max(Vec3::ZERO);
        size.x * size.y + size.y * size.z + size.z * size.x
    }
}

/// A triangle while the tree is built.
#[derive(Clone, Copy)]
struct Item {
    bounds: Box3,
    middle: Vec3,
    triangle: u32,
}

/// The tree while it is built: two children a node.
enum Branch {
    Leaf(Vec<u32>),
    Fork(Box<[(Box3, Branch); 2]>),
}

impl Bvh {
    /// Builds the tree over `triangles` with corners in `positions`; indices must be in range.
    pub fn new(positions: &[Vec3], triangles: &[[u32; 3]]) -> Self {
        let corners = |triangle: u32| triangles[triangle as usize].map(|i| positions[i as usize]);
        let mut items: Vec<Item> = (0..triangles.len() as u32)
            .filter(|triangle| corners(*triangle).iter().all(|corner| corner.is_finite()))
            .map(|triangle| {
                let [a, b, c] = corners(triangle);
                let bounds = Box3 {
                    min: a.min(b).min(c),
                    max: a.max(b).max(c),
                };
                Item {
                    bounds,
                    middle: 0.5 * (bounds.min + bounds.max),
                    triangle,
                }
            })
            .collect();
        let mut bvh = Self {
            nodes: Vec::new(),
            packs: Vec::new(),
        };
        if !items.is_empty() {
            let (bounds, branch) = split(&mut items, 0);
            // The root is always a node, even over a single leaf.
            bvh.node(vec![(bounds, branch)], &corners);
        }
        bvh
    }

    /// Adds a node over up to four branches, opening the largest forks until there are four; returns its number.
    fn node(
        &mut self,
        mut branches: Vec<(Box3, Branch)>,
        corners: &impl Fn(u32) -> [Vec3; 3],
    ) -> u32 {
        while branches.len() < 4 {
            let forks = branches
                .iter()
                .enumerate()
                .filter(|(_, b)| matches!(b.1, Branch::Fork(_)));
            let largest = forks
                .max_by(|a, b| a.1.0.area().total_cmp(&b.1.0.area()))
                .map(|(i, _)| i);
            let Some(largest) = largest else { break };
            if let (_, Branch::Fork(pair)) = branches.swap_remove(largest) {
                branches.extend(*pair);
            }
        }
        let number = self.nodes.len();
        let mut node = Node {
            min: [Vec4::INFINITY; 3],
            max: [Vec4::NEG_INFINITY; 3],
            children: [NONE; 4],
        };
        self.nodes.push(node);
        for (lane, (bounds, branch)) in branches.into_iter().enumerate() {
            for axis in 0..3 {
                node.min[axis][lane] = bounds.min[axis];
                node.max[axis][lane] = bounds.max[axis];
            }
            node.children[lane] = match branch {
                Branch::Leaf(triangles) => {
                    self.packs.push(pack(&triangles, corners));
                    LEAF | (self.packs.len() as u32 - 1)
                }
                Branch::Fork(pair) => self.node(Vec::from(*pair), corners),
            };
        }
        self.nodes[number] = node;
        number as u32
    }

    /// The nearest triangle between `from` and `limit` [m].
    pub fn hit(&self, ray: &Ray, from: f32, limit: f32) -> Option<TriangleHit> {
        let mut best = None;
        self.visit(ray, from, limit, |hit| {
            best = Some(hit);
            hit.t
        });
        best
    }

    /// True where any triangle lies between `from` and `limit` [m].
    pub fn is_hit(&self, ray: &Ray, from: f32, limit: f32) -> bool {
        let mut found = false;
        self.visit(ray, from, limit, |_| {
            found = true;
            f32::NEG_INFINITY
        });
        found
    }

    /// Tells `met` of triangles nearer than all before; it answers how far to look on.
    fn visit(&self, ray: &Ray, from: f32, limit: f32, mut met: impl FnMut(TriangleHit) -> f32) {
        if self.nodes.is_empty() {
            return;
        }
        let inverse = ray.direction.recip();
        let mut limit = limit;
        let mut stack = [(0u32, 0f32); STACK];
        let mut depth = 1;
        stack[0] = (0, from);
        while depth > 0 {
            depth -= 1;
            let (child, entry) = stack[depth];
            if entry > limit {
                continue;
            }
            if child & LEAF != 0 {
                if let Some(hit) = self.packs[(child & !LEAF) as usize].hit(ray, from, limit) {
                    limit = met(hit);
                }
                continue;
            }
            let node = &self.nodes[child as usize];
            let entries = node.entries(ray.origin, inverse, from, limit);
            // Furthest first onto the stack, so that the nearest is next.
            let first = depth;
            for (child, entry) in node.children.into_iter().zip(entries) {
                if entry.is_finite() && child != NONE {
                    let mut at = depth;
                    while at > first && stack[at - 1].1 < entry {
                        stack[at] = stack[at - 1];
                        at -= 1;
                    }
                    stack[at] = (child, entry);
                    depth += 1;
                }
            }
        }
    }
}

impl Node {
    /// Where the ray enters each child's box; infinite where it does not.
    #[inline]
    fn entries(&self, origin: Vec3, inverse: Vec3, from: f32, limit: f32) -> [f32; 4] {
        let (mut near, mut far) = (Vec4::splat(from), Vec4::splat(limit));
        for axis in 0..3 {
            let (start, scale) = (Vec4::splat(origin[axis]), Vec4::splat(inverse[axis]));
            let (low, high) = if inverse[axis] >= 0.0 {
                (self.min[axis], self.max[axis])
            } else {
                (self.max[axis], self.min[axis])
            };
            near = ((low - start) * scale).max(near);
            far = ((high - start) * scale).min(far);
        }
        // A box as thin as its triangle must not be missed by rounding.
        Vec4::select(near.cmple(far * 1.000_001), near, Vec4::INFINITY).to_array()
    }
}

impl Pack {
    /// The nearest of the four triangles (Möller & Trumbore 1997).
    #[inline]
    fn hit(&self, ray: &Ray, from: f32, limit: f32) -> Option<TriangleHit> {
        let direction = ray.direction.to_array().map(Vec4::splat);
        let origin = ray.origin.to_array().map(Vec4::splat);
        let p = cross(direction, self.edge2);
        let inverse = dot(self.edge1, p).recip();
        let to: [Vec4; 3] = std::array::from_fn(|axis| origin[axis] - self.corner[axis]);
        let u = dot(to, p) * inverse;
        let q = cross(to, self.edge1);
        let v = dot(direction, q) * inverse;
        let t = dot(self.edge2, q) * inverse;
        let inside = u.cmpge(Vec4::ZERO)
            & v.cmpge(Vec4::ZERO)
            & (u + v).cmple(Vec4::ONE)
            & t.cmpgt(Vec4::splat(from))
            & t.cmplt(Vec4::splat(limit));
        if !inside.any() {
            return None;
        }
        let times = Vec4::select(inside, t, Vec4::INFINITY).to_array();
        let nearest = (1..4).fold(0, |a, b| if times[b] < times[a] { b } else { a });
        Some(TriangleHit {
            t: times[nearest],
            triangle: self.triangles[nearest],
            weights: [u[nearest], v[nearest]],
        })
    }
}

fn cross(a: [Vec4; 3], b: [Vec4; 3]) -> [Vec4; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn dot(a: [Vec4; 3], b: [Vec4; 3]) -> Vec4 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn pack(triangles: &[u32], corners: &impl Fn(u32) -> [Vec3; 3]) -> Pack {
    let mut pack = Pack {
        corner: [Vec4::ZERO; 3],
        edge1: [Vec4::ZERO; 3],
        edge2: [Vec4::ZERO; 3],
        triangles: [NONE; 4],
    };
    for (lane, triangle) in triangles.iter().enumerate() {
        let [a, b, c] = corners(*triangle);
        for axis in 0..3 {
            pack.corner[axis][lane] = a[axis];
            pack.edge1[axis][lane] = b[axis] - a[axis];
            pack.edge2[axis][lane] = c[axis] - a[axis];
        }
        pack.triangles[lane] = *triangle;
    }
    pack
}

/// Cuts `items` in two where the surface area heuristic is least, down to four triangles a leaf.
fn split(items: &mut [Item], depth: u32) -> (Box3, Branch) {
    let bounds = items
        .iter()
        .fold(Box3::EMPTY, |all, item| all.join(item.bounds));
    if items.len() <= 4 {
        return (
            bounds,
            Branch::Leaf(items.iter().map(|item| item.triangle).collect()),
        );
    }
    let middles = items.iter().fold(Box3::EMPTY, |all, item| {
        all.join(Box3 {
            min: item.middle,
            max: item.middle,
        })
    });
    let at = match best_cut(items, middles) {
        // Very deep or all in one place: halve the list and be done.
        Some((axis, bin)) if depth < 48 => {
            let below = |item: &Item| bin_of(item.middle, middles, axis) <= bin;
            partition(items, below)
        }
        _ => items.len() / 2,
    };
    let (left, right) = items.split_at_mut(at);
    let (a, b) = if left.len() + right.len() >= SHARED {
        rayon::join(|| split(left, depth + 1), || split(right, depth + 1))
    } else {
        (split(left, depth + 1), split(right, depth + 1))
    };
    (bounds, Branch::Fork(Box::new([a, b])))
}

fn bin_of(middle: Vec3, middles: Box3, axis: usize) -> usize {
    let size = middles.max[axis] - middles.min[axis];
    let at = (middle[axis] - middles.min[axis]) / size * BINS as f32;
    (at as usize).min(BINS - 1)
}

/// Axis and last bin of the left side of the cheapest cut; none if all lie in one place.
fn best_cut(items: &[Item], middles: Box3) -> Option<(usize, usize)> {
    let mut best = None;
    let mut least = f32::INFINITY;
    for axis in (0..3).filter(|axis| middles.max[*axis] > middles.min[*axis]) {
        let mut bins = [(Box3::EMPTY, 0u32); BINS];
        for item in items {
            let bin = &mut bins[bin_of(item.middle, middles, axis)];
            *bin = (bin.0.join(item.bounds), bin.1 + 1);
        }
        let mut right = [0f32; BINS];
        let (mut bounds, mut count) = (Box3::EMPTY, 0);
        for i in (1..BINS).rev() {
            (bounds, count) = (bounds.join(bins[i].0), count + bins[i].1);
            right[i] = bounds.area() * count as f32;
        }
        (bounds, count) = (Box3::EMPTY, 0);
        for (i, bin) in bins.iter().enumerate().take(BINS - 1) {
            (bounds, count) = (bounds.join(bin.0), count + bin.1);
            let cost = bounds.area() * count as f32 + right[i + 1];
            let both = count > 0 && (count as usize) < items.len();
            if both && cost < least {
                (best, least) = (Some((axis, i)), cost);
            }
        }
    }
    best
}

/// Moves the items that are `below` to the front; returns how many.
fn partition(items: &mut [Item], below: impl Fn(&Item) -> bool) -> usize {
    let mut end = 0;
    for i in 0..items.len() {
        if below(&items[i]) {
            items.swap(i, end);
            end += 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    #[test]
    fn rays_meet_the_triangle_that_a_search_of_all_finds() {
        let random = Random::new(3, 1);
        let positions: Vec<Vec3> = (0..3000)
            .map(|i| random.in_cube(i / 3, 0) * 4.0 + (random.in_cube(i, 4) - 0.5) * 0.6)
            .collect();
        let triangles: Vec<[u32; 3]> = (0..1000).map(|i| [3 * i, 3 * i + 1, 3 * i + 2]).collect();
        let bvh = Bvh::new(&positions, &triangles);
        let lone = |i: usize| Bvh::new(&positions, &triangles[i..=i]);
        let each: Vec<Bvh> = (0..1000).map(lone).collect();
        let mut met = 0;
        for i in 0..1500 {
            let origin = random.in_cube(i, 10) * 8.0 - 2.0;
            let direction = random.in_cone(Vec3::Y, std::f32::consts::PI, i, 20);
            let ray = Ray { origin, direction };
            let hits = each
                .iter()
                .filter_map(|one| one.hit(&ray, 0.0, 1e9).map(|hit| hit.t));
            let slow = hits.min_by(f32::total_cmp);
            let quick = bvh.hit(&ray, 0.0, 1e9).map(|hit| hit.t);
            assert_eq!(quick.map(f32::to_bits), slow.map(f32::to_bits), "{ray:?}");
            assert_eq!(bvh.is_hit(&ray, 0.0, 1e9), slow.is_some());
            met += usize::from(slow.is_some());
        }
        assert!(met > 100, "{met}");
    }

    #[test]
    fn no_triangles_are_never_met() {
        let ray = Ray {
            origin: Vec3::ZERO,
            direction: Vec3::X,
        };
        assert!(!Bvh::new(&[], &[]).is_hit(&ray, 0.0, 1e9));
        let points = [Vec3::NAN, Vec3::X, Vec3::Y];
        assert!(!Bvh::new(&points, &[[0, 1, 2]]).is_hit(&ray, 0.0, 1e9));
    }
}
