//! Sand and water on a grid that follows the particles (Zhu & Bridson 2005).
//!
//! Each step: the particles' velocity goes to the faces of a sparse staggered grid, gravity and walls act there, the grid is
//! solved, and the particles take up the result and move through it. Water is made incompressible by pressure
//! alone; granular material by the coupled solve of `coupled`, or as the authors did in `zhu_bridson`.

mod advance;
mod answer;
mod boundary;
mod carried;
mod coupled;
mod eight;
mod extend;
mod field;
mod lanes;
mod laws;
pub(crate) mod memory;
mod pressure;
mod repair;
mod shift;
mod sweep;
mod transfer;
mod unknowns;
mod zhu_bridson;

use advance::Advance;
use barchan_base::bounds::Bounds;
use barchan_base::column::{self, ColumnSpec};
use barchan_base::grid::{BESIDE, CELLS, Mask, bits_of, places};
use barchan_sim::coupling::Impulses;
use barchan_sim::model::{Material, Model};
use barchan_sim::scene::{FlipSettings, Friction, Transfer};
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::State;
use boundary::Boundary;
use carried::Carried;
use coupled::{Coupled, StepInfo, Stopped, close_faces};
use extend::{Extension, layers};
use field::{FILL_AT_FLOOR, FILL_OF_FLUID, Field, LEAST_FILL};
use glam::{Mat3, Vec3};
use memory::Memory;
use pressure::Pressure;
use rayon::prelude::*;
use repair::{Matter, Repair};
use std::time::Instant;
use unknowns::Unknowns;
use zhu_bridson::ZhuBridson;

/// The longest step, in units of the time that gravity needs for a cell: √(Δx / g).
const LONGEST_STEP: f64 = 0.4;
/// The longest step [s] where nothing pulls.
const LONGEST_FREE_STEP: f64 = 0.02;

/// The shortest step, as part of the longest: a few particles that fly off, or a bullet, must not hold up everything.
const SHORTEST_STEP: f64 = 1.0 / 32.0;

/// Mass of a face that no particle reaches.
const NEXT_TO_NOTHING: f32 = 1e-6;
/// Mass of a face that is held: no stress moves it, yet it answers, so that friction acts on what slides over it.
const HELD_MASS: f32 = 1e12;

/// Columns that the particles carry: pressure, and with APIC the slopes of the velocity about them.
pub(crate) const COLUMNS: &[ColumnSpec] = &[
    ColumnSpec::new("pressure", "Pa", column::Kind::F32),
    ColumnSpec::new("affine", "1/s", column::Kind::Mat3),
];
pub(crate) const PRESSURE: usize = 0;
pub(crate) const AFFINE: usize = 1;

/// What is solved on the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Nothing has friction: pressure alone.
    Fluid,
    /// Pressure and friction together.
    Coupled,
    /// Pressure as in a fluid, then friction cell by cell and rigid groups, as published in 2005.
    ZhuBridson,
}

/// The grid method.
pub struct Flip {
    settings: FlipSettings,
    kind: Kind,
    field: Field,
    boundary: Boundary,
    transfer: transfer::Transfer,
    coupled: Coupled,
    project: Pressure,
    zhu_bridson: ZhuBridson,
    extension: Extension,
    /// Faces that have mass, and faces of active cells, axis by axis.
    faces: [[Mask; 3]; 2],
    carried: Carried,
    pressure: Vec<f32>,
    unknowns: Unknowns,
    repair: Repair,
    shift: Vec<Vec3>,
    held: Vec<(u64, u64)>,
    stopped: Vec<Stopped>,
    watch: Watch,
}

/// The parts of a step.
pub const PHASES: [&str; 5] = ["lay grid", "to grid", "solve", "mend", "to particles"];
const LAY_GRID: usize = 0;
const TO_GRID: usize = 1;
const SOLVE: usize = 2;
const MEND: usize = 3;
const TO_PARTICLES: usize = 4;

/// How long each part of the steps took. Only benchmarks look at it.
struct Watch {
    since: Instant,
    spent: [f64; PHASES.len()],
}

