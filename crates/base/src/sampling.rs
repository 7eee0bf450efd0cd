//! Points inside a shape: on a lattice, jittered from it, or as blue noise. The same seed gives the same points.

use crate::Bounds;
use crate::random::Random;
use crate::shape::Shape;
use glam::{IVec3, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;

/// How points are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// At the centres of cubes.
    Lattice,
    /// One at a random place in each cube, as Zhu & Bridson (2005) seed the eight cubes of a grid cell.
    Jittered,
    /// Random, but none nearer than 0.87 of the spacing to another.
    BlueNoise,
    /// Jittered, and those within a cell of two spacings below the surface moved to half a cell below it.
    Settled,
}

/// Why a shape cannot be filled.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FillError {
    /// A ground or plane has no end.
    #[error("the shape has no end: only bounded shapes can be filled")]
    Unbounded,
    /// More points than can be numbered or held.
    #[error("about {0:.2e} points would be needed")]
    TooMany(f64),
}

/// The most points one fill may have.
pub const MOST_POINTS: f64 = 4.0e9;
/// The most cubes that a fill may reach into: a sheet without thickness has few points and no end of these.
const MOST_CUBES: usize = 1 << 28;

/// Points inside `shape`, `spacing` [m] apart; one a cube of that edge on average.
///
/// # Errors
/// If the shape is unbounded or would need more than [`MOST_POINTS`].
pub fn fill(
    shape: &Shape,
    spacing: f32,
    layout: Layout,
    random: Random,
) -> Result<Vec<Vec3>, FillError> {
    let bounds = shape.bounds();
    if bounds.is_empty() {
        return Ok(Vec::new());
    }
    if !bounds.is_finite() {
        return Err(FillError::Unbounded);
    }
    let cells = (bounds.size() / spacing).as_dvec3() + 1.0;
    // Cubes are numbered by 32-bit coordinates; shapes far larger than their spacing are refused before that ends.
    if cells.max_element() > 1e9
        || shape.estimate_volume() / f64::from(spacing).powi(3) > MOST_POINTS
    {
        return Err(FillError::TooMany(
            shape.estimate_volume() / f64::from(spacing).powi(3),
        ));
    }
    match layout {
        Layout::Lattice => lattice(shape, bounds, spacing, |_| Vec3::splat(0.5)),
        Layout::Jittered => jittered(shape, bounds, spacing, random),
        Layout::Settled => {
            let mut points = jittered(shape, bounds, spacing, random)?;
            settle_near_surface(shape, 2.0 * spacing, &mut points);
            Ok(points)
        }
        Layout::BlueNoise => blue_noise(shape, bounds, spacing, random),
    }
}

fn jittered(
    shape: &Shape,
    bounds: Bounds,
    spacing: f32,
    random: Random,
) -> Result<Vec<Vec3>, FillError> {
    lattice(shape, bounds, spacing, |cube| {
        random.in_cube(cube_index(cube), 0)
    })
}

/// A number for a cube, the same wherever the shape's bounds begin.
fn cube_index(cube: IVec3) -> u64 {
    let part = |x: i32| u64::from(x as u32);
    part(cube.x)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(part(cube.y))
        .wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
        .wrapping_add(part(cube.z))
}

/// Cubes along the edge of the blocks that are accepted or skipped together.
const BLOCK: i32 = 8;

/// One candidate a cube, at `place` in it; those inside the shape are kept, in block order.
fn lattice(
    shape: &Shape,
    bounds: Bounds,
    spacing: f32,
    place: impl Fn(IVec3) -> Vec3 + Sync,
) -> Result<Vec<Vec3>, FillError> {
    let first = (bounds.min / spacing).floor().as_ivec3();
    let last = (bounds.max / spacing).floor().as_ivec3();
    let blocks = near((last - first) / BLOCK + 1, |block, edge| {
        let (corner, edge) = (first + block * BLOCK, (edge * BLOCK) as f32);
        shape.distance((corner.as_vec3() + 0.5 * edge) * spacing) <= HALF_DIAGONAL * edge * spacing
    })?;
    let found: Vec<Vec<Vec3>> = blocks
        .into_par_iter()
        .map(|block| {
            let corner = first + block * BLOCK;
            cubes_of_block()
                .map(|offset| corner + offset)
                .map(|cube| (cube.as_vec3() + place(cube)) * spacing)
                .filter(|point| shape.contains(*point))
                .collect()
        })
        .collect();
    Ok(found.concat())
}

