//! What is at hand while a scene is built: its folder, its axes, the files it names, the problems found.

use super::document::{Method, UpDoc};
use super::problem::{Problem, Problems};
use super::quantity::{Length, Positive, Quantity};
use super::read::Text;
use barchan_base::mesh::{self, Mesh};
use barchan_base::shape::MeshShape;
use glam::{Quat, Vec3};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// What is at hand while a scene is built.
pub struct Builder<'a> {
    /// Folder of the scene; paths are relative to it.
    pub folder: &'a Path,
    /// The axis that points up.
    pub up: UpDoc,
    /// Resolution of the scene [m].
    pub resolution: f32,
    /// The largest diameter of a single grain [m], where the method has them.
    pub largest_grain: f32,
    /// How it is simulated.
    pub method: Method,
    /// Names of the materials.
    pub materials: Vec<String>,
    /// Frames a second.
    pub fps: f64,
    /// What is wrong so far.
    pub problems: &'a mut Problems,
    /// Everything that decides the frames' bytes.
    pub hash: Xxh3,
}

impl Builder<'_> {
    /// Notes a problem and gives nothing.
    pub fn none<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.none(problem)
    }

    /// Unit vector up.
    pub fn up(&self) -> Vec3 {
        match self.up {
            UpDoc::X => Vec3::X,
            UpDoc::Y => Vec3::Y,
            UpDoc::Z => Vec3::Z,
        }
    }

    /// The rotation that turns +y up.
    pub fn upright(&self) -> Quat {
        Quat::from_rotation_arc(Vec3::Y, self.up())
    }

    /// The bytes of a file named in the scene.
    pub fn read_file(&mut self, file: &Text) -> Option<Vec<u8>> {
        match mesh::read_file(&self.folder.join(&file.value)) {
            Ok(bytes) => {
                self.hash.update(&bytes);
                Some(bytes)
            }
            Err(error) => {
                let problem = Problem::new(
                    file.span.clone(),
                    format!("cannot read {}: {error}", file.value),
                );
                self.none(problem.help(format!(
                    "paths are relative to the scene's folder, {}",
                    shown(self.folder)
                )))
            }
        }
    }

    /// The bytes of a mesh file named in the scene; those of the files that belong to it count too.
    pub fn read_mesh_file(&mut self, file: &Text) -> Option<Vec<u8>> {
        let bytes = self.read_file(file)?;
        for side in mesh::side_files(&self.folder.join(&file.value), &bytes) {
            self.hash.update(&side);
        }
        Some(bytes)
    }

    /// The mesh in a file named in the scene.
    pub fn load_mesh(&mut self, file: &Text) -> Option<Mesh> {
        let bytes = self.read_mesh_file(file)?;
        match mesh::parse_mesh(&self.folder.join(&file.value), &bytes) {
            Ok(mesh) => Some(mesh),
            Err(error) => self.none(Problem::new(file.span.clone(), error.to_string())),
        }
    }

    /// A mesh as a shape, to be scaled by `scale` afterwards.
    pub fn mesh_shape(
        &mut self,
        mesh: Mesh,
        cell: Option<&Quantity<Length, Positive>>,
        scale: f32,
        span: &Range<usize>,
    ) -> Option<Arc<MeshShape>> {
        let cell_size = match cell {
            Some(cell) => cell.si as f32 / scale,
            None => MeshShape::sensible_cell(mesh.bounds(), self.resolution / scale),
        };
        match MeshShape::new(mesh, cell_size) {
            Ok(shape) => Some(Arc::new(shape)),
            Err(error) => {
                let span = cell.map_or(span, |cell| &cell.span);
                self.none(
                    Problem::new(span.clone(), error.to_string()).help("choose a larger cell"),
                )
            }
        }
    }
}

fn shown(folder: &Path) -> String {
    if folder.as_os_str().is_empty() {
        ".".into()
    } else {
        folder.display().to_string()
    }
}
