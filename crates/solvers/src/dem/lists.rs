//! Who is near whom. Grains are sorted along a curve that fills space, so that a chunk of them is a compact clump; pairs
//! nearer than a skin are listed, and the lists hold until someone has come half of it. Springs of old pairs are
//! carried over.

use super::motion::{Ball, Make};
use super::store::{Marks, Motion, Store, TOUCHING, groups, put};
use super::walls::faces;
use barchan_base::cells::{Cells, Cursor};
use barchan_base::column::{AnyColumn, Column, Entry};
use barchan_sim::solids::Solids;
use glam::{DVec3, Vec3};
use rayon::prelude::*;
use std::ops::Range;

/// Grains in a chunk. Larger ones have fewer pairs across chunks, which are worked out twice.
pub const CHUNK: usize = 1024;
/// No grain: what is new has no past.
pub const NEW: u32 = u32::MAX;

/// Cuts a slice at `bounds`, which rise from its start to its end.
pub fn split<'a, T>(mut rest: &'a mut [T], bounds: &[usize]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(bounds.len());
    for pair in bounds.windows(2) {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(pair[1] - pair[0]);
        parts.push(part);
        rest = after;
    }
    parts
}

/// The order of points along Morton's curve through cells of edge `size` [m].
pub fn curve(motions: &[Motion], size: f64) -> Vec<u32> {
    let least = motions
        .iter()
        .fold(DVec3::INFINITY, |a, m| a.min(m.position));
    let mut keys: Vec<(u64, u32)> = motions
        .par_iter()
        .with_min_len(4096)
        .enumerate()
        .map(|(i, motion)| {
            let at = ((motion.position - least) / size).to_array();
            let key = (0..3).fold(0, |key, axis| key | spread(at[axis] as u64) << axis);
            (key, i as u32)
        })
        .collect();
    keys.par_sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// Spreads the lower 21 bits of a number, two zeros between each and the next.
fn spread(number: u64) -> u64 {
    let mut bits = number & 0x1f_ffff;
    for (shift, mask) in [
        (32, 0x001f_0000_0000_ffff),
        (16, 0x001f_0000_ff00_00ff),
        (8, 0x100f_00f0_0f00_f00f),
        (4, 0x10c3_0c30_c30c_30c3),
        (2, 0x1249_2492_4924_9249),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// Lists as they were, to take springs from.
pub struct Past<'a> {
    /// Where each grain stood in them; [`NEW`] for none.
    places: &'a [u32],
    first_ball: &'a [u32],
    first_pair: &'a [u32],
    partners: &'a [u32],
    springs: &'a [DVec3],
    wall_balls: &'a [u32],
    wall_solids: &'a [u32],
    wall_springs: &'a [DVec3],
    wall_normals: &'a [DVec3],
    rolls: &'a [DVec3],
    wall_rolls: &'a [DVec3],
}

/// What is remembered of a contact: displacement [m] and rolled angle [rad].
type Memory = (DVec3, DVec3);

impl<'a> Past<'a> {
    /// The lists of a store; `places` says where grains that are now listed come from.
    pub fn of(store: &'a Store<'_>, places: &'a [u32]) -> Self {
        Self {
            places,
            first_ball: store.first_ball.entries(),
            first_pair: store.first_pair.entries(),
            partners: store.partners.entries(),
            springs: groups(store.springs),
            wall_balls: store.wall_balls.entries(),
            wall_solids: store.wall_solids.entries(),
            wall_springs: groups(store.wall_springs),
            wall_normals: groups(store.wall_normals),
            rolls: groups(store.rolls),
            wall_rolls: groups(store.wall_rolls),
        }
    }

    /// The old number of ball `part` of grain `grain`.
    fn ball(&self, grain: u32, part: u32) -> Option<u32> {
        let place = self.places[grain as usize];
        (place != NEW).then(|| self.first_ball[place as usize] + part)
    }

    /// What two balls remember of each other as the first one sees it, if they touched.
    fn pair(&self, one: Option<u32>, other: Option<u32>) -> Option<Memory> {
        let (one, other) = (one? as usize, other? as usize);
        let look = |owner: usize, partner: usize| {
            let [from, to] = [owner, owner + 1].map(|ball| self.first_pair.get(ball));
            let near = *from? as usize..*to? as usize;
            let touching = partner as u32 | TOUCHING;
            let found = self.partners[near.clone()]
                .iter()
                .position(|p| *p == touching)?;
            let entry = near.start + found;
            Some((
                self.springs[entry],
                self.rolls.get(entry).copied().unwrap_or_default(),
            ))
        };
        look(one, other).or_else(|| look(other, one).map(|(spring, roll)| (-spring, -roll)))
    }

    /// What a ball remembers of a solid in one of its slots, if they touched, and the normal there.
    fn wall(&self, ball: Option<u32>, solid: u32, slot: usize) -> Option<(Memory, DVec3)> {
        let ball = ball?;
        let from = self.wall_balls.partition_point(|other| *other < ball);
        let entry = (from..self.wall_balls.len())
            .take_while(|entry| self.wall_balls[*entry] == ball)
            .filter(|entry| self.wall_solids[*entry] & !TOUCHING == solid)
            .nth(slot)?;
        let roll = self.wall_rolls.get(entry).copied().unwrap_or_default();
        let touching = self.wall_solids[entry] & TOUCHING != 0;
        touching.then(|| ((self.wall_springs[entry], roll), self.wall_normals[entry]))
    }
}

/// What a search is made with.
pub struct Search<'a> {
    /// The grains.
    pub makes: &'a [Make],
    /// Their motion.
    pub motions: &'a [Motion],
    /// First ball of each grain, and the end.
    pub first_ball: &'a [u32],
    /// The balls.
    pub balls: &'a [Ball],
    /// Pairs with a gap up to this are listed [m].
    pub skin: f64,
    /// The solids.
    pub solids: &'a Solids,
    /// The grains in cells at least as wide as they reach.
    pub nearby: &'a Nearby,
    /// Whether grains, and whether walls, resist rolling, so that it is remembered.
    pub rolls: [bool; 2],
}

/// Grains sorted into cells, and the cells around each.
#[derive(Default)]
pub struct Nearby {
    cells: Cells,
    /// Centre and radius of each grain, as it lies in the cells.
    sorted: Vec<[f32; 4]>,
    /// Cell of each grain.
    cell_of: Vec<u32>,
    /// For each cell the nine stretches of sorted grains around it.
    stretches: Vec<[Range<u32>; 9]>,
}

impl Nearby {
    /// Sorts grains at `centers` into cells of edge `size` [m].
    pub fn sort(&mut self, centers: &[Vec3], makes: &[Make], size: f32) {
        self.cells.sort(centers, size);
        let cells = &self.cells;
        let order = cells.order();
        let row = |i: &u32| {
            let (at, radius) = (centers[*i as usize], makes[*i as usize].radius);
            [at.x, at.y, at.z, radius as f32]
        };
        order
            .par_iter()
            .with_min_len(CHUNK)
            .map(row)
            .collect_into_vec(&mut self.sorted);
        self.cell_of.resize(centers.len(), 0);
        for cell in 0..cells.len() {
            for place in cells.places(cell) {
                self.cell_of[order[place] as usize] = cell as u32;
            }
        }
        self.stretches.resize(cells.len(), Default::default());
        self.stretches
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, stretches)| {
                // Cells in their order: where the last one's neighbours were, the next one's are near.
                let mut cursor = Cursor::default();
                for (cell, stretches) in (chunk * CHUNK..).zip(stretches) {
                    let rows = cells.rows(cells.coordinates(cell), &mut cursor);
                    *stretches = cells
                        .stretches(&rows)
                        .map(|places| places.start as u32..places.end as u32);
                }
            });
    }

    /// Calls `each` with the grains in the cells around `grain`, and their places and radii.
    #[inline]
    pub fn around(&self, grain: usize, mut each: impl FnMut(u32, &[f32; 4])) {
        for places in &self.stretches[self.cell_of[grain] as usize] {
            let places = places.start as usize..places.end as usize;
            let others = self.cells.order()[places.clone()].iter();
            for (other, at) in others.zip(&self.sorted[places]) {
                each(*other, at);
            }
        }
    }
}

