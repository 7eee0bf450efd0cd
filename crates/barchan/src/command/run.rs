//! `barchan run`: a scene becomes a folder of frames; given again, it goes on.

use super::check::{admit, allow, estimate_run};
use super::detail::make_grains;
use super::frames::FrameRange;
use super::progress::{FrameDone, Progress, Voice};
use super::render::make_pictures;
use super::say::{duration, out, talk};
use super::surface::make_surfaces;
use super::{Failure, SceneArgs, default_folder};
use barchan_out::cache::{CacheRecorder, FrameError, Record, RunFolder};
use barchan_out::export::What;
use barchan_sim::coupling::{Coupling, coupling};
use barchan_sim::run::{Outcome, Run, RunError};
use barchan_sim::scene::{Format, Scene, What as Drawn};
use barchan_sim::solver::Solver;
use barchan_sim::start::start;
use barchan_sim::state::State;
use serde_json::json;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Arguments of `run`.
#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    scene: SceneArgs,
    /// Folder of the run [default: out/NAME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Stop after frame B; the scene's own number of frames if left out
    #[arg(long, value_name = "A..B")]
    frames: Option<FrameRange>,
    /// Throw away an earlier run in the folder and start over
    #[arg(long)]
    fresh: bool,
    /// Make no fine grains, whatever the scene says
    #[arg(long)]
    no_detail: bool,
    /// Make no pictures, whatever the scene says
    #[arg(long)]
    no_render: bool,
    /// Tell of each frame as a line of JSON on stdout
    #[arg(long)]
    json: bool,
    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Tell of each step
    #[arg(short, long)]
    verbose: bool,
}

impl RunArgs {
    fn voice(&self) -> Voice {
        match (self.quiet, self.verbose) {
            (true, _) => Voice::Quiet,
            (_, true) => Voice::Verbose,
            _ => Voice::Normal,
        }
    }
}

impl RunArgs {
    /// A run into `output` that is only simulated: no fine grains, no pictures.
    pub fn plain(scene: SceneArgs, output: PathBuf, frames: Option<FrameRange>) -> Self {
        Self {
            scene,
            output: Some(output),
            frames,
            fresh: false,
            no_detail: true,
            no_render: true,
            json: false,
            quiet: false,
            verbose: false,
        }
    }
}

/// Signals within this time are one wish: `timeout` sends its own twice, to the program and to its group.
const ONCE: Duration = Duration::from_millis(500);

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

/// True while frames are simulated, and a stop waits for the step under way. What is made of the frames afterwards is written
/// file by file, whole or not at all, and is gone on with by the same command: it needs no farewell.
static SIMULATES: AtomicBool = AtomicBool::new(false);

/// Everything a run is made of.
struct Job {
    scene: Scene,
    folder: Arc<RunFolder>,
    solver: Box<dyn Solver>,
    coupling: Box<dyn Coupling>,
    state: State,
    last: u32,
    threads: usize,
    resumed: bool,
    /// Seconds that earlier sessions of this run took.
    seconds_before: f64,
}

/// True once Ctrl-C was pressed.
pub fn interrupted() -> bool {
    STOP.load(Ordering::SeqCst)
}

/// Runs `run`.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    args.scene.start_threads();
    run_scene(args.scene.load()?, args)
}

/// Runs `scene` as `args` say.
pub fn run_scene(scene: Scene, args: &RunArgs) -> Result<(), Failure> {
    let mut job = prepare(scene, args)?;
    watch_for_interrupts();
    let total = f64::from(job.state.clock.frame);
    let finished = job.state.clock.frame >= job.last;
    let progress = RefCell::new(Progress::new(
        "run",
        job.state.clock.frame,
        job.last,
        args.voice(),
        args.json,
    ));
    if finished {
        progress.borrow().say(&format!(
            "all {total} frames are there already; add --fresh to make them again"
        ));
    } else if job.resumed {
        progress
            .borrow()
            .say(&format!("going on after frame {total} of {}", job.last));
    }
    job.record("running", 0.0)?;
    SIMULATES.store(true, Ordering::SeqCst);
    let result = simulate(&mut job, &progress);
    SIMULATES.store(false, Ordering::SeqCst);
    let mut progress = progress.into_inner();
    progress.finish();
    let outcome = result.map_err(|error| with_way_back(&job, error))?;
    let status = if outcome == Outcome::Done {
        "done"
    } else {
        "interrupted"
    };
    job.record(status, progress.seconds())?;
    // A stop during the very last step comes too late for the frames, but not for what is made of them.
    if interrupted() {
        let frame = job.state.clock.frame;
        return Err(Failure::Run(format!(
            "interrupted after frame {frame} of {}; the state is saved in {}. Give the same command again to go on",
            job.last,
            job.folder.path().display()
        )));
    }
    detail_all(&job, &mut progress)?;
    surface_all(&job, &progress)?;
    export_all(&job, &progress)?;
    render_all(&job, args)?;
    report_done(&job, args, &progress);
    Ok(())
}

