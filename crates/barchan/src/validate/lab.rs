//! A scene that runs in memory, frame by frame, and is looked at and changed in between.

use super::packed;
use super::scene_text::{FPS, SceneText};
use super::trial::{Trial, Trouble};
use barchan_base::column::ColumnSpec;
use barchan_sim::clock::Step;
use barchan_sim::coupling::{Coupling, Impulse, coupling};
use barchan_sim::model::Model;
use barchan_sim::run::{RecordError, Recorder, Run, StepLine};
use barchan_sim::scene::{self, Method, Scene};
use barchan_sim::solids::Solids;
use barchan_sim::solver::{Cost, Solver, StepError, StepReport};
use barchan_sim::start::start;
use barchan_sim::state::State;
use glam::{DVec3, Vec3};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Gravity of the cases [m/s²].
pub const G: f64 = 9.81;

/// Part of space that grains fill where they lie, for heaps too small to measure it.
const USUALLY_FILLED: f64 = 0.58;

/// A scene at some moment.
pub struct Lab {
    /// The scene; its model may be changed between frames.
    pub scene: Scene,
    /// Everything that changes.
    pub state: State,
    /// The last step's line.
    pub line: Option<StepLine>,
    /// The most particles there were.
    pub most: usize,
    solver: Box<dyn Solver>,
    scales: Scales,
    /// Gravity and number of particles when the last frame ended: what differs was changed since.
    left: Option<(Vec3, usize)>,
}

impl Lab {
    /// A scene at its start, single grains as they lie.
    pub fn new(trial: &Trial, text: &SceneText) -> Result<Self, Trouble> {
        let mut lab = Self::unpacked(trial, text)?;
        if let Method::Dem = lab.scene.method {
            packed::pack(&lab.scene, &mut lab.state)?;
            lab.most = lab.state.particles.len();
        }
        Ok(lab)
    }

    /// A scene at its start, single grains on their lattice.
    pub fn unpacked(trial: &Trial, text: &SceneText) -> Result<Self, Trouble> {
        let problem = |error: scene::SceneError| {
            let all: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
            format!("its scene is wrong: {}", all.join("; "))
        };
        let scene =
            scene::parse(&text.text(), Path::new("case.toml"), &trial.set).map_err(problem)?;
        let solver: Box<dyn Solver> = Box::new(Paced {
            inner: barchan_solvers::solver(&scene),
            step: trial.setting.step,
        });
        let state = start(&scene.model, scene.fps, solver.columns()).map_err(|e| e.to_string())?;
        let scales = Scales {
            inner: coupling(&scene.model),
            sums: vec![DVec3::ZERO; scene.model.bodies.len()],
        };
        Ok(Self {
            most: state.particles.len(),
            scene,
            state,
            line: None,
            solver,
            scales,
            left: None,
        })
    }

    /// Goes on by a frame.
    pub fn frame(&mut self) -> Result<(), Trouble> {
        let stop = AtomicBool::new(false);
        let found = (self.scene.model.gravity, self.state.particles.len());
        if self.left.is_some_and(|left| left != found) {
            self.solver.disturb(&mut self.state);
        }
        let mut run = Run {
            model: &self.scene.model,
            solver: &mut *self.solver,
            coupling: &mut self.scales,
            max_step: self.scene.max_step,
            stop: &stop,
        };
        let mut last = LastLine::default();
        run.until(self.state.clock.frame + 1, &mut self.state, &mut last)
            .map_err(|error| error.to_string())?;
        self.line = last.line;
        self.most = self.most.max(last.most);
        self.left = Some((self.scene.model.gravity, self.state.particles.len()));
        Ok(())
    }

    /// Goes on until `time` [s], to the nearest frame.
    pub fn until(&mut self, time: f64) -> Result<(), Trouble> {
        while f64::from(self.state.clock.frame) + 0.5 < time * FPS {
            self.frame()?;
        }
        Ok(())
    }

    /// Now [s].
    pub fn time(&self) -> f64 {
        self.state.clock.time()
    }

