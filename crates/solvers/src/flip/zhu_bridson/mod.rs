//! Sand as Zhu and Bridson (2005) have it, after the pressure has made it incompressible.
//!
//! Cell by cell, the stress that would stop all sliding is compared with what friction can bear under that pressure. Cells
//! where it can are rigid: connected groups of them move as one body. In the others the sliding friction pushes back. Walls
//! take from the sliding along them by Coulomb's law.
//!
//! The model is kept as published, with what it cannot do: the pressure is a fluid's, the friction explicit and without
//! memory, so piles creep, angles depend on the step, and volume is lost. The coupled solve does better; this one is cheaper,
//! and the one to compare with.

mod group;
mod law;
mod pseudo_inverse;
mod rigid;
mod strain;
mod walls;

use super::boundary::Boundary;
use super::field::Field;
use super::unknowns::Unknowns;
use barchan_base::grid::CELLS;
use barchan_sim::coupling::Impulses;
use glam::{DVec3, Vec3};
use group::Groups;
use law::{Strength, Symmetric, answer};
use rayon::prelude::*;
use rigid::{Contact, Face, project};
use strain::Strain;
use walls::Walls;

/// Cohesion that all sand has, in the weight of a cell of it over the cell's face: the "very small amount" with which the
/// authors keep numerical errors from making a pile slip.
const LEAST_COHESION: f32 = 0.02;

/// The friction of a step.
#[derive(Default)]
pub(super) struct ZhuBridson {
    strain: Strain,
    groups: Groups,
    /// Stresses of the cells, their shear as each of their edges gets it.
    stress: Vec<Symmetric>,
    rigid: Vec<bool>,
}

/// What the friction of a step depends on.
pub(super) struct Step<'a> {
    pub boundary: &'a Boundary,
    pub unknowns: &'a Unknowns,
    /// Scaled pressure of every cell.
    pub pressure: &'a [f32],
    /// Gravity × time step [m/s].
    pub pull: Vec3,
    pub dt: f32,
    /// Mass of a full cell [kg].
    pub unit: f32,
}

/// Cells of a group that are looked at in one piece.
const CHUNK: usize = 1024;

/// A group's faces, chunk by chunk, as it moves them, and what it does to bodies.
struct Moved {
    faces: Vec<Vec<Face>>,
    felt: Vec<(usize, DVec3, DVec3)>,
}

impl ZhuBridson {
    /// Lets friction act on the field's velocity.
    pub fn resist(
        &mut self,
        field: &mut Field,
        step: &Step,
        impulses: &mut Impulses,
    ) -> Vec<(&'static str, f64)> {
        self.judge(field, step);
        self.strain.push(field, &self.stress);
        let (changes, moved) = self.walls_and_groups(field, step, impulses);
        walls::apply(field, changes);
        for moved in &moved {
            for face in moved.faces.iter().flatten() {
                field.velocity[face.axis as usize][face.face as usize] = face.velocity as f32;
            }
            for (body, at, impulse) in &moved.felt {
                let place = at.as_vec3() * field.dx;
                impulses.push(*body, place, impulse.as_vec3() * step.unit);
            }
        }
        let cells = step.unknowns.places.len().max(1);
        vec![
            ("rigid_groups", self.groups.len() as f64),
            (
                "rigid_part",
                self.groups.rigid_cells() as f64 / cells as f64,
            ),
        ]
    }

    /// Finds out which cells hold, and the stress of each.
    fn judge(&mut self, field: &Field, step: &Step) {
        self.strain.find_edges(field, step.boundary);
        self.stress.clear();
        self.stress.resize(field.grid.cells(), Symmetric::default());
        self.rigid.clear();
        self.rigid.resize(field.grid.cells(), false);
        let strain = &self.strain;
        let least = LEAST_COHESION * step.pull.length();
        let cells = field.grid.len() * CELLS;
        (
            self.stress[..cells].par_chunks_mut(CELLS),
            self.rigid[..cells].par_chunks_mut(CELLS),
        )
            .into_par_iter()
            .enumerate()
            .with_min_len(16)
            .for_each(|(block, (stress, rigid))| {
                strain.rates(field, block, |local, rate, counts| {
                    let cell = block * CELLS + local;
                    let strength = Strength {
                        sine: field.sine[cell],
                        cohesion: (field.cohesion[cell] * step.dt * field.inverse).max(least),
                    };
                    let answer = answer(rate, step.pressure[cell], strength);
                    stress[local] = answer.stress.shared_among(counts);
                    rigid[local] = answer.rigid;
                });
            });
        self.groups
            .find((field, step.boundary), step.unknowns, &self.rigid);
    }

    /// What walls take from the cells that slide, and how groups move.
    fn walls_and_groups(
        &self,
        field: &Field,
        step: &Step,
        impulses: &mut Impulses,
    ) -> (Vec<walls::Change>, Vec<Moved>) {
        let walls = Walls {
            field,
            boundary: step.boundary,
            pressure: step.pressure,
            pull: step.pull,
        };
        let mut changes = Vec::new();
        for cell in step.unknowns.places.iter().map(|cell| *cell as usize) {
            if !self.rigid[cell] {
                let at = field.center(cell / CELLS, cell % CELLS);
                walls.rub(cell, &mut changes, |wall, lost| {
                    impulses.push(wall.body as usize, at, lost * step.unit);
                });
            }
        }
        let moved = (0..self.groups.len())
            .into_par_iter()
            .map(|group| self.group_motion(&walls, group))
            .collect();
        (changes, moved)
    }

    fn group_motion(&self, walls: &Walls, group: usize) -> Moved {
        let seen = (walls.field, walls.boundary);
        let chunks = || self.groups.cells(group).par_chunks(CHUNK);
        let of_chunk = |cells: &[u32]| {
            let mut faces = Vec::with_capacity(4 * cells.len());
            self.groups.faces(seen, cells, |face, at| {
                faces.push(Face {
                    axis: face.axis as u32,
                    face: face.face as u32,
                    at,
                    mass: f64::from(walls.field.mass[face.axis][face.face]),
                    velocity: f64::from(walls.field.velocity[face.axis][face.face]),
                });
            });
            faces
        };
        let mut faces: Vec<Vec<Face>> = chunks().map(of_chunk).collect();
        let touched = || {
            let cells = self.groups.cells(group).iter();
            cells.flat_map(|cell| walls.of_cell(*cell as usize))
        };
        let contacts: Vec<Contact> = touched().map(|wall| walls.contact(wall)).collect();
        let (motion, given) = project(&faces, &contacts);
        let felt = touched()
            .zip(&contacts)
            .zip(given)
            .map(|((wall, contact), given)| (wall.body as usize, contact.at, -given))
            .collect();
        faces.par_iter_mut().flatten_iter().for_each(|face| {
            face.velocity = face.carried(&motion);
        });
        Moved { faces, felt }
    }
}
