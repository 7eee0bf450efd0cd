//! A signed distance sampled finely in a band about its surface and coarsely elsewhere.
//!
//! Space is cut into blocks of 8³ cells. Blocks the band reaches hold 9³ node values and answer by trilinear
//! interpolation, second order in the cell size. The others answer from the block corners, and from the block's
//! measured error, so that they never overestimate. Memory grows with the surface.

use super::Surface;
use crate::Bounds;
use glam::{UVec3, Vec3};
use rayon::prelude::*;

/// Cells along a block's edge.
const BLOCK: u32 = 8;
/// Nodes along a block's edge; neighbours repeat their common face.
const NODES: u32 = BLOCK + 1;
pub(super) const NODES_PER_BLOCK: usize = (NODES * NODES * NODES) as usize;
/// Half the diagonal of a unit cube.
const HALF_DIAGONAL: f32 = 0.866_025_4;
/// Interpolation off by more than this part of a cell at its centre marks the cell as rough,
const ROUGH: f32 = 0.05;
/// if its centre is no more than this many cells from the surface.
const ROUGH_REACH: f32 = 1.5;

/// A narrow-band signed distance field.
#[derive(Clone, Debug)]
pub struct DistanceGrid {
    origin: Vec3,
    cell: f32,
    per_cell: f32,
    blocks: UVec3,
    /// Signed distance at block corners.
    corners: Vec<f32>,
    kinds: Vec<Block>,
    fine: Vec<FineBlock>,
}

#[derive(Clone, Copy, Debug)]
enum Block {
    /// Index into `fine`.
    Fine(u32),
    Coarse {
        /// By how much interpolation from the corners may overestimate [m].
        excess: f32,
        /// No point of the block is nearer to the surface than this [m]; negative inside.
        least: f32,
    },
}

#[derive(Clone, Debug)]
struct FineBlock {
    nodes: Box<[f32; NODES_PER_BLOCK]>,
    /// One bit a cell: interpolation is poor here.
    rough: [u64; 8],
}

/// What a grid samples: a signed distance at a point and, if there is a faster way, at the nodes of a whole block.
pub trait SignedDistance: Sync {
    /// Signed distance [m] at `point`.
    fn signed(&self, point: Vec3) -> f32;

    /// Distance [m] at `point`, without its sign.
    fn unsigned(&self, point: Vec3) -> f32 {
        self.signed(point).abs()
    }

    /// Signed distances at the nodes of `block`, x fastest; exact within the band, never too large beyond it. `None`
    /// if the band does not reach the block after all.
    fn nodes(&self, block: &NodeBlock) -> Option<Box<[f32; NODES_PER_BLOCK]>> {
        let mut values = Box::new([0.0; NODES_PER_BLOCK]);
        for (i, value) in values.iter_mut().enumerate() {
            *value = self.signed(block.place(i));
        }
        Some(values)
    }
}

impl<F: Fn(Vec3) -> f32 + Sync> SignedDistance for F {
    fn signed(&self, point: Vec3) -> f32 {
        self(point)
    }
}

/// A block of nodes to be sampled.
#[derive(Clone, Copy, Debug)]
pub struct NodeBlock {
    /// Place of its first node.
    pub origin: Vec3,
    /// Distance between nodes [m].
    pub cell: f32,
    /// Width of the band [m].
    pub band: f32,
}

impl NodeBlock {
    /// Nodes along an edge.
    pub const EDGE: usize = NODES as usize;

    /// Place of node `index`.
    pub fn place(&self, index: usize) -> Vec3 {
        self.origin + unflatten(index, UVec3::splat(NODES)).as_vec3() * self.cell
    }

    /// Box around its nodes.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            min: self.origin,
            max: self.origin + self.cell * BLOCK as f32,
        }
    }
}

