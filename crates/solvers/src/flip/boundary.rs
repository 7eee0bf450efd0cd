//! Solids on the grid: the open part of each face, the room in each cell, and the walls that rub.
//!
//! Distances are taken at the corners of cells. A face is open by the part of its square that is outside all solids; what a
//! cell's faces lack is, by the divergence theorem, the wall inside it. So walls may lie at any angle to the grid.

use super::field::Field;
use barchan_base::grid::{CELLS, EDGE, Halo, place_in_block};
use barchan_sim::solids::{Solid, Solids};
use glam::Vec3;
use rayon::prelude::*;

/// Faces open by less are closed: their little mass would make the solve stiff.
pub(super) const LEAST_OPEN: f32 = 0.05;
/// Cells with less space are solid.
const LEAST_SPACE: f32 = 0.01;
/// Room is taken as at least this, so that a particle in a cranny does not weigh tons.
const LEAST_ROOM: f32 = 0.1;
/// Cosine of the steepest slope of a floor: what lies on steeper walls slides off whatever they are.
const STEEPEST_FLOOR: f32 = 0.3;
/// A block is sampled with a rim of one cell: the room about a face reaches that far.
const RIM: usize = 1;
/// Cells and corners along the edge of that.
const SEEN: usize = Halo::<1>::EDGE;
const CORNERS: usize = SEEN + 1;

/// A piece of a solid's surface in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    /// Index of the cell.
    pub cell: u32,
    /// Index of the body.
    pub body: u32,
    /// Its area, in faces of a cell, as a vector out of the solid.
    pub area: Vec3,
    /// Coefficient of friction.
    pub friction: f32,
    /// Velocity [m/s] of the solid there.
    pub velocity: Vec3,
}

/// A closed face, and how fast the solid that closes it moves along its axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub cell: u32,
    pub axis: u8,
    pub body: u32,
    pub speed: f32,
}

/// What solids do to one block.
#[derive(Clone, Debug)]
struct Near {
    open: [[f32; CELLS]; 3],
    space: [f32; CELLS],
    cell_room: [f32; CELLS],
    face_room: [[f32; CELLS]; 3],
    walls: Vec<Wall>,
    closed: Vec<Closed>,
    /// True where none of the solids ever moves.
    fixed: bool,
}

/// The solids of a step, as the grid sees them.
#[derive(Default)]
pub(super) struct Boundary {
    /// For each block, its place in `near`.
    place: Vec<u32>,
    #[expect(
        clippy::vec_box,
        reason = "they go from step to step, and each is 2 kB"
    )]
    near: Vec<Box<Near>>,
    /// The grid that was sampled.
    keys: Vec<u64>,
    dx: f32,
}

/// What is found of a block in a new step.
enum Found {
    Far,
    /// As it was, at this place.
    Kept(u32),
    New(Box<Near>),
}

const FAR: u32 = u32::MAX;

impl Boundary {
    /// Samples the solids on the field's grid. Solids that never move are sampled once: a block that was there in the last
    /// step keeps what it knows of them.
    pub fn sample(&mut self, field: &Field, solids: &Solids) {
        if self.dx.to_bits() != field.dx.to_bits() {
            self.dx = field.dx;
            self.keys.clear();
        }
        let moving: Vec<&Solid> = solids.all().iter().filter(|s| !s.is_fixed()).collect();
        let found: Vec<Found> = (0..field.grid.len())
            .into_par_iter()
            .map(|block| {
                let still = !moving.iter().any(|solid| is_close(solid, field, block));
                match self.known(field.grid.keys()[block]) {
                    Some(kept) if still => kept,
                    _ => sample_block(field, solids.all(), block)
                        .map_or(Found::Far, |near| Found::New(Box::new(near))),
                }
            })
            .collect();
        self.keep(found);
        self.keys.clear();
        self.keys.extend_from_slice(field.grid.keys());
    }

