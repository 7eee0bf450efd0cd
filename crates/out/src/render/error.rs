//! Why there is no picture.

use crate::cache::{FolderError, FrameError};
use barchan_sim::body::SequenceError;
use glam::Vec3;
use std::io;
use std::path::PathBuf;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The run's folder cannot be listed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There is nothing to draw yet.
    #[error("{path} has no frames to draw; run the scene first")]
    NoFrames {
        /// The run's folder.
        path: PathBuf,
    },
    /// A frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A body's mesh cannot be read.
    #[error(transparent)]
    Body(#[from] SequenceError),
    /// There is no surface.
    #[error("there is no surface {path}; make it with `barchan surface`, or draw --what grains")]
    NoMesh {
        /// Where it would be.
        path: PathBuf,
    },
    /// A surface cannot be read.
    #[error("{0}; make it again with `barchan surface`, or draw --what grains")]
    Mesh(String),
    /// There is no such column.
    #[error("{0}")]
    Column(String),
    /// There would be nothing but the inside of a wall.
    #[error("the camera at {at} is inside \"{body}\"; move render.camera.at out of it")]
    CameraInside {
        /// Where it is.
        at: Vec3,
        /// Name of the body.
        body: String,
    },
    /// A picture cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
