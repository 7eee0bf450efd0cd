//! Three phases (after Munns 2015, who describes the solver of Holladay and Egbert).
//!
//! What rests is **solid**: its particles leave the computation and are kept as they are. What flows is **liquid**: the grid method,
//! in which the solid cells that the liquid touches stand as cells that nothing moves. What flies is **gas**: free grains, which
//! borrow velocity from the liquid near its surface. A step
//!
//! 1. lets particles change phase: grains that are in a crowd condense, liquid that is alone evaporates, solid cells thaw,
//!    resting ones freeze. A change of phase changes nothing else about a particle;
//! 2. advances the grains, which stop or skim where they meet liquid or solid, and the liquid, with the solid rim held;
//! 3. notes who rests, and turns what is more than a ball.
//!
//! In the state solid particles come first, then liquid, then gas: a step never looks at more of the solid than its rim.

mod bearing;
mod cells;
mod change;
mod cover;
mod frozen;
mod gas;
mod scale;
mod turn;

use crate::ballistic::Ballistic;
use crate::flip::{self, Flip};
use barchan_base::bounds::Bounds;
use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_base::parallel;
use barchan_sim::coupling::{Impulse, Impulses};
use barchan_sim::grain::ORIENTATION;
use barchan_sim::model::{Material, Model};
use barchan_sim::scene::{FlipSettings, HybridSettings, Transfer};
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::{Particles, State, Tally};
use cells::Cells;
use change::{Change, Feeling};
use frozen::{CellSet, Frozen};
use gas::Ground;
use scale::Scale;

/// The phases, as the column `phase` has them. What arrives is liquid until it is found to be something else.
pub const LIQUID: u16 = 0;
/// Free grains.
pub const GAS: u16 = 1;
/// Left out of the computation.
pub const SOLID: u16 = 2;

const PHASE_SPEC: ColumnSpec = ColumnSpec::new("phase", "1", Kind::U16);
const REST_SPEC: ColumnSpec = ColumnSpec::new("rest", "s", Kind::F32);

/// Columns: phase and time of rest behind those of flip, whose last, the slopes of the velocity, only APIC has; and how each
/// particle is turned, where any is more than a ball.
const COLUMNS: &[ColumnSpec] = &[
    flip::COLUMNS[0],
    flip::COLUMNS[1],
    PHASE_SPEC,
    REST_SPEC,
    ORIENTATION,
];
const PRESSURE: usize = flip::PRESSURE;
const AFFINE: usize = flip::AFFINE;
const PHASE: usize = 2;
const REST: usize = 3;
const TURN: usize = 4;

/// Columns of the memory: those of flip, and those of what is solid.
const MEMORY: &[ColumnSpec] = &[
    flip::memory::COLUMNS[0],
    flip::memory::COLUMNS[1],
    flip::memory::COLUMNS[2],
    flip::memory::COLUMNS[3],
    flip::memory::COLUMNS[4],
    flip::memory::COLUMNS[5],
    frozen::COLUMNS[0],
    frozen::COLUMNS[1],
    frozen::COLUMNS[2],
    bearing::COLUMNS[0],
    bearing::COLUMNS[1],
    bearing::COLUMNS[2],
    bearing::COLUMNS[3],
];

/// The method of three phases.
pub struct Hybrid {
    settings: HybridSettings,
    /// True where particles are more than balls.
    turns: bool,
    scale: Scale,
    flip: Flip,
    ballistic: Ballistic,
    frozen: Frozen,
    cells: Cells,
    feeling: Feeling,
}

/// How many particles changed phase in a step.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    froze: usize,
    thawed: usize,
    evaporated: usize,
    condensed: usize,
}

/// The parts of a state that a step works on.
struct Phases {
    solid: Particles,
    liquid: Particles,
    gas: Particles,
}

impl Hybrid {
    /// The method for the materials of `model`; `flip` is how its liquid is solved.
    pub fn new(model: &Model, settings: HybridSettings, flip: FlipSettings) -> Self {
        let scale = Scale::new(model, &settings);
        // One set of columns for all: the slopes are carried along whatever the transfer.
        let flip = FlipSettings {
            transfer: Transfer::Apic,
            ..flip
        };
        Self {
            settings,
            turns: !model.shapes.is_empty(),
            scale,
            flip: Flip::new(model, flip),
            ballistic: Ballistic::default(),
            frozen: Frozen::new(scale.inverse),
            cells: Cells::default(),
            feeling: Feeling::default(),
        }
    }
}