fn prepare(mut scene: Scene, args: &RunArgs) -> Result<Job, Failure> {
    let threads = rayon::current_num_threads();
    scene.detail = scene.detail.filter(|_| !args.no_detail);
    let solver = barchan_solvers::solver(&scene);
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| default_folder(&scene));
    let last = args
        .frames
        .and_then(|range| range.last)
        .unwrap_or(scene.frames);
    scene.frames = last;
    allow(&scene, &*solver)?;
    let cost = estimate_run(&scene, &*solver, threads);
    admit(&scene, &cost, &path, args.fresh)?;
    let before = seconds_before(&path);
    let record = Record {
        wall_seconds: before,
        ..Record::starting(&scene, threads)
    };
    let folder = RunFolder::prepare(&path, &record, args.fresh).map_err(Failure::input)?;
    let mut coupling = coupling(&scene.model);
    let resumed = resume(&folder, &scene, &*solver, &mut *coupling)?;
    let was_resumed = resumed.is_some();
    let state = match resumed {
        Some(state) => state,
        None => {
            let mut state =
                start(&scene.model, scene.fps, solver.columns()).map_err(Failure::input)?;
            coupling.show(&scene.model, &mut state.solids);
            state
        }
    };
    check_first_frame(args.frames, &state)?;
    Ok(Job {
        scene,
        folder: Arc::new(folder),
        solver,
        coupling,
        state,
        last,
        threads,
        resumed: was_resumed,
        seconds_before: if was_resumed { before } else { 0.0 },
    })
}

