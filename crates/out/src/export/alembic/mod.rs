//! Alembic archives (.abc, Ogawa): one file with every frame, points or a mesh, each sample on disk as soon as it is known.
//!
//! The layout follows AbcCoreOgawa and AbcGeom: an archive holds objects, an object properties, a property samples.

mod ogawa;
mod property;

use super::snapshot::{Content, Snapshot};
use crate::geometry::{integers, width};
use crate::surface::SurfaceMesh;
use barchan_base::column::{Kind, as_bytes};
use barchan_sim::state::Particles;
use glam::{Mat4, Quat, Vec3};
use ogawa::{Entry, Ogawa};
use property::{
    Header, MetadataTable, Pod, Property, Shape, compound_header, object_header, time_samplings,
};
use std::io::{self, Seek, Write};

/// Version of the layout, and of the Alembic library it is that of.
const FILE_VERSION: i32 = 0;
const LIBRARY_VERSION: i32 = 10_805;
const ARCHIVE_METADATA: &str = "_ai_AlembicVersion=Alembic 1.8.5;_ai_Application=Barchan";
const XFORM: &str = "schema=AbcGeom_Xform_v3;schemaObjTitle=AbcGeom_Xform_v3:.xform";

/// A property's value in one frame.
struct Sample {
    header: Header,
    bytes: Vec<u8>,
}

impl Sample {
    fn array(name: &str, metadata: &str, (pod, extent): (Pod, usize), bytes: &[u8]) -> Self {
        let header = Header {
            name: name.into(),
            metadata: metadata.into(),
            shape: Shape::Array,
            pod,
            extent,
        };
        Self {
            header,
            bytes: bytes.to_vec(),
        }
    }

    /// A value a point, of the kind that Alembic calls a geometry parameter.
    fn parameter(
        name: &str,
        (scope, interpretation): (&str, &str),
        (pod, extent): (Pod, usize),
        bytes: &[u8],
    ) -> Self {
        let metadata = format!(
            "arrayExtent=1;geoScope={scope};interpretation={interpretation};isGeomParam=true;podExtent={extent};podName={}",
            pod.name()
        );
        Self::array(name, &metadata, (pod, extent), bytes)
    }

    fn scalar(name: &str, metadata: &str, (pod, extent): (Pod, usize), bytes: &[u8]) -> Self {
        let mut sample = Self::array(name, metadata, (pod, extent), bytes);
        sample.header.shape = Shape::Scalar;
        sample
    }
}

/// The box around the points, as Alembic stores it; an empty one is inside out.
fn bounds(positions: &[Vec3]) -> Sample {
    let least = positions.iter().fold([f64::MAX; 3], |least, p| {
        std::array::from_fn(|i| least[i].min(f64::from(p[i])))
    });
    let most = positions.iter().fold([f64::MIN; 3], |most, p| {
        std::array::from_fn(|i| most[i].max(f64::from(p[i])))
    });
    let corners = [least, most].concat();
    Sample::scalar(
        ".selfBnds",
        "interpretation=box",
        (Pod::Float64, 6),
        as_bytes(&corners),
    )
}

/// Points' own properties.
fn points(particles: &Particles) -> Vec<Sample> {
    let widths: Vec<f32> = particles.radius.iter().map(|r| 2.0 * r).collect();
    let (float, vector) = ((Pod::Float32, 1), (Pod::Float32, 3));
    vec![
        Sample::array(
            "P",
            "geoScope=var;interpretation=point",
            vector,
            as_bytes(&particles.position),
        ),
        Sample::array(
            ".pointIds",
            "geoScope=var",
            (Pod::Uint64, 1),
            as_bytes(&particles.id),
        ),
        bounds(&particles.position),
        Sample::array(
            ".velocities",
            "interpretation=vector",
            vector,
            as_bytes(&particles.velocity),
        ),
        Sample::parameter(".widths", ("var", ""), float, as_bytes(&widths)),
    ]
}

/// A mesh's own properties.
fn mesh(mesh: &SurfaceMesh) -> Vec<Sample> {
    // Alembic's faces run clockwise seen from outside.
    let corners: Vec<u32> = mesh
        .triangles
        .iter()
        .flat_map(|&[a, b, c]| [c, b, a])
        .collect();
    let counts = vec![3u32; mesh.triangles.len()];
    let (int, vector) = ((Pod::Int32, 1), (Pod::Float32, 3));
    let mut samples = vec![
        Sample::array(
            "P",
            "geoScope=vtx;interpretation=point",
            vector,
            as_bytes(&mesh.positions),
        ),
        bounds(&mesh.positions),
        Sample::array(".faceIndices", "", int, as_bytes(&corners)),
        Sample::array(".faceCounts", "", int, as_bytes(&counts)),
    ];
    if !mesh.velocities.is_empty() {
        let bytes = as_bytes(&mesh.velocities);
        samples.push(Sample::array(
            ".velocities",
            "interpretation=vector",
            vector,
            bytes,
        ));
    }
    if !mesh.normals.is_empty() {
        let bytes = as_bytes(&mesh.normals);
        samples.push(Sample::parameter("N", ("vtx", "normal"), vector, bytes));
    }
    samples
}

