//! What is solid: whole cells whose particles are left out of every step, and given back as they were.
//!
//! Solid particles are the first in the state, untouched from the step in which they freeze to the one in which they thaw.
//! What is kept here is an index into them, block by block, which follows from the state alone; and, in the state's memory,
//! the stress that the cells froze under, what lay on them then, and what they bear on.

use super::bearing::{self, Bearing};
use super::{LIQUID, MEMORY, PHASE, REST, SOLID, hand_over, solid_count};
use crate::flip::memory::{BLOCK, CELL, Recalled, recall, stress_of_cell, walls_of_cell};
use barchan_base::column::{AnyColumn, Column, ColumnSpec, Kind};
use barchan_base::grid::{CELLS, block_of, cell_at, key_of, local_of, places};
use barchan_sim::coupling::Impulse;
use barchan_sim::solids::Solids;
use barchan_sim::state::{Particles, State};
use glam::{IVec3, Vec3};
use std::collections::BTreeMap;

/// Cells by the key of their block, a bit each.
pub(super) type CellSet = BTreeMap<u64, u64>;

/// What the state's memory holds of solid blocks: their keys, the stress of their cells for a step of 1 s, and how many particles
/// lay on each when it froze.
pub(super) const COLUMNS: [ColumnSpec; 3] = [
    ColumnSpec::new("solid_block", "1", Kind::U64),
    ColumnSpec::new("solid_stress", "m/s2", Kind::F32),
    ColumnSpec::new("solid_cover", "1", Kind::U16),
];

/// All columns that the state's memory has of the solid.
const OWN: usize = COLUMNS.len() + bearing::COLUMNS.len();

/// A block with solid cells.
#[derive(Clone, Debug)]
struct Block {
    /// The solid cells, a bit each.
    cells: u64,
    /// Their particles.
    counts: [u16; CELLS],
    /// Cell and index of each solid particle; in no order that matters.
    members: Vec<(u8, u32)>,
    /// Its place in the memory.
    slot: usize,
}

impl Block {
    fn new(slot: usize) -> Self {
        Self {
            cells: 0,
            counts: [0; CELLS],
            members: Vec::new(),
            slot,
        }
    }

    /// Takes a particle in.
    fn add(&mut self, local: usize, index: u32) {
        self.cells |= 1 << local;
        self.counts[local] = self.counts[local].saturating_add(1);
        self.members.push((local as u8, index));
    }

    /// Forgets some of its cells.
    fn forget(&mut self, cells: u64) {
        self.cells &= !cells;
        for local in places(cells) {
            self.counts[local] = 0;
        }
        self.members.retain(|(local, _)| cells >> local & 1 == 0);
    }
}

/// All that is solid.
pub(super) struct Frozen {
    inverse: f32,
    blocks: BTreeMap<u64, Block>,
    /// The memory's columns while a step is taken.
    keys: Column,
    stress: Column,
    cover: Column,
    /// What leans on bodies.
    bearing: Bearing,
    /// Solid particles, and the step after which they were counted.
    known: Option<(usize, u64)>,
}

/// Gives the stress of all solid cells of a state back to the liquid's memory.
pub(super) fn set_free(state: &mut State, inverse: f32) {
    let count = solid_count(&state.particles);
    if count == 0 || state.memory.len() != MEMORY.len() {
        return;
    }
    let mut cells = CellSet::new();
    for point in &state.particles.position[..count] {
        let cell = cell_at(*point, inverse);
        *cells.entry(key_of(block_of(cell))).or_default() |= 1 << local_of(cell);
    }
    let mut own = state.memory.split_off(MEMORY.len() - OWN);
    let mut bearing = Bearing::new(1.0 / inverse);
    bearing.take_up(&mut own);
    bearing.rebuild(|key, local| cells.get(&key).is_some_and(|cells| cells >> local & 1 == 1));
    let [keys, stress, _] = own.as_slice() else {
        return;
    };
    let mut recalled: Vec<Recalled<'_>> = keys
        .entries::<u64>()
        .iter()
        .zip(stress.entries::<f32>().chunks_exact(BLOCK))
        .filter_map(|(key, stress)| {
            let cells = *cells.get(key)?;
            Some(Recalled {
                block: *key,
                cells,
                stress,
                walls: bearing.walls_of(*key, cells),
            })
        })
        .collect();
    recalled.sort_by_key(|entry| entry.block);
    recall(&mut state.memory, &recalled, 1.0);
    let none = MEMORY[MEMORY.len() - OWN..].iter();
    state
        .memory
        .extend(none.map(|spec| Column::zeros(*spec, 0)));
}

impl Frozen {
    pub fn new(inverse: f32) -> Self {
        Self {
            inverse,
            blocks: BTreeMap::new(),
            keys: Column::zeros(COLUMNS[0], 0),
            stress: Column::zeros(COLUMNS[1], 0),
            cover: Column::zeros(COLUMNS[2], 0),
            bearing: Bearing::new(1.0 / inverse),
            known: None,
        }
    }

