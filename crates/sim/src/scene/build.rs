//! From what the file says to what it means: references resolved, files loaded, rules between keys checked.

use super::builder::Builder;
use super::document::{
    EmitDoc, FillDoc, MaterialDoc, Method, SceneDoc, SeedingDoc, SinkDoc, SolverDoc, SphLaw,
    SphScheme, SurfaceDoc, TransferDoc, WetDoc,
};
use super::preset::{PRESETS, Preset};
use super::problem::{Problem, Problems, suggest};
use super::quantity::{Dimension, NotNegative, Quantity, Rate, Rule, Time};
use super::read::{Read, Text};
use super::{
    FlipSettings, Friction, HybridSettings, Scene, SphSettings, Transfer, grains, shapes::ShapeDoc,
};
use crate::grain::{Grain, GrainShape};
use crate::model::{Air, Emitter, Fill, Interval, Material, Model, Sink, WORLD, Wet};
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Gravity where the scene says nothing else [m/s²].
const GRAVITY: f64 = 9.81;
/// Material may be so many resolutions from the origin: further out a 32-bit float has less than a sixteenth of one left.
const FARTHEST: f32 = (1 << 20) as f32;

impl Builder<'_> {
    /// Distance between particles: two to a cell's edge where the method has cells.
    fn spacing(&self) -> f32 {
        match self.method {
            Method::Ballistic | Method::Sph => self.resolution,
            Method::Dem => self.largest_grain,
            Method::Flip | Method::Hybrid => 0.5 * self.resolution,
        }
    }

    fn material(&mut self, name: &Text) -> Option<usize> {
        let found = self
            .materials
            .iter()
            .position(|material| *material == name.value);
        if found.is_none() {
            let names: Vec<&str> = self.materials.iter().map(String::as_str).collect();
            let message = format!("there is no material \"{}\"", name.value);
            self.problems
                .push(Problem::new(name.span.clone(), message).help(suggest(&name.value, &names)));
        }
        found
    }

    fn bounded(&mut self, doc: &ShapeDoc) -> Option<Shape> {
        let shape = doc.build(self)?;
        if !shape.bounds().is_finite() {
            let problem = Problem::new(
                doc.span(),
                "this shape has no end, so it cannot be filled with particles",
            );
            return self.none(problem.help("use a bounded shape, such as a box"));
        }
        self.placed(doc, shape)
    }

    /// The shape, if it lies where places of particles are exact enough.
    fn placed(&mut self, doc: &ShapeDoc, shape: Shape) -> Option<Shape> {
        let (bounds, most) = (shape.bounds(), WORLD.min(FARTHEST * self.resolution));
        let reach = bounds.min.abs().max(bounds.max.abs()).max_element();
        if reach > most {
            let message = format!(
                "this shape reaches {reach} m from the origin, where 32-bit numbers cannot tell places apart well enough; {most} m is the most \
                 at solver.resolution = {} m",
                self.resolution
            );
            let help = "move the scene nearer to the origin, or choose a coarser solver.resolution";
            return self.none(Problem::new(doc.span(), message).help(help));
        }
        Some(shape)
    }

    fn interval(
        &mut self,
        from: &Quantity<Time, NotNegative>,
        until: Option<&Quantity<Time, NotNegative>>,
    ) -> Option<Interval> {
        let end = until.map_or(f64::INFINITY, |until| until.si);
        if end < from.si {
            let span = until.map_or(from.span.clone(), |until| until.span.clone());
            let message = format!(
                "\"until\" ({end} s) must not be before \"from\" ({} s)",
                from.si
            );
            return self.none(Problem::new(span, message));
        }
        Some(Interval {
            from: from.si,
            until: end,
        })
    }

    fn model(&mut self, doc: &SceneDoc, materials: Vec<Material>) -> Option<Model> {
        let grains = self.grains(doc, &materials)?;
        let shapes = self.shapes(doc, &grains)?;
        let fills: Vec<_> = doc.fill.iter().map(|doc| self.fill(doc)).collect();
        let emitters: Vec<_> = doc.emit.iter().map(|doc| self.emitter(doc)).collect();
        let sinks: Vec<_> = doc.sink.iter().map(|doc| self.sink(doc)).collect();
        let wet: Vec<_> = doc.wet.iter().map(|doc| self.wet(doc)).collect();
        let bodies = self.bodies(doc);
        let up = self.up();
        Some(Model {
            up,
            gravity: doc
                .gravity
                .as_ref()
                .map_or(up * -GRAVITY as f32, |gravity| gravity.vec3()),
            seed: doc.seed.0,
            resolution: self.resolution,
            spacing: self.spacing(),
            materials,
            grains,
            shapes,
            fills: fills.into_iter().collect::<Option<_>>()?,
            emitters: emitters.into_iter().collect::<Option<_>>()?,
            sinks: sinks.into_iter().collect::<Option<_>>()?,
            wet: wet.into_iter().collect::<Option<_>>()?,
            bodies: bodies?,
            air: doc.air.as_ref().map(|air| Air {
                density: air.density.si,
                viscosity: air.viscosity.si,
                wind: air.wind.vec3(),
            }),
        })
    }

    fn fill(&mut self, doc: &FillDoc) -> Option<Fill> {
        let material = self.material(&doc.material);
        let shape = self.bounded(&doc.shape);
        Some(Fill {
            material: material?,
            shape: shape?,
            velocity: doc.velocity.vec3(),
            layout: self.layout(doc)?,
        })
    }

    fn layout(&mut self, doc: &FillDoc) -> Option<Layout> {
        let usual = match self.method {
            Method::Dem => SeedingDoc::Lattice,
            _ => SeedingDoc::Jittered,
        };
        match (doc.seeding.unwrap_or(usual), self.method) {
            (SeedingDoc::Lattice, _) => Some(Layout::Lattice),
            (SeedingDoc::BlueNoise, _) => Some(Layout::BlueNoise),
            (seeding, Method::Dem) => {
                let message = format!(
                    "seeding = \"{}\" lays grains over each other, and they would burst apart",
                    seeding.word()
                );
                let help = "use \"lattice\" or \"blue-noise\" with method = \"dem\"";
                self.none(Problem::new(doc.span.clone(), message).help(help))
            }
            (SeedingDoc::Jittered, _) => Some(Layout::Jittered),
            (SeedingDoc::Settled, _) => Some(Layout::Settled),
        }
    }

    /// The single grains of each material, where the method has them.
    fn grains(&mut self, doc: &SceneDoc, materials: &[Material]) -> Option<Vec<Grain>> {
        if self.method != Method::Dem {
            return Some(Vec::new());
        }
        let resolution = doc.solver.resolution.si;
        let grains: Vec<Option<Grain>> = materials
            .iter()
            .zip(doc.materials.values())
            .map(|(material, doc)| doc.grain.build(material, resolution, self.problems))
            .collect();
        let grains = grains.into_iter().collect::<Option<Vec<_>>>()?;
        let largest = grains.iter().map(Grain::largest).fold(0.0, f64::max);
        // A hair of room, so that rounding lays none into its neighbour.
        self.largest_grain = (largest * 1.0001) as f32;
        Some(grains)
    }

    /// The form of each material's particles, where the method turns them and not all are balls.
    fn shapes(&mut self, doc: &SceneDoc, grains: &[Grain]) -> Option<Vec<Arc<GrainShape>>> {
        let shapes: Vec<_> = match self.method {
            Method::Dem => grains.iter().map(|grain| grain.shape.clone()).collect(),
            Method::Hybrid => {
                let docs = doc.materials.values();
                let shapes = docs.map(|doc| doc.grain.build_shape(self.problems));
                shapes.collect::<Option<_>>()?
            }
            _ => Vec::new(),
        };
        let balls = shapes.iter().all(|shape| shape.balls().len() == 1);
        Some(if balls { Vec::new() } else { shapes })
    }

    fn emitter(&mut self, doc: &EmitDoc) -> Option<Emitter> {
        let material = self.material(&doc.material);
        let shape = self.bounded(&doc.shape);
        let active = self.interval(&doc.from, doc.until.as_ref());
        Some(Emitter {
            material: material?,
            shape: shape?,
            rate: match &doc.rate {
                Rate::Particles(rate) => rate.si,
                Rate::Volume(rate) => rate.si / f64::from(self.spacing()).powi(3),
            },
            velocity: doc.velocity.vec3(),
            spread: doc.spread.si as f32,
            active: active?,
        })
    }

    fn sink(&mut self, doc: &SinkDoc) -> Option<Sink> {
        let shape = doc.shape.build(self);
        let active = self.interval(&doc.from, doc.until.as_ref());
        Some(Sink {
            shape: shape?,
            active: active?,
        })
    }

    fn wet(&mut self, doc: &WetDoc) -> Option<Wet> {
        let shape = doc.shape.build(self);
        let active = self.interval(&doc.from, doc.until.as_ref());
        Some(Wet {
            shape: shape?,
            wetness: doc.wetness.si as f32,
            rate: doc.rate.si,
            active: active?,
        })
    }
}

