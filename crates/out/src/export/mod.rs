//! Frames as other programs' files.

mod ply;
mod vtk;

use crate::cache::{Frame, FrameError, RunFolder};
use barchan_sim::atomic;
use barchan_sim::scene::Format;
use std::io;
use std::path::{Path, PathBuf};

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Writes `frames` of a run to the folder `to`, one file each; `told` hears of each frame done.
///
/// # Errors
/// At the first frame that cannot be read or written; what was written before is whole.
pub fn export(
    run: &RunFolder,
    frames: &[u32],
    format: Format,
    to: &Path,
    mut told: impl FnMut(u32),
) -> Result<(), ExportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExportError::Write { path, source }
    };
    std::fs::create_dir_all(to).map_err(failed(to))?;
    let mut times = Vec::new();
    for &number in frames {
        let frame = crate::cache::read_frame(&run.frame_path(number))?;
        let path = to.join(file_name(format, number));
        times.push((frame.meta.time, file_name(format, number)));
        atomic::write(&path, |file| write(file, format, &frame)).map_err(failed(&path))?;
        told(number);
    }
    if format == Format::Vtk {
        let path = to.join("particles.pvd");
        atomic::write_bytes(&path, vtk::collection(&times).as_bytes()).map_err(failed(&path))?;
    }
    Ok(())
}

fn file_name(format: Format, frame: u32) -> String {
    let extension = match format {
        Format::Ply => "ply",
        Format::Vtk => "vtp",
    };
    format!("particles_{frame:06}.{extension}")
}

fn write(file: &mut impl io::Write, format: Format, frame: &Frame) -> io::Result<()> {
    match format {
        Format::Ply => ply::write(file, frame),
        Format::Vtk => vtk::write(file, frame),
    }
}
