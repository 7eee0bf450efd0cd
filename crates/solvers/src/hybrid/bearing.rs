//! What bodies bear of the solid: each piece of wall in a solid cell goes on to feel what it felt in the last step before the
//! cell froze, until it thaws. So the floor under a bed at rest carries it whether the bed is computed or not.

use crate::flip::memory::Leaning;
use barchan_base::column::{AnyColumn, Column, ColumnSpec, Kind};
use barchan_base::grid::{CELLS, EDGE, block_of_key, place_in_block};
use barchan_sim::coupling::Impulse;
use barchan_sim::solids::Solids;
use glam::{DVec3, Vec3};
use std::collections::BTreeMap;

/// What the state's memory holds of pieces of wall in solid cells: the key of their block, their cell and body, their friction for
/// a step of 1 s, and what the body bears.
pub(super) const COLUMNS: [ColumnSpec; 4] = [
    ColumnSpec::new("solid_wall_block", "1", Kind::U64),
    ColumnSpec::new("solid_wall", "1", Kind::U64),
    ColumnSpec::new("solid_wall_force", "m/s2", Kind::Vec3),
    ColumnSpec::new("solid_wall_load", "N", Kind::Vec3),
];

/// Force on a body [N], and its moment about the world's origin [N m].
#[derive(Clone, Copy, Default)]
struct Load {
    force: DVec3,
    moment: DVec3,
}

/// The pieces of wall in all solid cells.
pub(super) struct Bearing {
    /// Edge of a cell [m].
    dx: f32,
    /// The memory's columns while a step is taken.
    columns: [Column; 4],
    /// Where those of a block are in them.
    places: BTreeMap<u64, Vec<u32>>,
    /// What each body bears, all pieces together; `None` where that must be found anew.
    loads: Option<Vec<Load>>,
}

/// Cell and body in one number.
fn pack(local: usize, body: usize) -> u64 {
    (local as u64) << 32 | body as u64
}

fn unpack(code: u64) -> (usize, usize) {
    ((code >> 32) as usize % CELLS, (code & 0xffff_ffff) as usize)
}

impl Bearing {
    pub fn new(dx: f32) -> Self {
        Self {
            dx,
            columns: COLUMNS.map(|spec| Column::zeros(spec, 0)),
            places: BTreeMap::new(),
            loads: None,
        }
    }

    /// Takes its columns, which are the last ones, out of the state's memory.
    pub fn take_up(&mut self, memory: &mut Vec<Column>) {
        for column in self.columns.iter_mut().rev() {
            match memory.pop() {
                Some(found) => *column = found,
                None => column.resize_to(0),
            }
        }
    }

    /// Puts its columns back.
    pub fn put_back(&mut self, memory: &mut Vec<Column>) {
        for column in &mut self.columns {
            let empty = Column::zeros(column.spec, 0);
            memory.push(std::mem::replace(column, empty));
        }
    }

    /// Finds its pieces anew; those in cells that are not solid any more are forgotten.
    pub fn rebuild(&mut self, is_solid: impl Fn(u64, usize) -> bool) {
        let least = self.columns.iter().map(Column::len).min().unwrap_or(0);
        for column in &mut self.columns {
            column.resize_to(least);
        }
        self.places.clear();
        self.loads = None;
        for place in 0..least {
            let key = self.columns[0].get::<u64>(place);
            self.places.entry(key).or_default().push(place as u32);
        }
        let stale: Vec<(u64, u64)> = (0..least)
            .map(|place| (self.columns[0].get::<u64>(place), self.wall(place).0))
            .filter(|(key, local)| !is_solid(*key, *local))
            .map(|(key, local)| (key, 1 << local))
            .collect();
        for (key, cells) in stale {
            self.forget(key, cells);
        }
    }

    fn wall(&self, place: usize) -> (usize, Leaning) {
        let (local, body) = unpack(self.columns[1].get(place));
        let leaning = Leaning {
            body,
            force: self.columns[2].get(place),
            load: self.columns[3].get(place),
        };
        (local, leaning)
    }

    /// Notes what leans on the walls of a cell that freezes.
    pub fn add(&mut self, key: u64, local: usize, walls: &[Leaning]) {
        if walls.is_empty() {
            return;
        }
        self.loads = None;
        let places = self.places.entry(key).or_default();
        for wall in walls {
            let place = self.columns[0].len();
            for column in &mut self.columns {
                column.resize_to(place + 1);
            }
            self.columns[0].set(place, key);
            self.columns[1].set(place, pack(local, wall.body));
            self.columns[2].set(place, wall.force);
            self.columns[3].set(place, wall.load);
            places.push(place as u32);
        }
    }

    /// Forgets some cells of a block.
    pub fn forget(&mut self, key: u64, cells: u64) {
        let Some(mut places) = self.places.remove(&key) else {
            return;
        };
        let gone = |place: &u32| cells >> self.wall(*place as usize).0 & 1 == 1;
        let (mut leaving, staying): (Vec<u32>, Vec<u32>) = places.drain(..).partition(gone);
        if !staying.is_empty() {
            self.places.insert(key, staying);
        }
        if !leaving.is_empty() {
            self.loads = None;
        }
        // From the last one on: none of those that take a place over leaves itself.
        leaving.sort_unstable_by(|a, b| b.cmp(a));
        for place in leaving {
            self.close_gap(place);
        }
    }

    /// Lets the last piece take a place.
    fn close_gap(&mut self, place: u32) {
        let last = self.columns[0].len() - 1;
        if place as usize != last {
            let key = self.columns[0].get::<u64>(last);
            let entry = self.places.get_mut(&key);
            let entry = entry.and_then(|all| all.iter_mut().find(|p| **p as usize == last));
            if let Some(entry) = entry {
                *entry = place;
            }
            for column in &mut self.columns {
                column.copy_entries(&[(last as u32, place)]);
            }
        }
        for column in &mut self.columns {
            column.resize_to(last);
        }
    }

    /// The pieces in some cells of a block.
    pub fn walls_of(&self, key: u64, cells: u64) -> Vec<(usize, Leaning)> {
        let places = self.places.get(&key).into_iter().flatten();
        let walls = places.map(|place| self.wall(*place as usize));
        walls.filter(|(local, _)| cells >> local & 1 == 1).collect()
    }

    /// Adds what the bodies bear in a step of `dt` [s].
    pub fn push(&mut self, solids: &Solids, dt: f64, sums: &mut [Impulse]) {
        if self.loads.is_none() {
            self.loads = Some(self.total(sums.len()));
        }
        let loads = self.loads.iter().flatten();
        for ((sum, load), solid) in sums.iter_mut().zip(loads).zip(solids.all()) {
            let center = solid.inertia().center.as_dvec3();
            sum.linear += load.force * dt;
            sum.angular += (load.moment - center.cross(load.force)) * dt;
        }
    }

    fn total(&self, bodies: usize) -> Vec<Load> {
        let mut loads = vec![Load::default(); bodies];
        for place in 0..self.columns[0].len() {
            let (local, wall) = self.wall(place);
            let Some(load) = loads.get_mut(wall.body) else {
                continue;
            };
            let origin = block_of_key(self.columns[0].get(place)) * EDGE as i32;
            let center: Vec3 = ((origin + place_in_block(local)).as_vec3() + 0.5) * self.dx;
            let force = wall.load.as_dvec3();
            load.force += force;
            load.moment += center.as_dvec3().cross(force);
        }
        loads
    }
}
