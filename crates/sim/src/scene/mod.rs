//! The scene file: read with every problem's place, checked, and turned into an immutable [`Scene`] in SI units.

mod asked;
mod bodies;
mod build;
mod builder;
mod by_method;
mod caution;
mod document;
mod grains;
mod node;
mod preset;
mod problem;
mod quantity;
#[doc(hidden)]
pub mod read;
mod reference;
mod render;
mod repose;
mod shapes;

pub use asked::{Asked, recorded_colors, recorded_fps};
pub use by_method::{ByMethod, load_by};
pub use caution::cautions;
pub use document::{
    Compression, DetailDoc, DetailRule, DetailSampling, DetailStorage, Format,
    FrictionDoc as Friction, MOST_FRAMES, MeshFormat, Method, ShutterDoc, SphLaw, SphScheme,
    SpreadDoc, SpreadOn, SpreadRule, SurfaceDoc, SurfaceStyle,
};
pub use preset::{PRESETS, Preset};
pub use problem::{SceneError, SceneProblem, suggest};
pub use reference::{preset_reference, reference};
pub use render::{CameraPath, Cut, Render, Sun, View, What, parse_size};

use crate::model::Model;
use document::SceneDoc;
use node::Node;
use problem::{Problems, Source};
use read::{Defs, Read};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A scene, checked and complete.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Name of the run and of its folder.
    pub name: String,
    /// The file it came from.
    pub path: PathBuf,
    /// Frames to simulate after frame 0.
    pub frames: u32,
    /// Frames a second.
    pub fps: f64,
    /// The longest step allowed [s].
    pub max_step: f64,
    /// How it is simulated.
    pub method: Method,
    /// Settings of the grid method.
    pub flip: FlipSettings,
    /// Settings of the SPH method.
    pub sph: SphSettings,
    /// Settings of the method of single grains.
    pub dem: DemSettings,
    /// Settings of the method of three phases.
    pub hybrid: HybridSettings,
    /// What is simulated.
    pub model: Model,
    /// Compression of the frame files.
    pub compression: Compression,
    /// Frames between checkpoints.
    pub checkpoint_every: u32,
    /// The grains to make when the run is done.
    pub detail: Option<DetailDoc>,
    /// The surface to make when the run is done.
    pub surface: Option<SurfaceDoc>,
    /// Files to write when the run is done.
    pub exports: Vec<Format>,
    /// Pictures to make when the run is done.
    pub render: Option<Render>,
    /// A hash of everything that decides the frames' bytes: the final parameters and the files they name.
    pub identity: u128,
    /// The final parameters, defaults included, in SI units and degrees.
    pub parameters: Value,
}

/// Settings of the grid method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlipSettings {
    /// How granular material resists shearing.
    pub friction: Friction,
    /// How velocity travels between particles and the grid.
    pub transfer: Transfer,
    /// Cells that the fastest particle may cross in a step.
    pub cfl: f64,
}

/// Settings of the method of three phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridSettings {
    /// Cells below the surface that never turn solid.
    pub depth: u32,
    /// How long [s] material must rest before it turns solid; left to the method if none.
    pub rest_time: Option<f64>,
    /// Cells around the box about a moving body in which nothing is solid.
    pub reach: u32,
}

impl Default for HybridSettings {
    fn default() -> Self {
        Self {
            depth: 0,
            rest_time: None,
            reach: 4,
        }
    }
}

/// Settings of the SPH method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SphSettings {
    /// How pressure and friction are solved for.
    pub scheme: SphScheme,
    /// Sweeps over all particles in a step.
    pub iterations: u32,
    /// How friction depends on the flow.
    pub law: SphLaw,
}

impl Default for SphSettings {
    fn default() -> Self {
        Self {
            scheme: SphScheme::Implicit,
            iterations: 5,
            law: SphLaw::Constant,
        }
    }
}

/// Settings of the method of single grains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemSettings {
    /// The law of contact.
    pub contact: Contact,
}

impl Default for DemSettings {
    fn default() -> Self {
        Self {
            contact: Contact::HertzMindlin(Stiffness::Auto { overlap: 0.01 }),
        }
    }
}

/// A law of contact between grains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contact {
    /// Hertz's normal force and Mindlin's tangential one with its history.
    HertzMindlin(Stiffness),
    /// Alduán et al. 2009, equations 1 and 2, in SI units.
    Alduan {
        /// k_n.
        stiffness: f64,
        /// γ_n.
        damping: f64,
        /// μ.
        friction: f64,
        /// k_s.
        viscous_friction: f64,
    },
}

