//! Tens of millions of spheres, ready for rays: a sparse tree of cells, each with the spheres that touch it.
//!
//! A root covers 64³ cells and is found by index. Below it every node covers 4³ children and holds a bit for each that
//! is there, so that a ray strides over empty space in steps of 64, 16 or 4 cells. Rays cannot see deep into packed
//! grains: blocks with packed blocks all around them hold nothing and are opaque. That keeps the work and the memory
//! proportional to the surface.

use super::ray::Ray;
use barchan_base::Bounds;
use glam::{IVec3, UVec3, Vec3, Vec4};
use rayon::prelude::*;

/// Cells along the edge of a root.
pub(super) const ROOT: i32 = 64;
/// Cells along the edge of a block, the lowest node.
const BLOCK: i32 = 4;
/// Blocks along the edge of a root.
const BLOCKS: i32 = ROOT / BLOCK;
/// The most roots in the box around all grains, each four bytes.
const MOST_ROOTS: u64 = 1 << 22;
/// Grains' volume over the block's, from which on a block counts as packed: spheres touching on a lattice have 0.52.
const PACKED: f32 = 0.36;
/// Packed blocks that must lie on every side of an opaque one: 8 grains deep, one ray in a hundred comes through.
const DEEP: i32 = 2;
/// No root here.
const NONE: u32 = u32::MAX;

/// Spheres in a sparse tree of cells.
pub struct Grains {
    origin: Vec3,
    /// Edge of a cell [m].
    cell: f32,
    /// Roots along each axis.
    size: UVec3,
    table: Vec<u32>,
    roots: Vec<Root>,
    left_out: usize,
}

/// The tree of one root.
#[derive(Default)]
pub(super) struct Root {
    /// The top node, then the nodes below it, then the blocks.
    pub(super) nodes: Vec<Node>,
    /// Where each cell's spheres begin in `touching`; one more for the end.
    pub(super) starts: Vec<u32>,
    /// Indices into `spheres`.
    pub(super) touching: Vec<u32>,
    /// Centre and radius, in cells from the root's corner.
    pub(super) spheres: Vec<Vec4>,
    /// Index of each sphere among all grains.
    source: Vec<u32>,
}

/// 4³ children.
#[derive(Clone, Copy, Default)]
pub(super) struct Node {
    /// A bit for each child that is there.
    pub(super) mask: u64,
    /// A bit for each child that is opaque through and through.
    pub(super) opaque: u64,
    /// Index of the first child: a node, or in blocks a cell.
    pub(super) first: u32,
}

impl Node {
    /// Index of child `bit`, which must be there.
    pub(super) fn child(&self, bit: u32) -> usize {
        self.first as usize + (self.mask & ((1 << bit) - 1)).count_ones() as usize
    }
}

/// A grain that a ray meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrainHit {
    /// How far along the ray [m].
    pub t: f32,
    /// Unit normal.
    pub normal: Vec3,
    /// Which grain; none in the depth of packed grains.
    pub grain: Option<u32>,
}

/// What a place in the grid holds.
pub(super) enum Place<'a> {
    /// Nothing, in a cube of so many cells.
    Empty(i32),
    /// Packed grains.
    Opaque,
    /// Spheres of this root that touch the cell.
    Cell(&'a Root, &'a [u32]),
}