impl Watch {
    fn start(&mut self) {
        self.since = Instant::now();
    }

    /// Books the time since the last call, or the start, on a part.
    fn lap(&mut self, phase: usize) {
        let now = Instant::now();
        self.spent[phase] += (now - self.since).as_secs_f64();
        self.since = now;
    }
}

impl Flip {
    /// The method for the materials of `model`, with these settings.
    pub fn new(model: &Model, settings: FlipSettings) -> Self {
        let fluid = model.materials.iter().all(Material::is_fluid);
        Self {
            settings,
            kind: match settings.friction {
                _ if fluid => Kind::Fluid,
                Friction::Implicit => Kind::Coupled,
                Friction::ZhuBridson => Kind::ZhuBridson,
            },
            project: Pressure::default(),
            zhu_bridson: ZhuBridson::default(),
            field: Field::default(),
            boundary: Boundary::default(),
            transfer: transfer::Transfer::default(),
            coupled: Coupled::default(),
            extension: Extension::default(),
            faces: Default::default(),
            carried: Carried::default(),
            pressure: Vec::new(),
            unknowns: Unknowns::default(),
            repair: Repair::default(),
            shift: Vec::new(),
            held: Vec::new(),
            stopped: Vec::new(),
            watch: Watch {
                since: Instant::now(),
                spent: [0.0; PHASES.len()],
            },
        }
    }

    /// How long [s] each of [`PHASES`] took, over all steps.
    pub fn spent(&self) -> [f64; PHASES.len()] {
        self.watch.spent
    }

    /// Holds cells in the steps to come: their faces stand still whatever pushes them, and they keep their pressure. Keys of blocks,
    /// increasing, each with a bit a cell.
    pub(crate) fn hold(&mut self, cells: Vec<(u64, u64)>) {
        self.held = cells;
    }

    /// The longest step [s] for particles no faster than `speed` [m/s], which are all in the box `near`.
    pub(crate) fn longest_step(
        &self,
        model: &Model,
        state: &State,
        (near, speed): (Bounds, f32),
    ) -> f64 {
        let dx = f64::from(model.resolution);
        let gravity = f64::from(model.gravity.length());
        let falling = LONGEST_STEP * (dx / gravity.max(1e-9)).sqrt();
        let longest = falling.min(LONGEST_FREE_STEP);
        // A body that dashes into the material must not be through it before the material knows.
        let span = (state.clock.time(), longest);
        let bodies = state.solids.fastest_within(model, near, span);
        let crossing = self.settings.cfl * dx / f64::from(speed.max(bodies)).max(1e-9);
        crossing.clamp(SHORTEST_STEP * longest, longest)
    }

    fn is_affine(&self) -> bool {
        self.settings.transfer == Transfer::Apic
    }
}

impl Solver for Flip {
    fn columns(&self) -> &'static [ColumnSpec] {
        if self.is_affine() {
            COLUMNS
        } else {
            &COLUMNS[..1]
        }
    }

    fn private_columns(&self) -> &'static [ColumnSpec] {
        &COLUMNS[AFFINE..]
    }

    fn memory(&self) -> &'static [ColumnSpec] {
        memory::COLUMNS
    }

    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        let near = advance::around(&state.particles.position).grown(model.resolution);
        let speed = advance::fastest(&state.particles.velocity);
        self.longest_step(model, state, (near, speed))
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        self.watch.start();
        self.lay_grid(model, state);
        self.watch.lap(LAY_GRID);
        self.particles_to_grid(model, state);
        self.watch.lap(TO_GRID);
        let mut impulses = Impulses::new(&state.solids);
        self.push(model, dt, &mut impulses);
        let measures = self.solve(model, state, dt, &mut impulses);
        self.extend(self.crossing(model, state, dt));
        self.watch.lap(SOLVE);
        let crowded = self.mend(model, state, dt);
        self.watch.lap(MEND);
        let moved = self.grid_to_particles(model, state, dt, crowded);
        self.watch.lap(TO_PARTICLES);
        Ok(StepReport {
            kinetic_energy: moved.kinetic_energy,
            max_speed: f64::from(moved.max_speed_squared.sqrt()),
            impulses: impulses.into_sums(),
            lost: self.lost(state),
            measures,
        })
    }

    fn cost(&self, model: &Model) -> Cost {
        Cost {
            bytes_per_particle: 300.0,
            seconds_per_particle_step: 1.2e-6,
            // 250 at 2 cm: what moves crosses a cell in a step.
            steps_per_second: 5.0 / f64::from(model.resolution),
        }
    }
}

