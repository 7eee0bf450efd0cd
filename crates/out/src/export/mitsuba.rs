//! Mitsuba 3 scenes, a file a frame: camera, sun, sky, ground, and a sphere a particle or the mesh from a PLY file beside.

use super::snapshot::{Content, Snapshot, one_line};
use super::view::{self, FIELD_OF_VIEW, GROUND, SAMPLES, SIZE, SKY, SUN, View};
use super::vtk::escaped;
use glam::Vec3;
use std::io::{self, Write};

fn listed(values: [f32; 3]) -> String {
    values.map(|v| format!("{v:?}")).join(", ")
}

fn vector(v: Vec3) -> String {
    listed(v.to_array())
}

/// Writes the scene; `stem` is its file's name without extension, and that of the mesh beside it.
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    view: &View,
    stem: &str,
) -> io::Result<()> {
    let meta = &snapshot.meta;
    // Two hyphens would end the comment.
    let scene = escaped(&one_line(&meta.scene)).replace("--", "- -");
    write!(
        file,
        "<!-- Barchan, scene {scene}, frame {}, time {} s -->\n<scene version=\"3.0.0\">\n\
         <integrator type=\"path\"><integer name=\"max_depth\" value=\"6\"/></integrator>\n\
         <sensor type=\"perspective\">\n<float name=\"fov\" value=\"{FIELD_OF_VIEW}\"/><string name=\"fov_axis\" value=\"smaller\"/>\n\
         <transform name=\"to_world\"><lookat origin=\"{}\" target=\"{}\" up=\"{}\"/></transform>\n\
         <film type=\"hdrfilm\"><integer name=\"width\" value=\"{}\"/><integer name=\"height\" value=\"{}\"/></film>\n\
         <sampler type=\"independent\"><integer name=\"sample_count\" value=\"{SAMPLES}\"/></sampler>\n</sensor>\n\
         <emitter type=\"constant\"><rgb name=\"radiance\" value=\"{}\"/></emitter>\n\
         <emitter type=\"directional\"><vector name=\"direction\" value=\"{}\"/><rgb name=\"irradiance\" value=\"{}\"/></emitter>\n",
        meta.frame,
        meta.time,
        vector(view.eye),
        vector(view.target),
        vector(view.up),
        SIZE[0],
        SIZE[1],
        listed(SKY),
        vector(view.sunlight),
        listed(SUN),
    )?;
    diffuse(file, "ground", GROUND)?;
    ground(file, view)?;
    match &snapshot.content {
        Content::Particles(particles) => {
            let last = particles
                .material
                .iter()
                .max()
                .map_or(0, |&index| usize::from(index) + 1);
            for index in 0..last {
                diffuse(file, &format!("material{index}"), view::color(index))?;
            }
            for i in 0..particles.len() {
                let Vec3 { x, y, z } = particles.position[i];
                let (radius, index) = (particles.radius[i], particles.material[i]);
                writeln!(
                    file,
                    "<shape type=\"sphere\"><point name=\"center\" x=\"{x:?}\" y=\"{y:?}\" z=\"{z:?}\"/>\
                     <float name=\"radius\" value=\"{radius:?}\"/><ref id=\"material{index}\"/></shape>"
                )?;
            }
        }
        Content::Mesh(mesh) => {
            let index = usize::from(mesh.materials.first().copied().unwrap_or(0));
            diffuse(file, "surface", view::color(index))?;
            if !mesh.triangles.is_empty() {
                writeln!(
                    file,
                    "<shape type=\"ply\"><string name=\"filename\" value=\"{stem}.ply\"/><ref id=\"surface\"/></shape>"
                )?;
            }
        }
    }
    file.write_all(b"</scene>\n")
}

fn diffuse(file: &mut impl Write, id: &str, color: [f32; 3]) -> io::Result<()> {
    let color = listed(color);
    writeln!(
        file,
        "<bsdf type=\"twosided\" id=\"{id}\"><bsdf type=\"diffuse\"><rgb name=\"reflectance\" value=\"{color}\"/></bsdf></bsdf>"
    )
}

/// A square of edge 2 with its normal along z, brought to its place.
fn ground(file: &mut impl Write, view: &View) -> io::Result<()> {
    let [a, b, c, d] = view.ground;
    let (side, front, middle) = ((b - a) / 2.0, (d - a) / 2.0, (a + c) / 2.0);
    let rows: [[f32; 4]; 4] = std::array::from_fn(|i| match i {
        3 => [0.0, 0.0, 0.0, 1.0],
        _ => [side[i], front[i], view.up[i], middle[i]],
    });
    let numbers: Vec<String> = rows.iter().flatten().map(|v| format!("{v:?}")).collect();
    writeln!(
        file,
        "<shape type=\"rectangle\"><transform name=\"to_world\"><matrix value=\"{}\"/></transform><ref id=\"ground\"/></shape>",
        numbers.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn text(snapshot: &Snapshot) -> String {
        let view = View::of(std::iter::once(snapshot.clone()));
        let mut bytes = Vec::new();
        write(&mut bytes, snapshot, &view, "stem").expect("memory takes all");
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn each_particle_is_a_sphere_of_a_material_that_is_there() {
        let text = text(&samples::particles(3, 2));
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
        assert!(text(&samples::tetrahedron(0)).contains("value=\"stem.ply\""));
        assert!(!text(&samples::particles(0, 0)).contains("sphere"));
    }
}
