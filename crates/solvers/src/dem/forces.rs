//! The forces of all contacts. Within a chunk of grains each pair is looked at once and pushes both; a pair across two
//! chunks is looked at from both sides, and both find opposite forces to the bit. So no thread waits for another, and
//! none decides a sum's order.

use super::finish::{Finish, Moved, Shown};
use super::law::{Law, Pair, Touch};
use super::lists::{CHUNK, split};
use super::motion::{Ball, Make, Seen};
use super::number::{LANES, Number, Vector, each, lanes};
use super::store::{Load, Motion, Store, TOUCHING, groups_mut};
use barchan_sim::coupling::Impulses;
use barchan_sim::solids::Solids;
use glam::DVec3;
use rayon::prelude::*;
use wide::f64x4;

/// What the forces are worked out from.
pub struct Scene<'a> {
    /// Constants of each material with each, row by row.
    pub pairs: &'a [Pair],
    /// How many materials there are.
    pub materials: usize,
    /// Constants of each material with each solid, row by row.
    pub walls: &'a [Pair],
    /// The solids.
    pub solids: &'a Solids,
    /// The grains.
    pub makes: &'a [Make],
    /// How they move at the end of the step.
    pub seen: &'a [Seen],
    /// Their centres of mass [m]; nothing where each is a ball, whose centre that is.
    pub places: &'a [DVec3],
    /// Their balls.
    pub balls: &'a [Ball],
    /// The grain of each ball.
    pub owners: &'a [u32],
    /// Chunks that must be looked at; the others sleep.
    pub active: &'a [bool],
    /// Length of the step [s].
    pub dt: f64,
}

/// What happened in a chunk.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    /// Impulses on the solids.
    pub impulses: Impulses,
    /// Pairs that touch; those across chunks count from both sides.
    pub pairs: f64,
    /// The deepest overlap over the smaller radius.
    pub deepest: f64,
}

/// A chunk's share of everything that is written.
pub struct Share<'a> {
    /// Index of its first grain.
    pub first_grain: usize,
    /// How its grains move.
    pub motions: &'a mut [Motion],
    /// Loads on its grains.
    pub loads: &'a mut [Load],
    /// The other ball of each pair.
    pub partners: &'a mut [u32],
    /// Displacement of each pair [m].
    pub springs: &'a mut [DVec3],
    /// Rolled angle of each pair [rad], or nothing.
    pub rolls: &'a mut [DVec3],
    /// Ball of each nearness to a solid.
    pub wall_balls: &'a [u32],
    /// Its solid, and whether they touch.
    pub wall_solids: &'a mut [u32],
    /// Its displacement [m].
    pub wall_springs: &'a mut [DVec3],
    /// Its rolled angle [rad], or nothing.
    pub wall_rolls: &'a mut [DVec3],
    /// Normal of the face that it touched last.
    pub wall_normals: &'a mut [DVec3],
}

/// What everyone reads: first ball of each grain, first pair of each ball.
pub type Read<'a> = (&'a [u32], &'a [u32]);

/// Two balls that press into each other.
#[derive(Clone, Copy, Default)]
struct Met {
    ball: u32,
    other: u32,
    /// Which of the chunk's pairs they are.
    entry: u32,
    /// True where they did not touch a step ago.
    fresh: bool,
}

/// Balls that met are worked out in batches: finding them is one loop, what they do another.
const BATCH: usize = 64;

/// One side of four contacts.
struct Side {
    /// Centres of mass [m].
    place: Vector<f64x4>,
    /// Radii of the balls [m].
    radius: f64x4,
    /// Centres of the balls [m].
    center: Vector<f64x4>,
    /// Velocities of the centres of mass [m/s].
    velocity: Vector<f64x4>,
    /// Angular velocities [rad/s].
    spin: Vector<f64x4>,
    /// One over the masses [1/kg].
    inverse_mass: f64x4,
    /// How wet they are.
    wetness: f64x4,
}

/// Four contacts side by side.
struct Four {
    /// What touches.
    touch: Touch<f64x4>,
    /// From the two grains' centres of mass to where they touch [m].
    levers: [Vector<f64x4>; 2],
    /// Spin of the first grain against the second [rad/s].
    rolling: Vector<f64x4>,
    /// Overlap over the smaller radius.
    depth: f64x4,
    /// False where each grain is a ball.
    composite: bool,
}

/// What four contacts do.
struct Push {
    /// Force on the first grain [N].
    force: Vector<f64x4>,
    /// Torque about its centre of mass [N m].
    torque: Vector<f64x4>,
    /// The same about the second's, to be taken from it [N m].
    other_torque: Vector<f64x4>,
}

