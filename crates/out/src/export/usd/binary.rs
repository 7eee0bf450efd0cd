//! USD as a crate file (.usdc): half as large as text, and read many times faster. Arrays go to the file as frames come; only where
//! they stand is remembered.

use super::crate_file::{CrateFile, SpecType, Value, ValueType};
use super::instances::{FOLDER, Prototype};
use super::{Head, Keep, Shown, Stage, Type, gather};
use crate::export::snapshot::Snapshot;
use glam::DVec3;
use std::io::{self, Seek, Write};

impl Type {
    /// The type of an entry as a crate file has it, and its bytes.
    fn entry(self) -> (ValueType, usize) {
        match self {
            Self::Float => (ValueType::Float, 4),
            Self::Int => (ValueType::Int, 4),
            Self::Int64 => (ValueType::Int64, 8),
            Self::Double => (ValueType::Double, 8),
            Self::Quaternion => (ValueType::Quath, 8),
            Self::Float3 | Self::Point3 | Self::Vector3 | Self::Normal3 | Self::Color3 => {
                (ValueType::Vec3f, 12)
            }
        }
    }
}

impl<W: Write + Seek> Keep for CrateFile<'_, W> {
    type Samples = Vec<Value>;

    fn begin(&mut self) -> io::Result<Vec<Value>> {
        Ok(Vec::new())
    }

    fn add(
        &mut self,
        samples: &mut Vec<Value>,
        kind: Type,
        _: u32,
        bytes: &[u8],
    ) -> io::Result<()> {
        let (entry, size) = kind.entry();
        samples.push(self.array(entry, bytes.len() / size, bytes)?);
        Ok(())
    }
}

/// Writes every snapshot into one stage.
pub fn write(
    file: &mut (impl Write + Seek),
    snapshots: &mut dyn Iterator<Item = Snapshot>,
    shown: Shown<'_>,
) -> io::Result<()> {
    let mut file = CrateFile::new(file)?;
    let stage = gather(&mut file, snapshots, shown)?;
    root(&mut file, &stage.head)?;
    frame(&mut file, &stage)?;
    content(&mut file, &stage)?;
    file.finish()
}

/// The stage itself.
fn root<W: Write + Seek>(file: &mut CrateFile<'_, W>, head: &Head) -> io::Result<()> {
    let numbers = [
        ("endTimeCode", f64::from(head.end)),
        ("framesPerSecond", head.fps),
        ("metersPerUnit", 1.0),
        ("startTimeCode", f64::from(head.start)),
        ("timeCodesPerSecond", head.fps),
    ];
    let mut fields = vec![
        ("comment", file.string(&head.about)),
        ("defaultPrim", file.token("barchan")),
        ("primChildren", file.token_list(&["barchan"])?),
        ("upAxis", file.token(head.up)),
    ];
    for (name, number) in numbers {
        fields.push((name, file.single(ValueType::Double, &number.to_le_bytes())?));
    }
    file.spec(SpecType::Root, 0, "", &fields);
    Ok(())
}

/// The prim that holds the content, and turns it where need be.
fn frame<W: Write + Seek>(
    file: &mut CrateFile<'_, W>,
    stage: &Stage<Vec<Value>>,
) -> io::Result<()> {
    let mut fields = vec![
        ("specifier", Value::define()),
        ("typeName", file.token("Xform")),
        ("primChildren", file.token_list(&[stage.prim.0])?),
    ];
    let Some(turn) = stage.head.turn else {
        file.spec(SpecType::Prim, 1, "barchan", &fields);
        return Ok(());
    };
    let names = ["xformOp:transform", "xformOpOrder"];
    fields.push(("properties", file.token_list(&names)?));
    file.spec(SpecType::Prim, 1, "barchan", &fields);
    let numbers = turn.as_dmat4().to_cols_array().map(f64::to_le_bytes);
    let matrix = [
        ("typeName", file.token("matrix4d")),
        (
            "default",
            file.single(ValueType::Matrix4d, numbers.as_flattened())?,
        ),
    ];
    file.spec(SpecType::Attribute, 2, names[0], &matrix);
    order(file, 2, names[0])
}

/// The points, the instances or the mesh, with all attributes.
fn content<W: Write + Seek>(
    file: &mut CrateFile<'_, W>,
    stage: &Stage<Vec<Value>>,
) -> io::Result<()> {
    const SUBDIVISION: &str = "subdivisionScheme";
    const PROTOTYPES: &str = "prototypes";
    let (name, schema) = stage.prim;
    let is_mesh = schema == "Mesh";
    let mut names: Vec<&str> = stage.tracks.iter().map(|t| t.name.as_str()).collect();
    let instances = !stage.prototypes.is_empty();
    if is_mesh {
        names.push(SUBDIVISION);
    }
    if instances {
        names.push(PROTOTYPES);
    }
    let mut fields = vec![
        ("specifier", Value::define()),
        ("typeName", file.token(schema)),
        ("properties", file.token_list(&names)?),
    ];
    if instances {
        fields.push(("primChildren", file.token_list(&[FOLDER])?));
    }
    file.spec(SpecType::Prim, 2, name, &fields);
    if instances {
        let paths = prototypes(file, &stage.prototypes)?;
        let fields = [("targetPaths", file.targets(&paths)?)];
        file.spec(SpecType::Relationship, 3, PROTOTYPES, &fields);
    }
    let codes: Vec<f64> = stage.codes.iter().map(|&code| f64::from(code)).collect();
    let times = file.times(&codes)?;
    for track in &stage.tracks {
        let mut fields = vec![
            ("typeName", file.token(track.kind.name())),
            ("timeSamples", file.time_samples(times, &track.samples)?),
        ];
        if track.vertex {
            fields.push(("interpolation", file.token("vertex")));
        }
        file.spec(SpecType::Attribute, 3, &track.name, &fields);
    }
    if is_mesh {
        let fields = [
            ("typeName", file.token("token")),
            ("variability", Value::uniform()),
            ("default", file.token("none")),
        ];
        file.spec(SpecType::Attribute, 3, SUBDIVISION, &fields);
    }
    Ok(())
}

