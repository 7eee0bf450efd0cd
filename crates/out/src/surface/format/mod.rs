//! Surface meshes as files.

mod glb;
mod obj;
mod ply;
mod stl;
mod vtk;

pub use ply::{MeshFileError, read_ply};
pub use vtk::collection;

use super::mesh::SurfaceMesh;
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
    match format {
        MeshFormat::Ply => ply::write(file, mesh, about),
        MeshFormat::Obj => obj::write(file, mesh, about),
        MeshFormat::Stl => stl::write(file, mesh, about),
        MeshFormat::Glb => glb::write(file, mesh, about),
        MeshFormat::Vtk => vtk::write(file, mesh, about),
    }
}

/// How names of such files end.
pub fn extension(format: MeshFormat) -> &'static str {
    match format {
        MeshFormat::Vtk => "vtp",
        other => other.word(),
    }
}

/// A linear colour channel as an sRGB byte.
fn to_srgb(linear: f32) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let curved = if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    (curved * 255.0).round() as u8
}

/// The linear channel of an sRGB byte.
fn from_srgb(byte: u8) -> f32 {
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

    #[test]
    fn colours_come_back() {
        for byte in 0..=255 {
            assert_eq!(to_srgb(from_srgb(byte)), byte);
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
