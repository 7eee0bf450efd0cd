//! Binary PLY read back, by those who work on a run's meshes.

use crate::geometry::ply::from_srgb;
use crate::surface::SurfaceMesh;
use glam::Vec3;
use std::io;
use std::path::{Path, PathBuf};

/// A mesh file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MeshFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not a whole mesh of ours.
    #[error(
        "{path} is not a whole surface mesh ({reason}); delete it and run barchan surface again to make it anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Vectors of three floats, in the order they are written.
const VECTORS: [[&str; 3]; 3] = [["x", "y", "z"], ["nx", "ny", "nz"], ["vx", "vy", "vz"]];

/// Reads a mesh that was written as PLY.
///
/// # Errors
/// If it cannot be read, is cut short, or makes no sense.
pub fn read_ply(path: &Path) -> Result<SurfaceMesh, MeshFileError> {
    let bytes = barchan_base::mesh::read_file(path).map_err(|source| MeshFileError::Io {
        path: path.to_owned(),
        source,
    })?;
    parse(&bytes).map_err(|reason| MeshFileError::Damaged {
        path: path.to_owned(),
        reason,
    })
}

/// What a header promises.
#[derive(Default)]
struct Header {
    vertices: usize,
    triangles: usize,
    /// Bytes of a vertex.
    stride: usize,
    /// Where the vectors, the colour and the material stand in a vertex.
    vectors: [Option<usize>; 3],
    color: Option<usize>,
    material: Option<usize>,
}

/// Bytes of a triangle: how many corners, and three numbers.
const TRIANGLE: usize = 13;

fn parse(bytes: &[u8]) -> Result<SurfaceMesh, String> {
    let end = b"end_header\n";
    let start = bytes
        .windows(end.len())
        .take(1 << 16)
        .position(|window| window == end)
        .ok_or("it has no PLY header")?;
    let text = std::str::from_utf8(&bytes[..start]).map_err(|_| "its header is not text")?;
    let header = Header::parse(text)?;
    let body = &bytes[start + end.len()..];
    // The sizes are believed only once the file has as many bytes.
    let size =
        |count: usize, each: usize| count.checked_mul(each).ok_or("its counts are impossible");
    let vertices = size(header.vertices, header.stride)?;
    let whole = vertices.checked_add(size(header.triangles, TRIANGLE)?);
    if whole != Some(body.len()) {
        return Err("its length is not what its header says".into());
    }
    let mut mesh = header.vertices(&body[..vertices]);
    mesh.triangles = triangles(&body[vertices..], header.vertices)?;
    if !mesh.positions.iter().all(|p| p.is_finite()) {
        return Err("a vertex is not a number".into());
    }
    Ok(mesh)
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with("comment"));
        if lines.next() != Some("ply") || lines.next() != Some("format binary_little_endian 1.0") {
            return Err("it is not a binary PLY file".into());
        }
        let mut header = Self::default();
        let mut count = |name: &str| {
            let line = lines.next().unwrap_or_default();
            let number = line.strip_prefix("element ")?.strip_prefix(name)?.trim();
            number.parse::<usize>().ok()
        };
        header.vertices = count("vertex").ok_or("it does not begin with vertices")?;
        for line in lines.by_ref() {
            if let Some(number) = line.strip_prefix("element face ") {
                header.triangles = number.parse().map_err(|_| "its faces have no number")?;
                break;
            }
            header.property(line)?;
        }
        match lines.next() {
            Some("property list uchar uint vertex_indices") if lines.next().is_none() => {}
            _ => return Err("its faces are not triangles as we write them".into()),
        }
        if header.vectors[0].is_none() {
            return Err("its vertices have no place".into());
        }
        Ok(header)
    }

    /// Vectors and colours are written, and taken, with their parts together.
    fn property(&mut self, line: &str) -> Result<(), String> {
        let at = self.stride;
        let parts: Vec<&str> = line.split(' ').collect();
        let ["property", kind, name] = parts[..] else {
            return Err(format!("\"{line}\" is not a property"));
        };
        match (kind, name) {
            ("float", name) => {
                self.stride += 4;
                if let Some(i) = VECTORS.iter().position(|vector| vector[0] == name) {
                    self.vectors[i] = Some(at);
                } else {
                    let follows = |i: usize, part: usize| {
                        VECTORS[i][part] == name && self.vectors[i] == at.checked_sub(4 * part)
                    };
                    if !(0..3).any(|i| follows(i, 1) || follows(i, 2)) {
                        return Err(format!("it has a property \"{name}\" out of place"));
                    }
                }
            }
            ("uchar", "red") => (self.color, self.stride) = (Some(at), at + 3),
            ("uchar", "green" | "blue") if self.color.is_some() => {}
            ("ushort", "material") => (self.material, self.stride) = (Some(at), at + 2),
            _ => return Err(format!("it has an unknown property \"{name}\"")),
        }
        Ok(())
    }

    fn vertices(&self, body: &[u8]) -> SurfaceMesh {
        // A part that a hostile header leaves out of a vertex is zero.
        let part = |vertex: &[u8], at: usize| -> f32 {
            let bytes = vertex.get(at..at + 4).and_then(|b| b.try_into().ok());
            bytes.map_or(0.0, f32::from_le_bytes)
        };
        let rows = || body.chunks_exact(self.stride.max(1));
        let column = |i: usize| -> Vec<Vec3> {
            let Some(at) = self.vectors[i] else {
                return Vec::new();
            };
            let vector = |row| Vec3::new(part(row, at), part(row, at + 4), part(row, at + 8));
            rows().map(vector).collect()
        };
        let byte = |row: &[u8], at: usize| row.get(at).copied().unwrap_or(0);
        let color = |at: usize| {
            rows().map(move |row| Vec3::from_array([0, 1, 2].map(|i| from_srgb(byte(row, at + i)))))
        };
        let material = |at: usize| {
            rows().map(move |row| u16::from_le_bytes([byte(row, at), byte(row, at + 1)]))
        };
        SurfaceMesh {
            positions: column(0),
            normals: column(1),
            velocities: column(2),
            colors: self.color.map_or(Vec::new(), |at| color(at).collect()),
            materials: self
                .material
                .map_or(Vec::new(), |at| material(at).collect()),
            triangles: Vec::new(),
        }
    }
}

