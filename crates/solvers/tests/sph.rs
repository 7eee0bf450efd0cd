//! The SPH method up the ladder: rest, tilt, slide, impact, sleep, wetness, bodies, bytes.
#![allow(clippy::unwrap_used)]

mod common;

use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Dynamic, Form, Interpolation, Track};
use barchan_sim::model::{Fill, Interval, Model, Sink, Wet};
use barchan_sim::scene::{SphScheme, SphSettings};
use barchan_sim::solver::Solver;
use barchan_sim::state::Particles;
use barchan_solvers::sph::Sph;
use common::sand::{GRAVITY, ROUGH, SPACING, Sand, block, body, fill, layer, model, wall};
use glam::{DVec3, Quat, Vec3};
use std::sync::Arc;

#[test]
fn a_layer_comes_to_rest_and_the_floor_carries_it() {
    let mut sand = Sand::new(layer(30.0, Vec3::new(8.0, 8.0, 8.0)));
    // Until someone sleeps, what gravity gives is what the sand and the floor receive.
    let mass: f64 = 8.0f64.powi(3) * 1600.0 * f64::from(SPACING).powi(3);
    let mut floor = 0.0;
    while sand.state.clock.time() < 0.2 {
        floor -= sand.step().impulses[0].linear.y;
    }
    let falling = f64::from(-sand.mean(|p, i| p.velocity[i].y)) * mass;
    let carried = (floor + falling) / (mass * 9.81 * sand.state.clock.time());
    assert!((carried - 1.0).abs() < 0.01, "{carried}");
    sand.until(0.8);
    assert!(sand.rms_speed() < 2e-3, "{}", sand.rms_speed());
    // Nobody sank into the floor, and the layer is as high as it was filled.
    let lowest = sand.state.particles.position.iter().map(|p| p.y);
    assert!(lowest.fold(f32::MAX, f32::min) > 0.2 * SPACING);
    let middle = sand.mean(|p, i| p.position[i].y) / SPACING;
    assert!((middle - 4.0).abs() < 0.6, "{middle}");
}

#[test]
fn sand_asleep_still_weighs_on_what_carries_it() {
    let mut sand = Sand::new(layer(30.0, Vec3::new(8.0, 8.0, 8.0)));
    sand.until(0.8);
    let weight = 8.0f64.powi(3) * 1600.0 * f64::from(SPACING).powi(3) * 9.81;
    let mut carried = |awake: usize| {
        sand.quiet().fill(1.0);
        sand.quiet()[..awake].fill(0.0);
        let began = sand.state.clock.time();
        let report = sand.step();
        let solved = report.measures[0].1;
        let time = sand.state.clock.time() - began;
        (-report.impulses[0].linear.y / time / weight, solved)
    };
    // A few awake, nobody, and nobody once more: the second time it is remembered.
    for awake in [1, 0, 0] {
        let (part, solved) = carried(awake);
        assert!(solved < 400.0, "{solved}");
        assert!((part - 1.0).abs() < 0.03, "{awake} awake: {part}");
    }
}

#[test]
fn a_heap_between_smooth_walls_comes_to_rest_and_sleeps() {
    // A step of sand that slumps along a mirror on either side.
    let mut model = layer(30.0, Vec3::new(12.0, 7.0, 5.0));
    model.bodies.drain(2..3); // open at one end
    let mut sand = Sand::new(model);
    sand.until(2.0);
    let before = sand.state.particles.position.clone();
    let report = sand.until(3.0);
    let scale = (GRAVITY * SPACING).sqrt();
    assert!(
        sand.rms_speed() < 1e-3 * scale,
        "{}",
        sand.rms_speed() / scale
    );
    let places = before.iter().zip(&sand.state.particles.position);
    let way: f32 = places.map(|(a, b)| a.distance(*b)).sum();
    let mean = way / before.len() as f32 / SPACING;
    assert!(mean < 0.02, "{mean}");
    let solved = report.measures[0].1 / before.len() as f64;
    assert!(solved < 0.5, "{solved}");
}