/// Seconds that the run in `path` took so far, if there is one.
fn seconds_before(path: &Path) -> f64 {
    let folder = RunFolder::open(path).ok();
    let recorded = folder.and_then(|folder| folder.recorded("wall_seconds"));
    recorded.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// The state of the newest usable checkpoint, if there is one and every frame before it is on disk.
fn resume(
    folder: &RunFolder,
    scene: &Scene,
    solver: &dyn Solver,
    coupling: &mut dyn Coupling,
) -> Result<Option<State>, Failure> {
    let found = folder
        .resume(scene, (solver.columns(), solver.memory()))
        .map_err(Failure::run)?;
    let Some((state, saved, refused)) = found else {
        return Ok(None);
    };
    for reason in refused {
        talk(&format!(
            "warning: {reason}; going back to the checkpoint before it"
        ));
    }
    let frames = folder.frames().map_err(Failure::run)?;
    if let Some(missing) =
        (0..=state.clock.frame).find(|frame| frames.binary_search(frame).is_err())
    {
        talk(&format!(
            "frame {missing} is missing; simulating again from the start to make it"
        ));
        folder.rewind_report(0).map_err(Failure::run)?;
        return Ok(None);
    }
    check_names(folder, state.clock.frame)?;
    if !coupling.restore(&saved) {
        let message =
            "the checkpoint holds bodies that this version cannot move; add --fresh to start over";
        return Err(Failure::Run(message.into()));
    }
    folder
        .rewind_report(state.clock.step)
        .map_err(Failure::run)?;
    Ok(Some(state))
}

/// Refuses frames up to `last` whose files have each other's names. Damage is for those who read them to tell of.
fn check_names(folder: &RunFolder, last: u32) -> Result<(), Failure> {
    let checks = (0..=last).filter_map(|frame| folder.frame_digest(frame).err());
    let mut misnamed = checks.filter(|error| matches!(error, FrameError::Misnamed { .. }));
    misnamed
        .next()
        .map_or(Ok(()), |error| Err(Failure::run(error)))
}

/// Frames follow from each other: a range cannot begin in the future.
fn check_first_frame(frames: Option<FrameRange>, state: &State) -> Result<(), Failure> {
    match frames {
        Some(range) if range.first > state.clock.frame + 1 => Err(Failure::Input(format!(
            "frame {} follows from the frames before it, of which only {} are there; run --frames ..{} first",
            range.first,
            state.clock.frame,
            range.first - 1
        ))),
        _ => Ok(()),
    }
}

fn simulate(job: &mut Job, progress: &RefCell<Progress>) -> Result<Outcome, RunError> {
    let mut recorder = CacheRecorder::new(
        job.folder.clone(),
        &job.scene,
        job.solver.private_columns(),
        |line| {
            progress
                .borrow_mut()
                .step(line.step, line.time, line.dt, line.particles);
        },
        |state, line| {
            progress.borrow_mut().frame(&FrameDone {
                frame: state.clock.frame,
                time: line.time,
                particles: line.particles,
            });
        },
    );
    if !job.resumed {
        recorder.start(&job.state, &*job.coupling)?;
    }
    let mut run = Run {
        model: &job.scene.model,
        solver: &mut *job.solver,
        coupling: &mut *job.coupling,
        max_step: job.scene.max_step,
        stop: &STOP,
    };
    let outcome = run.until(job.last, &mut job.state, &mut recorder);
    // What is under way must reach the disk even if the run failed; the run's own error comes first.
    let written = recorder.finish();
    let outcome = outcome?;
    written?;
    Ok(outcome)
}

/// A failed run's error, with the command that leads back to just before it.
fn with_way_back(job: &Job, error: RunError) -> Failure {
    let hint = match &error {
        RunError::Record(_) => String::new(),
        RunError::Step { frame, .. } => format!(
            "\nthe frames before it are whole; to look closer: barchan run {} --frames ..{} -v",
            job.scene.path.display(),
            frame
        ),
        RunError::Body(_) => {
            "\nthe frames before it are whole; mend the file and give the same command again".into()
        }
    };
    Failure::Run(format!("{error}{hint}"))
}

impl Job {
    fn record(&self, status: &'static str, wall_seconds: f64) -> Result<(), Failure> {
        let record = Record {
            scene: &self.scene,
            threads: self.threads,
            status,
            frames_done: self.state.clock.frame,
            particles: self.state.particles.len(),
            wall_seconds: self.seconds_before + wall_seconds,
            tally: json!(self.state.tally),
        };
        self.folder.write_record(&record).map_err(Failure::run)
    }
}

fn watch_for_interrupts() {
    // Fails only if a handler is set already: this one, where a command runs several scenes.
    let _ = ctrlc::set_handler(|| {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        let first = FIRST.get_or_init(Instant::now);
        let again = STOP.swap(true, Ordering::SeqCst);
        if again && first.elapsed() < ONCE {
            return;
        }
        let simulates = SIMULATES.load(Ordering::SeqCst);
        if !again && !simulates {
            talk("\ninterrupted; what is there is whole. Give the same command again to go on");
        }
        if again || !simulates {
            // Asked twice, or nothing to wait for: go at once. What is on disk is whole.
            std::process::exit(1);
        }
    });
}

fn detail_all(job: &Job, progress: &mut Progress) -> Result<(), Failure> {
    let Some(doc) = &job.scene.detail else {
        return Ok(());
    };
    let frames = job.folder.frames().map_err(Failure::run)?;
    make_grains(&job.folder, &job.scene, doc, &frames, progress, |_, _| {})
}

fn surface_all(job: &Job, progress: &Progress) -> Result<(), Failure> {
    let Some(doc) = &job.scene.surface else {
        return Ok(());
    };
    let frames = job.folder.frames().map_err(Failure::run)?;
    make_surfaces(&job.folder, doc, &frames, progress, |_, _| {})
}

fn export_all(job: &Job, progress: &Progress) -> Result<(), Failure> {
    for &format in &job.scene.exports {
        let frames = job.folder.frames().map_err(Failure::run)?;
        let to = job.folder.path().join("export").join(format.word());
        progress.say(&format!(
            "exporting {} frames to {}",
            frames.len(),
            to.display()
        ));
        let export = barchan_out::export::Job {
            run: &job.folder,
            frames: &frames,
            what: What::Particles,
            format,
            to: &to,
        };
        let exported = barchan_out::export::export(&export, |_| {}).map_err(Failure::run)?;
        for problem in exported.problems {
            progress.say(&format!("warning: {problem}"));
        }
    }
    Ok(())
}

/// Makes the pictures that the scene asks for and that are not there yet, of the fine grains where it has some and no surface is to be drawn.
fn render_all(job: &Job, args: &RunArgs) -> Result<(), Failure> {
    let Some(settings) = job.scene.render.clone().filter(|_| !args.no_render) else {
        return Ok(());
    };
    let surface = match settings.what {
        Drawn::Auto => job.scene.surface.is_some(),
        Drawn::Grains => false,
        Drawn::Mesh => true,
    };
    let grains = (job.scene.detail.is_some() && !surface).then(|| job.folder.path().join("detail"));
    let grains = grains.map(|path| RunFolder::open(&path)).transpose();
    let grains = grains.map_err(Failure::run)?;
    let folder = grains.as_ref().unwrap_or(&job.folder);
    let frames = folder.frames().map_err(Failure::run)?;
    let voice = if args.json {
        Voice::Quiet
    } else {
        args.voice()
    };
    make_pictures(folder, &job.scene, settings, &frames, voice)
}

fn report_done(job: &Job, args: &RunArgs, progress: &Progress) {
    let (particles, quarantined) = (job.state.particles.len(), job.state.tally.quarantined);
    if args.json {
        let line = json!({
            "event": "done", "frames": job.last, "particles": particles, "seconds": progress.seconds(),
            "quarantined": quarantined, "folder": job.folder.path().display().to_string(),
        });
        out(&line.to_string());
        return;
    }
    if quarantined > 0 {
        progress.say(&format!(
            "warning: {quarantined} particles were lost and taken out; report.jsonl tells their ids"
        ));
    }
    let formats: Vec<&str> = Format::WORDS.to_vec();
    progress.say(&format!(
        "{} frames in {}: {}\n  look:   barchan render {}\n  count:  barchan stats {}\n  export: barchan export {} --format {} -o DIR",
        job.last,
        duration(progress.seconds()),
        job.folder.path().display(),
        job.folder.path().display(),
        job.folder.path().display(),
        job.folder.path().display(),
        formats.join("|")
    ));
}
