//! Grain by grain: rigid grains of one or more balls that touch (Alduán, Tena & Otaduy 2009, section 3), with
//! Hertz–Mindlin contacts that remember, or the paper's own law.
//!
//! A step, in order:
//!
//! 1. half a step of the forces of the step before, then a step of free flight and free turning;
//! 2. where someone has come half the skin, the lists of near pairs are made anew, springs carried over;
//! 3. chunk by chunk, the forces of all contacts, with grains and with solids, and half a step of these forces.
//!
//! Equations and figures are in docs/dem.md.

mod finish;
mod forces;
mod law;
mod lists;
mod motion;
mod number;
mod scale;
mod sleep;
mod store;
mod walls;
mod work;

pub use scale::Scale;

use barchan_base::column::{ColumnSpec, Kind};
use barchan_sim::coupling::Impulses;
use barchan_sim::grain::{Grain, ORIENTATION};
use barchan_sim::model::Model;
use barchan_sim::scene::{Contact, DemSettings};
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::state::State;
use finish::{Moved, Shown};
use forces::{Scene, Touched};
use law::{Alduan, HertzMindlin, Pair, damping};
use std::f64::consts::PI;
use store::{Marks, Store};
use work::{Outside, Work};

const COLUMNS: &[ColumnSpec] = &[ORIENTATION, ColumnSpec::new("spin", "rad/s", Kind::Vec3)];

/// The solver of single grains.
pub struct Dem {
    settings: DemSettings,
    scale: Scale,
    materials: usize,
    pairs: Vec<Pair>,
    walls: Vec<Pair>,
    work: Work,
}

impl Dem {
    /// A solver for `model` with these settings.
    pub fn new(model: &Model, settings: DemSettings) -> Self {
        let scale = Scale::of(model, &settings.contact);
        Self {
            settings,
            scale,
            materials: model.grains.len(),
            pairs: pairs(model, &settings.contact, scale.young),
            walls: walls(model, &settings.contact, scale.young),
            work: Work::default(),
        }
    }

    /// The stiffness and the step that it works with.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The forces of all contacts, and the half step that they end the step with.
    fn load(&self, outside: &Outside, state: &mut State, dt: f64) -> Vec<(Touched, Moved)> {
        let mut store = Store::open(&mut state.memory);
        let finish = self.work.finish(outside, dt);
        let after = (&finish, Shown::chunks(&mut state.particles));
        let scene = Scene {
            pairs: &self.pairs,
            materials: self.materials,
            walls: &self.walls,
            solids: &state.solids,
            makes: &self.work.makes,
            seen: &self.work.seen,
            places: &self.work.places,
            balls: &self.work.balls,
            owners: &self.work.owners,
            active: &self.work.active,
            dt,
        };
        match self.settings.contact {
            Contact::HertzMindlin(_) => scene.load(HertzMindlin, &mut store, after),
            Contact::Alduan {
                stiffness,
                damping,
                viscous_friction,
                ..
            } => {
                let law = Alduan {
                    stiffness,
                    damping,
                    viscous_friction,
                };
                scene.load(law, &mut store, after)
            }
        }
    }
}

