//! USD as text (.usda). Attributes stand one after another in the file while frames come one after another, so the samples
//! of each attribute wait in a file of their own.

use super::{Head, Keep, Track, Type, gather};
use crate::export::snapshot::Snapshot;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

/// Where samples wait.
struct Spools<'a> {
    folder: &'a Path,
}

impl Keep for Spools<'_> {
    type Samples = BufWriter<File>;

    fn begin(&mut self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::new(tempfile::tempfile_in(self.folder)?))
    }

    fn add(
        &mut self,
        text: &mut BufWriter<File>,
        kind: Type,
        code: u32,
        bytes: &[u8],
    ) -> io::Result<()> {
        write!(text, "            {code}: [")?;
        values(text, kind, bytes)?;
        text.write_all(b"],\n")
    }
}

impl Track<BufWriter<File>> {
    /// Declares the attribute in `file` and moves its samples there.
    fn pour(self, file: &mut impl Write) -> io::Result<()> {
        let (name, kind) = (&self.name, self.kind.name());
        if self.vertex {
            writeln!(
                file,
                "        {kind} {name} (\n            interpolation = \"vertex\"\n        )"
            )?;
        }
        writeln!(file, "        {kind} {name}.timeSamples = {{")?;
        let text = self.samples.into_inner();
        let mut text = text.map_err(io::IntoInnerError::into_error)?;
        text.rewind()?;
        io::copy(&mut text, file)?;
        writeln!(file, "        }}")
    }
}

/// The numbers of an array, with commas; triples in brackets.
fn values(to: &mut impl Write, kind: Type, bytes: &[u8]) -> io::Result<()> {
    fn list<const N: usize>(
        to: &mut impl Write,
        bytes: &[u8],
        one: impl Fn(&mut dyn Write, [u8; N]) -> io::Result<()>,
    ) -> io::Result<()> {
        for (i, chunk) in bytes.as_chunks::<N>().0.iter().enumerate() {
            if i > 0 {
                to.write_all(b", ")?;
            }
            one(to, *chunk)?;
        }
        Ok(())
    }
    match kind {
        // The shortest text that reads back as the same number.
        Type::Float => list::<4>(to, bytes, |to, b| write!(to, "{:?}", f32::from_ne_bytes(b))),
        Type::Double => list::<8>(to, bytes, |to, b| write!(to, "{:?}", f64::from_ne_bytes(b))),
        Type::Int => list::<4>(to, bytes, |to, b| write!(to, "{}", i32::from_ne_bytes(b))),
        Type::Int64 => list::<8>(to, bytes, |to, b| write!(to, "{}", i64::from_ne_bytes(b))),
        Type::Float3 | Type::Point3 | Type::Vector3 | Type::Normal3 | Type::Color3 => {
            list::<12>(to, bytes, |to, b| {
                let [x, y, z]: [f32; 3] = bytemuck::pod_read_unaligned(&b);
                write!(to, "({x:?}, {y:?}, {z:?})")
            })
        }
    }
}

/// Writes every snapshot into one stage; what has to wait waits in `folder`.
pub fn write(
    file: &mut impl Write,
    snapshots: &mut dyn Iterator<Item = Snapshot>,
    folder: &Path,
) -> io::Result<()> {
    let stage = gather(&mut Spools { folder }, snapshots)?;
    head(file, &stage.head, stage.prim)?;
    for track in stage.tracks {
        track.pour(file)?;
    }
    file.write_all(b"    }\n}\n")
}

fn head(file: &mut impl Write, head: &Head, (name, schema): (&str, &str)) -> io::Result<()> {
    let about = head.about.replace('\\', "/").replace('"', "'");
    write!(
        file,
        "#usda 1.0\n(\n    \"{about}\"\n    defaultPrim = \"barchan\"\n    endTimeCode = {end}\n    framesPerSecond = {fps}\n    \
         metersPerUnit = 1\n    startTimeCode = {start}\n    timeCodesPerSecond = {fps}\n    upAxis = \"{up}\"\n)\n\n\
         def Xform \"barchan\"\n{{\n",
        start = head.start,
        end = head.end,
        fps = head.fps,
        up = head.up,
    )?;
    if let Some(turn) = head.turn {
        let rows = turn.to_cols_array_2d();
        let rows = rows.map(|[a, b, c, d]| format!("({a:?}, {b:?}, {c:?}, {d:?})"));
        writeln!(
            file,
            "    matrix4d xformOp:transform = ({})",
            rows.join(", ")
        )?;
        writeln!(
            file,
            "    uniform token[] xformOpOrder = [\"xformOp:transform\"]"
        )?;
    }
    writeln!(file, "    def {schema} \"{name}\"\n    {{")?;
    if schema == "Mesh" {
        writeln!(file, "        uniform token subdivisionScheme = \"none\"")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    fn stage(snapshots: Vec<Snapshot>) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bytes = Vec::new();
        write(&mut bytes, &mut snapshots.into_iter(), folder.path()).expect("memory takes all");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
        String::from_utf8(bytes).expect("text")
    }

    /// The samples of an attribute, by time.
    fn samples_of(stage: &str, attribute: &str) -> Vec<(u32, String)> {
        let start = stage
            .split(&format!(" {attribute}.timeSamples = {{\n"))
            .nth(1)
            .expect("there");
        let lines = start.lines().take_while(|line| line.trim() != "}");
        lines
            .map(|line| {
                let (time, values) = line.trim().split_once(": ").expect("a sample");
                (
                    time.parse().expect("a time"),
                    values.trim_end_matches(',').to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn each_attribute_has_its_samples_at_its_frames() {
        let text = stage(vec![
            samples::particles(2, 3),
            samples::particles(1, 4),
            samples::particles(0, 5),
        ]);
        assert!(text.starts_with("#usda 1.0\n(\n    \"Barchan, scene odd 'name' <&> §\"\n"));
        for line in [
            "startTimeCode = 3",
            "endTimeCode = 5",
            "timeCodesPerSecond = 24",
            "upAxis = \"Y\"",
        ] {
            assert!(text.contains(line), "{line}");
        }
        assert_eq!(
            samples_of(&text, "points"),
            [
                (3, "[(0.0, -3.0, 3.0), (1.0, -2.5, 3.0)]".to_owned()),
                (4, "[(0.0, -3.0, 4.0)]".to_owned()),
                (5, "[]".to_owned())
            ]
        );
        assert_eq!(samples_of(&text, "ids")[0].1, "[7, 8]");
        assert_eq!(samples_of(&text, "widths")[0].1, "[0.25, 2.25]");
        assert_eq!(samples_of(&text, "primvars:heat_of_it")[1].1, "[273.0]");
        assert_eq!(samples_of(&text, "extent").len(), 3);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn meshes_are_polygons_and_other_axes_are_turned() {
        let mut mesh = samples::tetrahedron(0);
        mesh.meta.up = glam::Vec3::X;
        let text = stage(vec![mesh]);
        assert!(
            text.contains("def Mesh \"mesh\"") && text.contains("subdivisionScheme = \"none\"")
        );
        assert_eq!(samples_of(&text, "faceVertexCounts")[0].1, "[3, 3, 3, 3]");
        assert!(
            samples_of(&text, "faceVertexIndices")[0]
                .1
                .starts_with("[0, 1, 2, 0, 3, 1")
        );
        assert!(text.contains("xformOp:transform"));
    }
}