fn triangles(body: &[u8], vertices: usize) -> Result<Vec<[u32; 3]>, String> {
    let corner = |row: &[u8], i: usize| {
        let bytes = row[1 + 4 * i..5 + 4 * i].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    };
    let triangle = |row: &[u8]| {
        let corners = [0, 1, 2].map(|i| corner(row, i));
        let valid = row[0] == 3 && corners.iter().all(|c| (*c as usize) < vertices);
        valid.then_some(corners)
    };
    body.chunks_exact(TRIANGLE)
        .map(|row| {
            triangle(row).ok_or_else(|| "a triangle names a vertex that is not there".into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bytes, square};
    use super::*;
    use barchan_sim::scene::MeshFormat;

    #[test]
    fn meshes_come_back() {
        let mut bare = square();
        bare.velocities.clear();
        bare.colors.clear();
        bare.materials.clear();
        for mesh in [square(), bare, SurfaceMesh::default()] {
            let mut back = parse(&bytes(MeshFormat::Ply, &mesh)).unwrap();
            for (a, b) in back.colors.iter().zip(&mesh.colors) {
                assert!((*a - *b).length() < 0.01); // bytes have 256 steps
            }
            back.colors.clone_from(&mesh.colors);
            assert_eq!(back, mesh);
        }
    }

    #[test]
    fn damage_is_refused() {
        let whole = bytes(MeshFormat::Ply, &square());
        assert!(parse(&whole[..whole.len() - 1]).is_err());
        let text = String::from_utf8_lossy(&whole).into_owned();
        let at = text.find("element vertex 4").unwrap() + 15;
        for digit in [b'3', b'9'] {
            let mut other = whole.clone();
            other[at] = digit;
            assert!(parse(&other).is_err());
        }
        let mut far = whole.clone();
        let last = far.len() - 1;
        far[last] = 9;
        assert!(parse(&far).is_err(), "a corner far away");
        let header = "ply\nformat binary_little_endian 1.0\nelement vertex 18446744073709551615\n\
                      property float x\nelement face 18446744073709551615\n\
                      property list uchar uint vertex_indices\nend_header\n";
        assert!(parse(header.as_bytes()).is_err());
    }

    #[test]
    fn hostile_files_do_not_panic() {
        let whole = bytes(MeshFormat::Ply, &square());
        bolero::check!()
            .with_iterations(4000)
            .with_type::<(Vec<(u16, u8)>, u16, Vec<u8>)>()
            .for_each(|(edits, cut, noise)| {
                let mut damaged = whole.clone();
                for (at, value) in edits {
                    let at = *at as usize % damaged.len();
                    damaged[at] = *value;
                }
                damaged.truncate(damaged.len() - *cut as usize % 40);
                let _ = parse(&damaged);
                let _ = parse(noise);
            });
    }
}