impl Solver for Hybrid {
    fn columns(&self) -> &'static [ColumnSpec] {
        match self.turns {
            true => COLUMNS,
            false => &COLUMNS[..TURN],
        }
    }

    fn private_columns(&self) -> &'static [ColumnSpec] {
        self.flip.private_columns()
    }

    fn memory(&self) -> &'static [ColumnSpec] {
        MEMORY
    }

    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        let particles = &state.particles;
        let phases = particles.extra[PHASE].entries::<u16>();
        let first = solid_count(particles);
        let (velocity, phases) = (&particles.velocity[first..], &phases[first..]);
        let fastest = |range: std::ops::Range<usize>| {
            let each = velocity[range.clone()].iter().zip(&phases[range]);
            let squares = each
                .filter(|(_, p)| **p != GAS)
                .map(|(v, _)| v.length_squared());
            squares.filter(|v| v.is_finite()).fold(0.0, f32::max)
        };
        let speed = parallel::fold_chunks(velocity.len(), 0.0, fastest, f32::max).sqrt();
        // Bodies wherever they are: to look for those that are near would be to look at all that is solid.
        let longest = self
            .flip
            .longest_step(model, state, (Bounds::EVERYTHING, speed));
        match phases.contains(&GAS) {
            true => longest.min(self.ballistic.max_dt(model, state)),
            false => longest,
        }
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        self.scale = Scale::new(model, &self.settings);
        let mut phases = self.take_apart(state);
        let changed = self.change_phases(model, state, &mut phases, dt);
        let mut report = StepReport {
            impulses: Impulses::new(&state.solids).into_sums(),
            ..Default::default()
        };
        let mut lost = Vec::new();
        let flight = self.fly(model, state, &mut phases, dt)?;
        note_lost(&flight, &phases.gas, &mut lost);
        let flow = self.flow(model, state, &mut phases, dt)?;
        note_lost(&flow, &phases.liquid, &mut lost);
        self.drop_rim(&mut phases.liquid);
        self.note_rest(model, &mut phases.liquid, dt as f32);
        if self.turns {
            turn::tumble(&mut phases.liquid, dt as f32);
            turn::tumble(&mut phases.gas, dt as f32);
        }
        add(&mut report.impulses, &flow.impulses);
        add(&mut report.impulses, &flight.impulses);
        self.frozen
            .push_bodies(&state.solids, dt, &mut report.impulses);
        report.kinetic_energy = flow.kinetic_energy + flight.kinetic_energy;
        report.max_speed = flow.max_speed.max(flight.max_speed);
        report.measures = measures(&phases, &changed);
        report.measures.extend(flow.measures);
        self.put_together(state, phases);
        if !lost.is_empty() {
            lost.sort_unstable();
            let ids = &state.particles.id;
            report.lost = (0..ids.len())
                .filter(|i| lost.binary_search(&ids[*i]).is_ok())
                .collect();
        }
        Ok(report)
    }

    fn disturb(&self, state: &mut State) {
        frozen::set_free(state, self.scale.inverse);
        let Particles { extra, .. } = &mut state.particles;
        for phase in extra[PHASE].entries_mut::<u16>() {
            if *phase == SOLID {
                *phase = LIQUID;
            }
        }
        extra[REST].entries_mut::<f32>().fill(0.0);
    }

    fn cost(&self, model: &Model) -> Cost {
        // As if all of it flowed: what rests costs nothing, but nobody knows how much that will be.
        self.flip.cost(model)
    }
}

/// Solid particles, which come first.
fn solid_count(particles: &Particles) -> usize {
    let phases = particles.extra[PHASE].entries::<u16>();
    phases.partition_point(|phase| *phase == SOLID)
}

/// Notes the ids of what a step lost.
fn note_lost(report: &StepReport, particles: &Particles, lost: &mut Vec<u64>) {
    lost.extend(report.lost.iter().map(|i| particles.id[*i]));
}

fn add(sums: &mut [Impulse], more: &[Impulse]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        sum.linear += more.linear;
        sum.angular += more.angular;
    }
}

