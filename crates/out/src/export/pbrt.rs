//! pbrt-v4 scenes: a language of directives with parameters whose types are spelled out.

use super::scene::{Language, Shot, numbers};
use super::view::{FIELD_OF_VIEW, SAMPLES, SIZE, SKY, SUN, View};
use crate::geometry::one_line;
use glam::Vec3;
use std::io::{self, Write};

pub(super) struct Pbrt;

fn spaced(values: impl IntoIterator<Item = f32>) -> String {
    numbers(values, " ")
}

impl Language for Pbrt {
    fn begin(file: &mut impl Write, shot: &Shot<'_>) -> io::Result<()> {
        let (meta, view, stem) = (&shot.snapshot.meta, shot.view, shot.stem);
        write!(
            file,
            "# Barchan, scene {}, frame {}, time {} s\n\
             Film \"rgb\" \"integer xresolution\" {} \"integer yresolution\" {} \"string filename\" \"{stem}.png\"\n\
             # pbrt's cameras see mirrored images of a right-handed world.\n\
             Scale -1 1 1\nLookAt {}  {}  {}\nCamera \"perspective\" \"float fov\" {FIELD_OF_VIEW}\n\
             Sampler \"zsobol\" \"integer pixelsamples\" {SAMPLES}\nIntegrator \"path\" \"integer maxdepth\" 6\n\
             WorldBegin\nLightSource \"infinite\" \"rgb L\" [{}]\n\
             LightSource \"distant\" \"point3 from\" [{}] \"point3 to\" [0 0 0] \"rgb L\" [{}]\n",
            one_line(&meta.scene),
            meta.frame,
            meta.time,
            SIZE[0],
            SIZE[1],
            spaced(view.eye.to_array()),
            spaced(view.target.to_array()),
            spaced(view.up.to_array()),
            spaced(SKY),
            spaced((-view.sunlight).to_array()),
            spaced(SUN),
        )
    }

    fn material(file: &mut impl Write, name: &str, color: [f32; 3]) -> io::Result<()> {
        let color = spaced(color);
        writeln!(
            file,
            "MakeNamedMaterial \"{name}\" \"string type\" \"diffuse\" \"rgb reflectance\" [{color}]"
        )
    }

    fn ground(file: &mut impl Write, view: &View, material: &str) -> io::Result<()> {
        let corners = spaced(view.ground.iter().flat_map(|corner| corner.to_array()));
        writeln!(
            file,
            "NamedMaterial \"{material}\"\n\
             Shape \"trianglemesh\" \"point3 P\" [{corners}] \"integer indices\" [0 1 2 0 2 3]"
        )
    }

    fn sphere(file: &mut impl Write, place: Vec3, radius: f32, material: &str) -> io::Result<()> {
        let place = spaced(place.to_array());
        writeln!(
            file,
            "AttributeBegin NamedMaterial \"{material}\" Translate {place} Shape \"sphere\" \"float radius\" {radius:?} AttributeEnd"
        )
    }

    fn mesh(file: &mut impl Write, name: &str, material: &str) -> io::Result<()> {
        writeln!(
            file,
            "NamedMaterial \"{material}\"\nShape \"plymesh\" \"string filename\" \"{name}\""
        )
    }

    fn end(_: &mut impl Write) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::super::scene::tests::text;
    use super::*;

    #[test]
    fn each_particle_is_a_sphere_of_its_material() {
        let text = text::<Pbrt>(&samples::particles(3, 2));
        let (head, world) = text.split_once("WorldBegin").expect("a world");
        assert!(head.contains("LookAt") && head.contains("\"stem.png\""));
        assert_eq!(world.matches("Shape \"sphere\"").count(), 3);
        assert!(world.contains("Translate 2.0 -2.0 2.0 Shape \"sphere\" \"float radius\" 2.125"));
        assert_eq!(world.matches("MakeNamedMaterial").count(), 1 + 3);
        assert!(world.contains("NamedMaterial \"material2\" Translate"));
        let begins = world.matches("AttributeBegin").count();
        assert_eq!(begins, world.matches("AttributeEnd").count());
    }

    #[test]
    fn meshes_stand_beside() {
        assert!(text::<Pbrt>(&samples::tetrahedron(0)).contains("\"stem.ply\""));
        assert!(!text::<Pbrt>(&samples::particles(0, 0)).contains("sphere"));
    }
}
