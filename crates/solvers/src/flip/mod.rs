//! Sand and water on a grid that follows the particles (Zhu & Bridson 2005).
//!
//! Each step: the particles' velocity goes to the faces of a sparse staggered grid, gravity and walls act there, the grid is
//! solved, and the particles take up the result and move through it. Water is made incompressible by pressure
//! alone; granular material by the coupled solve of `coupled`, or as the authors did in `zhu_bridson`.

mod advance;
mod boundary;
mod coupled;
mod extend;
mod field;
mod laws;
mod memory;
mod repair;
mod shift;
mod sweep;
mod transfer;
mod unknowns;

use advance::Advance;
use barchan_base::column::{ColumnSpec, Kind};
use barchan_base::grid::CELLS;
use barchan_sim::coupling::Impulse;
use barchan_sim::model::Model;
use barchan_sim::scene::{FlipSettings, Transfer};
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::State;
use boundary::Boundary;
use coupled::{Coupled, StepInfo, close_faces};
use extend::Extension;
use field::{ACTIVE_FILL, Field};
use glam::{Mat3, Vec3};
use memory::Memory;
use rayon::prelude::*;
use repair::Repair;
use unknowns::Unknowns;

/// The longest step, in units of the time that gravity needs for a cell: √(Δx / g).
const LONGEST_STEP: f64 = 0.4;
/// The longest step [s] where nothing pulls.
const LONGEST_FREE_STEP: f64 = 0.02;

const AFFINE: &[ColumnSpec] = &[ColumnSpec {
    name: "affine",
    unit: "1/s",
    kind: Kind::Mat3,
}];

/// The grid method.
pub struct Flip {
    settings: FlipSettings,
    field: Field,
    boundary: Boundary,
    transfer: transfer::Transfer,
    coupled: Coupled,
    extension: Extension,
    pressure: Vec<f32>,
    unknowns: Unknowns,
    repair: Repair,
    shift: Vec<Vec3>,
}

impl Flip {
    /// The method with these settings.
    pub fn new(settings: FlipSettings) -> Self {
        Self {
            settings,
            field: Field::default(),
            boundary: Boundary::default(),
            transfer: transfer::Transfer::default(),
            coupled: Coupled::default(),
            extension: Extension::default(),
            pressure: Vec::new(),
            unknowns: Unknowns::default(),
            repair: Repair::default(),
            shift: Vec::new(),
        }
    }

    fn is_affine(&self) -> bool {
        self.settings.transfer == Transfer::Apic
    }
}

impl Solver for Flip {
    fn columns(&self) -> &'static [ColumnSpec] {
        if self.is_affine() { AFFINE } else { &[] }
    }

    fn memory(&self) -> &'static [ColumnSpec] {
        memory::COLUMNS
    }

    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        let dx = f64::from(model.resolution);
        let gravity = f64::from(model.gravity.length());
        let falling = LONGEST_STEP * (dx / gravity.max(1e-9)).sqrt();
        let speed = f64::from(advance::fastest(&state.particles.velocity));
        let crossing = self.settings.cfl * dx / speed.max(1e-9);
        falling.min(crossing).min(LONGEST_FREE_STEP)
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        self.lay_grid(model, state);
        self.particles_to_grid(model, state);
        let mut impulses = self.push(model, dt);
        let measures = self.solve(model, state, dt, &mut impulses);
        self.extend();
        let moved = self.grid_to_particles(model, state, dt);
        Ok(StepReport {
            kinetic_energy: moved.kinetic_energy,
            max_speed: f64::from(moved.max_speed_squared.sqrt()),
            impulses,
            lost: self.lost(state),
            measures,
        })
    }

    fn cost(&self) -> Cost {
        Cost {
            bytes_per_particle: 300.0,
            seconds_per_particle_step: 1.2e-6,
            steps_per_second: 250.0,
        }
    }
}

impl Flip {
    /// The grid around the particles, the particles in its order, and the solids on it.
    fn lay_grid(&mut self, model: &Model, state: &mut State) {
        self.field.lay(&state.particles, model.resolution);
        if !self.field.order.is_sorted() {
            state.particles.permute(&self.field.order);
        }
        self.boundary.sample(&self.field, &state.solids);
    }

    fn particles_to_grid(&mut self, model: &Model, state: &State) {
        let affine = self
            .is_affine()
            .then(|| state.particles.extra[0].entries::<Mat3>());
        self.transfer.to_grid(
            model,
            &state.particles,
            affine,
            &mut self.field,
            &self.boundary,
        );
        let Field {
            fill,
            active,
            solid,
            velocity,
            before,
            ..
        } = &mut self.field;
        let boundary = &self.boundary;
        (&*fill, active, solid)
            .into_par_iter()
            .enumerate()
            .for_each(|(cell, (fill, active, solid))| {
                *solid = boundary.is_solid(cell);
                *active = *fill >= ACTIVE_FILL && !*solid;
            });
        before.clone_from(velocity);
    }

