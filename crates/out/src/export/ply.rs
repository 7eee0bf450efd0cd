//! Binary PLY: x y z, then every column, then triangles where there are any. PLY has no 64-bit integers: ids beyond 2³² − 1
//! wrap around.

use super::snapshot::{Column, Snapshot, floats, identifier, integers, one_line, width};
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

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::F32 | Kind::F64 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => "float",
        Kind::U16 => "ushort",
        Kind::U32 | Kind::U64 => "uint",
    }
}

/// The bytes of a column, in the types of [`kind_name`].
fn bytes_of((spec, bytes): &Column) -> (usize, Vec<u8>) {
    let little: Vec<u8> = match (spec.kind, integers(spec.kind, bytes)) {
        (Kind::U16, Some(values)) => values
            .iter()
            .flat_map(|v| (*v as u16).to_le_bytes())
            .collect(),
        (_, Some(values)) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (kind, None) => floats(kind, bytes)
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect(),
    };
    let size = if spec.kind == Kind::U16 { 2 } else { 4 };
    (size * width(spec.kind), little)
}

pub(super) fn write(file: &mut impl Write, snapshot: &Snapshot) -> io::Result<()> {
    let (meta, columns) = (&snapshot.meta, snapshot.columns());
    let (positions, triangles) = (snapshot.positions(), snapshot.triangles());
    write!(
        file,
        "ply\nformat binary_little_endian 1.0\ncomment Barchan, scene {}, frame {}, time {} s\n\
         element vertex {}\nproperty float x\nproperty float y\nproperty float z\n",
        one_line(&meta.scene),
        meta.frame,
        meta.time,
        positions.len()
    )?;
    for column in &columns {
        for name in names(column) {
            writeln!(file, "property {} {name}", kind_name(column.0.kind))?;
        }
    }
    if !triangles.is_empty() {
        writeln!(file, "element face {}", triangles.len())?;
        writeln!(file, "property list uchar int vertex_indices")?;
    }
    file.write_all(b"end_header\n")?;
    let columns: Vec<(usize, Vec<u8>)> = columns.iter().map(bytes_of).collect();
    for (i, position) in positions.iter().enumerate() {
        for value in position.to_array() {
            file.write_all(&value.to_le_bytes())?;
        }
        for (size, bytes) in &columns {
            file.write_all(&bytes[i * size..(i + 1) * size])?;
        }
    }
    for triangle in triangles {
        file.write_all(&[3])?;
        for corner in triangle {
            file.write_all(&corner.to_le_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn written(snapshot: &Snapshot) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes, snapshot).expect("memory takes all");
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
        assert!(header.contains("comment Barchan, scene odd \"name\" <&> §, frame 5, time 0.208"));
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
        assert!(header.contains("element face 4\nproperty list uchar int vertex_indices\n"));
        assert!(header.contains("property float nx") && header.contains("property float blue"));
        const ROW: usize = 4 * 12 + 2;
        assert_eq!(body.len(), 4 * ROW + 4 * 13);
        assert_eq!(body[4 * ROW], 3);
        assert_eq!(body[body.len() - 4..], 2u32.to_le_bytes());
        let (header, body) = written(&samples::particles(0, 0));
        assert!(header.contains("element vertex 0") && body.is_empty());
    }
}
