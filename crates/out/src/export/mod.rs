//! Frames as other programs' files.
//!
//! A format is either a file a frame or one file with all frames. Either way one frame is in memory at a time, and a file
//! is whole or not there.

mod alembic;
mod bgeo;
mod mitsuba;
mod pbrt;
#[cfg(test)]
pub(crate) mod samples;
mod scene;
mod snapshot;
mod usd;
mod vdb;
mod view;

use crate::cache::{FrameError, RunFolder};
use crate::geometry::{glb, ply, vtk};
use crate::surface::SurfaceMesh;
use crate::surface::format::read_ply;
use barchan_sim::atomic;
use barchan_sim::grain::GrainShape;
use barchan_sim::scene::{Format, SceneError};
use scene::Shot;
use snapshot::Snapshot;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use usd::Shown;
use view::View;

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame's surface cannot be used.
    #[error("the mesh of frame {frame} cannot be used: {reason}")]
    Mesh {
        /// The frame.
        frame: u32,
        /// What is wrong.
        reason: String,
    },
    /// Nobody knows the shapes of grains.
    #[error(
        "grains have the shapes that the run's scene gives them, and it cannot be read again: {0}"
    )]
    Scene(#[from] SceneError),
    /// The format cannot hold what was asked for.
    #[error("{} files hold particles only; for meshes take abc, usd, usdc, ply, vtk or glb", format.word())]
    NoMeshes {
        /// The format.
        format: Format,
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

/// What of a frame is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its particles.
    Particles,
    /// Its particles in the shapes that they have: instances where the format has them, else the balls that they are made of.
    Grains,
    /// The surface around them.
    Mesh,
}

impl What {
    /// The first part of file names.
    fn stem(self) -> &'static str {
        match self {
            Self::Particles => "particles",
            Self::Grains => "grains",
            Self::Mesh => "mesh",
        }
    }
}

/// An export to be done.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The run.
    pub run: &'a RunFolder,
    /// Numbers of its frames.
    pub frames: &'a [u32],
    /// What of each.
    pub what: What,
    /// As what.
    pub format: Format,
    /// The folder to write to.
    pub to: &'a Path,
}

/// What came of an export.
#[derive(Debug, Default)]
pub struct Exported {
    /// Files written.
    pub files: usize,
    /// What was left out, or could not be read; the other frames are done.
    pub problems: Vec<String>,
}

/// Writes the frames of `job`; `told` hears of each frame done. A frame that cannot be read is left out and told of.
///
/// # Errors
/// If the shapes of grains are not known, at the first file that cannot be written, or if no frame can be read; what was written before is whole.
pub fn export(job: &Job<'_>, mut told: impl FnMut(u32)) -> Result<Exported, ExportError> {
    if job.what == What::Mesh && job.format == Format::Bgeo {
        return Err(ExportError::NoMeshes { format: job.format });
    }
    let shapes = shapes_of(job)?;
    std::fs::create_dir_all(job.to).map_err(failed(job.to))?;
    let mut problems = Vec::new();
    let instances = matches!(job.format, Format::Usd | Format::Usdc);
    let shown = match job.what {
        What::Grains => Shown::Instances(&shapes),
        What::Particles | What::Mesh => Shown::Plain,
    };
    let mut snapshots = job.frames.iter().filter_map(|&number| {
        let read = Snapshot::read(job.run, number, job.what);
        told(number);
        match read {
            Ok((snapshot, told)) => {
                problems.extend(told);
                Some(if instances {
                    snapshot
                } else {
                    snapshot.apart(&shapes)
                })
            }
            Err(error) => {
                problems.push(error.to_string());
                None
            }
        }
    });
    let files = match job.format {
        Format::Abc => one_file(job, |file| alembic::write(file, &mut snapshots))?,
        Format::Usd => one_file(job, |file| {
            usd::write_text(file, &mut snapshots, job.to, shown)
        })?,
        Format::Usdc => one_file(job, |file| usd::write_binary(file, &mut snapshots, shown))?,
        _ => file_a_frame(job, &mut snapshots)?,
    };
    Ok(Exported { files, problems })
}

/// The shapes of the run's grains, by material, where they are asked for.
fn shapes_of(job: &Job<'_>) -> Result<Vec<Arc<GrainShape>>, SceneError> {
    match job.what {
        What::Grains => Ok(job.run.scene()?.model.shapes),
        What::Particles | What::Mesh => Ok(Vec::new()),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Write { path, source }
}

fn extension(format: Format) -> &'static str {
    match format {
        Format::Abc => "abc",
        Format::Usd => "usda",
        Format::Usdc => "usdc",
        Format::Vdb => "vdb",
        Format::Bgeo => "bgeo",
        Format::Ply => "ply",
        Format::Vtk => "vtp",
        Format::Glb => "glb",
        Format::Pbrt => "pbrt",
        Format::Mitsuba => "xml",
    }
}

