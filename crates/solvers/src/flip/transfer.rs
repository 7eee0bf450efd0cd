//! Velocity from particles to the grid: the weighted average of the particles about each face, mass by mass.
//!
//! Each block adds up its own particles into an array that reaches one cell beyond it; then each block collects what it and
//! its neighbours have for it, always in the same order. No thread decides a bit.
//!
//! The sums of faces across an axis lie side by side along that axis: the two that a particle of a cell reaches are then the
//! same for all particles of the cell, and what one has written is at hand for the next.

use super::boundary::Boundary;
use super::eight::{Among, Between, LANES, Vectors};
use super::field::Field;
use barchan_base::grid::{BlockGrid, CELLS, EDGE};
use barchan_sim::model::Model;
use barchan_sim::state::Particles;
use glam::Mat3;
use rayon::prelude::*;
use std::ops::Range;
use wide::{f32x4, f32x8};

/// Cells along the edge of what a block's particles reach.
const REACH: usize = EDGE + 2;
const REACHED: usize = REACH * REACH * REACH;
/// Numbers a node holds, side by side: a face its mass and momentum, a cell its volume, two sums of material properties, and nothing.
const OF_FACE: usize = 2;
const OF_CELL: usize = 4;
/// Numbers a place holds: three faces and the cell.
const SUMS: usize = 3 * OF_FACE + OF_CELL;
/// Where the cells' numbers begin in the sums of so many places.
const fn cells_from(places: usize) -> usize {
    3 * OF_FACE * places
}

/// What a material adds to cells.
#[derive(Clone, Copy)]
struct Share {
    mass: f32,
    sine: f32,
    cohesion: f32,
    /// Cohesion that being wet adds.
    wet: f32,
}

/// Scratch of the transfer.
#[derive(Default)]
pub(super) struct Transfer {
    sums: Vec<f32>,
    /// For each block, its place among the occupied ones.
    place: Vec<u32>,
}

impl Transfer {
    /// Fills the field's velocity, mass, fill and material means; `affine` is there with APIC.
    pub fn deposit(
        &mut self,
        model: &Model,
        particles: &Particles,
        affine: Option<&[Mat3]>,
        field: &mut Field,
        boundary: &Boundary,
    ) {
        let shares: Vec<Share> = shares(model);
        let volume = (model.particle_volume() / f64::from(field.dx).powi(3)) as f32;
        self.sums.clear();
        self.sums.resize(field.occupied.len() * SUMS * REACHED, 0.0);
        let deposit = Deposit {
            particles,
            affine,
            shares: &shares,
            volume,
            dx: field.dx,
        };
        self.sums
            .par_chunks_mut(SUMS * REACHED)
            .enumerate()
            .for_each(|(n, sums)| {
                let block = field.occupied[n] as usize;
                let here = field.particles_in(block);
                for start in here.clone().step_by(LANES) {
                    deposit.add(field, block, start..here.end.min(start + LANES), sums);
                }
            });
        self.collect(field, boundary);
    }

    fn collect(&mut self, field: &mut Field, boundary: &Boundary) {
        self.place.clear();
        self.place.resize(field.grid.len() + 1, u32::MAX);
        for (n, block) in field.occupied.iter().enumerate() {
            self.place[*block as usize] = n as u32;
        }
        let Field {
            grid,
            velocity: [u, v, w],
            mass: [mu, mv, mw],
            fill,
            sine,
            cohesion,
            ..
        } = field;
        let (sums, place) = (&self.sums, &self.place);
        let velocity = (
            u.par_chunks_mut(CELLS),
            v.par_chunks_mut(CELLS),
            w.par_chunks_mut(CELLS),
        );
        let mass = (
            mu.par_chunks_mut(CELLS),
            mv.par_chunks_mut(CELLS),
            mw.par_chunks_mut(CELLS),
        );
        let cells = (
            fill.par_chunks_mut(CELLS),
            sine.par_chunks_mut(CELLS),
            cohesion.par_chunks_mut(CELLS),
        );
        let outside = grid.len();
        (
            velocity.into_par_iter(),
            mass.into_par_iter(),
            cells.into_par_iter(),
        )
            .into_par_iter()
            .enumerate()
            .filter(|(block, _)| *block < outside)
            .for_each(|(block, ((u, v, w), (mu, mv, mw), cells))| {
                let total = gather(grid, block, sums, place);
                let (faces, of_cells) = total.split_at(cells_from(CELLS));
                let faces = faces.chunks_exact(OF_FACE * CELLS);
                let velocity = [(u, mu), (v, mv), (w, mw)];
                for (axis, (total, (velocity, mass))) in faces.zip(velocity).enumerate() {
                    settle_faces(
                        (axis, total),
                        boundary.face_room(axis, block),
                        velocity,
                        mass,
                    );
                }
                settle_cells(of_cells, boundary.cell_room(block), cells);
            });
    }
}

