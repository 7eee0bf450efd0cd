//! Surface meshes as files.

mod obj;
mod ply;
mod stl;

pub use ply::{MeshFileError, read_ply};

use super::mesh::SurfaceMesh;
use crate::geometry::{self, Geometry};
use barchan_sim::scene::MeshFormat;
use glam::Vec3;
use std::io::{self, Write};

/// What a file says about its mesh.
#[derive(Clone, Debug)]
pub struct About {
    /// A short line that stands near the start of the file: tells what it was made from.
    pub stamp: String,
    /// Number of the frame.
    pub frame: u32,
    /// Time [s].
    pub time: f64,
    /// Unit vector up.
    pub up: Vec3,
}

/// Writes a mesh.
///
/// # Errors
/// What the disk says.
pub fn write(
    file: &mut impl Write,
    format: MeshFormat,
    mesh: &SurfaceMesh,
    about: &About,
) -> io::Result<()> {
    let geometry = || Geometry {
        about: about.stamp.clone(),
        frame: about.frame,
        time: about.time,
        up: about.up,
        positions: &mesh.positions,
        columns: mesh.columns(),
        triangles: Some(&mesh.triangles),
    };
    match format {
        MeshFormat::Ply => geometry::ply::write(file, &geometry()),
        MeshFormat::Obj => obj::write(file, mesh, about),
        MeshFormat::Stl => stl::write(file, mesh, about),
        MeshFormat::Glb => geometry::glb::write(file, &geometry()),
        MeshFormat::Vtk => geometry::vtk::write(file, &geometry()),
    }
}

/// How names of such files end.
pub fn extension(format: MeshFormat) -> &'static str {
    match format {
        MeshFormat::Vtk => "vtp",
        other => other.word(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn square() -> SurfaceMesh {
        SurfaceMesh {
            positions: vec![Vec3::ZERO, Vec3::X, Vec3::ONE, Vec3::Y],
            normals: vec![Vec3::Z; 4],
            velocities: vec![Vec3::new(1.0, 2.0, 3.0); 4],
            colors: vec![Vec3::new(0.0, 0.5, 1.0); 4],
            materials: vec![0, 1, 2, 65535],
            triangles: vec![[0, 1, 2], [0, 2, 3]],
        }
    }

    pub fn bytes(format: MeshFormat, mesh: &SurfaceMesh) -> Vec<u8> {
        let about = About {
            stamp: "barchan-surface 0123456789abcdef".into(),
            frame: 7,
            time: 0.25,
            up: Vec3::Z,
        };
        let mut bytes = Vec::new();
        write(&mut bytes, format, mesh, &about).unwrap();
        bytes
    }

    #[test]
    fn every_format_begins_with_the_stamp() {
        let formats = [
            MeshFormat::Ply,
            MeshFormat::Obj,
            MeshFormat::Stl,
            MeshFormat::Glb,
            MeshFormat::Vtk,
        ];
        for format in formats {
            for mesh in [square(), SurfaceMesh::default()] {
                let bytes = bytes(format, &mesh);
                let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).into_owned();
                assert!(
                    start.contains("barchan-surface 0123456789abcdef"),
                    "{format:?}"
                );
            }
        }
    }

    /// Our own mesh readers, which are other people's crates, see the same triangles.
    #[test]
    fn bodies_can_be_made_of_surfaces() {
        for format in [
            MeshFormat::Ply,
            MeshFormat::Obj,
            MeshFormat::Stl,
            MeshFormat::Glb,
        ] {
            let name = format!("mesh.{}", extension(format));
            let mesh = barchan_base::mesh::parse_mesh(name.as_ref(), &bytes(format, &square()));
            let mesh = mesh.unwrap_or_else(|error| panic!("{format:?}: {error}"));
            assert_eq!(mesh.triangles().len(), 2, "{format:?}");
            let size = mesh.bounds().size();
            assert!((size - Vec3::ONE).length() < 1e-5, "{format:?}: {size}");
        }
    }
}