impl Grains {
    /// Sorts spheres, each a centre and a radius [m], into cells. What is not finite or lies absurdly far off is left
    /// out and counted.
    pub fn new(positions: &[Vec3], radius: impl Fn(usize) -> f32 + Sync) -> Self {
        let usable = |i: usize| {
            let radius = radius(i);
            positions[i].is_finite() && radius.is_finite() && radius > 0.0
        };
        let (bounds, cell) = frame_of(positions, &radius, &usable);
        if bounds.is_empty() {
            return Self {
                origin: Vec3::ZERO,
                cell: 1.0,
                size: UVec3::ZERO,
                table: Vec::new(),
                roots: Vec::new(),
                left_out: positions.len(),
            };
        }
        let origin = bounds.min - Vec3::splat(cell);
        let extent = (bounds.max - origin) / (cell * ROOT as f32);
        let size = (extent + 1.0).as_uvec3();
        let mut grains = Self {
            origin,
            cell,
            size,
            table: vec![NONE; (size.x * size.y * size.z) as usize],
            roots: Vec::new(),
            left_out: 0,
        };
        let sphere = |i: usize| {
            let local = (positions[i] - origin) / cell;
            local.extend(radius(i) / cell)
        };
        let (corners, lists) = grains.scatter(positions.len(), |i| {
            (usable(i) && bounds.contains(positions[i])).then(|| sphere(i))
        });
        let packed: Vec<Option<Box<PackedBlocks>>> = lists
            .par_iter()
            .zip(&corners)
            .map(|(list, corner)| packed_blocks(list, *corner, &sphere))
            .collect();
        let roots: Vec<Root> = lists
            .par_iter()
            .zip(&corners)
            .map(|(list, corner)| {
                let deep = grains.deep_blocks(*corner, &packed);
                super::grain_tree::build(list, *corner, &sphere, &deep)
            })
            .collect();
        grains.roots = roots;
        grains
    }

    /// Lists, for each root that any sphere touches, the spheres that do; with each root's corner in cells.
    fn scatter(
        &mut self,
        count: usize,
        sphere: impl Fn(usize) -> Option<Vec4>,
    ) -> (Vec<IVec3>, Vec<Vec<u32>>) {
        let (mut corners, mut counts) = (Vec::new(), Vec::<u32>::new());
        let mut each = |table: &mut Vec<u32>, i: usize, told: &mut dyn FnMut(usize)| -> bool {
            let Some(sphere) = sphere(i) else {
                return false;
            };
            let reach = Vec3::splat(sphere.w);
            let low = ((sphere.truncate() - reach) / ROOT as f32)
                .max(Vec3::ZERO)
                .as_ivec3();
            let high = ((sphere.truncate() + reach) / ROOT as f32).as_ivec3();
            let last = self.size.as_ivec3() - 1;
            for place in cube(low, high.min(last)) {
                let at = root_index(self.size, place);
                if table[at] == NONE {
                    table[at] = corners.len() as u32;
                    corners.push(place * ROOT);
                }
                told(table[at] as usize);
            }
            true
        };
        let mut left_out = 0;
        let mut table = std::mem::take(&mut self.table);
        for i in 0..count {
            let known = each(&mut table, i, &mut |root| {
                if root == counts.len() {
                    counts.push(0);
                }
                counts[root] += 1;
            });
            left_out += usize::from(!known);
        }
        let mut lists: Vec<Vec<u32>> = counts
            .iter()
            .map(|count| Vec::with_capacity(*count as usize))
            .collect();
        for i in 0..count {
            each(&mut table, i, &mut |root| lists[root].push(i as u32));
        }
        self.table = table;
        self.left_out = left_out;
        (corners, lists)
    }

    /// The blocks of a root that are packed and have packed ones all around.
    fn deep_blocks(&self, corner: IVec3, packed: &[Option<Box<PackedBlocks>>]) -> PackedBlocks {
        let mut deep = [0; 64];
        let first = corner / BLOCK;
        let own = match self.root_at(corner) {
            Some(root) if packed[root].is_some() => &packed[root],
            _ => return deep,
        };
        let is_packed = |block: IVec3| {
            let root = self.root_at(block * BLOCK);
            let blocks = root.and_then(|root| packed[root].as_deref());
            blocks.is_some_and(|blocks| {
                bit_of(
                    blocks,
                    block - block.div_euclid(IVec3::splat(BLOCKS)) * BLOCKS,
                )
            })
        };
        for local in cube(IVec3::ZERO, IVec3::splat(BLOCKS - 1)) {
            let block = first + local;
            let around = || cube(block - DEEP, block + DEEP).all(is_packed);
            if own.as_deref().is_some_and(|own| bit_of(own, local)) && around() {
                set_bit(&mut deep, local);
            }
        }
        deep
    }

