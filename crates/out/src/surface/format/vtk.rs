//! ParaView's .vtp with raw appended data.

use super::About;
use crate::surface::SurfaceMesh;
use barchan_base::column::as_bytes;
use std::io::{self, Write};

/// An array of the file: name, VTK type, components, bytes.
type Array<'a> = (&'a str, &'a str, usize, &'a [u8]);

pub(super) fn write(file: &mut impl Write, mesh: &SurfaceMesh, about: &About) -> io::Result<()> {
    let (count, polygons) = (mesh.positions.len(), mesh.triangles.len());
    let offsets: Vec<u64> = (1..=polygons as u64).map(|i| 3 * i).collect();
    let points: [Array; 1] = [("position", "Float32", 3, as_bytes(&mesh.positions))];
    let mut data: Vec<Array> = vec![
        ("Normals", "Float32", 3, as_bytes(&mesh.normals)),
        ("velocity", "Float32", 3, as_bytes(&mesh.velocities)),
        ("color", "Float32", 3, as_bytes(&mesh.colors)),
        ("material", "UInt16", 1, as_bytes(&mesh.materials)),
    ];
    data.retain(|(_, _, _, bytes)| !bytes.is_empty());
    let corners: &[u8] = bytemuck::cast_slice(&mesh.triangles);
    let cells: [Array; 2] = [
        ("connectivity", "UInt32", 1, corners),
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
        "<?xml version=\"1.0\"?>\n<!-- {} -->\n<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
         <PolyData>\n<FieldData>\n<DataArray type=\"Float64\" Name=\"TimeValue\" NumberOfTuples=\"1\" format=\"ascii\">{}</DataArray>\n</FieldData>\n\
         <Piece NumberOfPoints=\"{count}\" NumberOfVerts=\"0\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"{polygons}\">\n\
         <Points>\n{}</Points>\n<PointData>\n{}</PointData>\n<Polys>\n{}</Polys>\n</Piece>\n</PolyData>\n\
         <AppendedData encoding=\"raw\">\n_",
        about.stamp,
        about.time,
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
pub fn collection(files: &[(f64, String)]) -> String {
    let entries: String = files
        .iter()
        .map(|(time, file)| format!("<DataSet timestep=\"{time}\" file=\"{file}\"/>\n"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n<Collection>\n{entries}</Collection>\n</VTKFile>\n"
    )
}