    /// What the last step found of a block, if nothing that moves had a part in it.
    fn known(&self, key: u64) -> Option<Found> {
        let block = self.keys.binary_search(&key).ok()?;
        match self.place[block] {
            FAR => Some(Found::Far),
            place if self.near[place as usize].fixed => Some(Found::Kept(place)),
            _ => None,
        }
    }

    fn keep(&mut self, found: Vec<Found>) {
        let mut old: Vec<Option<Box<Near>>> = self.near.drain(..).map(Some).collect();
        self.place.clear();
        self.place.resize(found.len() + 1, FAR);
        for (block, found) in found.into_iter().enumerate() {
            let near = match found {
                Found::Far => None,
                Found::Kept(place) => old[place as usize].take(),
                Found::New(near) => Some(near),
            };
            if let Some(mut near) = near {
                near.number(block);
                self.place[block] = self.near.len() as u32;
                self.near.push(near);
            }
        }
    }

    /// The part of a cell that is not solid.
    pub fn space(&self, cell: usize) -> f32 {
        self.near_of(cell)
            .map_or(1.0, |near| near.space[cell % CELLS])
    }

    fn near_of(&self, cell: usize) -> Option<&Near> {
        let near = self.near.get(*self.place.get(cell / CELLS)? as usize)?;
        Some(near)
    }

    /// The open part of the lower face of a cell.
    #[inline]
    pub fn open(&self, axis: usize, cell: usize) -> f32 {
        self.near_of(cell)
            .map_or(1.0, |near| near.open[axis][cell % CELLS])
    }

    /// True where a cell is wholly inside solids.
    pub fn is_solid(&self, cell: usize) -> bool {
        self.space(cell) < LEAST_SPACE
    }

    /// True where a solid is near enough to matter to a block.
    pub fn is_near(&self, block: usize) -> bool {
        self.place.get(block).is_some_and(|place| *place != FAR)
    }

    /// The room about a block's faces of an axis; `None` where it is all open.
    pub fn face_room(&self, axis: usize, block: usize) -> Option<&[f32; CELLS]> {
        self.near
            .get(self.place[block] as usize)
            .map(|near| &near.face_room[axis])
    }

    /// The room about a block's cells; `None` where it is all open.
    pub fn cell_room(&self, block: usize) -> Option<&[f32; CELLS]> {
        self.near
            .get(self.place[block] as usize)
            .map(|near| &near.cell_room)
    }

    /// The walls in a block's cells, in the order of the cells.
    pub fn walls(&self, block: usize) -> &[Wall] {
        self.near
            .get(self.place[block] as usize)
            .map_or(&[], |near| &near.walls)
    }

    /// The cells of a block with a piece of wall that carries what lies on it, or lies on it itself, a bit each.
    pub fn cells_at_floors(&self, block: usize, up: Vec3) -> u64 {
        let bears = |wall: &&Wall| wall.area.dot(up).abs() > STEEPEST_FLOOR * wall.area.length();
        let floors = self.walls(block).iter().filter(bears);
        floors.fold(0, |bits, floor| bits | 1 << (floor.cell as usize % CELLS))
    }

    /// All closed faces.
    pub fn closed(&self) -> impl Iterator<Item = &Closed> {
        self.near.iter().flat_map(|near| &near.closed)
    }
}

fn weighted(space: &[f32], at: usize, kernel: impl Fn(usize) -> [f32; 3]) -> f32 {
    let (kx, ky, kz) = (kernel(0), kernel(1), kernel(2));
    let edge = Halo::<1>::EDGE;
    let mut sum = 0.0;
    for (k, wz) in kz.into_iter().enumerate() {
        for (j, wy) in ky.into_iter().enumerate() {
            for (i, wx) in kx.into_iter().enumerate() {
                sum += wx
                    * wy
                    * wz
                    * space[at + i + edge * j + edge * edge * k - (1 + edge + edge * edge)];
            }
        }
    }
    sum
}

