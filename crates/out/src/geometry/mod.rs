//! Points or triangles with columns, and the formats that hold just that: PLY, VTK and binary glTF. Surfaces and exports write through
//! here.

pub(crate) mod glb;
pub(crate) mod ply;
pub(crate) mod vtk;

use barchan_base::column::{ColumnSpec, Kind};
use glam::Vec3;

/// A column of points or vertices: what it is, and its bytes.
pub(crate) type Column<'a> = (ColumnSpec, &'a [u8]);

/// What a file of one frame holds.
#[derive(Clone, Debug)]
pub(crate) struct Geometry<'a> {
    /// A line about where it comes from, which stands near the start of the file.
    pub about: String,
    pub frame: u32,
    /// Time [s].
    pub time: f64,
    /// Unit vector up.
    pub up: Vec3,
    /// Points or vertices [m].
    pub positions: &'a [Vec3],
    /// What each of them has beside its place.
    pub columns: Vec<Column<'a>>,
    /// The triangles of a mesh; `None` for points.
    pub triangles: Option<&'a [[u32; 3]]>,
}

/// The entries of a column as floats; integers and doubles are rounded.
pub(crate) fn floats(kind: Kind, bytes: &[u8]) -> Vec<f32> {
    fn entries<T: bytemuck::Pod, const N: usize>(
        bytes: &[u8],
        float: impl Fn(T) -> f32,
    ) -> Vec<f32> {
        let (chunks, _) = bytes.as_chunks::<N>();
        chunks
            .iter()
            .map(|chunk| float(bytemuck::pod_read_unaligned(chunk)))
            .collect()
    }
    match kind {
        Kind::F32 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => entries::<f32, 4>(bytes, |v| v),
        Kind::F64 => entries::<f64, 8>(bytes, |v| v as f32),
        Kind::U16 => entries::<u16, 2>(bytes, f32::from),
        Kind::U32 => entries::<u32, 4>(bytes, |v| v as f32),
        Kind::U64 => entries::<u64, 8>(bytes, |v| v as f32),
    }
}

/// The entries of a column of integers, cut to 32 bits; `None` for floats.
pub(crate) fn integers(kind: Kind, bytes: &[u8]) -> Option<Vec<i32>> {
    fn entries<const N: usize>(bytes: &[u8], int: impl Fn([u8; N]) -> i32) -> Vec<i32> {
        let (chunks, _) = bytes.as_chunks::<N>();
        chunks.iter().map(|chunk| int(*chunk)).collect()
    }
    match kind {
        Kind::U16 => Some(entries(bytes, |b| i32::from(u16::from_ne_bytes(b)))),
        Kind::U32 => Some(entries(bytes, |b| u32::from_ne_bytes(b) as i32)),
        Kind::U64 => Some(entries(bytes, |b| u64::from_ne_bytes(b) as i32)),
        Kind::F32 | Kind::F64 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => None,
    }
}

/// Numbers in one entry.
pub(crate) fn width(kind: Kind) -> usize {
    match kind {
        Kind::Vec3 => 3,
        Kind::Vec4 => 4,
        Kind::Mat3 => 9,
        _ => 1,
    }
}

/// `name` with everything but letters, digits and underscores replaced, as most formats want it.
pub(crate) fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name
    } else {
        format!("_{name}")
    }
}

/// `text` on one line, for comments.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
