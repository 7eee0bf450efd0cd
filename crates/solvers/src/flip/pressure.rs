//! Pressure that keeps a fluid's volume: the projection of the velocity onto fields without divergence.
//!
//! Faces count by the part of them that is open, so walls may lie at any angle (Batty et al. 2007). At the free surface
//! pressure vanishes where the surface is, not at the next cell's centre: the ghost fluid of Enright et al. 2003. How far
//! away the surface is follows from how full the cells on both sides are: particles count by trilinear weights, so a flat
//! surface at height d above a cell's centre fills it by ½ + d − d|d|/2.

use super::boundary::Boundary;
use super::field::Field;
use super::unknowns::{FaceOf, Unknowns, face_of};
use barchan_base::grid::CELLS;
use barchan_base::linear::{Multigrid, Scratch, Solved, Stencil, Tolerance, conjugate_gradients};
use rayon::prelude::*;

/// The surface is taken to be at least this far from a cell's centre, in cells.
const LEAST_DISTANCE: f32 = 0.1;
/// The solve ends when the divergence left is this part of what it was.
const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-4,
    max_iterations: 60,
};

/// The solve for pressure, scaled by Δt / (ρ Δx) as all stresses are.
#[derive(Default)]
pub(super) struct Pressure {
    stencil: Stencil,
    multigrid: Multigrid,
    inflow: Vec<f32>,
    solution: Vec<f32>,
    scratch: Scratch,
}

impl Pressure {
    /// Projects the field's velocity. `scaled` is the pressure of every cell: what it is likely to be before, what it is
    /// after.
    pub fn project(
        &mut self,
        field: &mut Field,
        boundary: &Boundary,
        unknowns: &Unknowns,
        scaled: &mut [f32],
    ) -> Option<Solved> {
        if unknowns.places.is_empty() {
            return None;
        }
        let seen: &Field = field;
        self.stencil.rebuild(&unknowns.cells, |unknown| {
            let cell = unknowns.places[unknown] as usize;
            unknowns.row(unknown, (seen, boundary), |face| {
                (face.open, face.open / surface_distance(seen, cell, face))
            })
        });
        self.multigrid.rebuild(&self.stencil);
        let inflow = |cell: &u32| inflow(seen, boundary, *cell as usize);
        self.inflow.clear();
        self.inflow
            .par_extend(unknowns.places.par_iter().map(inflow));
        self.solution.clear();
        self.solution
            .extend(unknowns.places.iter().map(|cell| scaled[*cell as usize]));
        let solved = conjugate_gradients(
            &self.stencil,
            &mut self.multigrid,
            &self.inflow,
            &mut self.solution,
            TOLERANCE,
            &mut self.scratch,
        );
        scaled.fill(0.0);
        for (cell, pressure) in unknowns.places.iter().zip(&self.solution) {
            scaled[*cell as usize] = *pressure;
        }
        push(field, boundary, unknowns, scaled);
        Some(solved)
    }
}

/// How much more flows into a cell than out of it.
fn inflow(field: &Field, boundary: &Boundary, cell: usize) -> f32 {
    let mut sum = 0.0;
    for side in 0..6 {
        let face = face_of(field, boundary, cell, side);
        let flow = face.open * field.velocity[face.axis][face.face];
        sum += if side.is_multiple_of(2) { flow } else { -flow };
    }
    let walls = boundary.walls(cell / CELLS).iter();
    sum + walls
        .filter(|wall| wall.cell as usize == cell)
        .map(|wall| wall.area.dot(wall.velocity))
        .sum::<f32>()
}

/// Takes the pressure's gradient from the velocity.
fn push(field: &mut Field, boundary: &Boundary, unknowns: &Unknowns, scaled: &[f32]) {
    let seen: &Field = field;
    let changes: Vec<[(usize, usize, f32); 6]> = unknowns
        .places
        .par_iter()
        .map(|cell| {
            let cell = *cell as usize;
            std::array::from_fn(|side| {
                let face = face_of(seen, boundary, cell, side);
                // Each face takes half its change from each side; where the other side is air, all of it.
                let outward = if side.is_multiple_of(2) { -1.0 } else { 1.0 };
                let change = if face.open == 0.0 {
                    0.0
                } else if seen.active[face.beyond] {
                    0.5 * (scaled[cell] - scaled[face.beyond])
                } else {
                    scaled[cell] / surface_distance(seen, cell, &face)
                };
                (face.axis, face.face, outward * change)
            })
        })
        .collect();
    for (axis, face, change) in changes.into_iter().flatten() {
        field.velocity[axis][face] += change;
    }
}

/// The distance, in cells, from a cell's centre to the surface on the other side of a face.
fn surface_distance(field: &Field, cell: usize, face: &FaceOf) -> f32 {
    let here = depth(field.fill[cell]);
    let there = depth(field.fill[face.beyond]).min(0.0);
    if here <= 0.0 {
        return LEAST_DISTANCE;
    }
    (here / (here - there)).clamp(LEAST_DISTANCE, 1.0)
}

/// How far a flat surface is above the centre of a cell that is filled so far.
fn depth(fill: f32) -> f32 {
    let fill = fill.clamp(0.0, 1.0);
    if fill >= 0.5 {
        1.0 - (2.0 * (1.0 - fill)).sqrt()
    } else {
        (2.0 * fill).sqrt() - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_undoes_how_a_flat_surface_fills_a_cell() {
        for d in [-1.0f32, -0.6, -0.2, 0.0, 0.3, 0.7, 1.0] {
            let fill = 0.5 + d - 0.5 * d * d.abs();
            assert!((depth(fill) - d).abs() < 1e-3, "{d}: {}", depth(fill));
        }
    }
}
