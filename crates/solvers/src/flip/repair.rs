//! Density, mended in the particles' positions alone.
//!
//! Where more material has gathered than fits, particles must move apart, without friction and without a trace in their
//! velocity: through the velocity or the frictional solve the same push shakes piles flat or jams them. The
//! displacement is d = −w⁻¹∇q with q ≥ 0 ⟂ ∇·d ≥ demand: the least that makes room, and nothing where there is room.

use super::boundary::Boundary;
use super::coupled::LEAST_MASS;
use super::field::{Faces, Field};
use super::laws::smooth_fill;
use super::unknowns::{BESIDE, Unknowns, face_of};
use barchan_base::grid::CELLS;
use barchan_base::linear::{Jacobi, Operator, Scratch, Solved, Stencil, Tolerance, nonnegative};
use rayon::prelude::*;

/// Crowding below this is the noise of counting particles.
const BAND: f32 = 0.01;
/// Part of the crowding mended in a step, and the most of it.
const GAIN: f32 = 0.1;
const MOST: f32 = 0.1;

/// The mending of density.
#[derive(Default)]
pub(super) struct Repair {
    stencil: Stencil,
    demand: Vec<f32>,
    q: Vec<f32>,
    scratch: Scratch,
    /// Displacement of the faces, in cells.
    pub displacement: Faces,
}

impl Repair {
    /// Finds the displacement; false where none is needed.
    pub fn find(&mut self, field: &Field, boundary: &Boundary, unknowns: &Unknowns) -> bool {
        self.demand.clear();
        self.demand
            .par_extend(unknowns.places.par_iter().map(|cell| {
                let (block, local) = (*cell as usize / CELLS, *cell as usize % CELLS);
                demand(smooth_fill(field, block, local) - 1.0)
            }));
        if self.demand.iter().all(|demand| *demand <= 0.0) {
            return false;
        }
        let mobility = |axis: usize, face: usize| 1.0 / field.mass[axis][face].max(LEAST_MASS);
        self.stencil.rebuild(&unknowns.cells, |unknown| {
            unknowns.row(unknown, (field, boundary), |face| {
                let coefficient = face.open * face.open * mobility(face.axis, face.face);
                (coefficient, coefficient)
            })
        });
        self.q.clear();
        self.q.resize(self.demand.len(), 0.0);
        self.solve();
        self.displace(field, boundary, unknowns, mobility);
        true
    }

    fn solve(&mut self) -> Solved {
        let diagonal = self.stencil.diagonal().to_vec();
        let mut preconditioner = Jacobi {
            diagonal: &diagonal,
        };
        let tolerance = Tolerance {
            relative: 1e-2,
            max_iterations: 40,
        };
        nonnegative(
            &self.stencil,
            &mut preconditioner,
            &self.demand,
            &mut self.q,
            tolerance,
            &mut self.scratch,
        )
    }

    fn displace(
        &mut self,
        field: &Field,
        boundary: &Boundary,
        unknowns: &Unknowns,
        mobility: impl Fn(usize, usize) -> f32,
    ) {
        for axis in 0..3 {
            self.displacement[axis].clear();
            self.displacement[axis].resize(field.grid.cells(), 0.0);
        }
        for (cell, q) in unknowns.places.iter().zip(&self.q) {
            if *q == 0.0 {
                continue;
            }
            for side in 0..BESIDE.len() {
                let face = face_of(field, boundary, *cell as usize, side);
                let away = if side.is_multiple_of(2) { -1.0 } else { 1.0 };
                self.displacement[face.axis][face.face] +=
                    away * q * face.open * mobility(face.axis, face.face);
            }
        }
    }
}

/// How much a cell must open in this step, in cells; negative where it may close.
fn demand(crowding: f32) -> f32 {
    if crowding > BAND {
        (GAIN * (crowding - BAND)).min(MOST)
    } else {
        crowding.min(0.0)
    }
}
