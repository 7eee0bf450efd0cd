//! One visit of the coupled solve to a block: each cell's pressure, deviators and wall friction, one after the other.

use crate::material::yield_surface::{Deviators, scale_to_yield};
use barchan_base::grid::{BlockGrid, CELLS, Halo, SharedFloats};
use glam::{Mat3, Vec3};
use wide::f32x4;

/// Cells of a block with one more on each side.
pub(super) const SEEN: usize = Halo::<1>::CELLS;
/// Steps in it along each axis.
pub(super) const STRIDE: [usize; 3] = [1, 6, 36];

/// The edges that the four octants of a cell see, for each pair of axes: which side along each, octant by octant.
pub(super) const SIDES: [[(usize, usize); 4]; 3] = [
    [(0, 0), (1, 0), (0, 1), (1, 1)], // y, z
    [(0, 0), (1, 0), (1, 1), (0, 1)], // x, z
    [(0, 0), (1, 1), (1, 0), (0, 1)], // x, y
];
/// The pairs of axes.
pub(super) const PAIRS: [(usize, usize); 3] = [(1, 2), (0, 2), (0, 1)];

/// The stresses of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stress {
    pub pressure: f32,
    pub deviators: Deviators,
}

impl Stress {
    pub const ZERO: Self = Self {
        pressure: 0.0,
        deviators: Deviators::ZERO,
    };
}

/// The four edges of a cell along one axis, as its octants see them.
///
/// At a wall an edge is closed: the wall rubs there instead. The octant beside it then shears as those at the open edges do;
/// left alone it would never yield, and bear the load without the pressure that friction needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges {
    /// 1 for each open edge, 0 for the others.
    pub open: f32x4,
    /// 1 / the number of open edges, and a quarter of it.
    pub inverse: f32,
    pub quarter: f32,
}

impl Edges {
    pub const NONE: Self = Self {
        open: f32x4::ZERO,
        inverse: 0.0,
        quarter: 0.0,
    };

    pub fn new(open: [f32; 4]) -> Self {
        let count: f32 = open.iter().sum();
        Self {
            open: f32x4::from(open),
            inverse: if count > 0.0 { 1.0 / count } else { 0.0 },
            quarter: 0.25 * count,
        }
    }

    /// The rates of all four octants from those at the open edges.
    #[inline]
    fn rates(&self, rates: [f32; 4]) -> f32x4 {
        let open = f32x4::from(rates) * self.open;
        if self.quarter > 0.99 {
            return open;
        }
        let mean = f32x4::splat(open.reduce_add() * self.inverse);
        open + mean * (f32x4::ONE - self.open)
    }

    /// The stress at the open edges from that of all four octants: what they bear together, shared among them.
    #[inline]
    fn stresses(&self, stress: f32x4) -> f32x4 {
        if self.quarter > 0.99 {
            return stress;
        }
        let closed = (stress * (f32x4::ONE - self.open)).reduce_add() * self.inverse;
        (stress + f32x4::splat(closed)) * self.open * f32x4::splat(self.quarter)
    }
}

/// What does not change for a cell during the solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellLaw {
    pub active: bool,
    /// How fast the cell may still close [m/s].
    pub gap: f32,
    /// Sine of the friction angle.
    pub sine: f32,
    /// Strength without pressure, and the tension it bears, both scaled as the pressure is.
    pub strength: f32,
    pub tension: f32,
    /// Steps of the pressure and of the deviators.
    pub pressure_step: f32,
    pub deviator_step: f32,
    /// What walls that move push into the cell.
    pub inflow: f32,
    /// The edges of each pair of axes.
    pub edges: [Edges; 3],
    /// Turns the strain rate into the direction that friction opposes; `None` turns nothing.
    pub turn: Option<Mat3>,
}

impl CellLaw {
    /// Of a cell that carries nothing.
    pub const IDLE: Self = Self {
        active: false,
        gap: 0.0,
        sine: 0.0,
        strength: 0.0,
        tension: 0.0,
        pressure_step: 0.0,
        deviator_step: 0.0,
        inflow: 0.0,
        edges: [Edges::NONE; 3],
        turn: None,
    };
}

