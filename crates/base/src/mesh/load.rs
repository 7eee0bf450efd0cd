//! One door for every mesh format: `load_mesh(path)`. Files are hostile until checked.

use super::{Mesh, MeshError, Soup, gltf_file, ply_file};
use glam::Vec3;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Why a file is not a mesh.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// No reader for this extension.
    #[error("{path}: unknown mesh format; Barchan reads .obj, .stl, .ply, .gltf and .glb")]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// The reader gave up.
    #[error("{path} is not a valid {format} file: {reason}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Format tried.
        format: &'static str,
        /// What is wrong, in the reader's words.
        reason: String,
    },
    /// The file is well formed, the mesh is not.
    #[error("{path} is not a usable mesh: {source}")]
    Mesh {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: MeshError,
    },
}

/// Loads an OBJ, STL, PLY, glTF or GLB file; all objects in it become one mesh.
///
/// # Errors
/// If the file cannot be read, is not what its extension says, or holds no usable mesh.
pub fn load_mesh(path: &Path) -> Result<Mesh, LoadError> {
    let bytes = super::read_file(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse_mesh(path, &bytes)
}

/// The bytes of the files that the one at `path`, of these `bytes`, takes its data from: glTF does. Those that cannot be read
/// are left out; whoever reads the mesh tells why.
pub fn side_files(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    match extension_of(path).as_deref() {
        Some("gltf" | "glb") => gltf_file::side_files(bytes, folder_of(path)),
        _ => Vec::new(),
    }
}

fn extension_of(path: &Path) -> Option<String> {
    path.extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Like [`load_mesh`], for bytes already read from `path`; only glTF's side files are read from disk.
///
/// # Errors
/// As [`load_mesh`].
pub fn parse_mesh(path: &Path, bytes: &[u8]) -> Result<Mesh, LoadError> {
    let (format, soup) = match extension_of(path).as_deref() {
        Some("obj") => ("OBJ", read_obj(bytes)),
        Some("stl") => ("STL", read_stl(bytes)),
        Some("ply") => ("PLY", ply_file::read(bytes)),
        Some("gltf" | "glb") => ("glTF", gltf_file::read(bytes, folder_of(path))),
        _ => {
            return Err(LoadError::Format {
                path: path.to_owned(),
            });
        }
    };
    let (vertices, triangles) = soup.map_err(|reason| LoadError::Parse {
        path: path.to_owned(),
        format,
        reason,
    })?;
    Mesh::new(vertices, triangles).map_err(|source| LoadError::Mesh {
        path: path.to_owned(),
        source,
    })
}

fn read_obj(bytes: &[u8]) -> Result<Soup, String> {
    let options = tobj::LoadOptions {
        triangulate: true,
        ..Default::default()
    };
    // Materials do not matter here, so none are looked for.
    let no_materials = |_: &Path| Err(tobj::LoadError::OpenFileFailed);
    let (models, _) = tobj::load_obj_buf(&mut Cursor::new(bytes), &options, no_materials)
        .map_err(|e| e.to_string())?;
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    for model in models {
        let offset = u32::try_from(vertices.len()).map_err(|_| "too many vertices")?;
        let (points, _) = model.mesh.positions.as_chunks::<3>();
        vertices.extend(points.iter().map(|p| Vec3::from_array(*p)));
        let (corners, _) = model.mesh.indices.as_chunks::<3>();
        triangles.extend(
            corners
                .iter()
                .map(|t| t.map(|corner| corner.saturating_add(offset))),
        );
    }
    Ok((vertices, triangles))
}

fn read_stl(bytes: &[u8]) -> Result<Soup, String> {
    // A binary file states its length: 80 bytes of header, a count, 50 bytes a triangle.
    if !bytes.starts_with(b"solid") {
        let count = bytes.get(80..84).ok_or("it ends inside its header")?;
        let count = u32::from_le_bytes(count.try_into().expect("four bytes"));
        let expected = 84 + 50 * u64::from(count);
        if (bytes.len() as u64) < expected {
            return Err(format!(
                "it promises {count} triangles ({expected} bytes) but holds {} bytes",
                bytes.len()
            ));
        }
    }
    let mesh = stl_io::read_stl(&mut Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let vertices = mesh
        .vertices
        .iter()
        .map(|v| Vec3::from_array(v.0))
        .collect();
    let index = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
    let triangles = mesh
        .faces
        .iter()
        .map(|face| face.vertices.map(index))
        .collect();
    Ok((vertices, triangles))
}

#[cfg(test)]
mod tests {
    use super::super::unit_cube;
    use super::*;

    fn obj_of(mesh: &Mesh) -> String {
        let mut text = String::from("o cube\n");
        for v in mesh.vertices() {
            text += &format!("v {} {} {}\n", v.x, v.y, v.z);
        }
        for t in mesh.triangles() {
            text += &format!("f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1);
        }
        text
    }

    fn stl_of(mesh: &Mesh) -> Vec<u8> {
        let mut bytes = vec![0u8; 80];
        bytes.extend((mesh.triangles().len() as u32).to_le_bytes());
        for i in 0..mesh.triangles().len() {
            bytes.extend([0u8; 12]);
            for corner in mesh.corners(i) {
                bytes.extend(bytemuck::bytes_of(&corner));
            }
            bytes.extend([0u8; 2]);
        }
        bytes
    }

    fn ply_of(mesh: &Mesh) -> Vec<u8> {
        let mut bytes = format!(
            "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty float x\nproperty float y\n\
             property float z\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n",
            mesh.vertices().len(),
            mesh.triangles().len()
        )
        .into_bytes();
        for v in mesh.vertices() {
            bytes.extend(bytemuck::bytes_of(v));
        }
        for t in mesh.triangles() {
            bytes.push(3);
            bytes.extend(bytemuck::bytes_of(t));
        }
        bytes
    }

    fn gltf_of(mesh: &Mesh) -> String {
        use base64::Engine;
        let mut data: Vec<u8> = bytemuck::cast_slice(mesh.vertices()).to_vec();
        let split = data.len();
        data.extend_from_slice(bytemuck::cast_slice(mesh.triangles()));
        let uri = base64::engine::general_purpose::STANDARD.encode(&data);
        format!(
            r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],"nodes":[{{"mesh":0}}],
            "meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1}}]}}],
            "accessors":[
              {{"bufferView":0,"componentType":5126,"count":8,"type":"VEC3","min":[-0.5,-0.5,-0.5],"max":[0.5,0.5,0.5]}},
              {{"bufferView":1,"componentType":5125,"count":36,"type":"SCALAR"}}],
            "bufferViews":[{{"buffer":0,"byteOffset":0,"byteLength":{split}}},
              {{"buffer":0,"byteOffset":{split},"byteLength":{}}}],
            "buffers":[{{"byteLength":{},"uri":"data:application/octet-stream;base64,{uri}"}}]}}"#,
            data.len() - split,
            data.len()
        )
    }

    fn files() -> Vec<(&'static str, Vec<u8>)> {
        let cube = unit_cube();
        vec![
            ("cube.obj", obj_of(&cube).into_bytes()),
            ("cube.stl", stl_of(&cube)),
            ("cube.ply", ply_of(&cube)),
            ("cube.gltf", gltf_of(&cube).into_bytes()),
        ]
    }

    #[test]
    fn every_format_gives_the_same_cube() {
        for (name, bytes) in files() {
            let mesh = parse_mesh(Path::new(name), &bytes).unwrap();
            assert_eq!(mesh.triangles().len(), 12, "{name}");
            assert_eq!(mesh.bounds(), unit_cube().bounds(), "{name}");
            let inside = super::super::winding_number(&mesh, Vec3::new(0.1, 0.2, -0.3));
            assert!((inside - 1.0).abs() < 1e-6, "{name}: {inside}");
        }
    }

    #[test]
    fn files_cut_short_are_refused() {
        for (name, bytes) in files() {
            // An OBJ cut between lines is still an OBJ; cut inside its vertices it has no triangles.
            for keep in [0, 10, 60, bytes.len() / 3] {
                assert!(
                    parse_mesh(Path::new(name), &bytes[..keep]).is_err(),
                    "{name} cut at {keep}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_extension_is_named() {
        let error = parse_mesh(Path::new("dune.blend"), b"").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("dune.blend: unknown mesh format")
        );
    }

    #[test]
    fn a_small_file_that_places_a_mesh_too_often_is_refused() {
        let (nodes, corners) = (2000, 36_000);
        let list =
            |item: &dyn Fn(usize) -> String| (0..nodes).map(item).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[{}]}}],"nodes":[{}],
            "meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1}}]}}],
            "accessors":[
              {{"bufferView":0,"componentType":5126,"count":1,"type":"VEC3","min":[0,0,0],"max":[0,0,0]}},
              {{"bufferView":0,"componentType":5121,"count":{corners},"type":"SCALAR"}}],
            "bufferViews":[{{"buffer":0,"byteOffset":0,"byteLength":{corners}}}],
            "buffers":[{{"byteLength":{corners},"uri":"data:a;base64,{}"}}]}}"#,
            list(&|node| node.to_string()),
            list(&|_| r#"{"mesh":0}"#.into()),
            "A".repeat(corners * 4 / 3)
        );
        let refused = parse_mesh(Path::new("a.gltf"), text.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("place more than"), "{refused}");
    }

    /// Readers must survive anything: random bytes, and valid files with bytes changed, cut or repeated.
    #[test]
    fn hostile_files_do_not_panic() {
        let files = files();
        bolero::check!()
            .with_iterations(4000)
            .with_type::<(u8, Vec<(u16, u8)>, u16, Vec<u8>)>()
            .for_each(|(which, edits, cut, noise)| {
                let (name, valid) = &files[*which as usize % files.len()];
                let mut bytes = valid.clone();
                for (at, value) in edits {
                    let at = *at as usize % bytes.len();
                    bytes[at] = *value;
                }
                bytes.truncate(bytes.len() - (*cut as usize % 8) * bytes.len() / 16);
                bytes.extend(noise);
                let _ = parse_mesh(Path::new(name), &bytes);
                let _ = parse_mesh(Path::new(name), noise);
            });
    }
}