impl Solver for Dem {
    fn columns(&self) -> &'static [ColumnSpec] {
        COLUMNS
    }

    fn memory(&self) -> &'static [ColumnSpec] {
        store::MEMORY
    }

    fn max_dt(&self, _: &Model, state: &State) -> f64 {
        // The contact of two that are faster than expected is shorter, as the fifth root of their speed.
        let faster = store::fastest(state) / self.scale.speed;
        self.scale.step / faster.max(1.0).powf(0.2)
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        let outside = Outside::of(model);
        let changed = self.work.receive(model, state, dt)?;
        let speed = self.work.advance(&outside, state, dt);
        let marks = travel(state, speed, dt);
        let renew = changed || marks.travelled > marks.half_skin;
        if renew {
            let rolls =
                [&self.pairs, &self.walls].map(|all| all.iter().any(|pair| pair.rolling > 0.0));
            self.work.renew((model, rolls), state, speed * dt);
        }
        let (touched, moved): (Vec<_>, Vec<_>) = self.load(&outside, state, dt).into_iter().unzip();
        self.work
            .stop(&moved, Store::open(&mut state.memory).motions());
        let mut report = summary(state, &touched, moved);
        if state.clock.step == 0 {
            refuse_overlap(&report)?;
        }
        report
            .measures
            .push(("searched", f64::from(u8::from(renew))));
        Ok(report)
    }

    fn admit(&self, max_step: f64) -> Result<(), String> {
        let step = self.scale.step;
        if max_step.is_finite() && max_step > step * (1.0 + 1e-9) {
            return Err(format!(
                "max_step = {max_step:.3e} s is too long: the shortest contact needs steps of at most {step:.3e} s. \
                 Set max_step to that or less, leave it out, or allow a larger overlap for softer grains"
            ));
        }
        if max_step < SHORTEST * step {
            return Err(format!(
                "max_step = {max_step:.3e} s would take {:.0} steps where one of {step:.3e} s does: leave max_step out",
                step / max_step
            ));
        }
        Ok(())
    }

    fn disturb(&self, state: &mut State) {
        if !state.memory.is_empty() {
            sleep::wake_all(&mut Store::open(&mut state.memory));
        }
    }

    fn cost(&self, _: &Model) -> Cost {
        Cost {
            bytes_per_particle: 900.0,
            seconds_per_particle_step: 4e-7,
            steps_per_second: 1.0 / self.scale.step,
        }
    }
}

/// Grains that lie into each other this deep at the start, over the smaller radius, were not meant to.
const MOST_OVERLAP: f64 = 0.25;

fn refuse_overlap(report: &StepReport) -> Result<(), StepError> {
    let overlap = report.measures.iter().find(|(name, _)| *name == "overlap");
    match overlap {
        Some((_, overlap)) if *overlap > MOST_OVERLAP => Err(StepError(format!(
            "grains overlap at the start by {:.0} % of a radius, with each other or with a body, and would burst apart: \
             keep fills a grain's size apart from each other and half of it from bodies",
            100.0 * overlap
        ))),
        _ => Ok(()),
    }
}

/// A step this much shorter than needed is a mistake.
const SHORTEST: f64 = 2e-4;

/// Part of the highest speed that is still thought of a step later: a tenth is forgotten in a contact or two.
const REMEMBERED: f64 = 1.0 - 1.0 / 256.0;

/// Adds the step's way to the marks; `speed` [m/s] is that of the fastest ball.
fn travel(state: &mut State, speed: f64, dt: f64) -> Marks {
    let solids = state
        .solids
        .all()
        .iter()
        .map(|solid| f64::from(solid.speed()));
    let fastest = solids.fold(speed, f64::max);
    let mut store = Store::open(&mut state.memory);
    let marks = store.marks();
    marks.travelled += fastest * dt;
    // What stops in a contact was fast when it came, and will be when it leaves: its steps must not grow meanwhile.
    marks.fastest = speed.max(marks.fastest * REMEMBERED);
    *marks
}

fn summary(state: &State, touched: &[Touched], moved: Vec<Moved>) -> StepReport {
    let mut report = StepReport::default();
    let mut impulses = Impulses::new(&state.solids);
    let (mut pairs, mut deepest, mut awake) = (0.0, 0.0f64, 0);
    for part in touched {
        impulses.add(&part.impulses);
        pairs += part.pairs;
        deepest = deepest.max(part.deepest);
    }
    for part in moved {
        report.kinetic_energy += part.kinetic_energy;
        report.max_speed = report.max_speed.max(part.max_square.sqrt());
        report.lost.extend(part.lost);
        awake += part.awake;
    }
    report.impulses = impulses.into_sums();
    report.measures = vec![
        ("contacts", pairs),
        ("overlap", deepest),
        ("awake", f64::from(awake)),
    ];
    report
}

/// Part of space that poured balls fill, and how many others each of them touches: `tests/interop/lammps/run.sh --pour`.
const FILLED: f64 = 0.58;
const CONTACTS: f64 = 4.6;

