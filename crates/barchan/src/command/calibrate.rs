//! `barchan calibrate`: which contacts between grains give which angle of repose, found by letting a bed of them run out.

use super::say::{out, talk};
use super::{Failure, start_threads};
use crate::validate::line;
use barchan_base::Pose;
use barchan_base::shape::Shape;
use barchan_sim::body::Form;
use barchan_sim::coupling::coupling;
use barchan_sim::grain::{GrainShape, NAMED};
use barchan_sim::run::{RecordError, Recorder, Run, StepLine};
use barchan_sim::scene::{self, Scene};
use barchan_sim::solids::Solids;
use barchan_sim::start::start;
use barchan_sim::state::{Particles, State};
use glam::{Quat, Vec3};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Arguments of `calibrate`.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Shapes of grains [default: all that have a name]
    #[arg(long = "shape", value_name = "NAME")]
    shapes: Vec<String>,
    /// Coefficients of friction to try, instead of the table's
    #[arg(long, value_delimiter = ',')]
    friction: Vec<f64>,
    /// Coefficient of rolling resistance to try them with
    #[arg(long, default_value_t = 0.0, requires = "friction")]
    rolling: f64,
    /// Slopes to take the mean of
    #[arg(long, default_value_t = 3)]
    seeds: u32,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The bed that runs out.
const SLOPE: &str = include_str!("slope.toml");
/// Resolution of it [m].
const SIZE: f64 = 0.01;
/// Part of space that grains fill where they lie, and the mean of the cube of their sizes over that of the largest.
const PACKED: f64 = 0.58;
const MEAN_CUBE: f64 = 0.738;
/// Length, height and thickness of the bed, over the edge of the cube that a grain has to itself.
const LENGTH: f64 = 16.0;
const HEIGHT: f64 = 20.0;
const THICKNESS: f64 = 6.0;
/// The gate's index among the bodies, and how far away it goes [m].
const GATE: usize = 4;
const AWAY: f32 = 100.0;
/// The bed is cut at this slope when the gate goes: 50°.
const CUT: f32 = 1.2;
/// Friction and rolling resistance along which the table of balls goes: what does not resist rolling runs off like water.
const BALLS: [(f64, f64); 10] = [
    (0.1, 0.02),
    (0.2, 0.05),
    (0.3, 0.1),
    (0.4, 0.15),
    (0.5, 0.2),
    (0.6, 0.3),
    (0.7, 0.4),
    (0.8, 0.6),
    (1.0, 1.0),
    (1.2, 2.0),
];
/// The same for composites, which hold each other by their form: only what friction cannot hold, rolling resistance must.
const COMPOSITES: [(f64, f64); 8] = [
    (0.05, 0.0),
    (0.1, 0.0),
    (0.2, 0.0),
    (0.35, 0.0),
    (0.6, 0.0),
    (0.9, 0.0),
    (1.0, 0.2),
    (1.2, 0.6),
];
/// The bed settles for this long [s].
const SETTLE: f64 = 0.3;
/// A slope stands when no more than this part of its grains is awake.
const AWAKE: f64 = 0.03;
/// Bins from pane to pane.
const BINS_ACROSS: usize = 6;
/// The slope is fitted between these parts of its height.
const FLANK: (f64, f64) = (0.15, 0.85);

/// Keeps of a run how many are awake.
#[derive(Default)]
struct Awake(f64);

impl Recorder for Awake {
    fn step(&mut self, line: StepLine) -> Result<(), RecordError> {
        let awake = line.measures.get("awake").copied().unwrap_or(0.0);
        self.0 = awake / line.particles.max(1) as f64;
        Ok(())
    }

