//! Binary glTF 2.0, a file a frame: points for particles, triangles for meshes. Columns without a place of their own in
//! glTF become attributes with an underscore, a float each: `_RADIUS`, `_VELOCITY_X`. Blender fails on files where such attributes
//! differ in width.

use super::{Column, Geometry, floats, identifier, width};
use barchan_base::column::as_bytes;
use glam::{Quat, Vec3};
use serde_json::{Value, json};
use std::io::{self, Write};

/// glTF's codes.
const FLOAT: u32 = 5126;
const UNSIGNED_INT: u32 = 5125;
const POINTS: u32 = 0;
const TRIANGLES: u32 = 4;
const ARRAY_BUFFER: u32 = 34962;
const ELEMENT_ARRAY_BUFFER: u32 = 34963;

/// The binary chunk, and the JSON that says what lies where.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl Chunk {
    /// Adds `bytes` as an accessor; its number.
    fn add(&mut self, bytes: &[u8], target: u32, mut accessor: Value) -> usize {
        self.views.push(json!({
            "buffer": 0, "byteOffset": self.bytes.len(), "byteLength": bytes.len(), "target": target,
        }));
        accessor["bufferView"] = (self.views.len() - 1).into();
        self.bytes.extend_from_slice(bytes);
        self.accessors.push(accessor);
        self.accessors.len() - 1
    }
}

/// The attributes that a column becomes, each with its name and its numbers.
fn attributes_of((spec, bytes): &Column<'_>) -> Vec<(String, Vec<f32>)> {
    let values = floats(spec.kind, bytes);
    let name = identifier(spec.name).to_uppercase();
    let parts: &[&str] = match (spec.name, width(spec.kind)) {
        ("normal", _) => return vec![("NORMAL".into(), values)],
        ("color", _) => return vec![("COLOR_0".into(), values)],
        (_, 1) => return vec![(format!("_{name}"), values)],
        (_, 3) => &["X", "Y", "Z"],
        _ => &["0", "1", "2", "3", "4", "5", "6", "7", "8"],
    };
    let part = |(i, part): (usize, &&str)| {
        let values = values.iter().skip(i).step_by(parts.len()).copied();
        (format!("_{name}_{part}"), values.collect())
    };
    parts.iter().enumerate().map(part).collect()
}

/// The one primitive of the file, its bytes added to `chunk`.
fn primitive(geometry: &Geometry<'_>, chunk: &mut Chunk) -> Value {
    let positions = geometry.positions;
    let least = positions.iter().copied().reduce(Vec3::min);
    let most = positions.iter().copied().reduce(Vec3::max);
    let place = json!({
        "componentType": FLOAT, "count": positions.len(), "type": "VEC3",
        "min": least.map(|v| v.to_array()), "max": most.map(|v| v.to_array()),
    });
    let mut attributes = json!({ "POSITION": chunk.add(as_bytes(positions), ARRAY_BUFFER, place) });
    for (name, values) in geometry.columns.iter().flat_map(attributes_of) {
        let kind = if values.len() == positions.len() {
            "SCALAR"
        } else {
            "VEC3"
        };
        let accessor = json!({ "componentType": FLOAT, "count": positions.len(), "type": kind });
        attributes[name] = chunk.add(as_bytes(&values), ARRAY_BUFFER, accessor).into();
    }
    let Some(triangles) = geometry.triangles else {
        return json!({ "attributes": attributes, "mode": POINTS });
    };
    let corners = triangles.as_flattened();
    let accessor =
        json!({ "componentType": UNSIGNED_INT, "count": corners.len(), "type": "SCALAR" });
    let indices = chunk.add(as_bytes(corners), ELEMENT_ARRAY_BUFFER, accessor);
    json!({ "attributes": attributes, "mode": TRIANGLES, "indices": indices })
}

