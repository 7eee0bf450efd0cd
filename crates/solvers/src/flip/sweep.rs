//! One visit of the coupled solve to a group of blocks: each cell's pressure, deviators and wall friction, one after the other.

use super::lanes::{Group, Law, SEEN, Seen, Stress, WallLanes};
use crate::material::yield_surface::{Deviators, scale_to_yield};
use barchan_base::grid::{BlockGrid, CELLS, Halo, SharedFloats};
use wide::f32x8;

/// Steps along each axis in what a block sees.
pub(super) const STRIDE: [usize; 3] = [1, 6, 36];

/// The edges that the four octants of a cell see, for each pair of axes: which side along each, octant by octant.
pub(super) const SIDES: [[(usize, usize); 4]; 3] = [
    [(0, 0), (1, 0), (0, 1), (1, 1)], // y, z
    [(0, 0), (1, 0), (1, 1), (0, 1)], // x, z
    [(0, 0), (1, 1), (1, 0), (0, 1)], // x, y
];
/// The pairs of axes.
pub(super) const PAIRS: [(usize, usize); 3] = [(1, 2), (0, 2), (0, 1)];

/// How far a sweep went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Sum of the squared changes, as velocities.
    pub change: f64,
    /// Positive where the sweep went against the momentum.
    pub turned_back: f64,
}

/// The same during a visit.
struct Sums {
    change: f32x8,
    turned_back: f32x8,
}

/// The faces that blocks of one colour have in hand side by side.
pub(super) struct SharedFaces<'a> {
    pub grid: &'a BlockGrid,
    pub halo: &'a Halo<1>,
    pub velocity: [SharedFloats<'a>; 3],
}

/// A visit to a group.
pub(super) struct Sweep<'a> {
    pub faces: &'a SharedFaces<'a>,
    pub momentum: f32,
    /// Square of a strain rate that is next to nothing.
    pub still: f32,
    pub backward: bool,
}

/// What one cell can reach in a block's view, from `BACK` before it on: of a fixed size, so that no index needs a check.
const BACK: usize = STRIDE[2];
type Window = [f32x8; BACK + STRIDE[2] + STRIDE[1] + 1];

#[inline]
fn window(values: &[f32x8; SEEN], at: usize) -> &Window {
    values[at - BACK..]
        .first_chunk()
        .expect("a cell of the block is never at the rim of the view")
}

#[inline]
fn window_mut(values: &mut [f32x8; SEEN], at: usize) -> &mut Window {
    values[at - BACK..]
        .first_chunk_mut()
        .expect("a cell of the block is never at the rim of the view")
}

