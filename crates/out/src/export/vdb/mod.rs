//! OpenVDB volumes (.vdb), a file a frame: `distance`, `density` and `velocity` of particles, `distance` of meshes.
//!
//! Voxels are as wide as two radii for particles, as a mean edge for meshes. Leaves are made when they are written, and never
//! all at once.

mod file;
mod particles;
mod surface;
mod tree;

use super::snapshot::{Content, Snapshot};
use crate::surface::SurfaceMesh;
use barchan_base::column::as_bytes;
use barchan_sim::state::Particles;
use file::Metadata;
use particles::{BAND, CLOSING};
use std::io::{self, Seek, Write};
use tree::Bins;
use xxhash_rust::xxh3::xxh3_128;

/// The mean radius doubled; 1 where there is nothing to measure.
fn voxel_of_particles(particles: &Particles) -> f32 {
    let sum: f64 = particles.radius.iter().map(|&r| f64::from(r)).sum();
    let voxel = (2.0 * sum / particles.len().max(1) as f64) as f32;
    if voxel > 0.0 { voxel } else { 1.0 }
}

fn voxel_of_mesh(mesh: &SurfaceMesh) -> f32 {
    let edge = |[a, b, _]: &[u32; 3]| {
        f64::from(mesh.positions[*a as usize].distance(mesh.positions[*b as usize]))
    };
    let sum: f64 = mesh.triangles.iter().map(edge).sum();
    let voxel = (sum / mesh.triangles.len().max(1) as f64) as f32;
    if voxel > 0.0 { voxel } else { 1.0 }
}

pub(super) fn write(to: &mut (impl Write + Seek), snapshot: &Snapshot) -> io::Result<()> {
    let meta = &snapshot.meta;
    let about: [Metadata; 4] = [
        ("creator", "string", "Barchan".into()),
        ("frame", "int32", meta.frame.to_le_bytes().into()),
        ("scene", "string", meta.scene.clone().into_bytes()),
        ("time", "double", meta.time.to_le_bytes().into()),
    ];
    let uuid = xxh3_128(as_bytes(snapshot.positions()));
    match &snapshot.content {
        Content::Particles(particles) => {
            file::header(to, uuid, &about, 3)?;
            write_particles(to, particles)
        }
        Content::Mesh(mesh) => {
            file::header(to, uuid, &about, 1)?;
            write_mesh(to, mesh)
        }
    }
}

fn write_particles(to: &mut (impl Write + Seek), particles: &Particles) -> io::Result<()> {
    let voxel = voxel_of_particles(particles);
    let reach = |i: usize| {
        let place = particles.position[i] / voxel;
        let reach = CLOSING * particles.radius[i] / voxel + BAND;
        (place - reach, place + reach)
    };
    let bins = Bins::new(particles.len(), reach).map_err(io::Error::other)?;
    let edge = f64::from(voxel);
    file::grid(to, &particles::Distance { particles, voxel }, &bins, edge)?;
    file::grid(to, &particles::Density { particles, voxel }, &bins, edge)?;
    file::grid(to, &particles::Velocity { particles, voxel }, &bins, edge)
}

fn write_mesh(to: &mut (impl Write + Seek), mesh: &SurfaceMesh) -> io::Result<()> {
    let voxel = voxel_of_mesh(mesh);
    let field = surface::Distance::new(mesh, voxel);
    let reach = |i: usize| {
        let [a, b, c] = field.corners(i);
        (a.min(b).min(c) - BAND, a.max(b).max(c) + BAND)
    };
    let bins = Bins::new(mesh.triangles.len(), reach).map_err(io::Error::other)?;
    file::grid(to, &field, &bins, f64::from(voxel))
}

#[cfg(test)]
mod tests;
