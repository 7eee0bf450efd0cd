//! pbrt-v4 scenes, a file a frame: camera, sun, sky, ground, and a sphere a particle or the mesh from a PLY file beside.

use super::snapshot::{Content, Snapshot, one_line};
use super::view::{self, FIELD_OF_VIEW, GROUND, SAMPLES, SIZE, SKY, SUN, View};
use glam::Vec3;
use std::io::{self, Write};

/// Numbers with blanks between.
fn spaced(values: impl IntoIterator<Item = f32>) -> String {
    let values: Vec<String> = values.into_iter().map(|v| format!("{v:?}")).collect();
    values.join(" ")
}

fn vector(v: Vec3) -> String {
    spaced(v.to_array())
}

/// Writes the scene; `stem` is its file's name without extension, and that of the mesh beside it.
pub(super) fn write(
    file: &mut impl Write,
    snapshot: &Snapshot,
    view: &View,
    stem: &str,
) -> io::Result<()> {
    let meta = &snapshot.meta;
    let ground = spaced(view.ground.iter().flat_map(|corner| corner.to_array()));
    write!(
        file,
        "# Barchan, scene {}, frame {}, time {} s\n\
         Film \"rgb\" \"integer xresolution\" {} \"integer yresolution\" {} \"string filename\" \"{stem}.png\"\n\
         # pbrt's cameras see mirrored images of a right-handed world.\n\
         Scale -1 1 1\nLookAt {}  {}  {}\nCamera \"perspective\" \"float fov\" {FIELD_OF_VIEW}\n\
         Sampler \"zsobol\" \"integer pixelsamples\" {SAMPLES}\nIntegrator \"path\" \"integer maxdepth\" 6\n\
         WorldBegin\nLightSource \"infinite\" \"rgb L\" [{}]\n\
         LightSource \"distant\" \"point3 from\" [{}] \"point3 to\" [0 0 0] \"rgb L\" [{}]\n\
         Material \"diffuse\" \"rgb reflectance\" [{}]\n\
         Shape \"trianglemesh\" \"point3 P\" [{ground}] \"integer indices\" [0 1 2 0 2 3]\n",
        one_line(&meta.scene),
        meta.frame,
        meta.time,
        SIZE[0],
        SIZE[1],
        vector(view.eye),
        vector(view.target),
        vector(view.up),
        spaced(SKY),
        vector(-view.sunlight),
        spaced(SUN),
        spaced(GROUND),
    )?;
    let material = |index: usize| {
        let color = spaced(view::color(index));
        format!("Material \"diffuse\" \"rgb reflectance\" [{color}]\n")
    };
    match &snapshot.content {
        Content::Particles(particles) => {
            let mut last = None;
            for i in 0..particles.len() {
                if last != Some(particles.material[i]) {
                    last = Some(particles.material[i]);
                    file.write_all(material(usize::from(particles.material[i])).as_bytes())?;
                }
                let place = vector(particles.position[i]);
                let radius = particles.radius[i];
                writeln!(
                    file,
                    "AttributeBegin Translate {place} Shape \"sphere\" \"float radius\" {radius:?} AttributeEnd"
                )?;
            }
            Ok(())
        }
        Content::Mesh(mesh) => {
            let index = mesh.materials.first().copied().unwrap_or(0);
            file.write_all(material(usize::from(index)).as_bytes())?;
            if mesh.triangles.is_empty() {
                return Ok(());
            }
            writeln!(file, "Shape \"plymesh\" \"string filename\" \"{stem}.ply\"")
        }
    }
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
    fn each_particle_is_a_sphere_of_its_material() {
        let text = text(&samples::particles(3, 2));
        let (head, world) = text.split_once("WorldBegin").expect("a world");
        assert!(head.contains("LookAt") && head.contains("\"stem.png\""));
        assert_eq!(world.matches("Shape \"sphere\"").count(), 3);
        assert!(world.contains("Translate 2.0 -2.0 2.0 Shape \"sphere\" \"float radius\" 2.125"));
        assert_eq!(world.matches("Material").count(), 1 + 3);
        let begins = world.matches("AttributeBegin").count();
        assert_eq!(begins, world.matches("AttributeEnd").count());
    }

    #[test]
    fn meshes_stand_beside() {
        assert!(text(&samples::tetrahedron(0)).contains("\"stem.ply\""));
        assert!(!text(&samples::particles(0, 0)).contains("sphere"));
    }
}