impl Scene<'_> {
    /// Works out the loads on all grains, moves the springs on, and finishes each chunk's step while it is at hand; `shown`
    /// is what others see of each chunk.
    pub fn load(
        &self,
        law: impl Law,
        store: &mut Store<'_>,
        (finish, shown): (&Finish<'_>, Vec<Shown<'_>>),
    ) -> Vec<(Touched, Moved)> {
        let read: Read<'_> = (store.first_ball.entries(), store.first_pair.entries());
        let wall_balls = store.wall_balls.entries::<u32>();
        let (bounds, pairs, walls) = bounds(read, wall_balls);
        let none = vec![0; bounds.len()];
        let rolls = if store.rolls.is_empty() {
            &none
        } else {
            &pairs
        };
        let wall_rolls = if store.wall_rolls.is_empty() {
            &none
        } else {
            &walls
        };
        let loads = split(groups_mut::<Load>(store.loads), &bounds).into_iter();
        let mut motions = split(groups_mut::<Motion>(store.motions), &bounds).into_iter();
        let mut partners = split(store.partners.entries_mut::<u32>(), &pairs).into_iter();
        let mut springs = split(groups_mut::<DVec3>(store.springs), &pairs).into_iter();
        let mut rolls = split(groups_mut::<DVec3>(store.rolls), rolls).into_iter();
        let mut wall_solids = split(store.wall_solids.entries_mut::<u32>(), &walls).into_iter();
        let mut wall_springs = split(groups_mut::<DVec3>(store.wall_springs), &walls).into_iter();
        let mut wall_rolls = split(groups_mut::<DVec3>(store.wall_rolls), wall_rolls).into_iter();
        let mut wall_normals = split(groups_mut::<DVec3>(store.wall_normals), &walls).into_iter();
        let share = |(chunk, loads)| Share {
            first_grain: bounds[chunk],
            motions: motions.next().unwrap_or_default(),
            loads,
            partners: partners.next().unwrap_or_default(),
            springs: springs.next().unwrap_or_default(),
            rolls: rolls.next().unwrap_or_default(),
            wall_balls: &wall_balls[walls[chunk]..walls[chunk + 1]],
            wall_solids: wall_solids.next().unwrap_or_default(),
            wall_springs: wall_springs.next().unwrap_or_default(),
            wall_rolls: wall_rolls.next().unwrap_or_default(),
            wall_normals: wall_normals.next().unwrap_or_default(),
        };
        let shares = loads.enumerate().map(share).zip(shown).zip(self.active);
        let shares: Vec<(Share<'_>, Shown<'_>)> = shares
            .filter_map(|(chunk, active)| active.then_some(chunk))
            .collect();
        shares
            .into_par_iter()
            .map(|(mut share, shown)| {
                let touched = self.load_chunk(law, read, &mut share);
                (touched, finish.chunk(&mut share, shown))
            })
            .collect()
    }

    fn load_chunk(&self, law: impl Law, read: Read<'_>, share: &mut Share<'_>) -> Touched {
        let mut touched = Touched {
            impulses: Impulses::new(self.solids),
            ..Touched::default()
        };
        share.loads.fill(Load::default());
        self.press(law, read, share, &mut touched);
        self.lean(law, share, &mut touched);
        touched
    }

    /// Contacts of grains with grains.
    fn press(&self, law: impl Law, read: Read<'_>, share: &mut Share<'_>, touched: &mut Touched) {
        let (first_ball, first_pair) = read;
        let [first, end] = [share.first_grain, share.first_grain + share.loads.len()]
            .map(|grain| first_ball[grain] as usize);
        let from = first_pair[first] as usize;
        let mut batch = [Met::default(); BATCH];
        let mut count = 0;
        for ball in first..end {
            let a = self.balls[ball];
            for entry in first_pair[ball] as usize - from..first_pair[ball + 1] as usize - from {
                let partner = &mut share.partners[entry];
                let other = *partner & !TOUCHING;
                let b = &self.balls[other as usize];
                let reach = a.radius + b.radius;
                let touches = (a.center - b.center).length_squared() < reach * reach;
                // Written in any case and kept where they touch: half of them do, and nobody could guess which.
                batch[count] = Met {
                    ball: ball as u32,
                    other,
                    entry: entry as u32,
                    fresh: *partner & TOUCHING == 0,
                };
                *partner = other | u32::from(touches) << 31;
                count += usize::from(touches);
                if count == BATCH {
                    self.push_all(law, &batch, share, touched);
                    count = 0;
                }
            }
        }
        self.push_all(law, &batch[..count], share, touched);
    }

    /// What balls that met do to each other.
    fn push_all(&self, law: impl Law, batch: &[Met], share: &mut Share<'_>, touched: &mut Touched) {
        let one = Pair::all(&self.pairs[0]);
        let mut deepest = f64x4::ZERO;
        for group in batch.chunks(LANES) {
            // Lanes that are left over do as the last.
            let mets: [Met; LANES] = each(|lane| group[lane.min(group.len() - 1)]);
            let owner = |ball: u32| self.owners[ball as usize];
            let owners = each(|lane| [owner(mets[lane].ball), owner(mets[lane].other)]);
            let four = self.see(&mets, &owners);
            let pair = match self.pairs.len() {
                1 => one,
                _ => Pair::each(owners.map(|owners| self.pair(owners))),
            };
            let push = push(law, &pair, &four, (&mets, group.len()), share);
            give(&push, &owners[..group.len()], share, touched);
            deepest = deepest.at_least(four.depth);
        }
        let deepest = deepest.to_array().into_iter().fold(0.0, f64::max);
        touched.deepest = touched.deepest.max(deepest);
    }

    /// The constants of two grains.
    fn pair(&self, owners: [u32; 2]) -> &Pair {
        let [one, other] = owners.map(|grain| self.makes[grain as usize].material as usize);
        &self.pairs[one * self.materials + other]
    }

    /// Centre of mass [m] of the grain that a ball is of.
    #[inline]
    pub fn place(&self, grain: usize, ball: usize) -> DVec3 {
        match self.places {
            [] => self.balls[ball].center,
            places => places[grain],
        }
    }

    /// The first or the second ball of four contacts, and its grain.
    #[inline(always)]
    fn side(&self, balls: [u32; LANES], owners: [u32; LANES]) -> Side {
        let rows = |ball: u32| bytemuck::cast_ref(&self.balls[ball as usize]);
        let [x, y, z, radius] = lanes(each(|lane| rows(balls[lane])));
        let seen = each(|lane| &self.seen[owners[lane] as usize]);
        let [vx, vy, vz, wetness] = lanes(each(|lane| &seen[lane].velocity));
        let [sx, sy, sz, inverse_mass] = lanes(each(|lane| &seen[lane].spin));
        let center = Vector([x, y, z]);
        let place = match self.places {
            [] => center,
            places => together(each(|lane| places[owners[lane] as usize])),
        };
        Side {
            place,
            radius,
            center,
            velocity: Vector([vx, vy, vz]),
            spin: Vector([sx, sy, sz]),
            inverse_mass,
            wetness,
        }
    }

    /// Brings four contacts together.
    #[inline(always)]
    fn see(&self, mets: &[Met; LANES], owners: &[[u32; 2]; LANES]) -> Four {
        let i = self.side(each(|lane| mets[lane].ball), each(|lane| owners[lane][0]));
        let j = self.side(each(|lane| mets[lane].other), each(|lane| owners[lane][1]));
        let (a, b) = (i.center, j.center);
        let (one, half) = (f64x4::ONE, f64x4::HALF);
        let apart = a - b;
        let distance = apart.dot(apart).root();
        // Two centres in one place part along any axis, opposite from both sides.
        let aside = each(|lane| match mets[lane].other > mets[lane].ball {
            true => 1.0,
            false => -1.0,
        });
        let aside = Vector([f64x4::ZERO, f64x4::new(aside), f64x4::ZERO]);
        let normal = aside.within((distance, f64x4::ZERO), apart * (one / distance));
        let reach = i.radius + j.radius;
        let middle = ((a - normal * i.radius) + (b + normal * j.radius)) * half;
        let levers = [middle - i.place, middle - j.place];
        let overlap = reach - distance;
        Four {
            touch: Touch {
                normal,
                overlap,
                velocity: (i.velocity + i.spin.cross(levers[0]))
                    - (j.velocity + j.spin.cross(levers[1])),
                radius: i.radius * j.radius / reach,
                mass: one / (i.inverse_mass + j.inverse_mass),
                wetness: half * (i.wetness + j.wetness),
                dt: f64x4::splat(self.dt),
            },
            levers,
            rolling: i.spin - j.spin,
            depth: overlap / i.radius.at_most(j.radius),
            composite: !self.places.is_empty(),
        }
    }
}

