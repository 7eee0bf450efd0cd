//! The stresses that the coupled solve remembers from step to step, in the state, so that a resumed run remembers them too.

use super::boundary::Wall;
use super::lanes::{FLOATS, Group, StressValues, WallWork};
use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_base::grid::{BlockGrid, CELLS};
use glam::Vec3;
use rayon::prelude::*;

/// Numbers of one block.
const BLOCK: usize = CELLS * FLOATS;

/// The columns of the memory.
pub(super) const COLUMNS: &[ColumnSpec] = &[
    spec("stress_step", "s", Kind::F64),
    spec("stress_block", "1", Kind::U64),
    spec("stress", "m/s", Kind::F32),
    spec("wall", "1", Kind::U64),
    spec("wall_force", "m/s", Kind::Vec3),
];

const fn spec(name: &'static str, unit: &'static str, kind: Kind) -> ColumnSpec {
    ColumnSpec { name, unit, kind }
}

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
        let [step, blocks, stress, walls, forces] = columns else {
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
    let walls: Vec<(u64, Vec3)> = sorted
        .iter()
        .enumerate()
        .flat_map(|(place, (_, group, lane))| {
            let entry =
                move |wall: &WallWork| (wall_code(place, wall.local, wall.body), wall.force);
            let mine = |wall: &&WallWork| wall.lane == *lane;
            group.walls.iter().filter(mine).map(entry)
        })
        .collect();
    let lengths = [
        1,
        sorted.len(),
        sorted.len() * BLOCK,
        walls.len(),
        walls.len(),
    ];
    columns.clear();
    columns.extend(
        COLUMNS
            .iter()
            .zip(lengths)
            .map(|(spec, len)| Column::zeros(*spec, len)),
    );
    let [step, blocks, stress, codes, forces] = columns.as_mut_slice() else {
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
    let entries = codes
        .entries_mut::<u64>()
        .iter_mut()
        .zip(forces.entries_mut::<Vec3>());
    for ((code, force), wall) in entries.zip(walls) {
        (*code, *force) = wall;
    }
}