/// A layer in a ring-shaped channel with a rough floor and smooth walls: it has no end that could hold it.
fn ring(angle: f64) -> Model {
    let (outer, inner, height) = (10.0 * SPACING, 7.0 * SPACING, 5.0 * SPACING);
    let cylinder = |radius: f32, half_height: f32| Shape::Cylinder {
        radius,
        half_height,
    };
    let without = |shape: Shape, hole: Shape| Shape::Difference(Box::new(shape), vec![hole]);
    let mut model = model(angle);
    let up = Pose::new(Vec3::Y * 0.5 * height, Quat::IDENTITY);
    let layer = without(cylinder(outer, 0.5 * height), cylinder(inner, height));
    fill(&mut model, layer.placed(up, 1.0));
    let around = block(Vec3::splat(-2.0 * outer), Vec3::splat(2.0 * outer));
    model.bodies = vec![
        body(wall(Vec3::Y, Vec3::ZERO), ROUGH),
        body(cylinder(inner, 4.0 * height), 0.0),
        body(without(around, cylinder(outer, 6.0 * height)), 0.0),
    ];
    model
}

#[test]
fn a_tilted_layer_flows_at_its_friction_angle() {
    let mut sand = Sand::new(ring(30.0));
    sand.until(0.4);
    let mut tilt = 20.0;
    while sand.flow() < 0.05 {
        assert!(tilt < 60.0, "it never flows");
        sand.quiet().fill(0.0); // the solver is not told that gravity turns
        sand.step_tilted(tilt);
        tilt += 0.02;
    }
    assert!((tilt - 30.0).abs() < 2.0, "{tilt}");
}

#[test]
fn sleep_holds_no_more_than_friction_does() {
    for (tilt, flows) in [(25.0, false), (33.0, true)] {
        let mut sand = Sand::new(ring(30.0));
        sand.until(0.4);
        // Upright it has fallen asleep, all but a few.
        sand.quiet().fill(1.0);
        sand.quiet()[..20].fill(0.0);
        for _ in 0..400 {
            sand.step_tilted(tilt);
        }
        assert_eq!(sand.flow() > 0.05, flows, "{tilt}: {}", sand.flow());
    }
}

#[test]
fn a_slope_cut_below_its_angle_stands() {
    let size = Vec3::new(20.0, 9.0, 4.0);
    let mut sand = Sand::new(layer(30.0, size));
    sand.until(0.8);
    let slope = 29f32.to_radians().tan();
    let particles = &mut sand.state.particles;
    let below = |x: &Vec3| x.y < (0.5 * size.x - 2.0) * SPACING * slope - x.x * slope;
    let keep: Vec<bool> = particles.position.iter().map(below).collect();
    particles.retain(&keep);
    sand.quiet().fill(0.0);
    let before = sand.state.particles.position.clone();
    sand.until(2.3);
    let places = before.iter().zip(&sand.state.particles.position);
    let way: f32 = places.map(|(a, b)| a.distance(*b)).sum();
    let mean = way / before.len() as f32 / SPACING;
    assert!(mean < 0.05, "{mean}");
}

#[test]
fn a_layer_slides_down_a_steep_slope_as_friction_lets_it() {
    let mut model = layer(30.0, Vec3::new(40.0, 5.0, 5.0));
    model.bodies.drain(1..3); // open at both ends
    let mut sand = Sand::new(model);
    sand.until(0.4);
    let slope = 40f64.to_radians();
    sand.model.gravity = GRAVITY * Vec3::new(slope.sin() as f32, -slope.cos() as f32, 0.0);
    let middle: Vec<usize> = (0..sand.state.particles.len())
        .filter(|i| sand.state.particles.position[*i].x.abs() < 6.0 * SPACING)
        .collect();
    let speed = |sand: &Sand| {
        let velocity = &sand.state.particles.velocity;
        let sum: f32 = middle.iter().map(|i| velocity[*i].x).sum();
        f64::from(sum) / middle.len() as f64
    };
    sand.until(0.5);
    let (begin, before) = (sand.state.clock.time(), speed(&sand));
    sand.until(0.7);
    let found = (speed(&sand) - before) / (sand.state.clock.time() - begin);
    let friction = (slope.tan() - found / (9.81 * slope.cos())).atan();
    let angle = friction.to_degrees();
    assert!((angle - 30.0).abs() < 2.0, "{angle}");
}