/// The preset that a material starts from.
pub fn preset(doc: &MaterialDoc) -> Option<&'static Preset> {
    PRESETS.get(preset_name(doc))
}

fn preset_name(doc: &MaterialDoc) -> &str {
    doc.preset
        .as_ref()
        .map_or("dry-sand", |preset| preset.value.as_str())
}

/// A preset's linear colour.
pub fn color(preset: &Preset) -> [f32; 3] {
    std::array::from_fn(|i| preset.color[i].si as f32)
}

fn material(name: &str, doc: &MaterialDoc, problems: &mut Problems) -> Option<Material> {
    let preset_name = preset_name(doc);
    let Some(preset) = preset(doc) else {
        let names: Vec<&str> = PRESETS.keys().map(String::as_str).collect();
        let span = doc
            .preset
            .as_ref()
            .map_or(doc.span.clone(), |preset| preset.span.clone());
        let problem = Problem::new(span, format!("there is no preset \"{preset_name}\""));
        return problems.none(problem.help(suggest(preset_name, &names)));
    };
    fn choose<D: Dimension, R: Rule>(own: Option<&Quantity<D, R>>, preset: &Quantity<D, R>) -> f64 {
        own.map_or(preset.si, |own| own.si)
    }
    let material = Material {
        name: name.to_owned(),
        density: choose(doc.density.as_ref(), &preset.density.value),
        grain_density: choose(doc.grain_density.as_ref(), &preset.grain_density.value),
        grain_size: choose(doc.grain_size.as_ref(), &preset.grain_size.value),
        friction_angle: choose(doc.friction_angle.as_ref(), &preset.friction_angle.value),
        cohesion: choose(doc.cohesion.as_ref(), &preset.cohesion.value),
        wet_cohesion: doc.wet_cohesion.si,
        wet_viscosity: doc.wet_viscosity.si,
        restitution: choose(doc.restitution.as_ref(), &preset.restitution.value),
        color: color(preset),
    };
    if material.grain_density < material.density {
        let given = doc
            .grain_density
            .as_ref()
            .map(|q| &q.span)
            .or(doc.density.as_ref().map(|q| &q.span));
        let message = format!(
            "\"materials.{name}\": the material as it lies ({} kg/m3) cannot be denser than its grains (grain_density, {} kg/m3)",
            material.density, material.grain_density
        );
        return problems.none(Problem::new(given.unwrap_or(&doc.span).clone(), message));
    }
    Some(material)
}