fn measures(phases: &Phases, changed: &Changed) -> Vec<(&'static str, f64)> {
    vec![
        ("solid", phases.solid.len() as f64),
        ("liquid", phases.liquid.len() as f64),
        ("gas", phases.gas.len() as f64),
        ("froze", changed.froze as f64),
        ("thawed", changed.thawed as f64),
        ("evaporated", changed.evaporated as f64),
        ("condensed", changed.condensed as f64),
    ]
}

/// Moves the flagged particles of `from` to the end of `to`, as `phase`; returns how many.
fn hand_over(from: &mut Particles, to: &mut Particles, flags: &[bool], phase: u16) -> usize {
    let chosen: Vec<u32> = (0..flags.len() as u32)
        .filter(|i| flags[*i as usize])
        .collect();
    if chosen.is_empty() {
        return 0;
    }
    let first = to.len();
    to.append(from, &chosen);
    to.extra[PHASE].entries_mut::<u16>()[first..].fill(phase);
    let keep: Vec<bool> = flags.iter().map(|flag| !flag).collect();
    from.retain(&keep);
    chosen.len()
}

impl Hybrid {
    /// Takes liquid and gas out of the state's particles; what is left is solid.
    fn take_apart(&mut self, state: &mut State) -> Phases {
        let mut solid = std::mem::take(&mut state.particles);
        let first = solid_count(&solid);
        let none = || Particles {
            extra: solid
                .extra
                .iter()
                .map(|column| Column::zeros(column.spec, 0))
                .collect(),
            ..Default::default()
        };
        let (mut liquid, mut gas) = (none(), none());
        let phases = &solid.extra[PHASE].entries::<u16>()[first..];
        let (flying, flowing): (Vec<u32>, Vec<u32>) =
            (first as u32..solid.len() as u32).partition(|i| phases[*i as usize - first] == GAS);
        liquid.append(&solid, &flowing);
        gas.append(&solid, &flying);
        // Nothing behind the solid particles is solid, whatever a file says.
        liquid.extra[PHASE].entries_mut::<u16>().fill(LIQUID);
        solid.resize(first);
        if state.memory.len() != MEMORY.len() {
            state.memory.clear();
        }
        self.frozen
            .take_up(&mut state.memory, &solid, state.clock.step);
        Phases { solid, liquid, gas }
    }

    /// The reverse.
    fn put_together(&mut self, state: &mut State, phases: Phases) {
        let Phases {
            mut solid,
            liquid,
            gas,
        } = phases;
        let count = solid.len();
        if state.memory.len() != flip::memory::COLUMNS.len() {
            flip::memory::recall(&mut state.memory, &[], 1.0);
        }
        self.frozen
            .put_back(&mut state.memory, count, state.clock.step);
        for part in [liquid, gas] {
            let all: Vec<u32> = (0..part.len() as u32).collect();
            solid.append(&part, &all);
        }
        state.particles = solid;
    }

    /// Lets particles change phase.
    fn change_phases(
        &mut self,
        model: &Model,
        state: &mut State,
        phases: &mut Phases,
        dt: f64,
    ) -> Changed {
        let Phases { solid, liquid, gas } = phases;
        let mut changed = Changed::default();
        self.lay(liquid, gas);
        let leaving = gas::evaporating(&self.cells, liquid, &self.scale);
        let joining = gas::condensing(&self.cells);
        changed.evaporated = hand_over(liquid, gas, &leaving, GAS);
        let mut joining = joining;
        joining.resize(gas.len(), false);
        changed.condensed = hand_over(gas, liquid, &joining, LIQUID);
        if changed.evaporated + changed.condensed > 0 {
            self.lay(liquid, gas);
        }
        let now = state.clock.time();
        let change = Change {
            model,
            settings: &self.settings,
            scale: &self.scale,
            solids: &state.solids,
            frozen: &self.frozen,
            span: (now, now + dt),
            step: state.clock.step,
        };
        self.feeling.find(&change, &self.cells);
        let thawing = change.thawing(&self.feeling, &self.cells);
        let freezing = change.freezing(&self.feeling, &self.cells, liquid);
        let covers = change.covers_of(&freezing, &self.cells);
        if !thawing.is_empty() {
            flip::memory::recall(&mut state.memory, &self.frozen.recalled(&thawing), dt);
        }
        changed.froze = self.frozen.freeze(&freezing, solid, liquid, &state.memory);
        for (block, covers) in &covers {
            self.frozen.note_covers(*block, covers);
        }
        changed.thawed = self.frozen.thaw(&thawing, solid, liquid);
        if changed.froze + changed.thawed > 0 {
            self.lay(liquid, gas);
        }
        gas::borrow(&self.cells, (liquid, gas), &self.scale, dt as f32);
        changed
    }