#[test]
fn sand_asleep_costs_nothing_and_wakes_for_a_body() {
    let mut model = layer(30.0, Vec3::new(10.0, 5.0, 8.0));
    let ball = Shape::Sphere { radius: 0.04 };
    let at = |x: f32, y: f32| Pose::new(Vec3::new(x, y, 0.0), Quat::IDENTITY);
    let keys = [
        (0.0, at(0.0, 0.5)),
        (2.5, at(0.0, 0.5)),
        (2.8, at(0.0, 0.08)),
    ];
    model.bodies.push(Body {
        form: Form::Keyframed(Arc::new(ball), Track::new(&keys, Interpolation::Linear)),
        ..body(Shape::Sphere { radius: 1.0 }, 0.5)
    });
    let mut sand = Sand::new(model);
    let report = sand.until(2.4);
    assert!(report.measures[0].1 < 0.2 * 400.0, "{:?}", report.measures);
    let before = sand.state.particles.position.clone();
    sand.until(2.9);
    let moved = |radius: std::ops::Range<f32>| {
        let places = before.iter().zip(&sand.state.particles.position);
        let ways: Vec<f32> = places
            .filter(|(x, _)| radius.contains(&Vec3::new(x.x, 0.0, x.z).length()))
            .map(|(a, b)| a.distance(*b))
            .collect();
        ways.iter().sum::<f32>() / ways.len() as f32
    };
    assert!(moved(0.0..0.04) > 0.3 * SPACING, "{}", moved(0.0..0.04));
}

#[test]
fn a_smooth_wall_lets_slide_what_leans_on_it() {
    // Pressed against the wall by a part of gravity, a grain falls along it by all of the rest.
    let mut model = model(30.0);
    let at = Vec3::new(0.26 * SPACING, 1.0, 0.0);
    let half = Vec3::splat(0.1 * SPACING);
    fill(&mut model, block(at - half, at + half));
    model.fills[0].layout = Layout::Lattice;
    model.bodies.push(body(wall(Vec3::X, Vec3::ZERO), 0.0));
    model.gravity = Vec3::new(-3.0, -GRAVITY, 0.0);
    let mut sand = Sand::new(model);
    sand.state.particles.resize(1);
    sand.state.particles.position[0] = at;
    sand.until(0.2);
    let time = sand.state.clock.time() as f32;
    let fallen = at.y - sand.state.particles.position[0].y;
    let (speed, way) = (GRAVITY * time, 0.5 * GRAVITY * time * time);
    assert!((fallen / way - 1.0).abs() < 0.02, "{fallen} of {way}");
    let found = -sand.state.particles.velocity[0].y;
    assert!((found / speed - 1.0).abs() < 1e-3, "{found} of {speed}");
}

#[test]
fn sleeping_sand_wakes_when_a_sink_takes_what_it_leans_on() {
    let mut model = layer(30.0, Vec3::new(8.0, 5.0, 6.0));
    model.sinks.push(Sink {
        shape: block(Vec3::new(0.04, -1.0, -1.0), Vec3::new(1.0, 1.0, 1.0)),
        active: Interval {
            from: 1.5,
            until: 10.0,
        },
    });
    let mut sand = Sand::new(model);
    sand.until(1.4);
    sand.quiet().fill(1.0);
    sand.until(1.5);
    let (model, state) = (&sand.model, &mut sand.state);
    let step = state.clock.plan(1e-3);
    assert!(barchan_sim::sink::drain(model, state, &step) > 0);
    let before = sand.state.particles.position.clone();
    sand.until(1.7);
    let places = before.iter().zip(&sand.state.particles.position);
    let farthest = places.map(|(a, b)| a.distance(*b)).fold(0.0, f32::max);
    assert!(farthest > SPACING, "{farthest}");
}

