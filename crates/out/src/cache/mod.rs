//! A run's folder: frames as Arrow IPC files, checkpoints, a report, and the record of what ran.

mod compact;
mod extra;
mod folder;
mod frame;
mod grains;
mod message;
mod recorder;
mod toml_text;

pub use compact::round as round_grains;
pub(crate) use compact::write as write_compact;
pub use folder::{FolderError, Record, RunFolder};
pub use frame::{Frame, FrameError, FrameMeta, read_frame, write_frame};
pub(crate) use frame::{FrameWriter, disk_error};
pub use grains::{Bunch, GrainKey, Grains, ORIENTATION, SEED};
pub use recorder::CacheRecorder;