    /// Bulk volume of a particle [m³]; of single grains as they lie, which no scene can know.
    pub fn volume(&self) -> f64 {
        let nominal = self.scene.model.particle_volume();
        match self.scene.method {
            Method::Dem => self.packed_volume().unwrap_or_else(|| self.loose_volume()),
            _ => nominal,
        }
    }

    /// Bulk volume of a grain [m³] as grains usually lie.
    fn loose_volume(&self) -> f64 {
        let solid = self.mass() / self.scene.model.materials[0].grain_density;
        solid / (self.state.particles.len() as f64 * USUALLY_FILLED)
    }

    /// Volume over the number of grains within the material [m³]: above columns of the ground, from a grain off the
    /// floor to two below the highest; nothing where all of them are low.
    fn packed_volume(&self) -> Option<f64> {
        let d = f64::from(self.scene.model.spacing);
        let width = 2.0 * d;
        let mut columns: BTreeMap<[i64; 2], Vec<f64>> = BTreeMap::new();
        for place in &self.state.particles.position {
            let key = [place.x, place.z].map(|at| (f64::from(at) / width).floor() as i64);
            columns.entry(key).or_default().push(f64::from(place.y));
        }
        let (mut volume, mut count) = (0.0, 0.0);
        for heights in columns.values() {
            let (low, high) = (d, heights.iter().copied().fold(0.0, f64::max) - 2.0 * d);
            if high > low + 2.0 * d {
                volume += (high - low) * width * width;
                let inside = heights.iter().filter(|y| (low..high).contains(*y));
                count += inside.count() as f64;
            }
        }
        (count > 50.0).then(|| volume / count)
    }

    /// Momentum that body `index` has taken from the particles since it was last asked [N s].
    pub fn taken_by(&mut self, index: usize) -> DVec3 {
        std::mem::take(&mut self.scales.sums[index])
    }

    /// Where the particles that `which` chooses are, by id.
    pub fn places(&self, which: impl Fn(Vec3) -> bool) -> BTreeMap<u64, Vec3> {
        let particles = &self.state.particles;
        let all = particles.id.iter().zip(&particles.position);
        all.filter(|(_, place)| which(**place))
            .map(|(id, place)| (*id, *place))
            .collect()
    }

    /// The highest place [m] of the material within `reach` [m], or two spacings, of the y axis; its particles are `d` [m] apart. (Counting what
    /// lies there would depend on where a dozen columns of particles happen to stand.)
    pub fn top_near(&self, reach: f64, d: f64) -> f64 {
        let places = self.state.particles.position.iter();
        let near = places.filter(|place| f64::from(place.x.hypot(place.z)) < reach.max(2.0 * d));
        let top = near.map(|place| f64::from(place.y)).reduce(f64::max);
        top.map_or(0.0, |top| top + 0.5 * d)
    }

    /// The mean over the particles of `ids` that are still there of `value` of their index.
    pub fn mean_of<V>(&self, ids: &BTreeMap<u64, Vec3>, value: impl Fn(usize, Vec3) -> V) -> V
    where
        V: std::iter::Sum<V> + std::ops::Div<f64, Output = V>,
    {
        let known = self.state.particles.id.iter().enumerate();
        let found: Vec<V> = known
            .filter_map(|(index, id)| Some(value(index, *ids.get(id)?)))
            .collect();
        let count = found.len() as f64;
        found.into_iter().sum::<V>() / count
    }

    /// How far the particles of `before` have moved in the mean [m].
    pub fn moved(&self, before: &BTreeMap<u64, Vec3>) -> f64 {
        let places = &self.state.particles.position;
        self.mean_of(before, |index, was| f64::from(places[index].distance(was)))
    }

    /// Mean velocity of the particles of `ids` [m/s].
    pub fn velocity(&self, ids: &BTreeMap<u64, Vec3>) -> DVec3 {
        let velocities = &self.state.particles.velocity;
        self.mean_of(ids, |index, _| velocities[index].as_dvec3())
    }

