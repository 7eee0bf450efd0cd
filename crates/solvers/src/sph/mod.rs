//! Material as particles that carry a continuum: SPH with unilateral pressure and Drucker–Prager friction
//! (Ihmsen, Wahl & Teschner 2013), solved so that piles keep their angle and come to rest.
//!
//! A step, in order:
//!
//! 1. sort the particles into cells, leave out those that sleep, place the boundary samples;
//! 2. find neighbours, measure density and the corrected gradient;
//! 3. sweep: move by the stresses, let the stresses answer to the velocity gradient;
//! 4. filter the velocities, repair the volume by displacement, move, stop at bodies.
//!
//! Before the first one, what the scene begins with is laid out evenly; that one sweeps until it bears its weight.
//!
//! Equations and figures are in docs/sph.md.

mod answer;
mod beginning;
mod boundary;
mod eight;
mod finish;
mod ihmsen;
mod implicit;
mod kernel;
mod lists;
mod operator;
mod search;
mod shown;
mod sleep;
mod tensor;
mod work;

use answer::Answer;
use barchan_base::bounds::Bounds;
use barchan_base::column::{ColumnSpec, Kind};
use barchan_sim::coupling::{Impulse, Impulses};
use barchan_sim::model::Model;
use barchan_sim::scene::{SphScheme, SphSettings};
use barchan_sim::solids::Solids;
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::{Particles, State};
use boundary::{Boundary, Layer};
use finish::{Finish, Notes};
use glam::{Vec3, Vec3A};
use ihmsen::Prediction;
use implicit::{Sweep, Viscous};
use kernel::Kernel;
use rayon::prelude::*;
use sleep::{Disturbers, Thresholds};
use std::f32::consts::SQRT_2;
use std::iter;
use work::{Law, Work};

/// Columns of the solver, by their place.
const PRESSURE: usize = 0;
const STRESS: usize = 1;
const SHEAR: usize = 2;
const SHEAR_RATE: usize = 3;
const QUIET: usize = 4;
const USUAL: usize = 5;

const COLUMNS: &[ColumnSpec] = &[
    ColumnSpec::new("pressure", "Pa", Kind::F32),
    ColumnSpec::new("stress_xx_yy_zz", "Pa", Kind::Vec3),
    ColumnSpec::new("stress_yz_xz_xy", "Pa", Kind::Vec3),
    ColumnSpec::new("shear_rate", "1/s", Kind::F32),
    ColumnSpec::new("quiet", "s", Kind::F32),
    ColumnSpec::new("usual_shear", "1/s", Kind::F32),
];

/// Material that carries a load keeps carrying it until it is looser than this; only what carries none must first become
/// full. Between this and the density that is repaired there is room for the disorder of a packing: without it, repairs open
/// what gravity then closes, and a pile creeps.
const HELD: f32 = 0.95;
/// The longest step [s].
const LONGEST_STEP: f64 = 0.01;
/// The longest step over the time that a fall through one spacing takes, √(d/g), and that of the published scheme: 1 ms at 2 cm.
const LONGEST_FALL: f64 = 0.03;
const PUBLISHED_FALL: f64 = 0.022;
/// The longest way in a step over the spacing.
const LONGEST_WAY: f64 = 0.3;
/// Part of the velocity that no gradient sees, taken out in a step.
const FILTER: f32 = 0.2;
/// What particles at a surface lack for being full, over d |Σ V g|; a flat one lacks 0.15. With it the outermost row bears its own
/// weight, and has strength.
const BEYOND: f32 = 0.2;
/// Flow slower than this part of what gravity gives across a spacing in a step does not turn the direction of friction.
const SLOW: f32 = 0.005;
/// What is usual is a mean over so many times √(d/g).
const OF_LATE: f32 = 16.0;
/// Shear beyond this part of √(g/d) is dragged even where it is usual: what flows at its angle would run out too far.
const FLOW: f32 = 0.08;

/// The SPH solver.
pub struct Sph {
    settings: SphSettings,
    work: Work,
    notes: Vec<Notes>,
    /// The forces [N] on the bodies while nobody moves; found again where it is not known.
    resting: Option<Vec<Impulse>>,
}