type Totals = [f32; SUMS * CELLS];

/// What a block's particles and those of its neighbours bring to its cells.
fn gather(grid: &BlockGrid, block: usize, sums: &[f32], place: &[u32]) -> Totals {
    let mut total = [0.0; SUMS * CELLS];
    for (slot, neighbor) in grid.around(block).iter().enumerate() {
        let n = place[*neighbor as usize];
        if n != u32::MAX {
            let from = &sums[n as usize * SUMS * REACHED..][..SUMS * REACHED];
            add_overlap(slot, from, &mut total);
        }
    }
    total
}

/// Velocity and mass of faces from the sums of mass and momentum.
fn settle_faces(
    (axis, total): (usize, &[f32]),
    room: Option<&[f32; CELLS]>,
    velocity: &mut [f32],
    mass: &mut [f32],
) {
    let total = total.as_chunks::<OF_FACE>().0;
    for local in 0..CELLS {
        let [m, momentum] = total[turned(local, EDGE, axis)];
        velocity[local] = if m > 0.0 { momentum / m } else { 0.0 };
        mass[local] = m / room.map_or(1.0, |room| room[local]);
    }
}

/// Fill and material means of cells.
fn settle_cells(
    total: &[f32],
    room: Option<&[f32; CELLS]>,
    (fill, sine, cohesion): (&mut [f32], &mut [f32], &mut [f32]),
) {
    for (local, total) in total.as_chunks::<OF_CELL>().0.iter().enumerate() {
        let [volume, sines, cohesions, _] = *total;
        fill[local] = volume / room.map_or(1.0, |room| room[local]);
        let inverse = if volume > 0.0 { 1.0 / volume } else { 0.0 };
        sine[local] = sines * inverse;
        cohesion[local] = cohesions * inverse;
    }
}

fn shares(model: &Model) -> Vec<Share> {
    let reference = model.materials.first().map_or(1.0, |first| first.density);
    let share = |material: &barchan_sim::model::Material| Share {
        mass: (material.density / reference) as f32,
        sine: material.friction_angle.sin() as f32,
        cohesion: (material.cohesion / reference) as f32,
        wet: (material.wet_cohesion / reference) as f32,
    };
    model.materials.iter().map(share).collect()
}

/// What particles bring.
struct Deposit<'a> {
    particles: &'a Particles,
    affine: Option<&'a [Mat3]>,
    shares: &'a [Share],
    /// Volume of a particle, in cells.
    volume: f32,
    dx: f32,
}

impl Deposit<'_> {
    /// Adds up to eight particles of a block.
    #[inline]
    fn add(&self, field: &Field, block: usize, few: Range<usize>, sums: &mut [f32]) {
        let positions = &self.particles.position[few.clone()];
        let points = Vectors::new(positions, |point| field.within(block, point));
        let among = Among::new(&points);
        for axis in 0..3 {
            let mut nodes = among.nodes(axis);
            nodes.swap(0, axis);
            let nodes = Nodes::new(nodes);
            let sums = &mut sums[OF_FACE * axis * REACHED..][..OF_FACE * REACHED];
            for (lane, particle) in few.clone().enumerate() {
                let share = &self.shares[self.particles.material[particle] as usize];
                let mut slope = match self.affine {
                    Some(affine) => (affine[particle].row(axis) * self.dx).to_array(),
                    None => [0.0; 3],
                };
                slope.swap(0, axis);
                let velocity = self.particles.velocity[particle][axis];
                nodes.add_to_faces(lane, (velocity, slope), share.mass * self.volume, sums);
            }
        }
        let nodes = Nodes::new(among.nodes(3));
        let sums = &mut sums[cells_from(REACHED)..];
        for (lane, particle) in few.enumerate() {
            let share = &self.shares[self.particles.material[particle] as usize];
            let cohesion = share.cohesion + share.wet * self.particles.wetness[particle];
            let brought = [1.0, share.sine, cohesion, 0.0].map(|part| part * self.volume);
            nodes.add_to_cells(lane, brought, sums);
        }
    }
}

/// Where up to eight particles are among the nodes of their block's reach; 'x' is the axis along which sums lie side by side.
struct Nodes {
    first: [i32; LANES],
    beyond: [[f32; LANES]; 3],
}

