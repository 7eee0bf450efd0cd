//! `barchan bench correction`: a volume of 1000³ cells, whose surface of a million faces is meshed and whose grains are spread.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::peak_memory;
use crate::command::say::grouped;
use barchan_base::random::Random;
use barchan_base::spread::{Bound, Faces, Lattice, Net, STEEPEST, Settings, spread};
use glam::{IVec3, Vec2, Vec3};
use serde_json::json;
use std::time::Instant;

/// Cells of the volume along each axis.
const CELLS: i32 = 1000;
/// The thesis has 10,000 grains; the headline has this many.
const FEW: u64 = 10_000;
const MANY: u64 = 10_000_000;
/// Grains a face, as in the thesis.
const PER_FACE: f32 = 20.0;
/// How uneven random grains are laid: densities from one minus to one plus this times the mean.
const UNEVEN: f32 = 0.8;

/// Runs `bench correction`; the headline, 10 million grains, comes last.
pub fn bench(particles: Option<u64>, cases: Cases, ledger: &mut Ledger) -> Result<(), Failure> {
    let heights = heights();
    if cases == Cases::All {
        let clusters = grains(particles.unwrap_or(FEW), true);
        ledger.measure(|| measure("correction, clusters", &heights, &clusters))?;
    }
    let random = grains(particles.unwrap_or(MANY), false);
    ledger.measure(|| measure("correction, random", &heights, &random))
}

fn measure(name: &str, heights: &[f32], places: &[Vec3]) -> Result<Finding, Failure> {
    let mut grains = places.to_vec();
    let began = Instant::now();
    let faces = mesh(heights)?;
    let meshed = began.elapsed().as_secs_f64();
    let settings = Settings {
        bound: Bound::PerFace(PER_FACE),
        ..Settings::default()
    };
    let report = spread(&faces, &mut grains, &settings).map_err(Failure::run)?;
    let seconds = began.elapsed().as_secs_f64();
    let count = grains.len() as f64;
    Ok(Finding {
        seconds,
        done: (count, "grain"),
        bytes: 2.0 * size_of_val(places) as f64,
        line: json!({
            "name": name, "faces": faces.len(), "grains": grains.len(), "mesh_seconds": meshed,
            "passes": report.passes, "iterations": report.iterations, "moved": report.moved,
            "most_before": report.before.most, "most_after": report.after.most,
            "excess_before": report.before.excess, "excess_after": report.after.excess,
            "peak_memory_bytes": peak_memory().unwrap_or(0.0),
        }),
        text: format!(
            "{name:20} {} grains on {} faces  {seconds:.2} s ({meshed:.2} s the mesh)  {} passes  {:.2} to {:.2} times the bound",
            grouped(count),
            grouped(faces.len() as f64),
            report.passes,
            report.before.most,
            report.after.most
        ),
    })
}

/// A gently rolling surface.
fn height(at: Vec2) -> f32 {
    let part = at / CELLS as f32;
    let rolling = (9.0 * part.x).sin() * (7.0 * part.y).cos();
    CELLS as f32 * (0.5 + 0.015 * rolling + 0.005 * (23.0 * part.x + 19.0 * part.y).sin())
}

fn heights() -> Vec<f32> {
    let place = |i: i32| {
        height(Vec2::new(
            (i % (CELLS + 1)) as f32,
            (i / (CELLS + 1)) as f32,
        ))
    };
    (0..(CELLS + 1) * (CELLS + 1)).map(place).collect()
}

fn mesh(heights: &[f32]) -> Result<Faces, Failure> {
    let lattice = Lattice {
        origin: Vec3::ZERO,
        cell: 1.0,
        nodes: IVec3::splat(CELLS + 1),
    };
    // No steeper than 30°: this never overestimates the distance.
    let net = Net::new(&lattice, |node| {
        0.86 * (node.y as f32 - heights[(node.x + (CELLS + 1) * node.z) as usize])
    });
    Faces::new(Vec3::Y, &net.vertices, &net.corners, STEEPEST).map_err(Failure::run)
}

/// Grains on the surface: in nine tight clusters, or everywhere, denser here and sparser there.
fn grains(count: u64, clusters: bool) -> Vec<Vec3> {
    let random = Random::new(2, 0);
    let side = CELLS as f32;
    let place = |i: u64| {
        let pair = |lane: u32| Vec2::new(random.uniform(i, lane), random.uniform(i, lane + 1));
        let at = if clusters {
            let cluster = Vec2::new((i % 3) as f32 + 0.5, (i / 3 % 3) as f32 + 0.5);
            cluster * (side / 3.0) + 2.0 * pair(0)
        } else {
            // Drawn again until it is kept: more often where grains are to be dense.
            let wave = |at: Vec2| (40.0 * at.x).sin() * (40.0 * at.y).sin();
            let kept = |lane: &u32| {
                let chance = 0.5 * (1.0 + UNEVEN * wave(pair(*lane)));
                random.uniform(i, lane + 2) < chance
            };
            let lane = (0..60).step_by(3).find(kept).unwrap_or(0);
            (pair(lane) * 0.98 + 0.01) * side
        };
        Vec3::new(at.x, height(at) + 0.1, at.y)
    };
    (0..count).map(place).collect()
}
