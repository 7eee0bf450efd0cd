//! `barchan bench dem`: grains that settle in a box, balls and composites.

use super::Cases;
use super::ledger::{Finding, Ledger, bytes_of_state, bytes_of_steps};
use crate::command::Failure;
use crate::command::machine::{forget_peak_memory, peak_memory, processor_time};
use crate::command::say::{bytes, grouped};
use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Form};
use barchan_sim::grain::{Grain, NAMED};
use barchan_sim::model::{Fill, Material, Model};
use barchan_sim::scene::{Contact, DemSettings, PRESETS, Stiffness};
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use barchan_solvers::dem::Dem;
use glam::{Quat, Vec3};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Grains of the headline.
pub const GRAINS: u64 = 50_000;
const FPS: f64 = 24.0;
/// Diameter of the grains [m], Young's modulus [Pa] and the length of a step [s]: those of tests/interop/lammps.
const SIZE: f64 = 0.01;
const YOUNG: f64 = 1e7;
const STEP: f64 = 2e-5;
/// Time [s] before the clock starts: the grains have fallen together and settle.
const WARM_UP: f64 = 0.12;
/// Grains above each other where only their number differs, and how long such a layer falls together [s].
const DEPTH: f32 = 10.0;
const LAYER_WARM_UP: f64 = 0.05;
/// Grains along a tile of such a layer.
const TILE: f32 = 16.0;

/// Grains that have settled: where each run of the work begins.
struct Settled {
    name: &'static str,
    model: Model,
    state: State,
    /// Memory that the program itself takes [bytes].
    program: f64,
}

/// Runs `bench dem`; the headline comes last.
pub fn bench(grains: u64, steps: u32, cases: Cases, ledger: &mut Ledger) -> Result<(), Failure> {
    let program = ledger.program();
    let mut cube = |name, shape, grains: u64| {
        let wide = (grains as f32).cbrt().round();
        let high = (grains as f32 / (wide * wide)).round();
        let size = Vec3::new(wide, high, wide);
        let mut cube = model(shape, size);
        // Aslant, or they would come to rest in columns.
        cube.fills = vec![fill(Vec3::ZERO, size, Vec3::new(0.3, -0.5, 0.2))];
        let settled = Settled::new(name, cube, (WARM_UP, program))?;
        ledger.measure(|| settled.measure(steps))
    };
    if cases == Cases::All {
        cube("dem, a fifth", "ball", (grains / 5).max(1000))?;
        cube("dem, tetrahedra", "tetrahedron", (grains / 4).max(1000))?;
    }
    cube("dem", "ball", grains)
}

/// Runs `bench dem --sizes`: where only the number of grains differs, not how deep they lie.
pub fn layer(grains: u64, steps: u32, ledger: &mut Ledger) -> Result<(), Failure> {
    let wide = (grains as f32 / DEPTH).sqrt().round().max(1.0);
    let mut layer = model("ball", Vec3::new(wide, DEPTH, wide));
    layer.fills = tiles(wide);
    let settled = Settled::new("dem, a layer", layer, (LAYER_WARM_UP, ledger.program()))?;
    ledger.measure(|| settled.measure(steps))
}

/// A layer that moves in tiles, each towards its neighbours on two sides: were all to move one way, they would meet at the
/// walls alone, and a wide layer would have fewer contacts a grain than a narrow one.
fn tiles(wide: f32) -> Vec<Fill> {
    let count = (wide / TILE).ceil() as u32;
    let way = |tile: u32| if tile.is_multiple_of(2) { 1.0 } else { -1.0 };
    let all = (0..count).flat_map(|x| (0..count).map(move |z| (x, z)));
    all.map(|(x, z)| {
        let least = TILE * Vec3::new(x as f32, 0.0, z as f32);
        let end = (least + TILE).min(Vec3::splat(wide)).with_y(DEPTH);
        fill(least, end, Vec3::new(0.06 * way(x), -0.1, 0.04 * way(z)))
    })
    .collect()
}

fn solver(model: &Model) -> Dem {
    let settings = DemSettings {
        contact: Contact::HertzMindlin(Stiffness::Young(YOUNG)),
    };
    Dem::new(model, settings)
}

impl Settled {
    fn new(
        name: &'static str,
        model: Model,
        (warm_up, program): (f64, f64),
    ) -> Result<Self, Failure> {
        forget_peak_memory();
        let mut solver = solver(&model);
        let mut state = start(&model, FPS, solver.columns()).map_err(Failure::input)?;
        while state.clock.time() < warm_up {
            take_step(&mut solver, &model, &mut state)?;
        }
        Ok(Self {
            name,
            model,
            state,
            program,
        })
    }

