//! Geometry from glTF and GLB files: every mesh of the default scene, placed by its nodes.

use super::Soup;
use base64::Engine;
use glam::{Mat4, Vec3};
use gltf::accessor::{DataType, Dimensions};
use gltf::{Accessor, Document, Gltf, Node, Semantic};
use std::path::{Component, Path};

/// Nodes visited at most: a file may reuse nodes so that walking them would never end.
const MOST_NODES: usize = 100_000;
/// Deepest nesting of nodes.
const MOST_DEPTH: usize = 64;
/// Vertices and corners gathered at most: a file may place a mesh so often that it would fill the memory.
const MOST_GATHERED: usize = 1 << 26;

pub(super) fn read(bytes: &[u8], folder: &Path) -> Result<Soup, String> {
    let Gltf { document, blob } = Gltf::from_slice(bytes).map_err(|e| e.to_string())?;
    let buffers = read_buffers(&document, blob, folder)?;
    let scene = document
        .default_scene()
        .or_else(|| document.scenes().next())
        .ok_or("it has no scene")?;
    let mut pending: Vec<(Node, Mat4, usize)> = scene
        .nodes()
        .map(|node| (node, Mat4::IDENTITY, 0))
        .collect();
    let (mut vertices, mut triangles) = (Vec::new(), Vec::new());
    let mut visited = 0;
    while let Some((node, parent, depth)) = pending.pop() {
        visited += 1;
        if visited > MOST_NODES || depth > MOST_DEPTH {
            return Err("its nodes are nested too deeply or in a circle".into());
        }
        let place = parent * Mat4::from_cols_array_2d(&node.transform().matrix());
        for primitive in node.mesh().iter().flat_map(gltf::Mesh::primitives) {
            if primitive.mode() != gltf::mesh::Mode::Triangles {
                continue;
            }
            let positions = primitive
                .get(&Semantic::Positions)
                .ok_or("a mesh has no positions")?;
            let points = read_points(&positions, &buffers)?;
            let offset = u32::try_from(vertices.len()).map_err(|_| "too many vertices")?;
            let corners = match primitive.indices() {
                Some(indices) => read_indices(&indices, &buffers)?,
                None => (0..points.len() as u32).collect(),
            };
            if (vertices.len() + points.len()).max(3 * triangles.len() + corners.len())
                > MOST_GATHERED
            {
                return Err(format!(
                    "its nodes place more than {MOST_GATHERED} vertices or corners"
                ));
            }
            vertices.extend(points.iter().map(|p| place.transform_point3(*p)));
            let (faces, _) = corners.as_chunks::<3>();
            triangles.extend(
                faces
                    .iter()
                    .map(|t| t.map(|corner| corner.saturating_add(offset))),
            );
        }
        pending.extend(node.children().map(|child| (child, place, depth + 1)));
    }
    Ok((vertices, triangles))
}

/// The bytes of its side files, as far as they can be read.
pub(super) fn side_files(bytes: &[u8], folder: &Path) -> Vec<Vec<u8>> {
    let Ok(Gltf { document, .. }) = Gltf::from_slice(bytes) else {
        return Vec::new();
    };
    let read = |buffer: gltf::Buffer| match buffer.source() {
        gltf::buffer::Source::Uri(uri) if !uri.starts_with("data:") => {
            read_side_file(uri, folder).ok()
        }
        _ => None,
    };
    document.buffers().filter_map(read).collect()
}

fn read_buffers(
    document: &Document,
    mut blob: Option<Vec<u8>>,
    folder: &Path,
) -> Result<Vec<Vec<u8>>, String> {
    let read = |buffer: gltf::Buffer| match buffer.source() {
        gltf::buffer::Source::Bin => blob
            .take()
            .ok_or_else(|| "its binary part is missing".to_owned()),
        gltf::buffer::Source::Uri(uri) => match uri.split_once(";base64,") {
            Some((scheme, data)) if scheme.starts_with("data:") => {
                let decoded = base64::engine::general_purpose::STANDARD.decode(data);
                decoded.map_err(|e| format!("its embedded data is broken: {e}"))
            }
            _ => read_side_file(uri, folder),
        },
    };
    document.buffers().map(read).collect()
}

/// Reads a side file, which must lie in the glTF's own folder or below it.
fn read_side_file(uri: &str, folder: &Path) -> Result<Vec<u8>, String> {
    let relative = Path::new(uri);
    if !relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Err(format!(
            "it refers to \"{uri}\", which is not a file beside it"
        ));
    }
    super::read_file(&folder.join(relative))
        .map_err(|e| format!("cannot read its data file \"{uri}\": {e}"))
}

/// The bytes of each element of an accessor, every bound checked.
fn elements<'a>(
    accessor: &Accessor,
    buffers: &'a [Vec<u8>],
) -> Result<impl Iterator<Item = &'a [u8]>, String> {
    let view = accessor.view().ok_or("sparse data is not supported")?;
    let buffer = buffers
        .get(view.buffer().index())
        .ok_or("a buffer is missing")?;
    let end = view
        .offset()
        .checked_add(view.length())
        .ok_or("a buffer view is too long")?;
    let bytes = buffer
        .get(view.offset()..end)
        .and_then(|bytes| bytes.get(accessor.offset()..))
        .ok_or_else(|| {
            format!(
                "it ends early: {end} bytes of data expected, {} found",
                buffer.len()
            )
        })?;
    let size = accessor.size();
    let stride = view.stride().unwrap_or(size).max(1);
    let needed = accessor
        .count()
        .checked_sub(1)
        .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(size));
    if needed.is_none_or(|needed| needed > bytes.len()) {
        return Err(format!(
            "it promises {} elements but holds {} bytes for them",
            accessor.count(),
            bytes.len()
        ));
    }
    let count = accessor.count();
    Ok((0..count).map(move |i| &bytes[i * stride..i * stride + size]))
}

fn read_points(accessor: &Accessor, buffers: &[Vec<u8>]) -> Result<Vec<Vec3>, String> {
    if accessor.data_type() != DataType::F32 || accessor.dimensions() != Dimensions::Vec3 {
        return Err("positions must be three 32-bit floats".into());
    }
    Ok(elements(accessor, buffers)?
        .map(bytemuck::pod_read_unaligned)
        .collect())
}

fn read_indices(accessor: &Accessor, buffers: &[Vec<u8>]) -> Result<Vec<u32>, String> {
    if accessor.dimensions() != Dimensions::Scalar {
        return Err("indices must be single numbers".into());
    }
    let bytes = elements(accessor, buffers)?;
    Ok(match accessor.data_type() {
        DataType::U8 => bytes.map(|b| u32::from(b[0])).collect(),
        DataType::U16 => bytes
            .map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])))
            .collect(),
        DataType::U32 => bytes.map(bytemuck::pod_read_unaligned).collect(),
        _ => return Err("indices must be unsigned integers".into()),
    })
}