/// The scene's name, fit to be a folder's.
fn name(doc: &SceneDoc, path: &Path, problems: &mut Problems) -> Option<String> {
    let stem = || {
        path.file_stem()
            .map_or("scene".into(), |stem| stem.to_string_lossy().into_owned())
    };
    let Some(name) = &doc.name else {
        return Some(stem());
    };
    let plain = name
        .value
        .chars()
        .all(|c| c.is_alphanumeric() || " ._-".contains(c));
    if name.value.is_empty() || !plain || name.value.starts_with('.') || name.value.len() > 100 {
        let message = "\"name\" must be fit for a folder: letters, digits, spaces, dots and dashes, not starting with a dot";
        return problems.none(Problem::new(name.span.clone(), message));
    }
    Some(name.value.clone())
}

/// Checks the numbers that must fit together, before anything heavy is loaded.
fn check_header(doc: &SceneDoc, problems: &mut Problems) {
    if doc.schema.0 > 1 {
        let message = format!(
            "schema {} is newer than this version of Barchan, which reads schema 1",
            doc.schema.0
        );
        problems
            .push(Problem::new(doc.span.start..doc.span.start, message).help("upgrade Barchan"));
    }
    if let Some(surface) = &doc.surface {
        check_surface(surface, problems);
    }
    if doc.fill.is_empty() && doc.emit.is_empty() {
        let problem = Problem::new(doc.span.end..doc.span.end, "there is nothing to simulate");
        problems.push(problem.help("add a [[fill]] or an [[emit]]"));
    }
}

/// Checks the rules between the keys of a surface.
pub fn check_surface(doc: &SurfaceDoc, problems: &mut Problems) {
    if let Some(shutter) = &doc.shutter
        && shutter.open.si >= shutter.close.si
    {
        let message = format!(
            "the shutter must open before it closes, and {} is not before {}",
            shutter.open.si, shutter.close.si
        );
        problems.push(Problem::new(shutter.span.clone(), message));
    }
    if doc.radius.si >= 2.0 * doc.support.si {
        let message = format!(
            "\"surface.radius\" ({} radii) must be smaller than \"surface.support\" ({} spacings, each two radii)",
            doc.radius.si, doc.support.si
        );
        problems.push(Problem::new(doc.radius.span.clone(), message));
    }
}

