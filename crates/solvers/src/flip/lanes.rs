//! Eight blocks of one colour side by side, a lane each: what is done to a cell is done to the cells at the same place in all
//! of them. They share no face, so the lanes never meet.

use barchan_base::grid::{CELLS, Halo};
use glam::{Mat3, Vec3};
use wide::f32x8;

/// Blocks in a group.
pub(super) const LANES: usize = 8;
/// Cells of a block with one more on each side.
pub(super) const SEEN: usize = Halo::<1>::CELLS;
/// Numbers in the stress of a cell: pressure, two entries of a diagonal, and three shears in each of four octants.
pub(super) const FLOATS: usize = 15;

/// The stress of one cell: pressure, xx, yy, then the four octants' yz, xz and xy.
pub(super) type StressValues = [f32; FLOATS];

/// The stresses of eight cells.
///
/// The octants have one diagonal between them: that of those that shear. An octant that does not would keep, unseen, a
/// diagonal that takes load off the pressure, and friction would be short of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stress {
    pub pressure: f32x8,
    pub xx: f32x8,
    pub yy: f32x8,
    /// For each pair of axes, octant by octant.
    pub shear: [[f32x8; 4]; 3],
}

impl Stress {
    pub const ZERO: Self = Self {
        pressure: f32x8::ZERO,
        xx: f32x8::ZERO,
        yy: f32x8::ZERO,
        shear: [[f32x8::ZERO; 4]; 3],
    };

    /// One lane's.
    pub fn values(&self, lane: usize) -> StressValues {
        let of = |v: &f32x8| v.as_array()[lane];
        std::array::from_fn(|i| match i {
            0 => of(&self.pressure),
            1 => of(&self.xx),
            2 => of(&self.yy),
            _ => of(&self.shear[(i - 3) / 4][(i - 3) % 4]),
        })
    }

    fn set(&mut self, lane: usize, values: &StressValues) {
        let to = [&mut self.pressure, &mut self.xx, &mut self.yy].into_iter();
        for (to, value) in to.chain(self.shear.as_flattened_mut()).zip(values) {
            to.as_mut_array()[lane] = *value;
        }
    }

    /// `self` + `other` × `factor`.
    #[inline]
    pub fn plus(&self, other: &Self, factor: f32x8) -> Self {
        let mut sum = *self;
        sum.pressure += other.pressure * factor;
        sum.xx += other.xx * factor;
        sum.yy += other.yy * factor;
        for (sum, other) in sum.shear.iter_mut().zip(&other.shear) {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum += *other * factor;
            }
        }
        sum
    }

    /// The sum of the products of all nine entries of the deviators, averaged over the octants.
    #[inline]
    pub fn inner(&self, other: &Self) -> f32x8 {
        let (a, b) = (self.xx + self.yy, other.xx + other.yy);
        let mut off = f32x8::ZERO;
        for (x, y) in self.shear.iter().zip(&other.shear) {
            for (x, y) in x.iter().zip(y) {
                off += *x * *y;
            }
        }
        self.xx * other.xx + self.yy * other.yy + a * b + off * f32x8::splat(0.5)
    }
}

/// The four edges of a cell along one axis, as its octants see them.
///
/// At a wall an edge is closed: the wall rubs there instead. The octant beside it then shears as those at the open edges do;
/// left alone it would never yield, and bear the load without the pressure that friction needs. At the surface an edge is half open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edges<T> {
    /// 1 for each open edge, 0 for the others.
    pub open: [T; 4],
    /// How much the slopes of the two axes' velocities count at each edge: at a surface one of them has none.
    pub slopes: [[T; 4]; 2],
    /// 1 / the number of open edges, and a quarter of it.
    pub inverse: T,
    pub quarter: T,
}

impl Edges<f32> {
    pub const NONE: Self = Self {
        open: [0.0; 4],
        slopes: [[0.0; 4]; 2],
        inverse: 0.0,
        quarter: 0.0,
    };