impl Near {
    /// Gives its walls and closed faces the numbers that their cells have in this step's grid.
    fn number(&mut self, block: usize) {
        let of_block = |cell: u32| (block * CELLS + cell as usize % CELLS) as u32;
        for wall in &mut self.walls {
            wall.cell = of_block(wall.cell);
        }
        for closed in &mut self.closed {
            closed.cell = of_block(closed.cell);
        }
    }

    /// The part of each cell's and face's neighbourhood, weighted as particles are, that is not solid.
    fn measure_room(&mut self, space: &[f32; Halo::<1>::CELLS]) {
        // Averages along an axis, as seen from a cell's centre and from its lower face.
        let center = [0.125, 0.75, 0.125];
        let face = [0.5, 0.5, 0.0];
        let room = |axis: usize, local: usize| {
            let kernel = |i: usize| if i == axis { face } else { center };
            weighted(space, Halo::<1>::inner(local), kernel).max(LEAST_ROOM)
        };
        for local in 0..CELLS {
            self.space[local] = space[Halo::<1>::inner(local)];
            self.cell_room[local] = room(3, local);
            for axis in 0..3 {
                self.face_room[axis][local] = room(axis, local);
            }
        }
    }
}

/// Distances [in cells] at the corners of the cells in and about a block.
type Distances = [f32; CORNERS * CORNERS * CORNERS];

/// True where a solid is near enough to matter to a block.
fn is_close(solid: &Solid, field: &Field, block: usize) -> bool {
    let half = 0.5 * EDGE as f32 * field.dx;
    let middle = field.corner(block) + half;
    let reach = half * 3f32.sqrt() + 2.0 * field.dx;
    solid.bounds().distance_squared(middle) <= reach * reach && !solid.is_beyond(middle, reach)
}

fn sample_block(field: &Field, solids: &[Solid], block: usize) -> Option<Near> {
    let close: Vec<usize> = (0..solids.len())
        .filter(|body| is_close(&solids[*body], field, block))
        .collect();
    if close.is_empty() {
        return None;
    }
    let corner = field.corner(block);
    let distances: Vec<Distances> = close
        .iter()
        .map(|body| distances(&solids[*body], corner, field))
        .collect();
    let mut nearest = [f32::MAX; CORNERS * CORNERS * CORNERS];
    for distances in &distances {
        for (nearest, distance) in nearest.iter_mut().zip(distances) {
            *nearest = nearest.min(*distance);
        }
    }
    let mut near = Near {
        open: [[1.0; CELLS]; 3],
        space: [1.0; CELLS],
        cell_room: [1.0; CELLS],
        face_room: [[1.0; CELLS]; 3],
        walls: Vec::new(),
        closed: Vec::new(),
        fixed: close.iter().all(|body| solids[*body].is_fixed()),
    };
    let mut space = [1.0; Halo::<1>::CELLS];
    for (i, space) in space.iter_mut().enumerate() {
        // Where two walls meet, the nearer one's distance alone would call the corner half full.
        let place = [i % SEEN, i / SEEN % SEEN, i / (SEEN * SEEN)];
        let spaces = distances.iter().map(|d| open_space(d, place));
        *space = spaces.fold(1.0, f32::min);
    }
    near.measure_room(&space);
    let sampled = Sampled {
        field,
        solids,
        block,
        close: &close,
        distances: &distances,
    };
    for local in 0..CELLS {
        for axis in 0..3 {
            let leads_nowhere =
                |at: [usize; 3]| space[at[0] + SEEN * (at[1] + SEEN * at[2])] < LEAST_SPACE;
            near.open[axis][local] = passage(&nearest, axis, place(local), leads_nowhere);
        }
        sampled.walls(local, &mut near.walls);
        for axis in (0..3).filter(|axis| near.open[*axis][local] == 0.0) {
            near.closed.push(sampled.closed(local, axis));
        }
    }
    Some(near)
}

