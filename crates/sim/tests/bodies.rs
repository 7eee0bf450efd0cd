//! Rigid bodies against the textbook, without particles.
#![allow(clippy::unwrap_used)] // helpers of tests may panic

use barchan_base::Pose;
use barchan_base::mesh::unit_cube;
use barchan_base::shape::{MeshShape, Shape};
use barchan_sim::body::{Body, Dynamic, Form, Interpolation, Joint, JointKind, Track};
use barchan_sim::clock::Clock;
use barchan_sim::coupling::{Coupling, Impulse, RigidBodies};
use barchan_sim::model::Model;
use barchan_sim::solids::{BodyPlace, Solids};
use glam::{DMat3, DQuat, DVec3, Quat, Vec3};
use std::f64::consts::TAU;
use std::sync::Arc;

const G: f64 = 9.81;

fn model(bodies: Vec<Body>) -> Model {
    Model {
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -G as f32, 0.0),
        seed: 0,
        resolution: 0.01,
        spacing: 0.01,
        materials: vec![],
        grains: vec![],
        shapes: vec![],
        fills: vec![],
        emitters: vec![],
        sinks: vec![],
        wet: vec![],
        bodies,
        air: None,
    }
}

fn body(form: Form) -> Body {
    Body {
        name: "body".into(),
        form,
        friction: 0.5,
        restitution: None,
    }
}

fn fixed(shape: Shape) -> Body {
    body(Form::Static(Arc::new(shape)))
}

fn at(x: f32, y: f32, z: f32) -> Pose {
    Pose::new(Vec3::new(x, y, z), Quat::IDENTITY)
}

fn cuboid(x: f32, y: f32, z: f32) -> Shape {
    Shape::Cuboid {
        half: 0.5 * Vec3::new(x, y, z),
    }
}

fn dynamic(shape: Shape) -> Dynamic {
    Dynamic::of_density(Arc::new(shape), 500.0).unwrap()
}

fn free(dynamic: Dynamic) -> Body {
    body(Form::Dynamic(Box::new(dynamic)))
}

fn tied(mut dynamic: Dynamic, kind: JointKind, at: Vec3, to_at: Vec3) -> Body {
    dynamic.joints.push(Joint {
        kind,
        to: None,
        at,
        to_at,
        release: f64::INFINITY,
    });
    free(dynamic)
}

/// Bodies in motion, 100 frames a second.
struct Scene {
    model: Model,
    bodies: RigidBodies,
    solids: Solids,
    clock: Clock,
}

impl Scene {
    fn new(model: Model) -> Self {
        let bodies = RigidBodies::new(&model);
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.0).unwrap();
        bodies.show(&model, &mut solids);
        Self {
            model,
            bodies,
            solids,
            clock: Clock::new(100.0),
        }
    }

    fn step(&mut self, max_dt: f64, impulses: &[Impulse]) {
        let step = self.clock.plan(max_dt);
        self.solids
            .place(&self.model, step.start, step.end)
            .unwrap();
        self.bodies
            .place_solids(&self.model, &mut self.solids, &step);
        self.bodies
            .return_impulses(&self.model, &mut self.solids, impulses);
        self.clock.advance(&step);
    }

    fn run(&mut self, seconds: f64, max_dt: f64, mut see: impl FnMut(f64, &[BodyPlace])) {
        let end = self.clock.time() + seconds;
        while self.clock.time() < end - 1e-9 {
            self.step(max_dt, &[]);
            see(self.clock.time(), &self.solids.places());
        }
    }

    fn place(&self, body: usize) -> BodyPlace {
        self.solids.places().swap_remove(body)
    }
}

/// Mean period of `value` about zero, from its crossings upward.
fn period(samples: &[(f64, f64)]) -> f64 {
    let crossings: Vec<f64> = samples
        .windows(2)
        .filter(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)
        .map(|pair| pair[0].0 - pair[0].1 * (pair[1].0 - pair[0].0) / (pair[1].1 - pair[0].1))
        .collect();
    assert!(crossings.len() > 3, "it does not swing");
    (crossings[crossings.len() - 1] - crossings[0]) / (crossings.len() - 1) as f64
}

/// 1 + θ²/16 + 11 θ⁴/3072: how much longer a pendulum takes that swings to θ.
fn amplitude_factor(angle: f64) -> f64 {
    1.0 + angle.powi(2) / 16.0 + 11.0 * angle.powi(4) / 3072.0
}

