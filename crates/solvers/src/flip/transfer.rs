//! Velocity from particles to the grid: the weighted average of the particles about each face, mass by mass.
//!
//! Each block adds up its own particles in a small array that reaches one cell beyond it, and then adds that to the grid. Blocks
//! take turns by colour: those of one colour reach no cell in common, and the colours follow each other always in the same
//! order. No thread decides a bit.
//!
//! The sums of faces across an axis lie side by side along that axis: the two that a particle of a cell reaches are then the
//! same for all particles of the cell, and what one has written is at hand for the next.

use super::boundary::Boundary;
use super::eight::{Among, Between, LANES, Vectors};
use super::field::{Faces, Field};
use barchan_base::grid::{CELLS, EDGE, Halo, Neighborhood, SharedFloats, block_of, color_of};
use barchan_sim::model::Model;
use barchan_sim::state::Particles;
use glam::Mat3;
use rayon::prelude::*;
use std::ops::Range;
use wide::{f32x4, f32x8};

/// Cells along the edge of what a block's particles reach.
const REACH: usize = EDGE + 2;
const REACHED: usize = REACH * REACH * REACH;
/// Numbers a node holds, side by side: a face its mass and momentum, a cell its volume and three sums of material properties.
const OF_FACE: usize = 2;
const OF_CELL: usize = 4;
/// Numbers a place holds: three faces and the cell.
const SUMS: usize = 3 * OF_FACE + OF_CELL;
/// Where the cells' numbers begin among those of all places.
const OF_CELLS: usize = 3 * OF_FACE * REACHED;

/// What a material adds to cells.
#[derive(Clone, Copy)]
struct Share {
    mass: f32,
    sine: f32,
    cohesion: f32,
    /// Cohesion that being wet adds.
    wet: f32,
}

/// What a block's particles bring to the places they reach.
type Reach = [f32; SUMS * REACHED];

/// For each axis, where the sums of a place are after x has changed places with it.
static TURNED: [[u8; REACHED]; 3] = [turned(0), turned(1), turned(2)];

const fn turned(axis: usize) -> [u8; REACHED] {
    let mut table = [0; REACHED];
    let mut place = 0;
    while place < REACHED {
        let mut digits = [
            place % REACH,
            place / REACH % REACH,
            place / (REACH * REACH),
        ];
        (digits[0], digits[axis]) = (digits[axis], digits[0]);
        table[place] = (digits[0] + REACH * (digits[1] + REACH * digits[2])) as u8;
        place += 1;
    }
    table
}

/// Scratch of the transfer: the blocks that hold particles, colour by colour.
#[derive(Default)]
pub(super) struct Transfer {
    by_color: [Vec<u32>; 8],
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
        self.by_color.iter_mut().for_each(Vec::clear);
        for block in &field.occupied {
            let color = color_of(block_of(field.grid.origin(*block as usize)));
            self.by_color[color].push(*block);
        }
        let deposit = Deposit {
            particles,
            affine,
            shares: &shares(model),
            volume: (model.particle_volume() / f64::from(field.dx).powi(3)) as f32,
            dx: field.dx,
        };
        let mut brought = Brought::take_from(field);
        let totals = brought.share(field.grid.len() * CELLS);
        for blocks in &self.by_color {
            blocks.par_iter().for_each(|block| {
                let block = *block as usize;
                let reach = deposit.block(field, block);
                totals.add(field.grid.around(block), &reach);
            });
        }
        brought.give_back(field);
        settle(field, boundary);
    }
}

/// The field's own arrays, in which momentum and what cells hold are added up before they are divided.
struct Brought {
    momentum: Faces,
    mass: Faces,
    of_cells: [Vec<f32>; OF_CELL],
}

impl Brought {
    /// Takes the arrays, with nothing in them yet.
    fn take_from(field: &mut Field) -> Self {
        let mut brought = Self {
            momentum: std::mem::take(&mut field.velocity),
            mass: std::mem::take(&mut field.mass),
            of_cells: [
                &mut field.fill,
                &mut field.sine,
                &mut field.cohesion,
                &mut field.density,
            ]
            .map(std::mem::take),
        };
        let Self {
            momentum,
            mass,
            of_cells,
        } = &mut brought;
        [momentum.as_mut_slice(), mass, of_cells]
            .into_par_iter()
            .flatten()
            .for_each(|sums| sums.fill(0.0));
        brought
    }

    fn give_back(self, field: &mut Field) {
        field.velocity = self.momentum;
        field.mass = self.mass;
        [field.fill, field.sine, field.cohesion, field.density] = self.of_cells;
    }

