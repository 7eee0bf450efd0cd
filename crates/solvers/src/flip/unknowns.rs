//! The cells that carry pressure, as rows of a matrix.

use super::boundary::Boundary;
use super::field::Field;
use barchan_base::grid::{BESIDE, CELLS, place_in_block};
use barchan_base::linear::{NONE, Row};
use glam::IVec3;

/// The active cells, numbered.
#[derive(Default)]
pub(super) struct Unknowns {
    /// Their coordinates, and their indices in the grid's arrays.
    pub cells: Vec<IVec3>,
    pub places: Vec<u32>,
    /// For each cell of the grid its number.
    numbers: Vec<u32>,
}

/// A face as a row sees it.
pub(super) struct FaceOf {
    pub axis: usize,
    /// Index of the face: that of the cell whose lower face it is.
    pub face: usize,
    /// Open part.
    pub open: f32,
    /// Index of the cell beyond it.
    pub beyond: usize,
}

impl Unknowns {
    /// Numbers the active cells.
    pub fn number(&mut self, field: &Field) {
        self.cells.clear();
        self.places.clear();
        self.numbers.clear();
        self.numbers.resize(field.grid.cells(), NONE);
        for block in 0..field.grid.len() {
            let origin = field.grid.origin(block);
            for local in 0..CELLS {
                let cell = block * CELLS + local;
                if field.active[cell] && !field.held[cell] {
                    self.numbers[cell] = self.cells.len() as u32;
                    self.cells.push(origin + place_in_block(local));
                    self.places.push(cell as u32);
                }
            }
        }
    }

    /// The row of an unknown: `couple` gives the coefficient of a face, and what it adds to the excess where the cell beyond
    /// is no unknown.
    pub fn row(
        &self,
        unknown: usize,
        (field, boundary): (&Field, &Boundary),
        couple: impl Fn(&FaceOf) -> (f32, f32),
    ) -> Row {
        let cell = self.places[unknown] as usize;
        let mut row = Row::default();
        for side in 0..6 {
            let face = face_of(field, boundary, cell, side);
            if face.open == 0.0 {
                continue;
            }
            let (coefficient, at_air) = couple(&face);
            let number = self.numbers[face.beyond];
            if number == NONE {
                row.excess += at_air;
            } else {
                row.neighbors[side] = number;
                row.coefficients[side] = coefficient;
            }
        }
        row
    }
}

/// The face of a cell on one side.
pub(super) fn face_of(field: &Field, boundary: &Boundary, cell: usize, side: usize) -> FaceOf {
    let beyond = field.grid.step(cell / CELLS, cell % CELLS, BESIDE[side]);
    let face = if side.is_multiple_of(2) { cell } else { beyond };
    FaceOf {
        axis: side / 2,
        face,
        open: boundary.open(side / 2, face),
        beyond,
    }
}
