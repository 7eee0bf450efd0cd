//! What the coupled solve must know of a block before it starts: masses, openings, strengths, walls, and the stresses
//! remembered from the step before.

use super::boundary::{Boundary, Wall};
use super::coupled::{LEAST_MASS, StepInfo};
use super::field::Field;
use super::memory::Memory;
use super::sweep::{BlockWork, CellLaw, Edges, PAIRS, SEEN, SIDES, STRIDE, Stress, WallWork};
use barchan_base::grid::{CELLS, Halo, offset_number};
use glam::{Mat3, Vec3};

/// A cell filled by less than this inside the material may still close.
const CLOSING_FILL: f32 = 0.9;
/// Part of the full correction that a visit takes: with momentum, the full one overshoots.
const RELAX: f32 = 0.7;
/// Flow slower than this part of what gravity gives in a step does not turn the direction of friction.
const SLOW: f32 = 0.02;
/// The edge's velocities are seen by four cells of four octants; the step that keeps that stable.
const EDGE_SHARE: f32 = 0.5625;

/// Makes a block's part of the solve.
pub(super) fn block_work(
    field: &Field,
    boundary: &Boundary,
    memory: &Memory,
    step: &StepInfo,
    block: usize,
) -> BlockWork {
    let halo = Halo::<1>::new();
    let around = field.grid.around(block);
    let mut open = [[1.0; SEEN]; 3];
    let mut mobility = [[0.0; SEEN]; 3];
    let mut moving = [[false; SEEN]; 3];
    let mut arrival = [[0.0; SEEN]; 3];
    let near = around.iter().any(|block| boundary.is_near(*block as usize));
    for axis in 0..3 {
        if near {
            halo.gather(around, &mut open[axis], |cell| boundary.open(axis, cell));
        }
        let mass = &field.mass[axis];
        let before = &field.before[axis];
        halo.gather(around, &mut arrival[axis], |cell| before[cell]);
        halo.gather(around, &mut moving[axis], |cell| mass[cell] > 0.0);
        halo.gather(around, &mut mobility[axis], |cell| {
            if mass[cell] > 0.0 {
                1.0 / mass[cell].max(LEAST_MASS)
            } else {
                0.0
            }
        });
    }
    let mut active = [false; SEEN];
    halo.gather(around, &mut active, |cell| field.active[cell]);
    let mut air = [false; SEEN];
    halo.gather(around, &mut air, |cell| {
        !field.active[cell] && !field.solid[cell]
    });
    close_idle_faces(&mut mobility, &open, &active);
    let cut = open.iter().flatten().any(|open| *open < 1.0);
    let setup = Setup {
        field,
        step,
        block,
        mobility: &mobility,
        open: &open,
        moving: &moving,
        arrival: &arrival,
        air: &air,
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
            *stress = Stress::ZERO;
        }
    }
    BlockWork {
        block,
        before: stress,
        stress,
        laws,
        mobility,
        open: cut.then(|| Box::new(open)),
        walls,
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
    step: &'a StepInfo,
    block: usize,
    mobility: &'a [[f32; SEEN]; 3],
    open: &'a [[f32; SEEN]; 3],
    /// Faces that material moves, and how fast it arrived.
    moving: &'a [[bool; SEEN]; 3],
    arrival: &'a [[f32; SEEN]; 3],
    /// Cells that are neither solid nor filled enough to carry anything.
    air: &'a [bool; SEEN],
}