/// A piece of wall in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallWork {
    pub local: usize,
    pub body: usize,
    pub area: Vec3,
    pub normal: Vec3,
    pub friction: f32,
    pub velocity: Vec3,
    /// Normal push that the cell's centre does not see: half the cell's weight and impact.
    pub extra: f32,
    /// Weights of the lower and upper face in the cell's velocity, by axis.
    pub weights: [[f32; 2]; 3],
    pub step: f32,
    pub force: Vec3,
    pub before: Vec3,
}

impl WallWork {
    /// What the wall does to the material along its normal.
    pub fn push(&self, work: &BlockWork) -> Vec3 {
        let stress = &work.stress[self.local];
        self.area * stress.pressure - mean_times(&stress.deviators, self.area)
    }
}

/// A block's part of the solve.
#[derive(Clone, Debug)]
pub(super) struct BlockWork {
    pub block: usize,
    pub stress: [Stress; CELLS],
    pub before: [Stress; CELLS],
    pub laws: [CellLaw; CELLS],
    /// 1 / mass of the faces it sees; 0 where they cannot move.
    pub mobility: [[f32; SEEN]; 3],
    /// Open parts of the faces it sees, where any is not wholly open.
    pub open: Option<Box<[[f32; SEEN]; 3]>>,
    /// In the order of their cells.
    pub walls: Vec<WallWork>,
}

impl BlockWork {
    pub fn active_cells(&self) -> usize {
        self.laws.iter().filter(|law| law.active).count()
    }
}

/// How far a sweep went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Sum of the squared changes, as velocities.
    pub change: f64,
    /// Positive where the sweep went against the momentum.
    pub turned_back: f64,
}

/// A visit to a block.
pub(super) struct Sweep<'a> {
    pub grid: &'a BlockGrid,
    pub halo: &'a Halo<1>,
    pub velocity: &'a [SharedFloats; 3],
    pub momentum: f32,
    /// Square of a strain rate that is next to nothing.
    pub still: f32,
    pub backward: bool,
}

type Velocities = [[f32; SEEN]; 3];

/// What one cell can reach in a block's view, from `BACK` before it on: of a fixed size, so that no index needs a check.
const BACK: usize = STRIDE[2];
type Window = [f32; BACK + STRIDE[2] + STRIDE[1] + 1];

#[inline]
fn window(values: &[f32; SEEN], at: usize) -> &Window {
    values[at - BACK..]
        .first_chunk()
        .expect("a cell of the block is never at the rim of the view")
}

#[inline]
fn window_mut(values: &mut [f32; SEEN], at: usize) -> &mut Window {
    values[at - BACK..]
        .first_chunk_mut()
        .expect("a cell of the block is never at the rim of the view")
}

