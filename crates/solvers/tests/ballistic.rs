//! Free grains against the textbook.
#![allow(clippy::unwrap_used)] // helpers of tests may panic

mod common;

use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Form, Interpolation, Track};
use barchan_sim::model::{Air, Emitter, Fill, Interval, Material, Model, Sink};
use barchan_sim::run::{Outcome, Run, StepLine};
use barchan_sim::solver::Solver;
use barchan_sim::start::{Birth, add, start};
use barchan_sim::state::State;
use barchan_solvers::ballistic::Ballistic;
use common::Lines;
use glam::{Quat, Vec3};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const G: f32 = 9.81;

fn model() -> Model {
    Model {
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -G, 0.0),
        seed: 1,
        resolution: 0.004,
        spacing: 0.004,
        materials: vec![Material {
            name: "sand".into(),
            density: 1600.0,
            grain_density: 2650.0,
            grain_size: 0.001,
            friction_angle: 0.6,
            cohesion: 0.0,
            wet_cohesion: 0.0,
            wet_viscosity: 0.0,
            restitution: 0.5,
            color: [0.5; 3],
        }],
        grains: vec![],
        shapes: vec![],
        fills: vec![],
        emitters: vec![],
        sinks: vec![],
        wet: vec![],
        bodies: vec![],
        air: None,
    }
}

fn body(shape: Shape, friction: f32, restitution: f32) -> Body {
    Body {
        name: "wall".into(),
        form: Form::Static(Arc::new(shape)),
        friction,
        restitution: Some(restitution),
    }
}

fn ground(friction: f32, restitution: f32) -> Body {
    body(Shape::HalfSpace { normal: Vec3::Y }, friction, restitution)
}

fn grains(model: &Model, births: &[(Vec3, Vec3)]) -> State {
    let mut state = start(model, 100.0, &[]).unwrap();
    let births = births.iter().map(|&(position, velocity)| Birth {
        position,
        velocity,
        material: 0,
    });
    let births: Vec<Birth> = births.collect();
    add(
        model,
        &mut state.particles,
        &mut state.tally,
        births.into_iter(),
    );
    state
}

/// Runs so many frames of 10 ms; steps of at most `max_step`.
fn run(model: &Model, state: &mut State, frames: u32, max_step: f64) -> Vec<StepLine> {
    let mut lines = Lines::default();
    let mut solver = Ballistic::default();
    let stop = AtomicBool::new(false);
    let mut run = Run {
        model,
        solver: &mut solver,
        coupling: &mut (),
        max_step,
        stop: &stop,
    };
    let last = state.clock.frame + frames;
    assert_eq!(run.until(last, state, &mut lines).unwrap(), Outcome::Done);
    lines.0
}

#[test]
fn free_fall_is_exact_for_any_step() {
    let model = model();
    for max_step in [0.01, 0.003, 0.0004] {
        let mut state = grains(&model, &[(Vec3::ZERO, Vec3::new(1.0, 5.0, 0.0))]);
        run(&model, &mut state, 100, max_step);
        let expected = Vec3::new(1.0, 5.0 - 0.5 * G, 0.0);
        let found = state.particles.position[0];
        // Each step rounds a speed of 5 m/s by up to 2.4e-7 m/s, which acts for half a second on average.
        let steps = 1.0 / max_step as f32;
        assert!(
            (found - expected).length() < 2e-5 + steps * 1.2e-7,
            "{found} for {expected}"
        );
    }
}

#[test]
fn in_air_a_grain_reaches_its_terminal_speed_and_drifts_with_the_wind() {
    let mut model = model();
    model.materials[0].grain_size = 1e-4;
    let wind = Vec3::new(3.0, 0.0, 0.0);
    model.air = Some(Air {
        density: 1.204,
        viscosity: 1.82e-5,
        wind,
    });
    let mut state = grains(&model, &[(Vec3::ZERO, Vec3::ZERO)]);
    run(&model, &mut state, 300, 0.01);
    let velocity = state.particles.velocity[0];
    let drag = barchan_solvers::material::drag::Drag::new(1e-4, 2650.0, 1.204, 1.82e-5);
    let relative = velocity - wind;
    // At the end drag and weight balance: v = g τ(v).
    assert!(
        (relative.length() - G * drag.buoyancy * drag.response_time(relative.length())).abs()
            < 1e-3
    );
    assert!(
        (velocity.x - 3.0).abs() < 1e-3 && velocity.y < -0.3,
        "{velocity}"
    );
}

