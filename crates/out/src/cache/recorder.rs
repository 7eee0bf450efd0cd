//! Writes behind the simulation, on its own thread, one frame at a time: the run waits only when the disk is slower
//! than two frames of it, and never holds more than one copy of the particles.

use super::folder::RunFolder;
use super::frame::{FrameMeta, write_columns};
use barchan_base::column::{Column, ColumnSpec};
use barchan_sim::atomic::{self, Sync};
use barchan_sim::checkpoint;
use barchan_sim::clock::Clock;
use barchan_sim::coupling::Coupling;
use barchan_sim::run::{RecordError, Recorder, StepLine};
use barchan_sim::scene::{Compression, Scene};
use barchan_sim::solids::BodyPlace;
use barchan_sim::state::{Particles, State, Tally};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Checkpoints kept: the newest, and the one before it should the newest be damaged.
const CHECKPOINTS_KEPT: usize = 2;

/// Keeps a run in its folder.
pub struct CacheRecorder<'a> {
    jobs: Option<SyncSender<Job>>,
    /// One token for each job done; the first stands there from the start.
    idle: Receiver<()>,
    thread: Option<JoinHandle<Result<(), WriteError>>>,
    lines: String,
    last_line: Option<StepLine>,
    checkpoint_every: u32,
    last_frame: u32,
    /// The step of the last checkpoint.
    saved: Option<u64>,
    on_step: OnStep<'a>,
    on_frame: OnFrame<'a>,
}

type OnStep<'a> = Box<dyn FnMut(&StepLine) + 'a>;
type OnFrame<'a> = Box<dyn FnMut(&State, &StepLine) + 'a>;

/// Something to write.
struct Job {
    clock: Clock,
    tally: Tally,
    particles: Particles,
    memory: Vec<Column>,
    bodies: Vec<BodyPlace>,
    coupling: Vec<u8>,
    lines: String,
    kind: JobKind,
}

enum JobKind {
    Frame { checkpoint: bool },
    CheckpointOnly,
}

impl JobKind {
    fn has_checkpoint(&self) -> bool {
        !matches!(self, Self::Frame { checkpoint: false })
    }
}

struct WriteError {
    what: String,
    source: io::Error,
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot write {}: {}; what was written before is whole. Make room or mend the folder, then give the same command again to go on",
            self.what, self.source
        )
    }
}

/// What the writing thread needs to know.
struct Writer {
    folder: Arc<RunFolder>,
    meta: FrameMeta,
    identity: u128,
    compression: Compression,
    /// Columns that frames are without.
    private: &'static [ColumnSpec],
}