/// The columns that the schema has no place for.
fn arbitrary(snapshot: &Snapshot) -> Vec<Sample> {
    let (scope, placed): (_, &[&str]) = match snapshot.content {
        Content::Particles(_) => ("var", &["id", "velocity", "radius"]),
        Content::Mesh(_) => ("vtx", &["normal", "velocity"]),
    };
    let columns = snapshot.columns().into_iter();
    columns
        .filter(|(spec, _)| !placed.contains(&spec.name))
        .map(|(spec, bytes)| {
            // Small integers are widened: readers know 32 bits.
            if let (Kind::U16, Some(values)) = (spec.kind, integers(spec.kind, bytes)) {
                return Sample::parameter(
                    spec.name,
                    (scope, ""),
                    (Pod::Int32, 1),
                    bytemuck::cast_slice(&values),
                );
            }
            let pod = match spec.kind {
                Kind::F32 | Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => Pod::Float32,
                Kind::F64 => Pod::Float64,
                Kind::U16 => Pod::Uint16,
                Kind::U32 => Pod::Uint32,
                Kind::U64 => Pod::Uint64,
            };
            let (name, meaning) = match (spec.name, spec.kind) {
                ("color", _) => ("Cd", "rgb"),
                (name, Kind::Vec3) => (name, "vector"),
                (name, _) => (name, ""),
            };
            Sample::parameter(
                &name.replace('/', "_"),
                (scope, meaning),
                (pod, width(spec.kind)),
                bytes,
            )
        })
        .collect()
}

/// Properties that gain a sample a frame.
#[derive(Default)]
struct Compound(Vec<Property>);

impl Compound {
    /// Adds frame `frame`; a property that comes late or stays away is empty where it is not.
    fn add<W: Write + Seek>(
        &mut self,
        ogawa: &mut Ogawa<W>,
        frame: u32,
        samples: Vec<Sample>,
    ) -> io::Result<()> {
        for sample in samples {
            let known = self.0.iter().position(|p| p.name() == sample.header.name);
            let place = known.unwrap_or_else(|| {
                self.0.push(Property::new(sample.header));
                self.0.len() - 1
            });
            let property = &mut self.0[place];
            while property.samples() < frame {
                property.add(ogawa, &[])?;
            }
            property.add(ogawa, &sample.bytes)?;
        }
        for property in self.0.iter_mut().filter(|p| p.samples() <= frame) {
            property.add(ogawa, &[])?;
        }
        Ok(())
    }

    fn finish<W: Write + Seek>(
        mut self,
        ogawa: &mut Ogawa<W>,
        table: &mut MetadataTable,
        inner: Option<(&str, Entry)>,
    ) -> io::Result<Entry> {
        let (mut entries, mut headers) = (Vec::new(), Vec::new());
        for property in &mut self.0 {
            entries.push(property.finish(ogawa, (table, &mut headers))?);
        }
        if let Some((name, entry)) = inner {
            compound_header(name, "", (table, &mut headers));
            entries.push(entry);
        }
        if headers.is_empty() {
            return ogawa.group(&[]);
        }
        entries.push(ogawa.data(&[&headers])?);
        ogawa.group(&entries)
    }
}

/// An object of the archive, complete.
struct Object {
    name: &'static str,
    metadata: String,
    entry: Entry,
}

impl Object {
    /// Writes an object with `properties` and at most one child.
    fn write<W: Write + Seek>(
        ogawa: &mut Ogawa<W>,
        table: &mut MetadataTable,
        properties: Entry,
        child: Option<Self>,
    ) -> io::Result<Entry> {
        let mut entries = vec![properties];
        let mut headers = Vec::new();
        if let Some(child) = child {
            headers = object_header(child.name, &child.metadata, table);
            entries.push(child.entry);
        }
        // Hashes of properties and children, which readers do not check.
        headers.extend([0; 32]);
        entries.push(ogawa.data(&[&headers])?);
        ogawa.group(&entries)
    }
}

