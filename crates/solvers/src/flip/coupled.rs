//! Pressure, internal friction and wall friction in one solve.
//!
//! All stresses are scaled by Δt / (ρ Δx), so that they are velocities. Unknowns are the pressure P of each active cell,
//! four deviators a cell (one for each of its corners of even parity: they see each of its twelve edges once), and a
//! friction force for each piece of wall. Velocity follows from them linearly,
//!
//! u = u* + w⁻¹ (∇·(s − P) − T),
//!
//! and they must satisfy, cell by cell,
//!
//! 0 ≤ P ⟂ ∇·u + gap ≥ 0,   s on the yield surface of P and turned against the strain rate, or within it where nothing
//! shears,   |T| ≤ μ N and against the sliding, or less where nothing slides.
//!
//! Blocks of cells are swept in eight colours; blocks of a colour share no face, so they run side by side and the order does
//! not depend on the threads. Within a block cells follow each other as Gauss and Seidel do, and every sweep starts ahead,
//! by a capped momentum, of where the last two lead. Stresses are kept from step to step: at rest they are already
//! the answer, and that is what static friction is.

use super::answer::Answer;
use super::boundary::Boundary;
use super::field::Field;
use super::lanes::{BlockSetup, Group, LANES};
use super::sweep::{Progress, SharedFaces, Sweep};
use barchan_base::grid::{BESIDE, CELLS, Halo, SharedFloats, block_of, color_of};
use barchan_sim::coupling::Impulses;
use glam::Vec3;
use rayon::prelude::*;

/// The most momentum between sweeps; more does not converge, since friction does not follow from a potential.
const MOST_MOMENTUM: f32 = 0.85;
/// Sweeps in a step at most, where material hardly moves: what is left undone adds up there, as creep and as load that walls
/// should bear. Where it falls, its inertia outweighs what is left, and a third of them gives the same heap.
const MOST_SWEEPS: f32 = 60.0;
const MOST_SWEEPS_IN_HASTE: f32 = 20.0;
/// The haste (see [`StepInfo`]) up to which material hardly moves, and from which on it falls.
const SLOW: f32 = 0.5;
const HASTY: f32 = 2.0;
/// Sweeps in the first step, which starts from nothing.
const FIRST_SWEEPS: u32 = 400;
/// The solve ends when velocities change by less than this part of what gravity gives in a step.
const TOLERANCE: f64 = 0.002;
/// Strain rates below this part of what gravity gives in a step, per cell, are next to nothing.
const STILL: f32 = 1e-3;
/// No face is lighter than this, so that a thin front does not fly off.
pub(super) const LEAST_MASS: f32 = 0.1;

/// The solve, and the stresses it remembers.
#[derive(Default)]
pub(super) struct Coupled {
    /// Velocity before the last sweep.
    previous: [Vec<f32>; 3],
    groups: Vec<Group>,
    /// Where each colour begins in `groups`.
    colors: [usize; 9],
    /// The bodies that move by force.
    pub answer: Answer,
}

/// How a solve went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solved {
    pub sweeps: u32,
    pub residual: f64,
}

/// What the solve needs to know of the step.
pub(super) struct StepInfo {
    /// Gravity × time step, and its size [m/s].
    pub pull: Vec3,
    pub push: f32,
    pub dt: f32,
    /// No stresses are remembered.
    pub cold: bool,
    /// Speed of the material that bears pressure, root mean square, over what falling through a cell gives.
    pub haste: f32,
}

fn most_sweeps(haste: f32) -> u32 {
    let part = ((haste - SLOW) / (HASTY - SLOW)).clamp(0.0, 1.0);
    (MOST_SWEEPS + (MOST_SWEEPS_IN_HASTE - MOST_SWEEPS) * part) as u32
}