/// The frames of a job that can be read, for those who have to look ahead.
fn readable(job: &Job<'_>) -> impl Iterator<Item = Snapshot> {
    let read = |&number: &u32| Snapshot::read(job.run, number, job.what).ok();
    job.frames
        .iter()
        .filter_map(read)
        .map(|(snapshot, _)| snapshot)
}

/// Writes all frames into one file.
fn one_file(
    job: &Job<'_>,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<usize, ExportError> {
    let path = job
        .to
        .join(format!("{}.{}", job.what.stem(), extension(job.format)));
    atomic::write(&path, fill).map_err(failed(&path))?;
    Ok(1)
}

/// Writes each frame into a file of its own, and what holds them together.
fn file_a_frame(
    job: &Job<'_>,
    snapshots: &mut dyn Iterator<Item = Snapshot>,
) -> Result<usize, ExportError> {
    let renders = matches!(job.format, Format::Pbrt | Format::Mitsuba);
    let seen = renders.then(|| readable(job));
    let view = View::of(seen.into_iter().flatten());
    let mut times = Vec::new();
    for snapshot in snapshots {
        let stem = format!("{}_{:06}", job.what.stem(), snapshot.meta.frame);
        let name = format!("{stem}.{}", extension(job.format));
        let path = job.to.join(&name);
        let shot = Shot {
            snapshot: &snapshot,
            view: &view,
            stem: &stem,
        };
        if renders && job.what == What::Mesh {
            let path = job.to.join(format!("{stem}.ply"));
            atomic::write(&path, |file| ply::write(file, &snapshot.geometry()))
                .map_err(failed(&path))?;
        }
        atomic::write(&path, |file| match job.format {
            Format::Ply => ply::write(file, &snapshot.geometry()),
            Format::Vtk => vtk::write(file, &snapshot.geometry()),
            Format::Vdb => vdb::write(file, &snapshot),
            Format::Bgeo => bgeo::write(file, &snapshot),
            Format::Glb => glb::write(file, &snapshot.geometry()),
            Format::Pbrt => scene::write::<pbrt::Pbrt>(file, &shot),
            Format::Mitsuba => scene::write::<mitsuba::Mitsuba>(file, &shot),
            Format::Abc | Format::Usd | Format::Usdc => unreachable!("these are one file"),
        })
        .map_err(failed(&path))?;
        times.push((snapshot.meta.time, name));
    }
    if job.format == Format::Vtk {
        let path = job.to.join(format!("{}.pvd", job.what.stem()));
        atomic::write_bytes(&path, vtk::collection(&times).as_bytes()).map_err(failed(&path))?;
    }
    Ok(times.len())
}

/// The surface of frame `number`, as it lies in the run's folder.
fn read_mesh(run: &RunFolder, number: u32) -> Result<SurfaceMesh, ExportError> {
    let path = run.path().join(format!("meshes/{number:06}.ply"));
    let refused = |reason: String| ExportError::Mesh {
        frame: number,
        reason,
    };
    if !path.exists() {
        let advice = "make it with barchan surface";
        return Err(refused(format!(
            "{} is not there; {advice}",
            path.display()
        )));
    }
    // Ours with all they carry; a mesh made elsewhere with its shape.
    read_ply(&path).or_else(|_| {
        let mesh =
            barchan_base::mesh::load_mesh(&path).map_err(|error| refused(error.to_string()))?;
        Ok(SurfaceMesh {
            positions: mesh.vertices().to_vec(),
            triangles: mesh.triangles().to_vec(),
            ..Default::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::write_frame;
    use barchan_sim::scene::Compression;
    use snapshot::Content;

    #[test]
    fn grains_whose_shapes_are_not_known_are_not_written_as_balls() {
        let place = tempfile::tempdir().expect("a folder");
        let frames = place.path().join("frames");
        std::fs::create_dir(&frames).expect("room");
        let snapshot = samples::particles(3, 0);
        let Content::Particles(particles) = &snapshot.content else {
            panic!("particles")
        };
        let file = File::create(frames.join("000000.arrow")).expect("room");
        write_frame(file, &snapshot.meta, particles, Compression::None).expect("room");
        let job = Job {
            run: &RunFolder::open(place.path()).expect("a run"),
            frames: &[0],
            what: What::Grains,
            format: Format::Usd,
            to: &place.path().join("usd"),
        };
        let refused = export(&job, |_| {}).map(|exported| exported.files);
        let reason = refused
            .expect_err("there is no record of a scene")
            .to_string();
        assert!(reason.contains("record of the scene"), "{reason}");
    }
}
