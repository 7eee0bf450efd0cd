//! What the method remembers from step to step, kept in the state so that checkpoints hold all of it: the grains'
//! motion in 64 bits, the loads at the end of the last step, and who is near whom with the springs between them.

use barchan_base::column::{AnyColumn, Column, ColumnSpec, Kind};
use barchan_sim::state::State;
use bytemuck::{Pod, Zeroable};
use glam::{DQuat, DVec3};

/// The columns of the memory. Motions, loads and springs are groups of numbers; see [`Motion`] and [`Load`].
pub const MEMORY: &[ColumnSpec] = &[
    ColumnSpec::new("grain", "1", Kind::U64),
    ColumnSpec::new("motion", "1", Kind::F64),
    ColumnSpec::new("load", "1", Kind::F64),
    ColumnSpec::new("first_ball", "1", Kind::U32),
    ColumnSpec::new("first_pair", "1", Kind::U32),
    ColumnSpec::new("partner", "1", Kind::U32),
    ColumnSpec::new("spring", "m", Kind::F64),
    ColumnSpec::new("wall_ball", "1", Kind::U32),
    ColumnSpec::new("wall_solid", "1", Kind::U32),
    ColumnSpec::new("wall_spring", "m", Kind::F64),
    ColumnSpec::new("wall_normal", "1", Kind::F64),
    ColumnSpec::new("roll", "rad", Kind::F64),
    ColumnSpec::new("wall_roll", "rad", Kind::F64),
    ColumnSpec::new("marks", "1", Kind::F64),
];

/// How a grain moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Motion {
    /// Centre of mass [m].
    pub position: DVec3,
    /// Its velocity [m/s].
    pub velocity: DVec3,
    /// Angular momentum over the moment of inertia about the first principal axis [rad/s]: of a grain whose principal
    /// moments are alike, its spin.
    pub turning: DVec3,
    /// From its principal axes to the world's.
    pub orientation: [f64; 4],
    /// How long it has been quiet [s]; negative while it waits at an emitter's mouth.
    pub quiet: f64,
}

/// Numbers in a motion, in a load, in a spring.
pub const MOTION: usize = size_of::<Motion>() / 8;
/// See [`MOTION`].
pub const LOAD: usize = size_of::<Load>() / 8;

impl Motion {
    /// Its turn.
    #[inline]
    pub fn turn(&self) -> DQuat {
        DQuat::from_array(self.orientation)
    }
}

/// What a grain's contacts do to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Load {
    /// Force [N].
    pub force: DVec3,
    /// Torque about its centre of mass [N m].
    pub torque: DVec3,
}

/// Set in a partner's number while the two touch.
pub const TOUCHING: u32 = 1 << 31;

/// Scalars that are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Marks {
    /// A bound on how far any ball has come since the lists were made [m].
    pub travelled: f64,
    /// How far it may come before they must be made anew [m].
    pub half_skin: f64,
    /// The frame in which grains were last sorted by place, plus one.
    pub sorted_frame: f64,
    /// Grains that wait at an emitter's mouth.
    pub waiting: f64,
    /// Speed of the fastest ball lately [m/s].
    pub fastest: f64,
}

/// The memory, by name.
pub struct Store<'a> {
    /// Ids of the grains, in the order of everything else.
    pub ids: &'a mut Column,
    /// See [`Motion`].
    pub motions: &'a mut Column,
    /// See [`Load`].
    pub loads: &'a mut Column,
    /// First ball of each grain, and the end.
    pub first_ball: &'a mut Column,
    /// First pair of each ball, and the end.
    pub first_pair: &'a mut Column,
    /// The other ball of each pair.
    pub partners: &'a mut Column,
    /// Tangential displacement of each pair [m].
    pub springs: &'a mut Column,
    /// Ball of each nearness to a solid, rising.
    pub wall_balls: &'a mut Column,
    /// Its solid, and whether they touch.
    pub wall_solids: &'a mut Column,
    /// Its tangential displacement [m].
    pub wall_springs: &'a mut Column,
    /// Normal of the face that it touched last.
    pub wall_normals: &'a mut Column,
    /// Angle that each pair has rolled [rad]; empty where nothing resists rolling.
    pub rolls: &'a mut Column,
    /// Angle that each ball near a solid has rolled [rad]; empty likewise.
    pub wall_rolls: &'a mut Column,
    /// See [`Marks`].
    pub marks: &'a mut Column,
}

/// Numbers as groups.
pub fn groups<T: Pod>(column: &Column) -> &[T] {
    bytemuck::cast_slice(column.entries::<f64>())
}

/// Numbers as groups, to be overwritten.
pub fn groups_mut<T: Pod>(column: &mut Column) -> &mut [T] {
    bytemuck::cast_slice_mut(column.entries_mut::<f64>())
}

