//! USD as text (.usda). Attributes stand one after another in the file while frames come one after another, so the samples
//! of each attribute wait in a file of their own.

use super::instances::{FOLDER, Prototype};
use super::{Head, Keep, Shown, Track, Type, gather};
use crate::export::snapshot::Snapshot;
use half::f16;
use std::fmt;
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

/// A number as USD reads it: the shortest text that reads back as the same one.
struct Number<T>(T);

impl<T: fmt::Debug + Copy + Into<f64>> fmt::Display for Number<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.into().is_nan() {
            true => to.write_str("nan"),
            false => self.0.fmt(to),
        }
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
        Type::Float => list::<4>(to, bytes, |to, b| {
            write!(to, "{}", Number(f32::from_ne_bytes(b)))
        }),
        Type::Double => list::<8>(to, bytes, |to, b| {
            write!(to, "{}", Number(f64::from_ne_bytes(b)))
        }),
        Type::Int => list::<4>(to, bytes, |to, b| write!(to, "{}", i32::from_ne_bytes(b))),
        Type::Int64 => list::<8>(to, bytes, |to, b| write!(to, "{}", i64::from_ne_bytes(b))),
        Type::Float3 | Type::Point3 | Type::Vector3 | Type::Normal3 | Type::Color3 => {
            list::<12>(to, bytes, |to, b| {
                let [x, y, z] = bytemuck::pod_read_unaligned::<[f32; 3]>(&b).map(Number);
                write!(to, "({x}, {y}, {z})")
            })
        }
        // Text has the real part first.
        Type::Quaternion => list::<8>(to, bytes, |to, b| {
            let [i, j, k, r] = bytemuck::pod_read_unaligned::<[u16; 4]>(&b);
            let [r, i, j, k] = [r, i, j, k].map(|bits| Number(f16::from_bits(bits).to_f32()));
            write!(to, "({r}, {i}, {j}, {k})")
        }),
    }
}

/// Writes every snapshot into one stage; what has to wait waits in `folder`.
pub fn write(
    file: &mut impl Write,
    snapshots: &mut dyn Iterator<Item = Snapshot>,
    folder: &Path,
    shown: Shown<'_>,
) -> io::Result<()> {
    let stage = gather(&mut Spools { folder }, snapshots, shown)?;
    head(file, &stage.head, stage.prim)?;
    for track in stage.tracks {
        track.pour(file)?;
    }
    prototypes(file, stage.prim.0, &stage.prototypes)?;
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

/// What instances of the prim `name` are copies of.
fn prototypes(file: &mut impl Write, name: &str, all: &[Prototype]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let paths = all
        .iter()
        .map(|one| format!("</barchan/{name}/{FOLDER}/{}>", one.name));
    let paths: Vec<String> = paths.collect();
    writeln!(file, "        rel prototypes = [{}]", paths.join(", "))?;
    writeln!(file, "        def Scope \"{FOLDER}\"\n        {{")?;
    for one in all {
        writeln!(
            file,
            "            def Xform \"{}\"\n            {{",
            one.name
        )?;
        for (i, (at, radius)) in one.balls.iter().enumerate() {
            writeln!(
                file,
                "                def Sphere \"ball_{i}\"\n                {{\n                    double radius = {radius:?}\n                    \
                 double3 xformOp:translate = ({:?}, {:?}, {:?})\n                    \
                 uniform token[] xformOpOrder = [\"xformOp:translate\"]\n                }}",
                at.x, at.y, at.z
            )?;
        }
        writeln!(file, "            }}")?;
    }
    writeln!(file, "        }}")
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;
    use crate::export::snapshot::Content;
    use barchan_base::column::Column;
    use barchan_sim::grain::{NAMED, ORIENTATION};
    use glam::Vec4;

    fn stage(snapshots: Vec<Snapshot>) -> String {
        shown(snapshots, Shown::Plain)
    }

    fn shown(snapshots: Vec<Snapshot>, shown: Shown<'_>) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bytes = Vec::new();
        write(&mut bytes, &mut snapshots.into_iter(), folder.path(), shown)
            .expect("memory takes all");
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
    fn numbers_that_are_none_are_written_as_usd_reads_them() {
        let mut frame = samples::particles(4, 0);
        if let Content::Particles(particles) = &mut frame.content {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -f64::NAN];
            (0..4).for_each(|i| particles.extra[0].set(i, odd[i]));
            particles.mass[0] = f32::NAN;
        }
        let text = stage(vec![frame]);
        let said = |attribute| samples_of(&text, attribute)[0].1.clone();
        assert_eq!(said("primvars:heat_of_it"), "[nan, inf, -inf, nan]");
        assert_eq!(said("primvars:mass"), "[nan, 2.0, 2.0, 2.0]");
    }

    #[test]
    fn a_frame_without_particles_has_an_extent_of_nothing() {
        let most = f32::MAX;
        let nothing =
            format!("[({most:?}, {most:?}, {most:?}), (-{most:?}, -{most:?}, -{most:?})]");
        for frames in [[0, 2], [2, 0]] {
            let frames = [
                samples::particles(frames[0], 0),
                samples::particles(frames[1], 1),
            ];
            let text = stage(frames.into());
            let all = samples_of(&text, "extent");
            assert_eq!(
                all.iter().filter(|(_, box_)| *box_ == nothing).count(),
                1,
                "{all:?}"
            );
        }
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
    #[test]
    fn grains_are_instances_of_their_shapes() {
        let cube = NAMED[3].1.clone();
        let mut frame = samples::particles(2, 0);
        if let Content::Particles(particles) = &mut frame.content {
            particles.material[1] = 0;
            let mut turns = Column::zeros(ORIENTATION, 2);
            turns.set(0, Vec4::W);
            turns.set(1, Vec4::new(0.6, 0.0, -0.8, 0.0));
            particles.extra.push(turns);
        }
        let text = shown(vec![frame], Shown::Instances(&[cube]));
        assert!(text.contains("def PointInstancer \"grains\""));
        assert!(text.contains("rel prototypes = [</barchan/grains/prototypes/sand_0>]"));
        assert_eq!(text.matches("def Sphere").count(), 8);
        assert_eq!(samples_of(&text, "protoIndices")[0].1, "[0, 0]");
        assert_eq!(
            samples_of(&text, "scales")[0].1,
            "[(0.125, 0.125, 0.125), (1.125, 1.125, 1.125)]"
        );
        // Sixteen bits hold 0.6 and 0.8 to four digits.
        assert_eq!(
            samples_of(&text, "orientations")[0].1,
            "[(1.0, 0.0, 0.0, 0.0), (0.0, 0.60009766, 0.0, -0.7998047)]"
        );
        assert!(!text.contains("widths"));
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