#[test]
fn two_in_one_place_part() {
    let mut model = layer(30.0, Vec3::new(5.0, 4.0, 5.0));
    let again = model.fills[0].clone();
    model.fills.push(Fill {
        shape: block(Vec3::new(-0.02, 0.0, -0.02), Vec3::new(0.02, 0.04, 0.02)),
        ..again
    });
    for fill in &mut model.fills {
        fill.layout = Layout::Lattice;
    }
    let mut sand = Sand::new(model);
    sand.until(0.3);
    let places = &sand.state.particles.position;
    for (i, a) in places.iter().enumerate() {
        let nearest = places[..i].iter().map(|b| a.distance(*b));
        let nearest = nearest.fold(f32::MAX, f32::min) / SPACING;
        assert!(nearest > 0.4, "{nearest}");
    }
}

#[test]
fn sand_rides_an_accelerating_tray() {
    // Half of what friction could hold; the tray is a floor that moves.
    let acceleration = 0.5 * 30f32.to_radians().tan() * GRAVITY;
    let mut model = model(30.0);
    fill(
        &mut model,
        block(Vec3::new(-0.1, 0.0, -0.06), Vec3::new(0.1, 0.06, 0.06)),
    );
    let keys: Vec<(f64, Pose)> = (0..=40)
        .map(|i| {
            let time = 0.02 * i as f32;
            let x = 0.5 * acceleration * (time - 0.4).max(0.0).powi(2);
            (f64::from(time), Pose::new(Vec3::X * x, Quat::IDENTITY))
        })
        .collect();
    let slab = block(Vec3::new(-0.4, -0.1, -0.4), Vec3::new(0.4, 0.0, 0.4));
    model.bodies.push(Body {
        form: Form::Keyframed(Arc::new(slab), Track::new(&keys, Interpolation::Linear)),
        ..body(Shape::Sphere { radius: 1.0 }, ROUGH)
    });
    let mut sand = Sand::new(model);
    sand.until(0.4);
    let before = sand.mean(|p, i| p.position[i].x);
    sand.until(0.8);
    let travelled = keys[40].1.position.x;
    let slip = sand.mean(|p, i| p.position[i].x) - before - travelled;
    assert!(slip.abs() < SPACING, "{} of {travelled}", slip / SPACING);
}

/// A bank that is wetted at its start, and dried at 0.6 s at this rate [1/s], until `until` [s].
fn drying_bank(rate: f64, until: f64) -> Sand {
    let mut model = model(30.0);
    let size = Vec3::new(0.06, 0.16, 0.06);
    fill(&mut model, block(Vec3::new(-size.x, 0.0, -size.z), size));
    model.bodies.push(body(wall(Vec3::Y, Vec3::ZERO), ROUGH));
    let everywhere = || Shape::Sphere { radius: 10.0 };
    let region = |wetness, rate, from, until| Wet {
        shape: everywhere(),
        wetness,
        rate,
        active: Interval { from, until },
    };
    model.wet = vec![region(1.0, 100.0, 0.0, 0.1), region(0.0, rate, 0.6, until)];
    Sand::new(model)
}

#[test]
fn wet_sand_stands_and_flows_when_it_dries() {
    let mut sand = drying_bank(100.0, 1.0);
    let height = |sand: &Sand| sand.mean(|p, i| p.position[i].y);
    let start = height(&sand);
    sand.until(0.6);
    let wet = height(&sand);
    assert!(wet > 0.85 * start, "{wet} of {start}");
    sand.until(1.2);
    let dry = height(&sand);
    assert!(dry < 0.7 * start, "{dry} of {start}");
}

#[test]
fn what_sleeps_wakes_where_it_is_dried_within_a_step() {
    // All of it in the first step, after which the region does nothing, or has ended.
    for until in [1.0, 0.6001] {
        let mut sand = drying_bank(1e4, until);
        let height = |sand: &Sand| sand.mean(|p, i| p.position[i].y);
        sand.until(0.58);
        sand.quiet().fill(1.0);
        let wet = height(&sand);
        sand.until(1.1);
        let dry = height(&sand);
        assert!(dry < 0.8 * wet, "{dry} of {wet} until {until} s");
    }
}

