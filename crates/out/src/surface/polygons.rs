//! Triangles on the zero of a function, block by block.
//!
//! A vertex sits on each edge between nodes of different sign and belongs to the block of the edge's lower node, so blocks share
//! vertices by arithmetic: a bit for each edge, and a count of the bits before it.

use super::band::{Band, NONE, WIDE};
use super::block::{EDGE, unpack};
use super::build::{Points, SurfaceError};
use super::cloud::{Cloud, Near, Reached};
use super::corners::{FIRST, TRIANGLES};
use super::field::Field;
use super::mesh::SurfaceMesh;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Vertices keep this far from nodes, in cells, so that no triangle collapses.
const NODE_GAP: f32 = 1e-4;
/// A vertex is good when the function there is this small, in cells.
const GOOD: f32 = 1e-4;
/// Steps toward the zero along an edge; it takes two or three.
const MOST_STEPS: usize = 8;

/// A mesh with what is needed to judge its pieces.
pub struct Rough {
    /// The mesh.
    pub mesh: SurfaceMesh,
    /// Mean radius of the particles at each vertex [m].
    pub radii: Vec<f32>,
}

/// The edges of a block that the surface crosses: for each axis and layer, a bit a node.
struct Crossings {
    bits: [[u64; EDGE]; 3],
    before: [[u32; EDGE]; 3],
    count: u32,
}

/// A vertex with what it carries.
#[derive(Clone, Copy, Default)]
struct Vertex {
    position: Vec3,
    normal: Vec3,
    velocity: Vec3,
    color: Vec3,
    material: u16,
    radius: f32,
}

/// An edge between two nodes of a block or just outside it.
#[derive(Clone, Copy)]
struct Edge {
    axis: usize,
    node: IVec3,
}

type Wide = [f32; WIDE * WIDE * WIDE];

fn wide_at(x: usize, y: usize, z: usize) -> usize {
    x + WIDE * (y + WIDE * z)
}

impl Crossings {
    fn new(wide: &Wide) -> Self {
        let mut bits = [[0u64; EDGE]; 3];
        for z in 0..EDGE {
            for i in 0..EDGE * EDGE {
                let (x, y) = (i % EDGE, i / EDGE);
                let inside = wide[wide_at(x, y, z)] < 0.0;
                let across = [
                    wide_at(x + 1, y, z),
                    wide_at(x, y + 1, z),
                    wide_at(x, y, z + 1),
                ];
                for (bits, other) in bits.iter_mut().zip(across) {
                    bits[z] |= u64::from(inside != (wide[other] < 0.0)) << i;
                }
            }
        }
        let mut count = 0;
        let before = bits.map(|layers| {
            layers.map(|layer| {
                let before = count;
                count += layer.count_ones();
                before
            })
        });
        Self {
            bits,
            before,
            count,
        }
    }

    /// Number of the vertex on an edge of this block.
    fn vertex(&self, axis: usize, x: usize, y: usize, z: usize) -> u32 {
        let below = (1u64 << (x + EDGE * y)) - 1;
        self.before[axis][z] + (self.bits[axis][z] & below).count_ones()
    }

    /// The edges in the order of their vertices.
    fn edges(&self) -> impl Iterator<Item = Edge> {
        (0..3).flat_map(move |axis| {
            (0..EDGE).flat_map(move |z| {
                let bits = self.bits[axis][z];
                (0..64)
                    .filter(move |i| bits >> i & 1 == 1)
                    .map(move |i| Edge {
                        axis,
                        node: IVec3::new(i % 8, i / 8, z as i32),
                    })
            })
        })
    }
}

/// Makes the mesh.
///
/// # Errors
/// If it has too many vertices.
pub fn polygons(
    cloud: &Cloud,
    reached: &Reached,
    band: &Band,
    field: &impl Field,
    points: &Points<'_>,
) -> Result<Rough, SurfaceError> {
    let blocks = 0..band.len();
    let crossings: Vec<Crossings> = blocks
        .clone()
        .into_par_iter()
        .map(|block| Crossings::new(&band.wide(block)))
        .collect();
    let mut starts: Vec<u32> = Vec::with_capacity(band.len());
    let mut total = 0u32;
    for crossings in &crossings {
        starts.push(total);
        total = total
            .checked_add(crossings.count)
            .filter(|total| *total < u32::MAX)
            .ok_or(SurfaceError::TooLarge)?;
    }
    let triangles: Vec<Vec<[u32; 3]>> = blocks
        .into_par_iter()
        .map(|block| triangles(band, &crossings, &starts, block))
        .collect();
    let maker = Maker {
        cloud,
        reached,
        band,
        field,
        points,
    };
    let vertices: Vec<Vec<Vertex>> = crossings
        .par_iter()
        .enumerate()
        .map_init(Default::default, |(near, few), (block, crossings)| {
            maker.vertices(block, crossings, near, few)
        })
        .collect();
    Ok(rough(&vertices, triangles, points))
}