    /// Which root covers `cell`.
    fn root_at(&self, cell: IVec3) -> Option<usize> {
        let place = cell.div_euclid(IVec3::splat(ROOT));
        let inside = place.cmpge(IVec3::ZERO).all() && place.cmplt(self.size.as_ivec3()).all();
        let root = if inside {
            self.table[root_index(self.size, place)]
        } else {
            NONE
        };
        (root != NONE).then_some(root as usize)
    }

    /// How many grains were left out.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// What is at `cell`, which must lie in the grid.
    #[inline]
    pub(super) fn place(&self, cell: IVec3) -> Place<'_> {
        let root = self.table[root_index(self.size, cell >> 6)];
        if root == NONE {
            return Place::Empty(ROOT);
        }
        let root = &self.roots[root as usize];
        let mut node = &root.nodes[0];
        for (shift, edge) in [(4, 16), (2, 4)] {
            let bit = child_bit(cell >> shift);
            if node.opaque >> bit & 1 == 1 {
                return Place::Opaque;
            }
            if node.mask >> bit & 1 == 0 {
                return Place::Empty(edge);
            }
            node = &root.nodes[node.child(bit)];
        }
        let bit = child_bit(cell);
        if node.mask >> bit & 1 == 0 {
            return Place::Empty(1);
        }
        let child = node.child(bit);
        let range = root.starts[child] as usize..root.starts[child + 1] as usize;
        Place::Cell(root, &root.touching[range])
    }

    /// The first grain that `ray` meets before `limit` [m].
    pub fn hit(&self, ray: &Ray, limit: f32) -> Option<GrainHit> {
        if self.roots.is_empty() {
            return None;
        }
        super::grain_walk::walk(self, ray, limit)
    }

    /// The grains whose spheres touch the cell of `point`: centre, radius [m] and index.
    pub fn near(&self, point: Vec3) -> impl Iterator<Item = (Vec3, f32, u32)> + '_ {
        let cell = ((point - self.origin) / self.cell).floor().as_ivec3();
        let inside = cell.cmpge(IVec3::ZERO).all() && cell.cmplt(self.size.as_ivec3() * ROOT).all();
        let found = match inside.then(|| self.place(cell)) {
            Some(Place::Cell(root, touching)) => Some((root, touching)),
            _ => None,
        };
        let corner = (cell & !(ROOT - 1)).as_vec3();
        found.into_iter().flat_map(move |(root, touching)| {
            touching.iter().map(move |&i| {
                let sphere = root.spheres[i as usize];
                let centre = (sphere.truncate() + corner) * self.cell + self.origin;
                (centre, sphere.w * self.cell, root.source[i as usize])
            })
        })
    }

    /// Corner of the grid [m], edge of a cell [m] and cells along each axis.
    pub(super) fn lattice(&self) -> (Vec3, f32, IVec3) {
        (self.origin, self.cell, self.size.as_ivec3() * ROOT)
    }
}

impl Root {
    /// Appends a sphere; returns its index.
    pub(super) fn add(&mut self, sphere: Vec4, source: u32) -> u32 {
        self.spheres.push(sphere);
        self.source.push(source);
        self.spheres.len() as u32 - 1
    }

    /// Index among all grains of sphere `i`.
    pub(super) fn source(&self, i: u32) -> u32 {
        self.source[i as usize]
    }
}

/// A bit for each block of a root.
pub(super) type PackedBlocks = [u64; 64];

fn block_number(block: IVec3) -> usize {
    ((block.z * BLOCKS + block.y) * BLOCKS + block.x) as usize
}

/// The bit of a block.
pub(super) fn bit_of(blocks: &PackedBlocks, block: IVec3) -> bool {
    let number = block_number(block);
    blocks[number / 64] >> (number % 64) & 1 == 1
}

fn set_bit(blocks: &mut PackedBlocks, block: IVec3) {
    let number = block_number(block);
    blocks[number / 64] |= 1 << (number % 64);
}