impl<'a> CacheRecorder<'a> {
    /// Starts the writing thread; frames are without the columns that are the solver's `private` ones. `on_step` and
    /// `on_frame` are told of each, for progress.
    pub fn new(
        folder: Arc<RunFolder>,
        scene: &Scene,
        private: &'static [ColumnSpec],
        on_step: impl FnMut(&StepLine) + 'a,
        on_frame: impl FnMut(&State, &StepLine) + 'a,
    ) -> Self {
        let (jobs, queue) = sync_channel::<Job>(1);
        let (done, idle) = sync_channel(2);
        done.send(()).expect("the receiver is here");
        let writer = Writer {
            folder,
            meta: FrameMeta::of(scene, 0),
            identity: scene.identity,
            compression: scene.compression,
            private,
        };
        let thread = std::thread::spawn(move || {
            for job in queue {
                writer.write(&job)?;
                drop(job);
                if done.send(()).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Self {
            jobs: Some(jobs),
            idle,
            thread: Some(thread),
            lines: String::new(),
            last_line: None,
            checkpoint_every: scene.checkpoint_every,
            last_frame: scene.frames,
            saved: None,
            on_step: Box::new(on_step),
            on_frame: Box::new(on_frame),
        }
    }

    /// Keeps the start of a run: frame 0.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub fn start(&mut self, state: &State, coupling: &dyn Coupling) -> Result<(), RecordError> {
        self.submit(state, coupling, JobKind::Frame { checkpoint: true })
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// If something could not be written.
    pub fn finish(&mut self) -> Result<(), RecordError> {
        drop(self.jobs.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(RecordError(error.to_string())),
            Some(Err(_)) => Err(RecordError(
                "the writing thread failed; please report this".into(),
            )),
            _ => Ok(()),
        }
    }

    fn submit(
        &mut self,
        state: &State,
        coupling: &dyn Coupling,
        kind: JobKind,
    ) -> Result<(), RecordError> {
        // Only when the last copy is written and gone is the next one made.
        if self.idle.recv().is_err() {
            return self
                .finish()
                .and(Err(RecordError("the writing thread has stopped".into())));
        }
        let (memory, coupling) = if kind.has_checkpoint() {
            self.saved = Some(state.clock.step);
            (state.memory.clone(), coupling.save())
        } else {
            (Vec::new(), Vec::new())
        };
        let job = Job {
            clock: state.clock,
            tally: state.tally.clone(),
            particles: state.particles.clone(),
            memory,
            bodies: state.solids.places(),
            coupling,
            lines: std::mem::take(&mut self.lines),
            kind,
        };
        let sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { Ok(()) } else { self.finish() }
    }
}

impl Recorder for CacheRecorder<'_> {
    fn step(&mut self, line: StepLine) -> Result<(), RecordError> {
        let text = serde_json::to_string(&line).map_err(|e| RecordError(e.to_string()))?;
        self.lines.push_str(&text);
        self.lines.push('\n');
        (self.on_step)(&line);
        self.last_line = Some(line);
        Ok(())
    }

    fn frame(&mut self, state: &State, coupling: &dyn Coupling) -> Result<(), RecordError> {
        let frame = state.clock.frame;
        let checkpoint = frame.is_multiple_of(self.checkpoint_every) || frame == self.last_frame;
        self.submit(state, coupling, JobKind::Frame { checkpoint })?;
        if let Some(line) = &self.last_line {
            (self.on_frame)(state, line);
        }
        Ok(())
    }

    fn interrupted(&mut self, state: &State, coupling: &dyn Coupling) -> Result<(), RecordError> {
        if self.saved == Some(state.clock.step) {
            return Ok(());
        }
        self.submit(state, coupling, JobKind::CheckpointOnly)
    }
}

impl Writer {
    /// Frame, report, checkpoint, in this order: a checkpoint never speaks of a frame that is not there.
    fn write(&self, job: &Job) -> Result<(), WriteError> {
        let failed = |path: &std::path::Path| {
            let what = path.display().to_string();
            move |source| WriteError { what, source }
        };
        if let JobKind::Frame { .. } = job.kind {
            let path = self.folder.frame_path(job.clock.frame);
            let meta = FrameMeta {
                frame: job.clock.frame,
                time: job.clock.time(),
                bodies: job.bodies.clone(),
                ..self.meta.clone()
            };
            // The checkpoint, synced after it, brings the frame's name to the disk too.
            let mut columns = job.particles.raw();
            columns.retain(|(spec, _)| !self.private.contains(spec));
            atomic::write_synced(&path, Sync::Bytes, |file| {
                write_columns(file, &meta, &columns, self.compression)
            })
            .map_err(failed(&path))?;
        }
        let report = self.folder.report_path();
        append(&report, &job.lines).map_err(failed(&report))?;
        if job.kind.has_checkpoint() {
            let path = self.folder.checkpoint_path(job.clock.step);
            let state = (
                &job.clock,
                &job.tally,
                &job.particles,
                job.memory.as_slice(),
            );
            atomic::write(&path, |file| {
                checkpoint::write(file, self.identity, state, &job.coupling)
            })
            .map_err(failed(&path))?;
            self.folder.prune_checkpoints(CHECKPOINTS_KEPT);
        }
        Ok(())
    }
}

fn append(path: &std::path::Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())
}
