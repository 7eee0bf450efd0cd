//! Grains as instances: each is a copy of its material's prototype, placed, turned and scaled.

use super::{Attribute, Type};
use crate::geometry::{floats, identifier, integers};
use barchan_base::column::{ColumnSpec, Kind, as_bytes};
use barchan_sim::grain::GrainShape;
use glam::{DVec3, Quat, Vec3, Vec4};
use half::f16;
use std::sync::Arc;

/// The name of the prim that holds the prototypes. Beneath the instancer, they are seen through instances only.
pub const FOLDER: &str = "prototypes";

/// What a material's grains are copies of.
pub struct Prototype {
    /// A name that no other has.
    pub name: String,
    /// Its balls; the grain's radius is 1.
    pub balls: Vec<(DVec3, f64)>,
}

/// A prototype for each of `materials`; one that is not in `shapes` has balls.
pub fn prototypes(materials: &[String], shapes: &[Arc<GrainShape>]) -> Vec<Prototype> {
    let prototype = |(i, material): (usize, &String)| Prototype {
        name: format!("{}_{i}", identifier(material)),
        balls: match shapes.get(i) {
            Some(shape) => shape.balls().to_vec(),
            None => vec![(DVec3::ZERO, 1.0)],
        },
    };
    materials.iter().enumerate().map(prototype).collect()
}

/// What an instancer calls a column otherwise than other prims do; `None` for the rest.
pub fn attribute(spec: ColumnSpec, bytes: &[u8]) -> Option<Attribute<'_>> {
    match (spec.name, spec.kind) {
        ("material", kind) => {
            let materials = integers(kind, bytes)?;
            let bytes = bytemuck::cast_slice(&materials).to_vec();
            Some(Attribute::owned("protoIndices", Type::Int, bytes))
        }
        ("radius", kind) => {
            let radii = floats(kind, bytes);
            let scales: Vec<Vec3> = radii.iter().map(|radius| Vec3::splat(*radius)).collect();
            let bytes = as_bytes(&scales).to_vec();
            Some(Attribute::owned("scales", Type::Float3, bytes))
        }
        ("orientation", Kind::Vec4) => Some(turns(bytes, |[x, y, z, w]: [f32; 4]| {
            Vec4::new(x, y, z, w).normalize_or(Vec4::W)
        })),
        ("orientation", Kind::Vec3) => Some(turns(bytes, |axis: [f32; 3]| {
            Quat::from_scaled_axis(axis.into()).into()
        })),
        _ => None,
    }
}

/// Quaternions as USD has them: three imaginary parts, then the real one, 16 bits each.
fn turns<T: bytemuck::AnyBitPattern>(bytes: &[u8], turn: impl Fn(T) -> Vec4) -> Attribute<'_> {
    let parts = bytes.chunks_exact(size_of::<T>()).flat_map(|entry| {
        let [x, y, z, w] = turn(bytemuck::pod_read_unaligned(entry)).to_array();
        [x, y, z, w].map(f16::from_f32).map(f16::to_ne_bytes)
    });
    let bytes = parts.flatten().collect();
    Attribute::owned("orientations", Type::Quaternion, bytes)
}