/// The solids close to a block.
struct Sampled<'a> {
    field: &'a Field,
    solids: &'a [Solid],
    block: usize,
    close: &'a [usize],
    distances: &'a [Distances],
}

impl Sampled<'_> {
    /// The pieces of wall in a cell.
    fn walls(&self, local: usize, walls: &mut Vec<Wall>) {
        for (&body, distances) in self.close.iter().zip(self.distances) {
            let area = wall_area(distances, place(local));
            if area.length_squared() > 1e-4 {
                let solid = &self.solids[body];
                walls.push(Wall {
                    cell: (self.block * CELLS + local) as u32,
                    body: body as u32,
                    area,
                    friction: solid.friction,
                    velocity: solid.velocity(self.field.center(self.block, local)),
                });
            }
        }
    }

    /// The lower face of a cell, closed by the solid that reaches furthest over it.
    fn closed(&self, local: usize, axis: usize) -> Closed {
        let corner = corner_index(place(local));
        let nearest = (0..self.close.len())
            .min_by(|a, b| self.distances[*a][corner].total_cmp(&self.distances[*b][corner]));
        let body = nearest.map_or(0, |n| self.close[n]);
        let mut at = self.field.center(self.block, local);
        at[axis] -= 0.5 * self.field.dx;
        Closed {
            cell: (self.block * CELLS + local) as u32,
            axis: axis as u8,
            body: body as u32,
            speed: self.solids[body].velocity(at)[axis],
        }
    }
}

/// The open part of the lower face of a cell that material can pass. A face into a solid cell is closed, however much of it is open: what is
/// behind it bears no pressure, and the material would leak into it.
fn passage(
    distances: &Distances,
    axis: usize,
    place: [usize; 3],
    is_solid: impl Fn([usize; 3]) -> bool,
) -> f32 {
    let mut below = place;
    below[axis] -= 1;
    let open = open_face(distances, axis, place);
    if open < LEAST_OPEN || is_solid(place) || is_solid(below) {
        return 0.0;
    }
    open
}

/// Where a block's cell is among those sampled.
fn place(local: usize) -> [usize; 3] {
    place_in_block(local).to_array().map(|v| v as usize + RIM)
}

fn corner_index([x, y, z]: [usize; 3]) -> usize {
    x + CORNERS * (y + CORNERS * z)
}

fn distances(solid: &Solid, corner: Vec3, field: &Field) -> Distances {
    let mut distances = [0.0; CORNERS * CORNERS * CORNERS];
    for (i, to) in distances.iter_mut().enumerate() {
        let place = [i % CORNERS, i / CORNERS % CORNERS, i / (CORNERS * CORNERS)];
        let point = corner + Vec3::from_array(place.map(|v| v as f32 - RIM as f32)) * field.dx;
        let distance = solid.distance(point) * field.inverse;
        // Walls laid on the grid must be on the grid, whatever rounding says.
        if distance.abs() >= 1e-3 {
            *to = distance.clamp(-4.0, 4.0);
        }
    }
    distances
}

/// The open part of the lower face of a cell.
fn open_face(distances: &Distances, axis: usize, place: [usize; 3]) -> f32 {
    let at = |u: usize, v: usize| {
        let mut corner = place;
        corner[(axis + 1) % 3] += u;
        corner[(axis + 2) % 3] += v;
        distances[corner_index(corner)]
    };
    open_part(at(0, 0), at(1, 0), at(0, 1), at(1, 1))
}

