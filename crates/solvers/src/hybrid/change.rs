//! Which cells freeze and which thaw.
//!
//! A cell freezes when all its particles have rested long enough, far from all that moves, and deep enough where a depth is
//! asked for. It thaws when what is beside it moves, the further into the solid the faster; when the load on it is no longer the
//! one it froze under, the further the greater the difference; when what lies on it grows or shrinks; when it comes near the
//! surface; and before a body that moves, a sink or water reaches it. Each limit for freezing is stricter than the one for thawing, so nothing flickers.

use super::cells::{CROSS, Cells, FULL};
use super::cover::{Covers, Plumb};
use super::frozen::{CellSet, Frozen};
use super::scale::Scale;
use barchan_base::Bounds;
use barchan_base::grid::{
    CELLS, EDGE, block_of, block_of_key, cell_at, key_of, local_of, place_in_block, places,
};
use barchan_base::shape::Shape;
use barchan_sim::model::Model;
use barchan_sim::scene::HybridSettings;
use barchan_sim::solids::{Solid, Solids};
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};

/// A cell whose momentum is that of a full cell at this part of √(g Δx) moves.
const MOVING: f32 = 0.008;
/// How far a moving cell is felt, in cells, and the parts of √(g Δx) above which it is felt one further each. Cells that feel more
/// than `MARGIN` of it thaw.
const FELT: u8 = 3;
const FURTHER: [f32; 3] = [0.3, 1.0, 3.0];
/// Cells that feel this much motion stay as they are: a margin between thawing and freezing.
const MARGIN: u8 = 1;
/// A load that differs by more than this part from the one a cell froze under thaws it; a greater difference is felt further, and
/// a lesser one keeps from freezing.
const LOAD: f32 = 0.6;
const GREAT_LOAD: f32 = 0.8;
const LOAD_AT_REST: f32 = 0.5;
/// What lies on a cell is counted once in so many steps. Where it differs by more than this part of what it was, and by more than so
/// many particles, the cell thaws: while anything moves, and once nothing does.
const COUNTED: u64 = 8;
const OTHER: (f32, f32) = (0.25, 2.0 * FULL as f32);
const OTHER_AT_REST: (f32, f32) = (0.02, 0.5 * FULL as f32);
/// Where one thaws for that, those join that are off by this part of the limit: a column alone would hang between its neighbours.
const JOIN: f32 = 0.5;
/// Cells from sinks and water in which nothing freezes.
const ZONE: f32 = 3.0;
/// An empty cell among at least so many neighbours that are not is a pore, not air.
const PORE: usize = 18;

/// What decides about a step's changes.
pub(super) struct Change<'a> {
    pub model: &'a Model,
    pub settings: &'a HybridSettings,
    pub scale: &'a Scale,
    pub solids: &'a Solids,
    pub frozen: &'a Frozen,
    /// The step [s].
    pub span: (f64, f64),
    /// Its number.
    pub step: u64,
}

/// Scratch: what the cells feel.
#[derive(Default)]
pub(super) struct Feeling {
    /// How near something is that moves.
    motion: Vec<u8>,
    /// Cells from the air, from 1 at the surface; 0 where that is far.
    cover: Vec<u8>,
    fronts: Vec<Vec<u32>>,
}

impl Feeling {
    /// Finds what the cells feel of motion, load and surface.
    pub fn find(&mut self, change: &Change, cells: &Cells) {
        self.motion.clear();
        self.motion.resize(cells.grid.cells(), 0);
        self.fronts.iter_mut().for_each(Vec::clear);
        self.fronts
            .resize(usize::from(FELT) + FURTHER.len() + 1, Vec::new());
        for cell in (0..cells.grid.len() * CELLS).filter(|cell| cells.liquid[*cell] > 0) {
            let felt = change.motion(cells, cell).max(change.load(cells, cell));
            if felt > 0 {
                self.motion[cell] = felt;
                self.fronts[usize::from(felt)].push(cell as u32);
            }
        }
        self.spread(cells);
        self.find_cover(change, cells);
    }

    /// Carries what a cell feels on to its neighbours, one less with each.
    fn spread(&mut self, cells: &Cells) {
        for felt in (2..self.fronts.len()).rev() {
            let front = std::mem::take(&mut self.fronts[felt]);
            for &cell in &front {
                let cell = cell as usize;
                for offset in 0..27 {
                    let there = cells.grid.step(cell / CELLS, cell % CELLS, offset);
                    if there < cells.grid.len() * CELLS
                        && usize::from(self.motion[there]) < felt - 1
                    {
                        self.motion[there] = felt as u8 - 1;
                        self.fronts[felt - 1].push(there as u32);
                    }
                }
            }
            self.fronts[felt] = front;
        }
    }

