//! `barchan bench detail`: grains over a bed that turns and shears, in frames of two steps, as Ihmsen et al. (2013) had them.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::peak_memory;
use crate::command::say::{bytes, grouped};
use barchan_base::random::Random;
use barchan_base::shape::Shape;
use barchan_out::detail::{Advancer, Guides, Interval, Rule, Sampling, Settings, sample};
use barchan_sim::body::{Body, Form};
use barchan_sim::model::Model;
use barchan_sim::solids::Solids;
use barchan_sim::state::Particles;
use glam::Vec3;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Grains, if nobody says.
pub const GRAINS: u64 = 4_000_000;
/// Grains in place of each particle.
const PER_PARTICLE: u32 = 200;
/// Frames that are measured, after one to warm up.
const FRAMES: u32 = 2;
const FPS: f64 = 50.0;
const STEP: f64 = 0.01;
/// Bytes that a step must move for a grain: its place and its velocity, read and written.
const BYTES: f64 = 2.0 * 2.0 * size_of::<Vec3>() as f64;
/// Radius of a particle [m].
const RADIUS: f32 = 0.02;
/// How high the bed is over how wide.
const FLAT: f32 = 0.2;

/// Runs `bench detail`; the headline, the default rule, comes last.
pub fn bench(grains: u64, cases: Cases, ledger: &mut Ledger) -> Result<(), Failure> {
    let model = Model {
        bodies: vec![Body {
            name: "ground".into(),
            form: Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y })),
            friction: 0.6,
            restitution: None,
        }],
        ..Model::empty()
    };
    let plain = Settings {
        per_particle: PER_PARTICLE,
        rule: Rule::Ihmsen,
        sampling: Sampling::SupportPoints,
        reach: 3.0,
        step: STEP,
        every: 1,
        hold_density: false,
        radius: None,
        spread: 0.3,
        seed: 1,
        near: None,
    };
    let alduan = Settings {
        rule: Rule::Alduan,
        ..plain.clone()
    };
    let held = Settings {
        hold_density: true,
        ..plain.clone()
    };
    let particles = bed((grains / u64::from(PER_PARTICLE)).max(8));
    let mut case = |name, settings| ledger.measure(|| measure(name, &model, settings, &particles));
    if cases == Cases::All {
        case("detail, alduan", &alduan)?;
        case("detail, as published", &plain)?;
    }
    case("detail", &held)
}

/// Jittered particles in a flat box on the ground.
fn bed(count: u64) -> Particles {
    let edge = (count as f32 / FLAT).cbrt().ceil() as u64;
    let random = Random::new(1, 0);
    let mut particles = Particles::default();
    particles.resize(count as usize);
    for i in 0..count {
        let cell = Vec3::new(
            (i % edge) as f32 - 0.5 * edge as f32,
            (i / edge / edge) as f32,
            (i / edge % edge) as f32 - 0.5 * edge as f32,
        );
        let place = cell + 0.4 + 0.2 * random.in_cube(i, 0);
        particles.id[i as usize] = i;
        particles.position[i as usize] = place * (2.0 * RADIUS);
    }
    particles.radius.fill(RADIUS);
    particles.mass.fill(0.1);
    particles
}

/// Moves the bed on for a frame: it turns, faster towards the top.
fn turned(before: &Particles) -> Particles {
    let mut after = before.clone();
    let dt = (1.0 / FPS) as f32;
    for (place, velocity) in after.position.iter_mut().zip(&mut after.velocity) {
        let spin = 0.2 + 2.0 * place.y;
        let next = glam::Quat::from_rotation_y(spin * dt) * *place;
        *velocity = Vec3::Y.cross(next) * spin;
        *place = next;
    }
    after
}

fn measure(
    name: &str,
    model: &Model,
    settings: &Settings,
    particles: &Particles,
) -> Result<Finding, Failure> {
    let mut solids = Solids::default();
    solids.place(model, 0.0, 0.0).map_err(Failure::run)?;
    let mut grains = sample(settings, particles, &solids).map_err(Failure::run)?;
    let mut advancer = Advancer::new(settings.clone());
    let mut before = particles.clone();
    let (mut seconds, mut steps) = (0.0, 0);
    for frame in 0..=FRAMES {
        let after = turned(&before);
        let began = Instant::now();
        let guides = Guides::in_order(&before, &after, (1.0 / FPS) as f32);
        let interval = Interval {
            frame,
            fps: FPS,
            guides: &guides,
            bodies: (&[], &[]),
            since: 0,
        };
        let taken = advancer
            .advance(model, &mut grains, &interval)
            .map_err(Failure::run)?;
        // The first one warms up.
        if frame > 0 {
            seconds += began.elapsed().as_secs_f64();
            steps += taken;
        }
        before = after;
    }
    let grain_steps = grains.len() as f64 * f64::from(steps);
    let (rate, per_frame) = (grain_steps / seconds, seconds / f64::from(FRAMES));
    let memory = peak_memory().unwrap_or(0.0);
    let per_grain = memory / grains.len() as f64;
    Ok(Finding {
        seconds,
        done: (grain_steps, "grain-step"),
        bytes: BYTES * grain_steps,
        line: json!({
            "name": name, "grains": grains.len(), "particles": particles.len(), "grain_steps_per_second": rate,
            "seconds_per_frame": per_frame, "peak_memory_bytes": memory, "bytes_per_grain": per_grain,
        }),
        text: format!(
            "{name:24} {} grains  {} grain-steps/s  {per_frame:.3} s a frame  {} at most, {} a grain",
            grouped(grains.len() as f64),
            grouped(rate),
            bytes(memory),
            bytes(per_grain)
        ),
    })
}