/// Half the diagonal of a cube over its edge, rounded up.
const HALF_DIAGONAL: f32 = 0.867;

/// The cells of a box of `size` cells where something may be, row by row: found by halving and halving again cubes of
/// cells, with a first cell and an edge, that `is_near`.
fn near(size: IVec3, is_near: impl Fn(IVec3, i32) -> bool + Sync) -> Result<Vec<IVec3>, FillError> {
    let mut edge = (size.max_element() as u32).next_power_of_two();
    let mut cubes = vec![IVec3::ZERO];
    while edge > 1 && cubes.len() <= MOST_CUBES {
        edge /= 2;
        let half = edge as i32;
        let halves =
            |cube: IVec3| (0..8).map(move |i| cube + half * IVec3::new(i & 1, i >> 1 & 1, i >> 2));
        cubes = cubes
            .into_par_iter()
            .flat_map_iter(halves)
            .filter(|cube| cube.cmplt(size).all() && is_near(*cube, half))
            .collect();
    }
    if cubes.len() > MOST_CUBES {
        return Err(FillError::TooMany(cubes.len() as f64));
    }
    cubes.par_sort_unstable_by_key(|cube| (cube.z, cube.y, cube.x));
    Ok(cubes)
}

fn cubes_of_block() -> impl Iterator<Item = IVec3> {
    (0..BLOCK.pow(3)).map(|i| IVec3::new(i % BLOCK, i / BLOCK % BLOCK, i / BLOCK / BLOCK))
}

/// Least distance of blue-noise points over their mean spacing, so that [`TRIES`] darts a cell give one point a cube.
pub const DISK: f32 = 0.872;
/// Darts thrown at each cell.
const TRIES: u32 = 16;
/// Cells of one colour are this far apart, so that their darts cannot meet.
const COLOURS: i32 = 3;

/// Poisson-disk sampling by parallel dart throwing (Wei 2008): cells too small for two points, visited colour by colour.
fn blue_noise(
    shape: &Shape,
    bounds: Bounds,
    spacing: f32,
    random: Random,
) -> Result<Vec<Vec3>, FillError> {
    let disk = DISK * spacing;
    let cell = disk / 3f32.sqrt();
    let size = (bounds.size() / cell).ceil().max(Vec3::ONE).as_ivec3();
    let corner = |at: IVec3| bounds.min + at.as_vec3() * cell;
    let cells = near(size, |at, edge| {
        let edge = edge as f32 * cell;
        shape.distance(corner(at) + 0.5 * edge) < HALF_DIAGONAL * edge
    })?;
    let mut taken = Taken::new(&cells);
    let mut colours = by_colour(&cells);
    for dart in 0..TRIES {
        for colour in &mut colours {
            let throw = |at: &IVec3| {
                let point = corner(*at) + random.in_cube(number(*at, size), 3 * dart) * cell;
                let is_far = |p: Vec3| p.distance(point) >= disk;
                (shape.contains(point) && taken.around(*at).all(is_far)).then_some(point)
            };
            let hits: Vec<Option<Vec3>> = colour.par_iter().map(throw).collect();
            for (at, hit) in colour.iter().zip(&hits) {
                *taken.at(*at) = *hit;
            }
            let mut hits = hits.iter();
            colour.retain(|_| hits.next().is_some_and(Option::is_none));
        }
    }
    Ok(cells.iter().filter_map(|at| *taken.at(*at)).collect())
}

