//! `barchan surface`: meshes around the material of each frame.

use super::Failure;
use super::progress::Progress;
use super::say::{grouped, out};
use super::stage::StageArgs;
use barchan_out::cache::RunFolder;
use barchan_out::surface::stage::{Made, Stage};
use barchan_sim::scene::SurfaceDoc;
use serde_json::json;

/// Arguments of `surface`.
#[derive(clap::Args)]
#[command(
    after_help = "Meshes go to meshes/ in the run's folder. What is not said here is as in the scene's [surface]."
)]
pub struct SurfaceArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// zhu-bridson, blobby, sph or anisotropic
    #[arg(long)]
    style: Option<String>,
    /// Distance between nodes of the grid, as "2 mm" [default: half the particles' spacing]
    #[arg(long, value_name = "LENGTH")]
    cell: Option<String>,
    /// Passes of smoothing
    #[arg(long, value_name = "N")]
    smoothing: Option<String>,
    /// Surfaces while a shutter is open as well, in frames after the frame, as 0..0.5
    #[arg(long, value_name = "OPEN..CLOSE", allow_hyphen_values = true)]
    shutter: Option<String>,
    /// How many while the shutter is open
    #[arg(long, value_name = "N")]
    samples: Option<String>,
    /// Formats of the files: ply, obj, stl, glb, vtk, several with commas between
    #[arg(long, value_name = "FORMATS", value_delimiter = ',')]
    format: Vec<String>,
}

impl SurfaceArgs {
    /// The options as changes to the scene's table, so that one reader checks them all.
    fn overrides(&self) -> Result<Vec<String>, Failure> {
        let shutter = self.shutter.as_ref().map(|range| {
            range.split_once("..").ok_or_else(|| {
                Failure::Input(format!(
                    "--shutter is written OPEN..CLOSE, as 0..0.5, not {range}"
                ))
            })
        });
        let (open, close) = shutter.transpose()?.unzip();
        let words: Vec<String> = self.format.iter().map(|word| format!("{word:?}")).collect();
        let formats = (!words.is_empty()).then(|| format!("[{}]", words.join(", ")));
        let options = [
            ("style", &self.style),
            ("cell", &self.cell),
            ("smoothing", &self.smoothing),
            ("shutter.open", &open.map(str::to_owned)),
            ("shutter.close", &close.map(str::to_owned)),
            ("shutter.samples", &self.samples),
            ("formats", &formats),
        ];
        Ok(self.stage.changes("surface", &options))
    }
}

/// Runs `surface`.
pub fn surface(args: &SurfaceArgs) -> Result<(), Failure> {
    let folder = args.stage.open()?;
    let asked = folder.asked(&args.overrides()?);
    let doc = asked.surface().map_err(Failure::Scene)?;
    let frames = args.stage.chosen(&folder)?;
    let (voice, json) = (args.stage.voice(), args.stage.json);
    let mut progress = Progress::new("surface", 0, frames.len() as u32, voice, json);
    let told = |frame: u32, made: &Made| {
        if json {
            let line = json!({
                "event": "surface", "frame": frame, "files": made.files, "particles": made.particles,
                "skipped": made.skipped, "triangles": made.triangles,
            });
            out(&line.to_string());
        }
    };
    let result = make_surfaces(&folder, &doc, &frames, &progress, told);
    progress.finish();
    result
}

/// Makes the surfaces of `frames`; `told` hears of each frame done. Frames that fail do not keep the others from being made.
pub fn make_surfaces(
    folder: &RunFolder,
    doc: &SurfaceDoc,
    frames: &[u32],
    progress: &Progress,
    mut told: impl FnMut(u32, &Made),
) -> Result<(), Failure> {
    let stage = Stage::new(folder, doc);
    let mut failures = Vec::new();
    let (mut files, mut there) = (0, 0);
    for (done, &frame) in (1..).zip(frames) {
        match stage.frame(frame) {
            Ok(made) => {
                files += made.files;
                there += usize::from(made.files == 0);
                note(frame, &made, progress);
                told(frame, &made);
            }
            Err(error) if error.is_for_all() => return Err(Failure::run(error)),
            Err(error) => failures.push(error.to_string()),
        }
        progress.tick(done);
    }
    stage.finish().map_err(Failure::run)?;
    let already = match there {
        0 => String::new(),
        there => format!(", {there} frames were there already"),
    };
    progress.say(&format!(
        "{files} mesh files in {}{already}",
        folder.meshes_dir().display()
    ));
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Failure::Run(failures.join("\n")))
    }
}

/// What the user should know about a frame.
fn note(frame: u32, made: &Made, progress: &Progress) {
    if made.skipped > 0 {
        progress.say(&format!(
            "frame {frame}: {} of {} particles left out: not finite, without a radius, or too far away",
            grouped(made.skipped as f64),
            grouped(made.particles as f64)
        ));
    }
    if made.files > 0 && made.triangles == 0 {
        progress.say(&format!("frame {frame}: no material, so its mesh is empty"));
    }
}