    /// Takes out the particles that `which` chooses.
    pub fn remove(&mut self, which: impl Fn(Vec3) -> bool) {
        let keep: Vec<bool> = self
            .state
            .particles
            .position
            .iter()
            .map(|place| !which(*place))
            .collect();
        self.state.particles.retain(&keep);
    }

    /// Momentum of the particles [N s].
    pub fn momentum(&self) -> DVec3 {
        let particles = &self.state.particles;
        let each = particles.mass.iter().zip(&particles.velocity);
        each.map(|(mass, v)| v.as_dvec3() * f64::from(*mass)).sum()
    }

    /// Mass of the particles [kg].
    pub fn mass(&self) -> f64 {
        let masses = &self.state.particles.mass;
        masses.iter().map(|mass| f64::from(*mass)).sum()
    }

    /// Their centre of mass [m].
    pub fn center_of_mass(&self) -> DVec3 {
        let particles = &self.state.particles;
        let each = particles.mass.iter().zip(&particles.position);
        let sum: DVec3 = each
            .map(|(mass, place)| f64::from(*mass) * place.as_dvec3())
            .sum();
        sum / self.mass()
    }

    /// Root mean square distance [m] of the material from its centre.
    pub fn size(&self) -> f64 {
        let center = self.center_of_mass();
        let particles = &self.state.particles;
        let each = particles.mass.iter().zip(&particles.position);
        let sum: f64 = each
            .map(|(mass, place)| f64::from(*mass) * place.as_dvec3().distance_squared(center))
            .sum();
        (sum / self.mass()).sqrt()
    }

    /// Kinetic energy of the particles [J].
    pub fn energy(&self) -> f64 {
        let particles = &self.state.particles;
        let each = particles.mass.iter().zip(&particles.velocity);
        each.map(|(mass, v)| 0.5 * f64::from(*mass) * v.as_dvec3().length_squared())
            .sum()
    }
}

/// Keeps the last line of a run.
#[derive(Default)]
pub struct LastLine {
    line: Option<StepLine>,
    most: usize,
}

impl Recorder for LastLine {
    fn step(&mut self, line: StepLine) -> Result<(), RecordError> {
        self.most = self.most.max(line.particles);
        self.line = Some(line);
        Ok(())
    }

    fn frame(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }

    fn interrupted(&mut self, _: &State, _: &dyn Coupling) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A solver that takes steps shorter or longer than it would.
struct Paced {
    inner: Box<dyn Solver>,
    step: f64,
}

impl Solver for Paced {
    fn columns(&self) -> &'static [ColumnSpec] {
        self.inner.columns()
    }

    fn memory(&self) -> &'static [ColumnSpec] {
        self.inner.memory()
    }

    fn max_dt(&self, model: &Model, state: &State) -> f64 {
        self.step * self.inner.max_dt(model, state)
    }

    fn step(&mut self, model: &Model, state: &mut State, dt: f64) -> Result<StepReport, StepError> {
        self.inner.step(model, state, dt)
    }

    fn disturb(&self, state: &mut State) {
        self.inner.disturb(state);
    }

    fn cost(&self, model: &Model) -> Cost {
        self.inner.cost(model)
    }
}

/// A coupling that weighs what the bodies take.
struct Scales {
    inner: Box<dyn Coupling>,
    sums: Vec<DVec3>,
}

impl Coupling for Scales {
    fn place_solids(&mut self, model: &Model, solids: &mut Solids, step: &Step) {
        self.inner.place_solids(model, solids, step);
    }

    fn return_impulses(&mut self, model: &Model, solids: &mut Solids, impulses: &[Impulse]) {
        for impulse in impulses {
            self.sums[impulse.body] += impulse.linear;
        }
        self.inner.return_impulses(model, solids, impulses);
    }

    fn show(&self, model: &Model, solids: &mut Solids) {
        self.inner.show(model, solids);
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _: &[u8]) -> bool {
        false
    }
}