    fn frame(&mut self, _: &State, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn interrupted(&mut self, _: &State, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Runs `calibrate`.
pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    let unknown = |shape: &&String| !names.contains(&shape.as_str());
    if let Some(unknown) = args.shapes.iter().find(unknown) {
        let message = format!(
            "there is no grain \"{unknown}\"; possible: {}",
            names.join(", ")
        );
        return Err(Failure::Input(message));
    }
    if args.seeds == 0 {
        return Err(Failure::Input("--seeds must be at least 1".into()));
    }
    let wanted = |name: &&&str| args.shapes.is_empty() || args.shapes.iter().any(|s| s == **name);
    let contacts = |name: &str| match (args.friction.as_slice(), name) {
        ([], "ball") => BALLS.to_vec(),
        ([], _) => COMPOSITES.to_vec(),
        (some, _) => some.iter().map(|one| (*one, args.rolling)).collect(),
    };
    for name in names.iter().filter(wanted) {
        let mut rows = Vec::new();
        for contact in contacts(name) {
            let angles = (0..args.seeds)
                .map(|seed| run_out(name, contact, seed))
                .collect::<Result<Vec<f64>, Failure>>()?;
            rows.push(Row::of(contact, &angles));
            if args.json {
                rows[rows.len() - 1].tell(name);
            } else {
                talk(&rows[rows.len() - 1].line(name));
            }
        }
        if !args.json {
            out(&table(name, &rows));
        }
    }
    Ok(())
}

/// A contact, and the angle that it gives.
struct Row {
    friction: f64,
    rolling: f64,
    angle: f64,
    scatter: f64,
}

impl Row {
    fn of((friction, rolling): (f64, f64), angles: &[f64]) -> Self {
        let count = angles.len() as f64;
        let angle = angles.iter().sum::<f64>() / count;
        let squares = angles.iter().map(|one| (one - angle).powi(2)).sum::<f64>();
        Self {
            friction,
            rolling,
            angle,
            scatter: (squares / (count - 1.0).max(1.0)).sqrt(),
        }
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name:12} friction {:<5} rolling {:<5} angle {:5.1} ± {:.1} deg",
            self.friction, self.rolling, self.angle, self.scatter
        )
    }

    fn tell(&self, name: &str) {
        let line = json!({
            "shape": name, "friction": self.friction, "rolling_friction": self.rolling,
            "repose_angle_deg": self.angle, "scatter_deg": self.scatter,
        });
        out(&line.to_string());
    }
}

/// Rows as the table that scenes are read with.
fn table(name: &str, rows: &[Row]) -> String {
    let list = |part: fn(&Row) -> f64, digits: usize| {
        let numbers = rows.iter().map(|row| format!("{:.digits$}", part(row)));
        format!("[{}]", numbers.collect::<Vec<_>>().join(", "))
    };
    format!(
        "[{name}]\nfriction = {}\nrolling  = {}\nangle    = {}\n",
        list(|row| row.friction, 2),
        list(|row| row.rolling, 2),
        list(|row| row.angle, 1)
    )
}

/// The bed of a shape of grains.
struct Bed {
    /// Edge of the cube that a grain has to itself where it lies [m].
    cell: f64,
    length: f64,
    thickness: f64,
}

impl Bed {
    fn of(shape: &GrainShape) -> Self {
        let part = shape.solid().volume / 8.0 * MEAN_CUBE / PACKED;
        let cell = part.cbrt() * SIZE;
        // Whole grains of the lattice that they begin in, and a little room.
        let whole = |cells: f64| (cells * cell / SIZE).round() * SIZE + 0.01 * SIZE;
        Self {
            cell,
            length: whole(LENGTH),
            thickness: whole(THICKNESS),
        }
    }

    /// What differs from the scene as it is written.
    fn overrides(&self) -> [String; 6] {
        let (x, z) = (self.length, self.thickness);
        // They begin on a lattice, looser than they will lie.
        let y = HEIGHT * self.cell * (SIZE / self.cell).powi(3);
        [
            format!("fill.0.shape.box.size=[{x}, {y}, {z}]"),
            format!(
                "fill.0.shape.box.at=[{}, {}, {}]",
                x / 2.0,
                y / 2.0,
                z / 2.0
            ),
            format!("body.0.shape.box.size=[{}, 0.1, 0.4]", x + 0.1),
            format!("body.0.shape.box.at=[{}, -0.05, 0]", (x - 0.1) / 2.0),
            format!("body.3.shape.plane.at=[0, 0, {z}]"),
            format!("body.{GATE}.shape.plane.at=[{x}, 0, 0]"),
        ]
    }

    /// The slope [degrees] of what lies on the floor, by the highest grains in each bin.
    fn slope(&self, particles: &Particles) -> Option<f64> {
        let mut tops: Vec<[f32; BINS_ACROSS]> = Vec::new();
        let width = self.thickness / BINS_ACROSS as f64;
        for place in particles.position.iter().filter(|place| place.y > 0.0) {
            let bin = |at: f32, width: f64| (f64::from(at) / width).max(0.0) as usize;
            let along = bin(place.x, self.cell);
            tops.resize(tops.len().max(along + 1), [0.0; BINS_ACROSS]);
            let top = &mut tops[along][bin(place.z, width).min(BINS_ACROSS - 1)];
            *top = top.max(place.y);
        }
        let heights: Vec<f64> = tops.iter().map(mean_height).collect();
        let highest = heights.iter().copied().fold(0.0, f64::max);
        let flank: Vec<[f64; 2]> = (0..)
            .map(|bin| f64::from(bin) * self.cell)
            .zip(heights)
            .filter(|(_, height)| (FLANK.0 * highest..FLANK.1 * highest).contains(height))
            .map(|(x, y)| [x, y])
            .collect();
        let (_, rise) = line(&flank)?;
        Some((-rise).atan().to_degrees())
    }
}