    pub fn new(slopes: [[f32; 4]; 2]) -> Self {
        let open: [f32; 4] =
            std::array::from_fn(|octant| f32::from(slopes[0][octant].max(slopes[1][octant]) > 0.0));
        let count: f32 = open.iter().sum();
        Self {
            open,
            slopes,
            inverse: if count > 0.0 { 1.0 / count } else { 0.0 },
            quarter: 0.25 * count,
        }
    }

    fn all_open(&self) -> bool {
        self.slopes.as_flattened().iter().all(|slope| *slope > 0.99)
    }
}

impl Edges<f32x8> {
    const OPEN: Self = Self {
        open: [f32x8::ONE; 4],
        slopes: [[f32x8::ONE; 4]; 2],
        inverse: f32x8::new([0.25; 8]),
        quarter: f32x8::ONE,
    };

    fn set(&mut self, lane: usize, edges: &Edges<f32>) {
        for (to, open) in self.open.iter_mut().zip(edges.open) {
            to.as_mut_array()[lane] = open;
        }
        let slopes = self.slopes.as_flattened_mut().iter_mut();
        for (to, slope) in slopes.zip(edges.slopes.as_flattened()) {
            to.as_mut_array()[lane] = *slope;
        }
        self.inverse.as_mut_array()[lane] = edges.inverse;
        self.quarter.as_mut_array()[lane] = edges.quarter;
    }

    /// The shear rates of all four octants from the slopes of velocity at the open edges.
    #[inline]
    pub fn rates(&self, slopes: &[[f32x8; 4]; 2]) -> [f32x8; 4] {
        let half = f32x8::splat(0.5);
        let mut sum = f32x8::ZERO;
        let mut rates = [f32x8::ZERO; 4];
        for (octant, rate) in rates.iter_mut().enumerate() {
            let [a, b] = [0, 1].map(|axis| slopes[axis][octant] * self.slopes[axis][octant]);
            *rate = half * (a + b);
            sum += *rate;
        }
        let mean = sum * self.inverse;
        for (rate, open) in rates.iter_mut().zip(self.open) {
            *rate += mean * (f32x8::ONE - open);
        }
        rates
    }

    /// The stress at the open edges from that of all four octants: what they bear together, shared among them; for the faces of either
    /// axis.
    #[inline]
    pub fn stresses(&self, stress: [f32x8; 4]) -> [[f32x8; 4]; 2] {
        let mut closed = f32x8::ZERO;
        for (stress, open) in stress.iter().zip(self.open) {
            closed += *stress * (f32x8::ONE - open);
        }
        closed *= self.inverse;
        let shared = stress.map(|stress| (stress + closed) * self.quarter);
        self.slopes
            .map(|slopes| std::array::from_fn(|octant| shared[octant] * slopes[octant]))
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
    pub edges: [Edges<f32>; 3],
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

/// The laws of eight cells. All is zero in a lane whose cell carries nothing: then nothing comes of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    /// True where any of the cells carries something.
    pub active: bool,
    /// What may still flow out: the room to close, less what walls push in.
    pub gap: f32x8,
    pub sine: f32x8,
    pub strength: f32x8,
    pub tension: f32x8,
    pub pressure_step: f32x8,
    pub deviator_step: f32x8,
    /// 1 / steps.
    pub pressure_weight: f32x8,
    pub deviator_weight: f32x8,
    /// Places among the group's edges and turns, where not all edges are open, or something turns.
    pub edges: Option<u16>,
    pub turn: Option<u16>,
}

impl Law {
    const IDLE: Self = Self {
        active: false,
        gap: f32x8::ZERO,
        sine: f32x8::ZERO,
        strength: f32x8::ZERO,
        tension: f32x8::ZERO,
        pressure_step: f32x8::ZERO,
        deviator_step: f32x8::ZERO,
        pressure_weight: f32x8::ZERO,
        deviator_weight: f32x8::ZERO,
        edges: None,
        turn: None,
    };

