//! USD stages: one file with every frame as a time sample, `Points` for particles and a `Mesh` for surfaces. Time codes are
//! frame numbers.

mod text;

pub(super) use text::write as write_text;

use super::snapshot::{Content, Snapshot, floats, identifier, integers, one_line};
use crate::cache::FrameMeta;
use barchan_base::column::{Kind, as_bytes};
use glam::{Mat4, Quat, Vec3};
use std::borrow::Cow;

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

/// The name of the prim and its schema.
fn prim(content: &Content) -> (&'static str, &'static str) {
    match content {
        Content::Particles(_) => ("particles", "Points"),
        Content::Mesh(_) => ("mesh", "Mesh"),
    }
}

/// Everything that changes with time, in a fixed order.
fn attributes(snapshot: &Snapshot) -> Vec<Attribute<'_>> {
    let mut all = vec![Attribute::new(
        "points",
        Type::Point3,
        as_bytes(snapshot.positions()),
    )];
    if let Some((least, most)) = snapshot.bounds() {
        let corners = as_bytes(&[least, most]).to_vec();
        all.push(Attribute::owned("extent", Type::Float3, corners));
    }
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
        all.extend(match spec.name {
            "velocity" => Some(Attribute::new("velocities", Type::Vector3, bytes)),
            "id" => Some(Attribute::new("ids", Type::Int64, bytes)),
            "normal" => Some(Attribute::new("normals", Type::Normal3, bytes).on_vertices()),
            "color" => {
                Some(Attribute::new("primvars:displayColor", Type::Color3, bytes).on_vertices())
            }
            "radius" => {
                let widths: Vec<f32> = floats(spec.kind, bytes).iter().map(|r| 2.0 * r).collect();
                let bytes = as_bytes(&widths).to_vec();
                Some(Attribute::owned("widths", Type::Float, bytes).on_vertices())
            }
            name => primvar(&format!("primvars:{}", identifier(name)), spec.kind, bytes),
        });
    }
    all
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

/// What the stage says about itself.
fn about(meta: &FrameMeta) -> String {
    format!("Barchan, scene {}", one_line(&meta.scene))
}
