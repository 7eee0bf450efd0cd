//! Points inside a shape: on a lattice, jittered from it, or as blue noise. The same seed gives the same points.

use crate::Bounds;
use crate::random::Random;
use crate::shape::Shape;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

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
    Ok(match layout {
        Layout::Lattice => lattice(shape, bounds, spacing, |_| Vec3::splat(0.5)),
        Layout::Jittered => jittered(shape, bounds, spacing, random),
        Layout::Settled => {
            let mut points = jittered(shape, bounds, spacing, random);
            settle_near_surface(shape, 2.0 * spacing, &mut points);
            points
        }
        Layout::BlueNoise => blue_noise(shape, bounds, spacing, random),
    })
}

fn jittered(shape: &Shape, bounds: Bounds, spacing: f32, random: Random) -> Vec<Vec3> {
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
) -> Vec<Vec3> {
    let first = (bounds.min / spacing).floor().as_ivec3();
    let last = (bounds.max / spacing).floor().as_ivec3();
    let blocks = (last - first) / BLOCK + 1;
    let count = blocks.x as usize * blocks.y as usize * blocks.z as usize;
    let reach = 0.867 * BLOCK as f32 * spacing; // half the diagonal of a block, rounded up
    let found: Vec<Vec<Vec3>> = (0..count)
        .into_par_iter()
        .map(|i| {
            let (x, y) = (blocks.x as usize, blocks.y as usize);
            let block = IVec3::new((i % x) as i32, (i / x % y) as i32, (i / x / y) as i32);
            let corner = first + block * BLOCK;
            if shape.distance((corner.as_vec3() + 0.5 * BLOCK as f32) * spacing) > reach {
                return Vec::new();
            }
            cubes_of_block()
                .map(|offset| corner + offset)
                .map(|cube| (cube.as_vec3() + place(cube)) * spacing)
                .filter(|point| shape.contains(*point))
                .collect()
        })
        .collect();
    found.concat()
}

fn cubes_of_block() -> impl Iterator<Item = IVec3> {
    (0..BLOCK.pow(3)).map(|i| IVec3::new(i % BLOCK, i / BLOCK % BLOCK, i / BLOCK / BLOCK))
}

/// Least distance of blue-noise points over their mean spacing, so that [`TRIES`] darts a cell give one point a cube.
pub const DISK: f32 = 0.872;
/// Darts thrown at each cell.
const TRIES: u32 = 16;
/// Cells of one colour are this far apart, so that their darts cannot meet.
const COLOURS: usize = 3;

/// Poisson-disk sampling by parallel dart throwing (Wei 2008): cells too small for two points, visited colour by colour.
fn blue_noise(shape: &Shape, bounds: Bounds, spacing: f32, random: Random) -> Vec<Vec3> {
    let disk = DISK * spacing;
    let cell = disk / 3f32.sqrt();
    let size = (bounds.size() / cell).ceil().max(Vec3::ONE);
    let size = [size.x as usize, size.y as usize, size.z as usize];
    let index = |c: [usize; 3]| c[0] + size[0] * (c[1] + size[1] * c[2]);
    let corner = |c: [usize; 3]| bounds.min + Vec3::from_array(c.map(|c| c as f32)) * cell;
    let mut colours = cells_by_colour(size, |c| {
        shape.distance(corner(c) + 0.5 * cell) < 0.867 * cell
    });
    let mut taken: Vec<Option<Vec3>> = vec![None; size[0] * size[1] * size[2]];
    for dart in 0..TRIES {
        for cells in &mut colours {
            let throw = |at: &[usize; 3]| {
                let point = corner(*at) + random.in_cube(index(*at) as u64, 3 * dart) * cell;
                let is_far =
                    |c: [usize; 3]| taken[index(c)].is_none_or(|p| p.distance(point) >= disk);
                (shape.contains(point) && neighbours(*at, size).all(is_far)).then_some(point)
            };
            let hits: Vec<Option<Vec3>> = cells.par_iter().map(throw).collect();
            for (at, hit) in cells.iter().zip(&hits) {
                taken[index(*at)] = *hit;
            }
            let mut hits = hits.iter();
            cells.retain(|_| hits.next().is_some_and(Option::is_none));
        }
    }
    taken.into_iter().flatten().collect()
}

/// The cells that `wanted` accepts, sorted into colours whose cells are [`COLOURS`] apart.
fn cells_by_colour(
    size: [usize; 3],
    wanted: impl Fn([usize; 3]) -> bool + Sync,
) -> Vec<Vec<[usize; 3]>> {
    let cell = |i: usize| [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
    let all: Vec<[usize; 3]> = (0..size.iter().product())
        .into_par_iter()
        .map(cell)
        .filter(|c| wanted(*c))
        .collect();
    let mut colours = vec![Vec::new(); COLOURS.pow(3)];
    for c in all {
        colours[c[0] % COLOURS + COLOURS * (c[1] % COLOURS + COLOURS * (c[2] % COLOURS))].push(c);
    }
    colours
}

/// The cells at most two away, in bounds.
fn neighbours(at: [usize; 3], size: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let range = move |a: usize| at[a].saturating_sub(2)..(at[a] + 3).min(size[a]);
    range(2).flat_map(move |z| range(1).flat_map(move |y| range(0).map(move |x| [x, y, z])))
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
}
