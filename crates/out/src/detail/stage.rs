//! The grains of a run, frame by frame: each from the one before, what is there already with the same settings is left alone.

use super::births::{follow, key, restored};
use super::guides::{Guides, News, by_id};
use super::interval::{Advancer, Interval};
use super::settings::{Settings, Storage};
use super::walls::Walls;
use crate::cache::{
    FrameError, FrameMeta, FrameWriter, Grains, ORIENTATION, RunFolder, SEED, disk_error,
    round_grains, write_compact,
};
use barchan_base::column::ColumnSpec;
use barchan_sim::atomic;
use barchan_sim::body::SequenceError;
use barchan_sim::scene::{Compression, DetailDoc, Scene};
use barchan_sim::state::Particles;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Changes when the same settings begin to give other grains.
const VERSION: u32 = 3;
/// Key of a frame's stamp.
const STAMP: &str = "barchan.detail";
/// Grains in a batch of a full frame, and batches made at a time.
const BATCH: usize = 1 << 17;
const AT_ONCE: usize = 8;

/// Why there are no grains.
#[derive(Debug, thiserror::Error)]
pub enum DetailError {
    /// A frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame of the run is not there.
    #[error(
        "frame {missing} of the run is not there, so that grains cannot go on to frame {next}. Run the scene again to make it, or \
         begin anew with --frames {next}.."
    )]
    Gap {
        /// The frame.
        missing: u32,
        /// The one after it.
        next: u32,
    },
    /// Two particles have the same id.
    #[error(
        "two particles of frame {frame} have the id {id}: grains follow ids, which must be unique"
    )]
    SameId {
        /// The frame.
        frame: u32,
        /// The id.
        id: u64,
    },
    /// Ids of grains do not fit.
    #[error("frame {frame} has a particle with the id {id}, too large to number its grains")]
    LargeId {
        /// The frame.
        frame: u32,
        /// The id.
        id: u64,
    },
    /// More than can be counted.
    #[error(
        "{grains} grains are too many: lower detail.grains_per_particle to have less than 2^32"
    )]
    TooMany {
        /// How many.
        grains: u64,
    },
    /// A body cannot be placed.
    #[error("a body cannot be placed: {0}")]
    Body(#[from] SequenceError),
    /// A file cannot be written.
    #[error(
        "cannot write {path}: {source}; what was written before is whole. Make room or mend the folder, then give the same \
         command again to go on"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Grains to make.
pub struct Stage<'a> {
    run: &'a RunFolder,
    scene: &'a Scene,
    to: RunFolder,
    settings: Settings,
    storage: Storage,
    advancer: Advancer,
    walls: Walls,
    /// The last frame dealt with, and the one its grains were sampled at.
    last: Option<(u32, u32)>,
    /// Its grains and its particles, if they are at hand.
    now: Option<(Grains, Base)>,
    /// Stamps known so far, by first frame and frame.
    stamps: BTreeMap<(u32, u32), u64>,
}

/// A frame of particles, and their order by id.
struct Base {
    meta: FrameMeta,
    particles: Particles,
    order: Vec<u32>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// False where it was there already.
    pub written: bool,
    /// Grains in it; not counted where it was there already.
    pub grains: usize,
    /// Steps that led to it.
    pub steps: u32,
    /// What is unusual about its particles.
    pub news: News,
}

