//! `barchan bench surface`: the column of Zhu & Bridson (2005) wrapped in a surface, each style in turn, and beside splashsurf where it
//! is there.

use super::Failure;
use super::bench_ledger::Ledger;
use super::machine::{peak_memory, processor_time};
use super::say::{bytes, grouped};
use barchan_base::column::as_bytes;
use barchan_base::random::Random;
use barchan_out::surface::{Points, Settings, Style, Surface, build};
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

/// The same particles through splashsurf, with the same cells, reach and threads; its best times.
fn splashsurf(
    python: &Path,
    positions: &[Vec3],
    radius: f64,
    ledger: &Ledger,
) -> Result<Times, Failure> {
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
    let [Some(seconds), Some(processor), Some(triangles)] =
        ["seconds", "processor_seconds", "triangles"].map(|name| found[name].as_f64())
    else {
        return Err(cannot("gave no time".into()));
    };
    let times = Times { seconds, processor };
    let name = "surface, splashsurf";
    let line = json!({
        "name": name, "particles": positions.len(), "seconds": seconds, "processor_seconds": processor,
        "particles_per_second": positions.len() as f64 / seconds, "triangles": triangles,
    });
    ledger.tell(line, || {
        let (particles, triangles) = (grouped(positions.len() as f64), grouped(triangles));
        format!("{name:24} {particles} particles  {times}  {triangles} triangles")
    });
    Ok(times)
}

/// How long something took: on the clock, and of all processors' work, which others at work on the machine disturb less.
#[derive(Clone, Copy)]
struct Times {
    seconds: f64,
    processor: f64,
}

impl Times {
    const NEVER: Self = Self {
        seconds: f64::INFINITY,
        processor: f64::INFINITY,
    };

    /// Does `work` and keeps the better times.
    fn better<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (began, idle) = (Instant::now(), processor_time());
        let done = work();
        self.seconds = self.seconds.min(began.elapsed().as_secs_f64());
        self.processor = self.processor.min(processor_time() - idle);
        done
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} s ({:.2} s of work)", self.seconds, self.processor)
    }
}

fn measure(
    name: &str,
    style: Style,
    points: &Points<'_>,
    other: Option<Times>,
    ledger: &Ledger,
) -> Result<(), Failure> {
    let settings = Settings {
        style,
        cell: Some(CELL),
        ..Settings::default()
    };
    let mut times = Times::NEVER;
    let mut surface = Surface::default();
    for _ in 0..REPEATS {
        surface = times
            .better(|| build(points, &settings))
            .map_err(Failure::run)?;
    }
    let (particles, triangles) = (points.positions.len(), surface.mesh.triangles.len());
    let memory = peak_memory().unwrap_or(0.0);
    let seconds = times.seconds;
    let faster = other.map(|other| other.seconds / seconds);
    let less = other.map(|other| other.processor / times.processor);
    let line = json!({
        "name": name, "particles": particles, "times_as_fast_as_splashsurf": faster, "work_of_splashsurf_over_ours": less,
        "seconds": seconds, "processor_seconds": times.processor, "particles_per_second": particles as f64 / seconds,
        "triangles": triangles, "blocks": surface.blocks, "peak_memory_bytes": memory,
    });
    let compared = faster.zip(less).map_or(String::new(), |(faster, less)| {
        format!("  splashsurf takes {faster:.2} times as long, {less:.2} times the work")
    });
    ledger.tell(line, || {
        format!(
            "{name:24} {} particles  {times}  {} triangles  {} blocks  {} at most{}",
            grouped(particles as f64),
            grouped(triangles as f64),
            grouped(surface.blocks as f64),
            bytes(memory),
            compared
        )
    });
    Ok(())
}
