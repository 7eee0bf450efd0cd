//! The angle that is asked for, by slow pouring: minutes each, so asked for by name.
//!
//! `cargo test --release -p barchan-solvers --test sph_angle -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests may panic, and tell what they found

use barchan_base::Pose;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Form};
use barchan_sim::model::{Emitter, Interval, Material, Model};
use barchan_sim::scene::SphSettings;
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use barchan_solvers::sph::Sph;
use glam::{Quat, Vec3};
use std::sync::Arc;

const SPACING: f32 = 0.035;
/// Rest after the pour [s].
const REST: f64 = 1.5;

/// A nozzle five spacings wide, four spacings above the apex.
fn nozzle(apex: f32, rate: f64, count: f64) -> Emitter {
    let disc = Shape::Cylinder {
        radius: 2.5 * SPACING,
        half_height: SPACING,
    };
    let at = Vec3::Y * (apex + 4.0 * SPACING);
    Emitter {
        material: 0,
        shape: disc.placed(Pose::new(at, Quat::IDENTITY), 1.0),
        rate,
        velocity: Vec3::new(0.0, -0.3, 0.0),
        spread: 0.0,
        active: Interval {
            from: 0.0,
            until: count / rate,
        },
    }
}

fn model(angle: f64, seed: u64) -> Model {
    let mut model = Model::empty();
    model.seed = seed;
    model.resolution = SPACING;
    model.spacing = SPACING;
    model.materials.push(Material {
        name: "sand".into(),
        density: 1600.0,
        grain_density: 2650.0,
        grain_size: 0.0003,
        friction_angle: angle.to_radians(),
        cohesion: 0.0,
        wet_cohesion: 0.0,
        wet_viscosity: 0.0,
        restitution: 0.3,
        color: [0.5; 3],
    });
    model.bodies.push(Body {
        name: "plate".into(),
        form: Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y })),
        friction: 10.0,
        restitution: None,
    });
    model
}

/// The highest particle at rest near the axis.
fn apex(state: &State) -> f32 {
    let particles = &state.particles;
    let places = particles.position.iter().zip(&particles.velocity);
    places
        .filter(|(x, v)| x.x.abs().max(x.z.abs()) < 2.0 * SPACING && v.length() < 0.2)
        .map(|(x, _)| x.y)
        .fold(0.0, f32::max)
}

/// The slope [deg] of the mean height over the radius, between 15 and 85 % of the top; rings weigh as their area.
fn slope(state: &State) -> f64 {
    let width = f64::from(SPACING);
    let mut rings: Vec<f64> = Vec::new();
    for x in &state.particles.position {
        let ring = (Vec3::new(x.x, 0.0, x.z).length() / SPACING) as usize;
        rings.resize(rings.len().max(ring + 1), 0.0);
        rings[ring] += width.powi(3);
    }
    let area = |ring: usize| std::f64::consts::PI * width * width * (2 * ring + 1) as f64;
    let heights: Vec<f64> = rings
        .iter()
        .enumerate()
        .map(|(ring, volume)| volume / area(ring))
        .collect();
    let top = heights[1..].iter().copied().fold(0.0, f64::max);
    let flank: Vec<(f64, f64, f64)> = heights
        .iter()
        .enumerate()
        .filter(|(ring, height)| *ring > 0 && **height > 0.15 * top && **height < 0.85 * top)
        .map(|(ring, height)| ((ring as f64 + 0.5) * width, *height, ring as f64))
        .collect();
    let sum = |value: &dyn Fn(&(f64, f64, f64)) -> f64| {
        flank.iter().map(|part| value(part) * part.2).sum::<f64>()
    };
    let weight = sum(&|_| 1.0);
    let (r, h) = (sum(&|part| part.0) / weight, sum(&|part| part.1) / weight);
    let fall = sum(&|part| (part.0 - r) * (part.1 - h)) / sum(&|part| (part.0 - r).powi(2));
    (-fall).atan().to_degrees()
}

fn poured(angle: f64, (count, rate): (f64, f64), seed: u64) -> f64 {
    let mut model = model(angle, seed);
    let mut solver = Sph::new(SphSettings::default());
    model.emitters.push(nozzle(0.0, rate, count));
    let mut state = start(&model, 50.0, solver.columns()).unwrap();
    while state.clock.time() < count / rate + REST {
        model.emitters[0] = nozzle(apex(&state), rate, count);
        let step = state.clock.plan(solver.max_dt(&model, &state));
        state.solids.place(&model, step.start, step.end).unwrap();
        barchan_sim::emit::emit(&model, &mut state, &step);
        solver.step(&model, &mut state, step.dt).unwrap();
        state.clock.advance(&step);
    }
    slope(&state)
}

/// Three piles of 7,000 particles, 1,000 a second.
fn check_poured(asked: f64) {
    let found = [1, 2, 3].map(|seed| poured(asked, (7000.0, 1000.0), seed));
    let mean = found.iter().sum::<f64>() / 3.0;
    eprintln!("asked {asked}, found {mean:.1} in the mean of {found:.1?}");
    assert!(
        (mean - asked).abs() < 2.0,
        "{mean} in the mean of {found:?}"
    );
}

#[test]
#[ignore = "minutes"]
fn poured_at_20_degrees() {
    check_poured(20.0);
}

#[test]
#[ignore = "minutes"]
fn poured_at_25_degrees() {
    check_poured(25.0);
}

#[test]
#[ignore = "minutes"]
fn poured_at_30_degrees() {
    check_poured(30.0);
}

#[test]
#[ignore = "minutes"]
fn poured_at_35_degrees() {
    check_poured(35.0);
}

#[test]
#[ignore = "minutes"]
fn poured_at_40_degrees() {
    check_poured(40.0);
}

#[test]
#[ignore = "minutes"]
fn poured_at_45_degrees() {
    check_poured(45.0);
}

#[test]
#[ignore = "a minute on two cores"]
fn a_small_poured_pile_has_its_angle() {
    let found = poured(30.0, (2500.0, 600.0), 1);
    assert!((found - 30.0).abs() < 3.0, "{found}");
}