#[test]
fn a_bouncing_grain_loses_the_right_height() {
    let mut model = model();
    model.bodies = vec![ground(0.0, 0.8)];
    let radius = 0.002;
    let mut state = grains(&model, &[(Vec3::new(0.0, 1.0 + radius, 0.0), Vec3::ZERO)]);
    let mut peak = 0.0f32;
    for frame in 0..100 {
        run(&model, &mut state, 1, 0.001);
        if frame > 46 {
            peak = peak.max(state.particles.position[0].y - radius);
        }
    }
    assert!((peak - 0.64).abs() < 0.003, "{peak}"); // e² of the height; sampled every 10 ms
}

#[test]
fn an_elastic_grain_keeps_its_energy_and_never_gains() {
    let mut model = model();
    model.bodies = vec![ground(0.0, 1.0)];
    let mut state = grains(
        &model,
        &[(Vec3::new(0.0, 0.5, 0.0), Vec3::new(1.0, 0.0, 0.0))],
    );
    let energy = |state: &State| {
        let (p, v) = (state.particles.position[0], state.particles.velocity[0]);
        0.5 * v.length_squared() + G * p.y
    };
    let before = energy(&state);
    let mut most = before;
    for _ in 0..500 {
        run(&model, &mut state, 1, 0.01);
        most = most.max(energy(&state));
    }
    assert!(most < before * 1.001, "{most} from {before}");
    assert!(
        energy(&state) > before * 0.97,
        "{} from {before}",
        energy(&state)
    ); // chords cut 50 m of arc a little
}

#[test]
fn a_sliding_grain_obeys_coulomb_for_any_step() {
    let angle = 35f32.to_radians();
    let normal = Vec3::new(angle.sin(), angle.cos(), 0.0);
    let down = Vec3::new(angle.cos(), -angle.sin(), 0.0);
    for (friction, max_step) in [(0.3, 0.01), (0.3, 0.002), (0.0, 0.01), (0.8, 0.01)] {
        let mut model = model();
        model.bodies = vec![body(Shape::HalfSpace { normal }, friction, 0.5)];
        let from = normal * 0.002;
        let mut state = grains(&model, &[(from, Vec3::ZERO)]);
        run(&model, &mut state, 100, max_step);
        let slid = (state.particles.position[0] - from).dot(down);
        let expected = 0.5 * G * (angle.sin() - friction * angle.cos()).max(0.0);
        let tolerance = 0.005 * expected + 1e-5; // the first step finds the contact
        assert!(
            (slid - expected).abs() < tolerance,
            "μ {friction}, step {max_step}: slid {slid}, not {expected}"
        );
    }
}

#[test]
fn a_resting_grain_does_not_move_at_all() {
    let mut model = model();
    model.bodies = vec![ground(0.5, 0.5)];
    let mut state = grains(
        &model,
        &[(Vec3::new(0.0, 0.1, 0.0), Vec3::new(0.2, 0.0, 0.0))],
    );
    run(&model, &mut state, 300, 0.01);
    let (position, velocity) = (state.particles.position[0], state.particles.velocity[0]);
    assert_eq!(velocity, Vec3::ZERO);
    run(&model, &mut state, 1000, 0.01);
    assert_eq!(state.particles.position[0], position);
    assert!((position.y - 0.002).abs() < 1e-5);
}