/// The whole document but for the binary chunk and the asset.
fn document(geometry: &Geometry<'_>, chunk: &mut Chunk) -> Value {
    let mut document = json!({
        "extras": { "frame": geometry.frame, "time": geometry.time },
        "scene": 0,
        "scenes": [{ "nodes": [] }],
    });
    // glTF has no empty accessors: a frame without points or triangles is a scene without nodes.
    if geometry.positions.is_empty() || geometry.triangles.is_some_and(<[_]>::is_empty) {
        return document;
    }
    let primitive = primitive(geometry, chunk);
    let name = match geometry.triangles {
        None => "particles",
        Some(_) => "mesh",
    };
    // In glTF y is up.
    let upright = Quat::from_rotation_arc(geometry.up, Vec3::Y);
    document["scenes"][0]["nodes"] = json!([0]);
    document["nodes"] = json!([{ "name": name, "mesh": 0, "rotation": upright.to_array() }]);
    document["meshes"] = json!([{ "name": name, "primitives": [primitive] }]);
    document["buffers"] = json!([{ "byteLength": chunk.bytes.len() }]);
    document["bufferViews"] = std::mem::take(&mut chunk.views).into();
    document["accessors"] = std::mem::take(&mut chunk.accessors).into();
    document
}

pub(crate) fn write(file: &mut impl Write, geometry: &Geometry<'_>) -> io::Result<()> {
    let mut chunk = Chunk::default();
    // What the file is about comes first, so that nobody has to read far to know.
    let asset = json!({ "version": "2.0", "generator": geometry.about });
    let rest = document(geometry, &mut chunk).to_string();
    let mut text = format!("{{\"asset\":{asset},{}", &rest[1..]).into_bytes();
    // Chunks are padded to whole words: text with blanks, numbers are whole already.
    text.resize(text.len().next_multiple_of(4), b' ');
    let mut chunks = vec![(*b"JSON", text)];
    if !chunk.bytes.is_empty() {
        chunks.push((*b"BIN\0", chunk.bytes));
    }
    let length = 12
        + chunks
            .iter()
            .map(|(_, bytes)| 8 + bytes.len())
            .sum::<usize>();
    let too_large = || {
        io::Error::other("a glTF file holds at most 4 GB; export fewer columns, or another format")
    };
    let length = u32::try_from(length).map_err(|_| too_large())?;
    file.write_all(b"glTF")?;
    file.write_all(&2u32.to_le_bytes())?;
    file.write_all(&length.to_le_bytes())?;
    for (kind, bytes) in chunks {
        file.write_all(&(bytes.len() as u32).to_le_bytes())?;
        file.write_all(&kind)?;
        file.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::{self, Snapshot};

    fn parsed(snapshot: &Snapshot) -> (Value, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes, &snapshot.geometry()).expect("memory takes all");
        let word =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
        assert!(bytes.starts_with(b"glTF") && word(4) == 2 && word(8) == bytes.len());
        let end = 20 + word(12);
        let document = serde_json::from_slice(&bytes[20..end]).expect("JSON");
        let binary = bytes.get(end + 8..).unwrap_or_default().to_vec();
        (document, binary)
    }

    #[test]
    fn accessors_point_at_their_numbers() {
        let (document, binary) = parsed(&samples::particles(3, 2));
        let attributes = &document["meshes"][0]["primitives"][0]["attributes"];
        let number = |value: &Value| value.as_u64().expect("a number") as usize;
        let accessor = &document["accessors"][number(&attributes["_VELOCITY_Y"])];
        let view = &document["bufferViews"][number(&accessor["bufferView"])];
        let at = number(&view["byteOffset"]);
        let values: Vec<f32> = binary[at..at + number(&view["byteLength"])]
            .chunks(4)
            .map(|b| f32::from_le_bytes(b.try_into().expect("four")))
            .collect();
        assert_eq!(values, [0.0, -1.0, -2.0]);
        let place = &document["accessors"][number(&attributes["POSITION"])];
        assert_eq!(place["max"], json!([2.0, -2.0, 2.0]));
        assert!(attributes["_HEAT_OF_IT"].is_u64());
        assert_eq!(document["buffers"][0]["byteLength"], binary.len());
    }

    #[test]
    fn meshes_have_triangles_and_empty_frames_are_valid() {
        let (document, binary) = parsed(&samples::tetrahedron(0));
        let primitive = &document["meshes"][0]["primitives"][0];
        assert_eq!(primitive["mode"], TRIANGLES);
        assert_eq!(binary[binary.len() - 4..], 2u32.to_le_bytes());
        let (document, binary) = parsed(&samples::particles(0, 0));
        assert!(binary.is_empty() && document.get("accessors").is_none());
        assert_eq!(document["scenes"][0]["nodes"], json!([]));
    }
}
