//! Pieces smaller than a particle are no material: they are swept away.

use super::mesh::SurfaceMesh;
use super::polygons::Rough;
use super::topology::pieces;
use glam::Vec3;

/// A closed piece's size.
#[derive(Clone, Copy)]
struct Piece {
    low: Vec3,
    high: Vec3,
    radius: f32,
}

/// Takes away pieces that are nowhere as long as a particle's radius, specks outside and holes inside; returns how many.
pub fn sweep(rough: Rough) -> (SurfaceMesh, usize) {
    let Rough { mesh, radii } = rough;
    let (piece_of, count) = pieces(&mesh);
    let none = Piece {
        low: Vec3::INFINITY,
        high: Vec3::NEG_INFINITY,
        radius: 0.0,
    };
    let mut pieces = vec![none; count];
    for (i, piece) in piece_of.iter().enumerate() {
        let piece = &mut pieces[*piece as usize];
        piece.low = piece.low.min(mesh.positions[i]);
        piece.high = piece.high.max(mesh.positions[i]);
        piece.radius = piece.radius.max(radii[i]);
    }
    let keep: Vec<bool> = pieces
        .iter()
        .map(|piece| (piece.high - piece.low).max_element() >= piece.radius)
        .collect();
    let swept = keep.iter().filter(|keep| !**keep).count();
    if swept == 0 {
        return (mesh, 0);
    }
    let kept: Vec<bool> = piece_of.iter().map(|piece| keep[*piece as usize]).collect();
    (only(&mesh, &kept), swept)
}

/// The mesh of the vertices with a flag and the triangles between them.
fn only(mesh: &SurfaceMesh, kept: &[bool]) -> SurfaceMesh {
    fn column<T: Copy>(column: &[T], kept: &[bool]) -> Vec<T> {
        let entries = column.iter().zip(kept).filter(|(_, kept)| **kept);
        entries.map(|(entry, _)| *entry).collect()
    }
    let mut count = 0;
    let numbers: Vec<u32> = kept
        .iter()
        .map(|kept| {
            let number = count;
            count += u32::from(*kept);
            number
        })
        .collect();
    let whole = |triangle: &&[u32; 3]| kept[triangle[0] as usize];
    SurfaceMesh {
        positions: column(&mesh.positions, kept),
        normals: column(&mesh.normals, kept),
        velocities: column(&mesh.velocities, kept),
        colors: column(&mesh.colors, kept),
        materials: column(&mesh.materials, kept),
        triangles: mesh
            .triangles
            .iter()
            .filter(whole)
            .map(|triangle| triangle.map(|corner| numbers[corner as usize]))
            .collect(),
    }
}
