//! `barchan bench surface`: the column of Zhu & Bridson (2005) wrapped in a surface, each style in turn, and beside splashsurf where it
//! is there.

use super::Failure;
use super::bench_ledger::Ledger;
use super::machine::peak_memory;
use super::say::{bytes, grouped};
use barchan_base::column::as_bytes;
use barchan_base::random::Random;
use barchan_out::surface::{Points, Settings, Style, build};
use glam::Vec3;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Each measurement is taken this often; the best one counts.
const REPEATS: u32 = 3;
/// Cells of the paper's simulation grid, and particles in each.
const GRID: [f64; 3] = [100.0, 60.0, 60.0];
const PER_CELL: f64 = 8.0;
/// Cells of the paper's surface grid along the longest edge.
const SURFACE_GRID: f64 = 250.0;
/// Edge of a cell of it, in cells of the simulation.
const CELL: f64 = GRID[0] / SURFACE_GRID;

/// Runs `bench surface`; the headline, the default style, comes last. `against` is a Python with splashsurf.
pub fn bench(particles: u64, against: Option<&Path>, ledger: &Ledger) -> Result<(), Failure> {
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
    let other = against.map(|python| splashsurf(python, &positions, radius, ledger));
    let other = other.transpose()?;
    for (style, name) in styles {
        measure(name, style, &points, other, ledger)?;
    }
    Ok(())
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

/// The same particles through splashsurf, with the same cells, reach and threads; its best time [s].
fn splashsurf(
    python: &Path,
    positions: &[Vec3],
    radius: f64,
    ledger: &Ledger,
) -> Result<f64, Failure> {
    // Its kernel reaches two smoothing lengths, ours as many spacings as the settings say; a spacing is two radii.
    let smoothing_length = f64::from(Settings::default().support);
    let numbers = [radius, smoothing_length, CELL / radius].map(|number| number.to_string());
    let program = Command::new(python)
        .args(["-c", include_str!("bench_surface.py")])
        .args(numbers)
        .arg(REPEATS.to_string())
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
    let (Some(seconds), Some(triangles)) = (found["seconds"].as_f64(), found["triangles"].as_f64())
    else {
        return Err(cannot("gave no time".into()));
    };
    let line = json!({
        "name": "surface, splashsurf", "particles": positions.len(),
        "seconds": seconds, "particles_per_second": positions.len() as f64 / seconds, "triangles": triangles,
    });
    ledger.tell(line, || {
        let particles = grouped(positions.len() as f64);
        let name = "surface, splashsurf";
        format!(
            "{name:24} {particles} particles  {seconds:.3} s  {} triangles",
            grouped(triangles)
        )
    });
    Ok(seconds)
}

fn measure(
    name: &str,
    style: Style,
    points: &Points<'_>,
    other: Option<f64>,
    ledger: &Ledger,
) -> Result<(), Failure> {
    let settings = Settings {
        style,
        cell: Some(CELL),
        ..Settings::default()
    };
    let mut seconds = f64::INFINITY;
    let mut surface = None;
    for _ in 0..REPEATS {
        let began = Instant::now();
        surface = Some(build(points, &settings).map_err(Failure::run)?);
        seconds = seconds.min(began.elapsed().as_secs_f64());
    }
    let surface = surface.unwrap_or_default();
    let (particles, triangles) = (points.positions.len(), surface.mesh.triangles.len());
    let memory = peak_memory().unwrap_or(0.0);
    let faster = other.map(|other| other / seconds);
    let line = json!({
        "name": name, "particles": particles, "times_as_fast_as_splashsurf": faster,
        "seconds": seconds, "particles_per_second": particles as f64 / seconds,
        "triangles": triangles, "blocks": surface.blocks, "peak_memory_bytes": memory,
    });
    ledger.tell(line, || {
        format!(
            "{name:24} {} particles  {seconds:.3} s  {} triangles  {} blocks  {} at most{}",
            grouped(particles as f64),
            grouped(triangles as f64),
            grouped(surface.blocks as f64),
            bytes(memory),
            faster.map_or(String::new(), |times| format!(
                "  {times:.2} times as fast as splashsurf"
            ))
        )
    });
    Ok(())
}
