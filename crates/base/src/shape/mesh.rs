//! A mesh as a shape: a sampled distance for speed, the triangles themselves where that is not enough.

use super::mesh_band::{ExactMesh, MeshBand};
use super::{DistanceGrid, DistanceGridError, Surface};
use crate::Bounds;
use crate::convert::Convert;
use crate::mesh::Mesh;
use glam::Vec3;
use parry3d::query::{Ray, RayCast};

/// A mesh with everything needed to ask it for distances.
#[derive(Clone)]
pub struct MeshShape {
    mesh: Mesh,
    exact: ExactMesh,
    grid: DistanceGrid,
}

/// Cells of the band on either side of the surface.
const BAND: f32 = 3.0;

impl std::fmt::Debug for MeshShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "MeshShape({} triangles, cell {} m)",
            self.mesh.triangles().len(),
            self.grid.cell()
        )
    }
}

impl MeshShape {
    /// Prepares `mesh`, with distances sampled on cells of `cell` [m].
    ///
    /// # Errors
    /// If the cell size is not positive or far too small for the mesh.
    pub fn new(mesh: Mesh, cell: f32) -> Result<Self, DistanceGridError> {
        let exact = ExactMesh::new(&mesh);
        let grid = DistanceGrid::sample(mesh.bounds(), cell, BAND, MeshBand::new(&mesh, &exact))?;
        Ok(Self { mesh, exact, grid })
    }

    /// A cell size that shows the mesh well: near the `resolution` [m] asked for, but neither so fine that it costs
    /// gigabytes nor so coarse that the shape is lost.
    pub fn sensible_cell(bounds: Bounds, resolution: f32) -> f32 {
        let size = bounds.size().max_element();
        resolution.clamp(size / 256.0, size / 64.0)
    }

    /// The mesh itself.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Box around the mesh.
    pub fn bounds(&self) -> Bounds {
        self.mesh.bounds()
    }

    /// Signed distance [m].
    pub fn distance(&self, point: Vec3) -> f32 {
        self.grid
            .smooth_distance(point)
            .unwrap_or_else(|| self.exact.distance(point))
    }

    /// True where the surface is surely further than `reach` [m] from `point`.
    #[inline]
    pub fn is_beyond(&self, point: Vec3, reach: f32) -> bool {
        // Where the grid is rough it is near the surface, and may say a little too much.
        self.grid.is_beyond(point, reach + self.grid.cell())
    }

    /// Signed distance and normal.
    pub fn surface(&self, point: Vec3) -> Surface {
        if let Some(surface) = self.grid.smooth_surface(point) {
            return surface;
        }
        let (distance, nearest, triangle) = self.exact.nearest(point);
        let sign = if self.exact.winding.contains(point) {
            -1.0
        } else {
            1.0
        };
        let away = (point - nearest) * sign;
        // On the surface itself the triangle's own normal decides.
        let normal = if distance > 1e-4 * self.grid.cell() {
            away / distance
        } else {
            self.mesh
                .area_vector(triangle as usize)
                .normalize_or(Vec3::Y)
        };
        Surface {
            distance: distance * sign,
            normal,
        }
    }

    /// True inside, by the winding number of the triangles near the surface and by the grid elsewhere.
    pub fn contains(&self, point: Vec3) -> bool {
        let distance = self.grid.distance(point);
        if distance.abs() > 2.0 * self.grid.cell() {
            return distance < 0.0;
        }
        self.exact.winding.contains(point)
    }

    /// First triangle met within `length` [m] along a unit `direction`: how far, and its normal.
    pub(super) fn cast_ray(&self, from: Vec3, direction: Vec3, length: f32) -> Option<(f32, Vec3)> {
        let ray = Ray::new(from.convert(), direction.convert());
        let hit = self
            .exact
            .triangles
            .cast_local_ray_and_get_normal(&ray, length, false)?;
        Some((hit.time_of_impact, hit.normal.convert()))
    }