#[test]
fn a_thin_wall_stops_fast_grains_of_any_size() {
    for (radius, tilt) in [(0.0001, 0.0), (0.002, 0.0), (0.01, 0.3), (0.002, 1.2)] {
        let mut model = model();
        model.resolution = 2.0 * radius;
        model.spacing = 2.0 * radius;
        model.gravity = Vec3::ZERO;
        let wall = Shape::Cuboid {
            half: Vec3::new(0.0005, 3.0, 3.0),
        };
        let turn = Quat::from_rotation_z(tilt);
        let out = turn * Vec3::NEG_X;
        model.bodies = vec![body(
            wall.placed(Pose::new(Vec3::ZERO, turn), 1.0),
            0.5,
            0.3,
        )];
        let births: Vec<(Vec3, Vec3)> = (0..200)
            .map(|i| {
                (
                    Vec3::new(-0.9 - 0.001 * i as f32, 0.002 * i as f32, 0.0),
                    Vec3::X * 50.0,
                )
            })
            .collect();
        let mut state = grains(&model, &births);
        for _ in 0..10 {
            run(&model, &mut state, 1, 0.01);
            for position in &state.particles.position {
                assert!(
                    position.dot(out) > 0.0005,
                    "radius {radius}, tilt {tilt}: {position} is through"
                );
            }
        }
    }
}

#[test]
fn a_thin_mesh_wall_stops_fast_grains_too() {
    // A millimetre of mesh, sampled on cells of a centimetre: only the triangles know of it.
    let thin = barchan_base::mesh::unit_cube()
        .mapped(|v| v * Vec3::new(0.001, 2.0, 2.0))
        .unwrap();
    let mesh = barchan_base::shape::MeshShape::new(thin, 0.01).unwrap();
    for side in [1.0, -1.0] {
        let mut model = model();
        model.gravity = Vec3::ZERO;
        model.bodies = vec![body(Shape::Mesh(Arc::new(mesh.clone())), 0.5, 0.3)];
        let births: Vec<(Vec3, Vec3)> = (0..500)
            .map(|i| {
                let i = i as f32;
                let aim = Vec3::new(-side * 50.0, 10.0 * (i * 0.7).sin(), 10.0 * (i * 1.3).cos());
                (
                    Vec3::new(side * (0.3 + 0.001 * i), 0.001 * i - 0.2, 0.0),
                    aim,
                )
            })
            .collect();
        let mut state = grains(&model, &births);
        for _ in 0..6 {
            run(&model, &mut state, 1, 0.01);
            for position in &state.particles.position {
                let round_the_edge = position.y.abs() > 0.99 || position.z.abs() > 0.99;
                assert!(
                    position.x * side > 0.0005 || round_the_edge,
                    "{position} is through"
                );
            }
        }
    }
}

#[test]
fn a_fast_wall_takes_resting_grains_along() {
    let mut model = model();
    model.gravity = Vec3::ZERO;
    let wall = Shape::Cuboid {
        half: Vec3::new(0.0005, 1.0, 1.0),
    };
    let at = |x: f32| Pose::new(Vec3::new(x, 0.0, 0.0), Quat::IDENTITY);
    let track = Track::new(&[(0.0, at(-1.0)), (0.04, at(1.0))], Interpolation::Linear);
    model.bodies = vec![Body {
        name: "wall".into(),
        form: Form::Keyframed(Arc::new(wall), track),
        friction: 0.5,
        restitution: Some(0.0),
    }];
    let births: Vec<(Vec3, Vec3)> = (0..100)
        .map(|i| {
            (
                Vec3::new(-0.8 + 0.015 * i as f32, 0.001 * i as f32, 0.0),
                Vec3::ZERO,
            )
        })
        .collect();
    let mut state = grains(&model, &births);
    for frame in 1..=3 {
        run(&model, &mut state, 1, 0.01);
        let wall = -1.0 + 0.5 * frame as f32;
        for position in &state.particles.position {
            assert!(
                position.x > wall,
                "frame {frame}: a grain at {} is behind the wall at {wall}",
                position.x
            );
        }
    }
    assert!(state.particles.velocity[0].x > 49.0);
}

