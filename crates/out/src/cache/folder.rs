//! The folder of a run: whose it is, what is in it, who may write to it.

use super::frame::{self, CHECKSUM, Frame, FrameError};
use super::toml_text;
use barchan_base::column::ColumnSpec;
use barchan_sim::atomic;
use barchan_sim::checkpoint::{self, CheckpointError};
use barchan_sim::scene::{self, Asked, Scene, SceneError};
use barchan_sim::state::State;
use serde_json::{Value, json};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader};
use std::path::{Component, Path, PathBuf};

/// A run's folder.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Held while someone writes; the system lets go of it even after a crash.
    lock: Option<File>,
}

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds something else.
    #[error("{path} is not empty and is not a run of Barchan; choose another folder with -o")]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// It holds another scene's run.
    #[error(
        "{path} holds a run of another scene, or of this scene with other parameters (scene {what}); \
         choose another folder with -o, or add --fresh to replace it"
    )]
    OtherScene {
        /// The folder.
        path: PathBuf,
        /// What the folder's record says it is.
        what: String,
    },
    /// Someone else is at it.
    #[error("another barchan is writing to {path}; wait for it, or choose another folder with -o")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Every checkpoint is unusable.
    #[error("the checkpoints in {path} cannot be used: {reason}; add --fresh to start over")]
    Checkpoints {
        /// The folder.
        path: PathBuf,
        /// What is wrong with each.
        reason: String,
    },
    /// There is no run.
    #[error("{path} is not the folder of a run: it has no run.toml and no frames")]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// The disk says no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// What `run.toml` tells.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The scene.
    pub scene: &'a Scene,
    /// Threads used.
    pub threads: usize,
    /// `running`, `interrupted` or `done`.
    pub status: &'static str,
    /// Frames completed.
    pub frames_done: u32,
    /// Particles at the last frame.
    pub particles: usize,
    /// Seconds of simulating, all sessions of the run together.
    pub wall_seconds: f64,
    /// Counts of emitters, sinks and quarantine.
    pub tally: Value,
}

impl<'a> Record<'a> {
    /// Of a run of `scene` that has nothing yet.
    pub fn starting(scene: &'a Scene, threads: usize) -> Self {
        Self {
            scene,
            threads,
            status: "starting",
            frames_done: 0,
            particles: 0,
            wall_seconds: 0.0,
            tally: json!({}),
        }
    }
}

/// Key of the folder that the scene's file is in, seen from the run's.
const SCENE_FOLDER: &str = "scene_folder";
/// Digits in a frame's file name.
const DIGITS: usize = 6;

