//! What is asked of the stages after a run, and what else a run's record repeats of its scene.
//!
//! What was simulated is as the record has it. What is made of it is as the scene's file says now, for that is changed and the stage
//! given again. Of the file nothing but the stage's own table is looked at: the rest may be another scene by now.

use super::build;
use super::document::{DetailDoc, MaterialDoc, SpreadDoc, SurfaceDoc};
use super::node::{self, Node};
use super::problem::{Problem, Problems, SceneError, Source};
use super::quantity::{Frequency, Positive, Quantity};
use super::read::Read;
use super::read_text;
use super::render::{Render, render};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where it stands what stages are asked to do.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The scene's file.
    pub file: PathBuf,
    /// The run's record, the text of `run.toml`: what counts where the file is gone or does not have the stage's table.
    pub record: String,
    /// Changes, each written `table.key=value`.
    pub overrides: Vec<String>,
}

impl Asked {
    /// The grains that `[detail]` asks for.
    ///
    /// # Errors
    /// Every problem found, with its place.
    pub fn detail(&self) -> Result<DetailDoc, SceneError> {
        self.table("detail", |doc, _| Some(doc))
    }

    /// The surface that `[surface]` asks for.
    ///
    /// # Errors
    /// As [`Self::detail`].
    pub fn surface(&self) -> Result<SurfaceDoc, SceneError> {
        self.table("surface", |doc, problems| {
            build::check_surface(&doc, problems);
            Some(doc)
        })
    }

    /// How `[spread]` asks to move grains apart.
    ///
    /// # Errors
    /// As [`Self::detail`].
    pub fn spread(&self) -> Result<SpreadDoc, SceneError> {
        self.table("spread", |doc, _| Some(doc))
    }

    /// The pictures that `[render]` asks for.
    ///
    /// # Errors
    /// As [`Self::detail`].
    pub fn render(&self) -> Result<Render, SceneError> {
        self.table("render", |doc, problems| render(&doc, problems))
    }

    /// What `meaning` makes of a table; of its defaults where neither the file nor the record has it.
    fn table<T: Read, V>(
        &self,
        table: &str,
        meaning: impl FnOnce(T, &mut Problems) -> Option<V>,
    ) -> Result<V, SceneError> {
        let (source, mut root) = self.source(table)?;
        let mut problems = Problems::default();
        let mut offset = source.text.len();
        for text in &self.overrides {
            check_path(text, table, offset, &mut problems);
            node::apply_override(&mut root, text, offset, &mut problems);
            offset += text.len() + 1;
        }
        read(&root, table, &mut problems)
            .and_then(|doc| meaning(doc, &mut problems))
            .filter(|_| problems.is_empty())
            .ok_or_else(|| SceneError::new(&source, problems))
    }

    /// The text that has `table`, and the tree that it is in.
    fn source(&self, table: &str) -> Result<(Source, Node), SceneError> {
        let source = |name: String, text: String| Source {
            name,
            text,
            overrides: self.overrides.join("\n"),
        };
        if self.file.is_file() {
            let now = source(self.file.display().to_string(), read_text(&self.file)?);
            let root = tree(&now)?;
            if root.find(table).is_some() {
                return Ok((now, root));
            }
        }
        let then = source("run.toml".into(), self.record.clone());
        let root = parameters(&tree(&then)?);
        Ok((then, root))
    }
}

/// Refuses a change of anything but `table`: nobody should think that it made a difference.
fn check_path(text: &str, table: &str, offset: usize, problems: &mut Problems) {
    let path = text.split('=').next().unwrap_or_default();
    let first = path.split('.').next().unwrap_or_default();
    if path.len() < text.len() && first.trim().trim_matches('"') != table {
        let message = format!("\"{}\" is not a key of \"{table}\"", path.trim());
        let problem = Problem::new(offset..offset + path.len(), message);
        problems.push(problem.help(format!(
            "this command changes {table}.KEY alone; what was simulated changes by running the scene again"
        )));
    }
}

fn tree(source: &Source) -> Result<Node, SceneError> {
    node::parse(&source.text, 0).map_err(|problem| {
        let mut problems = Problems::default();
        problems.push(problem);
        SceneError::new(source, problems)
    })
}

/// The scene in a record; a record without parameters is one of a scene with nothing but defaults.
fn parameters(record: &Node) -> Node {
    record
        .find("parameters")
        .cloned()
        .unwrap_or_else(node::empty)
}

fn read<T: Read>(root: &Node, key: &str, problems: &mut Problems) -> Option<T> {
    match root.find(key) {
        Some(node) => T::read(node, key, problems),
        None => T::missing(),
    }
}