/// Why a grid cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DistanceGridError {
    /// The box is empty or infinite.
    #[error("a distance grid needs a finite box")]
    Bounds,
    /// The cell size is not positive.
    #[error("the cell size must be positive, got {0} m")]
    CellSize(f32),
    /// Too fine for memory.
    #[error(
        "cells of {cell} m over {size} m make {blocks} blocks, more than the {most} that are sensible"
    )]
    TooFine {
        /// Cell size asked for [m].
        cell: f32,
        /// Longest edge of the box [m].
        size: f32,
        /// Blocks that would need.
        blocks: u64,
        /// Blocks allowed.
        most: u64,
    },
}

/// The most coarse blocks a grid may have: 1.6 GB of corners is a mistake in the cell size.
const MOST_BLOCKS: u64 = 1 << 24;

fn unflatten(index: usize, size: UVec3) -> UVec3 {
    let (x, y) = (size.x as usize, size.y as usize);
    UVec3::new(
        (index % x) as u32,
        (index / x % y) as u32,
        (index / x / y) as u32,
    )
}

fn flatten(at: UVec3, size: UVec3) -> usize {
    (at.x + size.x * (at.y + size.y * at.z)) as usize
}

/// Values at the corners of a cell, x fastest, and their trilinear interpolation.
#[derive(Clone, Copy)]
struct Trilinear([f32; 8]);

impl Trilinear {
    fn value(&self, f: Vec3) -> f32 {
        let c = &self.0;
        let mix = |a: f32, b: f32, t: f32| a + (b - a) * t;
        let low = mix(mix(c[0], c[1], f.x), mix(c[2], c[3], f.x), f.y);
        let high = mix(mix(c[4], c[5], f.x), mix(c[6], c[7], f.x), f.y);
        mix(low, high, f.z)
    }

    fn gradient(&self, f: Vec3) -> Vec3 {
        let c = &self.0;
        let mix = |a: f32, b: f32, t: f32| a + (b - a) * t;
        let face =
            |a: f32, b: f32, c: f32, d: f32, s: f32, t: f32| mix(mix(a, b, s), mix(c, d, s), t);
        Vec3::new(
            face(c[1] - c[0], c[3] - c[2], c[5] - c[4], c[7] - c[6], f.y, f.z),
            face(c[2] - c[0], c[3] - c[1], c[6] - c[4], c[7] - c[5], f.x, f.z),
            face(c[4] - c[0], c[5] - c[1], c[6] - c[2], c[7] - c[3], f.x, f.y),
        )
    }
}

impl DistanceGrid {
    /// Samples `distance` over `bounds` grown by the band: cells of `cell` [m], at least `band` cells either side.
    ///
    /// # Errors
    /// If the box is not finite, or the cell size is not positive or far too small for the box.
    pub fn sample(
        bounds: Bounds,
        cell: f32,
        band: f32,
        distance: impl SignedDistance,
    ) -> Result<Self, DistanceGridError> {
        if bounds.is_empty() || !bounds.is_finite() {
            return Err(DistanceGridError::Bounds);
        }
        if cell.is_nan() || cell <= 0.0 {
            return Err(DistanceGridError::CellSize(cell));
        }
        let bounds = bounds.grown((band + 1.0) * cell);
        let wanted = (bounds.size() / (cell * BLOCK as f32))
            .ceil()
            .max(Vec3::ONE)
            .as_dvec3();
        let count = wanted.x * wanted.y * wanted.z;
        if count > MOST_BLOCKS as f64 {
            return Err(DistanceGridError::TooFine {
                cell,
                size: bounds.size().max_element(),
                blocks: count as u64,
                most: MOST_BLOCKS,
            });
        }
        let mut grid = Self {
            origin: bounds.min,
            cell,
            per_cell: 1.0 / cell,
            blocks: wanted.as_uvec3(),
            corners: Vec::new(),
            kinds: Vec::new(),
            fine: Vec::new(),
        };
        grid.sample_corners(&distance);
        grid.sample_blocks(band, &distance);
        Ok(grid)
    }

    fn block_size(&self) -> f32 {
        self.cell * BLOCK as f32
    }

