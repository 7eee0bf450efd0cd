//! `barchan calibrate`: which contacts between grains give which angle of repose, found by pouring piles.

use super::say::{out, talk};
use super::{Failure, start_threads};
use barchan_out::cache::{Frame, FrameMeta};
use barchan_out::stats::fit_pile;
use barchan_sim::coupling::coupling;
use barchan_sim::grain::NAMED;
use barchan_sim::run::{RecordError, Recorder, Run, StepLine};
use barchan_sim::scene;
use barchan_sim::start::start;
use barchan_sim::state::State;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Arguments of `calibrate`.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Shapes of grains [default: all that have a name]
    #[arg(long = "shape", value_name = "NAME")]
    shapes: Vec<String>,
    /// Coefficients of friction to try
    #[arg(long, value_delimiter = ',', default_values_t = [0.1, 0.2, 0.35, 0.6, 1.0])]
    friction: Vec<f64>,
    /// Coefficients of rolling resistance to try with the last of them; balls need it for steep piles
    #[arg(long, value_delimiter = ',')]
    rolling: Vec<f64>,
    /// Piles to take the mean of
    #[arg(long, default_value_t = 3)]
    seeds: u32,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The pile that is poured.
const PILE: &str = include_str!("pile.toml");

/// Keeps nothing of a run.
struct Nothing;

impl Recorder for Nothing {
    fn step(&mut self, _: StepLine) -> Result<(), RecordError> {
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
    if let Some(unknown) = args
        .shapes
        .iter()
        .find(|shape| !names.contains(&shape.as_str()))
    {
        let message = format!(
            "there is no grain \"{unknown}\"; possible: {}",
            names.join(", ")
        );
        return Err(Failure::Input(message));
    }
    if args.seeds == 0 || args.friction.is_empty() {
        return Err(Failure::Input(
            "--seeds and --friction must not be empty".into(),
        ));
    }
    let wanted = |name: &&str| args.shapes.is_empty() || args.shapes.iter().any(|s| s == name);
    let last = args.friction.last().copied().unwrap_or(1.0);
    let plain = args.friction.iter().map(|friction| (*friction, 0.0));
    let contacts: Vec<(f64, f64)> = plain
        .chain(args.rolling.iter().map(|rolling| (last, *rolling)))
        .collect();
    for name in names.iter().filter(|name| wanted(name)) {
        for (friction, rolling) in &contacts {
            let angles = (0..args.seeds)
                .map(|seed| pour(name, *friction, *rolling, seed))
                .collect::<Result<Vec<f64>, Failure>>()?;
            tell(name, (*friction, *rolling), &angles, args.json);
        }
    }
    talk("put the friction that gives the wanted angle into materials.NAME.grain.friction");
    Ok(())
}

fn tell(name: &str, (friction, rolling): (f64, f64), angles: &[f64], as_json: bool) {
    let count = angles.len() as f64;
    let mean = angles.iter().sum::<f64>() / count;
    let square = angles
        .iter()
        .map(|angle| (angle - mean).powi(2))
        .sum::<f64>();
    let scatter = (square / (count - 1.0).max(1.0)).sqrt();
    if as_json {
        let line = json!({
            "shape": name, "friction": friction, "rolling_friction": rolling,
            "repose_angle_deg": mean, "scatter_deg": scatter, "piles": angles.len(),
        });
        out(&line.to_string());
    } else {
        out(&format!(
            "{name:12} friction {friction:<5} rolling {rolling:<5} angle {mean:5.1} ± {scatter:.1} deg"
        ));
    }
}

/// Pours a pile; returns its slope [degrees].
fn pour(shape: &str, friction: f64, rolling: f64, seed: u32) -> Result<f64, Failure> {
    let overrides = [
        format!("materials.grain.grain.shape={shape}"),
        format!("materials.grain.grain.friction={friction}"),
        format!("materials.grain.grain.rolling_friction={rolling}"),
        format!("seed={seed}"),
    ];
    let scene = scene::parse(PILE, Path::new("pile.toml"), &overrides).map_err(Failure::Scene)?;
    let mut solver = barchan_solvers::solver(&scene);
    let mut state = start(&scene.model, scene.fps, solver.columns()).map_err(Failure::input)?;
    let mut run = Run {
        model: &scene.model,
        solver: &mut *solver,
        coupling: &mut *coupling(&scene.model),
        max_step: scene.max_step,
        stop: &AtomicBool::new(false),
    };
    run.until(scene.frames, &mut state, &mut Nothing)
        .map_err(Failure::run)?;
    let frame = Frame {
        meta: FrameMeta::of(&scene, scene.frames),
        particles: state.particles,
    };
    let pile = fit_pile(&frame);
    let pile = pile.ok_or_else(|| Failure::Run(format!("{shape}: no pile stands")))?;
    Ok(pile.repose_angle_deg)
}