/// Overwrites a column with `values`.
pub fn put<T: barchan_base::column::Entry>(column: &mut Column, values: &[T]) {
    column.resize_to(values.len());
    column.entries_mut().copy_from_slice(values);
}

/// Overwrites a column of numbers with groups of them.
pub fn put_groups<T: Pod>(column: &mut Column, values: &[T]) {
    put::<f64>(column, bytemuck::cast_slice(values));
}

impl<'a> Store<'a> {
    /// Opens the memory of a state, which is empty before the first step.
    pub fn open(memory: &'a mut Vec<Column>) -> Self {
        if memory.is_empty() {
            memory.extend(MEMORY.iter().map(|spec| Column::zeros(*spec, 0)));
            for column in [3, 4] {
                memory[column].resize_to(1);
            }
            memory[13].resize_to(size_of::<Marks>() / 8);
        }
        let [
            ids,
            motions,
            loads,
            first_ball,
            first_pair,
            partners,
            springs,
            wall_balls,
            wall_solids,
            wall_springs,
            wall_normals,
            rolls,
            wall_rolls,
            marks,
        ] = memory.as_mut_slice()
        else {
            unreachable!("a state's memory is that of its solver")
        };
        Self {
            ids,
            motions,
            loads,
            first_ball,
            first_pair,
            partners,
            springs,
            wall_balls,
            wall_solids,
            wall_springs,
            wall_normals,
            rolls,
            wall_rolls,
            marks,
        }
    }

    /// Swaps the lists with another store's.
    pub fn swap_lists(&mut self, other: &mut Store<'_>) {
        std::mem::swap(self.first_ball, other.first_ball);
        std::mem::swap(self.first_pair, other.first_pair);
        std::mem::swap(self.partners, other.partners);
        std::mem::swap(self.springs, other.springs);
        std::mem::swap(self.wall_balls, other.wall_balls);
        std::mem::swap(self.wall_solids, other.wall_solids);
        std::mem::swap(self.wall_springs, other.wall_springs);
        std::mem::swap(self.wall_normals, other.wall_normals);
        std::mem::swap(self.rolls, other.rolls);
        std::mem::swap(self.wall_rolls, other.wall_rolls);
    }

    /// How grains move.
    pub fn motions(&self) -> &[Motion] {
        groups(self.motions)
    }

    /// The marks.
    pub fn marks(&mut self) -> &mut Marks {
        &mut groups_mut::<Marks>(self.marks)[0]
    }

    /// True where the parts fit together; a file may say anything.
    pub fn is_sound(&self, solids: usize) -> bool {
        let grains = self.ids.len();
        let first_ball = self.first_ball.entries::<u32>();
        let first_pair = self.first_pair.entries::<u32>();
        let partners = self.partners.entries::<u32>();
        let (wall_balls, wall_solids) = (
            self.wall_balls.entries::<u32>(),
            self.wall_solids.entries::<u32>(),
        );
        let balls = first_ball.last().copied().unwrap_or(0);
        let rises = |list: &[u32]| list.first() == Some(&0) && list.is_sorted();
        self.motions.len() == grains * MOTION
            && self.loads.len() == grains * LOAD
            && self.marks.len() == size_of::<Marks>() / 8
            && first_ball.len() == grains + 1
            && first_pair.len() == balls as usize + 1
            && rises(first_ball)
            && rises(first_pair)
            && first_pair
                .last()
                .is_some_and(|end| *end as usize == partners.len())
            && partners.iter().all(|partner| partner & !TOUCHING < balls)
            && self.springs.len() == 3 * partners.len()
            && wall_balls.is_sorted()
            && wall_balls.last().is_none_or(|last| *last < balls)
            && wall_solids.len() == wall_balls.len()
            && wall_solids
                .iter()
                .all(|solid| ((solid & !TOUCHING) as usize) < solids)
            && self.wall_springs.len() == 3 * wall_balls.len()
            && self.wall_normals.len() == 3 * wall_balls.len()
            && [0, 3 * partners.len()].contains(&self.rolls.len())
            && [0, 3 * wall_balls.len()].contains(&self.wall_rolls.len())
    }
}

/// Speed of the fastest grain [m/s].
pub fn fastest(state: &State) -> f64 {
    match state.memory.last().map(groups::<Marks>) {
        Some([marks]) => marks.fastest,
        _ => {
            let squares = state.particles.velocity.iter().map(|v| v.length_squared());
            f64::from(squares.fold(0.0, f32::max)).sqrt()
        }
    }
}

/// True where the state's memory can be that of this method.
pub fn is_sound(state: &mut State) -> bool {
    let solids = state.solids.all().len();
    Store::open(&mut state.memory).is_sound(solids)
}