    /// Index of the triangle nearest to `point` and the weights of its corners at the nearest place.
    pub fn nearest_triangle(&self, point: Vec3) -> (usize, [f32; 3]) {
        let (_, place, triangle) = self.exact.nearest(point);
        let [a, b, c] = self.mesh.corners(triangle as usize);
        let normal = (b - a).cross(c - a);
        let share =
            |u: Vec3, v: Vec3| normal.dot((u - place).cross(v - place)) / normal.length_squared();
        let (wa, wb) = (share(b, c), share(c, a));
        (triangle as usize, [wa, wb, 1.0 - wa - wb])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::unit_cube;
    use crate::random::Random;
    use crate::shape::Shape;
    use std::sync::Arc;

    #[test]
    fn a_cube_mesh_answers_like_a_cube() {
        let mesh = MeshShape::new(unit_cube(), 0.05).unwrap();
        let cube = Shape::Cuboid {
            half: Vec3::splat(0.5),
        };
        let random = Random::new(8, 0);
        for i in 0..3000 {
            let point = random.in_cube(i, 0) * 1.2 - 0.6;
            let (found, exact) = (mesh.surface(point), cube.surface(point));
            // Where the surface passes, cells that interpolate badly ask the triangles; further out in the band a corner
            // is rounded by up to a quarter of a cell; beyond the band the grid only never says too much.
            if exact.distance.abs() < 0.12 {
                let tolerance = if exact.distance.abs() < 0.03 {
                    0.003
                } else {
                    0.0125
                };
                assert!(
                    (found.distance - exact.distance).abs() < tolerance,
                    "{point}: {found:?} for {exact:?}"
                );
            } else {
                assert!(
                    found.distance.abs() < exact.distance.abs() + 0.01,
                    "{point}: {found:?} for {exact:?}"
                );
            }
            assert_eq!(mesh.contains(point), exact.distance < 0.0, "{point}");
        }
    }

    #[test]
    fn what_is_beyond_reach_is_really_beyond_it() {
        let mesh = MeshShape::new(unit_cube(), 0.02).unwrap();
        let cube = Shape::Cuboid {
            half: Vec3::splat(0.5),
        };
        let random = Random::new(12, 0);
        let mut far = 0;
        for i in 0..20_000 {
            let (point, reach) = (random.in_cube(i, 0) * 4.0 - 2.0, 0.5 * random.uniform(i, 3));
            if mesh.is_beyond(point, reach) {
                assert!(cube.distance(point) > reach, "{point} within {reach}");
                far += 1;
            }
        }
        assert!(far > 10_000);
    }

    #[test]
    fn a_sheet_without_thickness_stops_a_ball_from_both_sides() {
        let sheet = Mesh::new(
            vec![
                Vec3::new(-1.0, 0.0, -1.0),
                Vec3::new(1.0, 0.0, -1.0),
                Vec3::new(0.0, 0.0, 1.5),
            ],
            vec![[0, 1, 2]],
        )
        .unwrap();
        let shape = Shape::Mesh(Arc::new(MeshShape::new(sheet, 0.05).unwrap()));
        for side in [1.0, -1.0] {
            for radius in [0.001, 0.01] {
                let from = Vec3::new(0.1, 0.25 * side, 0.03);
                let touch = shape
                    .sweep(from, from - Vec3::Y * 0.5 * side, radius)
                    .expect("the sheet is in the way");
                let height = 0.25 - 0.5 * touch.fraction;
                assert!(
                    height > 0.5 * radius && height < 1.6 * radius,
                    "{height} for radius {radius}"
                );
                assert!(touch.normal.y * side > 0.9);
            }
        }
    }

    #[test]
    fn nearest_triangles_come_with_their_weights() {
        let mesh = MeshShape::new(unit_cube(), 0.1).unwrap();
        let (triangle, weights) = mesh.nearest_triangle(Vec3::new(0.2, 0.7, 0.1));
        let place: Vec3 = mesh
            .mesh()
            .corners(triangle)
            .iter()
            .zip(weights)
            .map(|(corner, w)| *corner * w)
            .sum();
        assert!((place - Vec3::new(0.2, 0.5, 0.1)).length() < 1e-5);
    }
}