#[test]
fn nothing_passes_a_thin_plate() {
    let mut model = model(30.0);
    fill(
        &mut model,
        block(Vec3::new(-0.06, 0.1, -0.06), Vec3::new(0.06, 0.22, 0.06)),
    );
    model.fills[0].velocity = Vec3::new(0.0, -8.0, 0.0);
    let plate = block(Vec3::new(-0.5, -0.0005, -0.5), Vec3::new(0.5, 0.0005, 0.5));
    model.bodies.push(body(plate, 0.5));
    let mut sand = Sand::new(model);
    sand.until(0.3);
    for position in &sand.state.particles.position {
        let beside = position.x.abs().max(position.z.abs()) > 0.5;
        assert!(position.y > 0.0 || beside, "{position}");
    }
}

/// What two blocks lose of their momentum over their mass [m/s], and of their angular momentum over that and 10 cm, when they meet in free
/// space; the one that comes from the right is `lighter` times as dense.
fn lost_in_a_meeting(scheme: SphScheme, lighter: f64) -> (f64, f64) {
    let mut model = model(30.0);
    model.gravity = Vec3::ZERO;
    let mut other = model.materials[0].clone();
    other.density *= lighter;
    model.materials.push(other);
    for (material, (side, speed)) in [(-1.0f32, 1.0f32), (1.0, -0.4)].into_iter().enumerate() {
        let middle = Vec3::new(side * 0.07, 0.02 * side, 0.0);
        fill(&mut model, block(middle - 0.06, middle + 0.06));
        let fill = model.fills.last_mut().unwrap();
        fill.material = material;
        fill.velocity = Vec3::new(speed, 0.3, 0.0);
        fill.layout = Layout::Lattice;
    }
    let settings = SphSettings {
        scheme,
        ..SphSettings::default()
    };
    let mut sand = Sand::with(model, settings);
    let momentum = |sand: &Sand| {
        let p = &sand.state.particles;
        (0..p.len()).fold((DVec3::ZERO, DVec3::ZERO), |(linear, angular), i| {
            let one = p.velocity[i].as_dvec3() * f64::from(p.mass[i]);
            (linear + one, angular + p.position[i].as_dvec3().cross(one))
        })
    };
    let before = momentum(&sand);
    let mass: f64 = sand
        .state
        .particles
        .mass
        .iter()
        .map(|m| f64::from(*m))
        .sum();
    sand.until(0.15);
    let after = momentum(&sand);
    assert!(sand.rms_speed() < 0.85, "{scheme:?}: {}", sand.rms_speed()); // nothing exploded
    let (linear, angular) = (after.0 - before.0, after.1 - before.1);
    (linear.length() / mass, angular.length() / (0.1 * mass))
}

#[test]
fn free_sand_keeps_its_momentum() {
    // The published stresses push across the lines between particles.
    for (scheme, most_turned) in [(SphScheme::Implicit, 1e-4), (SphScheme::Ihmsen, 5e-3)] {
        let (lost, turned) = lost_in_a_meeting(scheme, 1.0);
        assert!(lost < 1e-4, "{scheme:?}: {lost:e}");
        assert!(turned < most_turned, "{scheme:?}: {turned:e}");
    }
}

#[test]
fn two_materials_keep_their_momentum() {
    for (scheme, most_turned) in [(SphScheme::Implicit, 1e-4), (SphScheme::Ihmsen, 5e-3)] {
        let (lost, turned) = lost_in_a_meeting(scheme, 0.25);
        assert!(lost < 1e-4, "{scheme:?}: {lost:e}");
        assert!(turned < most_turned, "{scheme:?}: {turned:e}");
    }
}

#[test]
fn the_published_scheme_holds_a_heap_up() {
    let settings = SphSettings {
        scheme: SphScheme::Ihmsen,
        iterations: 3,
        ..SphSettings::default()
    };
    let mut model = layer(30.0, Vec3::new(8.0, 6.0, 8.0));
    model.fills[0].layout = Layout::Lattice;
    let mut sand = Sand::with(model, settings);
    sand.until(0.6);
    let middle = sand.mean(|p, i| p.position[i].y) / SPACING;
    assert!(middle > 2.0 && middle < 3.7, "{middle}");
    // It buzzes, but it does not fly apart.
    assert!(sand.rms_speed() < 0.3, "{}", sand.rms_speed());
}