impl Flip {
    /// The grid around the particles, the particles in its order, and the solids on it.
    fn lay_grid(&mut self, model: &Model, state: &mut State) {
        self.field.lay(&state.particles, model.resolution);
        if !self.field.order.is_sorted() {
            // The shifts of the last step have been carried out: there is room for the particles in their place.
            state.particles.permute(&self.field.order, &mut self.shift);
        }
        self.boundary.sample(&self.field, &state.solids);
    }

    fn particles_to_grid(&mut self, model: &Model, state: &State) {
        let affine = self
            .is_affine()
            .then(|| state.particles.extra[AFFINE].entries::<Mat3>());
        self.transfer.deposit(
            model,
            &state.particles,
            affine,
            &mut self.field,
            &self.boundary,
        );
        self.activate(-model.gravity.normalize_or_zero());
        self.reach_out();
        self.carry();
        self.mark_held();
        self.stop_held();
        self.field.before.clone_from(&self.field.velocity);
    }

    /// Lets what is hardly filled weigh on what it lies on.
    fn carry(&mut self) {
        self.carried.clear();
        if self.kind == Kind::Coupled {
            let Field { grid, .. } = &self.field;
            self.carried.find(grid, &self.boundary, &self.faces);
            self.carried.lend(&mut self.field);
            self.carried.follow(&mut self.field.velocity);
        }
    }

    /// Finds the cells that are solid, and those that carry pressure.
    fn activate(&mut self, up: Vec3) {
        let (least, at_floor) = match self.kind {
            Kind::Fluid => (FILL_OF_FLUID, FILL_OF_FLUID),
            Kind::Coupled | Kind::ZhuBridson => (LEAST_FILL, FILL_AT_FLOOR),
        };
        let boundary = &self.boundary;
        let Field {
            fill,
            active,
            solid,
            ..
        } = &mut self.field;
        (
            fill.par_chunks(CELLS),
            active.par_chunks_mut(CELLS),
            solid.par_chunks_mut(CELLS),
        )
            .into_par_iter()
            .enumerate()
            .with_min_len(16)
            .for_each(|(block, (fill, active, solid))| {
                let floors = boundary.cells_at_floors(block, up);
                for local in 0..CELLS {
                    let is_at_floor = floors >> local & 1 == 1;
                    let least = if is_at_floor { at_floor } else { least };
                    solid[local] = boundary.is_solid(block * CELLS + local);
                    active[local] = fill[local] >= least && !solid[local];
                }
            });
        if self.kind == Kind::ZhuBridson {
            self.field.activate_occupied();
        }
    }

    /// Gives the faces of active cells that no particle reaches the velocity of their neighbours and next to no mass: left at
    /// rest they would stand around the material like a wall.
    fn reach_out(&mut self) {
        self.mark_faces();
        let Field {
            grid,
            velocity,
            mass,
            ..
        } = &mut self.field;
        let [massive, firm] = &self.faces;
        self.extension.extend(grid, velocity, 2, massive);
        for (firm, mass) in firm.iter().zip(mass) {
            mass.par_chunks_mut(CELLS)
                .enumerate()
                .with_min_len(64)
                .for_each(|(block, mass)| {
                    for local in places(firm.of(block)) {
                        mass[local] = mass[local].max(NEXT_TO_NOTHING);
                    }
                });
        }
    }

