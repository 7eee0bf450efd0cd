//! How a mesh hangs together.

use super::mesh::SurfaceMesh;
use glam::DVec3;

/// How a mesh hangs together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Topology {
    /// Sides of triangles without exactly one partner that runs the other way. None: closed, manifold along its edges,
    /// consistently oriented.
    pub odd_sides: usize,
    /// Vertices whose triangles are not one ring. None: manifold at its vertices.
    pub odd_vertices: usize,
    /// Connected pieces.
    pub pieces: usize,
    /// Volume inside [m³]; negative if it is inside out.
    pub volume: f64,
}

/// Finds out how a mesh hangs together. Triangles must name existing vertices.
pub fn topology(mesh: &SurfaceMesh) -> Topology {
    // For each vertex its triangles, as the corner that follows and the one after that.
    let mut around: Vec<Vec<(u32, u32)>> = vec![Vec::new(); mesh.positions.len()];
    for [a, b, c] in &mesh.triangles {
        around[*a as usize].push((*b, *c));
        around[*b as usize].push((*c, *a));
        around[*c as usize].push((*a, *b));
    }
    let mut odd_sides = 0;
    let mut odd_vertices = 0;
    for (vertex, ring) in around.iter().enumerate() {
        let vertex = vertex as u32;
        for (next, _) in ring {
            let same = ring.iter().filter(|(other, _)| other == next).count();
            let opposite = ring.iter().filter(|(_, last)| last == next).count();
            odd_sides += usize::from(same != 1 || opposite != 1 || *next == vertex);
        }
        odd_vertices += usize::from(!is_one_ring(ring));
    }
    Topology {
        odd_sides,
        odd_vertices,
        pieces: pieces(mesh).1,
        volume: volume(mesh),
    }
}

fn is_one_ring(ring: &[(u32, u32)]) -> bool {
    let Some(&(start, mut at)) = ring.first() else {
        return false;
    };
    let mut steps = 1;
    while at != start && steps <= ring.len() {
        match ring.iter().find(|(from, _)| *from == at) {
            Some((_, to)) => at = *to,
            None => return false,
        }
        steps += 1;
    }
    steps == ring.len()
}

fn volume(mesh: &SurfaceMesh) -> f64 {
    // From a corner of the mesh, not from the origin: less is cancelled.
    let from = mesh.positions.first().map_or(DVec3::ZERO, |p| p.as_dvec3());
    let volumes = mesh.triangles.iter().map(|triangle| {
        let [a, b, c] = triangle.map(|i| mesh.positions[i as usize].as_dvec3() - from);
        a.dot(b.cross(c)) / 6.0
    });
    volumes.sum()
}

/// The piece each vertex belongs to, numbered in the order of their first vertices, and how many there are.
pub(super) fn pieces(mesh: &SurfaceMesh) -> (Vec<u32>, usize) {
    let mut parent: Vec<u32> = (0..mesh.positions.len() as u32).collect();
    fn root(parent: &mut [u32], mut i: u32) -> u32 {
        while parent[i as usize] != i {
            parent[i as usize] = parent[parent[i as usize] as usize];
            i = parent[i as usize];
        }
        i
    }
    for [a, b, c] in &mesh.triangles {
        for (a, b) in [(*a, *b), (*b, *c)] {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            // The lower number leads, whatever the order of the triangles.
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let mut count = 0;
    let mut number = vec![0; parent.len()];
    for i in 0..parent.len() as u32 {
        let root = root(&mut parent, i);
        if root == i {
            number[i as usize] = count;
            count += 1;
        } else {
            number[i as usize] = number[root as usize];
        }
    }
    (number, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3;

    fn tetrahedron() -> SurfaceMesh {
        SurfaceMesh {
            positions: vec![Vec3::ZERO, Vec3::X, Vec3::Y, Vec3::Z],
            triangles: vec![[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
            ..Default::default()
        }
    }

    #[test]
    fn a_tetrahedron_is_whole_and_damage_is_found() {
        let whole = topology(&tetrahedron());
        assert_eq!(
            (whole.odd_sides, whole.odd_vertices, whole.pieces),
            (0, 0, 1)
        );
        assert!((whole.volume - 1.0 / 6.0).abs() < 1e-7);
        let mut open = tetrahedron();
        open.triangles.pop();
        assert!(topology(&open).odd_sides > 0);
        let mut turned = tetrahedron();
        turned.triangles[0].swap(0, 1);
        assert!(topology(&turned).odd_sides > 0);
        let mut pinched = tetrahedron();
        // A second tetrahedron that touches the first at a vertex.
        pinched.positions.extend([-Vec3::X, -Vec3::Y, -Vec3::Z]);
        let second = [[0, 4, 5], [0, 6, 4], [0, 5, 6], [4, 6, 5]];
        pinched.triangles.extend(second);
        let pinched = topology(&pinched);
        assert_eq!(
            (pinched.odd_sides, pinched.odd_vertices, pinched.pieces),
            (0, 1, 1)
        );
    }
}
