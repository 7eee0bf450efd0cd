//! What the SPH method does before sand moves: it lies evenly, and bears its weight.
#![allow(clippy::unwrap_used)]

mod common;

use barchan_sim::scene::{SphScheme, SphSettings};
use common::sand::{SPACING, Sand, block, fill, layer, model};
use glam::Vec3;

#[test]
fn what_a_scene_begins_with_is_laid_out_before_it_moves() {
    let mut model = model(30.0);
    fill(
        &mut model,
        block(Vec3::splat(-6.0 * SPACING), Vec3::splat(6.0 * SPACING)),
    );
    model.gravity = Vec3::ZERO;
    model.fills[0].velocity = Vec3::new(0.1, 0.0, -0.2);
    let mut sand = Sand::new(model);
    let nearest = |sand: &Sand| {
        let places = &sand.state.particles.position;
        let of = |i: usize| places[..i].iter().map(move |b| places[i].distance(*b));
        (0..places.len()).flat_map(of).fold(f32::MAX, f32::min) / SPACING
    };
    assert!(nearest(&sand) < 0.3, "{}", nearest(&sand));
    sand.step();
    assert!(nearest(&sand) > 0.5, "{}", nearest(&sand));
    for velocity in &sand.state.particles.velocity {
        let off = velocity.distance(Vec3::new(0.1, 0.0, -0.2));
        assert!(off < 1e-5, "{velocity}");
    }
    // It lies evenly now, and stays.
    let before = sand.state.particles.position.clone();
    let began = sand.state.clock.time();
    sand.until(0.02);
    let carried = Vec3::new(0.1, 0.0, -0.2) * (sand.state.clock.time() - began) as f32;
    let places = before.iter().zip(&sand.state.particles.position);
    let moved: f32 = places.map(|(a, b)| (*a + carried).distance(*b)).sum();
    let moved = moved / before.len() as f32 / SPACING;
    assert!(moved < 0.05, "{moved}");
}

#[test]
fn no_scheme_bursts_what_a_fill_left_in_one_place() {
    for scheme in [SphScheme::Implicit, SphScheme::Ihmsen] {
        let mut model = model(30.0);
        fill(
            &mut model,
            block(Vec3::splat(-3.0 * SPACING), Vec3::splat(3.0 * SPACING)),
        );
        model.gravity = Vec3::ZERO;
        let settings = SphSettings {
            scheme,
            ..SphSettings::default()
        };
        let mut sand = Sand::with(model, settings);
        let mut fastest = 0.0f64;
        while sand.state.clock.time() < 0.1 {
            fastest = fastest.max(sand.step().max_speed);
        }
        // The published scheme gave a random fill 74 cm/s, and gives one that is laid out 0.6 mm/s.
        assert!(fastest < 0.01, "{scheme:?}: {fastest} m/s");
    }
}

#[test]
fn a_layer_bears_its_weight_from_the_first_step() {
    let mut sand = Sand::new(layer(30.0, Vec3::new(8.0, 10.0, 8.0)));
    sand.step();
    let free = 9.81 * sand.state.clock.time() as f32;
    let speed = sand.rms_speed() / free;
    assert!(speed < 0.3, "{speed}");
}
