//! Binary glTF: one mesh, turned so that up is +y, as glTF wants it.

use super::About;
use crate::surface::SurfaceMesh;
use glam::{Quat, Vec3};
use serde_json::{Value, json};
use std::io::{self, Write};

const FLOAT: u32 = 5126;
const UNSIGNED_INT: u32 = 5125;

/// Accessors and the views behind them, one after the other in the binary chunk.
#[derive(Default)]
struct Buffers {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl Buffers {
    /// Adds an array; returns the number of its accessor.
    fn add(&mut self, bytes: &[u8], kind: u32, shape: &str, count: usize) -> usize {
        self.views.push(
            json!({ "buffer": 0, "byteOffset": self.bytes.len(), "byteLength": bytes.len() }),
        );
        self.bytes.extend_from_slice(bytes);
        self.accessors.push(json!({
            "bufferView": self.views.len() - 1, "componentType": kind, "type": shape, "count": count,
        }));
        self.accessors.len() - 1
    }

    fn vectors(&mut self, vectors: &[Vec3]) -> usize {
        self.add(bytemuck::cast_slice(vectors), FLOAT, "VEC3", vectors.len())
    }
}

pub(super) fn write(file: &mut impl Write, mesh: &SurfaceMesh, about: &About) -> io::Result<()> {
    let mut buffers = Buffers::default();
    let mut document = json!({
        "asset": { "version": "2.0", "generator": about.stamp },
        "extras": { "frame": about.frame, "time": about.time },
        "scene": 0,
        "scenes": [{ "nodes": [] }],
    });
    // A glTF mesh must not be empty; a scene may.
    if !mesh.triangles.is_empty() {
        let primitive = primitive(mesh, &mut buffers);
        document["meshes"] = json!([{ "primitives": [primitive] }]);
        let turn = Quat::from_rotation_arc(about.up, Vec3::Y);
        document["nodes"] = json!([{ "mesh": 0, "rotation": turn.to_array() }]);
        document["scenes"] = json!([{ "nodes": [0] }]);
        document["buffers"] = json!([{ "byteLength": buffers.bytes.len() }]);
        document["bufferViews"] = buffers.views.into();
        document["accessors"] = buffers.accessors.into();
    }
    let mut text = document.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    // Every array has entries of four bytes, so the binary chunk is aligned as it is.
    let body = &buffers.bytes;
    let chunks = 8 + text.len() + if body.is_empty() { 0 } else { 8 + body.len() };
    let size = |bytes: usize| {
        u32::try_from(bytes)
            .map(u32::to_le_bytes)
            .map_err(|_| io::Error::other("a GLB file holds at most 4 GB; choose another format"))
    };
    file.write_all(b"glTF")?;
    file.write_all(&2u32.to_le_bytes())?;
    file.write_all(&size(12 + chunks)?)?;
    file.write_all(&size(text.len())?)?;
    file.write_all(b"JSON")?;
    file.write_all(&text)?;
    if !body.is_empty() {
        file.write_all(&size(body.len())?)?;
        file.write_all(b"BIN\0")?;
        file.write_all(body)?;
    }
    Ok(())
}

fn primitive(mesh: &SurfaceMesh, buffers: &mut Buffers) -> Value {
    let mut attributes = json!({});
    let position = buffers.vectors(&mesh.positions);
    let (low, high) = mesh
        .positions
        .iter()
        .fold((Vec3::INFINITY, Vec3::NEG_INFINITY), |(low, high), p| {
            (low.min(*p), high.max(*p))
        });
    buffers.accessors[position]["min"] = json!(low.to_array());
    buffers.accessors[position]["max"] = json!(high.to_array());
    attributes["POSITION"] = position.into();
    let optional = [
        ("NORMAL", &mesh.normals),
        ("COLOR_0", &mesh.colors),
        ("_VELOCITY", &mesh.velocities),
    ];
    for (name, column) in optional {
        if !column.is_empty() {
            attributes[name] = buffers.vectors(column).into();
        }
    }
    if !mesh.materials.is_empty() {
        let numbers: Vec<f32> = mesh.materials.iter().map(|m| f32::from(*m)).collect();
        let bytes = bytemuck::cast_slice(&numbers);
        attributes["_MATERIAL"] = buffers.add(bytes, FLOAT, "SCALAR", numbers.len()).into();
    }
    let corners = bytemuck::cast_slice(&mesh.triangles);
    let indices = buffers.add(corners, UNSIGNED_INT, "SCALAR", 3 * mesh.triangles.len());
    json!({ "attributes": attributes, "indices": indices })
}