impl Sweep<'_> {
    fn load(&self, group: &Group) -> Seen {
        let faces = self.faces;
        let mut seen = [[f32x8::ZERO; SEEN]; 3];
        for (lane, block) in group.blocks.iter().enumerate() {
            let around = faces.grid.around(*block);
            for (seen, from) in seen.iter_mut().zip(faces.velocity) {
                faces.halo.scatter(around, |cell, i| {
                    seen[i].as_mut_array()[lane] = from.get(cell);
                });
            }
        }
        seen
    }

    fn store(&self, group: &Group, seen: &Seen) {
        let faces = self.faces;
        let outside = faces.grid.len() * CELLS;
        for (lane, block) in group.blocks.iter().enumerate() {
            let around = faces.grid.around(*block);
            for (seen, to) in seen.iter().zip(faces.velocity) {
                faces.halo.scatter(around, |cell, i| {
                    if cell < outside {
                        to.set(cell, seen[i].as_array()[lane]);
                    }
                });
            }
        }
    }

    /// Adds what the group's present stresses do to the velocity.
    pub fn push(&self, group: &Group) {
        let mut u = self.load(group);
        for local in (0..CELLS).filter(|local| group.laws[*local].active) {
            let mut cell = Cell::new(&mut u, group, local);
            let stress = &group.stress[local];
            cell.push_faces([
                stress.xx - stress.pressure,
                stress.yy - stress.pressure,
                -stress.xx - stress.yy - stress.pressure,
            ]);
            cell.push_edges(group, &group.laws[local], stress.shear);
        }
        for wall in &group.wall_lanes {
            rub(&mut u, &group.mobility, wall, wall.force);
        }
        self.store(group, &u);
    }

    /// One sweep over the group's cells.
    pub fn group(&self, group: &mut Group) -> Progress {
        let mut u = self.load(group);
        let mut sums = Sums {
            change: f32x8::ZERO,
            turned_back: f32x8::ZERO,
        };
        let mut walls = std::mem::take(&mut group.wall_lanes);
        let mut wall = if self.backward { walls.len() } else { 0 };
        for turn in 0..CELLS {
            let local = if self.backward {
                CELLS - 1 - turn
            } else {
                turn
            };
            if group.laws[local].active {
                self.cell(&mut u, group, local, &mut sums);
            }
            if self.backward {
                while wall > 0 && walls[wall - 1].local == local {
                    wall -= 1;
                    self.wall(&mut u, group, &mut walls[wall], &mut sums);
                }
            } else {
                while wall < walls.len() && walls[wall].local == local {
                    self.wall(&mut u, group, &mut walls[wall], &mut sums);
                    wall += 1;
                }
            }
        }
        group.wall_lanes = walls;
        self.store(group, &u);
        Progress {
            change: f64::from(sums.change.reduce_add()),
            turned_back: f64::from(sums.turned_back.reduce_add()),
        }
    }

    #[inline]
    fn cell(&self, u: &mut Seen, group: &mut Group, local: usize, sums: &mut Sums) {
        let now = group.stress[local];
        let back = group.before[local].plus(&now, -f32x8::ONE);
        let ahead = now.plus(&back, f32x8::splat(-self.momentum));
        let law = &group.laws[local];
        let mut cell = Cell::new(u, group, local);
        let (mut stretch, answer) = cell.stretch();
        let closing = stretch[0] + stretch[1] + stretch[2] + law.gap;
        let pressure = (ahead.pressure - law.pressure_step * closing).fast_max(-law.tension);
        let rise = pressure - ahead.pressure;
        for (stretch, answer) in stretch.iter_mut().zip(answer) {
            *stretch += rise * answer;
        }
        cell.push_faces([-rise; 3]);
        let rates = cell.rates(group, law, stretch);
        let mut then = self.yielded(law, &ahead, &rates, pressure);
        then.pressure = pressure;
        let change = then.plus(&ahead, -f32x8::ONE);
        cell.push_faces([change.xx, change.yy, -change.xx - change.yy]);
        cell.push_edges(group, law, change.shear);
        // Both measures weigh a change by what it does to velocity.
        let moved = then.plus(&now, -f32x8::ONE);
        let (p, d) = (law.pressure_weight, law.deviator_weight);
        let two = f32x8::splat(2.0);
        let (rose, sheared) = (rise * p, change.inner(&change) * d * d);
        sums.change += rose * rose + two * sheared;
        sums.turned_back -= rise * moved.pressure * p + two * change.inner(&moved) * d;
        group.before[local] = now;
        group.stress[local] = then;
    }

    /// The deviators after a step along the strain rates and back to the yield surface.
    #[inline]
    fn yielded(&self, law: &Law, from: &Stress, rates: &[Deviators; 4], pressure: f32x8) -> Stress {
        let mut share = [f32x8::splat(self.still); 4];
        let mut total = f32x8::ZERO;
        for (share, rate) in share.iter_mut().zip(rates) {
            *share += rate.square();
            total += *share;
        }
        let inverse = f32x8::ONE / total;
        let (mut xx, mut yy) = (f32x8::ZERO, f32x8::ZERO);
        for (share, rate) in share.iter_mut().zip(rates) {
            *share *= inverse;
            xx += rate.xx * *share;
            yy += rate.yy * *share;
        }
        xx = from.xx + xx * law.deviator_step;
        yy = from.yy + yy * law.deviator_step;
        let strength = law.sine * pressure + law.strength;
        let mut common = f32x8::ZERO;
        let mut stress = Stress::ZERO;
        for octant in 0..4 {
            let trial = Deviators {
                xx,
                yy,
                yz: from.shear[0][octant] + rates[octant].yz * law.deviator_step,
                xz: from.shear[1][octant] + rates[octant].xz * law.deviator_step,
                xy: from.shear[2][octant] + rates[octant].xy * law.deviator_step,
            };
            let scale = scale_to_yield(&trial, strength, law.sine);
            common += scale * share[octant];
            stress.shear[0][octant] = trial.yz * scale;
            stress.shear[1][octant] = trial.xz * scale;
            stress.shear[2][octant] = trial.xy * scale;
        }
        stress.xx = xx * common;
        stress.yy = yy * common;
        stress
    }

    #[inline]
    fn wall(&self, u: &mut Seen, group: &Group, wall: &mut WallLanes, sums: &mut Sums) {
        let at = Halo::<1>::inner(wall.local);
        let slide = |axis: usize| {
            let [low, high] = wall.weights[axis];
            low * u[axis][at] + high * u[axis][at + STRIDE[axis]] - wall.velocity[axis]
        };
        let sliding = [slide(0), slide(1), slide(2)];
        let into = inner(&sliding, &wall.normal);
        let limit = wall.push(&group.stress[wall.local]) + wall.extra;
        let limit = wall.friction * limit.fast_max(f32x8::ZERO);
        let momentum = f32x8::splat(self.momentum);
        let ahead: [f32x8; 3] = std::array::from_fn(|axis| {
            wall.force[axis] + momentum * (wall.force[axis] - wall.before[axis])
        });
        let trial: [f32x8; 3] = std::array::from_fn(|axis| {
            ahead[axis] + (sliding[axis] - wall.normal[axis] * into) * wall.step
        });
        let size = inner(&trial, &trial).sqrt().fast_max(f32x8::splat(1e-20));
        let scale = (limit / size).fast_min(f32x8::ONE);
        let force = trial.map(|trial| trial * scale);
        let change = std::array::from_fn(|axis| force[axis] - ahead[axis]);
        let moved = std::array::from_fn(|axis| force[axis] - wall.force[axis]);
        wall.before = wall.force;
        wall.force = force;
        rub(u, &group.mobility, wall, change);
        sums.change += inner(&change, &change) * wall.stiffness * wall.stiffness;
        sums.turned_back -= inner(&change, &moved) * wall.stiffness;
    }
}

