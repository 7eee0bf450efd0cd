//! Binary STL: triangles and nothing else.

use super::About;
use crate::surface::SurfaceMesh;
use glam::Vec3;
use std::io::{self, Write};

pub(super) fn write(file: &mut impl Write, mesh: &SurfaceMesh, about: &About) -> io::Result<()> {
    let mut header = [b' '; 80];
    for (to, from) in header.iter_mut().zip(about.stamp.bytes()) {
        *to = from;
    }
    file.write_all(&header)?;
    let count = u32::try_from(mesh.triangles.len())
        .map_err(|_| io::Error::other("an STL file holds at most 4 billion triangles"))?;
    file.write_all(&count.to_le_bytes())?;
    for triangle in &mesh.triangles {
        let corners = triangle.map(|corner| mesh.positions[corner as usize]);
        let [a, b, c] = corners;
        let normal = (b - a).cross(c - a).normalize_or_zero();
        for Vec3 { x, y, z } in [normal, a, b, c] {
            for value in [x, y, z] {
                file.write_all(&value.to_le_bytes())?;
            }
        }
        file.write_all(&[0, 0])?;
    }
    Ok(())
}