/// How stiff grains are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stiffness {
    /// As soft as the deepest overlap [radii] allows, by what the scene can do to a grain.
    Auto {
        /// The deepest overlap [radii].
        overlap: f64,
    },
    /// Young's modulus [Pa].
    Young(f64),
}

/// How velocity travels between particles and the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transfer {
    /// Particles carry an affine velocity.
    Apic,
    /// This part of the velocity is kept and incremented, the rest is taken anew from the grid.
    Flip(f32),
}

/// A scene file is text that people write; a larger one is something else.
const MOST_BYTES: u64 = 16 << 20;

/// Loads a scene file and applies `overrides`, each written `path.to.key=value`.
///
/// # Errors
/// Every problem found, with its place.
pub fn load(path: &Path, overrides: &[String]) -> Result<Scene, SceneError> {
    parse(&read_text(path)?, path, overrides)
}

/// The text of a scene file.
fn read_text(path: &Path) -> Result<String, SceneError> {
    let name = path.display().to_string();
    let refuse = |message: String| {
        SceneError::whole(
            &name,
            message,
            "check the path, or try `barchan new` for a first scene",
        )
    };
    let about = std::fs::metadata(path).map_err(|e| refuse(format!("cannot read {name}: {e}")))?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(refuse(format!("{name} is not a scene file")));
    }
    std::fs::read_to_string(path).map_err(|e| refuse(format!("cannot read {name}: {e}")))
}

/// Like [`load`], for `text` that came from `path`; files it names are still read from disk.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, path: &Path, overrides: &[String]) -> Result<Scene, SceneError> {
    parse_changed(text, path, overrides, &mut |_| {})
}

/// Like [`parse`], with a `change` to the tree before it is read.
fn parse_changed(
    text: &str,
    path: &Path,
    overrides: &[String],
    change: &mut dyn FnMut(&mut Node),
) -> Result<Scene, SceneError> {
    let source = Source {
        name: path.display().to_string(),
        text: text.to_owned(),
        overrides: overrides.join("\n"),
    };
    let mut problems = Problems::default();
    let scene = read_tree(&source, overrides, &mut problems)
        .and_then(|mut root| {
            change(&mut root);
            by_method::check_keys(&root, &mut problems);
            SceneDoc::read(&root, "", &mut problems)
        })
        .filter(|_| problems.is_empty())
        .and_then(|document| build::build(&document, path, &mut problems));
    match scene {
        Some(scene) if problems.is_empty() => Ok(scene),
        _ => Err(SceneError::new(&source, problems)),
    }
}

/// The tree of values, with overrides merged in.
fn read_tree(source: &Source, overrides: &[String], problems: &mut Problems) -> Option<Node> {
    let mut root = match node::parse(&source.text, 0) {
        Ok(root) => root,
        Err(problem) => return problems.none(problem),
    };
    let mut offset = source.text.len();
    for text in overrides {
        node::apply_override(&mut root, text, offset, problems);
        offset += text.len() + 1;
    }
    Some(root)
}

