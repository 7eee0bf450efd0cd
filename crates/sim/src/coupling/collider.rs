//! Shapes as rapier collides them: primitives exactly, unions part by part. Everything else is its triangles where it
//! does not move by force, and convex pieces where it does: two heaps of triangles cannot tell in from out.

use barchan_base::convert::Convert;
use barchan_base::mesh::Mesh;
use barchan_base::shape::Shape;
use glam::{IVec3, Quat, Vec3};
use rapier3d::geometry::{SharedShape, TriMeshFlags};
use rapier3d::math::{Pose, Vector};
use rapier3d::parry::transformation::vhacd::VHACDParameters;
use std::collections::BTreeMap;

/// Triangles of a collider that stands or follows a track; checkpoints hold them.
const MOST_TRIANGLES: usize = 20_000;
/// Triangles of what is cut into convex pieces.
const MOST_TRIANGLES_CUT: usize = 5_000;
/// Cells along the longest edge of a shape that has no triangles of its own.
const NET_CELLS: u32 = 32;
/// A solid that fills this much of its convex hull is taken for convex.
const NEARLY_CONVEX: f64 = 0.97;
/// The most convex pieces.
const MOST_PIECES: u32 = 64;

/// How a body moves, as far as its collider is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moves {
    /// By force.
    Dynamic,
    /// Not, or on its track.
    Otherwise,
}

/// Whether a shape can meet other bodies: all can but those that have no end and are more than a plane.
pub fn can_collide(shape: &Shape) -> bool {
    match shape {
        Shape::HalfSpace { .. } => true,
        Shape::Union(parts) => parts.iter().all(can_collide),
        Shape::Placed(shape, ..) => can_collide(shape),
        _ => shape.bounds().is_finite(),
    }
}

/// The colliders of `shape`, each with its place.
pub(super) fn colliders(shape: &Shape, moves: Moves) -> Vec<(Pose, SharedShape)> {
    let mut found = Vec::new();
    collect(shape, Pose::IDENTITY, 1.0, moves, &mut found);
    found
}

fn collect(
    shape: &Shape,
    pose: Pose,
    scale: f32,
    moves: Moves,
    found: &mut Vec<(Pose, SharedShape)>,
) {
    let collider = match shape {
        Shape::Placed(inner, place, factor) => {
            let place =
                Pose::from_parts((place.position * scale).convert(), place.rotation.convert());
            return collect(inner, pose * place, scale * factor, moves, found);
        }
        Shape::Union(parts) => {
            for part in parts {
                collect(part, pose, scale, moves, found);
            }
            return;
        }
        Shape::HalfSpace { normal } => Some(SharedShape::halfspace(normal.convert())),
        Shape::Sphere { radius } => Some(SharedShape::ball(radius * scale)),
        Shape::Cuboid { half } => {
            let half = *half * scale;
            Some(SharedShape::cuboid(half.x, half.y, half.z))
        }
        Shape::Cylinder {
            radius,
            half_height,
        } => Some(SharedShape::cylinder(half_height * scale, radius * scale)),
        Shape::Capsule {
            radius,
            half_height,
        } => Some(SharedShape::capsule_y(half_height * scale, radius * scale)),
        Shape::Cone {
            radius,
            half_height,
        } => Some(SharedShape::cone(half_height * scale, radius * scale)),
        Shape::Mesh(_)
        | Shape::Torus { .. }
        | Shape::Intersection(_)
        | Shape::Difference(..)
        | Shape::SmoothUnion(..) => meshed(shape, scale, moves),
    };
    found.extend(collider.map(|collider| (pose, collider)));
}

/// The collider of a shape that is none of rapier's; `None` where it is empty or has no end.
fn meshed(shape: &Shape, scale: f32, moves: Moves) -> Option<SharedShape> {
    let open = matches!(shape, Shape::Mesh(mesh) if !mesh.is_closed());
    let net = || -> Option<Mesh> {
        // What has holes is closed by its own signed distance before it is cut.
        let distance = Shape::Intersection(vec![shape.clone()]);
        distance.surface_mesh(NET_CELLS)
    };
    let mesh = match moves {
        Moves::Dynamic if open => net().or_else(|| shape.surface_mesh(NET_CELLS)),
        _ => shape.surface_mesh(NET_CELLS),
    }?;
    let mesh = mesh.mapped(|vertex| vertex * scale).ok()?;
    if moves == Moves::Dynamic {
        let volume = shape.moments()?.volume * f64::from(scale).powi(3);
        return convex_pieces(&simplified(mesh, MOST_TRIANGLES_CUT), volume);
    }
    let mesh = simplified(mesh, MOST_TRIANGLES);
    let (vertices, triangles) = (theirs(&mesh), mesh.triangles().to_vec());
    let flags = TriMeshFlags::MERGE_DUPLICATE_VERTICES | TriMeshFlags::DELETE_DEGENERATE_TRIANGLES;
    SharedShape::trimesh_with_flags(vertices, triangles, flags).ok()
}