    fn set(&mut self, lane: usize, law: &CellLaw) {
        self.active = true;
        let values = [
            (&mut self.gap, law.gap - law.inflow),
            (&mut self.sine, law.sine),
            (&mut self.strength, law.strength),
            (&mut self.tension, law.tension),
            (&mut self.pressure_step, law.pressure_step),
            (&mut self.deviator_step, law.deviator_step),
            (&mut self.pressure_weight, 1.0 / law.pressure_step),
            (&mut self.deviator_weight, 1.0 / law.deviator_step),
        ];
        for (to, value) in values {
            to.as_mut_array()[lane] = value;
        }
    }
}

/// A piece of wall in a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallWork {
    pub lane: usize,
    pub local: usize,
    pub body: usize,
    pub area: Vec3,
    pub normal: Vec3,
    pub friction: f32,
    pub velocity: Vec3,
    /// Normal push that the cell's centre does not see: half the cell's weight and impact; and half the cell that has them.
    pub extra: f32,
    pub half: f32,
    /// Weights of the lower and upper face in the cell's velocity, by axis.
    pub weights: [[f32; 2]; 3],
    pub step: f32,
    pub force: Vec3,
    /// What the body took here in the step, all together [N s].
    pub load: Vec3,
}

impl WallWork {
    /// What the wall does to the material along its normal, under the stress of its cell.
    pub fn push(&self, stress: &StressValues) -> Vec3 {
        let v = self.area;
        let mean = |pair: usize| 0.25 * stress[3 + 4 * pair..][..4].iter().sum::<f32>();
        let (pressure, xx, yy) = (stress[0], stress[1], stress[2]);
        let (yz, xz, xy) = (mean(0), mean(1), mean(2));
        v * pressure
            - Vec3::new(
                xx * v.x + xy * v.y + xz * v.z,
                xy * v.x + yy * v.y + yz * v.z,
                xz * v.x + yz * v.y - (xx + yy) * v.z,
            )
    }
}

/// Pieces of wall at the same place of eight blocks; where a lane has none, nothing happens.
#[derive(Clone, Debug)]
pub(super) struct WallLanes {
    pub local: usize,
    pub area: [f32x8; 3],
    pub normal: [f32x8; 3],
    pub friction: f32x8,
    pub velocity: [f32x8; 3],
    pub extra: f32x8,
    pub weights: [[f32x8; 2]; 3],
    pub step: f32x8,
    /// 1 / step, and 0 in lanes without wall.
    pub stiffness: f32x8,
    pub force: [f32x8; 3],
    pub before: [f32x8; 3],
    /// Which of the group's pieces each lane has.
    pieces: [Option<usize>; LANES],
}

impl WallLanes {
    fn new(local: usize) -> Self {
        Self {
            local,
            area: [f32x8::ZERO; 3],
            normal: [f32x8::ZERO; 3],
            friction: f32x8::ZERO,
            velocity: [f32x8::ZERO; 3],
            extra: f32x8::ZERO,
            weights: [[f32x8::ZERO; 2]; 3],
            step: f32x8::ZERO,
            stiffness: f32x8::ZERO,
            force: [f32x8::ZERO; 3],
            before: [f32x8::ZERO; 3],
            pieces: [None; LANES],
        }
    }

    fn set(&mut self, piece: usize, wall: &WallWork) {
        let lane = wall.lane;
        self.pieces[lane] = Some(piece);
        let vectors = [
            (&mut self.area, wall.area),
            (&mut self.normal, wall.normal),
            (&mut self.velocity, wall.velocity),
            (&mut self.force, wall.force),
            (&mut self.before, wall.force),
        ];
        for (to, vector) in vectors {
            for (axis, to) in to.iter_mut().enumerate() {
                to.as_mut_array()[lane] = vector[axis];
            }
        }
        let weights = self.weights.as_flattened_mut().iter_mut();
        for (to, weight) in weights.zip(wall.weights.as_flattened()) {
            to.as_mut_array()[lane] = *weight;
        }
        self.friction.as_mut_array()[lane] = wall.friction;
        self.extra.as_mut_array()[lane] = wall.extra;
        self.step.as_mut_array()[lane] = wall.step;
        self.stiffness.as_mut_array()[lane] = 1.0 / wall.step;
    }

