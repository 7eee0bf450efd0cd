//! The stresses that the coupled solve remembers from step to step, in the state, so that a resumed run remembers them too.

use super::boundary::Wall;
use super::lanes::{FLOATS, Group, StressValues, WallWork};
use barchan_base::column::{AnyColumn, Column, ColumnSpec, Kind};
use barchan_base::grid::{BlockGrid, CELLS};
use glam::Vec3;
use rayon::prelude::*;

/// Numbers of one block.
pub(crate) const BLOCK: usize = CELLS * FLOATS;
/// Numbers of one cell; the first is the pressure.
pub(crate) const CELL: usize = FLOATS;

/// The columns of the memory.
pub(crate) const COLUMNS: &[ColumnSpec] = &[
    ColumnSpec::new("stress_step", "s", Kind::F64),
    ColumnSpec::new("stress_block", "1", Kind::U64),
    ColumnSpec::new("stress", "m/s", Kind::F32),
    ColumnSpec::new("wall", "1", Kind::U64),
    ColumnSpec::new("wall_force", "m/s", Kind::Vec3),
    ColumnSpec::new("wall_load", "N", Kind::Vec3),
];

/// The remembered stresses, to be looked up.
pub(super) struct Memory<'a> {
    blocks: &'a [u64],
    stress: &'a [f32],
    walls: &'a [u64],
    forces: &'a [Vec3],
    /// Stresses are scaled by the time step: a longer one makes them larger.
    scale: f32,
}

impl<'a> Memory<'a> {
    /// Reads the state's memory for a step of `dt` [s].
    pub fn new(columns: &'a [Column], dt: f64) -> Self {
        let [step, blocks, stress, walls, forces, _] = columns else {
            return Self {
                blocks: &[],
                stress: &[],
                walls: &[],
                forces: &[],
                scale: 1.0,
            };
        };
        let last = step.entries::<f64>().first().copied().unwrap_or(dt);
        let scale = (dt / last) as f32;
        Self {
            blocks: blocks.entries(),
            stress: stress.entries(),
            walls: walls.entries(),
            forces: forces.entries(),
            scale,
        }
    }

    /// True where nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The stresses of a block; zero where nothing is remembered.
    pub fn stress(&self, grid: &BlockGrid, block: usize) -> [StressValues; CELLS] {
        let mut stress = [[0.0; FLOATS]; CELLS];
        if let Ok(place) = self.blocks.binary_search(&grid.keys()[block])
            && let Some(all) = self.stress.get(place * BLOCK..(place + 1) * BLOCK)
        {
            for (to, from) in stress.as_flattened_mut().iter_mut().zip(all) {
                *to = from * self.scale;
            }
        }
        stress
    }

    /// The friction of a piece of wall; zero where nothing is remembered.
    pub fn wall_force(&self, grid: &BlockGrid, wall: &Wall) -> Vec3 {
        let (block, local) = (wall.cell as usize / CELLS, wall.cell as usize % CELLS);
        let known = self.blocks.binary_search(&grid.keys()[block]).ok();
        known
            .and_then(|place| {
                let code = wall_code(place, local, wall.body as usize);
                self.walls.binary_search(&code).ok()
            })
            .and_then(|place| self.forces.get(place))
            .map_or(Vec3::ZERO, |force| *force * self.scale)
    }
}

/// One number for a piece of wall; increases with the block, then the cell, then the body.
fn wall_code(place: usize, local: usize, body: usize) -> u64 {
    (place as u64) << 32 | (local as u64) << 24 | body as u64
}