#[test]
fn a_tray_that_accelerates_below_mu_g_keeps_its_grain() {
    let mut model = model();
    // x = ½ a t² with a = 4 m/s², friction 0.6: μ g = 5.9 m/s².
    let keys: Vec<(f64, Pose)> = (0..=100)
        .map(|i| {
            let t = f64::from(i) * 0.01;
            (
                t,
                Pose::new(Vec3::new((2.0 * t * t) as f32, 0.0, 0.0), Quat::IDENTITY),
            )
        })
        .collect();
    model.bodies = vec![Body {
        name: "tray".into(),
        form: Form::Keyframed(
            Arc::new(Shape::Cuboid {
                half: Vec3::new(0.5, 0.01, 0.5),
            }),
            Track::new(&keys, Interpolation::Linear),
        ),
        friction: 0.6,
        restitution: Some(0.2),
    }];
    let mut state = grains(&model, &[(Vec3::new(0.0, 0.012, 0.0), Vec3::ZERO)]);
    run(&model, &mut state, 100, 0.01);
    let slip = state.particles.position[0].x - 2.0;
    assert!(slip.abs() < 0.03, "slipped {slip} m on a way of 2 m");
    assert!((state.particles.position[0].y - 0.012).abs() < 1e-4);
}

#[test]
fn a_fast_bucket_loses_nothing() {
    let mut model = model();
    model.bodies = vec![ground(0.5, 0.3)];
    let plate = |angle: f32, x: f32| {
        let shape = Shape::Cuboid {
            half: Vec3::new(0.3, 0.001, 0.5),
        };
        shape.placed(
            Pose::new(Vec3::new(x, 0.2, 0.0), Quat::from_rotation_z(angle)),
            1.0,
        )
    };
    // A V of two thin plates, thrown up at 20 m/s while it turns.
    let bucket = Shape::Union(vec![plate(0.7, 0.21), plate(-0.7, -0.21)]);
    let at = |y: f32, turn: f32| Pose::new(Vec3::new(0.0, y, 0.0), Quat::from_rotation_z(turn));
    let keys = [
        (0.0, at(0.0, 0.0)),
        (0.05, at(0.0, 0.0)),
        (0.15, at(2.0, 0.2)),
        (0.3, at(2.0, 0.2)),
    ];
    let track = Track::new(&keys, Interpolation::Linear);
    model.bodies.push(Body {
        name: "bucket".into(),
        form: Form::Keyframed(Arc::new(bucket.clone()), track.clone()),
        friction: 0.3,
        restitution: Some(0.2),
    });
    let births: Vec<(Vec3, Vec3)> = (0..400)
        .map(|i| {
            let (x, z) = (
                (i % 20) as f32 / 20.0 - 0.475,
                (i / 20) as f32 / 20.0 - 0.475,
            );
            (Vec3::new(0.5 * x, 0.35, 0.8 * z), Vec3::ZERO)
        })
        .collect();
    let mut state = grains(&model, &births);
    for frame in 1..=15 {
        run(&model, &mut state, 1, 0.01);
        let pose = track.pose(f64::from(frame) * 0.01);
        for position in &state.particles.position {
            // In the bucket's own coordinates the inside of the V is above both plates.
            let local = pose.local_point(*position);
            assert!(
                local.y > 0.2 + 0.84 * (local.x.abs() - 0.22),
                "frame {frame}: {local} fell through"
            );
        }
    }
}

#[test]
fn impulses_on_bodies_balance_the_grains_momentum() {
    let mut model = model();
    model.bodies = vec![ground(0.4, 0.3)];
    let births: Vec<(Vec3, Vec3)> = (0..500)
        .map(|i| {
            (
                Vec3::new(0.01 * i as f32, 0.003 + 0.001 * (i % 50) as f32, 0.0),
                Vec3::new(1.0, -1.0, 0.0),
            )
        })
        .collect();
    let mut state = grains(&model, &births);
    let mut solver = Ballistic::default();
    let momentum = |state: &State| -> glam::DVec3 {
        let p = &state.particles;
        p.mass
            .iter()
            .zip(&p.velocity)
            .map(|(m, v)| v.as_dvec3() * f64::from(*m))
            .sum()
    };
    let before = momentum(&state);
    state.solids.place(&model, 0.0, 0.01).unwrap();
    let report = solver.step(&model, &mut state, 0.01).unwrap();
    let mass: f64 = state.particles.mass.iter().map(|m| f64::from(*m)).sum();
    let expected = before + glam::DVec3::new(0.0, -f64::from(G) * 0.01 * mass, 0.0)
        - report.impulses[0].linear;
    assert!(
        (momentum(&state) - expected).length() < 1e-4 * before.length(),
        "{} for {expected}",
        momentum(&state)
    );
}