    /// Gravity, and solids that take the faces they close along.
    fn push(&mut self, model: &Model, dt: f64) -> Vec<Impulse> {
        let pull = model.gravity * dt as f32;
        for axis in 0..3 {
            (&mut self.field.velocity[axis], &self.field.mass[axis])
                .into_par_iter()
                .filter(|(_, mass)| **mass > 0.0)
                .for_each(|(velocity, _)| *velocity += pull[axis]);
        }
        let unit = self.cell_mass(model);
        close_faces(&mut self.field, &self.boundary, model.bodies.len(), unit)
    }

    /// Mass of a full cell [kg].
    fn cell_mass(&self, model: &Model) -> f64 {
        let density = model.materials.first().map_or(0.0, |first| first.density);
        density * f64::from(model.resolution).powi(3)
    }

    fn solve(
        &mut self,
        model: &Model,
        state: &mut State,
        dt: f64,
        impulses: &mut [Impulse],
    ) -> Vec<(&'static str, f64)> {
        let memory = Memory::new(&state.memory, dt);
        let pull = model.gravity * dt as f32;
        let step = StepInfo {
            pull,
            push: pull.length(),
            dt: dt as f32,
            cold: memory.is_empty(),
        };
        let (field, boundary) = (&self.field, &self.boundary);
        self.coupled.lay_out(field, |block| {
            laws::block_work(field, boundary, &memory, &step, block)
        });
        let solved = self.coupled.solve(&mut self.field, &step);
        let bodies = model.bodies.len();
        let unit = self.cell_mass(model);
        for (sum, more) in impulses
            .iter_mut()
            .zip(self.coupled.impulses(bodies, &self.field, unit))
        {
            sum.linear += more.linear;
            sum.angular += more.angular;
        }
        self.pressure.clear();
        self.pressure.resize(self.field.grid.cells(), 0.0);
        for work in self.coupled.work() {
            for (local, stress) in work.stress.iter().enumerate() {
                self.pressure[work.block * CELLS + local] = stress.pressure;
            }
        }
        memory::remember(&mut state.memory, &self.field.grid, self.coupled.work(), dt);
        vec![
            ("sweeps", f64::from(solved.sweeps)),
            (
                "residual",
                solved.residual / f64::from(step.push).max(1e-12),
            ),
        ]
    }

    fn extend(&mut self) {
        let Field {
            grid,
            velocity,
            before,
            mass,
            ..
        } = &mut self.field;
        let boundary = &self.boundary;
        let known =
            |axis: usize, cell: usize| mass[axis][cell] > 0.0 || boundary.open(axis, cell) == 0.0;
        self.extension.extend(grid, velocity, known);
        if !matches!(self.settings.transfer, Transfer::Apic) {
            self.extension.extend(grid, before, known);
        }
    }

    fn grid_to_particles(&mut self, model: &Model, state: &mut State, dt: f64) -> advance::Moved {
        let State {
            particles, solids, ..
        } = state;
        self.unknowns.number(&self.field);
        let crowded = self
            .repair
            .find(&self.field, &self.boundary, &self.unknowns);
        let spacing = (model.spacing, dt as f32);
        shift::shift(&self.field, particles, spacing, &mut self.shift);
        let advance = Advance {
            field: &self.field,
            boundary: &self.boundary,
            solids: solids.all(),
            transfer: self.settings.transfer,
            repair: crowded.then_some(&self.repair.displacement),
            shift: &self.shift,
            pressure: Some(&self.pressure),
            dt: dt as f32,
            push: model.gravity.length() * dt as f32,
            radius: model.particle_radius(),
        };
        let mut extra = std::mem::take(&mut particles.extra);
        let affine = self.is_affine().then(|| extra[0].entries_mut::<Mat3>());
        let moved = advance.particles(particles, affine);
        particles.extra = extra;
        moved
    }

    /// Particles that are nowhere on the grid, or no longer finite.
    fn lost(&self, state: &State) -> Vec<usize> {
        let found = self.field.found();
        let bad = |i: &usize| {
            *i >= found
                || !state.particles.position[*i].is_finite()
                || !state.particles.velocity[*i].is_finite()
        };
        (0..state.particles.len()).filter(bad).collect()
    }
}