fn triangles(band: &Band, crossings: &[Crossings], starts: &[u32], block: usize) -> Vec<[u32; 3]> {
    let wide = band.wide(block);
    let mut triangles = Vec::new();
    let vertex = |place: [usize; 3], edge: u8| {
        let (corner, axis) = (FIRST[edge as usize], edge as usize / 4);
        let at: [usize; 3] = std::array::from_fn(|i| place[i] + (corner >> i & 1));
        let step = IVec3::from_array(at.map(|v| (v / EDGE) as i32));
        // A cell with a crossing has all its neighbours in the band.
        let owner = match band.neighbor(block, step) {
            NONE => block,
            owner => owner as usize,
        };
        let [x, y, z] = at.map(|v| v % EDGE);
        starts[owner] + crossings[owner].vertex(axis, x, y, z)
    };
    for z in 0..EDGE {
        for y in 0..EDGE {
            for x in 0..EDGE {
                let case = (0..8).fold(0, |case, corner| {
                    let at = wide_at(x + (corner & 1), y + (corner >> 1 & 1), z + (corner >> 2));
                    case | usize::from(wide[at] < 0.0) << corner
                });
                let cut = &TRIANGLES[case];
                triangles.extend(cut.iter().map(|t| t.map(|edge| vertex([x, y, z], edge))));
            }
        }
    }
    triangles
}

/// What vertices are made from.
struct Maker<'a, F> {
    cloud: &'a Cloud,
    reached: &'a Reached,
    band: &'a Band,
    field: &'a F,
    points: &'a Points<'a>,
}

impl<F: Field> Maker<'_, F> {
    fn vertices(
        &self,
        block: usize,
        crossings: &Crossings,
        near: &mut Vec<Near>,
        few: &mut Vec<Near>,
    ) -> Vec<Vertex> {
        if crossings.count == 0 {
            return Vec::new();
        }
        let at = self.band.reached[block] as usize;
        let key = self.reached.keys[at];
        self.cloud
            .near_block(key, self.reached.homes(at), 1.0, near);
        let cell = self.cloud.lattice.cell as f32;
        let origin = self.cloud.lattice.origin(unpack(key));
        let wide = self.band.wide(block);
        let make = |edge: Edge| {
            let middle = (edge.node.as_vec3() + 0.5 * Vec3::AXES[edge.axis]) * cell;
            few.clear();
            few.extend(near.iter().filter(|near| {
                let reach = near.reach + 0.5 * cell;
                near.center.distance_squared(middle) < reach * reach
            }));
            let (place, normal) = self.crossing(block, edge, &wide, few);
            let mut vertex = self.carried(few, place);
            vertex.position = (origin + place.as_dvec3()).as_vec3();
            vertex.normal = normal;
            vertex
        };
        crossings.edges().map(make).collect()
    }

    /// Where the surface crosses an edge, and its normal there. The function is evaluated anew between the nodes; what smoothing
    /// changed on the nodes is interpolated.
    fn crossing(&self, block: usize, edge: Edge, wide: &Wide, near: &[Near]) -> (Vec3, Vec3) {
        let cell = self.cloud.lattice.cell as f32;
        let axis = Vec3::AXES[edge.axis];
        let other = edge.node + IVec3::AXES[edge.axis];
        let value = |node: IVec3| wide[wide_at(node.x as usize, node.y as usize, node.z as usize)];
        let changes = [edge.node, other].map(|node| self.band.change(block, node));
        let lowered = changes.map(|change| change.map_or(0.0, |(lowered, _)| lowered));
        let place = |t: f32| (edge.node.as_vec3() + axis * t) * cell;
        let function =
            |t: f32| self.field.at(near, place(t)) - (lowered[0] + (lowered[1] - lowered[0]) * t);
        let t = zero(function, [value(edge.node), value(other)], GOOD * cell);
        let place = place(t);
        let slopes = changes.map(|change| change.map_or(Vec3::ZERO, |(_, slope)| slope / cell));
        let gradient = self.field.gradient(near, place) - slopes[0].lerp(slopes[1], t);
        let outward = if value(edge.node) < 0.0 { axis } else { -axis };
        (place, gradient.normalize_or(outward))
    }

    /// What the particles near a place carry to it.
    fn carried(&self, near: &[Near], place: Vec3) -> Vertex {
        let mut load = Load::default();
        for near in near {
            let share = self.field.share(near, place);
            if share > 0.0 {
                load.add(near, share, self);
            }
        }
        if load.total <= 0.0 {
            // At the rim of all supports: the nearest particle.
            let distance = |near: &&Near| near.center.distance_squared(place);
            let nearest = near
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)));
            nearest
                .into_iter()
                .for_each(|near| load.add(near, 1.0, self));
        }
        load.vertex()
    }
}

