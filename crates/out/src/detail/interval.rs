//! All grains from one frame to the next.

use super::advance::Stepper;
use super::contact::Contacts;
use super::density::Density;
use super::field::{Field, Hold};
use super::guides::{Guide, Guides};
use super::order::by_place;
use super::rule::Law;
use super::settings::{Rule, Settings};
use super::walls::{Moment, Walls};
use crate::cache::{Bunch, Grains};
use barchan_base::parallel::{CHUNK, chunks};
use barchan_sim::body::SequenceError;
use barchan_sim::clock::{Clock, TICKS_PER_FRAME};
use barchan_sim::model::Model;
use barchan_sim::solids::BodyPlace;
use glam::Vec3;
use rayon::prelude::*;
use std::iter::repeat_n;
use std::sync::atomic::{AtomicU32, Ordering};

/// Moves grains from frame to frame; holds scratch only.
pub struct Advancer {
    settings: Settings,
    field: Field,
    walls: Walls,
    guides: Vec<Guide>,
    points: Vec<Guide>,
    density: Density,
    holds: Vec<Hold>,
    /// Grain at each place of the order, where they are, and how large.
    order: Vec<u32>,
    position: Vec<Vec3>,
    velocity: Vec<Vec3>,
    radius: Vec<f32>,
}

/// What lies between two frames.
pub struct Interval<'a> {
    /// Number of the first frame.
    pub frame: u32,
    /// Number of the frame at which grains were sampled: steps are counted from there.
    pub since: u32,
    /// Frames a second.
    pub fps: f64,
    /// The particles on their way.
    pub guides: &'a Guides,
    /// Where the bodies are at both ends.
    pub bodies: (&'a [BodyPlace], &'a [BodyPlace]),
}

impl Advancer {
    /// An advancer with these settings.
    pub fn new(settings: Settings) -> Self {
        Self {
            density: Density::new(&settings),
            holds: Vec::new(),
            settings,
            field: Field::default(),
            walls: Walls::default(),
            guides: Vec::new(),
            points: Vec::new(),
            order: Vec::new(),
            position: Vec::new(),
            velocity: Vec::new(),
            radius: Vec::new(),
        }
    }

    /// Moves `grains` over an interval; returns how many steps it took.
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn advance(
        &mut self,
        model: &Model,
        grains: &mut Grains,
        interval: &Interval<'_>,
    ) -> Result<u32, SequenceError> {
        let largest = interval.guides.largest_radius();
        self.field.set_reach(self.settings.reach, largest);
        self.take(grains, self.field.cell());
        self.holds.clear();
        let mut clock = Clock {
            frame: interval.frame,
            ..Clock::new(interval.fps)
        };
        let a_frame = TICKS_PER_FRAME.div_ceil(clock.plan(self.settings.step).ticks);
        let before = u64::from(interval.frame.saturating_sub(interval.since)) * a_frame;
        loop {
            let step = clock.plan(self.settings.step);
            let part = |tick: u64| tick as f32 / TICKS_PER_FRAME as f32;
            let moment = Moment {
                times: (step.start, step.end),
                parts: (part(clock.tick), part(clock.tick + step.ticks)),
            };
            self.walls.place(model, moment, interval.bodies)?;
            self.step(model, interval, moment, before + clock.step);
            if clock.advance(&step) {
                break;
            }
        }
        self.give_back(grains);
        Ok(clock.step as u32)
    }

    fn step(&mut self, model: &Model, interval: &Interval<'_>, moment: Moment, number: u64) {
        let settings = &self.settings;
        let dt = (moment.times.1 - moment.times.0) as f32;
        let alduan = settings.rule == Rule::Alduan;
        // Without particles everything flies.
        let led = !alduan || number.is_multiple_of(settings.every.into());
        let interpolates = led && !interval.guides.is_empty();
        if interpolates {
            interval.guides.during(moment.parts, dt, &mut self.guides);
            self.field.sort_particles(&self.guides, &self.holds);
            if moment.parts.0 <= 0.0 && settings.hold_density && !alduan {
                let fall = model.gravity / interval.fps as f32;
                let around = (&self.field, self.guides.as_slice());
                self.density
                    .holds(around, fall, &self.position, &mut self.holds);
                self.field.sort_particles(&self.guides, &self.holds);
            }
            self.points.clear();
            if !alduan {
                let spacing = 2.0 * interval.guides.largest_radius();
                let (cells, size) = (self.field.cells(), self.field.cell());
                self.walls.points(cells, size, spacing, &mut self.points);
            }
            self.field.sort_walls(&self.points);
        }
        let largest = self.radius.iter().copied().fold(0.0, f32::max);
        let stepper = Stepper {
            law: interpolates.then(|| Law::new(settings)),
            field: &self.field,
            contacts: Contacts::new(model, &self.walls.solids, largest, dt),
            pull: model.gravity * dt,
            dt,
        };
        stepper.advance(&mut self.position, &mut self.velocity, &self.radius);
    }