impl<'a> Stage<'a> {
    /// Grains of `run`, a run of `scene`, as `doc` says, in the folder `detail` of the run.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn new(run: &'a RunFolder, scene: &'a Scene, doc: &DetailDoc) -> Result<Self, DetailError> {
        let path = run.path().join("detail");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| DetailError::Write { path, source }
        };
        let frames = path.join("frames");
        std::fs::create_dir_all(&frames).map_err(failed(&frames))?;
        atomic::sweep(&frames);
        // With the run's record, the folder is one that render, export, stats and info understand.
        let record = path.join("run.toml");
        atomic::write_bytes(&record, run.record_for(&path).as_bytes()).map_err(failed(&record))?;
        let to = RunFolder::open(&path).map_err(|error| DetailError::Write {
            path,
            source: io::Error::other(error),
        })?;
        let settings = Settings::new(doc, scene);
        Ok(Self {
            run,
            scene,
            to,
            storage: doc.storage,
            advancer: Advancer::new(settings.clone()),
            settings,
            walls: Walls::default(),
            last: None,
            now: None,
            stamps: BTreeMap::new(),
        })
    }

    /// Where the grains go.
    pub fn folder(&self) -> &RunFolder {
        &self.to
    }

    /// Makes the grains of frame `frame`, unless they are there; frames must be asked for one after the other. The first one goes on
    /// from the frame before it if its grains are there, and samples them anew if not.
    ///
    /// # Errors
    /// If the particles cannot be read or the grains cannot be written; what was written before is whole.
    pub fn frame(&mut self, frame: u32) -> Result<Made, DetailError> {
        if let Some((last, _)) = self.last
            && frame != last + 1
        {
            return Err(DetailError::Gap {
                missing: last + 1,
                next: frame,
            });
        }
        let chain = self.last.map(|(_, first)| first);
        let there = self
            .first_of(frame)
            .filter(|first| chain.is_none_or(|chain| chain == *first));
        if let Some(first) = there {
            self.last = Some((frame, first));
            self.now = None;
            return Ok(Made::default());
        }
        let (first, made) = match self.before(frame, chain)? {
            Some((first, grains, base)) => (first, self.go_on((first, frame), grains, base)?),
            None => (frame, self.begin(frame)?),
        };
        self.write(frame, first)?;
        self.last = Some((frame, first));
        Ok(made)
    }

    /// The grains and particles of the frame before `frame`, and where its grains were sampled.
    fn before(
        &mut self,
        frame: u32,
        chain: Option<u32>,
    ) -> Result<Option<(u32, Grains, Base)>, DetailError> {
        if let (Some((grains, base)), Some(first)) = (self.now.take(), chain) {
            return Ok(Some((first, grains, base)));
        }
        let Some(before) = frame.checked_sub(1) else {
            return Ok(None);
        };
        let Some(first) = self.first_of(before) else {
            return Ok(None);
        };
        let base = self.base(before)?;
        let kept = self.to.read_frame(before)?;
        let grains = restored(
            &self.settings,
            (&base.particles, &base.order),
            kept.particles,
        )
        .map_err(|reason| FrameError::Damaged {
            path: self.to.frame_path(before),
            reason,
        })?;
        Ok(Some((first, grains, base)))
    }

    fn base(&self, frame: u32) -> Result<Base, DetailError> {
        let read = self.run.read_frame(frame)?;
        let order = by_id(&read.particles, frame, self.settings.per_particle)?;
        Ok(Base {
            meta: read.meta,
            particles: read.particles,
            order,
        })
    }

    /// Samples the grains of `frame`.
    fn begin(&mut self, frame: u32) -> Result<Made, DetailError> {
        let base = self.base(frame)?;
        let mut grains = Grains::none(key(&self.settings));
        self.follow(&mut grains, &base, &[])?;
        let made = Made {
            written: true,
            grains: grains.len(),
            ..Made::default()
        };
        self.now = Some((grains, base));
        Ok(made)
    }

    /// Moves the grains of the frame before to `frame`; they were sampled at `since`.
    fn go_on(
        &mut self,
        (since, frame): (u32, u32),
        mut grains: Grains,
        before: Base,
    ) -> Result<Made, DetailError> {
        let base = self.base(frame)?;
        let fps = self.scene.fps;
        let (guides, jumped) = Guides::between(
            (&before.particles, &before.order),
            (&base.particles, &base.order),
            (1.0 / fps) as f32,
        );
        let interval = Interval {
            frame: frame - 1,
            fps,
            guides: &guides,
            bodies: (&before.meta.bodies, &base.meta.bodies),
            since,
        };
        let steps = self
            .advancer
            .advance(&self.scene.model, &mut grains, &interval)?;
        drop(before);
        self.follow(&mut grains, &base, &jumped)?;
        let made = Made {
            written: true,
            grains: grains.len(),
            steps,
            news: guides.news,
        };
        self.now = Some((grains, base));
        Ok(made)
    }

    /// Makes and removes grains, as the particles of a frame came and went.
    fn follow(
        &mut self,
        grains: &mut Grains,
        base: &Base,
        anew: &[u64],
    ) -> Result<(), DetailError> {
        self.walls.place_at(&self.scene.model, &base.meta)?;
        let particles = (&base.particles, &base.order[..]);
        follow(grains, &self.settings, particles, anew, &self.walls.solids)?;
        if self.storage == Storage::Compact {
            // Grains go on from what the frame holds, so that it makes no difference where a run is resumed.
            round_grains(grains);
        }
        Ok(())
    }

    fn write(&mut self, frame: u32, first: u32) -> Result<(), DetailError> {
        let stamp = self.stamp(first, frame)?;
        let stamp = format!("{first} {stamp:016x}");
        let notes = [(STAMP, stamp.as_str())];
        let path = self.to.frame_path(frame);
        let Some((grains, base)) = &self.now else {
            return Ok(());
        };
        let compression = self.scene.compression;
        atomic::write(&path, |file| match self.storage {
            Storage::Full => write_full(file, &base.meta, grains, compression, &notes),
            Storage::Compact => write_compact(file, &base.meta, grains, compression, &notes),
        })
        .map_err(|source| DetailError::Write { path, source })
    }

    /// Where the grains that are there for `frame` were sampled; `None` where there are none, or made from something else.
    fn first_of(&mut self, frame: u32) -> Option<u32> {
        let note = self.to.frame_note(frame, STAMP).ok()??;
        let (first, hash) = note.split_once(' ')?;
        let first = first.parse().ok().filter(|first| *first <= frame)?;
        let stamp = self.stamp(first, frame).ok()?;
        (format!("{stamp:016x}") == hash).then_some(first)
    }

    /// A number that is the same exactly where the grains are: of `frame`, sampled at `first`.
    fn stamp(&mut self, first: u32, frame: u32) -> Result<u64, DetailError> {
        let known = self
            .stamps
            .range((first, first)..=(first, frame))
            .next_back();
        let (mut at, mut stamp) = match known {
            Some(((_, known), stamp)) => (known + 1, *stamp),
            None => {
                let about = (VERSION, &self.settings, self.storage, self.scene.identity);
                (
                    first,
                    xxhash_rust::xxh3::xxh3_64(format!("{about:?}").as_bytes()),
                )
            }
        };
        while at <= frame {
            let mut hash = Xxh3::new();
            hash.update(&stamp.to_le_bytes());
            hash.update(self.run.frame_digest(at)?.as_bytes());
            stamp = hash.digest();
            self.stamps.insert((first, at), stamp);
            at += 1;
        }
        Ok(stamp)
    }
}

/// Writes grains as a frame of particles, piece by piece.
fn write_full(
    to: impl Write,
    meta: &FrameMeta,
    grains: &Grains,
    compression: Compression,
    notes: &[(&str, &str)],
) -> io::Result<()> {
    let mut columns: Vec<ColumnSpec> = Particles::COLUMNS.to_vec();
    columns.extend([SEED, ORIENTATION]);
    let mut writer =
        FrameWriter::of_columns(to, meta, &columns, compression).map_err(disk_error)?;
    let pieces = grains.pieces(BATCH);
    for some in pieces.chunks(AT_ONCE) {
        let rows: Vec<Particles> = some
            .par_iter()
            .map(|(bunches, all)| grains.particles(bunches.clone(), all.clone()))
            .collect();
        for rows in rows {
            writer.rows(&rows.raw()).map_err(disk_error)?;
        }
    }
    if pieces.is_empty() {
        let none = grains.particles(0..0, 0..0);
        writer.rows(&none.raw()).map_err(disk_error)?;
    }
    writer.finish(notes).map_err(disk_error)
}