/// What a run's record says of `key` of the scene, if it can be read.
fn recorded<T: Read>(record: &str, key: &str) -> Option<T> {
    let root = parameters(&node::parse(record, 0).ok()?);
    read(&root, key, &mut Problems::default())
}

/// Frames a second that a run's record repeats; the scene file's default if it does not.
pub fn recorded_fps(record: &str) -> f64 {
    let fps: Option<Quantity<Frequency, Positive>> = recorded(record, "fps");
    fps.map_or(24.0, |fps| fps.si)
}

/// Linear colours of the materials that a run's record repeats, by name.
pub fn recorded_colors(record: &str) -> BTreeMap<String, [f32; 3]> {
    let materials: BTreeMap<String, MaterialDoc> =
        recorded(record, "materials").unwrap_or_default();
    let color = |doc: &MaterialDoc| build::preset(doc).map(build::color).unwrap_or([0.5; 3]);
    materials
        .iter()
        .map(|(name, doc)| (name.clone(), color(doc)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::SurfaceStyle;
    use super::*;
    use std::path::Path;

    const RECORD: &str =
        "[parameters]\nsurface = { style = \"sph\", cell = 0.25, smoothing = 4 }\n";

    fn asked(file: &Path, record: &str, change: &str) -> Asked {
        Asked {
            file: file.to_owned(),
            record: record.to_owned(),
            overrides: change.lines().map(str::to_owned).collect(),
        }
    }

    /// What is wrong, and what to do about it.
    fn refused<T: std::fmt::Debug>(found: Result<T, SceneError>) -> String {
        let error = found.unwrap_err().problems.remove(0);
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
        format!("{error} {help:?}")
    }

    #[test]
    fn a_table_is_the_file_s_then_the_record_s_then_the_default() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("scene.toml");
        let found = |change: &str| {
            let doc = asked(&file, RECORD, change).surface().unwrap();
            (doc.style, doc.smoothing.0)
        };
        // The file is gone.
        assert_eq!(found(""), (SurfaceStyle::Sph, 4));
        assert_eq!(found("surface.smoothing=5"), (SurfaceStyle::Sph, 5));
        // It is there without the table, and with one. All else may be wrong.
        std::fs::write(&file, "frames = \"many\"\n[sand]\n").unwrap();
        assert_eq!(found(""), (SurfaceStyle::Sph, 4));
        std::fs::write(
            &file,
            "frames = \"many\"\n[sand]\n[surface]\nsmoothing = 1\n",
        )
        .unwrap();
        assert_eq!(found(""), (SurfaceStyle::ZhuBridson, 1));
        assert_eq!(found("surface.style=sph"), (SurfaceStyle::Sph, 1));
        let neither = asked(Path::new(""), "", "").surface().unwrap();
        assert_eq!(neither.style, SurfaceStyle::ZhuBridson);
        let plain = Asked::default().render().unwrap();
        assert_eq!(plain, Render::default());
    }

    #[test]
    fn what_makes_no_sense_is_told_and_the_record_does_not_hide_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("scene.toml");
        for (text, reason) in [
            ("[surface]\nstile = \"sph\"", "stile"),
            ("[surface]\nradius = 4", "support"),
            ("[surface", "expected"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = refused(asked(&file, RECORD, "").surface());
            assert!(said.contains(reason), "{text}: {said}");
        }
        let nowhere = Path::new("");
        assert!(asked(nowhere, "[parameters", "").surface().is_err());
        for (change, reason) in [
            ("surface.stile=sph", "stile"),
            ("surface", "written key=value"),
            ("solver.resolution=1", "changes surface.KEY alone"),
            ("render.size=3x4", "changes surface.KEY alone"),
        ] {
            let said = refused(asked(nowhere, RECORD, change).surface());
            assert!(said.contains(reason), "{change}: {said}");
        }
        let cut = "render.cut={at=[0,0,0],normal=[0,0,0]}";
        let said = refused(asked(nowhere, "", cut).render());
        assert!(said.contains("must point somewhere"), "{said}");
    }

    #[test]
    fn a_record_tells_colours_and_frames_a_second() {
        let record = "[parameters]\nfps = 30\nmaterials = { a = { preset = \"dry-sand\" } }\n";
        let colors = recorded_colors(record);
        assert!(colors["a"][0] > colors["a"][2], "sand is not blue");
        assert!((recorded_fps(record) - 30.0).abs() < 1e-12);
        assert!((recorded_fps("") - 24.0).abs() < 1e-12);
    }
}
