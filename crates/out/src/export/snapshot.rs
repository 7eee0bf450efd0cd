//! What a file is made of: one frame's particles or its surface, checked once for all writers.

use super::{ExportError, What};
use crate::cache::{FrameMeta, RunFolder};
use crate::geometry::{Column, Geometry, one_line};
use crate::surface::SurfaceMesh;
use barchan_sim::grain::{GrainShape, balls_of};
use barchan_sim::state::Particles;
use glam::Vec3;
use std::sync::Arc;

/// One frame, ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub meta: FrameMeta,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Particles(Particles),
    Mesh(SurfaceMesh),
}

impl Snapshot {
    /// Frame `number` of `run`, with a word about what had to be left out of it.
    pub fn read(
        run: &RunFolder,
        number: u32,
        what: What,
    ) -> Result<(Self, Option<String>), ExportError> {
        let frame = run.read_frame(number)?;
        let (meta, mut particles) = (frame.meta, frame.particles);
        if what == What::Mesh {
            let mesh = super::read_mesh(run, number)?;
            check(&mesh).map_err(|reason| ExportError::Mesh {
                frame: number,
                reason,
            })?;
            let content = Content::Mesh(mesh);
            return Ok((Self { meta, content }, None));
        }
        let lost = keep_finite(&mut particles);
        let told = (lost > 0).then(|| {
            format!("frame {number}: {lost} particles without a finite place, velocity or radius are left out")
        });
        let content = Content::Particles(particles);
        Ok((Self { meta, content }, told))
    }

    /// The same with the balls that grains of these shapes are made of.
    pub fn apart(mut self, shapes: &[Arc<GrainShape>]) -> Self {
        if let Content::Particles(particles) = &mut self.content
            && let Some(balls) = balls_of(particles, shapes)
        {
            *particles = balls;
        }
        self
    }

    /// Where the points or vertices are.
    pub fn positions(&self) -> &[Vec3] {
        match &self.content {
            Content::Particles(particles) => &particles.position,
            Content::Mesh(mesh) => &mesh.positions,
        }
    }

    /// Every column but the positions.
    pub fn columns(&self) -> Vec<Column<'_>> {
        match &self.content {
            Content::Particles(particles) => particles
                .raw()
                .into_iter()
                .filter(|(spec, _)| spec.name != "position")
                .collect(),
            Content::Mesh(mesh) => mesh.columns(),
        }
    }

    /// What formats of plain points and triangles take.
    pub fn geometry(&self) -> Geometry<'_> {
        let meta = &self.meta;
        let materials = meta.materials.join(", ");
        Geometry {
            about: one_line(&format!(
                "Barchan, scene {}, {} frames a second, materials {materials}",
                meta.scene, meta.fps
            )),
            frame: meta.frame,
            time: meta.time,
            up: meta.up.normalize_or(Vec3::Y),
            positions: self.positions(),
            columns: self.columns(),
            triangles: match &self.content {
                Content::Particles(_) => None,
                Content::Mesh(mesh) => Some(&mesh.triangles),
            },
        }
    }

    /// Least and greatest corner of what is there, radii included; `None` where there is nothing.
    pub fn bounds(&self) -> Option<(Vec3, Vec3)> {
        let radius = |i: usize| match &self.content {
            Content::Particles(particles) => particles.radius[i],
            Content::Mesh(_) => 0.0,
        };
        self.positions()
            .iter()
            .enumerate()
            .map(|(i, &p)| (p - radius(i), p + radius(i)))
            .reduce(|(least, most), (a, b)| (least.min(a), most.max(b)))
    }
}

/// Takes out the particles that no program could place; how many.
fn keep_finite(particles: &mut Particles) -> usize {
    let fine = |i: usize| {
        particles.position[i].is_finite()
            && particles.velocity[i].is_finite()
            && particles.radius[i].is_finite()
    };
    let keep: Vec<bool> = (0..particles.len()).map(fine).collect();
    let lost = keep.iter().filter(|keep| !**keep).count();
    if lost > 0 {
        particles.retain(&keep);
    }
    lost
}

/// Refuses a mesh that writers could stumble over.
fn check(mesh: &SurfaceMesh) -> Result<(), String> {
    let count = mesh.positions.len();
    let lengths = [
        mesh.normals.len(),
        mesh.velocities.len(),
        mesh.colors.len(),
        mesh.materials.len(),
    ];
    if lengths.iter().any(|&length| length != 0 && length != count) {
        return Err("its columns are not as long as its vertices".into());
    }
    let columns = [&mesh.positions, &mesh.normals, &mesh.velocities];
    if columns.iter().any(|c| !c.iter().all(|v| v.is_finite())) {
        return Err("it has numbers that are not finite".into());
    }
    if mesh
        .triangles
        .iter()
        .flatten()
        .any(|&v| v as usize >= count)
    {
        return Err("a triangle has a corner that is not there".into());
    }
    Ok(())
}
