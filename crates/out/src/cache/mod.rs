//! A run's folder: frames as Arrow IPC files, checkpoints, a report, and the record of what ran.

mod extra;
mod folder;
mod frame;
mod recorder;
mod toml_text;

pub use folder::{FolderError, Record, RunFolder};
pub use frame::{Frame, FrameError, FrameMeta, frame_digest, read_frame, write_frame};
pub use recorder::CacheRecorder;
