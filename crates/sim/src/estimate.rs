//! What a scene will cost, before anything runs.

use crate::scene::{DetailStorage, Scene};
use crate::solver::Cost;
use crate::state::Particles;
use serde::Serialize;

/// Particles, memory, time and disk of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Particles at the start.
    pub particles_at_start: f64,
    /// Particles at the end, if no sink removes any.
    pub particles_at_end: f64,
    /// Memory [bytes].
    pub memory_bytes: f64,
    /// Wall time [s].
    pub seconds: f64,
    /// Disk, frames, checkpoints and the report [bytes].
    pub disk_bytes: f64,
    /// Steps in all.
    pub steps: f64,
}

/// Bytes that a run holds apart from its particles.
const FIXED_MEMORY: f64 = 50e6;
/// Bytes in memory for each fine grain.
const GRAIN_MEMORY: f64 = 100.0;
/// Bytes on disk for each fine grain, in full and in compact frames.
const GRAIN_DISK: [f64; 2] = [62.0, 9.7];

/// Bytes of a step's line in the report.
const REPORT_LINE: f64 = 280.0;

/// Estimates a run of `scene` with a solver of this `cost` on so many `threads`.
pub fn estimate(scene: &Scene, cost: Cost, extra_bytes: usize, threads: usize) -> Estimate {
    let model = &scene.model;
    let duration = f64::from(scene.frames) / scene.fps;
    // Not `sum`: without terms that is minus zero, and would be shown so.
    let at_start = model
        .fills
        .iter()
        .map(|fill| fill.shape.estimate_volume() / model.particle_volume())
        .fold(0.0, |sum, count| sum + count);
    let arriving = model
        .emitters
        .iter()
        .map(|emitter| emitter.rate * emitter.active.elapsed(duration))
        .fold(0.0, |sum, count| sum + count);
    let at_end = at_start + arriving;
    let mean = at_start + 0.5 * arriving;
    let steps = (duration * cost.steps_per_second.max(1.0 / scene.max_step))
        .max(f64::from(scene.frames))
        .ceil();
    let row: usize = Particles::COLUMNS
        .iter()
        .map(|column| column.kind.size())
        .sum::<usize>()
        + extra_bytes;
    let (grains, kept) = scene.detail.as_ref().map_or((0.0, 0.0), |detail| {
        let kept = match detail.storage {
            DetailStorage::Full => GRAIN_DISK[0],
            DetailStorage::Compact => GRAIN_DISK[1],
        };
        (detail.grains_per_particle.0 as f64, kept)
    });
    let particles = at_end * cost.bytes_per_particle;
    Estimate {
        particles_at_start: at_start.round(),
        particles_at_end: at_end.round(),
        // Grains are made when the run is done.
        memory_bytes: FIXED_MEMORY + particles.max(at_end * grains * GRAIN_MEMORY),
        seconds: mean * steps * cost.seconds_per_particle_step / threads as f64,
        disk_bytes: (f64::from(scene.frames) + 1.0) * mean * (row as f64 + grains * kept)
            + 2.0 * at_end * row as f64
            + steps * REPORT_LINE,
        steps,
    }
}