    fn sample_corners(&mut self, distance: &impl SignedDistance) {
        let size = self.blocks + 1;
        let (origin, step) = (self.origin, self.block_size());
        self.corners = (0..size.element_product() as usize)
            .into_par_iter()
            .map(|i| distance.signed(origin + unflatten(i, size).as_vec3() * step))
            .collect();
    }

    fn sample_blocks(&mut self, band: f32, distance: &impl SignedDistance) {
        let reach = HALF_DIAGONAL * self.block_size() + band * self.cell;
        let sampled: Vec<Result<FineBlock, Block>> = (0..self.blocks.element_product() as usize)
            .into_par_iter()
            .map(|i| {
                let at = unflatten(i, self.blocks);
                let origin = self.origin + at.as_vec3() * self.block_size();
                let exact = distance.unsigned(origin + 0.5 * self.block_size());
                let block = NodeBlock {
                    origin,
                    cell: self.cell,
                    band: band * self.cell,
                };
                if exact <= reach
                    && let Some(nodes) = distance.nodes(&block)
                {
                    return Ok(FineBlock::new(nodes, &block, distance));
                }
                let guess = self.block_corners(at).value(Vec3::splat(0.5));
                let least = exact - HALF_DIAGONAL * self.block_size();
                Err(Block::Coarse {
                    excess: (guess.abs() - exact).max(0.0),
                    least: if guess < 0.0 { -exact } else { least },
                })
            })
            .collect();
        for block in sampled {
            self.kinds.push(match block {
                Ok(fine) => {
                    self.fine.push(fine);
                    Block::Fine(self.fine.len() as u32 - 1)
                }
                Err(coarse) => coarse,
            });
        }
    }

    fn block_corners(&self, at: UVec3) -> Trilinear {
        let size = self.blocks + 1;
        Trilinear(std::array::from_fn(|i| {
            self.corners[flatten(at + corner(i), size)]
        }))
    }

    /// Cell size [m].
    pub fn cell(&self) -> f32 {
        self.cell
    }

    /// Signed distance [m] at `point`.
    pub fn distance(&self, point: Vec3) -> f32 {
        self.look(point, |corners, f, _| corners.value(f)).distance
    }

    /// True where the surface is surely further than `reach` [m] from `point`; may say false too often, never true.
    #[inline]
    pub fn is_beyond(&self, point: Vec3, reach: f32) -> bool {
        let local = (point - self.origin) * self.per_cell;
        let size = (self.blocks * BLOCK).as_vec3();
        if local.cmpge(Vec3::ZERO).all() && local.cmplt(size).all() {
            let at = local.as_uvec3() / BLOCK;
            if let Block::Coarse { least, .. } = self.kinds[flatten(at, self.blocks)]
                && least > reach
            {
                return true;
            }
        }
        self.distance(point) > reach
    }

    /// Signed distance [m] at `point`; `None` where interpolation is known to be poor near the surface: at edges, thin
    /// walls and holes.
    pub fn smooth_distance(&self, point: Vec3) -> Option<f32> {
        let look = self.look(point, |corners, f, _| corners.value(f));
        (!look.rough).then_some(look.distance)
    }

    /// Signed distance and normal at `point`; `None` where interpolation is known to be poor.
    pub fn smooth_surface(&self, point: Vec3) -> Option<Surface> {
        let mut slope = Vec3::ZERO;
        let look = self.look(point, |corners, f, scale| {
            slope = corners.gradient(f) / scale;
            corners.value(f)
        });
        let outward = if look.beyond == Vec3::ZERO {
            slope
        } else {
            let inside = (look.distance * look.distance - look.beyond.length_squared())
                .max(0.0)
                .sqrt();
            slope.normalize_or_zero() * inside + look.beyond
        };
        (!look.rough).then_some(Surface {
            distance: look.distance,
            normal: outward.normalize_or(Vec3::Y),
        })
    }