/// A chunk's lists.
#[derive(Default)]
pub struct Lists {
    counts: Vec<u32>,
    partners: Vec<u32>,
    springs: Vec<DVec3>,
    wall_balls: Vec<u32>,
    wall_solids: Vec<u32>,
    wall_springs: Vec<DVec3>,
    wall_normals: Vec<DVec3>,
    rolls: Vec<DVec3>,
    wall_rolls: Vec<DVec3>,
    near: Vec<u32>,
}

impl Lists {
    fn clear(&mut self) {
        self.counts.clear();
        self.partners.clear();
        self.springs.clear();
        self.wall_balls.clear();
        self.wall_solids.clear();
        self.wall_springs.clear();
        self.wall_normals.clear();
        self.rolls.clear();
        self.wall_rolls.clear();
    }
}

/// Writes a part of all lists into a column, one after the other.
fn join<T: Entry>(column: &mut Column, lists: &[Lists], part: impl Fn(&Lists) -> &[T] + Sync) {
    let ends = lists.iter().scan(0, |end, list| {
        *end += part(list).len();
        Some(*end)
    });
    let bounds: Vec<usize> = std::iter::once(0).chain(ends).collect();
    column.resize_to(bounds[lists.len()]);
    split(column.entries_mut(), &bounds)
        .into_par_iter()
        .zip(lists)
        .for_each(|(to, list)| to.copy_from_slice(part(list)));
}

/// The same of groups of numbers.
fn join_groups(column: &mut Column, lists: &[Lists], part: impl Fn(&Lists) -> &[DVec3] + Sync) {
    join::<f64>(column, lists, |list| bytemuck::cast_slice(part(list)));
}

/// What single precision may be off by, over the coordinates' size.
const ROUNDING: f32 = 1e-6;

