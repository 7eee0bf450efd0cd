//! The surfaces of a run, frame by frame: what is there already with the same settings is left alone.

use super::blend::between;
use super::build::{Points, SurfaceError, build};
use super::format::{self, About};
use super::mesh::SurfaceMesh;
use super::settings::Settings;
use crate::cache::{FolderError, Frame, FrameError, FrameMeta, RunFolder};
use crate::geometry::vtk::collection;
use barchan_sim::atomic;
use barchan_sim::scene::{self, MeshFormat, SurfaceDoc};
use barchan_sim::state::Particles;
use glam::Vec3;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Changes when the same settings begin to give other meshes.
const VERSION: u32 = 3;
/// The start of a file within which its stamp is looked for [bytes].
const STAMP_WITHIN: u64 = 1024;

/// Surfaces to make.
#[derive(Debug)]
pub struct Stage<'a> {
    folder: &'a RunFolder,
    settings: Settings,
    formats: Vec<MeshFormat>,
    /// Parts of a frame after each frame at which there is a surface; zero first.
    moments: Vec<f64>,
    colors: BTreeMap<String, [f32; 3]>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Made {
    /// Files written; none where all were there already.
    pub files: usize,
    /// Particles in the frame.
    pub particles: usize,
    /// Particles left out.
    pub skipped: usize,
    /// Triangles of the frame's own surface.
    pub triangles: usize,
}

