//! Mitsuba 3 scenes, in XML.

use super::scene::{Language, Shot, numbers};
use super::view::{FIELD_OF_VIEW, SAMPLES, SIZE, SKY, SUN, View};
use crate::geometry::one_line;
use crate::geometry::vtk::comment;
use glam::Vec3;
use std::io::{self, Write};

pub(super) struct Mitsuba;

fn listed(values: [f32; 3]) -> String {
    numbers(values, ", ")
}

impl Language for Mitsuba {
    fn begin(file: &mut impl Write, shot: &Shot<'_>) -> io::Result<()> {
        let (meta, view) = (&shot.snapshot.meta, shot.view);
        write!(
            file,
            "<!-- Barchan, scene {}, frame {}, time {} s -->\n<scene version=\"3.0.0\">\n\
             <integrator type=\"path\"><integer name=\"max_depth\" value=\"6\"/></integrator>\n\
             <sensor type=\"perspective\">\n<float name=\"fov\" value=\"{FIELD_OF_VIEW}\"/><string name=\"fov_axis\" value=\"smaller\"/>\n\
             <transform name=\"to_world\"><lookat origin=\"{}\" target=\"{}\" up=\"{}\"/></transform>\n\
             <film type=\"hdrfilm\"><integer name=\"width\" value=\"{}\"/><integer name=\"height\" value=\"{}\"/></film>\n\
             <sampler type=\"independent\"><integer name=\"sample_count\" value=\"{SAMPLES}\"/></sampler>\n</sensor>\n\
             <emitter type=\"constant\"><rgb name=\"radiance\" value=\"{}\"/></emitter>\n\
             <emitter type=\"directional\"><vector name=\"direction\" value=\"{}\"/><rgb name=\"irradiance\" value=\"{}\"/></emitter>\n",
            comment(&one_line(&meta.scene)),
            meta.frame,
            meta.time,
            listed(view.eye.to_array()),
            listed(view.target.to_array()),
            listed(view.up.to_array()),
            SIZE[0],
            SIZE[1],
            listed(SKY),
            listed(view.sunlight.to_array()),
            listed(SUN),
        )
    }

    fn material(file: &mut impl Write, name: &str, color: [f32; 3]) -> io::Result<()> {
        let color = listed(color);
        writeln!(
            file,
            "<bsdf type=\"twosided\" id=\"{name}\"><bsdf type=\"diffuse\"><rgb name=\"reflectance\" value=\"{color}\"/></bsdf></bsdf>"
        )
    }

    /// A square of edge 2 with its normal along z, brought to its place.
    fn ground(file: &mut impl Write, view: &View, material: &str) -> io::Result<()> {
        let [a, b, c, d] = view.ground;
        let (side, front, middle) = ((b - a) / 2.0, (d - a) / 2.0, (a + c) / 2.0);
        let rows: [[f32; 4]; 4] = std::array::from_fn(|i| match i {
            3 => [0.0, 0.0, 0.0, 1.0],
            _ => [side[i], front[i], view.up[i], middle[i]],
        });
        let matrix = numbers(rows.into_iter().flatten(), " ");
        writeln!(
            file,
            "<shape type=\"rectangle\"><transform name=\"to_world\"><matrix value=\"{matrix}\"/></transform><ref id=\"{material}\"/></shape>"
        )
    }

    fn sphere(file: &mut impl Write, place: Vec3, radius: f32, material: &str) -> io::Result<()> {
        let Vec3 { x, y, z } = place;
        writeln!(
            file,
            "<shape type=\"sphere\"><point name=\"center\" x=\"{x:?}\" y=\"{y:?}\" z=\"{z:?}\"/>\
             <float name=\"radius\" value=\"{radius:?}\"/><ref id=\"{material}\"/></shape>"
        )
    }

    fn mesh(file: &mut impl Write, name: &str, material: &str) -> io::Result<()> {
        writeln!(
            file,
            "<shape type=\"ply\"><string name=\"filename\" value=\"{name}\"/><ref id=\"{material}\"/></shape>"
        )
    }

    fn end(file: &mut impl Write) -> io::Result<()> {
        file.write_all(b"</scene>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::scene::tests::text;
    use super::*;

    #[test]
    fn each_particle_is_a_sphere_of_a_material_that_is_there() {
        let text = text::<Mitsuba>(&samples::particles(3, 2));
        assert!(
            text.starts_with("<!-- Barchan, scene odd &quot;name&quot; &lt;&amp;&gt; §, frame 2")
        );
        assert_eq!(text.matches("<shape type=\"sphere\">").count(), 3);
        assert!(text.contains("<point name=\"center\" x=\"2.0\" y=\"-2.0\" z=\"2.0\"/>"));
        for index in 0..3 {
            assert!(text.contains(&format!("id=\"material{index}\"><bsdf")));
        }
        assert_eq!(
            text.matches("<shape").count(),
            text.matches("</shape>").count()
        );
        assert!(text.ends_with("</scene>\n"));
    }

    #[test]
    fn meshes_stand_beside() {
        assert!(text::<Mitsuba>(&samples::tetrahedron(0)).contains("value=\"stem.ply\""));
        assert!(!text::<Mitsuba>(&samples::particles(0, 0)).contains("sphere"));
    }
}
