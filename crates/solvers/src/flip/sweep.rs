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
        if self.quarter == 1.0 {
            return open;
        }
        let mean = f32x4::splat(open.reduce_add() * self.inverse);
        open + mean * (f32x4::ONE - self.open)
    }

    /// The stress at the open edges from that of all four octants: what they bear together, shared among them.
    #[inline]
    fn stresses(&self, stress: f32x4) -> f32x4 {
        if self.quarter == 1.0 {
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
    pub size: f32,
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
    /// Friction on the material, turned: what the wall feels.
    pub fn friction_force(&self) -> Vec3 {
        self.force
    }

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
                let stress = work.stress[local];
                apply(&mut u, work, local, stress.pressure, &stress.deviators);
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
        let law = work.laws[local];
        let at = Halo::<1>::inner(local);
        // Strain rate along the axes, and the change that a unit of pressure makes in it.
        let mut stretch = [0.0f32; 3];
        let mut answer = [0.0f32; 3];
        for axis in 0..3 {
            let upper = at + STRIDE[axis];
            let (a, b) = (work.mobility[axis][at], work.mobility[axis][upper]);
            if let Some(open) = &work.open {
                let (low, high) = (open[axis][at], open[axis][upper]);
                stretch[axis] = high * u[axis][upper] - low * u[axis][at];
                answer[axis] = low * low * a + high * high * b;
            } else {
                stretch[axis] = u[axis][upper] - u[axis][at];
                answer[axis] = a + b;
            }
        }
        let divergence = stretch[0] + stretch[1] + stretch[2] - law.inflow;
        let pressure =
            (ahead.pressure - law.pressure_step * (divergence + law.gap)).max(-law.tension);
        let rise = pressure - ahead.pressure;
        stretch_faces(u, work, at, [-rise; 3]);
        for axis in 0..3 {
            stretch[axis] += rise * answer[axis];
        }
        let mean = (stretch[0] + stretch[1] + stretch[2]) * (1.0 / 3.0);
        let mut rate = shear(u, at, &law);
        rate.xx = f32x4::splat(stretch[0] - mean);
        rate.yy = f32x4::splat(stretch[1] - mean);
        if let Some(turn) = &law.turn {
            rate = turned(&rate, turn);
        }
        // The octants have one diagonal: that of those that shear. An octant that does not would keep, unseen, a
        // diagonal that takes load off the pressure, and friction would be short of it.
        let share = rate.square() + f32x4::splat(self.still);
        let share = share * f32x4::splat(1.0 / share.reduce_add());
        rate.xx = f32x4::splat((rate.xx * share).reduce_add());
        rate.yy = f32x4::splat((rate.yy * share).reduce_add());
        let trial = ahead.deviators.plus(&rate, f32x4::splat(law.deviator_step));
        let strength = law.sine * pressure + law.strength;
        let scale = scale_to_yield(&trial, strength, law.sine);
        let common = f32x4::splat((scale * share).reduce_add());
        let mut deviators = trial.scaled(scale);
        deviators.xx = trial.xx * common;
        deviators.yy = trial.yy * common;
        let change = deviators.plus(&ahead.deviators, -f32x4::ONE);
        work.before[local] = now;
        work.stress[local] = Stress {
            pressure,
            deviators,
        };
        apply(u, work, local, 0.0, &change);
        // Both measures weigh a change by what it does to velocity.
        let squares = change.square().reduce_add() * 0.25;
        let p = 1.0 / law.pressure_step;
        let d = 1.0 / law.deviator_step;
        progress.change += f64::from(rise * p * rise * p + 2.0 * squares * d * d);
        let moved = deviators.plus(&now.deviators, -f32x4::ONE);
        let against = inner(&change, &moved);
        progress.turned_back -= f64::from(rise * (pressure - now.pressure) * p + 2.0 * against * d);
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

/// The shear rates at the twelve edges.
#[inline]
fn shear(u: &Velocities, at: usize, law: &CellLaw) -> Deviators {
    let mut rates = [[0.0f32; 4]; 3];
    for (pair, &(a, b)) in PAIRS.iter().enumerate() {
        for (octant, &(i, j)) in SIDES[pair].iter().enumerate() {
            let edge = at + i * STRIDE[a] + j * STRIDE[b];
            rates[pair][octant] =
                0.5 * (u[a][edge] - u[a][edge - STRIDE[b]] + u[b][edge] - u[b][edge - STRIDE[a]]);
        }
    }
    Deviators {
        yz: law.edges[0].rates(rates[0]),
        xz: law.edges[1].rates(rates[1]),
        xy: law.edges[2].rates(rates[2]),
        ..Deviators::ZERO
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

/// What a change of a cell's stress does to the faces about it.
#[inline]
fn apply(u: &mut Velocities, work: &BlockWork, local: usize, rise: f32, change: &Deviators) {
    let at = Halo::<1>::inner(local);
    let xx = 0.25 * change.xx.reduce_add();
    let yy = 0.25 * change.yy.reduce_add();
    stretch_faces(u, work, at, [xx - rise, yy - rise, -xx - yy - rise]);
    let mobility = &work.mobility;
    let edges = &work.laws[local].edges;
    let changes = [change.yz, change.xz, change.xy];
    for (pair, &(a, b)) in PAIRS.iter().enumerate() {
        let quarter = (edges[pair].stresses(changes[pair]) * f32x4::splat(0.25)).to_array();
        for (octant, &(i, j)) in SIDES[pair].iter().enumerate() {
            let edge = at + i * STRIDE[a] + j * STRIDE[b];
            let force = quarter[octant];
            let (under_a, under_b) = (edge - STRIDE[b], edge - STRIDE[a]);
            u[a][edge] -= mobility[a][edge] * force;
            u[a][under_a] += mobility[a][under_a] * force;
            u[b][edge] -= mobility[b][edge] * force;
            u[b][under_b] += mobility[b][under_b] * force;
        }
    }
}

/// What a change of the stresses along the axes does to the cell's own six faces.
#[inline]
fn stretch_faces(u: &mut Velocities, work: &BlockWork, at: usize, change: [f32; 3]) {
    for axis in 0..3 {
        let upper = at + STRIDE[axis];
        let (low, high) = work
            .open
            .as_ref()
            .map_or((1.0, 1.0), |open| (open[axis][at], open[axis][upper]));
        u[axis][at] += work.mobility[axis][at] * low * change[axis];
        u[axis][upper] -= work.mobility[axis][upper] * high * change[axis];
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
