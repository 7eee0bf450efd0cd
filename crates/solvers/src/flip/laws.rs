//! What the coupled solve must know of a block before it starts: masses, openings, strengths, walls, and the stresses
//! remembered from the step before.

use super::boundary::{Boundary, Wall};
use super::coupled::{LEAST_MASS, StepInfo};
use super::field::Field;
use super::lanes::{BlockSetup, CellLaw, Edges, FLOATS, SEEN, WallWork};
use super::memory::Memory;
use super::sweep::{PAIRS, SIDES, STRIDE};
use crate::material::turning::{Turning, part_turned};
use barchan_base::grid::{CELLS, Halo, offset_number};
use glam::{Mat3, Vec3};

/// A cell filled by less than this inside the material may still close.
const CLOSING_FILL: f32 = 0.9;
/// Part of the full correction that a visit takes: with momentum, the full one overshoots.
pub(super) const RELAX: f32 = 0.7;
/// Flow slower than this part of what gravity gives in a step does not turn the direction of friction.
const SLOW: f32 = 0.02;
/// Friction is turned in full up to so much spin over shear.
const MOST_SPIN: f32 = 2.0;
/// How much of a cell's shear an edge at the surface bears. The material's own half of what is beside it does, and over that half the
/// stress falls to nothing.
const AT_SURFACE: f32 = 0.5;
/// The edge's velocities are seen by four cells of four octants; the step that keeps that stable.
const EDGE_SHARE: f32 = 0.5625;

/// Makes a block's part of the solve.
pub(super) fn block_setup(
    field: &Field,
    boundary: &Boundary,
    memory: &Memory,
    step: &StepInfo,
    block: usize,
) -> BlockSetup {
    let view = View::gather(field, boundary, block);
    let setup = Setup {
        field,
        boundary,
        step,
        block,
        view: &view,
    };
    let mut laws = [CellLaw::IDLE; CELLS];
    for (local, law) in laws.iter_mut().enumerate() {
        *law = setup.law(local);
    }
    let walls: Vec<WallWork> = boundary
        .walls(block)
        .iter()
        .filter(|wall| laws[wall.cell as usize % CELLS].active)
        .map(|wall| setup.wall(wall, memory))
        .collect();
    for wall in &walls {
        laws[wall.local].inflow += wall.area.dot(wall.velocity);
    }
    let mut stress = memory.stress(&field.grid, block);
    for (stress, law) in stress.iter_mut().zip(&laws) {
        if !law.active {
            *stress = [0.0; FLOATS];
        }
    }
    let cut = view.open.iter().flatten().any(|open| *open < 1.0);
    BlockSetup {
        block,
        stress,
        laws,
        mobility: view.mobility,
        open: cut.then(|| Box::new(view.open)),
        walls,
    }
}

/// A block and what lies about it.
struct View {
    /// Open parts of the faces, 1 / their mass, and how fast material arrived at them.
    open: [[f32; SEEN]; 3],
    mobility: [[f32; SEEN]; 3],
    arrival: [[f32; SEEN]; 3],
    /// Cells that are neither solid nor filled enough to carry anything.
    air: [bool; SEEN],
}

impl View {
    fn gather(field: &Field, boundary: &Boundary, block: usize) -> Self {
        let halo = Halo::<1>::new();
        let around = field.grid.around(block);
        let mut view = Self {
            open: [[1.0; SEEN]; 3],
            mobility: [[0.0; SEEN]; 3],
            arrival: [[0.0; SEEN]; 3],
            air: [false; SEEN],
        };
        let near = around.iter().any(|block| boundary.is_near(*block as usize));
        for axis in 0..3 {
            if near {
                halo.gather(around, &mut view.open[axis], |cell| {
                    boundary.open(axis, cell)
                });
            }
            let (mass, before) = (&field.mass[axis], &field.before[axis]);
            halo.gather(around, &mut view.arrival[axis], |cell| before[cell]);
            halo.gather(around, &mut view.mobility[axis], |cell| match mass[cell] {
                mass if mass > 0.0 => 1.0 / mass.max(LEAST_MASS),
                _ => 0.0,
            });
        }
        let mut active = [false; SEEN];
        halo.gather(around, &mut active, |cell| field.active[cell]);
        halo.gather(around, &mut view.air, |cell| {
            !field.active[cell] && !field.solid[cell]
        });
        close_idle_faces(&mut view.mobility, &view.open, &active);
        view
    }
}

/// Faces that are closed, or between cells that carry nothing, do not answer to stress.
fn close_idle_faces(
    mobility: &mut [[f32; SEEN]; 3],
    open: &[[f32; SEEN]; 3],
    active: &[bool; SEEN],
) {
    for (axis, stride) in STRIDE.into_iter().enumerate() {
        for i in 0..SEEN {
            // A face at the rim of what is seen has its lower cell out of sight; only its upper one counts, and no
            // stress of this block reaches it unless its own cell does.
            let below = i >= stride && active[i - stride];
            if open[axis][i] == 0.0 || !(active[i] || below) {
                mobility[axis][i] = 0.0;
            }
        }
    }
}