    fn share(&mut self, outside: usize) -> Totals<'_> {
        Totals {
            halo: Halo::new(),
            momentum: self.momentum.each_mut().map(|sums| SharedFloats::of(sums)),
            mass: self.mass.each_mut().map(|sums| SharedFloats::of(sums)),
            of_cells: self.of_cells.each_mut().map(|sums| SharedFloats::of(sums)),
            outside,
        }
    }
}

/// The same, for all blocks of a colour.
struct Totals<'a> {
    halo: Halo<1>,
    momentum: [SharedFloats<'a>; 3],
    mass: [SharedFloats<'a>; 3],
    of_cells: [SharedFloats<'a>; OF_CELL],
    /// The first cell that is nowhere.
    outside: usize,
}

impl Totals<'_> {
    /// Adds what the particles of the block in the middle of `around` bring.
    fn add(&self, around: &Neighborhood, reach: &Reach) {
        let (faces, cells) = reach.split_at(OF_CELLS);
        let (faces, cells) = (
            faces.as_chunks::<OF_FACE>().0,
            cells.as_chunks::<OF_CELL>().0,
        );
        self.halo.scatter(around, |cell, place| {
            if cell >= self.outside {
                return;
            }
            for axis in 0..3 {
                let [mass, momentum] = faces[axis * REACHED + TURNED[axis][place] as usize];
                self.mass[axis].add(cell, mass);
                self.momentum[axis].add(cell, momentum);
            }
            for (sums, value) in self.of_cells.iter().zip(cells[place]) {
                sums.add(cell, value);
            }
        });
    }
}

/// Velocity from momentum, and means from sums, where there is anything.
fn settle(field: &mut Field, boundary: &Boundary) {
    for (axis, (velocity, mass)) in field.velocity.iter_mut().zip(&mut field.mass).enumerate() {
        (velocity.par_chunks_mut(CELLS), mass.par_chunks_mut(CELLS))
            .into_par_iter()
            .enumerate()
            .with_min_len(64)
            .filter(|(block, _)| *block < field.grid.len())
            .for_each(|(block, (velocity, mass))| {
                settle_faces(boundary.face_room(axis, block), velocity, mass);
            });
    }
    (
        field.fill.par_chunks_mut(CELLS),
        field.sine.par_chunks_mut(CELLS),
        field.cohesion.par_chunks_mut(CELLS),
        field.density.par_chunks_mut(CELLS),
    )
        .into_par_iter()
        .enumerate()
        .with_min_len(64)
        .filter(|(block, _)| *block < field.grid.len())
        .for_each(|(block, cells)| settle_cells(boundary.cell_room(block), cells));
}

/// Velocity and mass of faces from the sums of mass and momentum.
fn settle_faces(room: Option<&[f32; CELLS]>, velocity: &mut [f32], mass: &mut [f32]) {
    for (local, (velocity, mass)) in velocity.iter_mut().zip(mass).enumerate() {
        if *mass > 0.0 {
            *velocity /= *mass;
        }
        *mass /= room.map_or(1.0, |room| room[local]);
    }
}

/// Fill and material means of cells.
fn settle_cells(
    room: Option<&[f32; CELLS]>,
    (fill, sine, cohesion, density): (&mut [f32], &mut [f32], &mut [f32], &mut [f32]),
) {
    for (local, volume) in fill.iter_mut().enumerate() {
        let inverse = if *volume > 0.0 { 1.0 / *volume } else { 0.0 };
        sine[local] *= inverse;
        cohesion[local] *= inverse;
        if *volume > 0.0 {
            // Not by the inverse: one fluid alone has exactly 1.
            density[local] /= *volume;
        }
        *volume /= room.map_or(1.0, |room| room[local]);
    }
}

fn shares(model: &Model) -> Vec<Share> {
    let reference = model.lightest();
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
    /// What the particles of a block bring.
    fn block(&self, field: &Field, block: usize) -> Reach {
        let mut reach = [0.0; SUMS * REACHED];
        let here = field.particles_in(block);
        for start in here.clone().step_by(LANES) {
            self.add(field, block, start..here.end.min(start + LANES), &mut reach);
        }
        reach
    }

    /// Adds up to eight particles of a block.
    #[inline]
    fn add(&self, field: &Field, block: usize, few: Range<usize>, sums: &mut Reach) {
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
        let sums = &mut sums[OF_CELLS..];
        for (lane, particle) in few.enumerate() {
            let share = &self.shares[self.particles.material[particle] as usize];
            let cohesion = share.cohesion + share.wet * self.particles.wetness[particle];
            let brought = [1.0, share.sine, cohesion, share.mass].map(|part| part * self.volume);
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
        particles.permute(&field.order, &mut Vec::new());
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
