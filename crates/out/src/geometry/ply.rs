//! Binary PLY: x y z, then every column, then the triangles of a mesh. Colours are bytes in sRGB, as everyone expects. PLY has no
//! 64-bit integers: ids beyond 2³² − 1 wrap around.

use super::{Column, Geometry, floats, identifier, integers, width};
use barchan_base::column::Kind;
use std::io::{self, Write};

/// The names of the numbers in a column's entry, as other programs expect them.
fn names((spec, _): &Column) -> Vec<String> {
    let known: &[&str] = match spec.name {
        "velocity" => &["vx", "vy", "vz"],
        "normal" => &["nx", "ny", "nz"],
        "color" => &["red", "green", "blue"],
        _ => &[],
    };
    match (known.is_empty(), width(spec.kind)) {
        (false, _) => known.iter().map(|name| (*name).to_owned()).collect(),
        (true, 1) => vec![identifier(spec.name)],
        (true, width) => (0..width)
            .map(|i| format!("{}_{i}", identifier(spec.name)))
            .collect(),
    }
}

fn kind_name((spec, _): &Column) -> &'static str {
    match spec.kind {
        _ if spec.name == "color" => "uchar",
        Kind::F32 | Kind::F64 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => "float",
        Kind::U16 => "ushort",
        Kind::U32 | Kind::U64 => "uint",
    }
}

/// The bytes of a column, in the types of [`kind_name`], and how many an entry has.
fn bytes_of(column: &Column) -> (usize, Vec<u8>) {
    let (spec, bytes) = column;
    fn little<T, const N: usize>(values: Vec<T>, bytes: impl Fn(T) -> [u8; N]) -> (usize, Vec<u8>) {
        (N, values.into_iter().flat_map(bytes).collect())
    }
    let (size, bytes) = match (kind_name(column), integers(spec.kind, bytes)) {
        ("uchar", _) => little(floats(spec.kind, bytes), |v| [to_srgb(v)]),
        ("ushort", Some(values)) => little(values, |v| (v as u16).to_le_bytes()),
        (_, Some(values)) => little(values, i32::to_le_bytes),
        (_, None) => little(floats(spec.kind, bytes), f32::to_le_bytes),
    };
    (size * width(spec.kind), bytes)
}

pub(crate) fn write(file: &mut impl Write, geometry: &Geometry<'_>) -> io::Result<()> {
    let positions = geometry.positions;
    write!(
        file,
        "ply\nformat binary_little_endian 1.0\ncomment {}\ncomment frame {}, time {} s\n\
         element vertex {}\nproperty float x\nproperty float y\nproperty float z\n",
        geometry.about,
        geometry.frame,
        geometry.time,
        positions.len()
    )?;
    for column in &geometry.columns {
        for name in names(column) {
            writeln!(file, "property {} {name}", kind_name(column))?;
        }
    }
    if let Some(triangles) = geometry.triangles {
        writeln!(file, "element face {}", triangles.len())?;
        writeln!(file, "property list uchar uint vertex_indices")?;
    }
    file.write_all(b"end_header\n")?;
    let columns: Vec<(usize, Vec<u8>)> = geometry.columns.iter().map(bytes_of).collect();
    for (i, position) in positions.iter().enumerate() {
        for value in position.to_array() {
            file.write_all(&value.to_le_bytes())?;
        }
        for (size, bytes) in &columns {
            file.write_all(&bytes[i * size..(i + 1) * size])?;
        }
    }
    for triangle in geometry.triangles.unwrap_or_default() {
        file.write_all(&[3])?;
        for corner in triangle {
            file.write_all(&corner.to_le_bytes())?;
        }
    }
    Ok(())
}

/// A linear colour channel as an sRGB byte.
pub(crate) fn to_srgb(linear: f32) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let curved = if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    (curved * 255.0).round() as u8
}

/// The linear channel of an sRGB byte.
pub(crate) fn from_srgb(byte: u8) -> f32 {
    let curved = f32::from(byte) / 255.0;
    if curved <= 0.040_45 {
        curved / 12.92
    } else {
        ((curved + 0.055) / 1.055).powf(2.4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::{self, Snapshot};

    #[test]
    fn colours_come_back() {
        for byte in 0..=255 {
            assert_eq!(to_srgb(from_srgb(byte)), byte);
        }
    }

    fn written(snapshot: &Snapshot) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes, &snapshot.geometry()).expect("memory takes all");
        let end = b"end_header\n";
        let start = bytes
            .windows(end.len())
            .position(|w| w == end)
            .expect("a header")
            + end.len();
        let header = String::from_utf8(bytes[..start].to_vec()).expect("text");
        (header, bytes[start..].to_vec())
    }

    #[test]
    fn points_stand_where_the_header_says() {
        let (header, body) = written(&samples::particles(3, 5));
        let names: Vec<&str> = header
            .lines()
            .filter(|line| line.starts_with("property"))
            .collect();
        assert_eq!(
            names,
            [
                "property float x",
                "property float y",
                "property float z",
                "property uint id",
                "property float vx",
                "property float vy",
                "property float vz",
                "property float radius",
                "property float mass",
                "property ushort material",
                "property float wetness",
                "property float heat_of_it",
            ]
        );
        assert!(header.contains(
            "comment Barchan, scene odd \"name\" <&> §, 24 frames a second, materials sand\ncomment frame 5, time 0.208"
        ));
        const ROW: usize = 3 * 4 + 4 + 3 * 4 + 4 + 4 + 2 + 4 + 4;
        assert_eq!(body.len(), 3 * ROW);
        let last = &body[2 * ROW..];
        let float = |at: usize| f32::from_le_bytes(last[at..at + 4].try_into().expect("four"));
        let place = vec![float(0), float(4), float(8)];
        assert_eq!(place, [2.0, -2.0, 5.0]);
        assert_eq!(last[12..16], 9u32.to_le_bytes());
        let velocity = vec![float(16), float(20), float(24)];
        assert_eq!(velocity, [0.25, -2.0, 1.0]);
        assert_eq!(last[36..38], 2u16.to_le_bytes());
        assert_eq!(float(42).to_bits(), 275f32.to_bits());
    }

    #[test]
    fn meshes_have_faces_and_empty_frames_have_headers() {
        let (header, body) = written(&samples::tetrahedron(1));
        assert!(header.contains("element face 4\nproperty list uchar uint vertex_indices\n"));
        assert!(header.contains("property float nx") && header.contains("property uchar blue"));
        const ROW: usize = 3 * 12 + 3 + 2;
        assert_eq!(body.len(), 4 * ROW + 4 * 13);
        assert_eq!(body[4 * ROW], 3);
        assert_eq!(body[body.len() - 4..], 2u32.to_le_bytes());
        let (header, body) = written(&samples::particles(0, 0));
        assert!(header.contains("element vertex 0") && body.is_empty());
    }
}
