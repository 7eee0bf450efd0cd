//! A mesh that changes during a step: between the files of a sequence.

use crate::body::{MeshSequence, SequenceError};
use barchan_base::mesh::Mesh;
use barchan_base::shape::{MeshShape, Shape};
use glam::Vec3;
use std::sync::Arc;

/// A mesh that changes during the step; `Solid::shape` is the mesh at the end.
#[derive(Clone, Debug)]
pub struct Deformation {
    /// The mesh at the start, if it is another.
    pub before: Arc<Shape>,
    after: Arc<MeshShape>,
    /// Velocity of each vertex [m/s].
    velocities: Vec<Vec3>,
    files: LoadedFiles,
    time: f64,
}

/// The two files of a sequence that are in memory.
#[derive(Clone, Debug)]
struct LoadedFiles {
    indices: (usize, usize),
    first: Arc<Mesh>,
    second: Arc<Mesh>,
}

impl Deformation {
    /// As it is at `time` [s], and its shape there.
    pub fn new(sequence: &MeshSequence, time: f64) -> Result<(Arc<Shape>, Self), SequenceError> {
        let files = LoadedFiles::load(sequence, time, None)?;
        let after = files.shape(sequence, time)?;
        let shape = Arc::new(Shape::Mesh(after.clone()));
        let deformation = Self {
            before: shape.clone(),
            velocities: vec![Vec3::ZERO; after.mesh().vertices().len()],
            after,
            files,
            time,
        };
        Ok((shape, deformation))
    }

    /// Moves on to `end`; returns the shape there.
    pub fn follow(
        &mut self,
        sequence: &MeshSequence,
        start: f64,
        end: f64,
    ) -> Result<Arc<Shape>, SequenceError> {
        if (self.time - start).abs() > 1e-12 {
            // Resumed, or never placed: begin at the start of this step.
            *self = Self::new(sequence, start)?.1;
        }
        if sequence.files_at(start) == sequence.files_at(end) {
            self.before = Arc::new(Shape::Mesh(self.after.clone()));
            self.velocities.fill(Vec3::ZERO);
            self.time = end;
            return Ok(self.before.clone());
        }
        let (first, second, from) = sequence.files_at(start);
        let (last, next, to) = sequence.files_at(end);
        self.files = LoadedFiles::load(sequence, end, Some(&self.files))?;
        let after = self.files.shape(sequence, end)?;
        self.before = Arc::new(Shape::Mesh(self.after.clone()));
        let dt = end - start;
        let rates = |a: &Mesh, b: &Mesh, rate: f64| -> Vec<Vec3> {
            let pairs = a.vertices().iter().zip(b.vertices());
            pairs.map(|(a, b)| (*b - *a) * rate as f32).collect()
        };
        self.velocities = if (first, second) == (last, next) {
            // Over a short step the difference of two places is mostly rounding; that of two files is not.
            rates(&self.files.first, &self.files.second, (to - from) / dt)
        } else {
            sequence.check_alike(self.after.mesh(), after.mesh(), last)?;
            rates(self.after.mesh(), after.mesh(), 1.0 / dt)
        };
        self.after = after;
        self.time = end;
        Ok(Arc::new(Shape::Mesh(self.after.clone())))
    }

    /// A bound on how fast [m/s] any of it moves.
    pub fn speed(&self) -> f32 {
        let squares = self.velocities.iter().map(|v| v.length_squared());
        squares.fold(0.0, f32::max).sqrt()
    }

    /// Velocity [m/s] of the place on it nearest to `point`.
    pub fn velocity(&self, point: Vec3) -> Vec3 {
        let (triangle, weights) = self.after.nearest_triangle(point);
        let corners = self.after.mesh().triangles()[triangle];
        corners
            .iter()
            .zip(weights)
            .map(|(corner, weight)| self.velocities[*corner as usize] * weight)
            .sum()
    }
}

impl LoadedFiles {
    fn load(
        sequence: &MeshSequence,
        time: f64,
        known: Option<&Self>,
    ) -> Result<Self, SequenceError> {
        let (a, b, _) = sequence.files_at(time);
        let get = |index: usize| match known {
            Some(files) if files.indices.0 == index => Ok(files.first.clone()),
            Some(files) if files.indices.1 == index => Ok(files.second.clone()),
            _ => sequence.load(index).map(Arc::new),
        };
        Ok(Self {
            indices: (a, b),
            first: get(a)?,
            second: get(b)?,
        })
    }

    fn shape(&self, sequence: &MeshSequence, time: f64) -> Result<Arc<MeshShape>, SequenceError> {
        let (_, b, f) = sequence.files_at(time);
        let mesh = sequence.blend(&self.first, &self.second, b, f)?;
        let bounds = mesh.bounds();
        let sensible = MeshShape::sensible_cell(bounds, sequence.resolution);
        let cell = sequence.cell.unwrap_or(sensible);
        // A cell that was asked for but is far too small for what the mesh has become gives way.
        let shape = MeshShape::new(mesh.clone(), cell).or_else(|_| MeshShape::new(mesh, sensible));
        Ok(Arc::new(shape.expect("a sensible cell size always fits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::Pose;

    #[test]
    fn meshes_of_a_sequence_that_no_step_blends_must_be_alike_too() {
        let folder = tempfile::tempdir().unwrap();
        let corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)];
        let faces = "f 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n";
        let files: Vec<_> = (0..8)
            .map(|i| folder.path().join(format!("{i}.obj")))
            .collect();
        for (number, path) in files.iter().enumerate() {
            let vertices = corners.map(|(x, y, z)| format!("v {x} {y} {z}\n")).concat();
            let more = "v 5 5 5\n".repeat(if number < 4 { 0 } else { 9 });
            let last = if number < 4 { "" } else { "f 2 3 13\n" };
            std::fs::write(path, vertices + &more + faces + last).unwrap();
        }
        let sequence = MeshSequence {
            files,
            fps: 1000.0,
            start: 0.0,
            pose: Pose::IDENTITY,
            scale: 1.0,
            cell: Some(0.1),
            resolution: 0.1,
        };
        let (_, mut deformation) = Deformation::new(&sequence, 0.0).unwrap();
        let followed = deformation.follow(&sequence, 0.0, 0.006);
        assert!(matches!(followed, Err(SequenceError::Topology { .. })));
    }
}