/// What particles carry, added up.
#[derive(Default)]
struct Load {
    total: f32,
    sum: Vertex,
    materials: Vec<(u16, f32)>,
}

impl Load {
    fn add<F>(&mut self, near: &Near, share: f32, from: &Maker<'_, F>) {
        let source = from.cloud.source[near.index as usize] as usize;
        let vector = |column: &[Vec3]| column.get(source).copied().unwrap_or_default();
        self.total += share;
        self.sum.radius += near.radius * share;
        self.sum.velocity += vector(from.points.velocities) * share;
        self.sum.color += vector(from.points.colors) * share;
        let material = from.points.materials.get(source).copied();
        let material = material.unwrap_or_default();
        match self.materials.iter_mut().find(|(m, _)| *m == material) {
            Some((_, sum)) => *sum += share,
            None => self.materials.push((material, share)),
        }
    }

    /// Means, and the material there is most of.
    fn vertex(self) -> Vertex {
        let scale = if self.total > 0.0 {
            1.0 / self.total
        } else {
            0.0
        };
        let most = self
            .materials
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        Vertex {
            velocity: self.sum.velocity * scale,
            color: self.sum.color * scale,
            radius: self.sum.radius * scale,
            material: most.map_or(0, |(material, _)| *material),
            ..self.sum
        }
    }
}

/// Where between 0 and 1 `function` is zero; `ends` are its values there, of different sign. False position with the
/// Illinois rule (Dowell & Jarratt 1971).
fn zero(function: impl Fn(f32) -> f32, ends: [f32; 2], good: f32) -> f32 {
    let (mut low, mut high) = ((0.0f32, ends[0]), (1.0f32, ends[1]));
    let mut t = 0.5;
    let mut last_was_low = None;
    for _ in 0..MOST_STEPS {
        t = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        if !t.is_finite() {
            t = 0.5 * (low.0 + high.0);
        }
        let value = function(t);
        if value.abs() <= good {
            break;
        }
        let is_low = (value < 0.0) == (low.1 < 0.0);
        if is_low {
            low = (t, value);
            if last_was_low == Some(true) {
                high.1 *= 0.5;
            }
        } else {
            high = (t, value);
            if last_was_low == Some(false) {
                low.1 *= 0.5;
            }
        }
        last_was_low = Some(is_low);
    }
    t.clamp(NODE_GAP, 1.0 - NODE_GAP)
}

fn rough(vertices: &[Vec<Vertex>], triangles: Vec<Vec<[u32; 3]>>, points: &Points<'_>) -> Rough {
    fn column<T: Send>(
        vertices: &[Vec<Vertex>],
        wanted: bool,
        get: impl Fn(&Vertex) -> T + Sync + Send + Copy,
    ) -> Vec<T> {
        let parts = vertices.iter().filter(|_| wanted);
        parts.flat_map(|part| part.iter().map(get)).collect()
    }
    Rough {
        mesh: SurfaceMesh {
            positions: column(vertices, true, |v| v.position),
            normals: column(vertices, true, |v| v.normal),
            velocities: column(vertices, !points.velocities.is_empty(), |v| v.velocity),
            colors: column(vertices, !points.colors.is_empty(), |v| v.color),
            materials: column(vertices, !points.materials.is_empty(), |v| v.material),
            triangles: triangles.into_iter().flatten().collect(),
        },
        radii: column(vertices, true, |v| v.radius),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_found() {
        let t = zero(|t| t * t - 0.3, [-0.3, 0.7], 1e-6);
        assert!((t - 0.3f32.sqrt()).abs() < 1e-5);
        let t = zero(|t| 0.9 - t, [0.9, -0.1], 1e-6);
        assert!((t - 0.9).abs() < 1e-5);
        // A jump has no zero, but a place.
        let t = zero(|t| if t < 0.4 { -1.0 } else { 5.0 }, [-1.0, 5.0], 1e-6);
        assert!((t - 0.4).abs() < 0.2);
        assert!((zero(|_| 0.0, [0.0, -1.0], 1e-6) - NODE_GAP).abs() < 1e-9);
    }
}