/// The cells, in their order, sorted into colours whose cells are [`COLOURS`] apart.
fn by_colour(cells: &[IVec3]) -> Vec<Vec<IVec3>> {
    let mut colours = vec![Vec::new(); COLOURS.pow(3) as usize];
    for cell in cells {
        let [x, y, z] = (*cell % COLOURS).to_array();
        colours[(x + COLOURS * (y + COLOURS * z)) as usize].push(*cell);
    }
    colours
}

/// The points that cells have taken, in blocks, and only where there are cells.
struct Taken {
    blocks: HashMap<IVec3, usize>,
    points: Vec<Option<Vec3>>,
}

/// Cells along the edge of a block of [`Taken`]; what a cell looks at is in eight of them at most.
const EDGE: i32 = 4;

impl Taken {
    fn new(cells: &[IVec3]) -> Self {
        let mut blocks = HashMap::new();
        for cell in cells {
            let next = blocks.len();
            blocks.entry(*cell / EDGE).or_insert(next);
        }
        let points = vec![None; blocks.len() * EDGE.pow(3) as usize];
        Self { blocks, points }
    }

    /// What a cell that there is has taken.
    fn at(&mut self, cell: IVec3) -> &mut Option<Vec3> {
        &mut self.points[self.blocks[&(cell / EDGE)] * EDGE.pow(3) as usize + within(cell)]
    }

    /// What the cells at most two away have taken.
    fn around(&self, cell: IVec3) -> impl Iterator<Item = Vec3> {
        let (first, last) = ((cell - 2).max(IVec3::ZERO), cell + 2);
        let blocks = in_box(first / EDGE, last / EDGE);
        blocks.flat_map(move |block| {
            let (low, high) = (block * EDGE, block * EDGE + EDGE - 1);
            let there = self.blocks.get(&block);
            let cells = there.map(|there| (in_box(low.max(first), high.min(last)), there));
            cells.into_iter().flat_map(move |(cells, there)| {
                cells.filter_map(move |at| self.points[there * EDGE.pow(3) as usize + within(at)])
            })
        })
    }
}

/// The number of a cell in its block.
fn within(cell: IVec3) -> usize {
    let [x, y, z] = (cell % EDGE).to_array();
    (x + EDGE * (y + EDGE * z)) as usize
}

/// The cells from `first` to `last`.
fn in_box(first: IVec3, last: IVec3) -> impl Iterator<Item = IVec3> {
    (first.z..=last.z).flat_map(move |z| {
        (first.y..=last.y).flat_map(move |y| (first.x..=last.x).map(move |x| IVec3::new(x, y, z)))
    })
}

/// The number of a cell in a box of `size` cells.
fn number(at: IVec3, size: IVec3) -> u64 {
    let [x, y, z] = at.to_array().map(|part| part as u64);
    let rows = z.wrapping_mul(size.y as u64).wrapping_add(y);
    rows.wrapping_mul(size.x as u64).wrapping_add(x)
}

