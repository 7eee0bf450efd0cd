//! Emitters: so many particles by such a time, whatever the steps in between.

use crate::clock::Step;
use crate::model::{Emitter, Model};
use crate::start::{Birth, EMIT_STREAM, add};
use crate::state::State;
use barchan_base::random::Random;
use glam::Vec3;

/// Darts thrown into a shape's bounds before the last one is taken as it is.
const MOST_DARTS: u32 = 256;

/// Adds the particles that are due by the end of the step; returns how many.
///
/// Each is put where its free flight would have been at the start of the step, had it left the emitter at its own
/// moment: streams come out even, not in puffs. Walls on that way stop it.
pub fn emit(model: &Model, state: &mut State, step: &Step) -> u64 {
    let mut total = 0;
    for (index, emitter) in model.emitters.iter().enumerate() {
        let done = state.tally.emitted[index];
        let due = (emitter.rate * emitter.active.elapsed(step.end)).floor() as u64;
        let random = Random::new(model.seed, EMIT_STREAM + index as u64);
        let births: Vec<Birth> = (done..due)
            .map(|number| {
                // Particle `number` is due when rate × elapsed reaches number + 1.
                let moment = emitter.active.from + (number + 1) as f64 / emitter.rate;
                let late = (moment - step.start).clamp(0.0, step.dt) as f32;
                birth(model, state, emitter, &random, number, late)
            })
            .collect();
        add(
            model,
            &mut state.particles,
            &mut state.tally,
            births.into_iter(),
        );
        state.tally.emitted[index] = done.max(due);
        total += due.saturating_sub(done);
    }
    total
}

fn birth(
    model: &Model,
    state: &State,
    emitter: &Emitter,
    random: &Random,
    number: u64,
    late: f32,
) -> Birth {
    let speed = emitter.velocity.length();
    let velocity = match emitter.velocity.try_normalize() {
        Some(axis) if emitter.spread > 0.0 => {
            random.in_cone(axis, emitter.spread, number, 0) * speed
        }
        _ => emitter.velocity,
    };
    let place = point_inside(emitter, random, number);
    let back = place - velocity * late + model.gravity * (0.5 * late * late);
    let radius = model.particle_radius();
    let free = state
        .solids
        .all()
        .iter()
        .filter_map(|solid| solid.sweep(place, back, radius, 0.0))
        .map(|touch| touch.fraction)
        .fold(1.0, f32::min);
    Birth {
        position: place.lerp(back, free),
        velocity: velocity - model.gravity * late,
        material: emitter.material,
    }
}

fn point_inside(emitter: &Emitter, random: &Random, number: u64) -> Vec3 {
    let bounds = emitter.shape.bounds();
    let dart = |i: u32| bounds.min + random.in_cube(number, 2 + 3 * i) * bounds.size();
    (0..MOST_DARTS)
        .map(dart)
        .find(|point| emitter.shape.contains(*point))
        .unwrap_or_else(|| dart(MOST_DARTS))
}
