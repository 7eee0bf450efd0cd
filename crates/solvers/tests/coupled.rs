//! Free grains and dynamic bodies push each other.
#![allow(clippy::unwrap_used)] // helpers of tests may panic

use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Dynamic, Form, Joint, JointKind};
use barchan_sim::coupling::{Coupling, coupling};
use barchan_sim::model::{Fill, Material, Model};
use barchan_sim::run::{Outcome, RecordError, Recorder, Run, StepLine};
use barchan_sim::solids::BodyPlace;
use barchan_sim::start::{Birth, add, start};
use barchan_sim::state::State;
use glam::{DMat3, DQuat, DVec3, Quat, Vec3};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn model(gravity: f32, bodies: Vec<Body>, fills: Vec<Fill>) -> Model {
    Model {
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -gravity, 0.0),
        seed: 1,
        resolution: 0.02,
        spacing: 0.02,
        materials: vec![Material {
            name: "sand".into(),
            density: 1600.0,
            grain_density: 2650.0,
            grain_size: 0.001,
            friction_angle: 0.6,
            cohesion: 0.0,
            wet_cohesion: 0.0,
            wet_viscosity: 0.0,
            restitution: 0.3,
            color: [0.5; 3],
        }],
        grains: vec![],
        shapes: vec![],
        fills,
        emitters: vec![],
        sinks: vec![],
        wet: vec![],
        bodies,
        air: None,
    }
}

fn at(x: f32, y: f32, z: f32) -> Pose {
    Pose::new(Vec3::new(x, y, z), Quat::IDENTITY)
}

fn cuboid(x: f32, y: f32, z: f32) -> Shape {
    Shape::Cuboid {
        half: 0.5 * Vec3::new(x, y, z),
    }
}

fn body(form: Form) -> Body {
    Body {
        name: "body".into(),
        form,
        friction: 0.4,
        restitution: None,
    }
}

fn ground() -> Body {
    body(Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y })))
}

fn dynamic(shape: Shape, density: f64) -> Dynamic {
    Dynamic::of_density(Arc::new(shape), density).unwrap()
}

fn free(dynamic: Dynamic) -> Body {
    body(Form::Dynamic(Box::new(dynamic)))
}

fn fill(shape: Shape, velocity: Vec3) -> Fill {
    Fill {
        material: 0,
        shape,
        velocity,
        layout: Layout::Jittered,
    }
}

struct Nobody;

