//! USD stages: one file with every frame as a time sample: `Points` for particles, a `PointInstancer` for grains that have shapes, and
//! a `Mesh` for surfaces. Time codes are frame numbers.

mod binary;
mod crate_file;
mod instances;
mod text;

pub(super) use binary::write as write_binary;
pub(super) use text::write as write_text;

use super::snapshot::{Content, Snapshot};
use crate::cache::FrameMeta;
use crate::geometry::{floats, identifier, integers, one_line};
use barchan_base::column::{ColumnSpec, Kind, as_bytes};
use barchan_sim::grain::GrainShape;
use glam::{Mat4, Quat, Vec3};
use instances::Prototype;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// USD's types of arrays that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Float,
    Float3,
    Point3,
    Vector3,
    Normal3,
    Color3,
    Int,
    Int64,
    Double,
    Quaternion,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Float => "float[]",
            Self::Float3 => "float3[]",
            Self::Point3 => "point3f[]",
            Self::Vector3 => "vector3f[]",
            Self::Normal3 => "normal3f[]",
            Self::Color3 => "color3f[]",
            Self::Int => "int[]",
            Self::Int64 => "int64[]",
            Self::Double => "double[]",
            Self::Quaternion => "quath[]",
        }
    }
}

/// An attribute's value in one frame.
struct Attribute<'a> {
    name: String,
    kind: Type,
    /// True where it has one entry a point and USD does not know so already.
    vertex: bool,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Attribute<'a> {
    fn new(name: &str, kind: Type, bytes: &'a [u8]) -> Self {
        Self {
            name: name.into(),
            kind,
            vertex: false,
            bytes: Cow::Borrowed(bytes),
        }
    }

    fn owned(name: &str, kind: Type, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            kind,
            vertex: false,
            bytes: Cow::Owned(bytes),
        }
    }

    fn on_vertices(mut self) -> Self {
        self.vertex = true;
        self
    }
}

/// What becomes of a frame's content.
#[derive(Clone, Copy)]
pub(super) enum Shown<'a> {
    /// Points or a mesh.
    Plain,
    /// Instances of the grains of each material; where there are none, of balls.
    Instances(&'a [Arc<GrainShape>]),
}

/// The name of the prim and its schema.
fn prim(content: &Content, shown: Shown<'_>) -> (&'static str, &'static str) {
    match (content, shown) {
        (Content::Particles(_), Shown::Plain) => ("particles", "Points"),
        (Content::Particles(_), Shown::Instances(_)) => ("grains", "PointInstancer"),
        (Content::Mesh(_), _) => ("mesh", "Mesh"),
    }
}

/// Everything that changes with time, in a fixed order.
fn attributes<'a>(snapshot: &'a Snapshot, shown: Shown<'_>) -> Vec<Attribute<'a>> {
    let instances = matches!(shown, Shown::Instances(_));
    let name = if instances { "positions" } else { "points" };
    let mut all = vec![Attribute::new(
        name,
        Type::Point3,
        as_bytes(snapshot.positions()),
    )];
    // Of nothing, as USD itself says it: the wrong way round.
    let (least, most) = snapshot.bounds().unwrap_or((Vec3::MAX, Vec3::MIN));
    let corners = as_bytes(&[least, most]).to_vec();
    all.push(Attribute::owned("extent", Type::Float3, corners));
    if let Content::Mesh(mesh) = &snapshot.content {
        let counts = vec![3u32; mesh.triangles.len()];
        all.push(Attribute::owned(
            "faceVertexCounts",
            Type::Int,
            as_bytes(&counts).to_vec(),
        ));
        let corners = as_bytes(mesh.triangles.as_flattened());
        all.push(Attribute::new("faceVertexIndices", Type::Int, corners));
    }
    for (spec, bytes) in snapshot.columns() {
        let own = if instances {
            instances::attribute(spec, bytes)
        } else {
            None
        };
        all.extend(own.or_else(|| attribute(spec, bytes)));
    }
    all
}

/// A column as an attribute.
fn attribute(spec: ColumnSpec, bytes: &[u8]) -> Option<Attribute<'_>> {
    match spec.name {
        "velocity" => Some(Attribute::new("velocities", Type::Vector3, bytes)),
        "id" => Some(Attribute::new("ids", Type::Int64, bytes)),
        "normal" => Some(Attribute::new("normals", Type::Normal3, bytes).on_vertices()),
        "color" => Some(Attribute::new("primvars:displayColor", Type::Color3, bytes).on_vertices()),
        "radius" => {
            let widths: Vec<f32> = floats(spec.kind, bytes).iter().map(|r| 2.0 * r).collect();
            let bytes = as_bytes(&widths).to_vec();
            Some(Attribute::owned("widths", Type::Float, bytes).on_vertices())
        }
        name => primvar(&format!("primvars:{}", identifier(name)), spec.kind, bytes),
    }
}