/// Why a frame has no surface.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The run's folder cannot be listed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There is no surface.
    #[error("frame {frame}: {source}")]
    Surface {
        /// The frame.
        frame: u32,
        /// Why.
        source: SurfaceError,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl StageError {
    /// True where the other frames will fail too.
    pub fn is_for_all(&self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

/// A mesh to be made: which frame, which moment of it, where it goes.
struct Target {
    /// True for the frame itself, false for a moment of the shutter.
    is_frame: bool,
    moment: f64,
    digest: String,
    path: PathBuf,
}

impl<'a> Stage<'a> {
    /// Surfaces of a run as `doc` says.
    pub fn new(folder: &'a RunFolder, doc: &SurfaceDoc) -> Self {
        let mut formats: Vec<MeshFormat> = Vec::new();
        for format in &doc.formats {
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
        let mut moments = vec![0.0];
        if let Some(shutter) = &doc.shutter {
            let (open, length) = (shutter.open.si, shutter.close.si - shutter.open.si);
            let last = (shutter.samples.0 - 1) as f64;
            moments.extend((0..shutter.samples.0).map(|i| open + length * i as f64 / last));
        }
        Self {
            folder,
            settings: Settings::from(doc),
            formats,
            moments,
            colors: scene::recorded_colors(&folder.record()),
        }
    }

    /// Makes the meshes of one frame that are not there yet.
    ///
    /// # Errors
    /// If a frame cannot be read or a mesh cannot be made or written; what was written before is whole.
    pub fn frame(&self, frame: u32) -> Result<Made, StageError> {
        let mut made = Made::default();
        let mut source = Source::new(self.folder, frame);
        for number in 0..self.moments.len() {
            let target = self.target(&mut source, number)?;
            let missing: Vec<MeshFormat> = self
                .formats
                .iter()
                .copied()
                .filter(|format| {
                    !has_stamp(&with_format(&target.path, *format), &self.stamp(&target))
                })
                .collect();
            if !missing.is_empty() {
                self.make(&mut source, &target, &missing, &mut made)?;
            }
        }
        Ok(made)
    }

    /// Writes the .pvd that gives ParaView the time of each mesh of the folder.
    ///
    /// # Errors
    /// If the folder cannot be listed or it cannot be written.
    pub fn finish(&self) -> Result<(), StageError> {
        if !self.formats.contains(&MeshFormat::Vtk) {
            return Ok(());
        }
        let path = self.folder.meshes_dir().join("surface.pvd");
        let fps = scene::recorded_fps(&self.folder.record());
        let file = |frame: &u32| {
            let path = with_format(&self.folder.mesh_path(*frame), MeshFormat::Vtk);
            let name = path.file_name()?.to_string_lossy().into_owned();
            path.is_file().then_some((f64::from(*frame) / fps, name))
        };
        let frames = self.folder.frames()?;
        let files: Vec<(f64, String)> = frames.iter().filter_map(file).collect();
        atomic::write_bytes(&path, collection(&files).as_bytes())
            .map_err(|source| StageError::Write { path, source })
    }

    fn target(&self, source: &mut Source<'_>, number: usize) -> Result<Target, StageError> {
        let moment = self.moments[number];
        let path = self.folder.mesh_path(source.frame);
        let path = match number {
            0 => path,
            _ => {
                let name = format!("{:06}_{:02}.ply", source.frame, number - 1);
                self.folder.meshes_dir().join("shutter").join(name)
            }
        };
        let mut digest = String::new();
        let (first, _, second) = source.around(moment);
        for frame in [Some(first), second].into_iter().flatten() {
            digest += &self.folder.frame_digest(frame)?;
        }
        Ok(Target {
            is_frame: number == 0,
            moment,
            digest,
            path,
        })
    }

    /// A line that is the same exactly where the mesh is.
    fn stamp(&self, target: &Target) -> String {
        let mut hash = Xxh3::new();
        let about = (VERSION, self.settings, target.moment, &self.colors);
        hash.update(format!("{about:?}").as_bytes());
        hash.update(target.digest.as_bytes());
        format!("barchan-surface {:016x}", hash.digest())
    }

    fn make(
        &self,
        source: &mut Source<'_>,
        target: &Target,
        formats: &[MeshFormat],
        made: &mut Made,
    ) -> Result<(), StageError> {
        let frame = source.frame;
        let (meta, particles) = source.particles(target.moment)?;
        let colors: Vec<Vec3> = self.colors(&meta, &particles);
        let points = Points {
            positions: &particles.position,
            radii: &particles.radius,
            velocities: &particles.velocity,
            colors: &colors,
            materials: &particles.material,
        };
        let surface = build(&points, &self.settings)
            .map_err(|source| StageError::Surface { frame, source })?;
        if target.is_frame {
            (made.particles, made.skipped) = (particles.len(), surface.skipped);
            made.triangles = surface.mesh.triangles.len();
        }
        let about = About {
            stamp: self.stamp(target),
            frame,
            time: meta.time + target.moment / meta.fps,
            up: meta.up,
        };
        for format in formats {
            write(
                &with_format(&target.path, *format),
                *format,
                &surface.mesh,
                &about,
            )?;
            made.files += 1;
        }
        Ok(())
    }

    fn colors(&self, meta: &FrameMeta, particles: &Particles) -> Vec<Vec3> {
        let color = |name: &String| {
            self.colors
                .get(name)
                .map_or(Vec3::splat(0.5), |c| Vec3::from_array(*c))
        };
        let colors: Vec<Vec3> = meta.materials.iter().map(color).collect();
        let of = |material: &u16| {
            colors
                .get(*material as usize)
                .copied()
                .unwrap_or(Vec3::splat(0.5))
        };
        particles.material.iter().map(of).collect()
    }
}

/// A frame's particles, and those of the frames beside it, read when first needed.
struct Source<'a> {
    folder: &'a RunFolder,
    frame: u32,
    read: BTreeMap<u32, Frame>,
}

impl<'a> Source<'a> {
    fn new(folder: &'a RunFolder, frame: u32) -> Self {
        Self {
            folder,
            frame,
            read: BTreeMap::new(),
        }
    }

    /// The frame that a moment comes after, by which part of a frame, and the frame after it if it is between two. What comes before
    /// all of them, or after a gap, is told from the own frame.
    fn around(&self, moment: f64) -> (u32, f64, Option<u32>) {
        let there = |frame: &u32| *frame == self.frame || self.folder.frame_path(*frame).is_file();
        let before = self.frame.checked_add_signed(moment.floor() as i32);
        let Some(before) = before.filter(there) else {
            return (self.frame, moment, None);
        };
        let part = moment - moment.floor();
        let after = before
            .checked_add(1)
            .filter(|after| part > 0.0 && there(after));
        (before, part, after)
    }

    fn need(&mut self, frame: u32) -> Result<(), FrameError> {
        if !self.read.contains_key(&frame) {
            let read = self.folder.read_frame(frame)?;
            self.read.insert(frame, read);
        }
        Ok(())
    }

    /// The facts of the frame and its particles at `moment`. Before the first frame and after the last they go on as they moved.
    fn particles(&mut self, moment: f64) -> Result<(FrameMeta, Cow<'_, Particles>), FrameError> {
        let (first, part, second) = self.around(moment);
        for frame in [Some(self.frame), Some(first), second]
            .into_iter()
            .flatten()
        {
            self.need(frame)?;
        }
        let own = &self.read[&self.frame];
        let seconds = 1.0 / own.meta.fps;
        let before = &self.read[&first].particles;
        let particles = match second {
            Some(second) => {
                let after = &self.read[&second].particles;
                Cow::Owned(between(before, after, part as f32, seconds as f32))
            }
            None if part == 0.0 => Cow::Borrowed(before),
            None => {
                let mut particles = before.clone();
                let seconds = (part * seconds) as f32;
                for (place, velocity) in particles.position.iter_mut().zip(&particles.velocity) {
                    *place += *velocity * seconds;
                }
                Cow::Owned(particles)
            }
        };
        Ok((own.meta.clone(), particles))
    }
}

fn with_format(path: &Path, format: MeshFormat) -> PathBuf {
    path.with_extension(format::extension(format))
}

fn write(
    path: &Path,
    format: MeshFormat,
    mesh: &SurfaceMesh,
    about: &About,
) -> Result<(), StageError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| atomic::write(path, |file| format::write(file, format, mesh, about)))
        .map_err(|source| StageError::Write {
            path: path.to_owned(),
            source,
        })
}

/// True where a file was made from the same.
fn has_stamp(path: &Path, stamp: &str) -> bool {
    let mut start = Vec::new();
    let Ok(file) = File::open(path) else {
        return false;
    };
    let read = file.take(STAMP_WITHIN).read_to_end(&mut start);
    read.is_ok()
        && start
            .windows(stamp.len())
            .any(|window| window == stamp.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::write_frame;
    use barchan_sim::scene::{Asked, Compression};

    /// A run of frames with one particle each, at the place of the frame's number and without a velocity.
    fn run(place: &Path, frames: u32) -> RunFolder {
        std::fs::create_dir(place.join("frames")).expect("room");
        for frame in 0..frames {
            let meta = FrameMeta {
                frame,
                time: f64::from(frame),
                fps: 1.0,
                scene: "s".into(),
                up: Vec3::Y,
                gravity: Vec3::NEG_Y,
                materials: vec!["sand".into()],
                bodies: Vec::new(),
            };
            let mut particles = Particles::default();
            particles.resize(1);
            particles.position[0] = Vec3::X * frame as f32;
            particles.radius[0] = 0.5;
            let path = place.join(format!("frames/{frame:06}.arrow"));
            let file = File::create(path).expect("room");
            write_frame(file, &meta, &particles, Compression::None).expect("room");
        }
        RunFolder::open(place).expect("a run")
    }

    #[test]
    fn the_collection_keeps_what_an_earlier_call_made() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = run(place.path(), 3);
        let doc = Asked {
            record: "[parameters.surface]\nformats = [\"vtk\"]\n".into(),
            ..Asked::default()
        };
        let doc = doc.surface().expect("settings");
        let stage = Stage::new(&folder, &doc);
        for frame in [0, 1, 2] {
            stage.frame(frame).expect("a surface");
            stage.finish().expect("room");
        }
        let listed = std::fs::read_to_string(folder.meshes_dir().join("surface.pvd"));
        assert_eq!(listed.expect("there").matches("<DataSet").count(), 3);
    }

    #[test]
    fn a_moment_after_the_last_frame_goes_on_from_there() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = run(place.path(), 2);
        // From frame 0, 1.25 frames on: past frame 1, which is the last and stands still.
        let mut source = Source::new(&folder, 0);
        let (_, particles) = source.particles(1.25).expect("two frames");
        assert_eq!(particles.position[0], Vec3::X);
    }
}