    fn measure(&self, steps: u32) -> Result<Finding, Failure> {
        let mut solver = solver(&self.model);
        let mut state = self.state.clone();
        take_step(&mut solver, &self.model, &mut state)?; // warm up
        let (began, worked) = (Instant::now(), processor_time());
        let (mut contacts, mut searches) = (0.0, 0.0);
        for _ in 0..steps {
            let [touching, searched] = take_step(&mut solver, &self.model, &mut state)?;
            contacts += touching / f64::from(steps);
            searches += searched;
        }
        let seconds = began.elapsed().as_secs_f64();
        // Time that all threads worked: what counts on a busy machine.
        let work = processor_time() - worked;
        let grains = state.particles.len() as f64;
        let grain_steps = grains * f64::from(steps);
        let rate = grain_steps / seconds;
        let spheres = rate * self.model.grains[0].shape.balls().len() as f64;
        // Without the copy that each run begins with.
        let held = (peak_memory().unwrap_or(0.0) - self.program) / grains;
        let memory = held - bytes_of_state(&state.particles);
        Ok(Finding {
            seconds,
            done: (grain_steps, "grain-step"),
            bytes: bytes_of_steps(&state.particles, grain_steps),
            line: json!({
                "name": self.name, "particles": state.particles.len(), "steps": steps,
                "particle_steps_per_second": rate, "sphere_steps_per_second": spheres,
                "particle_steps_per_processor_second": grain_steps / work,
                "contacts": contacts, "searches": searches, "bytes_per_particle": memory,
            }),
            text: format!(
                "{:24} {} grains  {} grain-steps/s  {} sphere-steps/s  {} contacts  {:.0} ns of a processor a grain and step  {} a grain at most",
                self.name,
                grouped(grains),
                grouped(rate),
                grouped(spheres),
                grouped(contacts),
                1e9 * work / grain_steps,
                bytes(memory)
            ),
        })
    }
}

/// One step; returns how many contacts there were, and whether neighbours were searched.
fn take_step(
    solver: &mut dyn Solver,
    model: &Model,
    state: &mut State,
) -> Result<[f64; 2], Failure> {
    let step = state.clock.plan(STEP);
    let placed = state.solids.place(model, step.start, step.end);
    placed.map_err(Failure::run)?;
    let report = solver.step(model, state, step.dt).map_err(Failure::run)?;
    state.clock.advance(&step);
    Ok(["contacts", "searched"].map(|name| {
        let found = report.measures.iter().find(|(word, _)| *word == name);
        found.map_or(0.0, |(_, value)| *value)
    }))
}

/// Distance of grains at the start [m].
const SPACING: f32 = 1.02 * SIZE as f32;

/// A box with room for so many grains along each axis, and a floor.
fn model(shape: &str, grains: Vec3) -> Model {
    let shape = NAMED.iter().find(|(name, _)| *name == shape);
    let grain = Grain {
        shape: shape.map_or(NAMED[0].1.clone(), |(_, shape)| shape.clone()),
        ..Grain::ball(SIZE)
    };
    let mut model = Model::empty();
    (model.resolution, model.spacing) = (SIZE as f32, SPACING);
    model.materials.push(Material {
        grain_density: 2500.0,
        grain_size: SIZE,
        restitution: 0.5,
        ..PRESETS["dry-sand"].material("glass")
    });
    model.grains.push(grain);
    let walls = [Vec3::Y, Vec3::X, Vec3::NEG_X, Vec3::Z, Vec3::NEG_Z];
    model.bodies.extend(walls.map(|normal| {
        let at = SPACING * grains * normal.min(Vec3::ZERO).abs();
        let plane = Shape::HalfSpace { normal }.placed(Pose::new(at, Quat::IDENTITY), 1.0);
        Body {
            name: "wall".into(),
            form: Form::Static(Arc::new(plane)),
            friction: 0.5,
            restitution: None,
        }
    }));
    model
}

/// Grains from the corner `least` to the corner `end`, both counted in grains, which lie at the middles of cubes.
fn fill(least: Vec3, end: Vec3, velocity: Vec3) -> Fill {
    let (least, end) = (SPACING * least, SPACING * end);
    let half = 0.5 * (end - least);
    Fill {
        material: 0,
        shape: Shape::Cuboid { half }.placed(Pose::new(least + half, Quat::IDENTITY), 1.0),
        velocity,
        layout: Layout::Lattice,
    }
}