/// All materials; each is looked at, so that all problems are told.
fn materials(doc: &SceneDoc, problems: &mut Problems) -> Option<Vec<Material>> {
    let all: Vec<Option<Material>> = doc
        .materials
        .iter()
        .map(|(name, doc)| material(name, doc, problems))
        .collect();
    all.into_iter().collect()
}

/// Builds the scene; `None` where problems were noted.
pub fn build(doc: &SceneDoc, path: &Path, problems: &mut Problems) -> Option<Scene> {
    check_header(doc, problems);
    let name = name(doc, path, problems)?;
    let materials = materials(doc, problems)?;
    let mut parameters = doc.json();
    parameters["name"] = name.clone().into();
    let mut builder = Builder {
        folder: path.parent().unwrap_or(Path::new("")),
        up: doc.up,
        resolution: doc.solver.resolution.si as f32,
        largest_grain: doc.solver.resolution.si as f32,
        method: doc.solver.method,
        materials: materials
            .iter()
            .map(|material| material.name.clone())
            .collect(),
        fps: doc.fps.si,
        problems,
        hash: Xxh3::new(),
    };
    builder
        .hash
        .update(deciding(&parameters).to_string().as_bytes());
    let model = builder.model(doc, materials)?;
    let render = match &doc.render {
        Some(render) => Some(super::render::render(render, builder.problems)?),
        None => None,
    };
    Some(Scene {
        name,
        path: path.to_owned(),
        frames: u32::try_from(doc.frames.0).ok()?,
        fps: doc.fps.si,
        max_step: doc
            .solver
            .max_step
            .as_ref()
            .map_or(f64::INFINITY, |step| step.si),
        method: doc.solver.method,
        flip: flip_settings(&doc.solver, &model),
        sph: sph_settings(&doc.solver),
        dem: grains::settings(&doc.solver),
        hybrid: hybrid_settings(&doc.solver),
        model,
        compression: doc.output.compression,
        checkpoint_every: u32::try_from(doc.output.checkpoint_every.0).unwrap_or(u32::MAX),
        detail: doc.detail.clone(),
        surface: doc.surface.clone(),
        exports: doc
            .export
            .as_ref()
            .map_or_else(Vec::new, |export| export.formats.clone()),
        render,
        identity: builder.hash.digest128(),
        parameters,
    })
}

fn hybrid_settings(doc: &SolverDoc) -> HybridSettings {
    let usual = HybridSettings::default();
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    HybridSettings {
        depth: doc.depth.as_ref().map_or(usual.depth, |n| count(n.0)),
        rest_time: doc.rest_time.as_ref().map(|time| time.si),
        reach: doc.reach.as_ref().map_or(usual.reach, |n| count(n.0)),
    }
}

fn sph_settings(doc: &SolverDoc) -> SphSettings {
    let scheme = doc.scheme.unwrap_or(SphScheme::Implicit);
    let usual = match scheme {
        SphScheme::Implicit => u64::from(SphSettings::default().iterations),
        SphScheme::Ihmsen => 3,
    };
    let iterations = doc.iterations.as_ref().map_or(usual, |count| count.0);
    SphSettings {
        scheme,
        iterations: u32::try_from(iterations).unwrap_or(u32::MAX),
        law: doc.law.unwrap_or(SphLaw::Constant),
    }
}

fn flip_settings(doc: &SolverDoc, model: &Model) -> FlipSettings {
    let fluid = model.materials.iter().all(Material::is_fluid);
    let ratio = doc.flip_ratio.as_ref().map(|ratio| ratio.si as f32);
    let affine = !fluid && doc.friction == Friction::Implicit && ratio.is_none();
    let transfer = match doc.transfer {
        Some(TransferDoc::Apic) => Transfer::Apic,
        None if affine => Transfer::Apic,
        _ => Transfer::Flip(ratio.unwrap_or(if fluid { 0.97 } else { 0.1 })),
    };
    // Zhu and Bridson take particles through a step's velocity in five parts of a cell each.
    let usual = match doc.friction {
        Friction::ZhuBridson if !fluid => 5.0,
        _ => 1.0,
    };
    FlipSettings {
        friction: doc.friction,
        transfer,
        cfl: doc.cfl.as_ref().map_or(usual, |cfl| cfl.si),
    }
}

/// The parameters without those that say only how long to run and what to keep.
fn deciding(parameters: &serde_json::Value) -> serde_json::Value {
    let mut deciding = parameters.clone();
    if let Some(map) = deciding.as_object_mut() {
        for key in [
            "name", "frames", "output", "detail", "surface", "spread", "export", "render",
        ] {
            map.remove(key);
        }
    }
    deciding
}