struct Setup<'a> {
    field: &'a Field,
    boundary: &'a Boundary,
    step: &'a StepInfo,
    block: usize,
    view: &'a View,
}

impl Setup<'_> {
    fn law(&self, local: usize) -> CellLaw {
        let at = Halo::<1>::inner(local);
        let cell = self.block * CELLS + local;
        let field = self.field;
        let (mut stiff, mut most) = (0.0, 0.0f32);
        for (axis, stride) in STRIDE.into_iter().enumerate() {
            let (open, mobility) = (&self.view.open[axis], &self.view.mobility[axis]);
            let answer = |face: usize| open[face] * open[face] * mobility[face];
            let both = answer(at) + answer(at + stride);
            stiff += both;
            most = most.max(both);
        }
        let mut edges = [Edges::NONE; 3];
        let mut edge_most = 0.0f32;
        for (pair, edges) in edges.iter_mut().enumerate() {
            let seen = self.edges_seen(at, pair);
            edge_most = seen.iter().fold(edge_most, |most, seen| most.max(seen.0));
            *edges = Edges::new([0, 1].map(|axis| seen.map(|(_, slopes)| slopes[axis])));
        }
        let sine = field.sine[cell];
        let cosine = (1.0 - sine * sine).max(0.0).sqrt();
        let cohesion = field.cohesion[cell] * self.step.dt * field.inverse;
        // A cell that is held keeps its pressure: nothing flows in or out of it.
        let (gap, pressure_step) = match field.held[cell] {
            true => (0.0, RELAX),
            false => (self.gap(local), RELAX / stiff.max(1e-6)),
        };
        CellLaw {
            active: field.active[cell] && stiff > 0.0,
            gap,
            sine,
            strength: cohesion * cosine,
            tension: if sine > 0.0 {
                cohesion * (cosine / sine).min(1.0)
            } else {
                0.0
            },
            pressure_step,
            deviator_step: RELAX / (2.0 * most).max(EDGE_SHARE * edge_most).max(1e-6),
            inflow: 0.0,
            turn: self.turn(at, sine, &edges),
            edges,
        }
    }

    /// How much the faces about each edge of a pair of axes answer to stress, and how much the slope of either axis' velocity counts
    /// there. At the surface one of them has none, for nothing lies beyond, and the other still does: were the edge closed, what stands two
    /// cells high there would have nothing to hold it, and no slope above 45 degrees would stand. Where a solid closes a face, the edge is
    /// closed: the wall rubs there.
    fn edges_seen(&self, at: usize, pair: usize) -> [(f32, [f32; 2]); 4] {
        let (a, b) = PAIRS[pair];
        SIDES[pair].map(|(i, j)| {
            let edge = at + i * STRIDE[a] + j * STRIDE[b];
            let sides = [(a, [edge, edge - STRIDE[b]]), (b, [edge, edge - STRIDE[a]])];
            match sides.map(|(axis, faces)| self.slope_seen(axis, faces)) {
                [Some(a), Some(b)] if a > 0.0 && b > 0.0 => (a + b, [1.0; 2]),
                [Some(a), Some(_)] if a > 0.0 => (a, [AT_SURFACE, 0.0]),
                [Some(_), Some(b)] if b > 0.0 => (b, [0.0, AT_SURFACE]),
                _ => (0.0, [0.0; 2]),
            }
        })
    }

    /// How much two faces beside each other answer to stress: not at all where one of them is beyond the surface; none where one is closed.
    fn slope_seen(&self, axis: usize, faces: [usize; 2]) -> Option<f32> {
        let mobility = faces.map(|face| self.view.mobility[axis][face]);
        if mobility.iter().all(|mobility| *mobility > 0.0) {
            return Some(mobility.iter().sum());
        }
        let mut each = faces.iter().zip(mobility);
        each.all(|(face, mobility)| mobility > 0.0 || self.is_loose(axis, *face))
            .then_some(0.0)
    }

    /// True of a face between two cells that carry nothing and are not solid.
    fn is_loose(&self, axis: usize, face: usize) -> bool {
        self.view.air[face] && self.view.air[face - STRIDE[axis]]
    }

    /// How fast the cell may close [m/s]: not at all at the surface or where it is full, and no more than it has space.
    fn gap(&self, local: usize) -> f32 {
        let at = Halo::<1>::inner(local);
        let faces_air = STRIDE
            .iter()
            .any(|stride| self.view.air[at - stride] || self.view.air[at + stride]);
        let field = self.field;
        let fill = smooth_fill(field, self.block, local);
        if faces_air || fill >= CLOSING_FILL {
            return 0.0;
        }
        let space = self.boundary.space(self.block * CELLS + local);
        (CLOSING_FILL - fill) / fill.max(0.1) * space * field.dx / self.step.dt
    }

    /// Turns the strain rate so that the plane of shearing is one that Mohr and Coulomb's law lets slide: by half the
    /// friction angle against the spin, or the part of it that this motion takes.
    fn turn(&self, at: usize, sine: f32, edges: &[Edges<f32>; 3]) -> Option<Mat3> {
        let u = &self.view.arrival;
        // Slopes over the cell, in its units: slope[a][b] is that of component a along axis b.
        let mut slope = [[0.0f32; 3]; 3];
        for (axis, stride) in STRIDE.into_iter().enumerate() {
            slope[axis][axis] = u[axis][at + stride] - u[axis][at];
        }
        for (pair, &(a, b)) in PAIRS.iter().enumerate() {
            let Edges {
                slopes, inverse, ..
            } = edges[pair];
            for (octant, &(i, j)) in SIDES[pair].iter().enumerate() {
                let edge = at + i * STRIDE[a] + j * STRIDE[b];
                let [of_a, of_b] = slopes.map(|slope| slope[octant] * inverse);
                slope[a][b] += of_a * (u[a][edge] - u[a][edge - STRIDE[b]]);
                slope[b][a] += of_b * (u[b][edge] - u[b][edge - STRIDE[a]]);
            }
        }
        let curl = Vec3::new(
            slope[2][1] - slope[1][2],
            slope[0][2] - slope[2][0],
            slope[1][0] - slope[0][1],
        );
        let pairs = (0..9).map(|i| (i / 3, i % 3));
        let rate: f32 = pairs
            .map(|(a, b)| (0.5 * (slope[a][b] + slope[b][a])).powi(2))
            .sum();
        let (spin, shear) = (curl.length(), (2.0 * rate).sqrt());
        let turning = Turning {
            slow: SLOW * self.step.push,
            most_spin: MOST_SPIN,
        };
        let part = part_turned(spin, shear, turning);
        if part < 1e-3 {
            return None;
        }
        Some(Mat3::from_axis_angle(
            curl / spin,
            -0.5 * sine.asin() * part,
        ))
    }

    /// Tangent of the friction angle in a cell. No wall holds more: beside a rougher one the material gives way itself, and if
    /// the wall held its last cell the layer that slides would be thinner by that.
    fn tangent(&self, cell: usize) -> f32 {
        let sine = self.field.sine[cell].min(0.999);
        sine / (1.0 - sine * sine).sqrt()
    }

    fn wall(&self, wall: &Wall, memory: &Memory) -> WallWork {
        let local = wall.cell as usize % CELLS;
        let at = Halo::<1>::inner(local);
        let size = wall.area.length();
        let normal = wall.area / size;
        let mut weights = [[0.0; 2]; 3];
        let mut stiff = 0.0f32;
        let mut arrival = -wall.velocity;
        for axis in 0..3 {
            let upper = at + STRIDE[axis];
            let (low, high) = (self.view.open[axis][at], self.view.open[axis][upper]);
            let sum = (low + high).max(1e-6);
            weights[axis] = [low / sum, high / sum];
            stiff = stiff.max(
                weights[axis][0].powi(2) * self.view.mobility[axis][at]
                    + weights[axis][1].powi(2) * self.view.mobility[axis][upper],
            );
            let there = self.field.grid.step(
                self.block,
                local,
                offset_number(
                    i32::from(axis == 0),
                    i32::from(axis == 1),
                    i32::from(axis == 2),
                ),
            );
            // At the face beside the wall: that half cell is what the stress at the centre does not know of.
            let beside = match normal[axis] > 0.0 {
                true => wall.cell as usize,
                false => there,
            };
            arrival[axis] += self.field.before[axis][beside];
        }
        let half = 0.5 * self.field.fill[wall.cell as usize].min(1.0) * size;
        let closing = -(arrival + self.step.pull).dot(normal);
        WallWork {
            lane: 0,
            local,
            body: wall.body as usize,
            area: wall.area,
            normal,
            friction: wall.friction.min(self.tangent(wall.cell as usize)),
            velocity: wall.velocity,
            extra: half * closing,
            half,
            weights,
            step: RELAX / stiff.max(1e-6),
            force: memory.wall_force(&self.field.grid, wall),
            load: Vec3::ZERO,
        }
    }
}

/// The fill of a cell averaged with that of its neighbours outside solids; its own where one of them carries nothing.
pub(super) fn smooth_fill(field: &Field, block: usize, local: usize) -> f32 {
    let weights = [0.25, 0.5, 0.25];
    let (mut sum, mut total) = (0.0, 0.0);
    for (k, wz) in weights.into_iter().enumerate() {
        for (j, wy) in weights.into_iter().enumerate() {
            for (i, wx) in weights.into_iter().enumerate() {
                let there = field.grid.step(block, local, i + 3 * j + 9 * k);
                if field.solid[there] {
                    continue;
                }
                if !field.active[there] {
                    return field.fill[block * CELLS + local];
                }
                sum += wx * wy * wz * field.fill[there];
                total += wx * wy * wz;
            }
        }
    }
    sum / total
}