/// The way from one folder to another. The system's own answer, for a link may stand anywhere in between.
fn way(from: &Path, to: &Path) -> io::Result<PathBuf> {
    let (from, to) = (from.canonicalize()?, to.canonicalize()?);
    let both = from.components().zip(to.components());
    let shared = both.take_while(|(a, b)| a == b).count();
    // On another disk of Windows there is no way but its own name.
    if shared == 0 {
        return Ok(to);
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    Ok(up.chain(to.components().skip(shared)).collect())
}

/// The record's line about the scene's folder.
fn folder_line(folder: &Path) -> String {
    toml_text::lines(&json!({ SCENE_FOLDER: folder.display().to_string() }))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io {
        doing,
        path,
        source,
    }
}

impl RunFolder {
    /// Opens an existing run to read it.
    ///
    /// # Errors
    /// If it is not a run's folder.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let folder = Self {
            path: path.to_owned(),
            lock: None,
        };
        if !folder.record_path().is_file() && folder.frames()?.is_empty() {
            return Err(FolderError::NoRun {
                path: path.to_owned(),
            });
        }
        Ok(folder)
    }

    /// Prepares a folder for the run of `record`, to begin or to go on; `fresh` throws an earlier run away first.
    ///
    /// # Errors
    /// If the folder is someone else's, or cannot be written. Nothing is changed then.
    pub fn prepare(path: &Path, record: &Record<'_>, fresh: bool) -> Result<Self, FolderError> {
        let mut folder = Self {
            path: path.to_owned(),
            lock: None,
        };
        folder.check_owner(record.scene, fresh)?;
        fs::create_dir_all(path).map_err(io_error("create", path))?;
        folder.lock()?;
        if fresh {
            folder.clear()?;
        }
        // Before anything else, so that a folder of ours can always be told from others, whenever a run is killed.
        folder.write_record(record)?;
        for sub in [folder.frames_dir(), folder.checkpoint_dir()] {
            fs::create_dir_all(&sub).map_err(io_error("create", &sub))?;
            atomic::sweep(&sub);
        }
        atomic::sweep(path);
        Ok(folder)
    }

    fn check_owner(&self, scene: &Scene, fresh: bool) -> Result<(), FolderError> {
        let path = self.path.clone();
        let empty = match fs::read_dir(&self.path) {
            Ok(mut entries) => entries.all(|entry| {
                entry.is_ok_and(|entry| {
                    entry.file_name() == ".lock" || atomic::is_part(&entry.path())
                })
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io_error("open", &self.path)(error)),
        };
        if empty {
            return Ok(());
        }
        let Some(identity) = self.recorded("identity") else {
            return Err(FolderError::NotOurs { path });
        };
        if !fresh && identity != format!("{:032x}", scene.identity) {
            let what = self.recorded("scene").unwrap_or("unknown".into());
            return Err(FolderError::OtherScene { path, what });
        }
        Ok(())
    }

    /// Keeps others from writing here, for as long as this stands.
    ///
    /// # Errors
    /// If someone else writes here.
    pub fn lock(&mut self) -> Result<(), FolderError> {
        let path = self.path.join(".lock");
        let file = File::create(&path).map_err(io_error("write", &path))?;
        match file.try_lock() {
            Ok(()) => {
                self.lock = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(FolderError::Locked {
                path: self.path.clone(),
            }),
            // Some network disks know no locks; better to run than to refuse.
            Err(TryLockError::Error(_)) => Ok(()),
        }
    }

    /// Removes what an earlier run left, and nothing else.
    fn clear(&self) -> Result<(), FolderError> {
        for sub in [
            self.frames_dir(),
            self.checkpoint_dir(),
            self.path.join("detail"),
            self.meshes_dir(),
            self.path.join("export"),
            self.images_dir(),
        ] {
            if sub.exists() {
                fs::remove_dir_all(&sub).map_err(io_error("remove", &sub))?;
            }
        }
        for file in [self.record_path(), self.report_path()] {
            if file.exists() {
                fs::remove_file(&file).map_err(io_error("remove", &file))?;
            }
        }
        Ok(())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn frames_dir(&self) -> PathBuf {
        self.path.join("frames")
    }

    /// Where surface meshes go.
    pub fn meshes_dir(&self) -> PathBuf {
        self.path.join("meshes")
    }

    /// File of the surface of frame `frame`.
    pub fn mesh_path(&self, frame: u32) -> PathBuf {
        self.meshes_dir().join(format!("{frame:0DIGITS$}.ply"))
    }

    fn checkpoint_dir(&self) -> PathBuf {
        self.path.join("checkpoint")
    }

    fn record_path(&self) -> PathBuf {
        self.path.join("run.toml")
    }

    /// Where pictures go.
    pub fn images_dir(&self) -> PathBuf {
        self.path.join("images")
    }

    /// The report, a line a step.
    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.jsonl")
    }

    /// File of frame `frame`.
    pub fn frame_path(&self, frame: u32) -> PathBuf {
        self.frames_dir().join(format!("{frame:0DIGITS$}.arrow"))
    }

    /// Reads frame `frame`: all who want a frame of a run ask here, so that no file is taken for another one.
    ///
    /// # Errors
    /// If its file cannot be read, is damaged, or is another frame.
    pub fn read_frame(&self, frame: u32) -> Result<Frame, FrameError> {
        let path = self.frame_path(frame);
        let read = frame::read_frame(&path)?;
        frame::check_number(&path, read.meta.frame, frame)?;
        Ok(read)
    }

    /// What the end of the file of frame `frame` says under `key`, without reading the rest.
    ///
    /// # Errors
    /// If it cannot be read, or the file is another frame.
    pub(crate) fn frame_note(&self, frame: u32, key: &str) -> Result<Option<String>, FrameError> {
        frame::frame_note(&self.frame_path(frame), frame, key)
    }

    /// The checksum that the file of frame `frame` ends with, without reading the rest: tells one frame's content from another's.
    ///
    /// # Errors
    /// If it cannot be read, has none, or is another frame.
    pub fn frame_digest(&self, frame: u32) -> Result<String, FrameError> {
        self.frame_note(frame, CHECKSUM)?
            .ok_or_else(|| FrameError::Damaged {
                path: self.frame_path(frame),
                reason: "it has no checksum".into(),
            })
    }

    /// File of the checkpoint at `frame` and `step`.
    pub fn checkpoint_path(&self, step: u64) -> PathBuf {
        self.checkpoint_dir().join(format!("{step:012}.ckpt"))
    }

    /// Numbers of the frames on disk, in order.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn frames(&self) -> Result<Vec<u32>, FolderError> {
        let number = |name: &str| name.strip_suffix(".arrow")?.parse().ok();
        self.list(&self.frames_dir(), number)
    }

    fn list<N: Ord>(
        &self,
        dir: &Path,
        number: impl Fn(&str) -> Option<N>,
    ) -> Result<Vec<N>, FolderError> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", dir)(error)),
        };
        let names = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut numbers: Vec<N> = names.filter_map(|name| number(&name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn checkpoints(&self) -> Result<Vec<u64>, FolderError> {
        self.list(&self.checkpoint_dir(), |name| {
            name.strip_suffix(".ckpt")?.parse().ok()
        })
    }

    /// Removes all checkpoints but the newest `keep`.
    pub fn prune_checkpoints(&self, keep: usize) {
        let steps = self.checkpoints().unwrap_or_default();
        for step in steps.iter().rev().skip(keep) {
            // One too many does no harm.
            let _ = fs::remove_file(self.checkpoint_path(*step));
        }
    }

    /// The newest usable checkpoint, with what its coupling saved and a word about newer ones that were not usable;
    /// `None` if there are no checkpoints.
    ///
    /// # Errors
    /// If there are checkpoints but none is usable.
    #[allow(clippy::type_complexity)] // three plain things, named above
    pub fn resume(
        &self,
        scene: &Scene,
        columns: (&[ColumnSpec], &[ColumnSpec]),
    ) -> Result<Option<(State, Vec<u8>, Vec<String>)>, FolderError> {
        let mut refused = Vec::new();
        for step in self.checkpoints()?.into_iter().rev() {
            let path = self.checkpoint_path(step);
            match Self::read_checkpoint(&path, scene, columns) {
                Ok((state, coupling)) => return Ok(Some((state, coupling, refused))),
                Err(error) => refused.push(format!("{}: {error}", path.display())),
            }
        }
        if refused.is_empty() {
            return Ok(None);
        }
        Err(FolderError::Checkpoints {
            path: self.path.clone(),
            reason: refused.join("; "),
        })
    }

    fn read_checkpoint(
        path: &Path,
        scene: &Scene,
        columns: (&[ColumnSpec], &[ColumnSpec]),
    ) -> Result<(State, Vec<u8>), CheckpointError> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        checkpoint::read(&mut file, scene, columns)
    }

    /// Cuts the report back to the steps up to `step`, so that resumed steps are not told twice.
    ///
    /// # Errors
    /// If it cannot be rewritten.
    pub fn rewind_report(&self, step: u64) -> Result<(), FolderError> {
        let path = self.report_path();
        let Ok(text) = fs::read_to_string(&path) else {
            return Ok(());
        };
        let number = |line: &str| {
            serde_json::from_str::<Value>(line)
                .ok()?
                .get("step")?
                .as_u64()
        };
        let kept: String = text
            .lines()
            .filter(|line| number(line).is_some_and(|n| n <= step))
            .map(|line| format!("{line}\n"))
            .collect();
        atomic::write_bytes(&path, kept.as_bytes()).map_err(io_error("write", &path))
    }

    /// Writes `run.toml`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_record(&self, record: &Record<'_>) -> Result<(), FolderError> {
        let scene = record.scene;
        let parent = scene.path.parent().unwrap_or(Path::new(""));
        let folder = way(&self.path, &Path::new(".").join(parent));
        let folder = folder.map_or(String::new(), |folder| folder_line(&folder));
        let head = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "scene": scene.path.display().to_string(),
            "identity": format!("{:032x}", scene.identity),
            "method": scene.method.word(),
            "status": record.status,
            "frames_done": record.frames_done,
            "particles": record.particles,
            "threads": record.threads,
            "seed": scene.model.seed,
            "wall_seconds": (record.wall_seconds * 1000.0).round() / 1000.0,
            "machine": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        });
        let text = format!(
            "# What ran here; written by Barchan.\n{}{folder}\n[tally]\n{}\n[parameters] # final values, SI and degrees\n{}",
            toml_text::lines(&head),
            toml_text::lines(&record.tally),
            toml_text::lines(&scene.parameters)
        );
        let path = self.record_path();
        atomic::write_bytes(&path, text.as_bytes()).map_err(io_error("write", &path))
    }

    /// The text of `run.toml`; empty if there is none.
    pub fn record(&self) -> String {
        fs::read_to_string(self.record_path()).unwrap_or_default()
    }

    /// The text of `run.toml` for the folder `to`, such that the scene is found from there as well.
    pub fn record_for(&self, to: &Path) -> String {
        let record = self.record();
        let Some(folder) = self.recorded(SCENE_FOLDER) else {
            return record;
        };
        match way(to, &self.path.join(&folder)) {
            Ok(moved) => record.replacen(&folder_line(folder.as_ref()), &folder_line(&moved), 1),
            Err(_) => record,
        }
    }

    /// The scene's file as seen from the run's folder; where it is not there, as it was named.
    fn scene_file(&self) -> PathBuf {
        let file: PathBuf = self.recorded("scene").unwrap_or_default().into();
        let folder = self
            .recorded(SCENE_FOLDER)
            .map(|folder| self.path.join(folder));
        let there =
            folder.and_then(|folder| Some(folder.canonicalize().ok()?.join(file.file_name()?)));
        there.filter(|file| file.is_file()).unwrap_or(file)
    }

    /// The scene that ran here, from the final parameters in `run.toml`: what was simulated, whatever became of the scene's file.
    /// The files it names are read again.
    ///
    /// # Errors
    /// If there is no record, or it cannot be read as a scene any more.
    pub fn scene(&self) -> Result<Scene, SceneError> {
        let path = self.record_path();
        let record = self.record();
        let parameters = record.split_once("\n[parameters]");
        let parameters = parameters.and_then(|(_, rest)| rest.split_once('\n'));
        match parameters {
            Some((_, text)) => scene::parse(text, &self.scene_file(), &[]),
            None => Err(SceneError::whole(
                &path.display().to_string(),
                "there is no record of the scene that ran here",
                "run the scene again with the same folder",
            )),
        }
    }

    /// What stages are asked to make of the frames, with `overrides`: as the scene's file says now, for it is changed after the run.
    pub fn asked(&self, overrides: &[String]) -> Asked {
        Asked {
            file: self.scene_file(),
            record: self.record(),
            overrides: overrides.to_vec(),
        }
    }

    /// What `run.toml` says of `key`, if it says anything.
    pub fn recorded(&self, key: &str) -> Option<String> {
        let record = self.record();
        let value = |line: &str| {
            let said = line.strip_prefix(key)?.trim().strip_prefix("= ")?;
            // Its texts are JSON's, too.
            Some(serde_json::from_str(said).unwrap_or_else(|_| said.to_owned()))
        };
        record
            .lines()
            .take_while(|line| !line.starts_with('['))
            .find_map(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: &str = "schema = 1\nframes = 1\n[solver]\nmethod = \"ballistic\"\nresolution = 0.1\n[materials.sand]\npreset = \"dry-sand\"\n\
                         [[fill]]\nmaterial = \"sand\"\nshape = { box = { size = [1, 1, 1], at = [5, 5, 5] } }\n\
                         [[body]]\nname = \"rock\"\nshape = { mesh = { file = \"rock.obj\" } }\n";
    const ROCK: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";

    /// `to`, as seen from the current folder.
    fn from_here(to: &Path) -> PathBuf {
        let here = std::env::current_dir().unwrap();
        let up = here.components().skip(1).map(|_| "..");
        up.collect::<PathBuf>().join(to.strip_prefix("/").unwrap())
    }

    #[test]
    fn a_run_and_its_scene_are_moved_together() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (old, new) = (place.join("old"), place.join("new"));
        fs::create_dir(&old).unwrap();
        fs::write(old.join("scene.toml"), SCENE).unwrap();
        fs::write(old.join("rock.obj"), ROCK).unwrap();
        let scene = scene::load(&from_here(&old.join("scene.toml")), &[]).unwrap();
        let record = Record::starting(&scene, 1);
        drop(RunFolder::prepare(&old.join("out/run"), &record, false).unwrap());
        fs::rename(&old, &new).unwrap();
        let run = RunFolder::open(&new.join("out/run")).unwrap();
        assert_eq!(run.scene().unwrap().identity, scene.identity);
        // A copy of the record finds it, too.
        let deeper = run.path().join("detail");
        fs::create_dir_all(deeper.join("frames")).unwrap();
        fs::write(deeper.join("run.toml"), run.record_for(&deeper)).unwrap();
        assert!(RunFolder::open(&deeper).unwrap().scene().is_ok());
    }
    #[test]
    fn a_frame_under_another_name_is_refused_and_what_is_no_frame_has_no_digest() {
        let place = tempfile::tempdir().unwrap();
        let scene = scene::parse(SCENE.split("[[body]]").next().unwrap(), "s".as_ref(), &[]);
        let meta = frame::FrameMeta::of(&scene.unwrap(), 4);
        let mut bytes = Vec::new();
        frame::write_frame(
            &mut bytes,
            &meta,
            &Default::default(),
            scene::Compression::None,
        )
        .unwrap();
        fs::create_dir(place.path().join("frames")).unwrap();
        let write = |bytes: &[u8]| {
            for frame in [3, 4] {
                let name = format!("frames/{frame:06}.arrow");
                fs::write(place.path().join(name), bytes).unwrap();
            }
        };
        write(&bytes);
        let run = RunFolder::open(place.path()).unwrap();
        assert_eq!(run.read_frame(4).unwrap().meta.frame, 4);
        assert!(run.frame_digest(4).is_ok());
        let refused = [
            run.read_frame(3).map(drop),
            run.frame_digest(3).map(drop),
            run.frame_note(3, "barchan.none").map(drop),
        ];
        for error in refused.map(Result::unwrap_err) {
            let told = error.to_string();
            assert!(
                told.contains("000003.arrow is frame 4, not frame 3"),
                "{told}"
            );
        }
        for length in [0, 3, 9, 10, 11, 100, bytes.len() - 1] {
            write(&bytes[..length]);
            let error = run.frame_digest(4).unwrap_err();
            assert!(matches!(error, FrameError::Damaged { .. }), "{length}");
        }
    }
}