/// The part of a unit square where the distance, given at the corners, is positive.
fn open_part(a: f32, b: f32, c: f32, d: f32) -> f32 {
    // The mean over lines across the square, each exact for its own linear course.
    let lines = [0.125f32, 0.375, 0.625, 0.875];
    let part = |a: f32, b: f32| match (a > 0.0, b > 0.0) {
        (true, true) => 1.0,
        (false, false) => 0.0,
        (true, false) => a / (a - b),
        (false, true) => b / (b - a),
    };
    let along = |a: f32, b: f32, c: f32, d: f32| -> f32 {
        let line = |t: &f32| part(a + (c - a) * t, b + (d - b) * t);
        lines.iter().map(line).sum::<f32>() * 0.25
    };
    0.5 * (along(a, b, c, d) + along(a, c, b, d))
}

/// The open part of a cell's volume.
fn open_space(distances: &Distances, place: [usize; 3]) -> f32 {
    let corner = |i: usize| {
        distances[corner_index([
            place[0] + (i & 1),
            place[1] + (i >> 1 & 1),
            place[2] + (i >> 2),
        ])]
    };
    let mean = (0..8).map(|i| corner(i).clamp(-1.0, 1.0)).sum::<f32>() * 0.125;
    (0.5 + mean).clamp(0.0, 1.0)
}

/// The area of a solid's surface in a cell, as a vector out of the solid: what the opposite faces lack.
fn wall_area(distances: &Distances, place: [usize; 3]) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|axis| {
        let mut upper = place;
        upper[axis] += 1;
        let is_solid = |at| open_space(distances, at) < LEAST_SPACE;
        let part = |at| passage(distances, axis, at, is_solid);
        part(upper) - part(place)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::BESIDE;
    use barchan_base::shape::Shape;
    use barchan_sim::body::{Body, Form};
    use barchan_sim::model::Model;
    use barchan_sim::state::Particles;
    use glam::Quat;
    use std::sync::Arc;

    /// The grid about the origin, and a floor through `height` cells that leans by `angle`.
    fn leaning_floor(angle: f32, height: f32) -> (Field, Boundary) {
        let mut particles = Particles::default();
        particles.resize(1);
        let mut field = Field::default();
        field.lay(&particles, 1.0);
        let normal = Quat::from_euler(glam::EulerRot::XZY, 0.3 * angle, angle, 0.0) * Vec3::Y;
        let floor = Shape::HalfSpace { normal };
        let pose = barchan_base::Pose::new(Vec3::Y * height, Quat::IDENTITY);
        let model = Model {
            bodies: vec![Body {
                name: "floor".into(),
                form: Form::Static(Arc::new(floor.placed(pose, 1.0))),
                friction: 0.5,
                restitution: None,
            }],
            ..Model::empty()
        };
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.0).unwrap();
        let mut boundary = Boundary::default();
        boundary.sample(&field, &solids);
        (field, boundary)
    }

    /// Material leaked through such faces, and crept on every floor that lies askew to the grid.
    #[test]
    fn no_open_face_leads_into_a_solid_cell() {
        let (mut open_faces, mut solid_cells) = (0, 0);
        let leaning = (0..60).map(|i| (0.02 * i as f32, 0.37 * (i % 7) as f32 + 0.5));
        // Next to nothing below a row of cells: all of its lower faces are open.
        for (angle, height) in leaning.chain([(0.0, 0.995), (0.0, -0.005)]) {
            let (field, boundary) = leaning_floor(angle, height);
            let Some(block) = field.grid.find(glam::IVec3::ZERO) else {
                panic!("the particle is there");
            };
            for local in 0..CELLS {
                let cell = block * CELLS + local;
                solid_cells += usize::from(boundary.is_solid(cell));
                for axis in 0..3 {
                    let below = field.grid.step(block, local, BESIDE[2 * axis]);
                    if below / CELLS != block || boundary.open(axis, cell) == 0.0 {
                        continue;
                    }
                    open_faces += 1;
                    let solid = boundary.is_solid(cell) || boundary.is_solid(below);
                    assert!(!solid, "leaning {angle}, {height}: {local}, axis {axis}");
                }
            }
        }
        assert!(open_faces > 1000 && solid_cells > 1000);
    }
}