/// The packed blocks of a root; none if none is.
fn packed_blocks(
    list: &[u32],
    corner: IVec3,
    sphere: &impl Fn(usize) -> Vec4,
) -> Option<Box<PackedBlocks>> {
    let enough = PACKED * (BLOCK * BLOCK * BLOCK) as f32;
    // Too few grains to pack even one block: most roots of a spray.
    if list.len() < 8 {
        return None;
    }
    let mut volumes = vec![0f32; (BLOCKS * BLOCKS * BLOCKS) as usize];
    for &i in list {
        let sphere = sphere(i as usize);
        let cell = sphere.truncate().floor().as_ivec3() - corner;
        if cell.cmpge(IVec3::ZERO).all() && cell.cmplt(IVec3::splat(ROOT)).all() {
            let ball = 4.0 / 3.0 * std::f32::consts::PI * sphere.w.powi(3);
            volumes[block_number(cell / BLOCK)] += ball;
        }
    }
    let mut packed = Box::new([0; 64]);
    for block in cube(IVec3::ZERO, IVec3::splat(BLOCKS - 1)) {
        if volumes[block_number(block)] >= enough {
            set_bit(&mut packed, block);
        }
    }
    packed.iter().any(|word| *word != 0).then_some(packed)
}

/// Every place from `low` to `high`, both included.
pub(super) fn cube(low: IVec3, high: IVec3) -> impl Iterator<Item = IVec3> {
    (low.z..=high.z).flat_map(move |z| {
        (low.y..=high.y).flat_map(move |y| (low.x..=high.x).map(move |x| IVec3::new(x, y, z)))
    })
}

/// The bit of the child that `place`, in units of children, lies in.
#[inline]
fn child_bit(place: IVec3) -> u32 {
    ((place.z & 3) << 4 | (place.y & 3) << 2 | (place.x & 3)) as u32
}

#[inline]
fn root_index(size: UVec3, place: IVec3) -> usize {
    ((place.z as u32 * size.y + place.y as u32) * size.x + place.x as u32) as usize
}