#[test]
fn pendulums_have_their_period_on_a_hinge_a_ball_and_a_rope() {
    let angle = 0.3f64;
    for (name, kind) in [
        ("hinge", JointKind::Hinge { axis: Vec3::Z }),
        ("ball", JointKind::Ball),
        ("rope", JointKind::Rope { length: 0.9 }),
    ] {
        // A bar that hangs from its end, or a ball on a rope, pulled aside.
        let turn = Pose::new(Vec3::ZERO, Quat::from_rotation_z(angle as f32));
        let down = turn.vector(Vec3::NEG_Y);
        let (pendulum, length) = match kind {
            JointKind::Rope { .. } => {
                let ball = dynamic(
                    Shape::Sphere { radius: 0.1 }.placed(Pose::new(down, Quat::IDENTITY), 1.0),
                );
                // Tied at its top: it swings as one body with the rope, to which its own turn adds little.
                (tied(ball, kind, down * 0.9, Vec3::ZERO), None)
            }
            _ => {
                let bar = dynamic(
                    cuboid(0.04, 1.0, 0.04)
                        .placed(at(0.0, -0.5, 0.0), 1.0)
                        .placed(turn, 1.0),
                );
                (
                    tied(bar, kind, Vec3::ZERO, Vec3::ZERO),
                    Some(2.0 / 3.0 * (1.0 + 0.04f64.powi(2))),
                )
            }
        };
        // Rope and ball: two modes; the slow one is nearly that of a rigid pendulum of inertia m (L² + 2/5 r²).
        let length = length.unwrap_or(1.0 + 0.4 * 0.01);
        let expected = TAU * (length / G).sqrt() * amplitude_factor(angle);
        let mut scene = Scene::new(model(vec![pendulum]));
        let mut samples = Vec::new();
        scene.run(12.0, 0.01, |time, places| {
            samples.push((time, f64::from(places[0].center[0])));
        });
        let found = period(&samples);
        let most = samples[samples.len() - 200..]
            .iter()
            .fold(0.0f64, |m, s| m.max(s.1.abs()));
        let start = samples[..200].iter().fold(0.0f64, |m, s| m.max(s.1.abs()));
        eprintln!(
            "{name}: period {found:.5} s for {expected:.5} s, amplitude {start:.4} to {most:.4} m"
        );
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{name}: {found} for {expected}"
        );
        assert!(
            most > 0.9 * start && most < 1.02 * start,
            "{name}: {start} to {most}"
        );
    }
}

#[test]
fn a_sphere_rolls_down_an_incline() {
    for degrees in [10.0f64, 20.0, 30.0] {
        let slope = degrees.to_radians();
        let normal = Vec3::new(slope.sin() as f32, slope.cos() as f32, 0.0);
        let ball = dynamic(
            Shape::Sphere { radius: 0.1 }.placed(Pose::new(normal * 0.1, Quat::IDENTITY), 1.0),
        );
        let mut scene = Scene::new(model(vec![fixed(Shape::HalfSpace { normal }), free(ball)]));
        scene.run(1.0, 0.005, |_, _| {});
        let place = scene.place(1);
        let down = Vec3::new(slope.cos() as f32, -slope.sin() as f32, 0.0);
        let speed = f64::from(Vec3::from(place.velocity).dot(down));
        let expected = 5.0 / 7.0 * G * slope.sin();
        let way = f64::from((Vec3::from(place.center) - normal * 0.1).dot(down));
        eprintln!(
            "{degrees}°: {speed:.4} m/s for {expected:.4}, {way:.4} m for {:.4}",
            0.5 * expected
        );
        assert!(
            (speed / expected - 1.0).abs() < 0.02,
            "{degrees}°: {speed} for {expected}"
        );
        assert!((way / (0.5 * expected) - 1.0).abs() < 0.02);
    }
}