/// Puts the stresses of a solve into the state's memory.
pub(super) fn remember(columns: &mut Vec<Column>, grid: &BlockGrid, groups: &[Group], dt: f64) {
    let mut sorted: Vec<(usize, &Group, usize)> = groups
        .iter()
        .flat_map(|group| {
            let lanes = group.blocks.iter().enumerate();
            lanes.map(move |(lane, block)| (*block, group, lane))
        })
        .collect();
    sorted.sort_unstable_by_key(|(block, ..)| *block);
    let per_second = (1.0 / dt) as f32;
    let walls: Vec<WallEntry> = sorted
        .iter()
        .enumerate()
        .flat_map(|(place, (_, group, lane))| {
            let entry = move |wall: &WallWork| WallEntry {
                code: wall_code(place, wall.local, wall.body),
                force: wall.force,
                load: wall.load * per_second,
            };
            let mine = |wall: &&WallWork| wall.lane == *lane;
            group.walls.iter().filter(mine).map(entry)
        })
        .collect();
    let lengths = [1, sorted.len(), sorted.len() * BLOCK, 0, 0, 0];
    if !columns
        .iter()
        .map(|column| column.spec)
        .eq(COLUMNS.iter().copied())
    {
        *columns = COLUMNS.iter().map(|spec| Column::zeros(*spec, 0)).collect();
    }
    for (column, len) in columns.iter_mut().zip(lengths) {
        column.resize_to(len);
    }
    let [step, blocks, stress, of_walls @ ..] = columns.as_mut_slice() else {
        return;
    };
    step.set(0, dt);
    for (to, (block, ..)) in blocks.entries_mut::<u64>().iter_mut().zip(&sorted) {
        *to = grid.keys()[*block];
    }
    stress
        .entries_mut::<f32>()
        .par_chunks_exact_mut(BLOCK)
        .zip(&sorted)
        .for_each(|(to, (_, group, lane))| {
            for (to, stress) in to.chunks_exact_mut(FLOATS).zip(&group.stress) {
                to.copy_from_slice(&stress.values(*lane));
            }
        });
    write_walls(of_walls, &walls);
}

/// What is remembered of a piece of wall: its code, its friction, and what its body bore there [N].
#[derive(Clone, Copy)]
struct WallEntry {
    code: u64,
    force: Vec3,
    load: Vec3,
}

/// Puts pieces of wall, in the order of their codes, into their columns.
fn write_walls(columns: &mut [Column], walls: &[WallEntry]) {
    let [codes, forces, loads] = columns else {
        return;
    };
    for column in [&mut *codes, forces, loads] {
        column.resize_to(walls.len());
    }
    let to = codes.entries_mut::<u64>().iter_mut();
    let vectors = forces.entries_mut::<Vec3>().iter_mut();
    let to = to.zip(vectors.zip(loads.entries_mut::<Vec3>()));
    for ((code, (force, load)), wall) in to.zip(walls) {
        (*code, *force, *load) = (wall.code, wall.force, wall.load);
    }
}

/// A piece of wall in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Leaning {
    /// Index of the body.
    pub body: usize,
    /// Friction, for a step of 1 s.
    pub force: Vec3,
    /// What the body bears there, all together [N].
    pub load: Vec3,
}

/// The pieces of wall that are remembered of a cell.
pub(crate) fn walls_of_cell(columns: &[Column], block: u64, local: usize) -> Vec<Leaning> {
    let [step, blocks, _, walls, forces, loads] = columns else {
        return Vec::new();
    };
    let (Some(step), Ok(place)) = (
        step.entries::<f64>().first(),
        blocks.entries::<u64>().binary_search(&block),
    ) else {
        return Vec::new();
    };
    let codes = walls.entries::<u64>();
    let end = wall_code(place, local + 1, 0);
    let first = codes.partition_point(|code| *code < wall_code(place, local, 0));
    let leaning = |i: usize| Leaning {
        body: (codes[i] & 0xff_ffff) as usize,
        force: forces.get::<Vec3>(i) / *step as f32,
        load: loads.get::<Vec3>(i),
    };
    let within = (first..codes.len()).take_while(|i| codes[*i] < end);
    within.map(leaning).collect()
}

/// The stress remembered of a cell, for a step of 1 s.
pub(crate) fn stress_of_cell(columns: &[Column], block: u64, local: usize) -> Option<[f32; CELL]> {
    let [step, blocks, stress, ..] = columns else {
        return None;
    };
    let inverse = (1.0 / step.entries::<f64>().first()?) as f32;
    let place = blocks.entries::<u64>().binary_search(&block).ok()?;
    let first = place * BLOCK + local * CELL;
    let kept = stress.entries::<f32>().get(first..first + CELL)?;
    let mut result = [0.0; CELL];
    for (to, from) in result.iter_mut().zip(kept) {
        *to = from * inverse;
    }
    Some(result)
}

