//! What a style of surface must know: a function of space, negative inside, from the particles nearby.

use super::block::{EDGE, Values, node};
use super::cloud::Near;
use glam::Vec3;
use std::ops::Range;

/// A function of space [m], negative inside; near its zero it is about the distance to it.
pub trait Field: Sync {
    /// Its values on the nodes of a block that are `cell` apart; `near` are all particles that reach any of them.
    fn fill(&self, near: &[Near], cell: f32, values: &mut Values);

    /// Its value at `place`.
    fn at(&self, near: &[Near], place: Vec3) -> f32;

    /// Its gradient at `place`.
    fn gradient(&self, near: &[Near], place: Vec3) -> Vec3;

    /// How much of a particle's velocity and colour there is at `place`.
    fn share(&self, near: &Near, place: Vec3) -> f32;
}

/// A row of nodes that a particle reaches.
pub struct Row {
    /// Place of its first node in the block's values.
    pub start: usize,
    /// From the row to the particle's centre, across it [m].
    pub dy: f32,
    /// Likewise.
    pub dz: f32,
}

/// The rows of a block that a particle reaches.
pub fn rows(near: &Near, cell: f32) -> impl Iterator<Item = Row> {
    let (center, reach) = (near.center, near.reach);
    span(center.z, reach, cell).flat_map(move |z| {
        let dz = center.z - z as f32 * cell;
        let left = (reach * reach - dz * dz).max(0.0).sqrt();
        span(center.y, left, cell).map(move |y| Row {
            start: node(0, y, z),
            dy: center.y - y as f32 * cell,
            dz,
        })
    })
}

/// Nodes of an axis within `reach` of `center`.
fn span(center: f32, reach: f32, cell: f32) -> Range<usize> {
    // Rounding up by hand: many machines have an instruction for it that compilers may not assume.
    let index = |value: f32| {
        let value = (value / cell).clamp(0.0, EDGE as f32);
        let whole = value as usize;
        whole + usize::from(value > whole as f32)
    };
    index(center - reach)..index(center + reach)
}

/// How a particle's influence falls, as a function of the squared distance over the squared reach.
pub trait Kernel: Sync {
    /// Its value: 1 at the centre, 0 from 1 on.
    fn value(&self, square: f32) -> f32;
    /// Its derivative.
    fn slope(&self, square: f32) -> f32;
}

/// The kernel of Zhu & Bridson (2005): (1 − s²)³.
pub struct Bump;

impl Kernel for Bump {
    fn value(&self, square: f32) -> f32 {
        let rest = (1.0 - square).max(0.0);
        rest * rest * rest
    }

    fn slope(&self, square: f32) -> f32 {
        let rest = (1.0 - square).max(0.0);
        -3.0 * rest * rest
    }
}

/// The cubic spline of SPH.
pub struct Spline;

impl Kernel for Spline {
    fn value(&self, square: f32) -> f32 {
        let distance = square.sqrt();
        let (outer, inner) = ((1.0 - distance).max(0.0), (0.5 - distance).max(0.0));
        2.0 * outer * outer * outer - 8.0 * inner * inner * inner
    }

    fn slope(&self, square: f32) -> f32 {
        let distance = square.sqrt();
        if distance < 0.5 {
            9.0 * distance - 6.0
        } else {
            let rest = (1.0 - distance).max(0.0);
            -3.0 * rest * rest / distance
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slopes_are_derivatives(kernel: &impl Kernel) {
        assert!((kernel.value(0.0) - 1.0).abs() < 1e-6 && kernel.value(1.0).abs() < 1e-6);
        for i in 1..100 {
            let square = i as f32 / 100.0;
            let step = 1e-3;
            let difference =
                (kernel.value(square + step) - kernel.value(square - step)) / (2.0 * step);
            // Second-order differences of f32 values.
            assert!(
                (difference - kernel.slope(square)).abs() < 2e-3,
                "at {square}"
            );
        }
    }

    #[test]
    fn kernels_fall_from_one_to_zero_with_their_slopes() {
        slopes_are_derivatives(&Bump);
        slopes_are_derivatives(&Spline);
    }

    #[test]
    fn rows_are_those_within_reach() {
        let near = Near {
            center: Vec3::new(1.0, 2.5, 9.0),
            reach: 2.2,
            radius: 1.0,
            weight: 1.0,
            metric: [0.0; 6],
            index: 0,
        };
        let mut found: Vec<usize> = rows(&near, 1.0).map(|row| row.start).collect();
        found.sort_unstable();
        assert_eq!(found, [node(0, 2, 7), node(0, 3, 7)]);
    }
}