/// From a node to the first one of the four rows of two around a point, and whether the row is the upper one along y and z.
const ROWS: [(usize, usize, usize); 4] = [
    (0, 0, 0),
    (REACH, 1, 0),
    (REACH * REACH, 0, 1),
    (REACH * REACH + REACH, 1, 1),
];

impl Nodes {
    #[inline]
    fn new([x, y, z]: [Between; 3]) -> Self {
        // The reach begins one cell before the block.
        let (one, row) = (f32x8::ONE, f32x8::splat(REACH as f32));
        let first = x.node + one + row * (y.node + one + row * (z.node + one));
        Self {
            first: first.fast_trunc_int().to_array(),
            beyond: [
                x.beyond.to_array(),
                y.beyond.to_array(),
                z.beyond.to_array(),
            ],
        }
    }

    #[inline]
    fn beyond(&self, lane: usize) -> [f32; 3] {
        let [x, y, z] = &self.beyond;
        [x[lane], y[lane], z[lane]]
    }

    /// Adds a particle's mass, and the momentum that it has at each node, to the faces around it.
    #[inline]
    fn add_to_faces(
        &self,
        lane: usize,
        (velocity, [sx, sy, sz]): (f32, [f32; 3]),
        mass: f32,
        sums: &mut [f32],
    ) {
        let [fx, fy, fz] = self.beyond(lane);
        let first = self.first[lane] as usize;
        let (wy, wz) = ([1.0 - fy, fy], [1.0 - fz, fz]);
        let at_first = velocity - sx * fx - sy * fy - sz * fz;
        // Mass and momentum of the two faces of a row, for weight and velocity 1 at the row's first: linear in both.
        let still = f32x4::new([1.0 - fx, 0.0, fx, fx * sx]);
        let moving = f32x4::new([0.0, 1.0 - fx, 0.0, fx]);
        for (row, y, z) in ROWS {
            let weight = f32x4::splat(mass * (wy[y] * wz[z]));
            let there = at_first + sy * y as f32 + sz * z as f32;
            let sums = &mut sums[OF_FACE * (first + row)..][..2 * OF_FACE];
            add(sums, weight * (still + moving * f32x4::splat(there)));
        }
    }

    /// Adds what a particle brings to the cells around it.
    #[inline]
    fn add_to_cells(&self, lane: usize, [a, b, c, d]: [f32; OF_CELL], sums: &mut [f32]) {
        let [fx, fy, fz] = self.beyond(lane);
        let first = self.first[lane] as usize;
        let (gx, wy, wz) = (1.0 - fx, [1.0 - fy, fy], [1.0 - fz, fz]);
        let (low, high) = (
            f32x4::new([a, b, c, d]) * f32x4::splat(gx),
            f32x4::new([a, b, c, d]) * f32x4::splat(fx),
        );
        for (row, y, z) in ROWS {
            let weight = f32x4::splat(wy[y] * wz[z]);
            let sums = &mut sums[OF_CELL * (first + row)..][..2 * OF_CELL];
            let (of_low, of_high) = sums.split_at_mut(OF_CELL);
            add(of_low, low * weight);
            add(of_high, high * weight);
        }
    }
}

#[inline]
fn add(sums: &mut [f32], more: f32x4) {
    let before = f32x4::new([sums[0], sums[1], sums[2], sums[3]]);
    sums.copy_from_slice(&(before + more).to_array());
}

/// A place in a cube of so many along its edge, after x has changed places with another axis.
#[inline]
fn turned(place: usize, edge: usize, axis: usize) -> usize {
    let mut digits = [place % edge, place / edge % edge, place / (edge * edge)];
    digits.swap(0, axis);
    digits[0] + edge * (digits[1] + edge * digits[2])
}

/// Adds what the block in `slot` of the neighbourhood has for the cells of this block.
fn add_overlap(slot: usize, from: &[f32], total: &mut Totals) {
    let (faces, cells) = from.split_at(cells_from(REACHED));
    let (of_faces, of_cells) = total.split_at_mut(cells_from(CELLS));
    let to = of_faces.chunks_exact_mut(OF_FACE * CELLS);
    for (axis, (to, from)) in to.zip(faces.chunks_exact(OF_FACE * REACHED)).enumerate() {
        add_rows::<OF_FACE>(turned(slot, 3, axis), from, to);
    }
    add_rows::<OF_CELL>(slot, cells, of_cells);
}