/// The vertices of a mesh as rapier's.
fn theirs(mesh: &Mesh) -> Vec<Vector> {
    mesh.vertices()
        .iter()
        .map(|vertex| vertex.convert())
        .collect()
}

/// A solid as convex pieces: one where it is convex itself.
fn convex_pieces(mesh: &Mesh, volume: f64) -> Option<SharedShape> {
    let vertices = theirs(mesh);
    let hull = SharedShape::convex_hull(&vertices);
    let is_convex =
        |hull: &SharedShape| volume > NEARLY_CONVEX * f64::from(hull.mass_properties(1.0).mass());
    if let Some(hull) = hull.clone().filter(is_convex) {
        return Some(hull);
    }
    let parameters = VHACDParameters {
        max_convex_hulls: MOST_PIECES,
        ..Default::default()
    };
    let pieces =
        SharedShape::convex_decomposition_with_params(&vertices, mesh.triangles(), &parameters);
    let some = pieces
        .as_compound()
        .is_some_and(|parts| !parts.shapes().is_empty());
    if some { Some(pieces) } else { hull }
}

/// At most `most` triangles: vertices of one cell of a grid become one, on coarser grids until it is enough.
fn simplified(mesh: Mesh, most: usize) -> Mesh {
    let bounds = mesh.bounds();
    let mut cells = 128.0;
    let mut simple = mesh.clone();
    while simple.triangles().len() > most && cells > 4.0 {
        let edge = bounds.size().max_element() / cells;
        // The vertex nearest to the middle of its cell stands for all in it.
        let mut chosen: BTreeMap<[i32; 3], (f32, Vec3)> = BTreeMap::new();
        let cell = |vertex: Vec3| -> IVec3 { ((vertex - bounds.min) / edge).floor().as_ivec3() };
        for &vertex in mesh.vertices() {
            let at = cell(vertex);
            let middle = bounds.min + (at.as_vec3() + 0.5) * edge;
            let off = vertex.distance(middle);
            let entry = chosen.entry(at.to_array()).or_insert((off, vertex));
            if off < entry.0 {
                *entry = (off, vertex);
            }
        }
        match mesh.mapped(|vertex| chosen[&cell(vertex).to_array()].1) {
            Ok(fewer) => simple = fewer,
            Err(_) => break,
        }
        cells *= 0.7;
    }
    simple
}

/// Our pose as rapier's.
pub(super) fn to_rapier(pose: barchan_base::Pose) -> Pose {
    Pose::from_parts(pose.position.convert(), pose.rotation.convert())
}

/// The turn that takes x to `axis`.
pub(super) fn x_to(axis: Vec3) -> Quat {
    Quat::from_rotation_arc(Vec3::X, axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::mesh::unit_cube;
    use barchan_base::shape::MeshShape;
    use std::sync::Arc;

    fn pieces(shape: &Shape) -> usize {
        let found = colliders(shape, Moves::Dynamic);
        assert_eq!(found.len(), 1);
        found[0]
            .1
            .as_compound()
            .map_or(1, |parts| parts.shapes().len())
    }

    #[test]
    fn a_convex_mesh_is_one_piece_and_a_ring_several() {
        let cube = Shape::Mesh(Arc::new(MeshShape::new(unit_cube(), 0.1).unwrap()));
        assert_eq!(pieces(&cube), 1);
        let ring = Shape::Torus {
            major: 0.5,
            minor: 0.15,
        };
        let count = pieces(&ring);
        assert!((4..=MOST_PIECES as usize).contains(&count), "{count}");
        // Through its hole a ball passes.
        let (pose, collider) = &colliders(&ring, Moves::Dynamic)[0];
        assert!(!collider.contains_point(pose, Vector::ZERO));
        assert!(collider.contains_point(pose, Vector::new(0.5, 0.0, 0.0)));
    }

    #[test]
    fn large_meshes_are_simplified_and_keep_their_size() {
        let ball = Shape::Sphere { radius: 0.5 }.surface_mesh(100).unwrap();
        assert!(ball.triangles().len() > MOST_TRIANGLES);
        let simple = simplified(ball.clone(), MOST_TRIANGLES_CUT);
        assert!(simple.triangles().len() <= MOST_TRIANGLES_CUT);
        assert!((simple.bounds().size() - ball.bounds().size()).length() < 0.02);
    }

    #[test]
    fn placed_unions_become_their_parts_where_they_are() {
        let ball = || Shape::Sphere { radius: 0.1 };
        let place = |x: f32, turn: f32| {
            barchan_base::Pose::new(Vec3::new(x, 0.0, 0.0), Quat::from_rotation_z(turn))
        };
        let shape = Shape::Union(vec![ball(), ball().placed(place(1.0, 0.3), 2.0)])
            .placed(place(5.0, std::f32::consts::FRAC_PI_2), 3.0);
        let found = colliders(&shape, Moves::Dynamic);
        assert_eq!(found.len(), 2);
        assert!((found[1].0.translation - Vector::new(5.0, 3.0, 0.0)).length() < 1e-5);
        assert!((found[1].1.as_ball().unwrap().radius - 0.6).abs() < 1e-6);
    }
}