/// What instances are copies of; the paths of all.
fn prototypes<W: Write + Seek>(
    file: &mut CrateFile<'_, W>,
    all: &[Prototype],
) -> io::Result<Vec<u32>> {
    let prim = |file: &mut CrateFile<'_, W>, schema: &str, children: &[&str]| {
        Ok::<_, io::Error>([
            ("specifier", Value::define()),
            ("typeName", file.token(schema)),
            ("primChildren", file.token_list(children)?),
        ])
    };
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let fields = prim(file, "Scope", &names)?;
    file.spec(SpecType::Prim, 3, FOLDER, &fields);
    let mut paths = Vec::new();
    for one in all {
        let names: Vec<String> = (0..one.balls.len()).map(|i| format!("ball_{i}")).collect();
        let children: Vec<&str> = names.iter().map(String::as_str).collect();
        let fields = prim(file, "Xform", &children)?;
        paths.push(file.spec(SpecType::Prim, 4, &one.name, &fields));
        for (name, ball) in names.iter().zip(&one.balls) {
            sphere(file, name, *ball)?;
        }
    }
    Ok(paths)
}

/// A ball of a prototype.
fn sphere<W: Write + Seek>(
    file: &mut CrateFile<'_, W>,
    name: &str,
    (at, radius): (DVec3, f64),
) -> io::Result<()> {
    let names = ["radius", "xformOp:translate", "xformOpOrder"];
    let fields = [
        ("specifier", Value::define()),
        ("typeName", file.token("Sphere")),
        ("properties", file.token_list(&names)?),
    ];
    file.spec(SpecType::Prim, 5, name, &fields);
    let value = file.single(ValueType::Double, &radius.to_le_bytes())?;
    let fields = [("typeName", file.token("double")), ("default", value)];
    file.spec(SpecType::Attribute, 6, names[0], &fields);
    let place = at.to_array().map(f64::to_le_bytes);
    let value = file.single(ValueType::Vec3d, place.as_flattened())?;
    let fields = [("typeName", file.token("double3")), ("default", value)];
    file.spec(SpecType::Attribute, 6, names[1], &fields);
    order(file, 6, names[1])
}

/// Says that `operation` is the only one that places a prim.
fn order<W: Write + Seek>(
    file: &mut CrateFile<'_, W>,
    depth: usize,
    operation: &str,
) -> io::Result<()> {
    let fields = [
        ("typeName", file.token("token[]")),
        ("variability", Value::uniform()),
        ("default", file.token_array(&[operation])?),
    ];
    file.spec(SpecType::Attribute, depth, "xformOpOrder", &fields);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    fn stage(snapshots: Vec<Snapshot>) -> Vec<u8> {
        let mut bytes = io::Cursor::new(Vec::new());
        write(&mut bytes, &mut snapshots.into_iter(), Shown::Plain).expect("memory takes all");
        bytes.into_inner()
    }

    fn place_of(bytes: &[u8], part: &[u8]) -> Option<usize> {
        bytes.windows(part.len()).position(|window| window == part)
    }

    /// What readers make of it is checked by tests/interop; this is what must stand in the file at all.
    #[test]
    fn arrays_stand_in_the_file_as_they_are() {
        let frames = [samples::particles(2, 3), samples::particles(0, 5)];
        let bytes = stage(frames.to_vec());
        let ids = [2u64, 7, 8].map(u64::to_le_bytes);
        let place = place_of(&bytes, ids.as_flattened()).expect("the ids behind their number");
        assert_eq!(place % 8, 0);
        let times = [2u64.to_le_bytes(), 3f64.to_le_bytes(), 5f64.to_le_bytes()];
        assert!(place_of(&bytes, times.as_flattened()).is_some());
        // The samples of the ids: where those of the first frame stand, and an array of none.
        let array = 1u64 << 63 | (ValueType::Int64 as u64) << 48;
        let values = [2, array | place as u64, array].map(u64::to_le_bytes);
        assert!(place_of(&bytes, values.as_flattened()).is_some());
        for word in [&b"primvars:heat_of_it\0"[..], b"Points\0", b"extent\0"] {
            assert!(place_of(&bytes, word).is_some(), "{word:?}");
        }
    }

    #[test]
    fn other_axes_are_turned() {
        let mut mesh = samples::tetrahedron(0);
        assert!(place_of(&stage(vec![mesh.clone()]), b"xformOp:transform").is_none());
        mesh.meta.up = glam::Vec3::X;
        let bytes = stage(vec![mesh]);
        assert!(place_of(&bytes, b"xformOp:transform").is_some());
        assert!(place_of(&bytes, b"subdivisionScheme").is_some());
    }

    #[test]
    fn a_stage_without_frames_is_refused() {
        let mut bytes = io::Cursor::new(Vec::new());
        assert!(write(&mut bytes, &mut std::iter::empty(), Shown::Plain).is_err());
    }
}
