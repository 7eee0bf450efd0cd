//! Scenes that renderers draw as they are, a file a frame: camera, sun, sky, ground, and a sphere a particle or the mesh from a PLY
//! file beside. What is in a scene stands here; a [`Language`] spells it.

use super::snapshot::{Content, Snapshot};
use super::view::{self, GROUND, View};
use glam::Vec3;
use std::io::{self, Write};

/// A frame to be drawn.
pub(super) struct Shot<'a> {
    pub snapshot: &'a Snapshot,
    pub view: &'a View,
    /// The file's name without extension, and that of the mesh beside it.
    pub stem: &'a str,
}

/// How a renderer wants to be told. Names of materials are plain words.
pub(super) trait Language {
    /// All up to the first object: camera, film, lights.
    fn begin(file: &mut impl Write, shot: &Shot<'_>) -> io::Result<()>;
    /// A dull surface that later lines name.
    fn material(file: &mut impl Write, name: &str, color: [f32; 3]) -> io::Result<()>;
    fn ground(file: &mut impl Write, view: &View, material: &str) -> io::Result<()>;
    fn sphere(file: &mut impl Write, place: Vec3, radius: f32, material: &str) -> io::Result<()>;
    /// The mesh in the file `name` beside.
    fn mesh(file: &mut impl Write, name: &str, material: &str) -> io::Result<()>;
    fn end(file: &mut impl Write) -> io::Result<()>;
}

/// Writes the scene of `shot`.
pub(super) fn write<L: Language>(file: &mut impl Write, shot: &Shot<'_>) -> io::Result<()> {
    L::begin(file, shot)?;
    L::material(file, "ground", GROUND)?;
    L::ground(file, shot.view, "ground")?;
    let used = match &shot.snapshot.content {
        Content::Particles(particles) => &particles.material,
        Content::Mesh(mesh) => &mesh.materials,
    };
    let count = 1 + used.iter().max().map_or(0, |&index| usize::from(index));
    let names: Vec<String> = (0..count).map(|index| format!("material{index}")).collect();
    for (index, name) in names.iter().enumerate() {
        L::material(file, name, view::color(index))?;
    }
    match &shot.snapshot.content {
        Content::Particles(particles) => {
            for i in 0..particles.len() {
                let name = &names[usize::from(particles.material[i])];
                L::sphere(file, particles.position[i], particles.radius[i], name)?;
            }
        }
        Content::Mesh(mesh) if !mesh.triangles.is_empty() => {
            let index = mesh.materials.first().copied().unwrap_or(0);
            let beside = format!("{}.ply", shot.stem);
            L::mesh(file, &beside, &names[usize::from(index)])?;
        }
        Content::Mesh(_) => {}
    }
    L::end(file)
}

/// Numbers as text that reads back the same, with `between` between.
pub(super) fn numbers(values: impl IntoIterator<Item = f32>, between: &str) -> String {
    let values: Vec<String> = values.into_iter().map(|v| format!("{v:?}")).collect();
    values.join(between)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The scene of `snapshot`, in a file called `stem`.
    pub fn text<L: Language>(snapshot: &Snapshot) -> String {
        let shot = Shot {
            snapshot,
            view: &View::of(std::iter::once(snapshot.clone())),
            stem: "stem",
        };
        let mut bytes = Vec::new();
        write::<L>(&mut bytes, &shot).expect("memory takes all");
        String::from_utf8(bytes).expect("text")
    }
}
