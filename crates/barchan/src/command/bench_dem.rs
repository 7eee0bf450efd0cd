//! `barchan bench dem`: grains that settle in a box, balls and composites.

use super::Failure;
use super::bench_ledger::{Ledger, bytes_of_state};
use super::machine::{peak_memory, processor_time};
use super::say::{bytes, grouped};
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
const LAYER_WARM_UP: f64 = 0.08;

/// What was measured.
struct Figures {
    name: &'static str,
    grains: usize,
    balls: usize,
    bytes_of_state: f64,
    steps: u32,
    seconds: f64,
    /// Time that all threads worked [s]: what counts on a busy machine.
    work: f64,
    contacts: f64,
    searches: f64,
}

/// Runs `bench dem`.
pub fn bench(grains: u64, steps: u32, ledger: &Ledger) -> Result<(), Failure> {
    let before = peak_memory().unwrap_or(0.0);
    let cube = |name, shape, grains: u64| {
        let wide = (grains as f32).cbrt().round();
        let high = (grains as f32 / (wide * wide)).round();
        settling(name, model(shape, wide, high), (WARM_UP, steps))
    };
    cube("dem, a fifth", "ball", (grains / 5).max(1000))?.tell(None, ledger);
    cube("dem, tetrahedra", "tetrahedron", (grains / 4).max(1000))?.tell(None, ledger);
    let headline = cube("dem", "ball", grains)?;
    let memory = (peak_memory().unwrap_or(0.0) - before) / headline.grains as f64;
    headline.tell(Some(memory), ledger);
    Ok(())
}

/// Runs `bench dem --sizes`.
pub fn sizes(sizes: &[u64], steps: u32, ledger: &Ledger) -> Result<(), Failure> {
    sizes.iter().try_for_each(|grains| {
        let wide = (*grains as f32 / DEPTH).sqrt().round().max(1.0);
        let mut layer = model("ball", wide, DEPTH);
        // It has less far to fall together than a cube, and should be at rest as soon.
        layer.fills[0].velocity *= 0.2;
        settling("dem, a layer", layer, (LAYER_WARM_UP, steps))?.tell(None, ledger);
        Ok(())
    })
}

fn settling(
    name: &'static str,
    model: Model,
    (warm_up, steps): (f64, u32),
) -> Result<Figures, Failure> {
    let settings = DemSettings {
        contact: Contact::HertzMindlin(Stiffness::Young(YOUNG)),
    };
    let mut solver = Dem::new(&model, settings);
    let mut state = start(&model, FPS, solver.columns()).map_err(Failure::input)?;
    while state.clock.time() < warm_up {
        take_step(&mut solver, &model, &mut state)?;
    }
    let (began, worked) = (Instant::now(), processor_time());
    let (mut contacts, mut searches) = (0.0, 0.0);
    for _ in 0..steps {
        let [touching, searched] = take_step(&mut solver, &model, &mut state)?;
        contacts += touching / f64::from(steps);
        searches += searched;
    }
    let seconds = began.elapsed().as_secs_f64();
    let work = processor_time() - worked;
    let grains = state.particles.len();
    Ok(Figures {
        name,
        grains,
        balls: grains * model.grains[0].shape.balls().len(),
        bytes_of_state: bytes_of_state(&state.particles),
        steps,
        seconds,
        work,
        contacts,
        searches,
    })
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

/// Grains so many `wide` both ways and so many `high` on the floor of a box as wide.
fn model(shape: &str, wide: f32, high: f32) -> Model {
    let shape = NAMED.iter().find(|(name, _)| *name == shape);
    let grain = Grain {
        shape: shape.map_or(NAMED[0].1.clone(), |(_, shape)| shape.clone()),
        ..Grain::ball(SIZE)
    };
    let spacing = 1.02 * SIZE as f32;
    // Grains lie at the middles of cubes, counted from the origin.
    let size = spacing * Vec3::new(wide, high, wide);
    let mut model = Model::empty();
    (model.resolution, model.spacing) = (SIZE as f32, spacing);
    model.materials.push(Material {
        grain_density: 2500.0,
        grain_size: SIZE,
        restitution: 0.5,
        ..PRESETS["dry-sand"].material("glass")
    });
    model.grains.push(grain);
    model.fills.push(Fill {
        material: 0,
        shape: Shape::Cuboid { half: 0.5 * size }
            .placed(Pose::new(0.5 * size, Quat::IDENTITY), 1.0),
        // Aslant, or they would come to rest in columns.
        velocity: Vec3::new(0.3, -0.5, 0.2),
        layout: Layout::Lattice,
    });
    let walls = [Vec3::Y, Vec3::X, Vec3::NEG_X, Vec3::Z, Vec3::NEG_Z];
    model.bodies.extend(walls.map(|normal| {
        let at = size * normal.min(Vec3::ZERO).abs();
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

impl Figures {
    fn tell(&self, memory: Option<f64>, ledger: &Ledger) {
        let rate = self.grains as f64 * f64::from(self.steps) / self.seconds;
        let balls = self.balls as f64 * f64::from(self.steps) / self.seconds;
        let mut line = json!({
            "name": self.name, "particles": self.grains,
            "steps": self.steps, "particle_steps_per_second": rate, "sphere_steps_per_second": balls,
            "particle_steps_per_processor_second": self.grains as f64 * f64::from(self.steps) / self.work,
            "contacts": self.contacts, "searches": self.searches,
            "of_possible_bytes": ledger.of_possible_bytes(self.bytes_of_state, rate),
        });
        if let Some(memory) = memory {
            line["bytes_per_particle"] = memory.into();
        }
        let memory = memory.map_or(String::new(), |memory| {
            format!("  {} a grain at most", bytes(memory))
        });
        ledger.tell(line, || {
            format!(
                "{:24} {} grains  {} grain-steps/s  {} sphere-steps/s  {} contacts  {:.0} ns of a processor a grain and step{memory}",
                self.name,
                grouped(self.grains as f64),
                grouped(rate),
                grouped(balls),
                grouped(self.contacts),
                1e9 * self.work / (self.grains as f64 * f64::from(self.steps))
            )
        });
    }
}
