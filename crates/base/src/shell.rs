//! Points on the surface of a shape or a little below it, about one spacing apart, block by block: only what is near has
//! to be sampled.
//!
//! Nodes of a lattice near the surface are projected onto it and thinned, those on the coarser lattice and nearest to
//! the surface first. A block's points follow from the shape and the block alone, whichever blocks were asked for before.

use crate::random::Random;
use crate::shape::Shape;
use glam::{IVec3, Vec3};

/// Spacings along the edge of a block.
pub const BLOCK: i32 = 8;
/// Points this many spacings around a block are found too: those that its own points must know about.
const MARGIN: i32 = 3;
/// Least distance of two points over the spacing.
const APART: f32 = 0.8;
/// Nodes further from the surface than this many spacings are not projected.
const NEAR: f32 = 0.5;
/// Where the solid is thinner than this many insets, points lie on its surface.
const THIN: f32 = 0.6;
/// Where a projection ends over the spacing from the surface it has not found it.
const FOUND: f32 = 0.02;

/// A point on a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShellPoint {
    /// Where.
    pub position: Vec3,
    /// Unit vector out of the solid.
    pub normal: Vec3,
    /// True in the block itself, false in its margin.
    pub own: bool,
}

/// The block that a point lies in.
pub fn block_at(point: Vec3, spacing: f32) -> IVec3 {
    (point / (BLOCK as f32 * spacing)).floor().as_ivec3()
}

/// Points `inset` [m] below the surface of `shape`, or on it where it is too thin, in a block and its margin, `spacing` [m]
/// apart.
pub fn block(shape: &Shape, (spacing, inset): (f32, f32), block: IVec3) -> Vec<ShellPoint> {
    let corner = block.as_vec3() * BLOCK as f32 * spacing;
    let middle = corner + 0.5 * BLOCK as f32 * spacing;
    // Half the diagonal of the block with its margin.
    let reach = 0.8661 * (BLOCK + 2 * MARGIN) as f32 * spacing + inset;
    if shape.is_beyond(middle, reach) || shape.distance(middle) < -reach {
        return Vec::new();
    }
    let mut candidates = candidates(shape, (spacing, inset), corner);
    candidates.sort_by_key(|(priority, _)| *priority);
    thin(candidates.into_iter().map(|(_, point)| point), spacing)
        .into_iter()
        .map(|mut point| {
            point.own = block_at(point.position, spacing) == block;
            point
        })
        .collect()
}

type Priority = (bool, u32, u64);

/// Projected nodes with their priority: those of the whole lattice first, then nearer ones, then by chance.
fn candidates(
    shape: &Shape,
    (spacing, inset): (f32, f32),
    corner: Vec3,
) -> Vec<(Priority, ShellPoint)> {
    let random = Random::new(0, 0);
    let mut found = Vec::new();
    // Halves of spacings.
    let edge = 2 * (BLOCK + 2 * MARGIN);
    let first = IVec3::splat(-2 * MARGIN);
    for coarse in lattice(edge / 4) {
        let place = |node: IVec3| corner + (first + node).as_vec3() * 0.5 * spacing;
        let around = place(coarse * 4) + 0.75 * spacing;
        if shape.is_beyond(around, (NEAR + 1.3) * spacing) {
            continue;
        }
        for fine in lattice(4) {
            let node = coarse * 4 + fine;
            let start = place(node);
            let Some((point, off)) = project(shape, start, (spacing, inset)) else {
                continue;
            };
            let odd = (first + node).to_array().iter().any(|c| c % 2 != 0);
            let name = crate::random::hash_place(start / spacing);
            found.push(((odd, (off * 8.0) as u32, random.bits(name, 0)), point));
        }
    }
    found
}

fn lattice(edge: i32) -> impl Iterator<Item = IVec3> {
    (0..edge.pow(3)).map(move |i| IVec3::new(i % edge, i / edge % edge, i / edge / edge))
}

/// The point near a node and how many spacings away it was; `None` where there is none near.
fn project(shape: &Shape, start: Vec3, (spacing, inset): (f32, f32)) -> Option<(ShellPoint, f32)> {
    let onto = |depth: f32| -> Option<(ShellPoint, f32)> {
        let mut surface = shape.surface(start);
        let off = (surface.distance + depth).abs() / spacing;
        if off > NEAR {
            return None;
        }
        let mut position = start;
        // The distance of combined shapes is a bound, so one move may fall short; a few do not.
        for _ in 0..4 {
            position -= surface.normal * (surface.distance + depth);
            surface = shape.surface(position);
            if (surface.distance + depth).abs() < FOUND * spacing {
                let point = ShellPoint {
                    position,
                    normal: surface.normal,
                    own: false,
                };
                return Some((point, off));
            }
        }
        None
    };
    let thin =
        |point: &ShellPoint| shape.distance(point.position - point.normal * inset) > -THIN * inset;
    onto(inset).or_else(|| onto(0.0).filter(|(point, _)| inset > 0.0 && thin(point)))
}