/// A column that the schema has no place for; four numbers and matrices have no type there.
fn primvar<'a>(name: &str, kind: Kind, bytes: &'a [u8]) -> Option<Attribute<'a>> {
    let attribute = match kind {
        Kind::F32 => Attribute::new(name, Type::Float, bytes),
        Kind::F64 => Attribute::new(name, Type::Double, bytes),
        Kind::Vec3 => Attribute::new(name, Type::Float3, bytes),
        Kind::U64 => Attribute::new(name, Type::Int64, bytes),
        Kind::U16 | Kind::U32 => {
            let values = integers(kind, bytes)?;
            Attribute::owned(name, Type::Int, bytemuck::cast_slice(&values).to_vec())
        }
        Kind::Vec4 | Kind::Mat3 => return None,
    };
    Some(attribute.on_vertices())
}

/// An attribute over all frames; `S` is how a writer keeps its samples until it knows them all.
struct Track<S> {
    name: String,
    kind: Type,
    vertex: bool,
    /// Samples so far.
    count: usize,
    samples: S,
}

/// A stage whose frames have all been seen.
struct Stage<S> {
    head: Head,
    /// The name of the prim and its schema.
    prim: (&'static str, &'static str),
    /// What its instances are copies of, in the order of the materials; none where it has no instances.
    prototypes: Vec<Prototype>,
    tracks: Vec<Track<S>>,
    /// The time codes, at which every track has a sample.
    codes: Vec<u32>,
}

/// How a writer keeps samples.
trait Keep {
    type Samples;
    fn begin(&mut self) -> io::Result<Self::Samples>;
    /// Keeps the value of an attribute of type `kind` at time `code`.
    fn add(
        &mut self,
        samples: &mut Self::Samples,
        kind: Type,
        code: u32,
        bytes: &[u8],
    ) -> io::Result<()>;
}

/// Goes through all frames once. What a frame does not have is empty there.
fn gather<K: Keep>(
    keep: &mut K,
    snapshots: &mut dyn Iterator<Item = Snapshot>,
    shown: Shown<'_>,
) -> io::Result<Stage<K::Samples>> {
    let mut tracks: Vec<Track<K::Samples>> = Vec::new();
    let mut codes = Vec::new();
    let mut first = None;
    for snapshot in snapshots {
        let frame = snapshot.meta.frame;
        for attribute in attributes(&snapshot, shown) {
            let known = tracks.iter().position(|track| track.name == attribute.name);
            let place = known.unwrap_or(tracks.len());
            if known.is_none() {
                let mut samples = keep.begin()?;
                for &earlier in &codes {
                    keep.add(&mut samples, attribute.kind, earlier, &[])?;
                }
                tracks.push(Track {
                    name: attribute.name.clone(),
                    kind: attribute.kind,
                    vertex: attribute.vertex,
                    count: codes.len(),
                    samples,
                });
            }
            let track = &mut tracks[place];
            keep.add(&mut track.samples, track.kind, frame, &attribute.bytes)?;
            track.count += 1;
        }
        codes.push(frame);
        for track in tracks.iter_mut().filter(|track| track.count < codes.len()) {
            keep.add(&mut track.samples, track.kind, frame, &[])?;
            track.count += 1;
        }
        first.get_or_insert_with(|| (prim(&snapshot.content, shown), snapshot.meta.clone()));
    }
    let (prim, meta) = first.ok_or_else(|| io::Error::other("there is no frame to write"))?;
    let head = Head::new(&meta, codes[0], codes[codes.len() - 1]);
    let prototypes = match shown {
        Shown::Plain => Vec::new(),
        Shown::Instances(shapes) => instances::prototypes(&meta.materials, shapes),
    };
    Ok(Stage {
        head,
        prim,
        prototypes,
        tracks,
        codes,
    })
}

/// What the stage says about itself.
struct Head {
    about: String,
    start: u32,
    end: u32,
    fps: f64,
    up: &'static str,
    /// How all is turned, where neither of USD's two axes is up.
    turn: Option<Mat4>,
}

impl Head {
    fn new(meta: &FrameMeta, start: u32, end: u32) -> Self {
        let (up, turn) = upright(meta);
        Self {
            about: format!("Barchan, scene {}", one_line(&meta.scene)),
            start,
            end,
            fps: meta.fps,
            up,
            turn,
        }
    }
}

/// Which of USD's two axes is up, and the turn that is still needed.
fn upright(meta: &FrameMeta) -> (&'static str, Option<Mat4>) {
    let up = meta.up.normalize_or(Vec3::Y);
    if up.dot(Vec3::Y) > 0.999 {
        ("Y", None)
    } else if up.dot(Vec3::Z) > 0.999 {
        ("Z", None)
    } else {
        (
            "Y",
            Some(Mat4::from_quat(Quat::from_rotation_arc(up, Vec3::Y))),
        )
    }
}