    /// The lanes that have a wall, and which of the group's pieces it is.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.pieces.iter().enumerate();
        all.filter_map(|(lane, piece)| Some((lane, (*piece)?)))
    }

    /// What the walls do to the material along their normals, under the stresses of their cells.
    #[inline]
    pub fn push(&self, stress: &Stress) -> f32x8 {
        let mean = |pair: usize| {
            let [a, b, c, d] = stress.shear[pair];
            (a + b + c + d) * f32x8::splat(0.25)
        };
        let ([x, y, z], [nx, ny, nz]) = (self.area, self.normal);
        let (p, xx, yy) = (stress.pressure, stress.xx, stress.yy);
        let (yz, xz, xy) = (mean(0), mean(1), mean(2));
        (x * p - xx * x - xy * y - xz * z) * nx
            + (y * p - xy * x - yy * y - yz * z) * ny
            + (z * p - xz * x - yz * y + (xx + yy) * z) * nz
    }
}

/// A block's part of the solve, before it joins a group.
pub(super) struct BlockSetup {
    pub block: usize,
    pub stress: [StressValues; CELLS],
    pub laws: [CellLaw; CELLS],
    /// 1 / mass of the faces it sees; 0 where they cannot move.
    pub mobility: [[f32; SEEN]; 3],
    /// Open parts of the faces it sees, where any is not wholly open.
    pub open: Option<Box<[[f32; SEEN]; 3]>>,
    /// In the order of their cells.
    pub walls: Vec<WallWork>,
}

/// The values that a group sees of each axis' faces.
pub(super) type Seen = [[f32x8; SEEN]; 3];

/// The blocks of a group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The blocks of the lanes; the last group of a colour may have fewer.
    pub blocks: Vec<usize>,
    pub stress: Vec<Stress>,
    pub before: Vec<Stress>,
    pub laws: Vec<Law>,
    pub edges: Vec<[Edges<f32x8>; 3]>,
    pub turns: Vec<[[f32x8; 3]; 3]>,
    pub mobility: Box<Seen>,
    /// Where any face is not wholly open.
    pub open: Option<Box<Seen>>,
    /// In the order of their cells; and the same side by side, as the solve has them.
    pub walls: Vec<WallWork>,
    pub wall_lanes: Vec<WallLanes>,
    pub active_cells: usize,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            blocks: Vec::with_capacity(LANES),
            stress: vec![Stress::ZERO; CELLS],
            before: vec![Stress::ZERO; CELLS],
            laws: vec![Law::IDLE; CELLS],
            edges: Vec::new(),
            turns: Vec::new(),
            mobility: Box::new([[f32x8::ZERO; SEEN]; 3]),
            open: None,
            walls: Vec::new(),
            wall_lanes: Vec::new(),
            active_cells: 0,
        }
    }
}

impl Group {
    /// Makes it the group of these blocks.
    pub fn fill(&mut self, blocks: impl Iterator<Item = BlockSetup>) {
        self.blocks.clear();
        self.stress.fill(Stress::ZERO);
        self.laws.fill(Law::IDLE);
        self.edges.clear();
        self.turns.clear();
        self.walls.clear();
        self.open = None;
        self.active_cells = 0;
        *self.mobility = [[f32x8::ZERO; SEEN]; 3];
        for (lane, setup) in blocks.enumerate() {
            self.add(lane, setup);
        }
        self.before.copy_from_slice(&self.stress);
        self.walls.sort_by_key(|wall| wall.local);
        self.lay_walls_side_by_side();
    }