/// Depths [spacings] of the undersides of balls of these densities, over the sand's, laid on a bed, and their last speed.
fn laid_on_a_bed(density: f64) -> (f32, f32) {
    let mut model = layer(30.0, Vec3::new(11.0, 7.0, 11.0));
    let radius = 2.5 * SPACING;
    let surface = 7.0 * SPACING;
    let at = Pose::new(Vec3::Y * (surface + 1.3 * radius), Quat::IDENTITY);
    let ball = Arc::new(Shape::Sphere { radius }.placed(at, 1.0));
    model.bodies.push(Body {
        form: Form::Dynamic(Box::new(
            Dynamic::of_density(ball, density * 1600.0).unwrap(),
        )),
        ..body(Shape::Sphere { radius: 1.0 }, 0.5)
    });
    let mut sand = Sand::new(model);
    sand.until(0.9);
    let places = sand.state.solids.places();
    let ball = places.last().unwrap();
    let depth = surface - (ball.center[1] - radius);
    (depth / SPACING, Vec3::from(ball.velocity).length())
}

#[test]
fn sand_carries_balls_in_the_order_of_their_density() {
    let (light, calm) = laid_on_a_bed(0.5);
    let (heavy, still) = laid_on_a_bed(3.0);
    assert!(light < heavy, "{light} {heavy}");
    // Not below the equator and a spacing, and at rest.
    assert!(heavy < 3.5, "{heavy}");
    assert!(calm < 0.05 && still < 0.05, "{calm} {still}");
}

#[test]
fn a_body_that_starts_inside_sand_pushes_it_out_gently() {
    let mut model = layer(30.0, Vec3::new(9.0, 8.0, 9.0));
    let (radius, centre) = (2.0 * SPACING, Vec3::Y * 4.0 * SPACING);
    let at = Pose::new(centre, Quat::IDENTITY);
    let ball = Arc::new(Shape::Sphere { radius }.placed(at, 1.0));
    model.bodies.push(Body {
        form: Form::Dynamic(Box::new(Dynamic::of_density(ball, 1600.0).unwrap())),
        ..body(Shape::Sphere { radius: 1.0 }, 0.5)
    });
    let mut sand = Sand::new(model);
    // Even where someone put them into it after the start.
    for (i, position) in sand.state.particles.position.iter_mut().take(5).enumerate() {
        *position = centre + Vec3::X * (0.5 * SPACING * i as f32);
    }
    let mut fastest = 0.0f64;
    while sand.state.clock.time() < 0.3 {
        fastest = fastest.max(sand.step().max_speed);
    }
    assert!(fastest < 2.0, "{fastest}");
    let places = sand.state.solids.places();
    let ball = places.last().unwrap();
    let centre = Vec3::from(ball.center);
    for position in &sand.state.particles.position {
        let inside = radius - position.distance(centre);
        assert!(inside < 0.05 * SPACING, "{inside}");
    }
    assert!((centre.y / SPACING - 4.0).abs() < 2.0, "{centre}");
}

#[test]
fn free_sand_and_a_body_keep_their_momentum_together() {
    let mut model = model(30.0);
    model.gravity = Vec3::ZERO;
    fill(&mut model, block(Vec3::splat(-0.08), Vec3::splat(0.08)));
    let start = Pose::new(Vec3::new(0.03, 0.14, 0.01), Quat::IDENTITY);
    let half = Vec3::new(0.06, 0.03, 0.05);
    let shape = Arc::new(Shape::Cuboid { half }.placed(start, 1.0));
    let mut brick = Dynamic::of_density(shape, 2500.0).unwrap();
    brick.velocity = Vec3::new(0.2, -1.0, 0.0);
    let (mass, inertia) = (brick.mass, brick.inertia);
    model.bodies.push(Body {
        form: Form::Dynamic(Box::new(brick)),
        ..body(Shape::Sphere { radius: 1.0 }, 0.5)
    });
    let mut sand = Sand::new(model);
    sand.step();
    let momentum = |sand: &Sand| {
        let p = &sand.state.particles;
        let grains = (0..p.len()).fold((DVec3::ZERO, DVec3::ZERO), |(linear, angular), i| {
            let one = p.velocity[i].as_dvec3() * f64::from(p.mass[i]);
            (linear + one, angular + p.position[i].as_dvec3().cross(one))
        });
        let places = sand.state.solids.places();
        let brick = &places[0];
        let at = |v: [f32; 3]| Vec3::from(v).as_dvec3();
        let linear = at(brick.velocity) * mass;
        let turn = Quat::from_array(brick.rotation).as_dquat();
        let spin = turn * (inertia * (turn.inverse() * at(brick.spin)));
        let angular = at(brick.center).cross(linear) + spin;
        (grains.0 + linear, grains.1 + angular)
    };
    let before = momentum(&sand);
    let scale = mass;
    sand.until(0.12);
    let after = momentum(&sand);
    let (linear, angular) = (after.0 - before.0, after.1 - before.1);
    assert!(linear.length() < 1e-6 * scale, "{linear} of {scale}");
    assert!(
        angular.length() < 5e-6 * scale * 0.1,
        "{angular} of {scale}: {:e}",
        angular.length() / (0.1 * scale)
    );
}