impl Coupled {
    /// Solves for the field's velocity, in place. The groups must have been laid out for this step.
    pub fn solve(&mut self, field: &mut Field, step: &StepInfo) -> Solved {
        for previous in &mut self.previous {
            previous.clear();
            previous.resize(field.grid.cells(), 0.0);
        }
        self.answer.join(field, &mut self.groups);
        let faces = SharedFaces {
            grid: &field.grid,
            halo: &Halo::<1>::new(),
            velocity: field.velocity.each_mut().map(|u| SharedFloats::of(u)),
        };
        self.push_with_remembered_stress(&faces);
        let active: usize = self.groups.iter().map(|group| group.active_cells).sum();
        if active == 0 {
            return Solved::default();
        }
        let solved = self.iterate(&faces, step, active);
        self.groups.par_iter_mut().for_each(Group::note_wall_forces);
        solved
    }

    fn iterate(&mut self, faces: &SharedFaces, step: &StepInfo, active: usize) -> Solved {
        let most = if step.cold {
            FIRST_SWEEPS
        } else {
            most_sweeps(step.haste)
        };
        let tolerance = TOLERANCE * f64::from(step.push).max(1e-9);
        // Never nothing: the octants' shares are measured by it where none of them shears.
        let still = (STILL * step.push).powi(2).max(f32::MIN_POSITIVE);
        let mut theta = 1.0f32;
        let mut momentum = 0.0;
        let mut solved = Solved::default();
        while solved.sweeps < most {
            self.leap(faces, momentum);
            self.answer.follow(&mut self.groups, momentum);
            let backward = solved.sweeps % 2 == 1;
            let progress = self.sweep(faces, (momentum, still), backward);
            solved.sweeps += 1;
            solved.residual = (progress.change / active as f64).sqrt();
            if solved.residual < tolerance && solved.sweeps > 2 {
                break;
            }
            let next = 0.5 * (1.0 + (1.0 + 4.0 * theta * theta).sqrt());
            momentum = ((theta - 1.0) / next).min(MOST_MOMENTUM);
            theta = next;
            if progress.turned_back > 0.0 {
                theta = 1.0;
                momentum = 0.0;
            }
        }
        solved
    }

    /// Moves the velocity ahead along its last change; the stresses follow block by block in the sweep.
    fn leap(&mut self, faces: &SharedFaces, momentum: f32) {
        for (velocity, previous) in faces.velocity.iter().zip(&mut self.previous) {
            previous
                .par_iter_mut()
                .enumerate()
                .with_min_len(4096)
                .for_each(|(cell, previous)| {
                    let now = velocity.get(cell);
                    let ahead = now + momentum * (now - *previous);
                    *previous = now;
                    velocity.set(cell, ahead);
                });
        }
    }

    fn sweep(
        &mut self,
        faces: &SharedFaces,
        (momentum, still): (f32, f32),
        backward: bool,
    ) -> Progress {
        let mut progress = Progress::default();
        for color in 0..8 {
            let color = if backward { 7 - color } else { color };
            let (begin, end) = (self.colors[color], self.colors[color + 1]);
            let parts: Vec<Progress> = self.groups[begin..end]
                .par_iter_mut()
                .map(|group| {
                    let sweep = Sweep {
                        faces,
                        momentum,
                        still,
                        backward,
                    };
                    sweep.group(group)
                })
                .collect();
            for part in parts {
                progress.change += part.change;
                progress.turned_back += part.turned_back;
            }
        }
        progress
    }

    /// Adds what the remembered stresses do to the velocity: the solve starts where the last one ended.
    fn push_with_remembered_stress(&self, faces: &SharedFaces) {
        for color in 0..8 {
            let (begin, end) = (self.colors[color], self.colors[color + 1]);
            self.groups[begin..end].par_iter().for_each(|group| {
                let sweep = Sweep {
                    faces,
                    momentum: 0.0,
                    still: 1.0,
                    backward: false,
                };
                sweep.push(group);
            });
        }
    }