    /// Node places and values of the band, for tests.
    #[cfg(test)]
    fn band_nodes(&self) -> Vec<(Vec3, f32)> {
        let fine = |(i, kind): (usize, &Block)| match kind {
            Block::Fine(index) => Some((unflatten(i, self.blocks), &self.fine[*index as usize])),
            Block::Coarse { .. } => None,
        };
        let blocks = self.kinds.iter().enumerate().filter_map(fine);
        blocks
            .flat_map(|(at, block)| {
                block.nodes.iter().enumerate().map(move |(i, &value)| {
                    let index = (at * BLOCK + unflatten(i, UVec3::splat(NODES))).as_vec3();
                    (self.origin + index * self.cell, value)
                })
            })
            .collect()
    }

    /// Finds the values around `point` and lets `answer` interpolate them.
    #[inline]
    fn look(&self, point: Vec3, mut answer: impl FnMut(&Trilinear, Vec3, f32) -> f32) -> Look {
        let size = (self.blocks * BLOCK).as_vec3();
        let free = (point - self.origin) * self.per_cell;
        let local = free.clamp(Vec3::ZERO, size);
        let cell = local.as_uvec3().min(self.blocks * BLOCK - 1);
        let at = cell / BLOCK;
        let (value, rough) = match self.kinds[flatten(at, self.blocks)] {
            Block::Fine(index) => {
                let block = &self.fine[index as usize];
                let corners = block.cell(cell % BLOCK);
                (
                    answer(&corners, local - cell.as_vec3(), self.cell),
                    block.is_rough(cell % BLOCK),
                )
            }
            Block::Coarse { excess, .. } => {
                let f = local / BLOCK as f32 - at.as_vec3();
                let guess = answer(&self.block_corners(at), f, self.block_size());
                // A convex stretch of the field is overestimated most at the block's centre; twice that is safe.
                (
                    (guess.abs() - 2.0 * excess).max(self.cell).copysign(guess),
                    false,
                )
            }
        };
        if local == free {
            return Look {
                distance: value,
                beyond: Vec3::ZERO,
                rough,
            };
        }
        // Everything solid lies on the grid's side, at a right angle or more: Pythagoras bounds from below.
        let beyond = (free - local) * self.cell;
        Look {
            distance: (value * value + beyond.length_squared()).sqrt(),
            beyond,
            rough: false,
        }
    }
}

/// What the grid says at a point.
struct Look {
    distance: f32,
    /// How far the point lies beyond the grid.
    beyond: Vec3,
    rough: bool,
}

fn corner(i: usize) -> UVec3 {
    UVec3::new(i as u32 & 1, i as u32 >> 1 & 1, i as u32 >> 2 & 1)
}

impl FineBlock {
    fn new(
        nodes: Box<[f32; NODES_PER_BLOCK]>,
        place: &NodeBlock,
        distance: &impl SignedDistance,
    ) -> Self {
        let mut block = Self {
            nodes,
            rough: [0; 8],
        };
        // Where the surface may pass, see whether interpolation tells the truth at the cell's centre.
        for i in 0..512 {
            let index = unflatten(i, UVec3::splat(BLOCK));
            let guess = block.cell(index).value(Vec3::splat(0.5)).abs();
            if guess < ROUGH_REACH * place.cell {
                let exact = distance.unsigned(place.origin + (index.as_vec3() + 0.5) * place.cell);
                if (guess - exact).abs() > ROUGH * place.cell {
                    block.rough[i / 64] |= 1 << (i % 64);
                }
            }
        }
        block
    }