/// Takes points in order, leaving out those too near to one taken before.
fn thin(points: impl Iterator<Item = ShellPoint>, spacing: f32) -> Vec<ShellPoint> {
    let apart = APART * spacing;
    let mut taken: Vec<ShellPoint> = Vec::new();
    let mut cells: std::collections::HashMap<IVec3, Vec<u32>> = std::collections::HashMap::new();
    for point in points {
        let at = (point.position / apart).floor().as_ivec3();
        let near = lattice(3).any(|offset| {
            cells.get(&(at + offset - 1)).is_some_and(|members| {
                members
                    .iter()
                    .any(|&other| taken[other as usize].position.distance(point.position) < apart)
            })
        });
        if !near {
            cells.entry(at).or_default().push(taken.len() as u32);
            taken.push(point);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pose;
    use glam::Quat;

    const SPACING: f32 = 0.1;

    fn sampled(shape: &Shape, inset: f32) -> Vec<Vec3> {
        lattice(6)
            .map(|at| at - 3)
            .flat_map(|at| block(shape, (SPACING, inset), at))
            .filter(|point| point.own)
            .map(|point| point.position)
            .collect()
    }

    fn solids() -> Vec<(&'static str, Shape)> {
        let turn = Pose::new(
            Vec3::new(0.03, 0.02, 0.01),
            Quat::from_rotation_x(0.4) * Quat::from_rotation_z(0.3),
        );
        let plate = Shape::Cuboid {
            half: Vec3::new(1.0, 0.002, 0.7),
        };
        let block = Shape::Cuboid {
            half: Vec3::new(0.9, 0.5, 0.7),
        };
        vec![
            ("ball", Shape::Sphere { radius: 0.8 }),
            ("plate", plate.clone()),
            ("turned plate", plate.placed(turn, 1.0)),
            ("block", block.clone().placed(turn, 1.0)),
            (
                "bitten block",
                Shape::Difference(Box::new(block), vec![Shape::Sphere { radius: 0.6 }]),
            ),
        ]
    }

    #[test]
    fn samples_lie_on_the_surface_and_leave_no_holes() {
        for (name, shape) in solids() {
            let points = sampled(&shape, 0.0);
            for point in &points {
                assert!(
                    shape.distance(*point).abs() < FOUND * SPACING,
                    "{name}: {point}"
                );
            }
            // Any place on the surface has a sample within a spacing.
            let random = Random::new(5, 5);
            for i in 0..2000 {
                let start = (random.in_cube(i, 0) - 0.5) * 2.4;
                let surface = shape.surface(start);
                let place = start - surface.normal * surface.distance;
                if shape.distance(place).abs() > 1e-3 * SPACING {
                    continue;
                }
                let nearest = points
                    .iter()
                    .map(|point| point.distance(place))
                    .fold(f32::MAX, f32::min);
                assert!(nearest < 1.05 * SPACING, "{name} at {place}: {nearest}");
            }
        }
    }

    #[test]
    fn blocks_agree_where_they_meet() {
        for (name, shape) in solids() {
            let points = sampled(&shape, 0.0);
            let mut close = 0;
            for (i, a) in points.iter().enumerate() {
                close += points[..i]
                    .iter()
                    .filter(|b| a.distance(**b) < 0.99 * APART * SPACING)
                    .count();
            }
            assert!(
                close * 50 <= points.len(),
                "{name}: {close} close pairs of {} points",
                points.len()
            );
        }
    }

    #[test]
    fn a_flat_ground_is_a_square_lattice() {
        let ground = Shape::HalfSpace { normal: Vec3::Y };
        let points = block(&ground, (SPACING, 0.0), IVec3::new(2, 0, -5));
        assert_eq!(points.iter().filter(|point| point.own).count(), 64);
        assert!(block(&ground, (SPACING, 0.0), IVec3::new(0, 3, 0)).is_empty());
    }

    #[test]
    fn points_lie_below_the_surface_unless_it_is_thin() {
        let inset = 0.5 * SPACING;
        for (name, shape) in solids() {
            let points = sampled(&shape, inset);
            // The two sides of a plate have their points in common.
            let (least, depth) = if name.contains("plate") {
                (250, 0.0)
            } else {
                (500, inset)
            };
            assert!(points.len() > least, "{name}: {}", points.len());
            // Near an edge a point is moved in from one side only, and stays nearer to the other.
            let tolerance = 2.0 * FOUND * SPACING;
            let off = |point: &Vec3| shape.distance(*point) + depth;
            let (low, high) = (-tolerance, depth + tolerance);
            assert!(
                points.iter().all(|p| off(p) > low && off(p) < high),
                "{name}"
            );
            let right = points.iter().filter(|p| off(p).abs() < tolerance).count();
            assert!(
                5 * right > 3 * points.len(),
                "{name}: {right} of {}",
                points.len()
            );
        }
    }
}