    /// Takes its columns out of the state's memory and makes the index anew where `solid`, the solid particles, are not those
    /// it knows. `step` counts the steps taken.
    pub fn take_up(&mut self, memory: &mut Vec<Column>, solid: &Particles, step: u64) {
        self.bearing.take_up(memory);
        for column in [&mut self.cover, &mut self.stress, &mut self.keys] {
            match memory.pop() {
                Some(found) => *column = found,
                None => column.resize_to(0),
            }
        }
        let followed = self.known.is_some_and(|(count, after)| {
            count == solid.len() && after + 1 == step && self.keys.len() == self.blocks.len()
        });
        if !followed {
            self.rebuild(solid);
        }
    }

    /// Puts its columns back.
    pub fn put_back(&mut self, memory: &mut Vec<Column>, solid: usize, step: u64) {
        self.known = Some((solid, step));
        for column in [&mut self.keys, &mut self.stress, &mut self.cover] {
            let empty = Column::zeros(column.spec, 0);
            memory.push(std::mem::replace(column, empty));
        }
        self.bearing.put_back(memory);
    }

    fn rebuild(&mut self, solid: &Particles) {
        self.blocks.clear();
        for (index, point) in solid.position.iter().enumerate() {
            let (key, local) = self.place(*point);
            let block = self.blocks.entry(key);
            let block = block.or_insert_with(|| Block::new(usize::MAX));
            block.add(local, index as u32);
        }
        let blocks = self.keys.len();
        if self.stress.len() != blocks * BLOCK || self.cover.len() != blocks * CELLS {
            for column in [&mut self.keys, &mut self.stress, &mut self.cover] {
                column.resize_to(0);
            }
        }
        // Blocks keep the order of the memory; one that has nothing solid is forgotten, one that is missing is unloaded.
        let mut slot = 0;
        while slot < self.keys.len() {
            match self.blocks.get_mut(&self.keys.get::<u64>(slot)) {
                Some(block) if block.slot == usize::MAX => {
                    block.slot = slot;
                    slot += 1;
                }
                _ => drop(self.free_slot(slot)),
            }
        }
        let missing = |(key, block): (&u64, &Block)| (block.slot == usize::MAX).then_some(*key);
        let missing: Vec<u64> = self.blocks.iter().filter_map(missing).collect();
        for key in missing {
            let slot = self.new_slot(key);
            if let Some(block) = self.blocks.get_mut(&key) {
                block.slot = slot;
            }
        }
        let blocks = &self.blocks;
        let cells_of = |key: u64| blocks.get(&key).map_or(0, |block| block.cells);
        self.bearing
            .rebuild(|key, local| cells_of(key) >> local & 1 == 1);
    }

    fn place(&self, point: Vec3) -> (u64, usize) {
        let cell = cell_at(point, self.inverse);
        (key_of(block_of(cell)), local_of(cell))
    }

    fn new_slot(&mut self, key: u64) -> usize {
        let slot = self.keys.len();
        self.keys.resize_to(slot + 1);
        self.keys.set(slot, key);
        self.stress.resize_to((slot + 1) * BLOCK);
        self.cover.resize_to((slot + 1) * CELLS);
        slot
    }

    /// Frees a slot; returns the key of the block that took it over, if one did.
    fn free_slot(&mut self, slot: usize) -> Option<u64> {
        let last = self.keys.len() - 1;
        let key = self.keys.get::<u64>(last);
        self.keys.set(slot, key);
        let stress = self.stress.entries_mut::<f32>();
        stress.copy_within(last * BLOCK..(last + 1) * BLOCK, slot * BLOCK);
        let cover = self.cover.entries_mut::<u16>();
        cover.copy_within(last * CELLS..(last + 1) * CELLS, slot * CELLS);
        self.keys.resize_to(last);
        self.stress.resize_to(last * BLOCK);
        self.cover.resize_to(last * CELLS);
        (slot < last).then_some(key)
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The solid cells of a block, a bit each.
    pub fn cells_of(&self, key: u64) -> u64 {
        self.blocks.get(&key).map_or(0, |block| block.cells)
    }

    /// True where a cell is solid.
    pub fn contains(&self, cell: IVec3) -> bool {
        self.cells_of(key_of(block_of(cell))) >> local_of(cell) & 1 == 1
    }

    /// The pressure that a solid cell froze under, for a step of 1 s and in units of the stress.
    pub fn pressure(&self, key: u64, local: usize) -> f32 {
        self.blocks.get(&key).map_or(0.0, |block| {
            self.stress.get::<f32>(block.slot * BLOCK + local * CELL)
        })
    }

    /// The particles in the solid cells of a block, if it has any.
    pub fn counts(&self, key: u64) -> Option<&[u16; CELLS]> {
        self.blocks.get(&key).map(|block| &block.counts)
    }

    /// How many particles lay on each cell of a block when it froze.
    pub fn covers(&self, key: u64) -> &[u16] {
        let of = |block: &Block| &self.cover.entries::<u16>()[block.slot * CELLS..][..CELLS];
        self.blocks.get(&key).map_or(&[], of)
    }

    /// Notes how many particles lie on the cells of a block; only those of `cells` count.
    pub fn note_covers(&mut self, (key, cells): (u64, u64), covers: &[u16; CELLS]) {
        let Some(block) = self.blocks.get(&key) else {
            return;
        };
        let to = &mut self.cover.entries_mut::<u16>()[block.slot * CELLS..][..CELLS];
        for local in (0..CELLS).filter(|local| cells >> local & 1 == 1) {
            to[local] = covers[local];
        }
    }

    /// Adds what the bodies bear of it in a step of `dt` [s].
    pub fn push_bodies(&mut self, solids: &Solids, dt: f64, sums: &mut [Impulse]) {
        self.bearing.push(solids, dt, sums);
    }

    /// Keys of the blocks with anything solid, increasing.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// How many blocks have anything solid.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The particles of some solid cells, in the order of the state.
    pub fn particles_of(&self, cells: &CellSet) -> Vec<u32> {
        let mut found = Vec::new();
        for (key, cells) in cells {
            if let Some(block) = self.blocks.get(key) {
                let within = |(local, _): &&(u8, u32)| cells >> local & 1 == 1;
                found.extend(block.members.iter().filter(within).map(|(_, index)| *index));
            }
        }
        found.sort_unstable();
        found
    }

    /// The stresses of some solid cells.
    pub fn recalled(&self, cells: &CellSet) -> Vec<Recalled<'_>> {
        let recalled = |(key, cells): (&u64, &u64)| {
            let slot = self.blocks.get(key)?.slot;
            Some(Recalled {
                block: *key,
                cells: *cells,
                stress: &self.stress.entries::<f32>()[slot * BLOCK..(slot + 1) * BLOCK],
                walls: self.bearing.walls_of(*key, *cells),
            })
        };
        cells.iter().filter_map(recalled).collect()
    }