#[inline]
fn inner(a: &[f32x8; 3], b: &[f32x8; 3]) -> f32x8 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// A cell and the faces it reaches.
struct Cell<'a> {
    u: [&'a mut Window; 3],
    mobility: [&'a Window; 3],
    /// Open parts of the lower and the upper face of each axis.
    open: [[f32x8; 2]; 3],
}

impl<'a> Cell<'a> {
    #[inline]
    fn new(u: &'a mut Seen, group: &'a Group, local: usize) -> Self {
        let at = Halo::<1>::inner(local);
        let [ux, uy, uz] = u;
        let open = match &group.open {
            None => [[f32x8::ONE; 2]; 3],
            Some(open) => [0, 1, 2].map(|axis| [open[axis][at], open[axis][at + STRIDE[axis]]]),
        };
        Self {
            u: [window_mut(ux, at), window_mut(uy, at), window_mut(uz, at)],
            mobility: [0, 1, 2].map(|axis| window(&group.mobility[axis], at)),
            open,
        }
    }

    /// How fast the cell stretches along each axis, and how much more for each unit of pressure.
    #[inline]
    fn stretch(&self) -> ([f32x8; 3], [f32x8; 3]) {
        let (mut stretch, mut answer) = ([f32x8::ZERO; 3], [f32x8::ZERO; 3]);
        for axis in 0..3 {
            let [low, high] = self.open[axis];
            let upper = BACK + STRIDE[axis];
            stretch[axis] = high * self.u[axis][upper] - low * self.u[axis][BACK];
            answer[axis] =
                low * low * self.mobility[axis][BACK] + high * high * self.mobility[axis][upper];
        }
        (stretch, answer)
    }

    /// The strain rates that the octants see, turned to where friction opposes them.
    #[inline]
    fn rates(&self, group: &Group, law: &Law, stretch: [f32x8; 3]) -> [Deviators; 4] {
        let [x, y, z] = &self.u;
        let half = f32x8::splat(0.5);
        let shear = [
            edge_slopes::<0>(y, z),
            edge_slopes::<1>(x, z),
            edge_slopes::<2>(x, y),
        ];
        let shear = match law.edges {
            None => {
                shear.map(|[a, b]| std::array::from_fn(|octant| half * (a[octant] + b[octant])))
            }
            Some(place) => {
                let edges = &group.edges[place as usize];
                std::array::from_fn(|pair| edges[pair].rates(&shear[pair]))
            }
        };
        let mean = (stretch[0] + stretch[1] + stretch[2]) * f32x8::splat(1.0 / 3.0);
        let rates = std::array::from_fn(|octant| Deviators {
            xx: stretch[0] - mean,
            yy: stretch[1] - mean,
            yz: shear[0][octant],
            xz: shear[1][octant],
            xy: shear[2][octant],
        });
        match law.turn {
            None => rates,
            Some(place) => rates.map(|rate| rate.turned(&group.turns[place as usize])),
        }
    }

    /// What a change of the stresses along the axes does to the cell's own six faces.
    #[inline]
    fn push_faces(&mut self, change: [f32x8; 3]) {
        for axis in 0..3 {
            let [low, high] = self.open[axis];
            let upper = BACK + STRIDE[axis];
            self.u[axis][BACK] += self.mobility[axis][BACK] * low * change[axis];
            self.u[axis][upper] -= self.mobility[axis][upper] * high * change[axis];
        }
    }

    /// What a change of the shear stresses does to the faces about the twelve edges.
    #[inline]
    fn push_edges(&mut self, group: &Group, law: &Law, change: [[f32x8; 4]; 3]) {
        let change = match law.edges {
            None => change.map(|change| [change; 2]),
            Some(place) => {
                let edges = &group.edges[place as usize];
                std::array::from_fn(|pair| edges[pair].stresses(change[pair]))
            }
        };
        let [x, y, z] = &mut self.u;
        let [mx, my, mz] = self.mobility;
        push_pair::<0>((&mut *y, my), (&mut *z, mz), &change[0]);
        push_pair::<1>((&mut *x, mx), (&mut *z, mz), &change[1]);
        push_pair::<2>((&mut *x, mx), (&mut *y, my), &change[2]);
    }
}

/// How the velocities of two axes change across the four edges of the pair: that of the first along the second, and the other way.
#[inline]
fn edge_slopes<const PAIR: usize>(ua: &Window, ub: &Window) -> [[f32x8; 4]; 2] {
    let (a, b) = (STRIDE[PAIRS[PAIR].0], STRIDE[PAIRS[PAIR].1]);
    let mut slopes = [[f32x8::ZERO; 4]; 2];
    for octant in 0..4 {
        let (i, j) = SIDES[PAIR][octant];
        let edge = BACK + i * a + j * b;
        slopes[0][octant] = ua[edge] - ua[edge - b];
        slopes[1][octant] = ub[edge] - ub[edge - a];
    }
    slopes
}

/// What the stresses at the four edges of a pair of axes do to the faces of either.
#[inline]
fn push_pair<const PAIR: usize>(
    (ua, ma): (&mut Window, &Window),
    (ub, mb): (&mut Window, &Window),
    stresses: &[[f32x8; 4]; 2],
) {
    let (a, b) = (STRIDE[PAIRS[PAIR].0], STRIDE[PAIRS[PAIR].1]);
    let quarter = f32x8::splat(0.25);
    for octant in 0..4 {
        let (i, j) = SIDES[PAIR][octant];
        let edge = BACK + i * a + j * b;
        let [to_a, to_b] = [0, 1].map(|axis| stresses[axis][octant] * quarter);
        ua[edge] -= ma[edge] * to_a;
        ua[edge - b] += ma[edge - b] * to_a;
        ub[edge] -= mb[edge] * to_b;
        ub[edge - a] += mb[edge - a] * to_b;
    }
}

/// What a change of the walls' friction does to the faces of their cells.
#[inline]
fn rub(u: &mut Seen, mobility: &Seen, wall: &WallLanes, change: [f32x8; 3]) {
    let at = Halo::<1>::inner(wall.local);
    for axis in 0..3 {
        let [low, high] = wall.weights[axis];
        for (face, weight) in [(at, low), (at + STRIDE[axis], high)] {
            u[axis][face] -= mobility[axis][face] * weight * change[axis];
        }
    }
}