fn digest(particles: &Particles) -> Vec<Vec<u8>> {
    let columns = particles.raw();
    columns
        .into_iter()
        .map(|(_, bytes)| bytes.to_vec())
        .collect()
}

/// A heap that falls, spreads and partly sleeps beside a moving body.
fn lively() -> Model {
    let mut model = model(35.0);
    fill(
        &mut model,
        block(Vec3::new(-0.1, 0.0, -0.1), Vec3::new(0.1, 0.1, 0.1)),
    );
    fill(
        &mut model,
        block(Vec3::new(0.5, 0.0, -0.06), Vec3::new(0.62, 0.04, 0.06)),
    );
    model.bodies.push(body(wall(Vec3::Y, Vec3::ZERO), 0.6));
    let keys = [
        (0.0, Pose::new(Vec3::new(-0.3, 0.05, 0.0), Quat::IDENTITY)),
        (
            1.0,
            Pose::new(Vec3::new(0.1, 0.05, 0.0), Quat::from_rotation_y(1.0)),
        ),
    ];
    let ball = Shape::Sphere { radius: 0.05 };
    model.bodies.push(Body {
        form: Form::Keyframed(Arc::new(ball), Track::new(&keys, Interpolation::Linear)),
        ..body(Shape::Sphere { radius: 1.0 }, 0.4)
    });
    model
}

#[test]
fn the_same_bytes_on_any_number_of_threads_and_after_a_restart() {
    let run = |threads: usize, restart: bool| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut sand = Sand::new(lively());
            sand.until(0.5);
            if restart {
                sand.solver = Sph::new(SphSettings::default());
            }
            let report = sand.until(0.56);
            (digest(&sand.state.particles), report.measures[0].1)
        })
    };
    let (one, solved) = run(1, false);
    assert!(
        solved > 0.0 && solved < 580.0,
        "{solved} solved, none asleep"
    );
    assert!(one == run(2, false).0, "two threads differ");
    assert!(one == run(3, true).0, "three threads or a restart differ");
}

/// A run that goes on from a checkpoint has solids that stand for a moment, not for the step before.
#[test]
fn a_moving_body_asks_for_the_same_step_after_a_resume() {
    let mut model = layer(30.0, Vec3::splat(4.0));
    let place = |x: f32| Pose::new(Vec3::new(x, 0.5, 0.0), Quat::IDENTITY);
    let track = Track::new(
        &[(0.0, place(-1.0)), (1.0, place(9.0))],
        Interpolation::Linear,
    );
    model.bodies.push(Body {
        form: Form::Keyframed(Arc::new(Shape::Sphere { radius: 0.02 }), track),
        ..body(wall(Vec3::Y, Vec3::ZERO), 0.5)
    });
    let mut sand = Sand::new(model);
    let mut step = |end: f64| {
        sand.state.solids.place(&sand.model, 0.0, end).unwrap();
        sand.solver.max_dt(&sand.model, &sand.state)
    };
    let (during, resumed) = (step(0.01), step(0.0));
    assert_eq!(during.to_bits(), resumed.to_bits());
    assert!(10.0 * during < f64::from(SPACING), "{during} s");
}