impl Solver for Sph {
    fn columns(&self) -> &'static [ColumnSpec] {
        COLUMNS
    }

    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        let spacing = f64::from(model.resolution);
        let gravity = f64::from(model.gravity.length());
        let fastest = state
            .particles
            .velocity
            .par_iter()
            .with_min_len(4096)
            .map(|velocity| velocity.length_squared())
            .reduce(|| 0.0, f32::max);
        let part = match self.settings.scheme {
            SphScheme::Implicit => LONGEST_FALL,
            SphScheme::Ihmsen => PUBLISHED_FALL,
        };
        let fall = part * (spacing / gravity).sqrt();
        let span = (state.clock.time(), fall.min(LONGEST_STEP));
        let bodies = state.solids.fastest_within(model, Bounds::EVERYTHING, span);
        let fastest = f64::from(fastest.sqrt().max(bodies));
        let way = LONGEST_WAY * spacing / (fastest + gravity * fall.min(LONGEST_STEP));
        fall.min(way).min(LONGEST_STEP)
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        let kernel = Kernel::new(model.resolution);
        let usual = self.max_dt(model, state);
        let State {
            particles,
            solids,
            clock,
            ..
        } = state;
        let begins = clock.step == 0;
        if begins {
            self.lay_out(model, (particles, solids), &kernel);
        }
        let now = clock.time();
        sleep::wake_turned(model, particles, [now, now + dt]);
        let disturbers = Disturbers::at(model, solids, now);
        let nobody_moves = self.sort(particles, &disturbers, &kernel);
        if nobody_moves && let Some(loads) = &self.resting {
            return Ok(at_rest(loads, dt));
        }
        self.look_around(model, (particles, solids), &kernel);
        let work = &mut self.work;
        work.begins = begins;
        work.stiffness = match begins {
            true => 1.0,
            false => (dt / usual).min(1.0).powi(2) as f32,
        };
        if nobody_moves {
            particles
                .velocity
                .par_iter_mut()
                .for_each(|velocity| *velocity = Vec3::ZERO);
            work.show_stress();
            let loads = work.loads((kernel.volume, 1.0), solids).into_sums();
            let report = at_rest(&loads, dt);
            self.resting = Some(loads);
            return Ok(report);
        }
        self.resting = None;
        let impulses = self.solve(model, dt as f32, &kernel, solids);
        self.finish(model, (particles, solids), dt as f32);
        Ok(self.summary(impulses))
    }

    fn disturb(&self, state: &mut State) {
        state.particles.extra[QUIET].entries_mut::<f32>().fill(0.0);
    }

    fn cost(&self, model: &Model) -> Cost {
        Cost {
            bytes_per_particle: 680.0,
            seconds_per_particle_step: 3.5e-6,
            // 740 at 2 cm: a particle falls a part of its spacing in a step.
            steps_per_second: 740.0 * (0.02 / f64::from(model.resolution)).sqrt(),
        }
    }
}

impl Sph {
    /// A solver with these settings.
    pub fn new(settings: SphSettings) -> Self {
        let mut work = Work::default();
        work.around.boundary = Boundary::new(match settings.scheme {
            SphScheme::Implicit => Layer::AS_PARTICLES,
            SphScheme::Ihmsen => Layer::PUBLISHED,
        });
        Self {
            settings,
            work,
            notes: Vec::new(),
            resting: None,
        }
    }

    /// Sorts the particles into cells and leaves out those that sleep; true where all do.
    fn sort(
        &mut self,
        particles: &Particles,
        disturbers: &Disturbers<'_>,
        kernel: &Kernel,
    ) -> bool {
        let work = &mut self.work;
        work.cells.sort(&particles.position, kernel.reach);
        work.let_sleep(particles, disturbers, kernel)
    }

    /// Places the boundary samples, finds neighbours, and measures what depends on places alone.
    fn look_around(
        &mut self,
        model: &Model,
        (particles, solids): (&Particles, &Solids),
        kernel: &Kernel,
    ) {
        let work = &mut self.work;
        work.gather(particles, &Law::of(model, &self.settings, kernel));
        work.assign_roles(particles);
        work.around.boundary.place(solids, &work.cells, kernel);
        work.search(*kernel);
    }

    /// Moves the particles by their velocities and displacements, stops them at bodies, and hands them back.
    fn finish(&mut self, model: &Model, (particles, solids): (&mut Particles, &Solids), dt: f32) {
        let finish = Finish {
            solids,
            dt,
            spacing: model.resolution,
            thresholds: Thresholds::new(model.resolution, model.gravity.length()),
            limited: self.settings.scheme == SphScheme::Implicit,
        };
        finish.advance(&mut self.work, particles, &mut self.notes);
        finish.hand_back(&mut self.work, particles);
    }

