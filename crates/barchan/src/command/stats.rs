//! `barchan stats`: figures about each frame.

use super::info::body_line;
use super::say::{grouped, out};
use super::{Failure, FramesArg};
use barchan_out::cache::{Frame, RunFolder};
use barchan_out::stats::{FrameStats, fit_pile, frame_stats};
use std::path::PathBuf;

/// Arguments of `stats`.
#[derive(clap::Args)]
pub struct StatsArgs {
    /// The run's folder
    folder: PathBuf,
    /// Print one JSON object a frame
    #[arg(long)]
    json: bool,
    /// Add the slope, height and reach of a pile
    #[arg(long)]
    pile: bool,
    /// Only particles of this material
    #[arg(long, value_name = "NAME")]
    material: Option<String>,
    #[command(flatten)]
    frames: FramesArg,
}

/// Runs `stats`.
pub fn stats(args: &StatsArgs) -> Result<(), Failure> {
    let folder = RunFolder::open(&args.folder).map_err(Failure::input)?;
    let frames = chosen(&folder, &args.frames)?;
    if !args.json {
        out(&heading(args.pile));
    }
    let mut broken = Vec::new();
    for number in frames {
        let mut frame = match folder.read_frame(number) {
            Ok(frame) => frame,
            Err(error) => {
                // The other frames are still worth telling about.
                broken.push(error.to_string());
                continue;
            }
        };
        if let Some(material) = &args.material {
            keep_material(&mut frame, material)?;
        }
        let mut stats = frame_stats(&frame);
        if args.pile {
            stats.pile = fit_pile(&frame);
        }
        if args.json {
            out(&serde_json::to_string(&stats).expect("figures are JSON"));
        } else {
            out(&row(&stats));
            for body in &stats.bodies {
                out(&format!("{:15} {}", "", body_line(body)));
            }
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(broken.join("\n")))
    }
}

/// Leaves out the particles of all other materials.
fn keep_material(frame: &mut Frame, name: &str) -> Result<(), Failure> {
    let materials = &frame.meta.materials;
    let Some(wanted) = materials.iter().position(|material| material == name) else {
        return Err(Failure::Input(format!(
            "no material \"{name}\" in this run; it has {}",
            materials.join(", ")
        )));
    };
    let of = |material: &u16| usize::from(*material) == wanted;
    let keep: Vec<bool> = frame.particles.material.iter().map(of).collect();
    frame.particles.retain(&keep);
    Ok(())
}

/// The frames of a run that were asked for.
pub fn chosen(folder: &RunFolder, frames: &FramesArg) -> Result<Vec<u32>, Failure> {
    let all = folder.frames().map_err(Failure::input)?;
    let wanted: Vec<u32> = all
        .iter()
        .copied()
        .filter(|frame| frames.frames.is_none_or(|range| range.contains(*frame)))
        .collect();
    if wanted.is_empty() {
        let there = match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("frames {first} to {last} are there"),
            _ => "there are none yet".into(),
        };
        return Err(Failure::Input(format!(
            "no such frames in {}; {there}",
            folder.path().display()
        )));
    }
    Ok(wanted)
}

fn heading(pile: bool) -> String {
    let pile = if pile {
        "  angle deg  height m  reach m"
    } else {
        ""
    };
    format!(
        " frame   time s   particles     mass kg   kinetic J   max m/s  centre of mass m{}{pile}",
        " ".repeat(11)
    )
}

fn row(stats: &FrameStats) -> String {
    let [x, y, z] = stats.center_of_mass;
    let pile = stats.pile.map_or(String::new(), |pile| {
        format!(
            "  {:9.2}  {:8.4}  {:7.4}",
            pile.repose_angle_deg, pile.pile_height, pile.runout_radius
        )
    });
    format!(
        "{:6} {:8.4} {:>11} {:11.4} {:11.4e} {:9.4}  {:8.4} {:8.4} {:8.4}{pile}",
        stats.frame,
        stats.time,
        grouped(stats.particles as f64),
        stats.mass,
        stats.kinetic_energy,
        stats.max_speed,
        x,
        y,
        z
    )
}