    /// Pieces that share a place but not a lane go together; a lane's pieces keep their order.
    fn lay_walls_side_by_side(&mut self) {
        self.wall_lanes.clear();
        let mut first = 0;
        for (piece, wall) in self.walls.iter().enumerate() {
            if self
                .wall_lanes
                .get(first)
                .is_none_or(|lanes| lanes.local != wall.local)
            {
                first = self.wall_lanes.len();
            }
            let here = &self.wall_lanes[first..];
            let free = here
                .iter()
                .position(|lanes| lanes.pieces[wall.lane].is_none());
            let place = first + free.unwrap_or(here.len());
            if place == self.wall_lanes.len() {
                self.wall_lanes.push(WallLanes::new(wall.local));
            }
            self.wall_lanes[place].set(piece, wall);
        }
    }

    /// Notes the forces that the solve has found with the pieces of wall.
    pub fn note_wall_forces(&mut self) {
        for lanes in &self.wall_lanes {
            for (lane, piece) in lanes.pieces() {
                let force = lanes.force.map(|force| force.as_array()[lane]);
                self.walls[piece].force = Vec3::from_array(force);
            }
        }
    }

    /// Lets a piece of wall, named by its place side by side with others, its lane and its number, move by `drift` faster than it set out to.
    pub fn move_wall(&mut self, (place, lane, piece): (usize, usize, usize), drift: Vec3) {
        let (wall, lanes) = (&self.walls[piece], &mut self.wall_lanes[place]);
        let velocity = wall.velocity + drift;
        let before = lanes.velocity.map(|velocity| velocity.as_array()[lane]);
        for (axis, to) in lanes.velocity.iter_mut().enumerate() {
            to.as_mut_array()[lane] = velocity[axis];
        }
        lanes.extra.as_mut_array()[lane] = wall.extra + wall.half * drift.dot(wall.normal);
        let inflow = wall.area.dot(velocity - Vec3::from_array(before));
        self.laws[lanes.local].gap.as_mut_array()[lane] -= inflow;
    }

    fn add(&mut self, lane: usize, setup: BlockSetup) {
        self.blocks.push(setup.block);
        put(&mut self.mobility, lane, &setup.mobility);
        if let Some(open) = &setup.open {
            let all = || Box::new([[f32x8::ONE; SEEN]; 3]);
            put(self.open.get_or_insert_with(all), lane, open);
        }
        for (local, law) in setup.laws.iter().enumerate().filter(|(_, law)| law.active) {
            self.active_cells += 1;
            self.stress[local].set(lane, &setup.stress[local]);
            self.laws[local].set(lane, law);
            if !law.edges.iter().all(Edges::all_open) {
                self.add_edges(lane, local, &law.edges);
            }
            if let Some(turn) = &law.turn {
                self.add_turn(lane, local, turn);
            }
        }
        let walls = setup.walls.into_iter();
        self.walls
            .extend(walls.map(|wall| WallWork { lane, ..wall }));
    }

    fn add_edges(&mut self, lane: usize, local: usize, edges: &[Edges<f32>; 3]) {
        let place = *self.laws[local].edges.get_or_insert_with(|| {
            self.edges.push([Edges::OPEN; 3]);
            (self.edges.len() - 1) as u16
        });
        for (to, edges) in self.edges[place as usize].iter_mut().zip(edges) {
            to.set(lane, edges);
        }
    }

    fn add_turn(&mut self, lane: usize, local: usize, turn: &Mat3) {
        let place = *self.laws[local].turn.get_or_insert_with(|| {
            let one = |i, j| if i == j { f32x8::ONE } else { f32x8::ZERO };
            self.turns
                .push(std::array::from_fn(|i| std::array::from_fn(|j| one(i, j))));
            (self.turns.len() - 1) as u16
        });
        for (i, row) in self.turns[place as usize].iter_mut().enumerate() {
            for (j, to) in row.iter_mut().enumerate() {
                to.as_mut_array()[lane] = turn.col(j)[i];
            }
        }
    }
}

fn put(to: &mut Seen, lane: usize, from: &[[f32; SEEN]; 3]) {
    for (to, from) in to.as_flattened_mut().iter_mut().zip(from.as_flattened()) {
        to.as_mut_array()[lane] = *from;
    }
}