impl Recorder for Nobody {
    fn step(&mut self, _: StepLine) -> Result<(), RecordError> {
        Ok(())
    }
    fn frame(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
    fn interrupted(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A run that is taken frame by frame, 100 a second.
struct Scene {
    model: Model,
    coupling: Box<dyn Coupling>,
    state: State,
}

impl Scene {
    fn new(model: Model) -> Self {
        let state = start(&model, 100.0, &[]).unwrap();
        let mut scene = Self {
            coupling: coupling(&model),
            model,
            state,
        };
        scene.run(0);
        scene
    }

    fn run(&mut self, frames: u32) {
        let mut solver = barchan_solvers::ballistic::Ballistic::default();
        let stop = AtomicBool::new(false);
        let mut run = Run {
            model: &self.model,
            solver: &mut solver,
            coupling: &mut *self.coupling,
            max_step: 0.004,
            stop: &stop,
        };
        let last = self.state.clock.frame + frames;
        let outcome = run.until(last, &mut self.state, &mut Nobody);
        assert_eq!(outcome.unwrap(), Outcome::Done);
    }

    fn place(&self, body: usize) -> BodyPlace {
        self.state.solids.places().swap_remove(body)
    }

    /// Linear and angular momentum of everything, about the origin.
    fn momenta(&self) -> (DVec3, DVec3) {
        let particles = &self.state.particles;
        let (mut linear, mut angular) = (DVec3::ZERO, DVec3::ZERO);
        for i in 0..particles.len() {
            let momentum = particles.velocity[i].as_dvec3() * f64::from(particles.mass[i]);
            linear += momentum;
            angular += particles.position[i].as_dvec3().cross(momentum);
        }
        for (body, place) in self.model.bodies.iter().zip(self.state.solids.places()) {
            if let Form::Dynamic(dynamic) = &body.form {
                let momentum = Vec3::from(place.velocity).as_dvec3() * dynamic.mass;
                let turn = DMat3::from_quat(DQuat::from_array(place.rotation.map(f64::from)));
                let spin = Vec3::from(place.spin).as_dvec3();
                linear += momentum;
                angular += Vec3::from(place.center).as_dvec3().cross(momentum)
                    + turn * dynamic.inertia * turn.transpose() * spin;
            }
        }
        (linear, angular)
    }

    /// Kinetic energy of everything.
    fn energy(&self) -> f64 {
        let particles = &self.state.particles;
        let mut energy = 0.0;
        for i in 0..particles.len() {
            energy += 0.5
                * f64::from(particles.mass[i])
                * particles.velocity[i].as_dvec3().length_squared();
        }
        for (body, place) in self.model.bodies.iter().zip(self.state.solids.places()) {
            if let Form::Dynamic(dynamic) = &body.form {
                let turn = DMat3::from_quat(DQuat::from_array(place.rotation.map(f64::from)));
                let spin = Vec3::from(place.spin).as_dvec3();
                energy +=
                    0.5 * dynamic.mass * Vec3::from(place.velocity).as_dvec3().length_squared();
                energy += 0.5 * spin.dot(turn * dynamic.inertia * turn.transpose() * spin);
            }
        }
        energy
    }
}

/// Two clouds of grains fly at a slab and a ring, which float and turn.
fn clouds(density: f64) -> Model {
    let mut slab = dynamic(cuboid(0.1, 0.5, 0.3), density);
    slab.spin = Vec3::new(0.0, 0.0, 1.0);
    let ring = Shape::Torus {
        major: 0.2,
        minor: 0.07,
    };
    let mut ring = dynamic(ring.placed(at(0.1, 1.0, 0.0), 1.0), density);
    ring.velocity = Vec3::new(0.0, 0.0, 0.2);
    let cloud = |x, y, v| {
        fill(
            cuboid(0.2, 0.2, 0.2).placed(at(x, y, 0.03), 1.0),
            Vec3::new(v, 0.0, 0.0),
        )
    };
    model(
        0.0,
        vec![free(slab), free(ring)],
        vec![cloud(-0.4, 0.15, 2.0), cloud(0.7, 1.05, -1.5)],
    )
}

#[test]
fn grains_and_bodies_keep_their_momentum_in_free_space() {
    for density in [4000.0, 500.0, 20.0] {
        let mut scene = Scene::new(clouds(density));
        let (linear, angular) = scene.momenta();
        let energy = scene.energy();
        // As sizes: what one of the clouds carries alone, for the two nearly cancel.
        let mass: f64 = scene
            .state
            .particles
            .mass
            .iter()
            .map(|m| f64::from(*m))
            .sum();
        let (size, turn) = (0.5 * mass * 2.0, 0.5 * mass * 2.0 * 0.5);
        scene.run(80);
        let (linear_after, angular_after) = scene.momenta();
        let off = (linear_after - linear).length() / size;
        let turned = (angular_after - angular).length() / turn;
        let kept = scene.energy() / energy;
        let speeds = [0, 1].map(|body| Vec3::from(scene.place(body).velocity).length());
        eprintln!(
            "density {density}: linear to {off:.1e}, angular to {turned:.1e}, energy {kept:.3}, bodies at {speeds:?} m/s"
        );
        assert!(speeds[0] > 0.05 && speeds[1] > 0.05, "they were hit");
        assert!(off < 1e-4 && turned < 1e-4, "{off} {turned}");
        assert!(
            kept < 1.0 + 1e-6 && speeds[0] < 3.0 && speeds[1] < 3.0,
            "{kept} {speeds:?}"
        );
    }
}

#[test]
fn one_grain_and_one_ball_collide_as_the_textbook_says() {
    // Head on, restitution 0.3: of 1 m/s between 12.8 g and what the ball weighs.
    let ball = dynamic(Shape::Sphere { radius: 0.05 }, 100.0);
    let (m, big) = (0.0128, ball.mass);
    let mut scene = Scene::new(model(0.0, vec![free(ball)], vec![]));
    let grain = Birth {
        position: Vec3::new(-0.2, 0.0, 0.0),
        velocity: Vec3::X,
        material: 0,
    };
    let State {
        particles, tally, ..
    } = &mut scene.state;
    add(&scene.model, particles, tally, [grain].into_iter());
    scene.run(40);
    let expected = 1.3 * m / (m + big);
    let found = f64::from(scene.place(0).velocity[0]);
    let grain = f64::from(scene.state.particles.velocity[0].x);
    assert!(
        (found / expected - 1.0).abs() < 1e-3,
        "{found} for {expected}"
    );
    assert!(
        (grain - (1.0 - 1.3 * big / (m + big))).abs() < 1e-3,
        "{grain}"
    );
}

#[test]
fn a_light_board_under_heavy_rain_stays_where_it_lies() {
    // A board of 0.64 kg on the ground, 14 kg of grains fall on it.
    let board = dynamic(
        cuboid(0.4, 0.02, 0.4).placed(at(0.0, 0.01, 0.0), 1.0),
        200.0,
    );
    let rain = fill(
        cuboid(0.3, 0.1, 0.3).placed(at(0.0, 0.3, 0.0), 1.0),
        Vec3::ZERO,
    );
    let mut scene = Scene::new(model(9.81, vec![ground(), free(board)], vec![rain]));
    let mut fastest = 0.0f32;
    for _ in 0..150 {
        scene.run(1);
        fastest = fastest.max(Vec3::from(scene.place(1).velocity).length());
    }
    let place = scene.place(1);
    let particles = &scene.state.particles;
    let lowest = particles
        .position
        .iter()
        .map(|p| p.y)
        .fold(f32::MAX, f32::min);
    let speed = particles
        .velocity
        .iter()
        .map(|v| v.length())
        .fold(0.0, f32::max);
    eprintln!(
        "board at {:?}, at most {fastest} m/s; grains from {lowest} m up, at most {speed} m/s",
        place.center
    );
    assert!(fastest < 1.0, "{fastest}");
    assert!(
        (place.center[1] - 0.01).abs() < 6e-3 && place.center[0].abs() < 0.05,
        "{place:?}"
    );
    assert!(lowest > 0.008, "{lowest}");
    assert!(speed < 0.5, "{speed}");
}

#[test]
fn a_body_that_starts_among_grains_pushes_them_out_gently() {
    let ball = Shape::Sphere { radius: 0.1 }.placed(at(0.0, 0.1, 0.0), 1.0);
    let heap = fill(
        cuboid(0.4, 0.2, 0.4).placed(at(0.0, 0.11, 0.0), 1.0),
        Vec3::ZERO,
    );
    for density in [50.0, 3000.0] {
        let ball = free(dynamic(ball.clone(), density));
        let mut scene = Scene::new(model(9.81, vec![ground(), ball], vec![heap.clone()]));
        scene.run(100);
        let speed = scene
            .state
            .particles
            .velocity
            .iter()
            .map(|v| v.length())
            .fold(0.0, f32::max);
        let place = scene.place(1);
        assert!(
            speed < 3.0 && Vec3::from(place.velocity).length() < 1.0,
            "{speed} {place:?}"
        );
        assert!((place.center[1] - 0.1).abs() < 0.01, "{place:?}");
    }
}

/// Boxes tied in a row under a shower, one end let go.
fn row() -> Model {
    let mut bodies = vec![ground()];
    for i in 0..3 {
        let x = 0.25 * i as f32;
        let mut link = dynamic(cuboid(0.2, 0.04, 0.2).placed(at(x, 0.5, 0.0), 1.0), 800.0);
        link.joints.push(Joint {
            kind: [
                JointKind::Hinge { axis: Vec3::Z },
                JointKind::Ball,
                JointKind::Rope { length: 0.07 },
            ][i],
            to: (i > 0).then_some(i),
            at: Vec3::new(x - 0.125, 0.5, 0.0),
            to_at: Vec3::new(x - 0.125, 0.5, 0.0),
            release: if i == 0 { 0.25 } else { f64::INFINITY },
        });
        bodies.push(free(link));
    }
    let rain = fill(
        cuboid(0.8, 0.3, 0.2).placed(at(0.3, 0.8, 0.0), 1.0),
        Vec3::new(0.0, -1.0, 0.0),
    );
    model(9.81, bodies, vec![rain])
}

fn digest(scene: &Scene) -> (Vec<u32>, String) {
    let particles = &scene.state.particles;
    let bits = particles
        .position
        .iter()
        .chain(&particles.velocity)
        .flat_map(|v| v.to_array().map(f32::to_bits));
    (bits.collect(), format!("{:?}", scene.state.solids.places()))
}

#[test]
fn bodies_and_grains_give_the_same_bits_on_any_threads_and_after_a_resume() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut scene = Scene::new(row());
            scene.run(40);
            digest(&scene)
        })
    };
    let expected = on(1);
    assert!(expected == on(2) && expected == on(3));
    // In the middle, everything but the particles, the clock and what was saved is made anew.
    let mut first = Scene::new(row());
    first.run(17);
    let saved = first.coupling.save();
    let mut second = Scene::new(row());
    assert!(second.coupling.restore(&saved));
    second.state.particles = first.state.particles;
    (second.state.clock, second.state.tally) = (first.state.clock, first.state.tally);
    second.state.solids = Default::default();
    second.run(23);
    assert!(digest(&second) == expected);
}