/// Pull between two grains over the square of their effective radius [Pa], for a `cohesion` [Pa] of the material and its friction angle [rad]: what
/// Rumpf (1962) finds for the tensile strength σ = c / tan φ of balls of one size d that fill a part ν of space with Z contacts each,
/// F = π d² σ / (ν Z), with d four effective radii. (His rule Z = π / (1 − ν), for want of a better one, has 7.5 of them.)
fn suction(friction_angle: f64, cohesion: f64) -> f64 {
    let tensile = cohesion / friction_angle.tan().max(0.1);
    16.0 * PI * tensile / (FILLED * CONTACTS)
}

/// Constants of each material with each, row by row.
fn pairs(model: &Model, contact: &Contact, young: f64) -> Vec<Pair> {
    let mean = |a: f64, b: f64| 0.5 * (a + b);
    let all = || model.grains.iter().zip(&model.materials);
    all()
        .flat_map(|one| all().map(move |other| (one, other)))
        .map(|((grain, material), (other_grain, other))| {
            let elastic = Pair::elastic((young, grain.poisson), (young, other_grain.poisson));
            let friction = match contact {
                Contact::HertzMindlin(_) => mean(grain.friction, other_grain.friction),
                Contact::Alduan { friction, .. } => *friction,
            };
            Pair {
                damping: damping(mean(material.restitution, other.restitution)),
                friction,
                rolling: mean(grain.rolling, other_grain.rolling),
                turning: mean(turning(grain, friction), turning(other_grain, friction)),
                pull: mean(grain.stickiness, other_grain.stickiness)
                    * 2.0
                    * f64::from(model.gravity.length()),
                suction: (
                    mean(
                        suction(material.friction_angle, material.cohesion),
                        suction(other.friction_angle, other.cohesion),
                    ),
                    mean(
                        suction(material.friction_angle, material.wet_cohesion),
                        suction(other.friction_angle, other.wet_cohesion),
                    ),
                ),
                ..elastic
            }
        })
        .collect()
}

/// Resistance of a grain to turning upon what it touches with this `friction`: balls have none, unless a scene says so, and what is
/// made of several the little that rough spots have.
fn turning(grain: &Grain, friction: f64) -> f64 {
    const OF_COMPOSITES: f64 = 0.02;
    match grain.shape.balls() {
        [_] => 0.0,
        _ => OF_COMPOSITES * friction.min(1.0),
    }
}

/// Rolling resistance of a grain on a wall of this `friction`. What is too smooth to rub does not keep a grain from rolling
/// either. No flat wall rubs with more than 1: what is beyond is bumps, and those are in a rolling grain's way too. A layer
/// that is pushed rolls off with twice the lever of a grain that rolls alone.
fn rolling_on(grain: &Grain, friction: f64) -> f64 {
    grain.rolling.max(2.0 * (friction - 1.0)).min(friction)
}

/// Constants of each material with each solid, row by row; solids are rigid.
fn walls(model: &Model, contact: &Contact, young: f64) -> Vec<Pair> {
    let all = model.grains.iter().zip(&model.materials);
    all.flat_map(|one| model.bodies.iter().map(move |body| (one, body)))
        .map(|((grain, material), body)| {
            let friction = match contact {
                Contact::HertzMindlin(_) => f64::from(body.friction),
                Contact::Alduan { friction, .. } => *friction,
            };
            Pair {
                damping: damping(body.restitution.map_or(material.restitution, f64::from)),
                friction,
                rolling: rolling_on(grain, friction),
                turning: turning(grain, friction),
                ..Pair::elastic((young, grain.poisson), (f64::INFINITY, 0.0))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poured_balls_are_as_strong_as_their_material_is_asked_to_be() {
        let angle = 30f64.to_radians();
        let (diameter, cohesion) = (0.004_f64, 500.0);
        // Two equal balls have an effective radius of a quarter of their diameter.
        let pull = suction(angle, cohesion) * (0.25 * diameter).powi(2);
        // The stress of contacts that pull in all directions is a third of force times length, of all in a unit of space.
        let balls = FILLED / (PI / 6.0 * diameter.powi(3));
        let contacts = 0.5 * CONTACTS * balls;
        let strength = contacts * pull * diameter / 3.0;
        assert!((strength * angle.tan() / cohesion - 1.0).abs() < 1e-12);
    }
}
