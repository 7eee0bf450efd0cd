//! Pictures of a run, frame by frame: what is there already stays, what fails does not stop the rest.

use super::RenderError;
use super::bodies::Bodies;
use super::look::Look;
use super::paint::Scale;
use super::picture::Picture;
use super::studio::{Shot, Studio, Subject, automatic};
use super::survey::{Survey, survey};
use crate::cache::RunFolder;
use crate::surface::SurfaceMesh;
use crate::surface::format::read_ply;
use barchan_sim::grain::balls_of;
use barchan_sim::scene::{Render, Scene, What};
use glam::Vec3;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Everything that the pictures of a run share.
pub struct Stage<'a> {
    run: &'a RunFolder,
    identity: u128,
    bodies: Bodies,
    studio: Studio<'a>,
}

/// What became of a frame.
#[derive(Debug)]
pub enum Outcome {
    /// A picture was made.
    Made {
        /// Grains that could not be drawn: not finite, or absurdly far off.
        left_out: usize,
    },
    /// The same picture was there already.
    Kept,
    /// There is no picture.
    Failed(RenderError),
}

impl<'a> Stage<'a> {
    /// Prepares pictures of `run`, a run of `scene`, as `settings` say.
    ///
    /// # Errors
    /// If there are no frames, a body cannot be placed, or there is no column of the colour's name.
    pub fn new(
        run: &'a RunFolder,
        scene: &'a Scene,
        settings: Render,
    ) -> Result<Self, RenderError> {
        let frames = run.frames()?;
        if frames.is_empty() {
            return Err(RenderError::NoFrames {
                path: run.path().to_owned(),
            });
        }
        let model = &scene.model;
        let bodies = Bodies::new(model);
        let wants_scale = settings.color.is_some() && settings.range.is_none();
        let found = if settings.camera.is_none() || wants_scale {
            survey(run, &frames, settings.color.as_deref(), model.up)?
        } else {
            Survey {
                points: Vec::new(),
                scale: None,
            }
        };
        let camera = match &settings.camera {
            Some(camera) => camera.clone(),
            None => automatic(
                found.points,
                &bodies.placed(model, 0.0, &[])?,
                model.up,
                settings.size,
            ),
        };
        let given = settings.range.map(|[from, to]| Scale {
            from: from as f32,
            to: to as f32,
        });
        let scale = given.or(found.scale);
        let studio = Studio {
            model,
            settings,
            looks: Look::of(scene),
            camera,
            scale,
        };
        Ok(Self {
            run,
            identity: scene.identity,
            bodies,
            studio,
        })
    }

    /// Where the picture of frame `number` goes.
    pub fn path(&self, number: u32) -> PathBuf {
        self.run.images_dir().join(format!("{number:06}.png"))
    }

    /// Makes the pictures of `frames`, telling `told` of each.
    ///
    /// # Errors
    /// If the folder for them cannot be made; what goes wrong with single frames is told and does not stop the others.
    pub fn make(
        &self,
        frames: &[u32],
        mut told: impl FnMut(u32, Outcome),
    ) -> Result<(), RenderError> {
        let folder = self.run.images_dir();
        std::fs::create_dir_all(&folder).map_err(|source| RenderError::Write {
            path: folder.clone(),
            source,
        })?;
        barchan_sim::atomic::sweep(&folder);
        for &number in frames {
            let outcome = self.make_one(number).unwrap_or_else(Outcome::Failed);
            told(number, outcome);
        }
        Ok(())
    }

    fn make_one(&self, number: u32) -> Result<Outcome, RenderError> {
        let path = self.path(number);
        let stamp = self.stamp(number);
        if stamp.is_some() && Picture::stamp(&path) == stamp {
            return Ok(Outcome::Kept);
        }
        let shot = self.shoot(number)?;
        shot.picture
            .write(&path, &stamp.unwrap_or_default())
            .map_err(|source| RenderError::Write { path, source })?;
        Ok(Outcome::Made {
            left_out: shot.left_out,
        })
    }