impl Sweep<'_> {
    fn load(&self, block: usize) -> Velocities {
        let mut local = [[0.0; SEEN]; 3];
        for (axis, local) in local.iter_mut().enumerate() {
            let from = &self.velocity[axis];
            self.halo
                .gather(self.grid.around(block), local, |cell| from.get(cell));
        }
        local
    }

    fn store(&self, block: usize, local: &Velocities) {
        let outside = self.grid.len() * CELLS;
        for (axis, local) in local.iter().enumerate() {
            let to = &self.velocity[axis];
            self.halo.scatter(self.grid.around(block), |cell, i| {
                if cell < outside {
                    to.set(cell, local[i]);
                }
            });
        }
    }

    /// Adds what the block's present stresses do to the velocity.
    pub fn push(&self, work: &mut BlockWork) {
        let mut u = self.load(work.block);
        for local in 0..CELLS {
            if work.laws[local].active {
                let at = Halo::<1>::inner(local);
                let [ux, uy, uz] = &mut u;
                let mut cell = Cell {
                    u: [window_mut(ux, at), window_mut(uy, at), window_mut(uz, at)],
                    mobility: [0, 1, 2].map(|axis| window(&work.mobility[axis], at)),
                    open: open_sides(work, at),
                };
                let stress = &work.stress[local];
                let along = diagonal(&stress.deviators).map(|along| along - stress.pressure);
                cell.push_faces(along);
                cell.push_edges(&work.laws[local], &stress.deviators);
            }
        }
        for wall in 0..work.walls.len() {
            let w = work.walls[wall];
            rub(&mut u, &work.mobility, &w, w.force);
        }
        self.store(work.block, &u);
    }

    /// One sweep over the block's cells.
    pub fn block(&self, work: &mut BlockWork) -> Progress {
        let mut u = self.load(work.block);
        let mut progress = Progress::default();
        let mut wall = if self.backward { work.walls.len() } else { 0 };
        for turn in 0..CELLS {
            let local = if self.backward {
                CELLS - 1 - turn
            } else {
                turn
            };
            if work.laws[local].active {
                self.cell(&mut u, work, local, &mut progress);
            }
            if self.backward {
                while wall > 0 && work.walls[wall - 1].local == local {
                    wall -= 1;
                    self.wall(&mut u, work, wall, &mut progress);
                }
            } else {
                while wall < work.walls.len() && work.walls[wall].local == local {
                    self.wall(&mut u, work, wall, &mut progress);
                    wall += 1;
                }
            }
        }
        self.store(work.block, &u);
        progress
    }

    #[inline]
    fn cell(
        &self,
        u: &mut Velocities,
        work: &mut BlockWork,
        local: usize,
        progress: &mut Progress,
    ) {
        let now = work.stress[local];
        let then = work.before[local];
        let momentum = f32x4::splat(self.momentum);
        let ahead = Stress {
            pressure: now.pressure + self.momentum * (now.pressure - then.pressure),
            deviators: now
                .deviators
                .plus(&now.deviators.plus(&then.deviators, -f32x4::ONE), momentum),
        };
        let law = &work.laws[local];
        let at = Halo::<1>::inner(local);
        let [ux, uy, uz] = u;
        let mut cell = Cell {
            u: [window_mut(ux, at), window_mut(uy, at), window_mut(uz, at)],
            mobility: [0, 1, 2].map(|axis| window(&work.mobility[axis], at)),
            open: open_sides(work, at),
        };
        let (mut stretch, answer) = cell.stretch();
        let divergence = stretch[0] + stretch[1] + stretch[2] - law.inflow;
        let pressure =
            (ahead.pressure - law.pressure_step * (divergence + law.gap)).max(-law.tension);
        let rise = pressure - ahead.pressure;
        for (stretch, answer) in stretch.iter_mut().zip(answer) {
            *stretch += rise * answer;
        }
        cell.push_faces([-rise; 3]);
        let mean = (stretch[0] + stretch[1] + stretch[2]) * (1.0 / 3.0);
        let mut rate = cell.shear(law);
        rate.xx = f32x4::splat(stretch[0] - mean);
        rate.yy = f32x4::splat(stretch[1] - mean);
        let deviators = self.yielded(law, &ahead.deviators, rate, pressure);
        let change = deviators.plus(&ahead.deviators, -f32x4::ONE);
        cell.push_faces(diagonal(&change));
        cell.push_edges(law, &change);
        let moved = deviators.plus(&now.deviators, -f32x4::ONE);
        // Both measures weigh a change by what it does to velocity.
        let squares = change.square().reduce_add() * 0.25;
        let (p, d) = (1.0 / law.pressure_step, 1.0 / law.deviator_step);
        progress.change += f64::from(rise * p * rise * p + 2.0 * squares * d * d);
        let against = rise * (pressure - now.pressure) * p + 2.0 * inner(&change, &moved) * d;
        progress.turned_back -= f64::from(against);
        work.before[local] = now;
        work.stress[local] = Stress {
            pressure,
            deviators,
        };
    }

    /// The deviators after a step along the strain rate and back to the yield surface.
    #[inline]
    fn yielded(
        &self,
        law: &CellLaw,
        from: &Deviators,
        mut rate: Deviators,
        pressure: f32,
    ) -> Deviators {
        if let Some(turn) = &law.turn {
            rate = turned(&rate, turn);
        }
        // The octants have one diagonal: that of those that shear. An octant that does not would keep, unseen, a
        // diagonal that takes load off the pressure, and friction would be short of it.
        let share = rate.square() + f32x4::splat(self.still);
        let share = share * f32x4::splat(1.0 / share.reduce_add());
        rate.xx = f32x4::splat((rate.xx * share).reduce_add());
        rate.yy = f32x4::splat((rate.yy * share).reduce_add());
        let trial = from.plus(&rate, f32x4::splat(law.deviator_step));
        let strength = law.sine * pressure + law.strength;
        let scale = scale_to_yield(&trial, strength, law.sine);
        let common = f32x4::splat((scale * share).reduce_add());
        let mut deviators = trial.scaled(scale);
        deviators.xx = trial.xx * common;
        deviators.yy = trial.yy * common;
        deviators
    }

    fn wall(&self, u: &mut Velocities, work: &mut BlockWork, wall: usize, progress: &mut Progress) {
        let mut w = work.walls[wall];
        let law = &work.laws[w.local];
        if !law.active {
            return;
        }
        let ahead = w.force + self.momentum * (w.force - w.before);
        let at = Halo::<1>::inner(w.local);
        let mut sliding = -w.velocity;
        for axis in 0..3 {
            let [low, high] = w.weights[axis];
            sliding[axis] += low * u[axis][at] + high * u[axis][at + STRIDE[axis]];
        }
        sliding -= w.normal * w.normal.dot(sliding);
        let push = w.push(work).dot(w.normal).max(0.0) + w.extra;
        let trial = ahead + sliding * w.step;
        let limit = w.friction * push;
        let size = trial.length();
        let force = if size > limit {
            trial * (limit / size.max(1e-20))
        } else {
            trial
        };
        let change = force - ahead;
        let moved = force - w.force;
        w.before = w.force;
        w.force = force;
        work.walls[wall] = w;
        rub(u, &work.mobility, &w, change);
        progress.change += f64::from(change.length_squared() / (w.step * w.step));
        progress.turned_back -= f64::from(change.dot(moved) / w.step);
    }
}

