//! Friction between sand and solids (Zhu 2005, eq. 2.8): where the wall takes the normal velocity from a cell, the sliding
//! velocity is reduced by μ times as much, to zero at most.
//!
//! A cell that carries others is pressed by more than its own fall: the pressure counts too. For a layer of one cell both
//! are the same, and the equation is the printed one.

use super::super::boundary::{Boundary, Wall};
use super::super::field::Field;
use super::group::middle_of;
use super::rigid::Contact;
use barchan_base::grid::{BESIDE, CELLS};
use glam::Vec3;

/// What presses material against walls in a step.
pub(super) struct Walls<'a> {
    pub field: &'a Field,
    pub boundary: &'a Boundary,
    /// Scaled pressure of the cells.
    pub pressure: &'a [f32],
    /// Gravity × time step.
    pub pull: Vec3,
}

/// A change of velocity on one face.
pub(super) struct Change {
    pub axis: usize,
    pub face: usize,
    pub by: f32,
}

impl Walls<'_> {
    /// The walls in a cell.
    pub fn of_cell(&self, cell: usize) -> &[Wall] {
        let walls = self.boundary.walls(cell / CELLS);
        let begin = walls.partition_point(|wall| (wall.cell as usize) < cell);
        let end = walls.partition_point(|wall| wall.cell as usize <= cell);
        &walls[begin..end]
    }

    /// The impulse along the normal, in masses of a full cell × m/s.
    fn press(&self, wall: &Wall) -> f32 {
        let cell = wall.cell as usize;
        let size = wall.area.length();
        let normal = wall.area / size;
        let mut arrival = self.pull - wall.velocity;
        for axis in 0..3 {
            let raw = &self.field.before[axis];
            arrival[axis] += 0.5 * (raw[cell] + raw[self.above(cell, axis)]);
        }
        let fall = self.field.fill[cell].min(1.0) * (-arrival.dot(normal)).max(0.0) * size.min(1.0);
        // The pressure is that of the cell's middle: the half below it adds its own fall.
        fall.max(self.pressure[cell].max(0.0) * size + 0.5 * fall)
    }

    fn above(&self, cell: usize, axis: usize) -> usize {
        let grid = &self.field.grid;
        grid.step(cell / CELLS, cell % CELLS, BESIDE[2 * axis + 1])
    }

    /// A wall as a rigid group feels it.
    pub fn contact(&self, wall: &Wall) -> Contact {
        let size = wall.area.length();
        Contact {
            at: middle_of(self.field, wall.cell as usize),
            normal: wall.area.as_dvec3() / f64::from(size),
            size: f64::from(size),
            velocity: wall.velocity.as_dvec3(),
            press: f64::from(self.press(wall)),
            friction: f64::from(wall.friction),
        }
    }

    /// Friction on a cell that slides: changes its open faces; `feel` hears what each wall takes, in masses of a full cell × m/s.
    pub fn rub(&self, cell: usize, changes: &mut Vec<Change>, mut feel: impl FnMut(&Wall, Vec3)) {
        let walls = self.of_cell(cell);
        if walls.is_empty() {
            return;
        }
        let open = |axis: usize, face: usize| self.boundary.open(axis, face);
        let before = Vec3::from_array(std::array::from_fn(|axis| {
            let above = self.above(cell, axis);
            let (low, high) = (open(axis, cell), open(axis, above));
            let u = &self.field.velocity[axis];
            (low * u[cell] + high * u[above]) / (low + high).max(1e-6)
        }));
        let mass = self.field.fill[cell].clamp(0.1, 1.0);
        let mut velocity = before;
        for wall in walls {
            let sliding = (velocity - wall.velocity).reject_from(wall.area);
            let most = wall.friction * self.press(wall) / mass;
            let lost = sliding.clamp_length_max(most);
            velocity -= lost;
            feel(wall, lost * mass);
        }
        let lost = before - velocity;
        for axis in 0..3 {
            for face in [cell, self.above(cell, axis)] {
                if open(axis, face) > 0.0 {
                    changes.push(Change {
                        axis,
                        face,
                        by: -lost[axis],
                    });
                }
            }
        }
    }
}

/// Applies the changes; a face between two cells takes the mean of what both say.
pub(super) fn apply(field: &mut Field, mut changes: Vec<Change>) {
    changes.sort_by_key(|change| (change.axis, change.face));
    for same in changes.chunk_by(|a, b| (a.axis, a.face) == (b.axis, b.face)) {
        let sum: f32 = same.iter().map(|change| change.by).sum();
        field.velocity[same[0].axis][same[0].face] += sum / same.len() as f32;
    }
}