    /// What the picture of frame `number` is made from and with, in a few letters; none if the frame cannot be read.
    fn stamp(&self, number: u32) -> Option<String> {
        let mut hash = Xxh3::new();
        let settings = format!(
            "{:?} {:?} {:?}",
            self.studio.settings, self.studio.camera, self.studio.scale
        );
        hash.update(settings.as_bytes());
        hash.update(&self.identity.to_le_bytes());
        // A file that is another frame has no stamp, so that no picture of it is kept.
        self.run.frame_digest(number).ok()?;
        hash.update(&end_of(&self.run.frame_path(number))?);
        if let Some(mesh) = self.mesh_path(number) {
            hash.update(&barchan_base::mesh::read_file(&mesh).ok()?);
        }
        Some(format!(
            "{} {:032x}",
            env!("CARGO_PKG_VERSION"),
            hash.digest128()
        ))
    }

    /// The surface to draw for frame `number`; none where grains are drawn.
    fn mesh_path(&self, number: u32) -> Option<PathBuf> {
        let path = self
            .run
            .path()
            .join("meshes")
            .join(format!("{number:06}.ply"));
        match self.studio.settings.what {
            What::Grains => None,
            What::Mesh => Some(path),
            What::Auto => path.is_file().then_some(path),
        }
    }

    /// Takes the picture of frame `number`.
    ///
    /// # Errors
    /// If the frame or its surface cannot be read, or the camera stands inside a body.
    pub fn shoot(&self, number: u32) -> Result<Shot, RenderError> {
        let mut frame = self.run.read_frame(number)?;
        if let Some(cut) = &self.studio.settings.cut {
            let kept = |point: &Vec3| !cut.hides(*point);
            let keep: Vec<bool> = frame.particles.position.iter().map(kept).collect();
            frame.particles.retain(&keep);
        }
        if let Some(balls) = balls_of(&frame.particles, &self.studio.model.shapes) {
            frame.particles = balls;
        }
        let mesh = match self.mesh_path(number) {
            Some(path) => Some(read_mesh(&path)?),
            None => None,
        };
        let time = frame.meta.time;
        let bodies = self
            .bodies
            .placed(self.studio.model, time, &frame.meta.bodies)?;
        self.studio.shoot(Subject {
            particles: &frame.particles,
            mesh: mesh.as_ref(),
            bodies,
            time,
        })
    }
}

/// Gives `settings` one camera and one colour scale for several runs, where they have none.
///
/// # Errors
/// As [`Stage::new`].
pub fn share_view(runs: &[(&RunFolder, &Scene)], settings: &mut Render) -> Result<(), RenderError> {
    let (mut points, mut scale, mut all) = (Vec::new(), None::<Scale>, Vec::new());
    let Some((_, first)) = runs.first() else {
        return Ok(());
    };
    for (run, scene) in runs {
        let frames = run.frames()?;
        if frames.is_empty() {
            return Err(RenderError::NoFrames {
                path: run.path().to_owned(),
            });
        }
        let found = survey(run, &frames, settings.color.as_deref(), scene.model.up)?;
        points.extend(found.points);
        scale = match (scale, found.scale) {
            (Some(a), Some(b)) => Some(Scale {
                from: a.from.min(b.from),
                to: a.to.max(b.to),
            }),
            (a, b) => a.or(b),
        };
        all.extend(Bodies::new(&scene.model).placed(&scene.model, 0.0, &[])?);
    }
    if settings.camera.is_none() {
        settings.camera = Some(automatic(points, &all, first.model.up, settings.size));
    }
    settings.range = settings
        .range
        .or(scale.map(|scale| [scale.from.into(), scale.to.into()]));
    Ok(())
}

/// The end of a frame file, which holds a checksum of all before it.
fn end_of(path: &Path) -> Option<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    const END: u64 = 4096;
    let mut file = std::fs::File::open(path).ok()?;
    let length = file
        .metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))
        .ok()?;
    let mut bytes = length.to_le_bytes().to_vec();
    file.take(END).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Reads a surface.
fn read_mesh(path: &Path) -> Result<SurfaceMesh, RenderError> {
    if !path.is_file() {
        return Err(RenderError::NoMesh {
            path: path.to_owned(),
        });
    }
    read_ply(path).map_err(|error| RenderError::Mesh(error.to_string()))
}
