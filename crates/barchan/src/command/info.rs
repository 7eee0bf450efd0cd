//! `barchan info`: what is in a folder, and which presets there are.

use super::Failure;
use super::say::{bytes, grouped, out};
use barchan_out::cache::{RunFolder, read_frame};
use barchan_sim::scene::PRESETS;
use barchan_sim::solids::BodyPlace;
use std::path::{Path, PathBuf};

/// Arguments of `info`.
#[derive(clap::Args)]
pub struct InfoArgs {
    /// A run's folder, or the word "presets"
    what: PathBuf,
}

/// Runs `info`.
pub fn info(args: &InfoArgs) -> Result<(), Failure> {
    if args.what == Path::new("presets") {
        presets();
        return Ok(());
    }
    let folder = RunFolder::open(&args.what).map_err(Failure::input)?;
    let frames = folder.frames().map_err(Failure::input)?;
    out(&format!("folder       {}", folder.path().display()));
    for key in [
        "scene",
        "method",
        "status",
        "version",
        "threads",
        "seed",
        "wall_seconds",
    ] {
        if let Some(value) = folder.recorded(key) {
            out(&format!("{key:12} {value}"));
        }
    }
    let size: u64 = frames
        .iter()
        .filter_map(|frame| folder.frame_path(*frame).metadata().ok())
        .map(|m| m.len())
        .sum();
    if let (Some(first), Some(last)) = (frames.first(), frames.last()) {
        let frame = read_frame(&folder.frame_path(*last)).map_err(Failure::input)?;
        out(&format!(
            "frames       {first} to {last}, {} on disk, {}",
            frames.len(),
            bytes(size as f64)
        ));
        out(&format!(
            "time         {:.4} s at {} frames a second",
            frame.meta.time, frame.meta.fps
        ));
        out(&format!(
            "particles    {}",
            grouped(frame.particles.len() as f64)
        ));
        out(&format!("materials    {}", frame.meta.materials.join(", ")));
        for body in &frame.meta.bodies {
            out(&format!("body         {}", body_line(body)));
        }
    } else {
        out("frames       none");
    }
    Ok(())
}

/// A body in words: where a dynamic one's centre is and how fast, how far another one has moved.
pub fn body_line(body: &BodyPlace) -> String {
    let vector = |[x, y, z]: [f32; 3]| format!("[{x:.4}, {y:.4}, {z:.4}]");
    let more = match body.motion.as_str() {
        "dynamic" => format!(
            ", centre {} m, velocity {} m/s, spin {} rad/s",
            vector(body.center),
            vector(body.velocity),
            vector(body.spin)
        ),
        "keyframed" => format!(", moved {} m", vector(body.position)),
        _ => String::new(),
    };
    format!("{}, {}{more}", body.name, body.motion)
}

fn presets() {
    for (name, preset) in PRESETS.iter() {
        out(name);
        let rows = [
            (
                "density",
                preset.density.value.si,
                "kg/m3",
                &preset.density.source,
            ),
            (
                "grain_density",
                preset.grain_density.value.si,
                "kg/m3",
                &preset.grain_density.source,
            ),
            (
                "grain_size",
                preset.grain_size.value.si * 1e3,
                "mm",
                &preset.grain_size.source,
            ),
            (
                "friction_angle",
                preset.friction_angle.value.si.to_degrees(),
                "deg",
                &preset.friction_angle.source,
            ),
            (
                "cohesion",
                preset.cohesion.value.si,
                "Pa",
                &preset.cohesion.source,
            ),
            (
                "restitution",
                preset.restitution.value.si,
                "",
                &preset.restitution.source,
            ),
        ];
        for (key, value, unit, source) in rows {
            let rounded = (value * 1e6).round() / 1e6;
            out(&format!(
                "  {key:14} {:>14}  {}",
                format!("{rounded} {unit}"),
                source.value
            ));
        }
    }
}
