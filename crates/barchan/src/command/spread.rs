//! `barchan spread`: grains that lie too dense on a surface, moved apart.

use super::Failure;
use super::progress::Progress;
use super::say::{grouped, out, talk};
use super::stage::StageArgs;
use barchan_base::mesh::load_mesh;
use barchan_out::cache::RunFolder;
use barchan_out::spread::{Made, On, StageError, frame};
use barchan_sim::atomic;
use barchan_sim::scene::SpreadOn;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `spread`.
#[derive(clap::Args)]
#[command(
    after_help = "The new frames make up a run of their own that every other command reads. What is not said here is as in the \
                  scene's [spread]."
)]
pub struct SpreadArgs {
    #[command(flatten)]
    stage: StageArgs,
    /// Folder for the new frames [default: spread/ in the run's folder]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The surface: bodies, material (that around all particles), or a mesh file
    #[arg(long, value_name = "WHAT")]
    on: Option<String>,
    /// Width of the faces that grains are counted on, as "2 mm" [default: four spacings]
    #[arg(long, value_name = "LENGTH")]
    cell: Option<String>,
    /// How far apart grains shall be [default: their diameter]
    #[arg(long, value_name = "LENGTH")]
    spacing: Option<String>,
    /// The most grains on a face, in place of a spacing
    #[arg(long, value_name = "N")]
    max_per_face: Option<String>,
    /// Passes at most
    #[arg(long, value_name = "N")]
    passes: Option<String>,
}

impl SpreadArgs {
    /// The options as changes to the scene's table, so that one reader checks them all.
    fn overrides(&self) -> Vec<String> {
        let named = |word: &&String| ["bodies", "material"].contains(&word.as_str());
        let on = self.on.as_ref().filter(named).cloned();
        let options = [
            ("on", &on),
            ("cell", &self.cell),
            ("spacing", &self.spacing),
            ("max_per_face", &self.max_per_face),
            ("passes", &self.passes),
        ];
        self.stage.changes("spread", &options)
    }

    /// The mesh file to spread on, if that is what was said.
    fn mesh(&self) -> Option<&Path> {
        let word = self.on.as_ref()?;
        (!["bodies", "material"].contains(&word.as_str())).then(|| Path::new(word))
    }
}

/// Runs `spread`.
pub fn spread(args: &SpreadArgs) -> Result<(), Failure> {
    let folder = args.stage.open()?;
    let asked = folder.asked(&args.overrides());
    let doc = asked.spread().map_err(Failure::Scene)?;
    let frames = args.stage.chosen(&folder)?;
    let to = args
        .output
        .clone()
        .unwrap_or_else(|| folder.path().join("spread"));
    check_target(&folder, &to)?;
    let mesh = args.mesh().map(load_mesh).transpose();
    let mesh = mesh.map_err(|error| {
        Failure::Input(format!(
            "--on is \"bodies\", \"material\" or a mesh file: {error}"
        ))
    })?;
    let scene = match (&mesh, doc.on) {
        (None, SpreadOn::Bodies) => Some(folder.scene().map_err(Failure::Scene)?),
        _ => None,
    };
    let on = match (&mesh, &scene) {
        (Some(mesh), _) => On::Mesh(mesh),
        (None, Some(scene)) => On::Bodies(&scene.model),
        (None, None) => On::Material,
    };
    std::fs::create_dir_all(&to)
        .and_then(|()| atomic::write_bytes(&to.join("run.toml"), folder.record_for(&to).as_bytes()))
        .map_err(|error| Failure::Run(format!("cannot write to {}: {error}", to.display())))?;
    let mut target = RunFolder::open(&to).map_err(Failure::run)?;
    target.lock().map_err(Failure::input)?;
    let (voice, json) = (args.stage.voice(), args.stage.json);
    let mut progress = Progress::new("spread", 0, frames.len() as u32, voice, json);
    let mut failures = Vec::new();
    for (done, &number) in (1..).zip(&frames) {
        match frame(&folder, number, &on, &doc, &to) {
            Ok(made) if json => out(&line(number, &made)),
            Ok(made) => progress.say(&sentence(number, &made)),
            Err(error @ (StageError::Write { .. } | StageError::Body(_))) => {
                return Err(Failure::run(error));
            }
            Err(error) => failures.push(error.to_string()),
        }
        progress.tick(done);
    }
    progress.finish();
    if !failures.is_empty() {
        return Err(Failure::Run(failures.join("\n")));
    }
    if !args.stage.quiet {
        talk(&format!("{} frames in {}", frames.len(), to.display()));
    }
    Ok(())
}

/// The new frames may go where nothing is yet, or where such frames of this run are.
fn check_target(run: &RunFolder, to: &Path) -> Result<(), Failure> {
    let refuse = |what: &str| {
        let to = to.display();
        Err(Failure::Input(format!(
            "the new frames would replace those of {what} in {to}; choose another folder with -o"
        )))
    };
    let Ok(there) = RunFolder::open(to) else {
        return Ok(());
    };
    if to.canonicalize().ok() == run.path().canonicalize().ok() {
        return refuse("the run itself");
    }
    // Only what was simulated there has checkpoints.
    let checkpoints = there.checkpoint_path(0);
    let is_simulated = checkpoints.parent().is_some_and(Path::exists);
    if is_simulated || there.recorded("identity") != run.recorded("identity") {
        return refuse("another run");
    }
    Ok(())
}

fn line(number: u32, made: &Made) -> String {
    let report = &made.report;
    let crowding = |c: &barchan_base::spread::Crowding| json!({ "most": c.most, "count": c.count, "faces": c.faces, "excess": c.excess });
    json!({
        "event": "spread", "frame": number, "faces": made.faces, "triangles": made.triangles,
        "points": report.points, "elsewhere": report.elsewhere, "broken": report.broken, "moved": report.moved,
        "asked": report.asked, "allowed": report.allowed, "feasible": report.is_feasible(),
        "before": crowding(&report.before), "after": crowding(&report.after),
        "passes": report.passes, "iterations": report.iterations,
    })
    .to_string()
}

fn sentence(number: u32, made: &Made) -> String {
    let report = &made.report;
    let mut text = format!(
        "frame {number}: {} grains on {} faces, at most {} before and {} after ({} passes, {} moved)",
        grouped(report.points as f64),
        grouped(made.faces as f64),
        report.before.count,
        report.after.count,
        report.passes,
        grouped(report.moved as f64),
    );
    if !report.is_feasible() {
        text += &format!(
            "; {:.0} a face cannot be reached, there are too many grains: {:.0} can, and was used",
            report.asked,
            report.allowed.ceil()
        );
    }
    if report.broken > 0 {
        text += &format!("; {} are not finite and stay", report.broken);
    }
    if report.points == 0 {
        text += "; none lies on the surface, try a larger spread.reach";
    }
    text
}