/// Stresses of a block, for a step of 1 s, to be put into the memory.
pub(crate) struct Recalled<'a> {
    /// Key of the block.
    pub block: u64,
    /// The cells that are meant, a bit each.
    pub cells: u64,
    /// Those of all its cells.
    pub stress: &'a [f32],
    /// The pieces of wall in the cells that are meant, by their cells.
    pub walls: Vec<(usize, Leaning)>,
}

/// Puts stresses into the memory as if the last solve had found them; `recalled` is in the order of the blocks. A memory that
/// is empty becomes one of a step of `dt` [s].
pub(crate) fn recall(columns: &mut Vec<Column>, recalled: &[Recalled], dt: f64) {
    if columns.len() != COLUMNS.len() {
        *columns = COLUMNS
            .iter()
            .map(|spec| Column::zeros(*spec, usize::from(spec.kind == Kind::F64)))
            .collect();
        columns[0].set(0, dt);
    }
    let [step, blocks, stress, of_walls @ ..] = columns.as_mut_slice() else {
        return;
    };
    let last = step.entries::<f64>().first().map_or(dt, |last| *last) as f32;
    let old: Vec<u64> = blocks.entries::<u64>().to_vec();
    let mut keys = old.clone();
    keys.extend(recalled.iter().map(|entry| entry.block));
    keys.sort_unstable();
    keys.dedup();
    let place_of = |key: u64| keys.partition_point(|other| *other < key);
    if keys.len() > old.len() {
        let mut grown = Column::zeros(stress.spec, keys.len() * BLOCK);
        let to = grown.entries_mut::<f32>();
        for (key, from) in old.iter().zip(stress.entries::<f32>().chunks_exact(BLOCK)) {
            to[place_of(*key) * BLOCK..][..BLOCK].copy_from_slice(from);
        }
        *stress = grown;
        for code in of_walls[0].entries_mut::<u64>() {
            let place = (*code >> 32) as usize;
            let moved = old.get(place).map_or(place, |key| place_of(*key));
            *code = (*code & 0xffff_ffff) | (moved as u64) << 32;
        }
        let mut all = Column::zeros(blocks.spec, keys.len());
        all.entries_mut::<u64>().copy_from_slice(&keys);
        *blocks = all;
    }
    let stress = stress.entries_mut::<f32>();
    for entry in recalled {
        let first = place_of(entry.block) * BLOCK;
        for local in (0..CELLS).filter(|local| entry.cells >> local & 1 == 1) {
            let here = local * CELL..(local + 1) * CELL;
            let to = &mut stress[first..first + BLOCK][here.clone()];
            for (to, from) in to.iter_mut().zip(&entry.stress[here]) {
                *to = from * last;
            }
        }
    }
    let leaning = recalled.iter().flat_map(|entry| {
        let place = place_of(entry.block);
        entry.walls.iter().map(move |(local, wall)| WallEntry {
            code: wall_code(place, *local, wall.body),
            force: wall.force * last,
            load: wall.load,
        })
    });
    recall_walls(of_walls, leaning.collect());
}

/// Puts pieces of wall among those that are remembered.
fn recall_walls(columns: &mut [Column], mut walls: Vec<WallEntry>) {
    let [codes, forces, loads] = &*columns else {
        return;
    };
    if walls.is_empty() {
        return;
    }
    let known = codes.entries::<u64>().iter().enumerate();
    walls.extend(known.map(|(i, code)| WallEntry {
        code: *code,
        force: forces.get(i),
        load: loads.get(i),
    }));
    // What is recalled came first, and stays in place of what was known.
    walls.sort_by_key(|wall| wall.code);
    walls.dedup_by_key(|wall| wall.code);
    write_walls(columns, &walls);
}
