//! Who is near whom. Grains are sorted along a curve that fills space, so that a chunk of them is a compact clump; pairs
//! nearer than a skin are listed, and the lists hold until someone has come half of it. Springs of old pairs are
//! carried over.

use super::motion::{Ball, Make};
use super::store::{Marks, Motion, Store, TOUCHING, groups, put, put_groups};
use super::walls::faces;
use barchan_base::cells::{Cells, Cursor};
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
pub struct Past {
    /// Where each grain stood in them; [`NEW`] for none.
    pub places: Vec<u32>,
    first_ball: Vec<u32>,
    first_pair: Vec<u32>,
    partners: Vec<u32>,
    springs: Vec<DVec3>,
    wall_balls: Vec<u32>,
    wall_solids: Vec<u32>,
    wall_springs: Vec<DVec3>,
    wall_normals: Vec<DVec3>,
    rolls: Vec<DVec3>,
    wall_rolls: Vec<DVec3>,
}

/// What is remembered of a contact: displacement [m] and rolled angle [rad].
type Memory = (DVec3, DVec3);

impl Past {
    /// Takes the lists out of the store; `places` says where its grains now come from.
    pub fn take(store: &Store<'_>, places: Vec<u32>) -> Self {
        Self {
            places,
            first_ball: store.first_ball.entries::<u32>().to_vec(),
            first_pair: store.first_pair.entries::<u32>().to_vec(),
            partners: store.partners.entries::<u32>().to_vec(),
            springs: groups::<DVec3>(store.springs).to_vec(),
            wall_balls: store.wall_balls.entries::<u32>().to_vec(),
            wall_solids: store.wall_solids.entries::<u32>().to_vec(),
            wall_springs: groups::<DVec3>(store.wall_springs).to_vec(),
            wall_normals: groups::<DVec3>(store.wall_normals).to_vec(),
            rolls: groups::<DVec3>(store.rolls).to_vec(),
            wall_rolls: groups::<DVec3>(store.wall_rolls).to_vec(),
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
    /// The grains in cells at least as wide as they reach, and their centres as the cells know them.
    pub cells: (&'a Cells, &'a [Vec3]),
    /// True where rolling is resisted, and so remembered.
    pub rolls: bool,
}

/// A chunk's lists.
#[derive(Default)]
struct Lists {
    counts: Vec<u32>,
    partners: Vec<u32>,
    springs: Vec<DVec3>,
    wall_balls: Vec<u32>,
    wall_solids: Vec<u32>,
    wall_springs: Vec<DVec3>,
    wall_normals: Vec<DVec3>,
    rolls: Vec<DVec3>,
    wall_rolls: Vec<DVec3>,
}

impl Search<'_> {
    /// Makes all lists anew.
    pub fn list(&self, past: &Past, store: &mut Store<'_>) {
        let grains = self.makes.len();
        let lists: Vec<Lists> = (0..grains.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| self.list_chunk(past, chunk * CHUNK..((chunk + 1) * CHUNK).min(grains)))
            .collect();
        let mut first_pair = vec![0u32];
        first_pair.extend(lists.iter().flat_map(|l| &l.counts).scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        fn join<T: Copy>(lists: &[Lists], part: impl Fn(&Lists) -> &Vec<T>) -> Vec<T> {
            lists
                .iter()
                .flat_map(|list| part(list).iter().copied())
                .collect()
        }
        put(store.first_pair, &first_pair);
        put(store.first_ball, self.first_ball);
        put(store.partners, &join(&lists, |l| &l.partners));
        put_groups(store.springs, &join(&lists, |l| &l.springs));
        put(store.wall_balls, &join(&lists, |l| &l.wall_balls));
        put(store.wall_solids, &join(&lists, |l| &l.wall_solids));
        put_groups(store.wall_springs, &join(&lists, |l| &l.wall_springs));
        put_groups(store.wall_normals, &join(&lists, |l| &l.wall_normals));
        put_groups(store.rolls, &join(&lists, |l| &l.rolls));
        put_groups(store.wall_rolls, &join(&lists, |l| &l.wall_rolls));
        let marks = store.marks();
        *marks = Marks {
            travelled: 0.0,
            half_skin: 0.5 * self.skin,
            ..*marks
        };
    }

    fn list_chunk(&self, past: &Past, chunk: Range<usize>) -> Lists {
        let (cells, centers) = self.cells;
        let mut lists = Lists::default();
        let mut cursor = Cursor::default();
        let mut near: Vec<u32> = Vec::new();
        for grain in chunk.clone() {
            near.clear();
            if self.motions[grain].quiet < 0.0 {
                self.list_grain(grain as u32, &[], past, &mut lists);
                continue;
            }
            let rows = cells.rows(cells.at(centers[grain]), &mut cursor);
            for places in cells.stretches(&rows) {
                near.extend(cells.order()[places].iter().filter(|&&other| {
                    let other = other as usize;
                    if other == grain || (other < grain && chunk.contains(&other)) {
                        return false;
                    }
                    let reach = self.makes[grain].radius + self.makes[other].radius + self.skin;
                    let apart = self.motions[grain].position - self.motions[other].position;
                    apart.length_squared() < reach * reach && self.motions[other].quiet >= 0.0
                }));
            }
            near.sort_unstable();
            self.list_grain(grain as u32, &near, past, &mut lists);
        }
        lists
    }

    /// Lists the pairs of a grain's balls with those of the grains near it, and with solids.
    fn list_grain(&self, grain: u32, near: &[u32], past: &Past, lists: &mut Lists) {
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
                    if self.rolls {
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

    fn list_walls(&self, ball: u32, old: Option<u32>, past: &Past, lists: &mut Lists) {
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
                if self.rolls {
                    lists.wall_rolls.push(roll);
                }
            }
        }
    }
}