/// Lets a bed run out; returns the slope of what stays [degrees].
fn run_out(name: &str, contact: (f64, f64), seed: u32) -> Result<f64, Failure> {
    let named = NAMED.iter().find(|(known, _)| *known == name);
    let (_, shape) =
        named.ok_or_else(|| Failure::Input(format!("there is no grain \"{name}\"")))?;
    let bed = Bed::of(shape);
    let mut overrides = vec![
        format!("materials.grain.grain.shape={name}"),
        format!("materials.grain.grain.friction={}", contact.0),
        format!("materials.grain.grain.rolling_friction={}", contact.1),
        format!("seed={seed}"),
    ];
    overrides.extend(bed.overrides());
    let mut scene =
        scene::parse(SLOPE, Path::new("slope.toml"), &overrides).map_err(Failure::Scene)?;
    let columns = barchan_solvers::solver(&scene).columns();
    let mut state = start(&scene.model, scene.fps, columns).map_err(Failure::input)?;
    let settled = (SETTLE * scene.fps).round() as u32;
    go_on(&scene, &mut state, settled, 0.0)?;
    open(&bed, &mut scene, &mut state);
    go_on(&scene, &mut state, scene.frames, AWAKE)?;
    let fell = state.particles.position.iter().map(|place| place.y > 0.0);
    let stays: Vec<bool> = fell.collect();
    state.particles.retain(&stays);
    let slope = bed.slope(&state.particles);
    slope.ok_or_else(|| Failure::Run(format!("{name}: nothing stays")))
}

/// Takes away the gate, and what is above the cut.
fn open(bed: &Bed, scene: &mut Scene, state: &mut State) {
    let places = state.particles.position.iter();
    let end = bed.length as f32;
    let below: Vec<bool> = places
        .map(|place| place.y < CUT * (end - place.x))
        .collect();
    state.particles.retain(&below);
    let pose = Pose::new(Vec3::X * AWAY, Quat::IDENTITY);
    let gate = Shape::HalfSpace {
        normal: Vec3::NEG_X,
    };
    scene.model.bodies[GATE].form = Form::Static(Arc::new(gate.placed(pose, 1.0)));
    // They are placed anew with the next step.
    state.solids = Solids::default();
}

/// Goes on until frame `last`, or until no more than this part of the grains is awake.
fn go_on(scene: &Scene, state: &mut State, last: u32, least: f64) -> Result<(), Failure> {
    let mut solver = barchan_solvers::solver(scene);
    let mut run = Run {
        model: &scene.model,
        solver: &mut *solver,
        coupling: &mut *coupling(&scene.model),
        max_step: scene.max_step,
        stop: &AtomicBool::new(false),
    };
    let mut awake = Awake(1.0);
    while awake.0 > least && state.clock.frame < last {
        run.until(state.clock.frame + 1, state, &mut awake)
            .map_err(Failure::run)?;
    }
    Ok(())
}

/// Mean height of a row's bins [m], those without grains left out; none where most are empty.
fn mean_height(tops: &[f32; BINS_ACROSS]) -> f64 {
    let filled = tops.iter().filter(|top| **top > 0.0).count();
    match 2 * filled >= BINS_ACROSS {
        true => f64::from(tops.iter().sum::<f32>()) / filled as f64,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_cut_at_thirty_degrees_has_that_slope() {
        let bed = Bed::of(&GrainShape::ball());
        let (length, thickness) = (bed.length as f32, bed.thickness as f32);
        let fall = 30f32.to_radians().tan();
        let counts = [64, 64, 24];
        let all = (0..counts.iter().product::<i32>())
            .map(|i| [i % 64, i / 64 % 64, i / 64 / 64].map(|at| (at as f32 + 0.5) / 64.0));
        let places: Vec<Vec3> = all
            .map(|at| Vec3::from(at) * Vec3::new(length, length, thickness * 64.0 / 24.0))
            .filter(|place| place.y < fall * (length - place.x))
            .collect();
        let mut particles = Particles::default();
        particles.resize(places.len());
        particles.position = places;
        let found = bed.slope(&particles).expect("a slope");
        assert!((found - 30.0).abs() < 0.7, "{found}");
    }
}
