//! Geometry from PLY files.

use super::Soup;
use glam::Vec3;
use ply_rs_bw::parser::{Parser, Reader};
use ply_rs_bw::ply::{DefaultElement, Property, PropertyAccess, PropertyAccessResult};
use std::io::Cursor;

struct Vertex(Vec3);

impl PropertyAccess for Vertex {
    fn new() -> Self {
        Self(Vec3::NAN)
    }

    fn set_property(&mut self, key: &str, property: Property) -> PropertyAccessResult {
        let value = match property {
            Property::Float(value) => value,
            Property::Double(value) => value as f32,
            Property::Int(value) => value as f32,
            Property::Short(value) => f32::from(value),
            _ => return PropertyAccessResult::Set,
        };
        match key {
            "x" => self.0.x = value,
            "y" => self.0.y = value,
            "z" => self.0.z = value,
            _ => {}
        }
        PropertyAccessResult::Set
    }
}

struct Face(Vec<u32>);

impl PropertyAccess for Face {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn set_property(&mut self, key: &str, property: Property) -> PropertyAccessResult {
        // A negative index becomes one that no mesh has, and is reported as such.
        let index = |i: i64| u32::try_from(i).unwrap_or(u32::MAX);
        if key == "vertex_indices" || key == "vertex_index" {
            self.0 = match property {
                Property::ListChar(list) => list.into_iter().map(|i| index(i.into())).collect(),
                Property::ListUChar(list) => list.into_iter().map(u32::from).collect(),
                Property::ListShort(list) => list.into_iter().map(|i| index(i.into())).collect(),
                Property::ListUShort(list) => list.into_iter().map(u32::from).collect(),
                Property::ListInt(list) => list.into_iter().map(|i| index(i.into())).collect(),
                Property::ListUInt(list) => list,
                _ => Vec::new(),
            };
        }
        PropertyAccessResult::Set
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Soup, String> {
    let mut reader = Reader::new(Cursor::new(bytes));
    let vertices = Parser::<Vertex>::new();
    let faces = Parser::<Face>::new();
    let others = Parser::<DefaultElement>::new();
    let header = vertices
        .read_header(&mut reader)
        .map_err(|e| e.to_string())?;
    let (mut points, mut triangles) = (Vec::new(), Vec::new());
    for (name, element) in &header.elements {
        // Every element takes at least a byte, so larger counts are lies.
        if element.count > bytes.len() {
            return Err(format!(
                "it promises {} of \"{name}\" but holds {} bytes",
                element.count,
                bytes.len()
            ));
        }
        match name.as_str() {
            "vertex" => {
                let read = vertices.read_payload_for_element(&mut reader, element, &header);
                points.extend(read.map_err(|e| e.to_string())?.iter().map(|v| v.0));
            }
            "face" => {
                let read = faces.read_payload_for_element(&mut reader, element, &header);
                for Face(corners) in read.map_err(|e| e.to_string())? {
                    triangles.extend(
                        (2..corners.len()).map(|i| [corners[0], corners[i - 1], corners[i]]),
                    );
                }
            }
            _ => {
                let read = others.read_payload_for_element(&mut reader, element, &header);
                read.map_err(|e| e.to_string())?;
            }
        }
    }
    Ok((points, triangles))
}
