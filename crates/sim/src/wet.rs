//! Regions that turn material wet or dry while it runs.

use crate::clock::Step;
use crate::model::{Model, Wet};
use crate::state::State;
use barchan_base::parallel::CHUNK;
use glam::Vec3;
use rayon::prelude::*;

/// Moves the wetness of particles inside each working region towards its target.
pub fn soak(model: &Model, state: &mut State, step: &Step) {
    for region in &model.wet {
        let time = region.active.elapsed(step.end) - region.active.elapsed(step.start);
        if time <= 0.0 {
            continue;
        }
        let change = (region.rate * time) as f32;
        let particles = &mut state.particles;
        particles
            .wetness
            .par_chunks_mut(CHUNK)
            .zip(particles.position.par_chunks(CHUNK))
            .for_each(|(wetness, positions)| {
                for (wetness, position) in wetness.iter_mut().zip(positions) {
                    let missing = region.wetness - *wetness;
                    if missing != 0.0 && region.shape.contains(*position) {
                        *wetness += missing.clamp(-change, change);
                    }
                }
            });
    }
}

/// Who may have been turned wet or dry in a step, and must not sleep through it.
pub struct Turned<'a> {
    regions: Vec<&'a Wet>,
    /// True where a region began or ended. After such a step nothing tells any more whether it turned those that lack nothing.
    anew: bool,
}

impl<'a> Turned<'a> {
    /// In the step from `start` to `end` [s]; nothing where no region worked.
    pub fn within(model: &'a Model, start: f64, end: f64) -> Option<Self> {
        let works = |wet: &&Wet| wet.active.elapsed(end) > wet.active.elapsed(start);
        let regions: Vec<&Wet> = model.wet.iter().filter(works).collect();
        let within = |time: f64| start <= time && time < end;
        let turns = |wet: &Wet| within(wet.active.from) || within(wet.active.until);
        let anew = model.wet.iter().any(turns);
        (!regions.is_empty()).then_some(Self { regions, anew })
    }

    /// Whether what lies at `place` may have been turned, which has this wetness now.
    pub fn holds(&self, place: Vec3, wetness: f32) -> bool {
        self.regions.iter().any(|region| {
            let turned = self.anew || (region.wetness - wetness).abs() > 0.0;
            turned && region.shape.contains(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::model::Interval;
    use crate::state::Particles;
    use barchan_base::shape::Shape;

    fn step(start: f64, end: f64) -> Step {
        Step {
            ticks: 1,
            start,
            end,
            dt: end - start,
        }
    }

    #[test]
    fn regions_wet_and_dry_what_is_inside_at_their_rate() {
        let mut model = Model::empty();
        let region = |wetness, from, until| Wet {
            shape: Shape::Sphere { radius: 1.0 },
            wetness,
            rate: 0.5,
            active: Interval { from, until },
        };
        model.wet = vec![region(1.0, 1.0, 2.0), region(0.0, 3.0, f64::INFINITY)];
        let mut particles = Particles::default();
        particles.resize(2);
        particles.position[1] = Vec3::X * 2.0;
        let mut state = State {
            clock: Clock::new(24.0),
            particles,
            tally: Default::default(),
            memory: Vec::new(),
            solids: Default::default(),
        };
        let mut after = |start, end| {
            soak(&model, &mut state, &step(start, end));
            assert!(state.particles.wetness[1].abs() < 1e-9, "outside");
            state.particles.wetness[0]
        };
        assert!(after(0.0, 1.0).abs() < 1e-6);
        assert!((after(1.0, 1.5) - 0.25).abs() < 1e-6);
        assert!((after(1.5, 2.5) - 0.5).abs() < 1e-6); // ends at 2 s
        assert!((after(3.0, 3.5) - 0.25).abs() < 1e-6);
        assert!(after(3.5, 9.0).abs() < 1e-6); // never below the target
    }
}