    /// Counts the cells from the air, as far as the depth that is asked for.
    fn find_cover(&mut self, change: &Change, cells: &Cells) {
        self.cover.clear();
        self.cover.resize(cells.grid.cells(), 0);
        let all = cells.grid.len() * CELLS;
        let depth = change.settings.depth.min(u32::from(u8::MAX - 1)) as u8;
        if depth == 0 {
            return;
        }
        let material = |cell: usize| cells.liquid[cell] > 0 || cells.solid[cell];
        let faces_air = |cell: &usize| {
            CROSS[1..].iter().any(|offset| {
                let beside = cells.grid.step(cell / CELLS, cell % CELLS, *offset);
                beside < all && !material(beside) && change.is_air(cells, beside)
            })
        };
        let mut front: Vec<usize> = (0..all)
            .filter(|cell| material(*cell))
            .filter(faces_air)
            .collect();
        for layer in 1..=depth {
            let mut next = Vec::new();
            for cell in front {
                if self.cover[cell] != 0 {
                    continue;
                }
                self.cover[cell] = layer;
                let beside = (0..27).map(|o| cells.grid.step(cell / CELLS, cell % CELLS, o));
                next.extend(beside.filter(|c| *c < all && self.cover[*c] == 0 && material(*c)));
            }
            front = next;
        }
    }
}