#[test]
fn a_box_slides_with_friction_and_stops() {
    let mut slider = dynamic(cuboid(0.2, 0.1, 0.2).placed(at(0.0, 0.05, 0.0), 1.0));
    slider.velocity = Vec3::new(3.0, 0.0, 0.0);
    let ground = fixed(Shape::HalfSpace { normal: Vec3::Y });
    let mut scene = Scene::new(model(vec![ground, free(slider)]));
    scene.run(2.0, 0.005, |_, _| {});
    let place = scene.place(1);
    let expected = 9.0 / (2.0 * 0.5 * G);
    eprintln!(
        "slid {:.4} m for {expected:.4}, then {:?} m/s",
        place.center[0], place.velocity
    );
    assert!(
        (f64::from(place.center[0]) / expected - 1.0).abs() < 0.03,
        "{:?}",
        place.center
    );
    assert!(Vec3::from(place.velocity).length() < 1e-3);
    assert!((place.center[1] - 0.05).abs() < 2e-3);
}

/// Angular momentum and energy of a turning body.
fn turn_of(dynamic: &Dynamic, place: &BodyPlace) -> (DVec3, f64) {
    let turn = DMat3::from_quat(DQuat::from_array(place.rotation.map(f64::from)));
    let spin = Vec3::from(place.spin).as_dvec3();
    let momentum = turn * dynamic.inertia * turn.transpose() * spin;
    (momentum, 0.5 * momentum.dot(spin))
}

#[test]
fn a_free_body_keeps_its_angular_momentum_and_energy_while_it_tumbles() {
    // About the middle axis: it turns over again and again.
    let mut block = dynamic(cuboid(0.1, 0.3, 0.2));
    block.spin = Vec3::new(0.05, 0.02, 6.0);
    let mut model = model(vec![free(block.clone())]);
    model.gravity = Vec3::ZERO;
    let mut scene = Scene::new(model);
    let (momentum, energy) = turn_of(&block, &scene.place(0));
    let (mut off_momentum, mut off_energy, mut turned_over) = (0.0f64, 0.0f64, false);
    scene.run(20.0, 0.01, |_, places| {
        let (l, e) = turn_of(&block, &places[0]);
        off_momentum = off_momentum.max((l - momentum).length() / momentum.length());
        off_energy = off_energy.max((e / energy - 1.0).abs());
        let turn = Quat::from_array(places[0].rotation);
        turned_over |= (turn * Vec3::Z).dot(Vec3::Z) < -0.9;
    });
    eprintln!("momentum kept to {off_momentum:.1e}, energy to {off_energy:.1e}");
    assert!(turned_over, "the middle axis is not stable");
    assert!(off_momentum < 1e-4, "{off_momentum}");
    assert!(off_energy < 0.01, "{off_energy}");
}

#[test]
fn bodies_that_collide_in_free_space_keep_their_momentum() {
    let mut one = dynamic(cuboid(0.2, 0.1, 0.3).placed(at(-0.5, 0.03, 0.0), 1.0));
    one.velocity = Vec3::new(2.0, 0.0, 0.0);
    one.spin = Vec3::new(0.0, 3.0, 1.0);
    let two = dynamic(
        Shape::Capsule {
            radius: 0.1,
            half_height: 0.1,
        }
        .placed(at(0.2, 0.0, 0.05), 1.0),
    );
    let mut model = model(vec![free(one.clone()), free(two.clone())]);
    model.gravity = Vec3::ZERO;
    let mut scene = Scene::new(model);
    let totals = |scene: &Scene| {
        let (mut linear, mut angular) = (DVec3::ZERO, DVec3::ZERO);
        for (dynamic, place) in [&one, &two].into_iter().zip(scene.solids.places()) {
            let momentum = Vec3::from(place.velocity).as_dvec3() * dynamic.mass;
            linear += momentum;
            angular +=
                Vec3::from(place.center).as_dvec3().cross(momentum) + turn_of(dynamic, &place).0;
        }
        (linear, angular)
    };
    let (linear, angular) = totals(&scene);
    scene.run(1.0, 0.005, |_, _| {});
    assert!(
        Vec3::from(scene.place(1).velocity).length() > 0.5,
        "they meet"
    );
    let (linear_after, angular_after) = totals(&scene);
    let (off, turned) = (
        (linear_after - linear).length() / linear.length(),
        (angular_after - angular).length() / angular.length(),
    );
    eprintln!("linear to {off:.1e}, angular to {turned:.1e}");
    assert!(off < 1e-5, "{off}");
    assert!(turned < 3e-4, "{turned}");
}

