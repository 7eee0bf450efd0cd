//! `barchan bench surface`: the column of Zhu & Bridson (2005) wrapped in a surface, each style in turn, and beside splashsurf where it
//! is there.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::{peak_memory, processor_time};
use crate::command::say::{bytes, grouped};
use barchan_base::column::as_bytes;
use barchan_base::random::Random;
use barchan_out::surface::{Points, Settings, Style, build};
use glam::Vec3;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Particles of the column in the paper.
pub const PARTICLES: u64 = 433_479;
/// Cells of the paper's simulation grid, and particles in each.
const GRID: [f64; 3] = [100.0, 60.0, 60.0];
const PER_CELL: f64 = 8.0;
/// Cells of the paper's surface grid along the longest edge.
const SURFACE_GRID: f64 = 250.0;
/// Edge of a cell of it, in cells of the simulation.
const CELL: f64 = GRID[0] / SURFACE_GRID;

/// Runs `bench surface`; the headline, the default style, comes last. `against` is a Python with splashsurf.
pub fn bench(
    particles: u64,
    against: Option<&Path>,
    cases: Cases,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    let positions = column(particles);
    // A cell of the simulation is the unit of length.
    let radius = 0.5 / PER_CELL.cbrt();
    let radii = vec![radius as f32; positions.len()];
    let velocities = vec![Vec3::ZERO; positions.len()];
    let materials = vec![0u16; positions.len()];
    let points = Points {
        positions: &positions,
        radii: &radii,
        velocities: &velocities,
        colors: &[],
        materials: &materials,
    };
    let styles = [
        (Style::Blobby, "surface, blobby"),
        (Style::Sph, "surface, sph"),
        (Style::Anisotropic, "surface, anisotropic"),
        (Style::ZhuBridson, "surface"),
    ];
    let chosen = match cases {
        Cases::All => &styles[..],
        Cases::Headline => &styles[3..],
    };
    let other = against.map(|python| splashsurf(python, &positions, radius, ledger));
    let other = other.transpose()?;
    chosen.iter().try_for_each(|(style, name)| {
        measure(name, *style, &points, other)?; // warm up
        ledger.measure(|| measure(name, *style, &points, other))
    })
}

/// Jittered particles, eight in a cell, in a column with the proportions of the paper's grid.
fn column(count: u64) -> Vec<Vec3> {
    let spacing = 1.0 / PER_CELL.cbrt();
    // As high as it takes to hold so many on two fifths of the paper's floor.
    let (wide, deep) = (GRID[0] * 0.4, GRID[2]);
    let row = (wide / spacing) as u64;
    let layer = row * (deep / spacing) as u64;
    let random = Random::new(1, 0);
    let place = |i: u64| {
        let (x, y, z) = (i % row, i / layer, i % layer / row);
        (Vec3::new(x as f32, y as f32, z as f32) + random.in_cube(i, 0)) * spacing as f32
    };
    (0..count).map(place).collect()
}

/// The same particles through splashsurf, with the same cells, reach, threads and number of runs; the median of its times.
fn splashsurf(
    python: &Path,
    positions: &[Vec3],
    radius: f64,
    ledger: &mut Ledger,
) -> Result<Times, Failure> {
    // Its kernel reaches two smoothing lengths, ours as many spacings as the settings say; a spacing is two radii.
    let smoothing_length = f64::from(Settings::default().support);
    let numbers = [radius, smoothing_length, CELL / radius].map(|number| number.to_string());
    let program = Command::new(python)
        .args(["-c", include_str!("surface.py")])
        .args(numbers)
        .arg(ledger.runs().to_string())
        .env(
            "RAYON_NUM_THREADS",
            rayon::current_num_threads().to_string(),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let output = program.and_then(|mut program| {
        // It may have ended already; how, it tells itself.
        if let Some(mut input) = program.stdin.take() {
            let _ = input.write_all(as_bytes(positions));
        }
        program.wait_with_output()
    });
    let cannot = |reason: String| {
        let advice = "it must be a Python that has numpy and pysplashsurf";
        Failure::Input(format!(
            "--against {}: {reason}; {advice}",
            python.display()
        ))
    };
    let output = output.map_err(|error| cannot(error.to_string()))?;
    if !output.status.success() {
        return Err(cannot(format!("ended with {}", output.status)));
    }
    let found: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| cannot(error.to_string()))?;
    let runs = found["runs"].as_array().cloned().unwrap_or_default();
    let mut runs = runs.iter().map(|run| {
        let [seconds, processor] = [0, 1].map(|which| run[which].as_f64());
        let (seconds, processor) = (seconds?, processor?);
        Some(Times { seconds, processor })
    });
    let (mut last, triangles) = (Vec::new(), found["triangles"].as_f64().unwrap_or(0.0));
    ledger.measure(|| {
        let next = runs.next().flatten();
        let times = next.ok_or_else(|| cannot("gave no time".into()))?;
        last.push(times);
        Ok(finding("surface, splashsurf", times, positions, triangles))
    })?;
    last.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(last[(last.len() - 1) / 2])
}

/// How long something took: on the clock, and of all processors' work, which others at work on the machine disturb less.
#[derive(Clone, Copy)]
struct Times {
    seconds: f64,
    processor: f64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} s ({:.2} s of work)", self.seconds, self.processor)
    }
}

/// What any program is told to have found.
fn finding(name: &str, times: Times, positions: &[Vec3], triangles: f64) -> Finding {
    let (particles, seconds) = (positions.len() as f64, times.seconds);
    Finding {
        seconds,
        done: (particles, "particle"),
        // Particles are read, triangles and half as many vertices written.
        bytes: size_of_val(positions) as f64 + 1.5 * triangles * size_of::<Vec3>() as f64,
        line: json!({
            "name": name, "particles": positions.len(), "processor_seconds": times.processor,
            "particles_per_second": particles / seconds, "triangles": triangles,
        }),
        text: format!(
            "{name:24} {} particles  {times}  {} triangles",
            grouped(particles),
            grouped(triangles)
        ),
    }
}

fn measure(
    name: &str,
    style: Style,
    points: &Points<'_>,
    other: Option<Times>,
) -> Result<Finding, Failure> {
    let settings = Settings {
        style,
        cell: Some(CELL),
        ..Settings::default()
    };
    let (began, idle) = (Instant::now(), processor_time());
    let surface = build(points, &settings).map_err(Failure::run)?;
    let times = Times {
        seconds: began.elapsed().as_secs_f64(),
        processor: processor_time() - idle,
    };
    let triangles = surface.mesh.triangles.len() as f64;
    let mut found = finding(name, times, points.positions, triangles);
    let memory = peak_memory().unwrap_or(0.0);
    let per_particle = memory / points.positions.len() as f64;
    found.line["blocks"] = surface.blocks.into();
    found.line["peak_memory_bytes"] = memory.into();
    found.line["bytes_per_particle"] = per_particle.into();
    found.text += &format!(
        "  {} blocks  {} at most, {} a particle",
        grouped(surface.blocks as f64),
        bytes(memory),
        bytes(per_particle)
    );
    if let Some(other) = other {
        let faster = other.seconds / times.seconds;
        let less = other.processor / times.processor;
        found.line["times_as_fast_as_splashsurf"] = faster.into();
        found.line["work_of_splashsurf_over_ours"] = less.into();
        found.text +=
            &format!("  splashsurf takes {faster:.2} times as long, {less:.2} times the work");
    }
    Ok(found)
}