/// A cell and the faces it reaches.
struct Cell<'a> {
    u: [&'a mut Window; 3],
    mobility: [&'a Window; 3],
    /// Open parts of the lower and the upper face of each axis.
    open: [[f32; 2]; 3],
}

/// Open parts of the six faces of the cell at `at`.
#[inline]
fn open_sides(work: &BlockWork, at: usize) -> [[f32; 2]; 3] {
    let Some(open) = &work.open else {
        return [[1.0; 2]; 3];
    };
    [0, 1, 2].map(|axis| [open[axis][at], open[axis][at + STRIDE[axis]]])
}

/// What a change of the deviators changes along the axes.
#[inline]
fn diagonal(change: &Deviators) -> [f32; 3] {
    let xx = 0.25 * change.xx.reduce_add();
    let yy = 0.25 * change.yy.reduce_add();
    [xx, yy, -xx - yy]
}

impl Cell<'_> {
    /// How fast the cell stretches along each axis, and how much more for each unit of pressure.
    #[inline]
    fn stretch(&self) -> ([f32; 3], [f32; 3]) {
        let (mut stretch, mut answer) = ([0.0; 3], [0.0; 3]);
        for axis in 0..3 {
            let [low, high] = self.open[axis];
            let upper = BACK + STRIDE[axis];
            stretch[axis] = high * self.u[axis][upper] - low * self.u[axis][BACK];
            answer[axis] =
                low * low * self.mobility[axis][BACK] + high * high * self.mobility[axis][upper];
        }
        (stretch, answer)
    }

    /// The shear rates that the octants see.
    #[inline]
    fn shear(&self, law: &CellLaw) -> Deviators {
        let [x, y, z] = &self.u;
        Deviators {
            yz: law.edges[0].rates(edge_rates::<0>(y, z)),
            xz: law.edges[1].rates(edge_rates::<1>(x, z)),
            xy: law.edges[2].rates(edge_rates::<2>(x, y)),
            ..Deviators::ZERO
        }
    }

    /// What a change of the stresses along the axes does to the cell's own six faces.
    #[inline]
    fn push_faces(&mut self, change: [f32; 3]) {
        for axis in 0..3 {
            let [low, high] = self.open[axis];
            let upper = BACK + STRIDE[axis];
            self.u[axis][BACK] += self.mobility[axis][BACK] * low * change[axis];
            self.u[axis][upper] -= self.mobility[axis][upper] * high * change[axis];
        }
    }

    /// What a change of the shear stresses does to the faces about the twelve edges.
    #[inline]
    fn push_edges(&mut self, law: &CellLaw, change: &Deviators) {
        let quarter = f32x4::splat(0.25);
        let forces =
            |pair: usize, stress: f32x4| (law.edges[pair].stresses(stress) * quarter).to_array();
        let [x, y, z] = &mut self.u;
        let [mx, my, mz] = self.mobility;
        push_pair::<0>((&mut *y, my), (&mut *z, mz), forces(0, change.yz));
        push_pair::<1>((&mut *x, mx), (&mut *z, mz), forces(1, change.xz));
        push_pair::<2>((&mut *x, mx), (&mut *y, my), forces(2, change.xy));
    }
}