impl Setup<'_> {
    fn law(&self, local: usize) -> CellLaw {
        let at = Halo::<1>::inner(local);
        let cell = self.block * CELLS + local;
        let field = self.field;
        let mut stiff = 0.0;
        let mut most = 0.0f32;
        for axis in 0..3 {
            let upper = at + STRIDE[axis];
            let low = self.open[axis][at] * self.open[axis][at] * self.mobility[axis][at];
            let high = self.open[axis][upper] * self.open[axis][upper] * self.mobility[axis][upper];
            stiff += low + high;
            most = most.max(low + high);
        }
        let mut edges = [Edges::NONE; 3];
        let mut edge_most = 0.0f32;
        for (pair, &(a, b)) in PAIRS.iter().enumerate() {
            let lanes: [f32; 4] = std::array::from_fn(|octant| {
                let (i, j) = SIDES[pair][octant];
                let edge = at + i * STRIDE[a] + j * STRIDE[b];
                let faces = [
                    (a, edge),
                    (a, edge - STRIDE[b]),
                    (b, edge),
                    (b, edge - STRIDE[a]),
                ];
                let is_open = faces
                    .iter()
                    .all(|&(axis, face)| self.open[axis][face] > 0.0 && self.moving[axis][face]);
                let share: f32 = faces
                    .iter()
                    .map(|&(axis, face)| self.mobility[axis][face])
                    .sum();
                edge_most = edge_most.max(if is_open { share } else { 0.0 });
                f32::from(is_open)
            });
            edges[pair] = Edges::new(lanes);
        }
        let sine = field.sine[cell];
        let cosine = (1.0 - sine * sine).max(0.0).sqrt();
        let cohesion = field.cohesion[cell] * self.step.dt * field.inverse;
        CellLaw {
            active: field.active[cell] && stiff > 0.0,
            gap: self.gap(local),
            sine,
            strength: cohesion * cosine,
            tension: if sine > 0.0 {
                cohesion * (cosine / sine).min(1.0)
            } else {
                0.0
            },
            pressure_step: RELAX / stiff.max(1e-6),
            deviator_step: RELAX / (2.0 * most).max(EDGE_SHARE * edge_most).max(1e-6),
            inflow: 0.0,
            turn: self.turn(at, sine, &edges),
            edges,
        }
    }

    /// How fast the cell may close [m/s]: not at all at the surface or where it is full.
    fn gap(&self, local: usize) -> f32 {
        let at = Halo::<1>::inner(local);
        let faces_air = STRIDE
            .iter()
            .any(|stride| self.air[at - stride] || self.air[at + stride]);
        let field = self.field;
        let fill = smooth_fill(field, self.block, local);
        if faces_air || fill >= CLOSING_FILL {
            return 0.0;
        }
        (CLOSING_FILL - fill) / fill.max(0.1) * field.dx / self.step.dt
    }

    /// Turns the strain rate so that the plane of shearing is one that Mohr and Coulomb's law lets slide: by half the
    /// friction angle against the spin, in proportion to how much of the motion is spin.
    fn turn(&self, at: usize, sine: f32, edges: &[Edges; 3]) -> Option<Mat3> {
        let u = self.arrival;
        // Slopes over the cell, in its units: slope[a][b] is that of component a along axis b.
        let mut slope = [[0.0f32; 3]; 3];
        for (axis, stride) in STRIDE.into_iter().enumerate() {
            slope[axis][axis] = u[axis][at + stride] - u[axis][at];
        }
        for (pair, &(a, b)) in PAIRS.iter().enumerate() {
            let open = edges[pair].open.to_array();
            for (octant, &(i, j)) in SIDES[pair].iter().enumerate() {
                let edge = at + i * STRIDE[a] + j * STRIDE[b];
                let share = open[octant] * edges[pair].inverse;
                slope[a][b] += share * (u[a][edge] - u[a][edge - STRIDE[b]]);
                slope[b][a] += share * (u[b][edge] - u[b][edge - STRIDE[a]]);
            }
        }
        let curl = Vec3::new(
            slope[2][1] - slope[1][2],
            slope[0][2] - slope[2][0],
            slope[1][0] - slope[0][1],
        );
        let mut rate = 0.0;
        for a in 0..3 {
            for b in 0..3 {
                rate += (0.5 * (slope[a][b] + slope[b][a])).powi(2);
            }
        }
        let spin = curl.length();
        let part = (spin / ((2.0 * rate).sqrt() + SLOW * self.step.push)).min(1.0);
        if part < 1e-3 {
            return None;
        }
        Some(Mat3::from_axis_angle(
            curl / spin,
            -0.5 * sine.asin() * part,
        ))
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
            let (low, high) = (self.open[axis][at], self.open[axis][upper]);
            let sum = (low + high).max(1e-6);
            weights[axis] = [low / sum, high / sum];
            stiff = stiff.max(
                weights[axis][0].powi(2) * self.mobility[axis][at]
                    + weights[axis][1].powi(2) * self.mobility[axis][upper],
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
            let raw = &self.field.before[axis];
            arrival[axis] += 0.5 * (raw[wall.cell as usize] + raw[there]);
        }
        let fill = self.field.fill[wall.cell as usize].min(1.0);
        let closing = (-(arrival.dot(normal)) + self.step.pull.dot(-normal)).max(0.0);
        let force = memory.wall_force(&self.field.grid, wall);
        WallWork {
            local,
            body: wall.body as usize,
            area: wall.area,
            normal,
            size,
            friction: wall.friction,
            velocity: wall.velocity,
            extra: 0.5 * fill * closing * size,
            weights,
            step: RELAX / stiff.max(1e-6),
            force,
            before: force,
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