    /// Sets up the blocks of this step, in groups of one colour, with the stresses remembered for them.
    pub fn lay_out(&mut self, field: &Field, make: impl Fn(usize) -> BlockSetup + Sync) {
        let mut by_color: [Vec<usize>; 8] = Default::default();
        for block in 0..field.grid.len() {
            let any = (0..CELLS).any(|local| field.active[block * CELLS + local]);
            if any {
                by_color[color_of(block_of(field.grid.origin(block)))].push(block);
            }
        }
        let mut lanes: Vec<&[usize]> = Vec::new();
        for (color, blocks) in by_color.iter().enumerate() {
            self.colors[color] = lanes.len();
            lanes.extend(blocks.chunks(LANES));
        }
        self.colors[8] = lanes.len();
        self.groups.resize_with(lanes.len(), Group::default);
        self.groups
            .par_iter_mut()
            .zip(lanes)
            .for_each(|(group, blocks)| group.fill(blocks.iter().map(|block| make(*block))));
    }

    /// The groups of blocks, to be remembered.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Adds what the material did to the bodies by pressure and friction; `unit` is the mass of a full cell [kg]. What is held is
    /// borne as it was when it came to be held, and that is not known here. `stopped` is what the bodies took already.
    pub fn push_bodies(
        &mut self,
        impulses: &mut Impulses,
        (field, unit): (&Field, f32),
        stopped: &[Stopped],
    ) {
        let mut walls: Vec<_> = self
            .groups
            .iter_mut()
            .flat_map(|group| {
                let (blocks, stress) = (&group.blocks, &group.stress);
                let walls = group.walls.iter_mut();
                walls.map(move |wall| {
                    (
                        blocks[wall.lane],
                        stress[wall.local].values(wall.lane),
                        wall,
                    )
                })
            })
            .collect();
        walls.sort_by_key(|(block, _, wall)| (*block, wall.local));
        for (block, stress, wall) in walls {
            let cell = block * CELLS + wall.local;
            if field.held[cell] {
                continue;
            }
            let push = (wall.force - wall.push(&stress)) * unit;
            let at = field.center(block, wall.local);
            impulses.push(wall.body, at, push);
            let here = stopped.partition_point(|s| (s.cell, s.body) < (cell, wall.body));
            let here = stopped[here..].iter();
            let here = here.take_while(|s| (s.cell, s.body) == (cell, wall.body));
            wall.load = push + here.map(|s| s.taken).sum::<Vec3>();
        }
    }
}

/// What a body took from a cell of material in stopping it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped {
    cell: usize,
    body: usize,
    /// Momentum [N s].
    taken: Vec3,
}

/// Closes the faces that solids close: they move as the solid does, which takes what the material had more. What was
/// taken is noted in `stopped`, in the order of the cells and bodies.
pub(super) fn close_faces(
    field: &mut Field,
    boundary: &Boundary,
    (impulses, stopped): (&mut Impulses, &mut Vec<Stopped>),
    unit: f32,
) {
    stopped.clear();
    for closed in boundary.closed() {
        let (cell, axis) = (closed.cell as usize, closed.axis as usize);
        // The mass about a face is given as if it were all open; what is really there is less.
        let room = boundary.face_room(axis, cell / CELLS);
        let mass = field.mass[axis][cell] * room.map_or(1.0, |room| room[cell % CELLS]) * unit;
        let mut taken = Vec3::ZERO;
        taken[axis] = mass * (field.velocity[axis][cell] - closed.speed);
        field.velocity[axis][cell] = closed.speed;
        let below = field
            .grid
            .step(cell / CELLS, cell % CELLS, BESIDE[2 * axis]);
        if field.solid[cell] && field.solid[below] {
            continue; // Nothing stops here: the material takes its velocity from the faces outside.
        }
        let outside = if field.solid[cell] { below } else { cell };
        if field.held[outside] {
            continue; // It stood before.
        }
        let at = field.center(cell / CELLS, cell % CELLS);
        let body = closed.body as usize;
        impulses.push(body, at, taken);
        stopped.push(Stopped {
            cell: outside,
            body,
            taken,
        });
    }
    stopped.sort_by_key(|stopped| (stopped.cell, stopped.body));
}