/// Works out what four contacts do, the first `count` of them real, and what they remember.
#[inline(always)]
fn push(
    law: impl Law,
    pair: &Pair<f64x4>,
    four: &Four,
    (mets, count): (&[Met; LANES], usize),
    share: &mut Share<'_>,
) -> Push {
    let Four { touch, levers, .. } = four;
    let mut spring = recall(mets, share.springs);
    let force = law.force(pair, touch, &mut spring);
    keep(&mets[..count], &spring, share.springs);
    let mut push = Push {
        force,
        torque: levers[0].cross(force),
        other_torque: levers[1].cross(force),
    };
    let load = || force.dot(touch.normal) + pair.pull(touch);
    if four.composite {
        let torque = pair.resist_turning(touch, four.rolling, load());
        push.torque = push.torque + torque;
        push.other_torque = push.other_torque + torque;
    }
    if !share.rolls.is_empty() {
        let mut roll = recall(mets, share.rolls);
        let torque = pair.resist_rolling(touch, four.rolling, load(), &mut roll);
        keep(&mets[..count], &roll, share.rolls);
        push.torque = push.torque + torque;
        push.other_torque = push.other_torque + torque;
    }
    push
}

/// What four pairs remember; new ones nothing.
#[inline(always)]
fn recall(mets: &[Met; LANES], memory: &[DVec3]) -> Vector<f64x4> {
    together(each(|lane| match mets[lane].fresh {
        true => DVec3::ZERO,
        false => memory[mets[lane].entry as usize],
    }))
}

