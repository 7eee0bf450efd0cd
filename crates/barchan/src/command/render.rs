//! `barchan render`: frames become pictures, and pictures a movie.

use super::progress::{Progress, Voice};
use super::say::duration;
use super::stats::chosen;
use super::{Failure, FramesArg, one_of, start_threads};
use barchan_out::cache::RunFolder;
use barchan_out::render::{Outcome, RenderError, Stage};
use barchan_sim::scene::{CameraPath, Render, Scene, View, What, parse_size};
use glam::Vec3;
use std::path::PathBuf;

/// Arguments of `render`.
#[derive(clap::Args)]
pub struct RenderArgs {
    /// The run's folder
    folder: PathBuf,
    #[command(flatten)]
    frames: FramesArg,
    #[command(flatten)]
    look: LookArgs,
    /// Make no movie of the pictures, whatever the scene says
    #[arg(long, conflicts_with = "movie")]
    no_movie: bool,
    /// Make a movie of the pictures, whatever the scene says
    #[arg(long)]
    movie: bool,
    /// Change a key of the scene's render table, as in --set render.sun.elevation=20
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// What pictures look like, in place of what the scene says.
#[derive(clap::Args)]
pub struct LookArgs {
    /// Size in pixels, as 1280x720
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    size: Option<[u32; 2]>,
    /// Rays a pixel: more are smoother and take longer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    samples: Option<u32>,
    /// Stand at X,Y,Z and look at X,Y,Z, as 1,0.5,2:0,0.2,0, with a focal length in mm after another colon if need be
    #[arg(long, value_name = "AT:TO", value_parser = parse_camera, allow_hyphen_values = true)]
    camera: Option<View>,
    /// Colour by a column, such as speed
    #[arg(long, value_name = "COLUMN")]
    color: Option<String>,
    /// What to draw
    #[arg(long, value_parser = one_of(What::WORDS, What::from_word))]
    what: Option<What>,
}

fn parse_camera(text: &str) -> Result<View, String> {
    let wrong = || format!("\"{text}\" is not a camera such as 1,0.5,2:0,0.2,0");
    let vector = |part: &str| -> Option<Vec3> {
        let numbers: Vec<f32> = part
            .split(',')
            .map(|n| n.trim().parse().ok())
            .collect::<Option<_>>()?;
        Some(Vec3::from_array(numbers.try_into().ok()?)).filter(|v: &Vec3| v.is_finite())
    };
    let parts: Vec<&str> = text.split(':').collect();
    let focal: f32 = match parts.get(2) {
        Some(part) => part.trim().parse().map_err(|_| wrong())?,
        None => 35.0,
    };
    let view = match parts[..] {
        [at, to] | [at, to, _] => vector(at).zip(vector(to)),
        _ => None,
    };
    let (at, look_at) = view.ok_or_else(wrong)?;
    if at == look_at || !focal.is_finite() || focal <= 0.0 {
        return Err(format!(
            "{}; it must look somewhere, with a positive focal length",
            wrong()
        ));
    }
    Ok(View {
        at,
        look_at,
        focal: focal * 1e-3,
    })
}

impl LookArgs {
    /// Puts what was typed in place of what the scene says.
    pub fn apply(&self, settings: &mut Render) {
        settings.size = self.size.unwrap_or(settings.size);
        settings.samples = self.samples.unwrap_or(settings.samples);
        settings.what = self.what.unwrap_or(settings.what);
        if let Some(view) = self.camera {
            settings.camera = Some(CameraPath {
                keys: vec![(0.0, view)],
                aperture: 0.0,
                focus: None,
            });
        }
        if let Some(color) = &self.color {
            settings.color = Some(color.clone());
        }
    }
}

/// Runs `render`.
pub fn render(args: &RenderArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    let folder = RunFolder::open(&args.folder).map_err(Failure::input)?;
    let scene = folder.scene().map_err(Failure::Scene)?;
    let mut settings = folder.asked(&args.set).render().map_err(Failure::Scene)?;
    args.look.apply(&mut settings);
    settings.movie = (settings.movie || args.movie) && !args.no_movie;
    let frames = chosen(&folder, &args.frames)?;
    let voice = if args.quiet {
        Voice::Quiet
    } else {
        Voice::Normal
    };
    make_pictures(&folder, &scene, settings, &frames, voice)
}

/// Makes pictures of `frames`, and a movie where settings say so.
pub fn make_pictures(
    folder: &RunFolder,
    scene: &Scene,
    settings: Render,
    frames: &[u32],
    voice: Voice,
) -> Result<(), Failure> {
    let movie = settings.movie;
    let stage = Stage::new(folder, scene, settings).map_err(wrong_column_is_input)?;
    let mut progress = Progress::new("render", 0, frames.len() as u32, voice, false);
    let (mut made, mut kept, mut failed) = (0u32, 0u32, Vec::new());
    let mut pictures = Vec::new();
    let told = |number: u32, outcome: Outcome| {
        match outcome {
            Outcome::Made { left_out } => {
                made += 1;
                pictures.push(stage.path(number));
                if left_out > 0 {
                    progress.say(&format!(
                        "warning: frame {number}: {left_out} grains are not finite or too far off, and are not drawn"
                    ));
                }
            }
            Outcome::Kept => {
                kept += 1;
                pictures.push(stage.path(number));
            }
            Outcome::Failed(error) => failed.push(format!("frame {number}: {error}")),
        }
        progress.tick(made + kept + failed.len() as u32);
    };
    stage.make(frames, told).map_err(Failure::run)?;
    progress.finish();
    if movie && pictures.len() > 1 && failed.is_empty() {
        let movie = barchan_out::render::movie(folder.path(), &pictures, scene.fps)
            .map_err(Failure::run)?;
        progress.say(&format!("movie: {}", movie.display()));
    }
    let there = if kept > 0 {
        format!(", {kept} were there already")
    } else {
        String::new()
    };
    progress.say(&format!(
        "{made} pictures in {}{there}: {}",
        duration(progress.seconds()),
        folder.images_dir().display()
    ));
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(failed.join("\n")))
    }
}

fn wrong_column_is_input(error: RenderError) -> Failure {
    match error {
        RenderError::Column(_) | RenderError::NoFrames { .. } => Failure::input(error),
        _ => Failure::run(error),
    }
}
