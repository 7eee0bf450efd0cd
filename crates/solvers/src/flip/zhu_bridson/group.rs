//! Connected groups of rigid cells.

use super::super::boundary::Boundary;
use super::super::field::Field;
use super::super::unknowns::{FaceOf, Unknowns, face_of};
use barchan_base::grid::{CELLS, place_in_block};
use glam::{DVec3, Vec3};

/// The middle of a cell, in cells.
pub(super) fn middle_of(field: &Field, cell: usize) -> DVec3 {
    (field.grid.origin(cell / CELLS) + place_in_block(cell % CELLS)).as_dvec3() + 0.5
}

/// Not in any group.
const NONE: u32 = u32::MAX;

/// The groups, in the order of their first cells.
#[derive(Default)]
pub(super) struct Groups {
    /// For each cell of the grid: while joining, another cell of its group; then the group's number.
    of_cell: Vec<u32>,
    /// Cells, group after group, and where each group begins.
    members: Vec<u32>,
    starts: Vec<usize>,
}

impl Groups {
    /// Finds the groups: rigid cells that share a face through which material can pass.
    pub fn find(&mut self, seen: (&Field, &Boundary), unknowns: &Unknowns, rigid: &[bool]) {
        let (field, boundary) = seen;
        self.of_cell.clear();
        self.of_cell.resize(field.grid.cells(), NONE);
        let cells = || unknowns.places.iter().filter(|c| rigid[**c as usize]);
        for cell in cells() {
            self.of_cell[*cell as usize] = *cell;
        }
        for cell in cells() {
            for side in [0, 2, 4] {
                let face = face_of(field, boundary, *cell as usize, side);
                if face.open > 0.0 && rigid[face.beyond] {
                    self.join(*cell, face.beyond as u32);
                }
            }
        }
        self.number(cells());
    }

    /// The group's first cell, which stands for it; shortens the way there.
    fn first(&mut self, mut cell: u32) -> u32 {
        loop {
            let next = self.of_cell[cell as usize];
            if next == cell {
                return cell;
            }
            self.of_cell[cell as usize] = self.of_cell[next as usize];
            cell = next;
        }
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first(a), self.first(b));
        self.of_cell[a.max(b) as usize] = a.min(b);
    }

    fn number<'a>(&mut self, cells: impl Iterator<Item = &'a u32> + Clone) {
        // Cells come in increasing order, and the first of a group stands for it: it is numbered before the others.
        let mut sizes: Vec<usize> = Vec::new();
        for cell in cells.clone() {
            let first = self.of_cell[*cell as usize];
            let group = if first == *cell {
                sizes.push(0);
                sizes.len() as u32 - 1
            } else {
                self.of_cell[first as usize]
            };
            self.of_cell[*cell as usize] = group;
            sizes[group as usize] += 1;
        }
        self.starts.clear();
        self.starts.push(0);
        for size in &sizes {
            self.starts.push(self.starts[self.starts.len() - 1] + size);
        }
        let mut next = self.starts.clone();
        self.members.clear();
        self.members.resize(self.starts[sizes.len()], 0);
        for cell in cells {
            let place = &mut next[self.of_cell[*cell as usize] as usize];
            self.members[*place] = *cell;
            *place += 1;
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Cells in all groups.
    pub fn rigid_cells(&self) -> usize {
        self.members.len()
    }

    /// The cells of a group, increasing.
    pub fn cells(&self, group: usize) -> &[u32] {
        &self.members[self.starts[group]..self.starts[group + 1]]
    }

    /// The open faces that some cells of a group bring to it; all cells of a group bring each face about it once. No other group has
    /// any of them: it would be the same group. They are visited with their places in cells.
    pub fn faces(
        &self,
        (field, boundary): (&Field, &Boundary),
        cells: &[u32],
        mut visit: impl FnMut(&FaceOf, Vec3),
    ) {
        for cell in cells {
            let group = self.of_cell[*cell as usize];
            let middle = middle_of(field, *cell as usize).as_vec3();
            for side in 0..6 {
                let face = face_of(field, boundary, *cell as usize, side);
                let upper = side % 2 == 1;
                let shared = upper && self.of_cell[face.beyond] == group;
                if face.open > 0.0 && !shared && face.face < field.grid.len() * CELLS {
                    let half = if upper { 0.5 } else { -0.5 };
                    visit(&face, middle + half * Vec3::AXES[face.axis]);
                }
            }
        }
    }
}