/// The JSON Schema of scene files, for editors.
pub fn schema() -> Value {
    let mut defs = Defs::default();
    let root = SceneDoc::schema(&mut defs);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Barchan scene",
        "$ref": root["$ref"],
        "$defs": defs.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
schema = 1
frames = 2
[solver]
method = "ballistic"
resolution = "5 cm"
[materials.sand]
preset = "dry-sand"
[[fill]]
material = "sand"
shape = { sphere = { radius = 0.5 } }
"#;

    const CUBE_BESIDE_ITS_DATA: &str = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0}],
        "meshes":[{"primitives":[{"attributes":{"POSITION":0},"indices":1}]}],
        "accessors":[
          {"bufferView":0,"componentType":5126,"count":8,"type":"VEC3","min":[-1,-1,-1],"max":[1,1,1]},
          {"bufferView":1,"componentType":5125,"count":36,"type":"SCALAR"}],
        "bufferViews":[{"buffer":0,"byteOffset":0,"byteLength":96},{"buffer":0,"byteOffset":96,"byteLength":144}],
        "buffers":[{"byteLength":240,"uri":"a.bin"}]}"#;

    fn scene(text: &str, overrides: &[&str]) -> Result<Scene, SceneError> {
        let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
        parse(text, Path::new("test.toml"), &overrides)
    }

    fn messages(text: &str, overrides: &[&str]) -> Vec<String> {
        scene(text, overrides)
            .unwrap_err()
            .problems
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_minimal_scene_gets_sane_defaults() {
        let scene = scene(MINIMAL, &[]).unwrap();
        assert_eq!((scene.name.as_str(), scene.frames), ("test", 2));
        assert!((scene.fps - 24.0).abs() < 1e-12);
        assert_eq!(scene.model.gravity, glam::Vec3::new(0.0, -9.81, 0.0));
        assert!((scene.model.materials[0].friction_angle.to_degrees() - 34.0).abs() < 1e-9);
    }

    #[test]
    fn overrides_reach_every_kind_of_key() {
        let scene = scene(
            MINIMAL,
            &[
                "frames=9",
                "solver.resolution=4 mm",
                "materials.sand.friction_angle=20",
                "fill.0.shape.sphere.radius=0.1",
                "up=z",
            ],
        )
        .unwrap();
        assert_eq!(scene.frames, 9);
        assert!((scene.model.resolution - 0.004).abs() < 1e-9);
        assert!((scene.model.materials[0].friction_angle.to_degrees() - 20.0).abs() < 1e-9);
        assert!((scene.model.fills[0].shape.bounds().max.x - 0.1).abs() < 1e-6);
        assert!(scene.model.gravity.z < -9.0);
    }

    #[test]
    fn the_identity_follows_what_decides_the_frames_and_nothing_else() {
        let identity = |overrides: &[&str]| scene(MINIMAL, overrides).unwrap().identity;
        let plain = identity(&[]);
        assert_eq!(plain, identity(&["frames=50"]));
        assert_eq!(plain, identity(&["output.compression=zstd", "name=other"]));
        assert_eq!(
            plain,
            scene(&format!("# a comment\n{MINIMAL}"), &[])
                .unwrap()
                .identity
        );
        assert_eq!(plain, identity(&["solver.resolution=0.05"]));
        assert_ne!(plain, identity(&["solver.resolution=0.04"]));
        assert_ne!(plain, identity(&["seed=1"]));
    }

    #[test]
    fn a_surface_has_sane_defaults() {
        assert!(scene(MINIMAL, &[]).unwrap().surface.is_none());
        let plain = scene(&format!("{MINIMAL}[surface]\n"), &[]).unwrap();
        assert_eq!(plain.identity, scene(MINIMAL, &[]).unwrap().identity);
        let doc = plain.surface.unwrap();
        assert_eq!((doc.style, doc.smoothing.0), (SurfaceStyle::ZhuBridson, 2));
        for (change, reason) in [
            ("surface.smoothing=9", "at most 8"),
            ("surface.style=blobs", "blobby"),
            ("surface.cell=0", "positive"),
            (
                "surface.shutter={open=0.5,close=0.1}",
                "must open before it closes",
            ),
            ("surface.radius=4", "support"),
        ] {
            let error = scene(MINIMAL, &[change]).unwrap_err().problems.remove(0);
            let text = format!(
                "{error} {:?}",
                miette::Diagnostic::help(&error).map(|h| h.to_string())
            );
            assert!(text.contains(reason), "{change}: {text}");
        }
    }

    #[test]
    fn several_problems_are_found_at_once_in_the_order_of_the_text() {
        let found = messages(
            &MINIMAL
                .replace("frames = 2", "frames = 0\nfpss = 24")
                .replace("radius = 0.5", "radius = -1"),
            &["up=w"],
        );
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("\"frames\" must be at least 1, got 0"));
        assert!(found[1].contains("unknown key \"fpss\""));
        assert!(found[2].contains("\"fill[0].shape.sphere.radius\" must be positive"));
        assert!(found[3].contains("\"up\" cannot be \"w\""));
    }

    #[test]
    fn rules_between_keys_are_checked() {
        for (change, reason) in [
            ("fill.0.material=snad", "no material \"snad\""),
            ("fill.0.shape=ground", "has no end"),
            (
                "fill.0.shape={sphere={at=[1e5,0,0],radius=1}}",
                "m from the origin",
            ),
            ("materials.sand.preset=dry-snad", "no preset \"dry-snad\""),
            ("materials.sand.grain_density=100", "grain_density"),
            ("schema=2", "newer"),
            ("name=../x", "name"),
            ("body=[{friction=1}]", "shape or a sequence"),
            (
                "body=[{shape='ground', keyframes=[{time=1},{time=1}]}]",
                "later than",
            ),
            (
                "emit=[{material='sand',shape={sphere={radius=1}},rate=1,from=2,until=1}]",
                "until",
            ),
            ("body=[{shape={mesh={file='none.obj'}}}]", "none.obj"),
        ] {
            let found = messages(MINIMAL, &[change]);
            assert!(
                found.len() == 1 && found[0].contains(reason),
                "{change}: {found:?}"
            );
        }
        let empty = MINIMAL.split("[[fill]]").next().unwrap();
        assert!(messages(empty, &[])[0].contains("nothing to simulate"));
    }

    #[test]
    fn numbers_beyond_all_bounds_are_told_in_a_line() {
        for (change, reason) in [
            ("frames=18446744073709551616", "at most 999999, got 1844"),
            ("frames=1000000", "at most 999999"),
            ("frames=-1", "at least 1"),
            ("frames=1e300", "written without a point"),
            ("fps=1e300", "at most 3.4e38, got 1e300"),
            ("fps=nan", "a finite number"),
            ("solver.resolution=1e-300", "positive, got 1e-300 m"),
            (
                "fill.0.shape={sphere={radius=1},at=[0,1,0]}",
                "\"at\" stands beside sphere",
            ),
            ("fill.0.shape={sphere={radius=1},box={size=1}}", "at once"),
        ] {
            let found = messages(MINIMAL, &[change]);
            assert!(found[0].contains(reason), "{change}: {found:?}");
            assert!(found[0].len() < 120, "{change}: {found:?}");
        }
    }

    #[test]
    fn keys_of_other_methods_are_refused() {
        for (change, reason) in [
            ("solver.cfl=0.5", "method = \"flip\" or \"hybrid\" only"),
            ("solver.flip_ratio=0.5", "method = \"flip\" only"),
            ("solver.transfer=apic", "method = \"flip\" only"),
            ("solver.friction=zhu-bridson", "method = \"flip\" only"),
            (
                "solver.iterations=4",
                "means something for method = \"sph\" only",
            ),
            ("solver.overlap=0.1", "method = \"dem\" only"),
            ("solver.depth=1", "method = \"hybrid\" only"),
        ] {
            let found = messages(MINIMAL, &[change]);
            assert!(
                found.len() == 1 && found[0].contains(reason),
                "{change}: {found:?}"
            );
        }
        for change in ["friction=zhu-bridson", "transfer=flip", "flip_ratio=0.5"] {
            let change = format!("solver.{change}");
            let found = messages(MINIMAL, &["solver.method=hybrid", &change]);
            assert!(
                found[0].contains("method = \"flip\" only"),
                "{change}: {found:?}"
            );
        }
        assert!(scene(MINIMAL, &["solver.method=hybrid", "solver.cfl=2"]).is_ok());
        // A run's record repeats what is so anyway.
        assert!(scene(MINIMAL, &["solver.friction=implicit"]).is_ok());
    }

    #[test]
    fn the_number_of_a_sequence_has_few_digits() {
        let files = format!(
            "body=[{{sequence={{files='{}',first=1,last=2}}}}]",
            "#".repeat(70_000)
        );
        assert!(messages(MINIMAL, &[&files])[0].contains("at most 9"));
    }

    #[test]
    fn side_files_of_meshes_lie_beside_them_and_decide_the_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        let text = MINIMAL.to_owned() + "[[body]]\nshape = { mesh = { file = \"a.gltf\" } }\n";
        std::fs::write(folder.path().join("a.gltf"), CUBE_BESIDE_ITS_DATA).unwrap();
        let identity = |stretch: f32| {
            let cube = barchan_base::mesh::unit_cube();
            let cube = cube.mapped(|vertex| vertex * stretch).unwrap();
            let mut data: Vec<u8> = bytemuck::cast_slice(cube.vertices()).to_vec();
            data.extend_from_slice(bytemuck::cast_slice(cube.triangles()));
            std::fs::write(folder.path().join("a.bin"), data).unwrap();
            parse(&text, &path, &[]).unwrap().identity
        };
        assert_ne!(identity(1.0), identity(2.0));
    }

    #[test]
    fn rules_of_bodies_are_checked() {
        for (change, reason) in [
            (
                "body=[{shape={sphere={radius=1}},mass=1}]",
                "dynamic body's",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamc'}]",
                "cannot be",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='keyframed'}]",
                "needs keyframes",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamic'}]",
                "density or a mass",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamic',mass=0}]",
                "must be positive",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamic',mass=1,density=1}]",
                "not both",
            ),
            (
                "body=[{shape='ground',motion='dynamic',mass=1}]",
                "no volume or no end",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamic',mass=1,keyframes=[{time=0}]}]",
                "cannot have keyframes",
            ),
            (
                "body=[{shape={sphere={radius=1}},motion='dynamic',mass=1e-42}]",
                "too light",
            ),
        ] {
            let found = messages(MINIMAL, &[change]);
            assert!(
                found.len() == 1 && found[0].contains(reason),
                "{change}: {found:?}"
            );
        }
    }

    #[test]
    fn rules_of_joints_are_checked() {
        for (joint, reason) in [
            ("{kind='ball',body='bal',at=[0,0,0]}", "no body \"bal\""),
            (
                "{kind='ball',body='ball',to='flor',at=[0,0,0]}",
                "no body \"flor\"",
            ),
            (
                "{kind='ball',body='floor',at=[0,0,0]}",
                "not a dynamic body",
            ),
            (
                "{kind='ball',body='ball',to='ball',at=[0,0,0]}",
                "tied to itself",
            ),
            (
                "{kind='ball',body='ball',at=[0,0,0],length=1}",
                "no \"length\"",
            ),
            ("{kind='hinge',body='ball',at=[0,0,0]}", "needs an axis"),
            (
                "{kind='hinge',body='ball',at=[0,0,0],axis=[0,0,0]}",
                "needs an axis",
            ),
            ("{kind='rope',body='ball',at=[0,0,0]}", "other end"),
            (
                "{kind='rope',body='ball',at=[0,0,0],to_at=[0,0,0]}",
                "at one place",
            ),
        ] {
            let bodies = "body=[{name='floor',shape='ground'},\
                {name='ball',motion='dynamic',density=500,shape={sphere={radius=1,at=[0,5,0]}}}]";
            let found = messages(MINIMAL, &[bodies, &format!("joint=[{joint}]")]);
            assert!(
                found.len() == 1 && found[0].contains(reason),
                "{joint}: {found:?}"
            );
        }
    }

    /// The parser must survive anything: random text, and a valid scene with bytes changed.
    #[test]
    fn hostile_scenes_do_not_panic() {
        bolero::check!()
            .with_iterations(4000)
            .with_type::<(Vec<(u16, u8)>, String)>()
            .for_each(|(edits, noise)| {
                let mut bytes = MINIMAL.as_bytes().to_vec();
                for (at, value) in edits {
                    let at = *at as usize % bytes.len();
                    bytes[at] = *value;
                }
                let _ = scene(&String::from_utf8_lossy(&bytes), &[]);
                let _ = scene(noise, &[]);
                let _ = scene(MINIMAL, &[noise]);
            });
    }

    #[test]
    fn deep_nesting_is_refused_not_overflowed() {
        let mut shape = "{ sphere = { radius = 1 } }".to_owned();
        for _ in 0..2000 {
            shape = format!("{{ union = {{ of = [{shape}] }} }}");
        }
        let text = MINIMAL.replace("{ sphere = { radius = 0.5 } }", &shape);
        assert!(scene(&text, &[]).is_err());
        // Dotted keys nest without brackets that a parser would count.
        let keys = vec!["a"; 100_000].join(".");
        for text in [format!("{keys} = 1"), format!("[{keys}]\nb = 1")] {
            assert!(messages(&text, &[])[0].contains("nested more than 64 deep"));
        }
        assert!(messages(MINIMAL, &[&format!("{keys}=1")])[0].contains("at most 64 keys"));
    }

    #[test]
    fn the_schema_knows_every_key_and_refers_to_nothing_missing() {
        let schema = schema();
        let text = schema.to_string();
        for key in [
            "friction_angle",
            "resolution",
            "smooth_union",
            "heightfield",
            "restitution",
            "keyframes",
        ] {
            assert!(text.contains(&format!("\"{key}\"")), "{key}");
        }
        let defs = schema["$defs"].as_object().unwrap();
        for reference in text
            .split("#/$defs/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
        {
            assert!(
                defs.contains_key(reference) && !defs[reference].is_null(),
                "{reference}"
            );
        }
    }
}