/// The box to draw and the edge of a cell: about one grain wide.
fn frame_of(
    positions: &[Vec3],
    radius: &(impl Fn(usize) -> f32 + Sync),
    usable: &(impl Fn(usize) -> bool + Sync),
) -> (Bounds, f32) {
    let all = barchan_base::parallel::fold_chunks(
        positions.len(),
        (Bounds::EMPTY, 0f32),
        |range| {
            let usable = range.filter(|i| usable(*i));
            usable.fold((Bounds::EMPTY, 0f32), |(bounds, widest), i| {
                let point = Bounds {
                    min: positions[i],
                    max: positions[i],
                };
                (bounds.union(point), widest.max(radius(i)))
            })
        },
        |a, b| (a.0.union(b.0), a.1.max(b.1)),
    );
    let (bounds, widest) = all;
    if bounds.is_empty() {
        return (bounds, 1.0);
    }
    // A cell as wide as a grain of the mean volume, from a sample.
    let step = (positions.len() / 65_536).max(1);
    let sample: Vec<usize> = (0..positions.len())
        .step_by(step)
        .filter(|i| usable(*i))
        .collect();
    let cubes: f64 = sample.iter().map(|i| f64::from(radius(*i)).powi(3)).sum();
    let mean = (cubes / sample.len().max(1) as f64).cbrt() as f32;
    let cell = if mean > 0.0 { 2.0 * mean } else { 2.0 * widest };
    let bounds = bounds.grown(widest);
    let roots = |bounds: Bounds, cell: f32| {
        let extent = (bounds.size().as_dvec3() / f64::from(cell * ROOT as f32)).ceil() + 1.0;
        extent.x * extent.y * extent.z
    };
    if roots(bounds, cell) <= MOST_ROOTS as f64 {
        return (bounds, cell);
    }
    // A few grains have flown far off: draw where nearly all of them are, in larger cells if need be.
    let central = super::framing::central_bounds(sample.iter().map(|i| positions[*i]));
    let bounds = bounds.intersection(central.grown(4.0 * central.size().max_element() + widest));
    let mut cell = cell;
    while roots(bounds, cell) > MOST_ROOTS as f64 {
        cell *= 1.5;
    }
    (bounds, cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    fn cloud(count: u64, size: f32) -> Vec<Vec3> {
        let random = Random::new(5, 0);
        (0..count)
            .map(|i| (random.in_cube(i, 0) - 0.5) * size)
            .collect()
    }

    /// The first hit by asking every sphere.
    fn slow_hit(points: &[Vec3], radius: f32, ray: &Ray) -> Option<(f32, usize)> {
        let times = points.iter().enumerate().filter_map(|(i, point)| {
            let to = *point - ray.origin;
            let middle = to.dot(ray.direction);
            let aside = (to - ray.direction * middle).length_squared();
            let t = middle - (radius * radius - aside).sqrt();
            (t > 0.0).then_some((t, i))
        });
        times.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    #[test]
    fn rays_meet_the_sphere_that_a_search_of_all_finds() {
        for (count, size, radius) in [(1, 0.0, 0.1), (300, 3.0, 0.1), (3000, 200.0, 1.0)] {
            let points = cloud(count, size);
            let grains = Grains::new(&points, |_| radius);
            let random = Random::new(6, 0);
            let mut met = 0;
            for i in 0..2000 {
                let origin = (random.in_cube(i, 0) - 0.5) * (2.0 * size + 2.0);
                let target =
                    points[i as usize % points.len()] + (random.in_cube(i, 5) - 0.5) * radius;
                let Some(direction) = (target - origin).try_normalize() else {
                    continue;
                };
                let ray = Ray { origin, direction };
                let inside = points.iter().any(|point| point.distance(origin) < radius);
                let Some((t, index)) = slow_hit(&points, radius, &ray).filter(|_| !inside) else {
                    continue;
                };
                let hit = grains.hit(&ray, f32::INFINITY).expect("a sphere is there");
                assert!(
                    (hit.t - t).abs() < 2e-3 * radius + 1e-5 * t,
                    "{} for {t}",
                    hit.t
                );
                assert!(
                    hit.grain == Some(index as u32) || (hit.t - t).abs() < 1e-4 * radius.max(t)
                );
                met += 1;
            }
            assert!(met > 1000, "{met}");
        }
    }

    #[test]
    fn packed_grains_keep_only_their_skin() {
        let points: Vec<Vec3> = cube(IVec3::ZERO, IVec3::splat(99))
            .map(|cell| cell.as_vec3())
            .collect();
        let grains = Grains::new(&points, |_| 0.5);
        let kept: usize = grains.roots.iter().map(|root| root.spheres.len()).sum();
        assert!(kept < 700_000, "{kept} of a million");
        let down = Ray {
            origin: Vec3::new(50.2, 200.0, 50.1),
            direction: Vec3::NEG_Y,
        };
        let hit = grains.hit(&down, f32::INFINITY).unwrap();
        assert!(
            (hit.t - 100.55).abs() < 0.1 && hit.normal.y > 0.8,
            "{hit:?}"
        );
        // Even between the columns of this perfect lattice no ray comes through.
        let between = Ray {
            origin: Vec3::new(50.5, 200.0, 50.5),
            direction: Vec3::NEG_Y,
        };
        assert!(
            grains
                .hit(&between, f32::INFINITY)
                .is_some_and(|hit| hit.t < 120.0)
        );
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out_and_counted() {
        let mut points = cloud(100, 1.0);
        points[3].x = f32::NAN;
        points[9].y = f32::INFINITY;
        points.push(Vec3::splat(1e30));
        let grains = Grains::new(&points, |_| 0.05);
        assert_eq!(grains.left_out(), 3);
        assert_eq!(Grains::new(&[], |_| 1.0).left_out(), 0);
        let nothing = Grains::new(&[Vec3::NAN], |_| 1.0);
        let ray = Ray {
            origin: Vec3::ZERO,
            direction: Vec3::X,
        };
        assert_eq!((nothing.left_out(), nothing.hit(&ray, 1e9)), (1, None));
    }
}