/// A vector for each lane.
#[inline(always)]
fn together(vectors: [DVec3; LANES]) -> Vector<f64x4> {
    let axis = |part: fn(&DVec3) -> f64| f64x4::new(each(|lane| part(&vectors[lane])));
    Vector([axis(|v| v.x), axis(|v| v.y), axis(|v| v.z)])
}

/// The lanes of three numbers.
#[inline(always)]
fn arrays(vector: &Vector<f64x4>) -> [[f64; LANES]; 3] {
    let [x, y, z] = vector.0;
    [x.to_array(), y.to_array(), z.to_array()]
}

/// Remembers it.
#[inline(always)]
fn keep(mets: &[Met], new: &Vector<f64x4>, memory: &mut [DVec3]) {
    let [x, y, z] = arrays(new);
    for (lane, met) in mets.iter().enumerate() {
        memory[met.entry as usize] = DVec3::new(x[lane], y[lane], z[lane]);
    }
}

/// Hands a push to the grains of this chunk.
#[inline(always)]
fn give(push: &Push, owners: &[[u32; 2]], share: &mut Share<'_>, touched: &mut Touched) {
    let (force, torque, other_torque) = (
        arrays(&push.force),
        arrays(&push.torque),
        arrays(&push.other_torque),
    );
    let at =
        |all: &[[f64; LANES]; 3], lane: usize| DVec3::new(all[0][lane], all[1][lane], all[2][lane]);
    for (lane, [one, other]) in owners.iter().enumerate() {
        let force = at(&force, lane);
        let load = &mut share.loads[*one as usize - share.first_grain];
        load.force += force;
        load.torque += at(&torque, lane);
        match share
            .loads
            .get_mut((*other as usize).wrapping_sub(share.first_grain))
        {
            Some(load) => {
                load.force -= force;
                load.torque -= at(&other_torque, lane);
                touched.pairs += 1.0;
            }
            None => touched.pairs += 0.5,
        }
    }
}

/// What a contact remembers: displacement [m], and rolled angle [rad] where rolling is resisted.
pub type Memory<'a> = (&'a mut DVec3, Option<&'a mut DVec3>);

/// What is remembered of a contact that is; of a new one nothing.
#[inline]
pub fn remembered<'a>(partner: &mut u32, mut memory: Memory<'a>) -> Memory<'a> {
    if *partner & TOUCHING == 0 {
        *partner |= TOUCHING;
        *memory.0 = DVec3::ZERO;
        if let Some(roll) = &mut memory.1 {
            **roll = DVec3::ZERO;
        }
    }
    memory
}

/// Where chunks begin among grains, pairs and nearnesses to solids, and the ends.
fn bounds(
    (first_ball, first_pair): Read<'_>,
    wall_balls: &[u32],
) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let grains = first_ball.len() - 1;
    let bounds: Vec<usize> = (0..=grains.div_ceil(CHUNK))
        .map(|chunk| (chunk * CHUNK).min(grains))
        .collect();
    let balls = bounds.iter().map(|grain| first_ball[*grain]);
    let pairs = balls.clone().map(|ball| first_pair[ball as usize] as usize);
    let walls = balls.map(|first| wall_balls.partition_point(|ball| *ball < first));
    (bounds.clone(), pairs.collect(), walls.collect())
}
