//! `barchan bench io`: frames written and read, by each compression.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::say::{bytes, grouped};
use barchan_base::random::Random;
use barchan_out::cache::{FrameMeta, read_frame, write_frame};
use barchan_sim::atomic;
use barchan_sim::scene::Compression;
use barchan_sim::state::Particles;
use glam::Vec3;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Particles, if nobody says.
pub const PARTICLES: u64 = 1_000_000;

/// Runs `bench io` in `folder`, or in the system's folder for temporary files; the headline, plain frames, comes last.
pub fn bench(
    particles: u64,
    folder: Option<&Path>,
    cases: Cases,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("barchan-bench-{}.arrow", std::process::id()));
    let particles = bed(particles);
    let all = [
        ("io, zstd", Compression::Zstd),
        ("io, lz4", Compression::Lz4),
        ("io", Compression::None),
    ];
    let chosen = match cases {
        Cases::All => &all[..],
        Cases::Headline => &all[2..],
    };
    let result = std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::Run(format!("cannot create {}: {error}", folder.display())))
        .and_then(|()| {
            chosen.iter().try_for_each(|case| {
                measure(*case, &particles, &path)?; // warm up
                ledger.measure(|| measure(*case, &particles, &path))
            })
        });
    // It may not be there if nothing could be written.
    let _ = std::fs::remove_file(&path);
    result
}

/// Particles in a heap that slides: places and velocities as real ones have them, neither all alike nor mere noise.
fn bed(count: u64) -> Particles {
    let edge = (count as f64).cbrt().ceil().max(1.0) as u64;
    let random = Random::new(1, 0);
    let mut particles = Particles::default();
    particles.resize(count as usize);
    for i in 0..count {
        let corner = [i % edge, i / edge / edge, i / edge % edge].map(|n| n as f32);
        let place = (Vec3::from_array(corner) + random.in_cube(i, 0)) * 0.005;
        let (i, id) = (i as usize, i);
        particles.id[i] = id;
        particles.position[i] = place;
        particles.velocity[i] =
            Vec3::new(place.y, -0.3 * place.y, 0.0) + 0.01 * random.in_cube(id, 1);
    }
    particles.radius.fill(0.0025);
    particles.mass.fill(2e-4);
    particles
}

fn measure(
    (name, compression): (&str, Compression),
    particles: &Particles,
    path: &Path,
) -> Result<Finding, Failure> {
    let meta = FrameMeta {
        frame: 0,
        time: 0.0,
        fps: 24.0,
        scene: "bench".into(),
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -9.81, 0.0),
        materials: vec!["sand".into()],
        bodies: Vec::new(),
    };
    let began = Instant::now();
    atomic::write(path, |file| {
        write_frame(file, &meta, particles, compression)
    })
    .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
    let write_seconds = began.elapsed().as_secs_f64();
    read_frame(path).map_err(Failure::run)?;
    let seconds = began.elapsed().as_secs_f64();
    let read_seconds = seconds - write_seconds;
    let size = std::fs::metadata(path).map_or(0, |about| about.len()) as f64;
    let raw: usize = particles.raw().iter().map(|(_, bytes)| bytes.len()).sum();
    let (raw, count) = (raw as f64, particles.len() as f64);
    let rate = 2.0 * raw / seconds;
    Ok(Finding {
        seconds,
        done: (count, "particle"),
        bytes: 2.0 * raw,
        line: json!({
            "name": name, "particles": particles.len(), "bytes_per_second": rate,
            "write_bytes_per_second": raw / write_seconds, "read_bytes_per_second": raw / read_seconds,
            "write_seconds": write_seconds, "read_seconds": read_seconds, "bytes_per_particle": size / count,
        }),
        text: format!(
            "{name:10} {} particles  {} a particle  written at {}/s  read at {}/s",
            grouped(count),
            bytes(size / count),
            bytes(raw / write_seconds),
            bytes(raw / read_seconds)
        ),
    })
}