/// A little of everything: a stack, a mesh terrain, a ladder of joints, a keyframed paddle, a ring.
fn everything() -> Model {
    let terrain = unit_cube()
        .mapped(|v| v * Vec3::new(6.0, 0.2, 6.0) - Vec3::Y * 0.1)
        .unwrap();
    let paddle = Track::new(
        &[(0.0, at(-1.0, 0.3, 0.0)), (1.0, at(0.3, 0.3, 0.0))],
        Interpolation::Linear,
    );
    let mut bodies = vec![
        fixed(Shape::Mesh(Arc::new(MeshShape::new(terrain, 0.2).unwrap()))),
        body(Form::Keyframed(Arc::new(cuboid(0.1, 0.4, 0.6)), paddle)),
        free(dynamic(
            cuboid(0.2, 0.2, 0.2).placed(at(0.0, 0.11, 0.0), 1.0),
        )),
        free(dynamic(
            cuboid(0.2, 0.2, 0.2).placed(at(0.02, 0.32, 0.0), 1.0),
        )),
        free(dynamic(
            Shape::Torus {
                major: 0.15,
                minor: 0.05,
            }
            .placed(at(0.0, 0.6, 0.0), 1.0),
        )),
    ];
    for rung in 0..4 {
        let x = 1.0 + 0.2 * rung as f32;
        let mut rung_body = dynamic(cuboid(0.15, 0.03, 0.1).placed(at(x, 1.0, 0.0), 1.0));
        rung_body.joints.push(Joint {
            kind: if rung == 1 {
                JointKind::Rope { length: 0.06 }
            } else {
                JointKind::Ball
            },
            to: (rung > 0).then(|| bodies.len() - 1),
            at: Vec3::new(x - 0.1, 1.0, 0.0),
            to_at: Vec3::new(x - 0.1, 1.0, 0.0),
            release: if rung == 0 { 0.7 } else { f64::INFINITY },
        });
        bodies.push(free(rung_body));
    }
    model(bodies)
}

fn push() -> Impulse {
    Impulse {
        body: 2,
        linear: DVec3::new(0.01, -0.02, 0.005),
        angular: DVec3::new(0.0, 1e-3, 0.0),
    }
}

#[test]
fn a_saved_world_goes_on_to_the_bit() {
    let mut scene = Scene::new(everything());
    let places = |scene: &Scene| format!("{:?}", scene.solids.places());
    let mut seen = Vec::new();
    for _ in 0..60 {
        scene.step(0.02, &[push()]);
    }
    let (saved, clock) = (scene.bodies.save(), scene.clock);
    eprintln!(
        "{} bytes for {} bodies",
        saved.len(),
        scene.model.bodies.len()
    );
    for _ in 0..80 {
        scene.step(0.02, &[push()]);
        seen.push(places(&scene));
    }
    let mut again = Scene::new(everything());
    assert!(again.bodies.restore(&saved));
    again.clock = clock;
    for expected in seen {
        again.step(0.02, &[push()]);
        assert_eq!(places(&again), expected);
    }
    assert!(!again.bodies.restore(&saved[..saved.len() / 2]));
    assert!(
        !again
            .bodies
            .restore(&Scene::new(model(vec![])).bodies.save())
    );
}

#[test]
fn a_paddle_pushes_a_stack_on_a_mesh_and_a_released_ladder_falls() {
    let mut scene = Scene::new(everything());
    scene.run(0.65, 0.01, |_, _| {});
    let hanging = scene.place(5).center[1];
    assert!(hanging > 0.8, "the first rung hangs: {hanging}");
    scene.run(2.0, 0.01, |_, places| {
        for place in places.iter().filter(|place| place.motion == "dynamic") {
            assert!(Vec3::from(place.velocity).length() < 15.0, "{place:?}");
        }
    });
    for (index, place) in scene.solids.places().iter().enumerate().skip(2) {
        assert!(
            place.center[1] > 0.0 && place.center[1] < 0.5,
            "{index}: {place:?}"
        );
    }
    assert!(
        scene.place(2).center[0] > 0.3,
        "the paddle pushed it: {:?}",
        scene.place(2)
    );
}

