//! Sand as particles for tests: a model with its solver, taken step by step.

use barchan_base::Pose;
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use barchan_sim::body::{Body, Form};
use barchan_sim::coupling::{Coupling, coupling};
use barchan_sim::model::{Fill, Material, Model};
use barchan_sim::scene::SphSettings;
use barchan_sim::solver::{Solver, StepReport};
use barchan_sim::start::start;
use barchan_sim::state::{Particles, State};
use barchan_solvers::sph::Sph;
use glam::{Quat, Vec3};
use std::sync::Arc;

pub const SPACING: f32 = 0.02;
pub const ROUGH: f32 = 10.0;
pub const GRAVITY: f32 = 9.81;

pub fn model(angle: f64) -> Model {
    let mut model = Model::empty();
    model.resolution = SPACING;
    model.spacing = SPACING;
    model.seed = 3;
    model.materials = vec![Material {
        name: "sand".into(),
        density: 1600.0,
        grain_density: 2650.0,
        grain_size: 0.0003,
        friction_angle: angle.to_radians(),
        cohesion: 0.0,
        wet_cohesion: 2000.0,
        wet_viscosity: 0.3,
        restitution: 0.3,
        color: [0.5; 3],
    }];
    model
}

pub fn body(shape: Shape, friction: f32) -> Body {
    Body {
        name: "body".into(),
        form: Form::Static(Arc::new(shape)),
        friction,
        restitution: None,
    }
}

pub fn block(min: Vec3, max: Vec3) -> Shape {
    let half = (max - min) * 0.5;
    Shape::Cuboid { half }.placed(Pose::new((min + max) * 0.5, Quat::IDENTITY), 1.0)
}

pub fn wall(normal: Vec3, at: Vec3) -> Shape {
    Shape::HalfSpace { normal }.placed(Pose::new(at, Quat::IDENTITY), 1.0)
}

pub fn fill(model: &mut Model, shape: Shape) {
    model.fills.push(Fill {
        material: 0,
        shape,
        velocity: Vec3::ZERO,
        layout: Layout::Jittered,
    });
}

/// A rough floor and smooth walls around a layer of `size` in spacings.
pub fn layer(angle: f64, size: Vec3) -> Model {
    let mut model = model(angle);
    let size = size * SPACING;
    let half = 0.5 * size;
    fill(
        &mut model,
        block(
            Vec3::new(-half.x, 0.0, -half.z),
            Vec3::new(half.x, size.y, half.z),
        ),
    );
    model.bodies.push(body(wall(Vec3::Y, Vec3::ZERO), ROUGH));
    for normal in [Vec3::X, Vec3::NEG_X, Vec3::Z, Vec3::NEG_Z] {
        model.bodies.push(body(wall(normal, normal * -half), 0.0));
    }
    model
}

pub struct Sand {
    pub model: Model,
    pub solver: Sph,
    pub state: State,
    pub coupling: Box<dyn Coupling>,
}

impl Sand {
    pub fn new(model: Model) -> Self {
        Self::with(model, SphSettings::default())
    }

    pub fn with(model: Model, settings: SphSettings) -> Self {
        let solver = Sph::new(settings);
        let state = start(&model, 50.0, solver.columns()).unwrap();
        let coupling = coupling(&model);
        Self {
            model,
            solver,
            state,
            coupling,
        }
    }

    pub fn step(&mut self) -> StepReport {
        let (model, state) = (&self.model, &mut self.state);
        let step = state.clock.plan(self.solver.max_dt(model, state));
        state.solids.place(model, step.start, step.end).unwrap();
        self.coupling.place_solids(model, &mut state.solids, &step);
        barchan_sim::emit::emit(model, state, &step);
        barchan_sim::wet::soak(model, state, &step);
        let report = self.solver.step(model, state, step.dt).unwrap();
        assert!(report.lost.is_empty(), "lost {:?}", report.lost);
        self.coupling
            .return_impulses(model, &mut state.solids, &report.impulses);
        state.clock.advance(&step);
        report
    }

    pub fn until(&mut self, time: f64) -> StepReport {
        let mut report = self.step();
        while self.state.clock.time() < time {
            report = self.step();
        }
        report
    }

    pub fn rms_speed(&self) -> f32 {
        let velocities = &self.state.particles.velocity;
        let sum: f32 = velocities.iter().map(|v| v.length_squared()).sum();
        (sum / velocities.len() as f32).sqrt()
    }

    pub fn mean<V: std::iter::Sum<V> + std::ops::Div<f32, Output = V>>(
        &self,
        value: impl Fn(&Particles, usize) -> V,
    ) -> V {
        let count = self.state.particles.len();
        (0..count)
            .map(|i| value(&self.state.particles, i))
            .sum::<V>()
            / count as f32
    }
}

impl Sand {
    /// Turns gravity by `tilt` [deg] from upright towards the direction in which the ring goes round, and takes a step.
    pub fn step_tilted(&mut self, tilt: f64) {
        let (sin, cos) = (tilt.to_radians() as f32).sin_cos();
        self.model.gravity = Vec3::NEG_Y * (GRAVITY * cos);
        let longest = self.solver.max_dt(&self.model, &self.state);
        let kick = GRAVITY * sin * self.state.clock.plan(longest).dt as f32;
        let particles = &mut self.state.particles;
        for (x, v) in particles.position.iter().zip(&mut particles.velocity) {
            *v += along_ring(*x) * kick;
        }
        self.step();
    }

    /// How fast the upper rows go round the ring.
    pub fn flow(&self) -> f32 {
        let particles = &self.state.particles;
        let places = particles.position.iter().zip(&particles.velocity);
        let top: Vec<f32> = places
            .filter(|(x, _)| x.y > 3.0 * SPACING)
            .map(|(x, v)| v.dot(along_ring(*x)))
            .collect();
        top.iter().sum::<f32>() / top.len() as f32
    }

    pub fn quiet(&mut self) -> &mut [f32] {
        let mut columns = self.state.particles.extra.iter_mut();
        let quiet = columns.find(|column| column.spec.name == "quiet");
        quiet.unwrap().entries_mut::<f32>()
    }
}

/// The direction in which the ring goes round at a place.
fn along_ring(x: Vec3) -> Vec3 {
    Vec3::new(-x.z, 0.0, x.x).normalize_or_zero()
}