/// Writes every snapshot into one archive.
pub(super) fn write<W: Write + Seek>(
    file: &mut W,
    snapshots: &mut dyn Iterator<Item = Snapshot>,
) -> io::Result<()> {
    let mut ogawa = Ogawa::begin(file)?;
    let (mut schema, mut extra) = (Compound::default(), Compound::default());
    let (mut times, mut first) = (Vec::new(), None);
    for snapshot in snapshots {
        let frame = times.len() as u32;
        let own = match &snapshot.content {
            Content::Particles(particles) => points(particles),
            Content::Mesh(surface) => mesh(surface),
        };
        schema.add(&mut ogawa, frame, own)?;
        extra.add(&mut ogawa, frame, arbitrary(&snapshot))?;
        times.push(snapshot.meta.time);
        let kind = match snapshot.content {
            Content::Particles(_) => ("particles", "Points"),
            Content::Mesh(_) => ("mesh", "PolyMesh"),
        };
        first.get_or_insert((kind, snapshot.meta));
    }
    let ((name, kind), meta) =
        first.ok_or_else(|| io::Error::other("there is no frame to write"))?;
    let mut table = MetadataTable::default();
    let base = format!("schema=AbcGeom_{kind}_v1;schemaBaseType=AbcGeom_GeomBase_v1");
    let extra = extra.finish(&mut ogawa, &mut table, None)?;
    let schema = schema.finish(&mut ogawa, &mut table, Some((".arbGeomParams", extra)))?;
    let properties = holder(&mut ogawa, &mut table, (".geom", &base), schema)?;
    let mut object = Object {
        name,
        metadata: format!("{base};schemaObjTitle=AbcGeom_{kind}_v1:.geom"),
        entry: Object::write(&mut ogawa, &mut table, properties, None)?,
    };
    // In Alembic y is up.
    if meta.up.dot(Vec3::Y) < 0.999 {
        object = upright(&mut ogawa, &mut table, meta.up, object)?;
    }
    let nothing = ogawa.group(&[])?;
    let top = Object::write(&mut ogawa, &mut table, nothing, Some(object))?;
    let root = [
        ogawa.data(&[&FILE_VERSION.to_le_bytes()])?,
        ogawa.data(&[&LIBRARY_VERSION.to_le_bytes()])?,
        top,
        ogawa.data(&[ARCHIVE_METADATA.as_bytes()])?,
        ogawa.data(&[&time_samplings(&times, meta.fps)])?,
        ogawa.data(&[&table.bytes()])?,
    ];
    let root = ogawa.group(&root)?;
    ogawa.finish(root)
}

/// The compound that holds nothing but one named compound.
fn holder<W: Write + Seek>(
    ogawa: &mut Ogawa<W>,
    table: &mut MetadataTable,
    (name, metadata): (&str, &str),
    inner: Entry,
) -> io::Result<Entry> {
    let mut headers = Vec::new();
    compound_header(name, metadata, (table, &mut headers));
    let entries = [inner, ogawa.data(&[&headers])?];
    ogawa.group(&entries)
}

/// A transform that turns `up` to y, around `child`.
fn upright<W: Write + Seek>(
    ogawa: &mut Ogawa<W>,
    table: &mut MetadataTable,
    up: Vec3,
    child: Object,
) -> io::Result<Object> {
    const MATRIX_OPERATION: u8 = 3 << 4;
    let turn = Mat4::from_quat(Quat::from_rotation_arc(up.normalize_or(Vec3::Y), Vec3::Y));
    // Columns of ours are rows of Alembic's, which multiplies from the left.
    let values = turn.to_cols_array().map(f64::from);
    let samples = vec![
        Sample::scalar(".inherits", "", (Pod::Boolean, 1), &[1]),
        Sample::scalar(".ops", "", (Pod::Uint8, 1), &[MATRIX_OPERATION]),
        Sample::scalar(".vals", "", (Pod::Float64, 16), as_bytes(&values)),
        Sample::scalar("isNotConstantIdentity", "", (Pod::Boolean, 1), &[1]),
    ];
    let mut compound = Compound::default();
    compound.add(ogawa, 0, samples)?;
    let compound = compound.finish(ogawa, table, None)?;
    let properties = holder(
        ogawa,
        table,
        (".xform", "schema=AbcGeom_Xform_v3"),
        compound,
    )?;
    Ok(Object {
        name: "upright",
        metadata: XFORM.into(),
        entry: Object::write(ogawa, table, properties, Some(child))?,
    })
}

#[cfg(test)]
mod tests;