    /// Finds the faces that have mass, and those of active cells.
    fn mark_faces(&mut self) {
        let Field {
            grid, mass, active, ..
        } = &self.field;
        let [massive, firm] = &mut self.faces;
        let mut is_active = Mask::default();
        is_active.fill(grid, |block| {
            let here = &active[block * CELLS..][..CELLS];
            bits_of(|local| here[local])
        });
        for axis in 0..3 {
            massive[axis].fill(grid, |block| {
                let here = &mass[axis][block * CELLS..][..CELLS];
                bits_of(|local| here[local] > 0.0)
            });
            firm[axis].fill(grid, |block| {
                is_active.of(block) | is_active.beside(grid.around(block), 2 * axis)
            });
        }
    }

    fn mark_held(&mut self) {
        for &(key, cells) in &self.held {
            let Some(block) = self.field.grid.find_key(key) else {
                continue;
            };
            for local in (0..CELLS).filter(|local| cells >> local & 1 == 1) {
                self.field.held[block * CELLS + local] = true;
            }
        }
    }

    /// Stops the faces of held cells, and makes them too heavy to move.
    fn stop_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let Field {
            grid,
            velocity,
            mass,
            held,
            ..
        } = &mut self.field;
        let cells = grid.len() * CELLS;
        for cell in (0..cells).filter(|cell| held[*cell]) {
            for (side, offset) in BESIDE.into_iter().enumerate() {
                let beyond = grid.step(cell / CELLS, cell % CELLS, offset);
                let face = if side.is_multiple_of(2) { cell } else { beyond };
                if face >= cells {
                    continue;
                }
                velocity[side / 2][face] = 0.0;
                mass[side / 2][face] = HELD_MASS;
            }
        }
    }

    /// Gravity, and solids that take the faces they close along.
    fn push(&mut self, model: &Model, dt: f64, impulses: &mut Impulses) {
        let pull = model.gravity * dt as f32;
        for axis in 0..3 {
            (&mut self.field.velocity[axis], &self.field.mass[axis])
                .into_par_iter()
                .filter(|(_, mass)| **mass > 0.0)
                .for_each(|(velocity, _)| *velocity += pull[axis]);
        }
        self.stop_held();
        let unit = self.cell_mass(model);
        let stopped = &mut self.stopped;
        close_faces(&mut self.field, &self.boundary, (impulses, stopped), unit);
    }

    /// Mass of a full cell [kg].
    fn cell_mass(&self, model: &Model) -> f32 {
        (model.lightest() * f64::from(model.resolution).powi(3)) as f32
    }

    /// Solves the grid for its new velocity; returns what there is to tell.
    fn solve(
        &mut self,
        model: &Model,
        state: &mut State,
        dt: f64,
        impulses: &mut Impulses,
    ) -> Vec<(&'static str, f64)> {
        self.unknowns.number(&self.field);
        match self.kind {
            Kind::Fluid => self.solve_fluid(model, state, dt, impulses),
            Kind::Coupled => self.solve_coupled(model, state, dt, impulses),
            Kind::ZhuBridson => {
                let mut measures = self.solve_fluid(model, state, dt, impulses);
                measures.extend(self.resist(model, dt, impulses));
                measures
            }
        }
    }

    /// Pressure alone.
    fn solve_fluid(
        &mut self,
        model: &Model,
        state: &State,
        dt: f64,
        impulses: &mut Impulses,
    ) -> Vec<(&'static str, f64)> {
        let unit = self.pressure_unit(model, dt);
        self.remembered_pressure(state, unit);
        let solved = self.project.project(
            &mut self.field,
            &self.boundary,
            &self.unknowns,
            &mut self.pressure,
        );
        self.push_bodies(model, impulses);
        let Some(solved) = solved else {
            return Vec::new();
        };
        vec![
            ("pressure_iterations", solved.iterations as f64),
            ("pressure_residual", solved.residual),
        ]
    }

    /// The friction of Zhu and Bridson, once the pressure is known.
    fn resist(
        &mut self,
        model: &Model,
        dt: f64,
        impulses: &mut Impulses,
    ) -> Vec<(&'static str, f64)> {
        let step = zhu_bridson::Step {
            boundary: &self.boundary,
            unknowns: &self.unknowns,
            pressure: &self.pressure,
            pull: model.gravity * dt as f32,
            dt: dt as f32,
            unit: self.cell_mass(model),
        };
        self.zhu_bridson.resist(&mut self.field, &step, impulses)
    }

    /// What a scaled pressure of 1 is [Pa].
    fn pressure_unit(&self, model: &Model, dt: f64) -> f32 {
        (model.lightest() * f64::from(model.resolution) / dt) as f32
    }

    /// The pressure that the particles of each cell remember, as a start.
    fn remembered_pressure(&mut self, state: &State, unit: f32) {
        let remembered = state.particles.extra[PRESSURE].entries::<f32>();
        let field = &self.field;
        self.pressure.clear();
        self.pressure.resize(field.grid.cells(), 0.0);
        self.pressure
            .par_iter_mut()
            .enumerate()
            .filter(|(cell, _)| field.active[*cell])
            .for_each(|(cell, pressure)| {
                let here = &remembered[field.particles_of_cell(cell)];
                if !here.is_empty() {
                    *pressure = here.iter().sum::<f32>() / (here.len() as f32 * unit);
                }
            });
    }

    /// Adds what the pressure does to the bodies.
    fn push_bodies(&self, model: &Model, impulses: &mut Impulses) {
        let unit = self.cell_mass(model);
        for block in 0..self.field.grid.len() {
            for wall in self.boundary.walls(block) {
                let cell = wall.cell as usize;
                let push = wall.area * (-self.pressure[cell] * unit);
                impulses.push(
                    wall.body as usize,
                    self.field.center(block, cell % CELLS),
                    push,
                );
            }
        }
    }

    /// Pressure and friction in one solve.
    fn solve_coupled(
        &mut self,
        model: &Model,
        state: &mut State,
        dt: f64,
        impulses: &mut Impulses,
    ) -> Vec<(&'static str, f64)> {
        let memory = Memory::new(&state.memory, dt);
        let pull = model.gravity * dt as f32;
        let step = StepInfo {
            pull,
            push: pull.length(),
            dt: dt as f32,
            cold: memory.is_empty(),
            haste: advance::mean_speed(&state.particles, PRESSURE)
                / (model.gravity.length() * model.resolution).sqrt().max(1e-6),
        };
        let (field, boundary) = (&self.field, &self.boundary);
        self.coupled.lay_out(field, |block| {
            laws::block_setup(field, boundary, &memory, &step, block)
        });
        let unit = self.cell_mass(model);
        self.coupled.answer.begin(&state.solids, impulses, unit);
        let solved = self.coupled.solve(&mut self.field, &step);
        self.coupled
            .push_bodies(impulses, (&self.field, unit), &self.stopped);
        self.pressure.clear();
        self.pressure.resize(self.field.grid.cells(), 0.0);
        for group in self.coupled.groups() {
            for (lane, block) in group.blocks.iter().enumerate() {
                for (local, stress) in group.stress.iter().enumerate() {
                    self.pressure[block * CELLS + local] = stress.pressure.as_array()[lane];
                }
            }
        }
        memory::remember(
            &mut state.memory,
            &self.field.grid,
            self.coupled.groups(),
            dt,
        );
        vec![
            ("sweeps", f64::from(solved.sweeps)),
            (
                "residual",
                solved.residual / f64::from(step.push).max(1e-12),
            ),
        ]
    }

    /// Cells that the fastest particle crosses in the step, at what gravity lets it gain.
    fn crossing(&self, model: &Model, state: &State, dt: f64) -> f32 {
        let dt = dt as f32;
        let speed = advance::fastest(&state.particles.velocity) + model.gravity.length() * dt;
        speed * dt * self.field.inverse
    }

    /// Carries the velocity beyond the material, as far as particles go that cross so many cells.
    fn extend(&mut self, crossing: f32) {
        let layers = layers(crossing);
        self.mark_faces();
        let mut known: [Mask; 3] = std::array::from_fn(|axis| self.known_faces(axis));
        self.carried.follow(&mut self.field.velocity);
        self.carried.add_to(&mut known);
        let Field {
            grid,
            velocity,
            before,
            ..
        } = &mut self.field;
        self.extension.extend(grid, velocity, layers, &known);
        if !matches!(self.settings.transfer, Transfer::Apic) {
            self.extension.extend(grid, before, layers, &known);
        }
    }

    /// The faces whose velocity the solve has found.
    fn known_faces(&self, axis: usize) -> Mask {
        let Field { grid, solid, .. } = &self.field;
        let [massive, firm] = self.faces.each_ref().map(|faces| &faces[axis]);
        let boundary = &self.boundary;
        // Water sticks where two walls meet, on the half cell between them: docs/flip.md tells what that does.
        let sticks_in_corners = self.kind == Kind::Fluid;
        let mut known = Mask::default();
        known.fill(grid, |block| {
            // A face with a little mass beside one that stress holds is not free: it goes along with it.
            let free = massive.of(block) & !firm.beside_any(grid.around(block));
            let known = firm.of(block) | free;
            if !boundary.is_near(block) {
                return known;
            }
            let first = block * CELLS;
            let closed = bits_of(|local| boundary.open(axis, first + local) == 0.0);
            // Faces between two solid cells say nothing: friction is all in the solve, and material slides over them.
            let below = |local| grid.step(block, local, BESIDE[2 * axis]);
            let inside = bits_of(|local| solid[first + local] && solid[below(local)]);
            if sticks_in_corners {
                known | closed & !inside
            } else {
                (known | closed) & !inside
            }
        });
        known
    }

    /// Finds what keeps the particles evenly spread; true where the grid has a displacement for them.
    fn mend(&mut self, model: &Model, state: &State, dt: f64) -> bool {
        // Zhu and Bridson mend nothing: the particles go where the grid takes them.
        let matter = match self.kind {
            Kind::Fluid => Matter::Fluid,
            Kind::Coupled => Matter::Grains,
            Kind::ZhuBridson => {
                self.shift.clear();
                return false;
            }
        };
        let spacing = (model.spacing, dt as f32);
        shift::shift(&self.field, &state.particles, spacing, &mut self.shift);
        self.repair
            .find((&self.field, &self.boundary), &self.unknowns, matter)
    }

    fn grid_to_particles(
        &mut self,
        model: &Model,
        state: &mut State,
        dt: f64,
        crowded: bool,
    ) -> advance::Moved {
        let State {
            particles, solids, ..
        } = state;
        let advance = Advance {
            field: &self.field,
            boundary: &self.boundary,
            solids: solids.all(),
            transfer: self.settings.transfer,
            repair: crowded.then_some(&self.repair.displacement),
            shift: &self.shift,
            pressure: (self.kind == Kind::Coupled).then_some(&self.pressure),
            dt: dt as f32,
            push: model.gravity.length() * dt as f32,
            radius: model.particle_radius(),
        };
        let mut extra = std::mem::take(&mut particles.extra);
        let (common, affine) = extra.split_at_mut(AFFINE);
        let affine = affine
            .first_mut()
            .map(|column| column.entries_mut::<Mat3>());
        let moved = advance.particles(particles, affine);
        self.note_pressure(
            common[PRESSURE].entries_mut(),
            self.pressure_unit(model, dt),
        );
        particles.extra = extra;
        moved
    }

    /// Gives the particles the pressure of the cell they were in.
    fn note_pressure(&self, column: &mut [f32], unit: f32) {
        let field = &self.field;
        (&field.occupied, field.split(&mut column[..field.found()]))
            .into_par_iter()
            .for_each(|(block, column)| {
                let block = *block as usize;
                let first = field.particles_in(block).start;
                for cell in block * CELLS..(block + 1) * CELLS {
                    let here = field.particles_of_cell(cell);
                    column[here.start - first..here.end - first].fill(self.pressure[cell] * unit);
                }
            });
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