    /// Moves the particles of solid cells to the liquid; returns how many.
    pub fn thaw(
        &mut self,
        cells: &CellSet,
        solid: &mut Particles,
        liquid: &mut Particles,
    ) -> usize {
        let gone = self.particles_of(cells);
        for (key, cells) in cells {
            self.forget(*key, *cells);
        }
        let first = liquid.len();
        liquid.append(solid, &gone);
        liquid.extra[PHASE].entries_mut::<u16>()[first..].fill(LIQUID);
        liquid.extra[REST].entries_mut::<f32>()[first..].fill(0.0);
        self.close_gaps(&gone, solid);
        gone.len()
    }

    fn forget(&mut self, key: u64, cells: u64) {
        let Some(block) = self.blocks.get_mut(&key) else {
            return;
        };
        self.bearing.forget(key, cells);
        block.forget(cells);
        if block.cells == 0 {
            let slot = block.slot;
            self.blocks.remove(&key);
            if let Some(moved) = self
                .free_slot(slot)
                .and_then(|key| self.blocks.get_mut(&key))
            {
                moved.slot = slot;
            }
        }
    }

    /// Takes the particles at `gone` (increasing) out of those that are solid: the last ones take their places.
    fn close_gaps(&mut self, gone: &[u32], solid: &mut Particles) {
        let left = (solid.len() - gone.len()) as u32;
        let split = gone.partition_point(|index| *index < left);
        let mut leaving = gone[split..].iter().copied().peekable();
        let last = left..solid.len() as u32;
        let stay = last.filter(|index| leaving.next_if_eq(index).is_none());
        let moves: Vec<(u32, u32)> = stay.zip(gone[..split].iter().copied()).collect();
        for &(from, to) in &moves {
            let (key, _) = self.place(solid.position[from as usize]);
            let members = self.blocks.get_mut(&key).map(|block| &mut block.members);
            let entry = members.and_then(|m| m.iter_mut().find(|(_, index)| *index == from));
            if let Some((_, index)) = entry {
                *index = to;
            }
        }
        solid.copy_entries(&moves);
        solid.resize(left as usize);
    }

    /// Makes the flagged particles of the liquid solid, with the stress that `memory` has of their cells; returns how many.
    pub fn freeze(
        &mut self,
        flags: &[bool],
        solid: &mut Particles,
        liquid: &mut Particles,
        memory: &[Column],
    ) -> usize {
        let first = solid.len();
        let count = hand_over(liquid, solid, flags, SOLID);
        for index in first..solid.len() {
            let (key, local) = self.place(solid.position[index]);
            self.add(key, local, index as u32, memory);
        }
        count
    }

    fn add(&mut self, key: u64, local: usize, index: u32, memory: &[Column]) {
        if !self.blocks.contains_key(&key) {
            let slot = self.new_slot(key);
            self.blocks.insert(key, Block::new(slot));
        }
        let Some(block) = self.blocks.get_mut(&key) else {
            return;
        };
        if block.cells >> local & 1 == 0 {
            let stress = stress_of_cell(memory, key, local).unwrap_or([0.0; CELL]);
            let first = block.slot * BLOCK + local * CELL;
            self.stress.entries_mut::<f32>()[first..first + CELL].copy_from_slice(&stress);
            self.bearing
                .add(key, local, &walls_of_cell(memory, key, local));
        }
        block.add(local, index);
    }
}
