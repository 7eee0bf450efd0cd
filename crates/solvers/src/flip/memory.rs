//! The stresses that the coupled solve remembers from step to step, in the state, so that a resumed run remembers them too.

use super::boundary::Wall;
use super::sweep::{BlockWork, Stress};
use crate::material::yield_surface::Deviators;
use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_base::grid::{BlockGrid, CELLS};
use glam::Vec3;
use wide::f32x4;

/// Floats of one cell: pressure, and five entries of four deviators.
const FLOATS: usize = 21;

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
    pub fn stress(&self, grid: &BlockGrid, block: usize) -> [Stress; CELLS] {
        let Ok(place) = self.blocks.binary_search(&grid.keys()[block]) else {
            return [Stress::ZERO; CELLS];
        };
        let Some(all) = self
            .stress
            .get(place * CELLS * FLOATS..(place + 1) * CELLS * FLOATS)
        else {
            return [Stress::ZERO; CELLS];
        };
        let mut stress = [Stress::ZERO; CELLS];
        for (stress, v) in stress.iter_mut().zip(all.chunks_exact(FLOATS)) {
            let four = |i: usize| {
                f32x4::from([v[i], v[i + 1], v[i + 2], v[i + 3]]) * f32x4::splat(self.scale)
            };
            *stress = Stress {
                pressure: v[0] * self.scale,
                deviators: Deviators {
                    xx: four(1),
                    yy: four(5),
                    yz: four(9),
                    xz: four(13),
                    xy: four(17),
                },
            };
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
pub(super) fn remember(columns: &mut Vec<Column>, grid: &BlockGrid, work: &[BlockWork], dt: f64) {
    let mut sorted: Vec<&BlockWork> = work.iter().collect();
    sorted.sort_by_key(|work| work.block);
    let walls: Vec<(u64, Vec3)> = sorted
        .iter()
        .enumerate()
        .flat_map(|(place, work)| {
            let entry = move |wall: &super::sweep::WallWork| {
                (wall_code(place, wall.local, wall.body), wall.force)
            };
            work.walls.iter().map(entry)
        })
        .collect();
    let lengths = [
        1,
        sorted.len(),
        sorted.len() * CELLS * FLOATS,
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
    for (to, work) in blocks.entries_mut::<u64>().iter_mut().zip(&sorted) {
        *to = grid.keys()[work.block];
    }
    let chunks = stress.entries_mut::<f32>().chunks_exact_mut(CELLS * FLOATS);
    for (to, work) in chunks.zip(&sorted) {
        for (to, stress) in to.chunks_exact_mut(FLOATS).zip(&work.stress) {
            let d = &stress.deviators;
            to[0] = stress.pressure;
            for (i, lanes) in [d.xx, d.yy, d.yz, d.xz, d.xy].into_iter().enumerate() {
                to[1 + 4 * i..5 + 4 * i].copy_from_slice(&lanes.to_array());
            }
        }
    }
    let entries = codes
        .entries_mut::<u64>()
        .iter_mut()
        .zip(forces.entries_mut::<Vec3>());
    for ((code, force), wall) in entries.zip(walls) {
        (*code, *force) = wall;
    }
}