#[test]
fn emitters_keep_their_rate_and_sinks_their_count() {
    let mut model = model();
    model.emitters = vec![Emitter {
        material: 0,
        shape: Shape::Sphere { radius: 0.05 },
        rate: 1234.5,
        velocity: Vec3::new(0.0, -1.0, 0.0),
        spread: 0.2,
        active: Interval {
            from: 0.1,
            until: 0.7,
        },
    }];
    model.sinks = vec![Sink {
        shape: Shape::HalfSpace { normal: Vec3::Y }
            .placed(Pose::new(Vec3::new(0.0, -1.0, 0.0), Quat::IDENTITY), 1.0),
        active: Interval {
            from: 0.0,
            until: f64::INFINITY,
        },
    }];
    for max_step in [0.01, 0.0037] {
        let mut state = grains(&model, &[]);
        let lines = run(&model, &mut state, 100, max_step);
        assert_eq!(state.tally.emitted[0], 740); // ⌊1234.5 × 0.6⌋
        assert_eq!(lines.iter().map(|line| line.emitted).sum::<u64>(), 740);
        assert!(state.tally.sunk[0].particles > 100);
        assert_eq!(
            state.tally.sunk[0].particles + state.particles.len() as u64,
            740
        );
        let mut ids = state.particles.id.clone();
        ids.dedup();
        assert!(ids.len() == state.particles.len() && state.tally.next_id == 740);
    }
}

#[test]
fn lost_grains_are_quarantined_and_the_others_go_on() {
    let mut model = model();
    let mesh = barchan_base::shape::MeshShape::new(barchan_base::mesh::unit_cube(), 0.05).unwrap();
    let cube = Shape::Mesh(Arc::new(mesh)).placed(Pose::new(Vec3::Y * 5.0, Quat::IDENTITY), 1.0);
    model.bodies = vec![body(cube, 0.5, 0.5)];
    let mut state = grains(
        &model,
        &[
            (Vec3::ZERO, Vec3::ZERO),
            (Vec3::NAN, Vec3::ZERO),
            (Vec3::X, Vec3::INFINITY),
        ],
    );
    let lines = run(&model, &mut state, 1, 0.01);
    assert_eq!(lines[0].quarantined, [1, 2]);
    assert_eq!(
        (state.particles.id.as_slice(), state.tally.quarantined),
        ([0].as_slice(), 2)
    );
}

#[test]
fn the_step_does_not_depend_on_the_number_of_threads() {
    let mut model = model();
    model.resolution = 0.02;
    model.spacing = 0.02;
    model.air = Some(Air {
        density: 1.2,
        viscosity: 1.8e-5,
        wind: Vec3::new(2.0, 0.0, 1.0),
    });
    model.bodies = vec![
        ground(0.5, 0.4),
        body(
            Shape::Torus {
                major: 0.3,
                minor: 0.1,
            },
            0.3,
            0.6,
        ),
    ];
    model.fills = vec![Fill {
        material: 0,
        shape: Shape::Sphere { radius: 0.3 }.placed(Pose::new(Vec3::Y * 0.8, Quat::IDENTITY), 1.0),
        velocity: Vec3::new(0.1, -1.0, 0.0),
        layout: Layout::Jittered,
    }];
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut state = start(&model, 100.0, &[]).unwrap();
            let lines = run(&model, &mut state, 60, 0.004);
            (
                state.particles,
                lines
                    .iter()
                    .map(|line| line.kinetic_energy.to_bits())
                    .collect::<Vec<_>>(),
            )
        })
    };
    let alone = on(1);
    assert!(alone.0.len() > 10_000);
    for threads in [2, 3, 8] {
        assert_eq!(alone, on(threads), "{threads} threads");
    }
}