    /// Copies grains in the order of their places.
    fn take(&mut self, grains: &Grains, reach: f32) {
        self.order = by_place(&grains.position, reach.max(f32::MIN_POSITIVE));
        gather(&grains.position, &self.order, &mut self.position);
        gather(&grains.velocity, &self.order, &mut self.velocity);
        let each = |bunch: &Bunch| repeat_n(bunch.radius, bunch.count as usize);
        let radii: Vec<f32> = grains.bunches.iter().flat_map(each).collect();
        gather(&radii, &self.order, &mut self.radius);
    }

    /// Copies them back.
    fn give_back(&mut self, grains: &mut Grains) {
        let place: Vec<AtomicU32> = (0..self.order.len())
            .into_par_iter()
            .map(|_| AtomicU32::new(0))
            .collect();
        // Each is written once, by whomever.
        chunks(self.order.len()).for_each(|range| {
            for i in range {
                place[self.order[i] as usize].store(i as u32, Ordering::Relaxed);
            }
        });
        let place: Vec<u32> = place.into_iter().map(AtomicU32::into_inner).collect();
        gather(&self.position, &place, &mut grains.position);
        gather(&self.velocity, &place, &mut grains.velocity);
    }
}

/// Makes entry `i` of `to` entry `order[i]` of `from`.
fn gather<T: Copy + Default + Send + Sync>(from: &[T], order: &[u32], to: &mut Vec<T>) {
    to.resize(order.len(), T::default());
    to.par_chunks_mut(CHUNK)
        .zip(order.par_chunks(CHUNK))
        .for_each(|(to, order)| {
            for (to, i) in to.iter_mut().zip(order) {
                *to = from[*i as usize];
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detail::births::{key, sample};
    use barchan_base::Pose;
    use barchan_base::shape::Shape;
    use barchan_sim::body::{Body, Form, Interpolation, Track};
    use barchan_sim::solids::Solids;
    use barchan_sim::state::Particles;
    use glam::Quat;
    use std::sync::Arc;

    const FPS: f64 = 50.0;

    fn settings() -> Settings {
        Settings {
            spread: 0.3,
            ..Settings::plain(64)
        }
    }

    fn model(bodies: Vec<Form>) -> Model {
        let body = |form| Body {
            name: "body".into(),
            form,
            friction: 0.5,
            restitution: Some(0.3),
        };
        Model {
            bodies: bodies.into_iter().map(body).collect(),
            ..Model::empty()
        }
    }

    fn ground() -> Form {
        Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y }))
    }

    /// A block of particles on the ground, `n` along each edge.
    fn block(n: u32) -> Particles {
        let mut particles = Particles::default();
        particles.resize(n.pow(3) as usize);
        for i in 0..n.pow(3) {
            let cell = Vec3::new((i % n) as f32, (i / n % n) as f32, (i / n / n) as f32);
            particles.id[i as usize] = i.into();
            particles.position[i as usize] = (cell + 0.5) * 0.04;
        }
        particles.radius.fill(0.02);
        particles
    }

    fn go(
        model: &Model,
        settings: &Settings,
        grains: &mut Grains,
        (first, second): (&Particles, &Particles),
        frame: u32,
    ) {
        let guides = Guides::in_order(first, second, (1.0 / FPS) as f32);
        let interval = Interval {
            frame,
            fps: FPS,
            guides: &guides,
            bodies: (&[], &[]),
            since: 0,
        };
        let mut advancer = Advancer::new(settings.clone());
        advancer.advance(model, grains, &interval).unwrap();
    }

    /// A block of particles that stands on the ground, and its grains after so many frames.
    fn stood(frames: u32) -> (Model, Particles, Vec<Vec3>, Grains) {
        let (model, settings, base) = (model(vec![ground()]), settings(), block(6));
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.0).unwrap();
        let mut grains = sample(&settings, &base, &solids).unwrap();
        let start = grains.position.clone();
        for frame in 0..frames {
            go(&model, &settings, &mut grains, (&base, &base), frame);
        }
        (model, base, start, grains)
    }

    #[test]
    fn grains_rest_when_the_particles_do() {
        let (_, _, _, grains) = stood(30);
        let moving = grains.velocity.iter().filter(|v| **v != Vec3::ZERO);
        let speeds: Vec<f32> = moving.map(|v| v.length()).collect();
        assert!(
            speeds.is_empty(),
            "of {} some move: {speeds:?}",
            grains.len()
        );
    }

    #[test]
    fn grains_stay_with_particles_that_stand_and_move_as_one_with_them() {
        let (model, base, start, mut grains) = stood(30);
        let far = |a: &[Vec3], b: &[Vec3]| {
            a.iter()
                .zip(b)
                .filter(|(a, b)| a.distance(**b) > 0.03)
                .count()
        };
        // Only those that began above the block or beside it have come down.
        assert!(far(&start, &grains.position) < grains.len() / 20);
        assert!(grains.position.iter().all(|p| p.y > 0.0));
        // Carried sideways, none is left behind.
        let rested = grains.position.clone();
        let mut after = base.clone();
        let shift = Vec3::new(0.01, 0.0, 0.004);
        after.position.iter_mut().for_each(|p| *p += shift);
        after.velocity.fill(shift * FPS as f32);
        let mut before = base.clone();
        before.velocity.fill(shift * FPS as f32);
        go(&model, &settings(), &mut grains, (&before, &after), 30);
        let off = |(a, b): (&Vec3, &Vec3)| (*b - *a - shift).length();
        let inside = rested
            .iter()
            .zip(&grains.position)
            .filter(|(a, _)| a.cmpgt(Vec3::splat(0.03)).all() && a.cmplt(Vec3::splat(0.21)).all());
        assert!(inside.map(off).fold(0.0, f32::max) < 1e-4);
    }

    #[test]
    fn large_grains_rest_as_far_from_the_ground_as_they_reach() {
        let (model, settings) = (model(vec![ground()]), settings());
        let mut grains = Grains::none(key(&settings));
        for (id, radius) in [(0, 0.002), (1, 0.008)] {
            grains.bunches.push(Bunch {
                id,
                count: 1,
                radius,
                mass: 1.0,
                material: 0,
                wetness: 0.0,
            });
            grains.position.push(Vec3::new(id as f32, 0.01, 0.0));
            grains.velocity.push(Vec3::ZERO);
        }
        let none = Particles::default();
        for frame in 0..20 {
            go(&model, &settings, &mut grains, (&none, &none), frame);
        }
        let heights = [grains.position[0].y, grains.position[1].y];
        let off = [heights[0] - 0.002, heights[1] - 0.008];
        assert!(off.iter().all(|off| off.abs() < 2e-5), "{heights:?}");
    }

    #[test]
    fn no_grain_passes_a_thin_plate_or_a_fast_blade() {
        let plate = |half: Vec3| Arc::new(Shape::Cuboid { half });
        let at = |x: f32| Pose::new(Vec3::X * x, Quat::IDENTITY);
        let track = Track::new(&[(0.0, at(-1.0)), (0.02, at(1.0))], Interpolation::Linear);
        let floor = model(vec![Form::Static(plate(Vec3::new(5.0, 1e-4, 5.0)))]);
        let blade = model(vec![Form::Keyframed(
            plate(Vec3::new(1e-4, 5.0, 5.0)),
            track,
        )]);
        let settings = settings();
        let mut grains = Grains::none(key(&settings));
        let random = grains.key.random();
        grains.bunches.push(Bunch {
            id: 0,
            count: 5000,
            radius: 0.002,
            mass: 1.0,
            material: 0,
            wetness: 0.0,
        });
        grains.position = (0..5000)
            .map(|i| random.in_cube(i, 0) * 0.5 + Vec3::Y * 0.01)
            .collect();
        grains.velocity = (0..5000)
            .map(|i| (random.in_cube(i, 3) - Vec3::new(0.5, 1.5, 0.5)) * 80.0)
            .collect();
        let mut falling = grains.clone();
        let none = Particles::default();
        for frame in 0..3 {
            go(&floor, &settings, &mut falling, (&none, &none), frame);
            assert!(falling.position.iter().all(|p| p.y > 0.0), "frame {frame}");
        }
        grains.velocity.fill(Vec3::ZERO);
        go(&blade, &settings, &mut grains, (&none, &none), 0);
        assert!(
            grains.position.iter().all(|p| p.x > 1.0),
            "the blade went through"
        );
    }
    /// Grains of one particle that flies or rests alone, each with a velocity of its own: what part of them is within three radii of it
    /// after `frames`.
    fn near_after(frames: u32, flies: bool) -> f32 {
        let (model, settings) = (model(vec![]), settings());
        let fall = model.gravity;
        let at = |frame: u32| {
            let time = frame as f32 / FPS as f32;
            let mut lone = block(1);
            if flies {
                lone.position[0] += 0.5 * fall * time * time;
                lone.velocity[0] = fall * time;
            }
            lone
        };
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.0).unwrap();
        let mut grains = sample(&settings, &at(0), &solids).unwrap();
        let random = grains.key.random();
        for (i, velocity) in grains.velocity.iter_mut().enumerate() {
            *velocity = random.in_cube(i as u64, 40) - 0.5;
        }
        for frame in 0..frames {
            let pair = (&at(frame), &at(frame + 1));
            go(&model, &settings, &mut grains, pair, frame);
        }
        let centre = at(frames).position[0];
        let near = |p: &&Vec3| p.distance(centre) < 3.0 * 0.02;
        grains.position.iter().filter(near).count() as f32 / grains.len() as f32
    }

    #[test]
    fn a_particle_that_flies_alone_lets_its_grains_go_and_one_that_rests_does_not() {
        // At half a metre a second, 0.2 s are five radii.
        let (flown, rested) = (near_after(10, true), near_after(10, false));
        assert!(flown < 0.2 && rested > 0.8, "{flown}, {rested}");
    }
    #[test]
    fn interpolations_are_as_far_apart_as_asked_across_frames() {
        // Two steps a frame; led every third, a grain among particles at rest falls in the two between.
        let settings = Settings {
            rule: Rule::Alduan,
            every: 3,
            ..settings()
        };
        let (model, base) = (model(vec![]), block(3));
        let mut grains = Grains::none(key(&settings));
        grains.bunches.push(Bunch {
            id: 0,
            count: 1,
            radius: 0.002,
            mass: 1.0,
            material: 0,
            wetness: 0.0,
        });
        grains.position.push(Vec3::splat(0.05));
        grains.velocity.push(Vec3::ZERO);
        let falls = (0..3).map(|frame| {
            go(&model, &settings, &mut grains, (&base, &base), frame);
            grains.velocity[0].y < 0.0
        });
        // Steps 0 and 1, 2 and 3, 4 and 5: the third is led in its middle only.
        assert_eq!(falls.collect::<Vec<_>>(), [true, false, true]);
        assert!(grains.velocity[0].y < -0.15, "fell for two steps");
    }

    #[test]
    fn no_grain_begins_between_a_wall_and_the_floor_it_stands_on() {
        // The wall's lower side is the floor: out of the wall is the short way into the floor, and back.
        let wall = Shape::Cuboid {
            half: Vec3::new(0.1, 0.5, 1.0),
        };
        let pose = Pose::new(Vec3::new(-0.1, 0.5, 0.0), Quat::IDENTITY);
        let wall = Form::Static(Arc::new(wall.placed(pose, 1.0)));
        let model = model(vec![ground(), wall]);
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.0).unwrap();
        let grains = sample(&settings(), &block(6), &solids).unwrap();
        let depth = |p: &Vec3| {
            let all = solids.all().iter().map(|solid| -solid.distance(*p));
            all.fold(f32::NEG_INFINITY, f32::max)
        };
        let deepest = grains.position.iter().map(depth).fold(0.0, f32::max);
        assert!(deepest < 0.5 * grains.bunches[0].radius, "{deepest}");
    }
}
