//! Pressure that keeps a fluid's volume: the projection of the velocity onto fields without divergence.
//!
//! Faces count by the part of them that is open, so walls may lie at any angle (Batty et al. 2007). At the free surface
//! pressure vanishes where the surface is, not at the next cell's centre: the ghost fluid of Enright et al. 2003. How far
//! away the surface is follows from how full the cells on both sides are: particles count by trilinear weights, so a flat
//! surface at height d above a cell's centre fills it by ½ + d − d|d|/2.

use super::boundary::Boundary;
use super::field::Field;
use super::unknowns::{BESIDE, Unknowns, face_of};
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
                (
                    face.open,
                    face.open / surface_distance(seen, cell, face.beyond),
                )
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
        push(field, boundary, scaled);
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

/// Takes the pressure's gradient from the velocity, face by face.
fn push(field: &mut Field, boundary: &Boundary, scaled: &[f32]) {
    let mut velocity = std::mem::take(&mut field.velocity);
    let seen: &Field = field;
    let inside = seen.grid.len() * CELLS;
    for (axis, faces) in velocity.iter_mut().enumerate() {
        faces[..inside]
            .par_iter_mut()
            .enumerate()
            .with_min_len(CELLS)
            .for_each(|(above, velocity)| {
                let below = seen
                    .grid
                    .step(above / CELLS, above % CELLS, BESIDE[2 * axis]);
                if boundary.open(axis, above) > 0.0 {
                    *velocity += match (seen.active[below], seen.active[above]) {
                        (true, true) => scaled[below] - scaled[above],
                        (true, false) => scaled[below] / surface_distance(seen, below, above),
                        (false, true) => -scaled[above] / surface_distance(seen, above, below),
                        (false, false) => 0.0,
                    };
                }
            });
    }
    field.velocity = velocity;
}

/// The distance, in cells, from a cell's centre to the surface before the centre of the cell beyond.
fn surface_distance(field: &Field, cell: usize, beyond: usize) -> f32 {
    let here = depth(field.fill[cell]);
    let there = depth(field.fill[beyond]).min(0.0);
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
