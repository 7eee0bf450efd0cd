//! Density, mended in the particles' positions alone.
//!
//! Where more material has gathered than fits, particles must move apart, without friction and without a trace in their
//! velocity: through the velocity or the frictional solve the same push shakes piles flat or jams them. The
//! displacement is d = −w⁻¹∇q with q ≥ 0 ⟂ ∇·d ≥ demand: the least that makes room, and nothing where there is room.
//!
//! A fluid must not tear either: what has grown sparse inside it is drawn together, so there q may have either sign.

use super::boundary::Boundary;
use super::coupled::LEAST_MASS;
use super::field::{Faces, Field};
use super::laws::smooth_fill;
use super::unknowns::{Unknowns, face_of};
use barchan_base::grid::{BESIDE, CELLS};
use barchan_base::linear::{
    Jacobi, Multigrid, Operator, Scratch, Solved, Stencil, Tolerance, conjugate_gradients,
    nonnegative,
};
use rayon::prelude::*;

/// Crowding below this is the noise of counting particles.
const BAND: f32 = 0.01;
/// Part of the crowding mended in a step, and the most of it.
const GAIN: f32 = 0.1;
/// The same for fluids, which nothing jams.
const FLUID_GAIN: f32 = 0.2;
const MOST: f32 = 0.1;

/// The mending is rough: what it leaves is mended in the next step.
const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-2,
    max_iterations: 40,
};

/// The same for grains, whose solve takes the more iterations the larger a pile is.
const ROUGH: Tolerance = Tolerance {
    relative: 5e-2,
    max_iterations: 16,
};

/// What is mended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Matter {
    /// May separate freely.
    Grains,
    /// Must neither crowd nor tear.
    Fluid,
}

/// The mending of density.
#[derive(Default)]
pub(super) struct Repair {
    stencil: Stencil,
    multigrid: Multigrid,
    demand: Vec<f32>,
    q: Vec<f32>,
    surface: Vec<bool>,
    scratch: Scratch,
    /// Displacement of the faces, in cells.
    pub displacement: Faces,
}

impl Repair {
    /// Finds the displacement; false where none is needed.
    pub fn find(
        &mut self,
        (field, boundary): (&Field, &Boundary),
        unknowns: &Unknowns,
        matter: Matter,
    ) -> bool {
        if matter == Matter::Fluid {
            self.find_surface(field, unknowns);
        }
        let surface = &self.surface;
        // The mean over a cell and its neighbours is low one cell below the surface already.
        let at_surface = |block: usize, local: usize| {
            (0..27).any(|offset| surface[field.grid.step(block, local, offset)])
        };
        self.demand.clear();
        self.demand
            .par_extend(unknowns.places.par_iter().map(|cell| {
                let (block, local) = (*cell as usize / CELLS, *cell as usize % CELLS);
                let crowding = smooth_fill(field, block, local) - 1.0;
                match matter {
                    Matter::Grains => demand(crowding),
                    Matter::Fluid => fluid_demand(crowding, at_surface(block, local)),
                }
            }));
        let needless = |demand: &f32| match matter {
            Matter::Grains => *demand <= 0.0,
            Matter::Fluid => demand.abs() <= 1e-3,
        };
        if self.demand.iter().all(needless) {
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
        match matter {
            Matter::Grains => self.make_room(),
            Matter::Fluid => self.even_out(),
        };
        self.displace(field, boundary, unknowns, mobility);
        true
    }

    /// Marks the cells that touch air.
    fn find_surface(&mut self, field: &Field, unknowns: &Unknowns) {
        self.surface.clear();
        self.surface.resize(field.grid.cells(), false);
        for cell in &unknowns.places {
            let cell = *cell as usize;
            self.surface[cell] = touches_air(field, cell / CELLS, cell % CELLS);
        }
    }

    /// Room where it is needed, and no pull anywhere.
    fn make_room(&mut self) -> Solved {
        let diagonal = self.stencil.diagonal().to_vec();
        let mut preconditioner = Jacobi {
            diagonal: &diagonal,
        };
        nonnegative(
            &self.stencil,
            &mut preconditioner,
            &self.demand,
            &mut self.q,
            ROUGH,
            &mut self.scratch,
        )
    }

    /// The density asked for, by push and pull.
    fn even_out(&mut self) -> Solved {
        self.multigrid.rebuild(&self.stencil);
        conjugate_gradients(
            &self.stencil,
            &mut self.multigrid,
            &self.demand,
            &mut self.q,
            TOLERANCE,
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

/// How much a fluid's cell must open in this step, in cells; negative where it must close. At the surface it may be as
/// empty as it likes.
fn fluid_demand(crowding: f32, at_surface: bool) -> f32 {
    let demand = (FLUID_GAIN * crowding).clamp(-MOST, MOST);
    if at_surface { demand.max(0.0) } else { demand }
}

fn touches_air(field: &Field, block: usize, local: usize) -> bool {
    (0..27).any(|offset| {
        let there = field.grid.step(block, local, offset);
        !field.active[there] && !field.solid[there]
    })
}

/// How much a cell must open in this step, in cells; negative where it may close.
fn demand(crowding: f32) -> f32 {
    if crowding > BAND {
        (GAIN * (crowding - BAND)).min(MOST)
    } else {
        crowding.min(0.0)
    }
}