impl Search<'_> {
    /// Makes all lists anew, in `lists` first.
    pub fn list(&self, past: &Past<'_>, lists: &mut Vec<Lists>, store: &mut Store<'_>) {
        let grains = self.makes.len();
        lists.resize_with(grains.div_ceil(CHUNK), Lists::default);
        lists.par_iter_mut().enumerate().for_each(|(chunk, list)| {
            self.list_chunk(past, chunk * CHUNK..((chunk + 1) * CHUNK).min(grains), list);
        });
        join::<u32>(store.first_pair, lists, |l| &l.counts);
        let mut sum = 0;
        store.first_pair.resize_to(self.balls.len() + 1);
        for first in store.first_pair.entries_mut::<u32>() {
            sum += std::mem::replace(first, sum);
        }
        put(store.first_ball, self.first_ball);
        join::<u32>(store.partners, lists, |l| &l.partners);
        join_groups(store.springs, lists, |l| &l.springs);
        join::<u32>(store.wall_balls, lists, |l| &l.wall_balls);
        join::<u32>(store.wall_solids, lists, |l| &l.wall_solids);
        join_groups(store.wall_springs, lists, |l| &l.wall_springs);
        join_groups(store.wall_normals, lists, |l| &l.wall_normals);
        join_groups(store.rolls, lists, |l| &l.rolls);
        join_groups(store.wall_rolls, lists, |l| &l.wall_rolls);
        let marks = store.marks();
        *marks = Marks {
            travelled: 0.0,
            half_skin: 0.5 * self.skin,
            ..*marks
        };
    }

    fn list_chunk(&self, past: &Past<'_>, chunk: Range<usize>, lists: &mut Lists) {
        lists.clear();
        let mut near = std::mem::take(&mut lists.near);
        for grain in chunk.clone() {
            near.clear();
            if self.motions[grain].waits() {
                self.list_grain(grain as u32, &[], past, lists);
                continue;
            }
            let center = self.motions[grain].position.as_vec3();
            let off = ROUNDING * center.abs().max_element();
            let reach = (self.makes[grain].radius + self.skin) as f32 * (1.0 + ROUNDING) + off;
            self.nearby.around(grain, |other, &[x, y, z, radius]| {
                let reach = reach + radius;
                let apart = Vec3::new(x, y, z) - center;
                if apart.length_squared() < reach * reach {
                    near.push(other);
                }
            });
            near.retain(|other| {
                let other = *other as usize;
                let listed = other < grain && chunk.contains(&other);
                other != grain && !listed && !self.motions[other].waits()
            });
            near.sort_unstable();
            self.list_grain(grain as u32, &near, past, lists);
        }
        lists.near = near;
    }

    /// Lists the pairs of a grain's balls with those of the grains near it, and with solids.
    fn list_grain(&self, grain: u32, near: &[u32], past: &Past<'_>, lists: &mut Lists) {
        let own = self.first_ball[grain as usize]..self.first_ball[grain as usize + 1];
        for ball in own.clone() {
            let a = self.balls[ball as usize];
            let old = past.ball(grain, ball - own.start);
            let before = lists.partners.len();
            for &other in near {
                let others = self.first_ball[other as usize]..self.first_ball[other as usize + 1];
                for partner in others.clone() {
                    let b = self.balls[partner as usize];
                    let reach = a.radius + b.radius + self.skin;
                    if (a.center - b.center).length_squared() >= reach * reach {
                        continue;
                    }
                    let memory = past.pair(old, past.ball(other, partner - others.start));
                    let touching = if memory.is_some() { TOUCHING } else { 0 };
                    let (spring, roll) = memory.unwrap_or_default();
                    lists.partners.push(partner | touching);
                    lists.springs.push(spring);
                    if self.rolls[0] {
                        lists.rolls.push(roll);
                    }
                }
            }
            lists.counts.push((lists.partners.len() - before) as u32);
            if self.motions[grain as usize].quiet >= 0.0 {
                self.list_walls(ball, old, past, lists);
            }
        }
    }

    fn list_walls(&self, ball: u32, old: Option<u32>, past: &Past<'_>, lists: &mut Lists) {
        let a = self.balls[ball as usize];
        let (center, reach) = (a.center.as_vec3(), (a.radius + self.skin) as f32 * 1.0001);
        for (index, solid) in self.solids.all().iter().enumerate() {
            if solid.bounds().distance_squared(center) > reach * reach
                || solid.is_beyond(center, reach)
            {
                continue;
            }
            for slot in 0..faces(solid.shape_at_start()) {
                let memory = past.wall(old, index as u32, slot);
                let touching = if memory.is_some() { TOUCHING } else { 0 };
                let ((spring, roll), normal) = memory.unwrap_or_default();
                lists.wall_balls.push(ball);
                lists.wall_solids.push(index as u32 | touching);
                lists.wall_springs.push(spring);
                lists.wall_normals.push(normal);
                if self.rolls[1] {
                    lists.wall_rolls.push(roll);
                }
            }
        }
    }
}