#[test]
fn bodies_that_start_in_each_other_part_gently() {
    let one = dynamic(cuboid(0.2, 0.2, 0.2).placed(at(0.0, 0.1, 0.0), 1.0));
    let two = dynamic(cuboid(0.2, 0.2, 0.2).placed(at(0.05, 0.15, 0.02), 1.0));
    let three = dynamic(Shape::Sphere { radius: 0.1 }.placed(at(0.0, 0.1, 0.0), 1.0));
    let sunk = dynamic(cuboid(0.2, 0.2, 0.2).placed(at(1.0, -0.02, 0.0), 1.0));
    let ground = fixed(Shape::HalfSpace { normal: Vec3::Y });
    let mut scene = Scene::new(model(vec![
        ground,
        free(one),
        free(two),
        free(three),
        free(sunk),
    ]));
    let mut fastest = 0.0f32;
    scene.run(3.0, 0.01, |_, places| {
        let speeds = places
            .iter()
            .map(|place| Vec3::from(place.velocity).length());
        fastest = fastest.max(speeds.fold(0.0, f32::max));
    });
    eprintln!("fastest {fastest} m/s");
    assert!(fastest < 3.0, "{fastest}");
    for place in &scene.solids.places()[1..] {
        assert!(
            place.center[1] > 0.09 && Vec3::from(place.center).length() < 3.0,
            "{place:?}"
        );
    }
}

#[test]
fn an_impulse_does_what_the_solids_inertia_says() {
    let shape = cuboid(0.1, 0.3, 0.2).placed(
        Pose::new(Vec3::new(2.0, 1.0, 0.5), Quat::from_rotation_x(0.5)),
        1.0,
    );
    let mut block = dynamic(shape);
    block.velocity = Vec3::new(0.3, 1.0, 0.0);
    let mut scene = Scene::new(model(vec![free(block)]));
    let start = scene.place(0);
    let step = scene.clock.plan(0.001);
    scene
        .solids
        .place(&scene.model, step.start, step.end)
        .unwrap();
    scene
        .bodies
        .place_solids(&scene.model, &mut scene.solids, &step);
    let inertia = *scene.solids.all()[0].inertia();
    let (point, other) = (Vec3::new(2.1, 1.1, 0.4), Vec3::new(1.9, 0.9, 0.6));
    let before = scene.solids.all()[0].velocity(other);
    let impulse = Vec3::new(0.2, -0.1, 0.3);
    let lever = (point - inertia.center).cross(impulse);
    let load = Impulse {
        body: 0,
        linear: impulse.as_dvec3(),
        angular: lever.as_dvec3(),
    };
    scene
        .bodies
        .return_impulses(&scene.model, &mut scene.solids, &[load]);
    let change = impulse * inertia.inverse_mass
        + (inertia.inverse_inertia * lever).cross(other - inertia.center);
    // Where the point of the body that was at `other` is now.
    let (from, to) = (start, scene.place(0));
    let pose =
        |place: &BodyPlace| Pose::new(Vec3::from(place.position), Quat::from_array(place.rotation));
    let moved = (pose(&to).point(pose(&from).local_point(other)) - other) / step.dt as f32;
    assert!(
        (moved - (before + change)).length() < 2e-3,
        "{moved} for {}",
        before + change
    );
    let along = impulse.normalize();
    let answer = inertia.yielding(point, along) * impulse.length();
    let expected = (impulse * inertia.inverse_mass
        + (inertia.inverse_inertia * lever).cross(point - inertia.center))
    .dot(along);
    assert!((answer - expected).abs() < 1e-5);
}

#[test]
fn a_body_that_is_held_is_known_to_be() {
    let ground = fixed(Shape::HalfSpace { normal: Vec3::Y });
    let block = dynamic(cuboid(0.2, 0.2, 0.2).placed(at(0.0, 0.1, 0.0), 1.0));
    let mut scene = Scene::new(model(vec![ground, free(block)]));
    let load = Impulse {
        body: 1,
        linear: DVec3::new(0.0, -0.1, 0.0),
        angular: DVec3::ZERO,
    };
    for _ in 0..100 {
        scene.step(0.005, &[load]);
    }
    let inertia = scene.solids.all()[1].inertia();
    let below = inertia.yielding(inertia.center, Vec3::NEG_Y) / inertia.inverse_mass;
    let aside = inertia.yielding(inertia.center, Vec3::X) / inertia.inverse_mass;
    eprintln!("downward {below}, sideways {aside}");
    assert!(below < 0.1 && aside > 0.99, "{below} {aside}");
}