    fn lay(&mut self, liquid: &Particles, gas: &Particles) {
        self.cells
            .lay((liquid, gas), &self.frozen, self.scale.inverse);
    }

    /// Advances the liquid, with the rim of the solid among its particles.
    fn flow(
        &mut self,
        model: &Model,
        state: &mut State,
        phases: &mut Phases,
        dt: f64,
    ) -> Result<StepReport, StepError> {
        if phases.liquid.is_empty() {
            return Ok(StepReport::default());
        }
        let rim: CellSet = change::rim(&self.cells);
        let members = self.frozen.particles_of(&rim);
        phases.liquid.append(&phases.solid, &members);
        let solid_here = |key: &u64| (*key, self.frozen.cells_of(*key));
        let keys = self.cells.grid.keys().iter();
        self.flip.hold(
            keys.map(solid_here)
                .filter(|(_, cells)| *cells != 0)
                .collect(),
        );
        flip::memory::recall(&mut state.memory, &self.frozen.recalled(&rim), dt);
        with_particles(state, &mut phases.liquid, |state| {
            self.flip.step(model, state, dt)
        })
    }

    /// Advances the grains, and lets them stop or skim where they meet liquid or solid.
    fn fly(
        &mut self,
        model: &Model,
        state: &mut State,
        phases: &mut Phases,
        dt: f64,
    ) -> Result<StepReport, StepError> {
        if phases.gas.is_empty() {
            return Ok(StepReport::default());
        }
        let before = phases.gas.position.clone();
        let report = with_particles(state, &mut phases.gas, |state| {
            self.ballistic.step(model, state, dt)
        })?;
        let materials = model.materials.iter();
        let friction = |m: &Material| (!m.is_fluid()).then(|| m.friction_angle.tan() as f32);
        let ground = Ground {
            cells: &self.cells,
            frozen: &self.frozen,
            scale: &self.scale,
            friction: &materials.map(friction).collect::<Vec<_>>(),
        };
        let Phases { liquid, gas, .. } = phases;
        ground.land(&before, (liquid, gas), dt as f32);
        Ok(report)
    }

    /// Takes the solid rim out of the liquid again.
    fn drop_rim(&self, liquid: &mut Particles) {
        let flags = |phases: &[u16]| phases.iter().map(|phase| *phase != SOLID).collect();
        let keep: Vec<bool> = flags(liquid.extra[PHASE].entries());
        if keep.contains(&false) {
            liquid.retain(&keep);
        }
    }

    /// Counts for how long each liquid particle has been still. Fluids never rest.
    fn note_rest(&self, model: &Model, liquid: &mut Particles, dt: f32) {
        let granular: Vec<bool> = model
            .materials
            .iter()
            .map(|m| !Material::is_fluid(m))
            .collect();
        let limit = self.scale.still * self.scale.still;
        let rests = liquid.extra[REST].entries_mut::<f32>().iter_mut();
        let each = rests.zip(liquid.velocity.iter().zip(&liquid.material));
        for (rest, (velocity, material)) in each {
            let still = velocity.length_squared() < limit && granular[*material as usize];
            *rest = if still { *rest + dt } else { 0.0 };
        }
    }
}

/// Lets `act` work on a state of these particles alone.
fn with_particles<T>(
    state: &mut State,
    particles: &mut Particles,
    act: impl FnOnce(&mut State) -> T,
) -> T {
    let mut part = State {
        clock: state.clock,
        particles: std::mem::take(particles),
        tally: Tally::default(),
        memory: std::mem::take(&mut state.memory),
        solids: std::mem::take(&mut state.solids),
    };
    let result = act(&mut part);
    *particles = part.particles;
    state.memory = part.memory;
    state.solids = part.solids;
    result
}