/// The shear rates at the four edges of a pair of axes.
#[inline]
fn edge_rates<const PAIR: usize>(ua: &Window, ub: &Window) -> [f32; 4] {
    let (a, b) = (STRIDE[PAIRS[PAIR].0], STRIDE[PAIRS[PAIR].1]);
    let mut rates = [0.0; 4];
    for octant in 0..4 {
        let (i, j) = SIDES[PAIR][octant];
        let edge = BACK + i * a + j * b;
        rates[octant] = 0.5 * (ua[edge] - ua[edge - b] + ub[edge] - ub[edge - a]);
    }
    rates
}

/// What forces at the four edges of a pair of axes do.
#[inline]
fn push_pair<const PAIR: usize>(
    (ua, ma): (&mut Window, &Window),
    (ub, mb): (&mut Window, &Window),
    forces: [f32; 4],
) {
    let (a, b) = (STRIDE[PAIRS[PAIR].0], STRIDE[PAIRS[PAIR].1]);
    for octant in 0..4 {
        let (i, j) = SIDES[PAIR][octant];
        let edge = BACK + i * a + j * b;
        let force = forces[octant];
        ua[edge] -= ma[edge] * force;
        ua[edge - b] += ma[edge - b] * force;
        ub[edge] -= mb[edge] * force;
        ub[edge - a] += mb[edge - a] * force;
    }
}

/// R D Rᵀ, lane by lane.
#[inline]
fn turned(d: &Deviators, r: &Mat3) -> Deviators {
    let zz = d.zz();
    let m = [[d.xx, d.xy, d.xz], [d.xy, d.yy, d.yz], [d.xz, d.yz, zz]];
    let r: [[f32x4; 3]; 3] =
        std::array::from_fn(|i| std::array::from_fn(|j| f32x4::splat(r.col(j)[i])));
    let left: [[f32x4; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| r[i][0] * m[0][j] + r[i][1] * m[1][j] + r[i][2] * m[2][j])
    });
    let entry =
        |i: usize, j: usize| left[i][0] * r[j][0] + left[i][1] * r[j][1] + left[i][2] * r[j][2];
    Deviators {
        xx: entry(0, 0),
        yy: entry(1, 1),
        yz: entry(1, 2),
        xz: entry(0, 2),
        xy: entry(0, 1),
    }
}

/// What a change of a wall's friction does to the faces of its cell.
#[inline]
fn rub(u: &mut Velocities, mobility: &[[f32; SEEN]; 3], wall: &WallWork, change: Vec3) {
    let at = Halo::<1>::inner(wall.local);
    for axis in 0..3 {
        let [low, high] = wall.weights[axis];
        let upper = at + STRIDE[axis];
        u[axis][at] -= mobility[axis][at] * low * change[axis];
        u[axis][upper] -= mobility[axis][upper] * high * change[axis];
    }
}

/// The mean of the four deviators, times a vector.
fn mean_times(d: &Deviators, v: Vec3) -> Vec3 {
    let mean = |lanes: f32x4| 0.25 * lanes.reduce_add();
    let (xx, yy) = (mean(d.xx), mean(d.yy));
    let (yz, xz, xy) = (mean(d.yz), mean(d.xz), mean(d.xy));
    Vec3::new(
        xx * v.x + xy * v.y + xz * v.z,
        xy * v.x + yy * v.y + yz * v.z,
        xz * v.x + yz * v.y - (xx + yy) * v.z,
    )
}

/// The mean over the octants of the products of all nine entries.
fn inner(a: &Deviators, b: &Deviators) -> f32 {
    let off = a.yz * b.yz + a.xz * b.xz + a.xy * b.xy;
    let diagonal = a.xx * b.xx + a.yy * b.yy + a.zz() * b.zz();
    0.25 * (diagonal + off + off).reduce_add()
}