impl Change<'_> {
    /// How far the motion of a cell is felt.
    fn motion(&self, cells: &Cells, cell: usize) -> u8 {
        let speed = cells.momentum[cell].length() / self.scale.cell_mass * self.scale.per_speed;
        if speed > MOVING {
            return FELT + FURTHER.iter().filter(|limit| speed > **limit).count() as u8;
        }
        // Something that moves within a solid cell sets that free, at least.
        let inside =
            cells.solid[cell] && cells.velocity(cell).length() * self.scale.per_speed > MOVING;
        if inside { MARGIN + 1 } else { 0 }
    }

    /// How far it is felt that a liquid cell loads a solid one beside it by other than it froze under.
    fn load(&self, cells: &Cells, cell: usize) -> u8 {
        if cells.solid[cell] {
            return 0;
        }
        let mut worst = 0.0f32;
        for offset in &CROSS[1..] {
            let beside = cells.grid.step(cell / CELLS, cell % CELLS, *offset);
            if cells.solid[beside] {
                worst = worst.max(self.mismatch(cells, cell, beside));
            }
        }
        match worst {
            w if w > GREAT_LOAD => MARGIN + 2,
            w if w > LOAD => MARGIN + 1,
            w if w > LOAD_AT_REST => MARGIN,
            _ => 0,
        }
    }

    /// How much the pressure of a liquid cell and of a solid one beside it differ beyond their own weight, over the greater and
    /// what cohesion bears.
    fn mismatch(&self, cells: &Cells, liquid: usize, solid: usize) -> f32 {
        let key = cells.grid.keys()[solid / CELLS];
        let under = self.frozen.pressure(key, solid % CELLS) * self.scale.pressure;
        let now = cells.pressure[liquid] / f32::from(cells.liquid[liquid]);
        let way = self.center(cells, solid) - self.center(cells, liquid);
        let weight = self.scale.density * self.model.gravity.dot(way);
        let borne = 2.0 * self.scale.weight + self.scale.cohesion;
        (under - now - weight).abs() / (under.max(now) + borne)
    }

    fn center(&self, cells: &Cells, cell: usize) -> Vec3 {
        let place = cells.grid.origin(cell / CELLS) + place_in_block(cell % CELLS);
        (place.as_vec3() + 0.5) * self.scale.dx
    }

    /// True where an empty cell is neither inside a solid nor a pore of the material.
    fn is_air(&self, cells: &Cells, cell: usize) -> bool {
        let around = (0..27).map(|o| cells.grid.step(cell / CELLS, cell % CELLS, o));
        let filled = around.filter(|c| cells.liquid[*c] > 0 || cells.solid[*c]);
        let center = self.center(cells, cell);
        filled.count() < PORE
            && self
                .solids
                .all()
                .iter()
                .all(|solid| solid.distance(center) > 0.5 * self.scale.dx)
    }

    /// The boxes about moving bodies, grown by so many cells.
    fn moving(&self, cells: f32) -> Vec<Bounds> {
        let moves = |solid: &&Solid| solid.moves() || solid.inertia().inverse_mass > 0.0;
        let all = self.solids.all().iter().filter(moves);
        all.map(|solid| solid.bounds().grown(cells * self.scale.dx))
            .collect()
    }

    /// Shapes of the sinks at work in this step, and of water until all it touches is soaked; only those that begin now where
    /// `begin` says so.
    fn zones(&self, begin: bool) -> Vec<&Shape> {
        let (start, end) = self.span;
        let works =
            |from: f64, until: f64| end > from && start < until && (!begin || start <= from);
        let sinks =
            self.model.sinks.iter().filter_map(|sink| {
                works(sink.active.from, sink.active.until).then_some(&sink.shape)
            });
        let wet = self.model.wet.iter().filter_map(|wet| {
            let soaked = wet.active.until.min(wet.active.from + 1.0 / wet.rate);
            works(wet.active.from, soaked).then_some(&wet.shape)
        });
        sinks.chain(wet).collect()
    }

    /// The solid cells that thaw.
    pub fn thawing(&self, feeling: &Feeling, cells: &Cells) -> CellSet {
        let mut thawing = CellSet::new();
        if self.frozen.is_empty() {
            return thawing;
        }
        let depth = self.settings.depth.min(u32::from(u8::MAX)) as u8;
        for (block, key) in cells.grid.keys().iter().enumerate() {
            let solid = self.frozen.cells_of(*key);
            let asked = |local: &usize| {
                let cell = block * CELLS + local;
                let bare = feeling.cover[cell] > 0 && feeling.cover[cell] < depth;
                feeling.motion[cell] > MARGIN || bare
            };
            let found = (0..CELLS).filter(|l| solid >> l & 1 == 1).filter(asked);
            let found = found.fold(0, |mask, local| mask | 1u64 << local);
            if found != 0 {
                thawing.insert(*key, found);
            }
        }
        if self.step.is_multiple_of(COUNTED) {
            self.thaw_where_load_changed(feeling, cells, &mut thawing);
        }
        for bounds in self.moving(self.settings.reach as f32) {
            self.thaw_within(bounds, &mut thawing);
        }
        for shape in self.zones(true) {
            let bounds = shape.bounds().grown(ZONE * self.scale.dx);
            self.thaw_within(bounds, &mut thawing);
        }
        thawing
    }

    /// The particles in the cells of a block, solid and liquid, if it has any.
    fn counts(&self, cells: &Cells, key: u64) -> Option<[u16; CELLS]> {
        let solid = self.frozen.counts(key).copied();
        let Some(block) = cells.grid.find_key(key) else {
            return solid;
        };
        let mut counts = solid.unwrap_or([0; CELLS]);
        for (count, liquid) in counts.iter_mut().zip(&cells.liquid[block * CELLS..]) {
            *count = count.saturating_add(*liquid);
        }
        Some(counts).filter(|counts| counts.iter().any(|count| *count > 0))
    }

    /// Adds the cells on which other than what lay there when they froze lies now, and all that is solid above them.
    fn thaw_where_load_changed(&self, feeling: &Feeling, cells: &Cells, thawing: &mut CellSet) {
        let Some(plumb) = Plumb::new(self.model.gravity) else {
            return;
        };
        let (part, least) = match feeling.fronts.iter().all(Vec::is_empty) {
            true => OTHER_AT_REST,
            false => OTHER,
        };
        let mut worst = 0.0f32;
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut covers = Covers::new(plumb, |key| self.counts(cells, key));
        for key in self.frozen.keys() {
            let now = covers.of(key);
            let off = |local: usize| {
                let before = f32::from(self.frozen.covers(key)[local]);
                (f32::from(now[local]) - before).abs() / (part * before + least)
            };
            let solid = self.frozen.cells_of(key);
            worst = places(solid).map(off).fold(worst, f32::max);
            let joins = places(solid).filter(|local| off(*local) > JOIN);
            found.push((key, joins.fold(0, |mask, local| mask | 1u64 << local)));
        }
        if worst <= 1.0 {
            return;
        }
        for (key, mask) in found {
            for local in places(mask) {
                let mut cell = block_of_key(key) * EDGE as i32 + place_in_block(local);
                while self.frozen.contains(cell) {
                    *thawing.entry(key_of(block_of(cell))).or_default() |= 1 << local_of(cell);
                    cell = plumb.above(cell);
                }
            }
        }
    }

    /// The blocks in which cells freeze, those cells, and what lies on all of them.
    pub fn covers_of(&self, freezing: &[bool], cells: &Cells) -> Vec<((u64, u64), [u16; CELLS])> {
        let Some(plumb) = Plumb::new(self.model.gravity) else {
            return Vec::new();
        };
        let mut blocks = CellSet::new();
        for (cell, _) in cells.of_liquid.iter().zip(freezing).filter(|(_, f)| **f) {
            let key = cells.grid.keys()[*cell as usize / CELLS];
            *blocks.entry(key).or_default() |= 1 << (*cell as usize % CELLS);
        }
        let mut covers = Covers::new(plumb, |key| self.counts(cells, key));
        let all = blocks.into_iter();
        all.map(|(key, mask)| ((key, mask), covers.of(key)))
            .collect()
    }

    /// Adds the solid cells with their centre in a box.
    fn thaw_within(&self, bounds: Bounds, thawing: &mut CellSet) {
        let corner = |point: Vec3| {
            let most = Vec3::splat(1e6);
            block_of(cell_at(point.clamp(-most, most), self.scale.inverse))
        };
        let (low, high) = (corner(bounds.min), corner(bounds.max));
        // As a float: a plane has more blocks than an integer can count.
        let size = (high - low + 1).max(IVec3::ZERO).as_dvec3();
        let keys: Vec<u64> = if size.element_product() <= self.frozen.len() as f64 {
            let row = |y: i32, z: i32| (low.x..=high.x).map(move |x| IVec3::new(x, y, z));
            let layer = |z: i32| (low.y..=high.y).flat_map(move |y| row(y, z));
            (low.z..=high.z).flat_map(layer).map(key_of).collect()
        } else {
            self.frozen.keys().collect()
        };
        for key in keys {
            let cells = self.frozen.cells_of(key);
            let origin = block_of_key(key) * EDGE as i32;
            let within = |local: &usize| {
                let center = (origin + place_in_block(*local)).as_vec3() + 0.5;
                bounds.contains(center * self.scale.dx)
            };
            let found = (0..CELLS).filter(|l| cells >> l & 1 == 1).filter(within);
            let mask = found.fold(0, |mask, local| mask | 1u64 << local);
            if mask != 0 {
                *thawing.entry(key).or_default() |= mask;
            }
        }
    }

    /// True for each liquid particle that freezes.
    pub fn freezing(&self, feeling: &Feeling, cells: &Cells, liquid: &Particles) -> Vec<bool> {
        let boxes = self.moving(self.settings.reach as f32 + 1.0);
        let zones = self.zones(false);
        let depth = self.settings.depth;
        let ripe = |cell: usize| {
            cells.liquid[cell] > 0
                && cells.gas[cell] == 0
                && cells.rest[cell] >= self.scale.rest_time
                && feeling.motion[cell] == 0
                && (depth == 0 || feeling.cover[cell] == 0)
        };
        let clear = |cell: usize| {
            let center = self.center(cells, cell);
            let far = |shape: &&Shape| shape.distance(center) > ZONE * self.scale.dx;
            !boxes.iter().any(|bounds| bounds.contains(center)) && zones.iter().all(far)
        };
        let mut freezes = vec![false; cells.grid.cells()];
        for cell in (0..cells.grid.len() * CELLS).filter(|cell| ripe(*cell)) {
            freezes[cell] = clear(cell);
        }
        let of = |cell: &u32| freezes[*cell as usize];
        let mut flags: Vec<bool> = cells.of_liquid.iter().map(of).collect();
        // What thawed or condensed in this step was not counted.
        flags.resize(liquid.len(), false);
        flags
    }
}

/// The solid cells that touch liquid: they stand in its solve, held.
pub(super) fn rim(cells: &Cells) -> CellSet {
    let mut rim = CellSet::new();
    for cell in (0..cells.grid.len() * CELLS).filter(|cell| cells.liquid[*cell] > 0) {
        for offset in 0..27 {
            let there = cells.grid.step(cell / CELLS, cell % CELLS, offset);
            if cells.solid[there] {
                let key = cells.grid.keys()[there / CELLS];
                *rim.entry(key).or_default() |= 1 << (there % CELLS);
            }
        }
    }
    rim
}
