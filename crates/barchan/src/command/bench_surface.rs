//! `barchan bench surface`: the column of Zhu & Bridson (2005) wrapped in a surface, each style in turn.

use super::Failure;
use super::bench_ledger::Ledger;
use super::machine::peak_memory;
use super::say::{bytes, grouped};
use barchan_base::random::Random;
use barchan_out::surface::{Points, Settings, Style, build};
use glam::Vec3;
use serde_json::json;
use std::time::Instant;

/// Each measurement is taken this often; the best one counts.
const REPEATS: u32 = 3;
/// Cells of the paper's simulation grid, and particles in each.
const GRID: [f64; 3] = [100.0, 60.0, 60.0];
const PER_CELL: f64 = 8.0;
/// Cells of the paper's surface grid along the longest edge.
const SURFACE_GRID: f64 = 250.0;

/// Runs `bench surface`; the headline, the default style, comes last.
pub fn bench(particles: u64, ledger: &Ledger) -> Result<(), Failure> {
    let positions = column(particles);
    // A cell of the simulation is the unit of length.
    let radii = vec![0.5 / PER_CELL.cbrt() as f32; positions.len()];
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
    for (style, name) in styles {
        measure(name, style, &points, ledger)?;
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

fn measure(name: &str, style: Style, points: &Points<'_>, ledger: &Ledger) -> Result<(), Failure> {
    let settings = Settings {
        style,
        cell: Some(GRID[0] / SURFACE_GRID),
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
    let line = json!({
        "name": name, "particles": particles,
        "seconds": seconds, "particles_per_second": particles as f64 / seconds,
        "triangles": triangles, "blocks": surface.blocks, "peak_memory_bytes": memory,
    });
    ledger.tell(line, || {
        format!(
            "{name:24} {} particles  {seconds:.3} s  {} triangles  {} blocks  {} at most",
            grouped(particles as f64),
            grouped(triangles as f64),
            grouped(surface.blocks as f64),
            bytes(memory)
        )
    });
    Ok(())
}
