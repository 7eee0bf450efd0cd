//! What a file is made of: one frame's particles or its surface, checked once for all writers.

use super::{ExportError, What};
use crate::cache::{FrameMeta, RunFolder, read_frame};
use crate::surface::SurfaceMesh;
use barchan_base::column::{ColumnSpec, Kind, as_bytes};
use barchan_sim::state::Particles;
use glam::Vec3;

/// One frame, ready to be written.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub meta: FrameMeta,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Particles(Particles),
    Mesh(SurfaceMesh),
}

/// A column of points or vertices: what it is, and its bytes.
pub(super) type Column<'a> = (ColumnSpec, &'a [u8]);

const fn vectors(name: &'static str, unit: &'static str) -> ColumnSpec {
    ColumnSpec {
        name,
        unit,
        kind: Kind::Vec3,
    }
}

const NORMAL: ColumnSpec = vectors("normal", "1");
const VELOCITY: ColumnSpec = vectors("velocity", "m/s");
const COLOR: ColumnSpec = vectors("color", "1");
const MATERIAL: ColumnSpec = ColumnSpec {
    name: "material",
    unit: "1",
    kind: Kind::U16,
};

impl Snapshot {
    /// Frame `number` of `run`, with a word about what had to be left out of it.
    pub fn read(
        run: &RunFolder,
        number: u32,
        what: What,
    ) -> Result<(Self, Option<String>), ExportError> {
        let frame = read_frame(&run.frame_path(number))?;
        let (meta, mut particles) = (frame.meta, frame.particles);
        if what == What::Mesh {
            let mesh = super::read_mesh(run, number)?;
            check(&mesh).map_err(|reason| ExportError::Mesh {
                frame: number,
                reason,
            })?;
            let content = Content::Mesh(mesh);
            return Ok((Self { meta, content }, None));
        }
        let lost = keep_finite(&mut particles);
        let told = (lost > 0).then(|| {
            format!("frame {number}: {lost} particles without a finite place, velocity or radius are left out")
        });
        let content = Content::Particles(particles);
        Ok((Self { meta, content }, told))
    }

    /// Where the points or vertices are.
    pub fn positions(&self) -> &[Vec3] {
        match &self.content {
            Content::Particles(particles) => &particles.position,
            Content::Mesh(mesh) => &mesh.positions,
        }
    }

    /// Every column but the positions.
    pub fn columns(&self) -> Vec<Column<'_>> {
        match &self.content {
            Content::Particles(particles) => particles
                .raw()
                .into_iter()
                .filter(|(spec, _)| spec.name != "position")
                .collect(),
            Content::Mesh(mesh) => [
                (NORMAL, as_bytes(&mesh.normals)),
                (VELOCITY, as_bytes(&mesh.velocities)),
                (COLOR, as_bytes(&mesh.colors)),
                (MATERIAL, as_bytes(&mesh.materials)),
            ]
            .into_iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect(),
        }
    }

    /// The triangles of a mesh; particles have none.
    pub fn triangles(&self) -> &[[u32; 3]] {
        match &self.content {
            Content::Particles(_) => &[],
            Content::Mesh(mesh) => &mesh.triangles,
        }
    }

    /// Least and greatest corner of what is there, radii included; `None` where there is nothing.
    pub fn bounds(&self) -> Option<(Vec3, Vec3)> {
        let radius = |i: usize| match &self.content {
            Content::Particles(particles) => particles.radius[i],
            Content::Mesh(_) => 0.0,
        };
        self.positions()
            .iter()
            .enumerate()
            .map(|(i, &p)| (p - radius(i), p + radius(i)))
            .reduce(|(least, most), (a, b)| (least.min(a), most.max(b)))
    }
}

/// Takes out the particles that no program could place; how many.
fn keep_finite(particles: &mut Particles) -> usize {
    let fine = |i: usize| {
        particles.position[i].is_finite()
            && particles.velocity[i].is_finite()
            && particles.radius[i].is_finite()
    };
    let keep: Vec<bool> = (0..particles.len()).map(fine).collect();
    let lost = keep.iter().filter(|keep| !**keep).count();
    if lost > 0 {
        particles.retain(&keep);
    }
    lost
}

/// Refuses a mesh that writers could stumble over.
fn check(mesh: &SurfaceMesh) -> Result<(), String> {
    let count = mesh.positions.len();
    let lengths = [
        mesh.normals.len(),
        mesh.velocities.len(),
        mesh.colors.len(),
        mesh.materials.len(),
    ];
    if lengths.iter().any(|&length| length != 0 && length != count) {
        return Err("its columns are not as long as its vertices".into());
    }
    let columns = [&mesh.positions, &mesh.normals, &mesh.velocities];
    if columns.iter().any(|c| !c.iter().all(|v| v.is_finite())) {
        return Err("it has numbers that are not finite".into());
    }
    if mesh
        .triangles
        .iter()
        .flatten()
        .any(|&v| v as usize >= count)
    {
        return Err("a triangle has a corner that is not there".into());
    }
    Ok(())
}

/// The entries of a column as floats; integers and doubles are rounded.
pub(super) fn floats(kind: Kind, bytes: &[u8]) -> Vec<f32> {
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
pub(super) fn integers(kind: Kind, bytes: &[u8]) -> Option<Vec<i32>> {
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
pub(super) fn width(kind: Kind) -> usize {
    match kind {
        Kind::Vec3 => 3,
        Kind::Vec4 => 4,
        Kind::Mat3 => 9,
        _ => 1,
    }
}

/// `name` with everything but letters, digits and underscores replaced, as most formats want it.
pub(super) fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name
    } else {
        format!("_{name}")
    }
}

/// `text` on one line, for comments.
pub(super) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
