//! ParaView's .vtp points with raw appended data, and a .pvd that gives each its time.

use crate::cache::Frame;
use barchan_base::column::as_bytes;
use std::io::{self, Write};

/// An array of the file: name, VTK type, components, bytes.
type Array<'a> = (&'a str, &'a str, usize, &'a [u8]);

pub(super) fn write(file: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let particles = &frame.particles;
    let count = particles.len();
    let connectivity: Vec<u64> = (0..count as u64).collect();
    let offsets: Vec<u64> = (1..=count as u64).collect();
    let points: [Array; 1] = [("position", "Float32", 3, as_bytes(&particles.position))];
    let data: [Array; 5] = [
        ("velocity", "Float32", 3, as_bytes(&particles.velocity)),
        ("radius", "Float32", 1, as_bytes(&particles.radius)),
        ("mass", "Float32", 1, as_bytes(&particles.mass)),
        ("material", "UInt16", 1, as_bytes(&particles.material)),
        ("id", "UInt64", 1, as_bytes(&particles.id)),
    ];
    let cells: [Array; 2] = [
        ("connectivity", "Int64", 1, as_bytes(&connectivity)),
        ("offsets", "Int64", 1, as_bytes(&offsets)),
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
    write!(
        file,
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <PolyData>\n<FieldData>\n<DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">{}</DataArray>\n</FieldData>\n\
         <Piece NumberOfPoints=\"{count}\" NumberOfVerts=\"{count}\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"0\">\n\
         <Points>\n{}</Points>\n<PointData Vectors=\"velocity\">\n{}</PointData>\n<Verts>\n{}</Verts>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_",
        frame.meta.time,
        declare(&points),
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
pub(super) fn collection(files: &[(f64, String)]) -> String {
    let entries: String = files
        .iter()
        .map(|(time, file)| format!("<DataSet timestep=\"{time}\" file=\"{file}\"/>\n"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n{entries}</Collection>\n</VTKFile>\n"
    )
}
