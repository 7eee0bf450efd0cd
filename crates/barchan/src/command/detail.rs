//! `barchan detail`: many small grains in place of each particle, frame by frame.

use super::progress::{FrameDone, Progress};
use super::say::{grouped, out};
use super::stage::StageArgs;
use super::stats::chosen;
use super::{Failure, FramesArg};
use barchan_out::cache::RunFolder;
use barchan_out::detail::{DetailError, Made, Settings, Stage, measure};
use barchan_sim::scene::{DetailDoc, Scene, SceneError};
use serde_json::json;

/// Arguments of `detail`.
#[derive(clap::Args)]
#[command(
    after_help = "Frames of grains go to detail/ in the run's folder, which render, export, stats and info take as they take a run's. \
                  What is not said here is as in the scene's [detail]."
)]
pub struct DetailArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Grains in place of each particle
    #[arg(long, value_name = "N")]
    grains: Option<String>,
    /// ihmsen or alduan
    #[arg(long)]
    rule: Option<String>,
    /// Make nothing, but tell of the frames that are there how evenly grains lie, as lines of JSON
    #[arg(long)]
    measure: bool,
}

impl DetailArgs {
    /// The options as changes to the scene's table, so that one reader checks them all.
    fn overrides(&self) -> Vec<String> {
        let options = [("grains_per_particle", &self.grains), ("rule", &self.rule)];
        self.stage.changes("detail", &options)
    }
}

/// Runs `detail`.
pub fn detail(args: &DetailArgs) -> Result<(), Failure> {
    let folder = args.stage.open()?;
    let (scene, doc) = scene_and_wish(&folder, &args.overrides()).map_err(Failure::Scene)?;
    if args.measure {
        return measure_grains(&folder, &scene, &doc, &args.stage.frames);
    }
    let frames = args.stage.chosen(&folder)?;
    let (first, last) = (frames[0], frames[frames.len() - 1]);
    let (voice, json) = (args.stage.voice(), args.stage.json);
    let mut progress = Progress::new("detail", first, last, voice, json);
    let told = |frame: u32, made: &Made| {
        if json {
            let line = json!({
                "event": "detail", "frame": frame, "written": made.written, "grains": made.grains,
                "steps": made.steps, "born": made.news.born, "gone": made.news.gone,
            });
            out(&line.to_string());
        }
    };
    let result = make_grains(&folder, &scene, &doc, &frames, &mut progress, told);
    progress.finish();
    result
}

/// The scene that ran, and the grains that are asked for, near the camera that is asked for.
fn scene_and_wish(folder: &RunFolder, set: &[String]) -> Result<(Scene, DetailDoc), SceneError> {
    let mut scene = folder.scene()?;
    let doc = folder.asked(set).detail()?;
    if doc.near.is_some() {
        scene.render = Some(folder.asked(&[]).render()?);
    }
    Ok((scene, doc))
}

/// Tells how evenly the grains of each frame lie; the first frame that is there is what others are compared with.
fn measure_grains(
    folder: &RunFolder,
    scene: &Scene,
    doc: &DetailDoc,
    frames: &FramesArg,
) -> Result<(), Failure> {
    let grains = RunFolder::open(&folder.path().join("detail")).map_err(Failure::input)?;
    let settings = Settings::new(doc, scene);
    let first = grains.frames().map_err(Failure::input)?[..1].to_vec();
    let mut start = None;
    for frame in first.into_iter().chain(chosen(&grains, frames)?) {
        let [base, fine] = [folder, &grains].map(|folder| folder.read_frame(frame));
        let (base, fine) = (base.map_err(Failure::run)?, fine.map_err(Failure::run)?);
        let figures = measure(&scene.model, &settings, &base, &fine).map_err(Failure::run)?;
        let Some(before) = start else {
            start = Some(figures.clumping);
            continue;
        };
        let line = json!({
            "frame": frame, "particles": base.particles.len(), "grains": figures.grains,
            "clumping": figures.clumping / before, "edge": figures.edge, "deepest_radii": figures.deepest,
            "boxes": figures.boxes, "edge_particles": figures.edge_particles, "fastest": figures.fastest,
        });
        out(&line.to_string());
    }
    Ok(())
}

/// Makes the grains of `frames`; `told` hears of each frame done.
pub fn make_grains(
    folder: &RunFolder,
    scene: &Scene,
    doc: &DetailDoc,
    frames: &[u32],
    progress: &mut Progress,
    mut told: impl FnMut(u32, &Made),
) -> Result<(), Failure> {
    let mut stage = Stage::new(folder, scene, doc).map_err(failure)?;
    let (mut written, mut there) = (0, 0);
    for &frame in frames {
        let made = stage.frame(frame).map_err(failure)?;
        written += usize::from(made.written);
        there += usize::from(!made.written);
        told(frame, &made);
        if made.written {
            note(frame, &made, progress);
            let time = f64::from(frame) / scene.fps;
            for step in 0..made.steps {
                progress.step(step.into(), time, doc.step.si, made.grains);
            }
            progress.frame(&FrameDone {
                frame,
                time,
                particles: made.grains,
            });
        }
    }
    let already = match there {
        0 => String::new(),
        there => format!(", {there} were there already"),
    };
    progress.say(&format!(
        "{written} frames of grains in {}{already}",
        stage.folder().path().display()
    ));
    Ok(())
}

/// What the user should know about a frame.
fn note(frame: u32, made: &Made, progress: &Progress) {
    let news = &made.news;
    let count = |count: usize| grouped(count as f64);
    if news.without_velocity {
        progress.say(&format!(
            "frame {frame}: its particles have moved, but their velocities are zero; grains follow the places alone"
        ));
    }
    if news.jumped > 0 {
        progress.say(&format!(
            "frame {frame}: {} particles are where they cannot have come to since the frame before; their grains begin anew",
            count(news.jumped)
        ));
    }
    if 2 * news.gone > news.before {
        progress.say(&format!(
            "frame {frame}: {} particles are gone and {} are new: grains follow ids, and most ids are not those of the frame before",
            count(news.gone),
            count(news.born)
        ));
    }
    if news.unusable > 0 {
        progress.say(&format!(
            "frame {frame}: {} particles of the frame before are nowhere or have no size, and lead no grains",
            count(news.unusable)
        ));
    }
}

fn failure(error: DetailError) -> Failure {
    match error {
        DetailError::TooMany { .. } => Failure::input(error),
        _ => Failure::run(error),
    }
}