/// Moves points less than a `cell` [m] below the surface to exactly half a cell below it, as Zhu & Bridson (2005)
/// do so that the first surface drawn through them is smooth.
fn settle_near_surface(shape: &Shape, cell: f32, points: &mut [Vec3]) {
    points.par_iter_mut().for_each(|point| {
        // The distance of combined shapes is a bound, not exact, so one move may fall short; a few do not.
        for _ in 0..4 {
            let surface = shape.surface(*point);
            if surface.distance <= -cell || (surface.distance + 0.5 * cell).abs() < 1e-4 * cell {
                break;
            }
            *point -= surface.normal * (surface.distance + 0.5 * cell);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 4] = [
        Layout::Lattice,
        Layout::Jittered,
        Layout::BlueNoise,
        Layout::Settled,
    ];

    fn ball() -> Shape {
        Shape::Sphere { radius: 0.5 }
    }

    #[test]
    fn every_layout_fills_the_volume_with_one_point_a_cube() {
        for layout in LAYOUTS {
            let points = fill(&ball(), 0.02, layout, Random::new(1, 0)).unwrap();
            let expected = std::f64::consts::PI / 6.0 / 0.02f64.powi(3);
            let ratio = points.len() as f64 / expected;
            assert!((ratio - 1.0).abs() < 0.02, "{layout:?}: {ratio}");
            assert!(points.iter().all(|p| p.length() < 0.5));
            let centre =
                points.iter().map(|p| p.as_dvec3()).sum::<glam::DVec3>() / points.len() as f64;
            assert!(centre.length() < 0.003, "{layout:?}: {centre}"); // 0.25 / √65,000, thrice
        }
    }

    #[test]
    fn points_do_not_depend_on_threads_but_on_the_seed() {
        for layout in LAYOUTS {
            let on = |threads: usize, seed| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                pool.install(|| fill(&ball(), 0.05, layout, Random::new(seed, 0)).unwrap())
            };
            assert_eq!(on(1, 1), on(3, 1));
            assert!(layout == Layout::Lattice || on(1, 1) != on(1, 2));
        }
    }

    #[test]
    fn blue_noise_keeps_its_distance() {
        let points = fill(&ball(), 0.1, Layout::BlueNoise, Random::new(1, 0)).unwrap();
        for (i, a) in points.iter().enumerate() {
            assert!(
                points[i + 1..]
                    .iter()
                    .all(|b| a.distance(*b) >= 0.999 * DISK * 0.1)
            );
        }
    }

    #[test]
    fn settling_moves_surface_points_to_half_a_cell() {
        let seeded = |layout| fill(&ball(), 0.05, layout, Random::new(1, 0)).unwrap();
        let (before, points) = (seeded(Layout::Jittered), seeded(Layout::Settled));
        assert_eq!(before.len(), points.len());
        for (old, new) in before.iter().zip(&points) {
            if old.length() > 0.4 {
                assert!((new.length() - 0.45).abs() < 1e-4);
            } else {
                assert_eq!(old, new);
            }
        }
    }

    #[test]
    fn endless_and_enormous_fills_are_refused() {
        let random = Random::new(1, 0);
        let ground = Shape::HalfSpace { normal: Vec3::Y };
        assert_eq!(
            fill(&ground, 0.1, Layout::Lattice, random),
            Err(FillError::Unbounded)
        );
        assert!(
            matches!(fill(&ball(), 1e-4, Layout::Jittered, random), Err(FillError::TooMany(n)) if n > 5e11)
        );
    }

    #[test]
    fn parts_far_apart_cost_what_they_hold_and_keep_the_order_of_blocks() {
        let apart = |x: f32| {
            let ball = |at: Vec3| ball().placed(crate::Pose::new(at, glam::Quat::IDENTITY), 0.4);
            Shape::Union(vec![ball(Vec3::splat(-x)), ball(Vec3::splat(x))])
        };
        // Each block in turn, as slow as it is plain.
        let (shape, spacing) = (apart(1.0), 0.05);
        let first = (shape.bounds().min / spacing).floor().as_ivec3();
        let last = (shape.bounds().max / spacing).floor().as_ivec3();
        let blocks = (last - first) / BLOCK + 1;
        let mut expected = Vec::new();
        for i in 0..blocks.element_product() {
            let (y, z) = (i / blocks.x % blocks.y, i / blocks.x / blocks.y);
            let corner = first + IVec3::new(i % blocks.x, y, z) * BLOCK;
            let points = cubes_of_block().map(|at| ((corner + at).as_vec3() + 0.5) * spacing);
            expected.extend(points.filter(|point| shape.contains(*point)));
        }
        let found = fill(&shape, spacing, Layout::Lattice, Random::new(1, 0)).unwrap();
        assert_eq!(found, expected);
        for layout in LAYOUTS {
            let points = fill(&apart(1e4), 0.05, layout, Random::new(1, 0)).unwrap();
            let ratio = points.len() as f64 / expected.len() as f64;
            // A small ball has a rim that blue noise fills well.
            assert!((ratio - 1.0).abs() < 0.2, "{layout:?}: {ratio}");
        }
    }
}