/// The same for nodes that hold `N` numbers each.
fn add_rows<const N: usize>(slot: usize, from: &[f32], to: &mut [f32]) {
    // A neighbour on the far side reaches our last layer with its first, and the other way round.
    let span = |d: usize| match d {
        0 => (0..1, REACH - 1),
        1 => (0..EDGE, 1),
        _ => (EDGE - 1..EDGE, 0),
    };
    let ((xs, x0), (ys, y0), (zs, z0)) = (span(slot % 3), span(slot / 3 % 3), span(slot / 9));
    for (k, z) in zs.enumerate() {
        for (j, y) in ys.clone().enumerate() {
            let there = x0 + REACH * (y0 + j + REACH * (z0 + k));
            let here = xs.start + EDGE * (y + EDGE * z);
            let row = N * xs.len();
            let (from, to) = (&from[N * there..][..row], &mut to[N * here..][..row]);
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::advance::Advance;
    use super::*;
    use barchan_sim::model::Material;
    use barchan_sim::solids::Solids;
    use glam::Vec3;

    const CELLS_ALONG: usize = 24;
    const ACROSS: usize = 6;
    /// Radians a cell.
    const WAVE: f32 = 0.1;

    fn model() -> Model {
        Model {
            up: Vec3::Y,
            gravity: Vec3::ZERO,
            seed: 0,
            resolution: 1.0,
            spacing: 0.5,
            materials: vec![Material {
                name: "sand".into(),
                density: 1.0,
                grain_density: 2.0,
                grain_size: 0.1,
                friction_angle: 0.6,
                cohesion: 0.0,
                wet_cohesion: 0.0,
                wet_viscosity: 0.0,
                restitution: 0.0,
                color: [1.0; 3],
            }],
            grains: vec![],
            shapes: vec![],
            fills: vec![],
            emitters: vec![],
            sinks: vec![],
            bodies: vec![],
            air: None,
            wet: vec![],
        }
    }

    /// Particles evenly spaced, `count` to a cell along x and two across.
    fn rows(count: usize) -> Particles {
        let mut particles = Particles::default();
        let (along, across) = (CELLS_ALONG * count, 2 * ACROSS);
        particles.resize(along * across * across);
        for (i, position) in particles.position.iter_mut().enumerate() {
            let (x, y, z) = (i % along, i / along % across, i / along / across);
            *position = Vec3::new(
                (x as f32 + 0.5) / count as f32,
                0.5 * y as f32 + 0.25,
                0.5 * z as f32 + 0.25,
            );
        }
        particles
    }

    /// The change of f = sin kx at a face, from the grid to the particles and back, over f″ Δx².
    fn round_trip(count: usize) -> f64 {
        let model = model();
        let mut particles = rows(count);
        let mut field = Field::default();
        let mut boundary = Boundary::default();
        field.lay(&particles, 1.0);
        particles.permute(&field.order);
        boundary.sample(&field, &Solids::default());
        for block in 0..field.grid.len() {
            for local in 0..CELLS {
                let x = field.center(block, local).x - 0.5;
                field.velocity[0][block * CELLS + local] = (WAVE * x).sin();
            }
        }
        let advance = Advance {
            field: &field,
            boundary: &boundary,
            solids: &[],
            transfer: barchan_sim::scene::Transfer::Flip(0.0),
            repair: None,
            shift: &vec![Vec3::ZERO; particles.len()],
            pressure: None,
            dt: 0.0,
            push: 0.0,
            radius: 0.25,
        };
        advance.particles(&mut particles, None);
        Transfer::default().deposit(&model, &particles, None, &mut field, &boundary);
        let x = CELLS_ALONG as i32 / 2 + 4;
        let cell = field.grid.index(glam::IVec3::new(x, 3, 3));
        let value = f64::from(field.velocity[0][cell.expect("it is in the material")]);
        let k = f64::from(WAVE);
        let f = (k * f64::from(x)).sin();
        (value - f) / (-k * k * f)
    }

    /// Zhu (2005, section 3.2.1) finds f″ Δx² / 9 for the change of f in a round trip. That is the mean over particles at most
    /// half a cell from the node. A node hears those of a whole cell on either side, by the hat w = 1 − |t|: the particles
    /// themselves are off by f″ t(1 − t) / 2, which averages to f″ / 12, and averaging f by the hat gives another f″ / 12: 1/6 in
    /// all. With a lattice of two particles a cell in place of a continuum it is 3/16.
    #[test]
    fn a_round_trip_changes_a_field_by_a_sixth_of_its_curvature() {
        let constant = round_trip(16);
        assert!((constant - 1.0 / 6.0).abs() < 0.003, "{constant}");
        let lattice = round_trip(2);
        assert!((lattice - 3.0 / 16.0).abs() < 0.003, "{lattice}");
        assert!((constant - 1.0 / 9.0).abs() > 0.05);
    }
}
