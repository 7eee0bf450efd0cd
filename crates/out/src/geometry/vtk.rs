//! ParaView's .vtp points or triangles with raw appended data, and a .pvd that gives each file its time.

use super::{Geometry, width};
use barchan_base::column::{Kind, as_bytes};
use std::io::{self, Write};

/// An array of the file: name, VTK type, components, bytes.
type Array<'a> = (String, &'static str, usize, &'a [u8]);

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::F32 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => "Float32",
        Kind::F64 => "Float64",
        Kind::U16 => "UInt16",
        Kind::U32 => "UInt32",
        Kind::U64 => "UInt64",
    }
}

/// `text` as the value of an XML attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// `text` within an XML comment, which two hyphens would end.
pub(crate) fn comment(text: &str) -> String {
    // Twice, for the second of three is the first of two.
    escaped(text).replace("--", "- -").replace("--", "- -")
}

/// The corners of all cells one after another, and where each cell ends: triangles, or a cell for each point.
fn cells(geometry: &Geometry<'_>) -> (Vec<u64>, Vec<u64>) {
    match geometry.triangles {
        None => {
            let count = geometry.positions.len() as u64;
            ((0..count).collect(), (1..=count).collect())
        }
        Some(triangles) => (
            triangles.iter().flatten().map(|&v| u64::from(v)).collect(),
            (1..=triangles.len() as u64).map(|i| 3 * i).collect(),
        ),
    }
}

/// Which of the columns programs shall take for which purpose.
fn purposes(geometry: &Geometry<'_>) -> String {
    let known = [("Vectors", "velocity"), ("Normals", "normal")];
    let there = |name: &str| geometry.columns.iter().any(|(spec, _)| spec.name == name);
    let known = known.into_iter().filter(|(_, name)| there(name));
    known
        .map(|(purpose, name)| format!(" {purpose}=\"{name}\""))
        .collect()
}

pub(crate) fn write(file: &mut impl Write, geometry: &Geometry<'_>) -> io::Result<()> {
    let (corners, ends) = cells(geometry);
    let points: [Array; 1] = [(
        "position".into(),
        "Float32",
        3,
        as_bytes(geometry.positions),
    )];
    let data: Vec<Array> = geometry
        .columns
        .iter()
        .map(|(spec, bytes)| {
            let name = escaped(spec.name);
            (name, kind_name(spec.kind), width(spec.kind), *bytes)
        })
        .collect();
    let cells: [Array; 2] = [
        ("connectivity".into(), "Int64", 1, as_bytes(&corners)),
        ("offsets".into(), "Int64", 1, as_bytes(&ends)),
    ];
    let mut place = 0;
    let mut declare = |arrays: &[Array]| {
        let lines = arrays.iter().map(|(name, kind, components, bytes)| {
            let line = format!(
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"appended\" offset=\"{place}\"/>\n"
            );
            place += 8 + bytes.len();
            line
        });
        lines.collect::<String>()
    };
    let count = geometry.positions.len();
    let (cell_kind, verts, polys) = match geometry.triangles {
        None => ("Verts", count, 0),
        Some(triangles) => ("Polys", 0, triangles.len()),
    };
    write!(
        file,
        "<?xml version=\"1.0\"?>\n<!-- {} -->\n\
         <VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <PolyData>\n<FieldData>\n<DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">{}</DataArray>\n</FieldData>\n\
         <Piece NumberOfPoints=\"{count}\" NumberOfVerts=\"{verts}\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"{polys}\">\n\
         <Points>\n{}</Points>\n<PointData{}>\n{}</PointData>\n<{cell_kind}>\n{}</{cell_kind}>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_",
        comment(&geometry.about),
        geometry.time,
        declare(&points),
        purposes(geometry),
        declare(&data),
        declare(&cells)
    )?;
    for (_, _, _, bytes) in points.iter().chain(&data).chain(&cells) {
        file.write_all(&(bytes.len() as u64).to_le_bytes())?;
        file.write_all(bytes)?;
    }
    file.write_all(b"\n</AppendedData>\n</VTKFile>\n")
}

/// A .pvd: each file with its time.
pub(crate) fn collection(files: &[(f64, String)]) -> String {
    let entries: String = files
        .iter()
        .map(|(time, file)| format!("<DataSet timestep=\"{time}\" file=\"{file}\"/>\n"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n{entries}</Collection>\n</VTKFile>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples;

    /// The appended array `name`: found by its offset, cut by its own length.
    fn array(bytes: &[u8], name: &str) -> Vec<u8> {
        let mark = b"encoding=\"raw\">\n_";
        let place = bytes.windows(mark.len()).position(|w| w == mark);
        let start = place.expect("appended data") + mark.len();
        let header = String::from_utf8_lossy(&bytes[..start]).into_owned();
        let line = header
            .lines()
            .find(|line| line.contains(&format!("Name=\"{name}\"")))
            .expect("declared");
        let offset = line.split("offset=\"").nth(1).expect("an offset");
        let offset: usize = offset
            .split('"')
            .next()
            .and_then(|t| t.parse().ok())
            .expect("a number");
        let at = start + offset;
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        bytes[at + 8..at + 8 + length as usize].to_vec()
    }

    #[test]
    fn arrays_stand_at_their_offsets() {
        let mut bytes = Vec::new();
        write(&mut bytes, &samples::particles(4, 2).geometry()).expect("memory takes all");
        let heat: Vec<f64> = array(&bytes, "heat of it")
            .chunks(8)
            .map(|b| f64::from_le_bytes(b.try_into().expect("eight")))
            .collect();
        assert_eq!(heat, [273.0, 274.0, 275.0, 276.0]);
        assert_eq!(array(&bytes, "offsets").len(), 32);
        let mut bytes = Vec::new();
        write(&mut bytes, &samples::tetrahedron(2).geometry()).expect("memory takes all");
        assert_eq!(array(&bytes, "connectivity").len(), 12 * 8);
        assert!(String::from_utf8_lossy(&bytes).contains("NumberOfPolys=\"4\""));
        assert_eq!(array(&bytes, "normal").len(), 4 * 12);
    }

    #[test]
    fn names_cannot_break_the_xml() {
        assert_eq!(escaped("a<\"b\"&"), "a&lt;&quot;b&quot;&amp;");
        assert!(!comment("a -->b---c").contains("--"));
    }
}