    fn is_rough(&self, cell: UVec3) -> bool {
        let bit = flatten(cell, UVec3::splat(BLOCK));
        self.rough[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn cell(&self, at: UVec3) -> Trilinear {
        let base = flatten(at, UVec3::splat(NODES));
        const Y: usize = NODES as usize;
        const Z: usize = Y * Y;
        let n = &self.nodes;
        Trilinear([
            n[base],
            n[base + 1],
            n[base + Y],
            n[base + Y + 1],
            n[base + Z],
            n[base + Z + 1],
            n[base + Z + Y],
            n[base + Z + Y + 1],
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::shape::Shape;

    fn sampled(shape: &Shape, cell: f32) -> DistanceGrid {
        DistanceGrid::sample(shape.bounds(), cell, 3.0, |p: Vec3| shape.distance(p)).unwrap()
    }

    fn shapes() -> Vec<Shape> {
        vec![
            Shape::Sphere { radius: 0.5 },
            Shape::Torus {
                major: 0.5,
                minor: 0.2,
            },
            Shape::Capsule {
                radius: 0.3,
                half_height: 0.3,
            },
            Shape::Cuboid {
                half: Vec3::new(0.4, 0.3, 0.5),
            },
            Shape::Cone {
                radius: 0.5,
                half_height: 0.4,
            },
        ]
    }

    #[test]
    fn nodes_of_the_band_are_exact_to_a_hundredth_of_a_cell() {
        for shape in shapes() {
            for cell in [0.05, 0.02] {
                for (place, value) in sampled(&shape, cell).band_nodes() {
                    assert!(
                        (value - shape.distance(place)).abs() < 0.01 * cell,
                        "{shape:?} at {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn interpolation_is_second_order_where_the_distance_is_smooth() {
        let random = Random::new(5, 0);
        for shape in [
            Shape::Sphere { radius: 0.5 },
            Shape::Torus {
                major: 0.5,
                minor: 0.2,
            },
        ] {
            let error = |cell: f32| {
                let grid = sampled(&shape, cell);
                let near = (0..40_000)
                    .map(|i| random.in_cube(i, 0) * 1.6 - 0.8)
                    .filter(|p| shape.distance(*p).abs() < 0.05);
                near.map(|p| (grid.distance(p) - shape.distance(p)).abs())
                    .fold(0.0f32, f32::max)
            };
            let (coarse, fine) = (error(0.04), error(0.02));
            let order = (coarse / fine).log2();
            println!(
                "{shape:?}: error {coarse:.2e} m on 4 cm cells, {fine:.2e} m on 2 cm, order {order:.2}"
            );
            assert!(
                order > 1.7 && order < 2.4,
                "{shape:?}: {coarse} then {fine}, order {order}"
            ); // 2 in the limit
        }
    }

    #[test]
    fn far_values_never_overestimate_and_keep_their_sign() {
        let random = Random::new(6, 0);
        for shape in shapes() {
            let grid = sampled(&shape, 0.01);
            for i in 0..20_000 {
                let point = random.in_cube(i, 0) * 4.0 - 2.0;
                let (found, exact) = (grid.distance(point), shape.distance(point));
                assert!(
                    found.abs() <= exact.abs() + 0.01,
                    "{shape:?} at {point}: {found} for {exact}"
                ); // a cell
                assert!(
                    exact.abs() < 0.01 || found.signum() == exact.signum(),
                    "{shape:?} at {point}"
                );
            }
        }
    }

    #[test]
    fn the_grid_holds_the_surface_not_the_volume() {
        let blocks = |cell: f32| {
            let grid = sampled(&Shape::Sphere { radius: 0.5 }, cell);
            (grid.fine.len(), grid.kinds.len())
        };
        let ((coarse, _), (fine, all)) = (blocks(0.01), blocks(0.005));
        let growth = fine as f64 / coarse as f64;
        assert!(growth < 5.0, "fine blocks grew {growth} times"); // 4 for a surface, 8 for a volume
        assert!(fine * 2 < all);
    }

    #[test]
    fn bad_requests_are_refused() {
        let unit = Bounds {
            min: Vec3::ZERO,
            max: Vec3::ONE,
        };
        let ask = |bounds, cell| DistanceGrid::sample(bounds, cell, 3.0, |_: Vec3| 1.0).err();
        assert_eq!(
            ask(Bounds::EVERYTHING, 0.1),
            Some(DistanceGridError::Bounds)
        );
        assert_eq!(ask(unit, 0.0), Some(DistanceGridError::CellSize(0.0)));
        assert!(matches!(
            ask(unit, 1e-6),
            Some(DistanceGridError::TooFine { .. })
        ));
    }
}