    /// Velocities, and what repairs displace; returns what bodies received.
    fn solve(&mut self, model: &Model, dt: f32, kernel: &Kernel, solids: &Solids) -> Impulses {
        let work = &mut self.work;
        let own = -kernel.slope(0.0) * kernel.volume;
        let share = (kernel.volume, dt);
        let none = Impulses::new(solids);
        let pull = model.gravity.length() / kernel.spacing;
        (work.slow, work.flow) = (SLOW * pull * dt, FLOW * pull.sqrt());
        let longest = (LONGEST_FALL / f64::from(pull.sqrt())).min(LONGEST_STEP) as f32;
        work.short = (dt / longest).min(1.0);
        work.prepare(model.gravity, dt, kernel.spacing);
        match self.settings.scheme {
            SphScheme::Ihmsen => Prediction::new(*kernel, dt).solve(work, self.settings.iterations),
            SphScheme::Implicit => {
                let answer = Answer::of(solids);
                work.soften(answer.as_ref(), kernel.volume);
                work.move_by_stress(dt, own);
                let usual = self.settings.iterations.saturating_sub(1);
                let count = if work.begins {
                    usual.max(beginning::SWEEPS)
                } else {
                    usual
                };
                let sweeps = iter::once(Sweep::First).chain(iter::repeat(Sweep::Other));
                for sweep in sweeps.take(count as usize) {
                    work.let_bodies_answer(answer.as_ref(), share, &none);
                    work.relax(dt, sweep);
                    work.move_by_stress(dt, own);
                }
                work.let_bodies_answer(answer.as_ref(), share, &none);
            }
        }
        let impulses = work.loads(share, solids);
        // The last answer of the stresses is for the next step; its gradient is that of the final velocities.
        match self.settings.scheme {
            SphScheme::Ihmsen => work.differentiate(),
            SphScheme::Implicit => work.relax(dt, Sweep::Last),
        }
        work.note_shear(dt, (dt * pull.sqrt() / OF_LATE).min(1.0));
        match self.settings.scheme {
            SphScheme::Ihmsen => work.skip_repairs(),
            SphScheme::Implicit => {
                let pace = dt / kernel.support;
                work.filter(FILTER, Viscous { pace }, own);
                work.find_repairs(kernel);
            }
        }
        impulses
    }

    /// Adds up the chunks in their order.
    fn summary(&self, mut impulses: Impulses) -> StepReport {
        let mut report = StepReport::default();
        let mut stopped = 0;
        for notes in &self.notes {
            report.kinetic_energy += notes.kinetic_energy;
            report.max_speed = report
                .max_speed
                .max(f64::from(notes.max_speed_squared).sqrt());
            report.lost.extend(&notes.lost);
            stopped += notes.stopped;
            impulses.add(&notes.impulses);
        }
        report.impulses = impulses.into_sums();
        report.lost.sort_unstable();
        let solved = self.work.grains.iter();
        let solved = solved.filter(|grain| !grain.role.is_out()).count();
        report.measures = vec![("solved", solved as f64), ("stopped", stopped as f64)];
        report
    }
}

/// A step in which nobody moves and bodies bear these forces [N].
fn at_rest(loads: &[Impulse], dt: f64) -> StepReport {
    let impulse = |load: &Impulse| Impulse {
        body: load.body,
        linear: load.linear * dt,
        angular: load.angular * dt,
    };
    StepReport {
        impulses: loads.iter().map(impulse).collect(),
        measures: vec![("solved", 0.0), ("stopped", 0.0)],
        ..Default::default()
    }
}

impl Work {
    /// What the bodies receive of the stresses there are: forces per volume that last for a time.
    fn loads(&self, share: (f32, f32), solids: &Solids) -> Impulses {
        let none = Impulses::new(solids);
        self.around
            .reactions(&self.shown, &self.grains, share, &none)
    }

    /// Velocities before pressure and friction, and the stresses to begin with.
    fn prepare(&mut self, gravity: Vec3, dt: f32, spacing: f32) {
        let (beyond, begins) = (BEYOND * spacing, self.begins);
        let kick = Vec3A::from(gravity) * dt;
        let own = (&mut self.grains, &mut self.free, &self.v, &self.density);
        own.into_par_iter()
            .zip(&self.shown)
            .with_min_len(lists::CHUNK)
            .for_each(|((grain, free, v, density), shown)| {
                let bears = begins || shown.pressure().abs() > 0.0;
                let full = if bears { HELD } else { 1.0 };
                grain.gap = (density + beyond * grain.gap - full).min(0.0);
                *free = match grain.role {
                    role if role.is_out() => Vec3A::ZERO,
                    _ => *v + kick,
                };
            });
        self.show_stress();
    }

    /// Makes room in the particles' compliance for that of the bodies.
    fn soften(&mut self, answer: Option<&Answer>, volume: f32) {
        self.around.drifts.clear();
        if let Some(answer) = answer {
            answer.soften(&self.around, &mut self.grains, volume);
        }
    }

    /// Moves the bodies as the stresses there are would.
    fn let_bodies_answer(&mut self, answer: Option<&Answer>, share: (f32, f32), none: &Impulses) {
        if let Some(answer) = answer {
            let impulses = self
                .around
                .reactions(&self.shown, &self.grains, share, none);
            answer.update(impulses, &mut self.around.drifts);
        }
    }

    /// Turns the stresses with the material, and notes how fast it shears; `new` is this step's part in what is usual.
    fn note_shear(&mut self, dt: f32, new: f32) {
        self.grains
            .par_iter_mut()
            .zip(&self.shown)
            .with_min_len(lists::CHUNK)
            .for_each(|(grain, shown)| {
                if grain.role.is_out() {
                    return;
                }
                let gradient = shown.matrix();
                grain.stress = grain.stress.spun(&(gradient * dt));
                let rate = tensor::Sym3::of(&gradient).deviator();
                grain.usual += new * (SQRT_2 * rate.along(&grain.stress) - grain.usual);
                grain.note_shear_rate(SQRT_2 * rate.norm());
            });
    }
}
