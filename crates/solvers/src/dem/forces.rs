//! The forces of all contacts. Within a chunk of grains each pair is looked at once and pushes both; a pair across two
//! chunks is looked at from both sides, and both find opposite forces to the bit. So no thread waits for another, and
//! none decides a sum's order.

use super::law::{Law, Pair, Touch};
use super::lists::{CHUNK, split};
use super::motion::{Ball, Make};
use super::store::{Load, Motion, Store, TOUCHING, groups, groups_mut};
use barchan_sim::coupling::Impulses;
use barchan_sim::solids::Solids;
use glam::DVec3;
use rayon::prelude::*;

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

/// What everyone reads: motions, first ball of each grain, first pair of each ball.
pub type Read<'a> = (&'a [Motion], &'a [u32], &'a [u32]);

/// Two balls that press into each other.
struct Met<'a> {
    /// Unit vector from the second to the first.
    normal: DVec3,
    /// Between their centres [m].
    distance: f64,
    balls: (&'a Ball, &'a Ball),
    /// Their grains.
    owners: (usize, usize),
}

/// What a contact does.
struct Push {
    /// Force on the first [N].
    force: DVec3,
    /// Torque about the first grain's centre of mass [N m].
    torque: DVec3,
    /// The same about the second's, to be taken from it [N m].
    other_torque: DVec3,
}

impl Scene<'_> {
    /// Works out the loads on all grains, and moves the springs on.
    pub fn load(&self, law: impl Law, store: &mut Store<'_>) -> Vec<Touched> {
        let read: Read<'_> = (
            groups(store.motions),
            store.first_ball.entries(),
            store.first_pair.entries(),
        );
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
        let mut partners = split(store.partners.entries_mut::<u32>(), &pairs).into_iter();
        let mut springs = split(groups_mut::<DVec3>(store.springs), &pairs).into_iter();
        let mut rolls = split(groups_mut::<DVec3>(store.rolls), rolls).into_iter();
        let mut wall_solids = split(store.wall_solids.entries_mut::<u32>(), &walls).into_iter();
        let mut wall_springs = split(groups_mut::<DVec3>(store.wall_springs), &walls).into_iter();
        let mut wall_rolls = split(groups_mut::<DVec3>(store.wall_rolls), wall_rolls).into_iter();
        let mut wall_normals = split(groups_mut::<DVec3>(store.wall_normals), &walls).into_iter();
        let share = |(chunk, loads)| Share {
            first_grain: bounds[chunk],
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
        let mut shares: Vec<Share<'_>> = loads.enumerate().map(share).collect();
        let mut active = self.active.iter();
        shares.retain(|_| active.next().is_some_and(|active| *active));
        shares
            .into_par_iter()
            .map(|share| self.load_chunk(law, read, share))
            .collect()
    }

    fn load_chunk(&self, law: impl Law, read: Read<'_>, mut share: Share<'_>) -> Touched {
        let mut touched = Touched {
            impulses: Impulses::new(self.solids),
            ..Touched::default()
        };
        share.loads.fill(Load::default());
        self.press(law, read, &mut share, &mut touched);
        self.lean(law, read, &mut share, &mut touched);
        touched
    }

    /// Contacts of grains with grains.
    fn press(&self, law: impl Law, read: Read<'_>, share: &mut Share<'_>, touched: &mut Touched) {
        let (_, first_ball, first_pair) = read;
        let first = share.first_grain;
        let from = first_pair[first_ball[first] as usize] as usize;
        for grain in first..first + share.loads.len() {
            let mut own = Load::default();
            for ball in first_ball[grain] as usize..first_ball[grain + 1] as usize {
                let a = &self.balls[ball];
                for entry in first_pair[ball] as usize - from..first_pair[ball + 1] as usize - from
                {
                    let partner = &mut share.partners[entry];
                    let other = (*partner & !TOUCHING) as usize;
                    let b = &self.balls[other];
                    let apart = a.center - b.center;
                    let reach = a.radius + b.radius;
                    let square = apart.length_squared();
                    if square >= reach * reach {
                        *partner = other as u32;
                        continue;
                    }
                    let memory = (&mut share.springs[entry], share.rolls.get_mut(entry));
                    let memory = remembered(partner, memory);
                    let distance = square.sqrt();
                    // Two centres in one place part along any axis, opposite from both sides.
                    let normal = match distance > 0.0 {
                        true => apart / distance,
                        false => DVec3::Y.copysign(DVec3::splat(other as f64 - ball as f64)),
                    };
                    let owners = (grain, self.owners[other] as usize);
                    let met = Met {
                        normal,
                        distance,
                        balls: (a, b),
                        owners,
                    };
                    let push = self.push(law, read.0, met, memory);
                    own.force += push.force;
                    own.torque += push.torque;
                    let depth = (reach - distance) / a.radius.min(b.radius);
                    touched.deepest = touched.deepest.max(depth);
                    match share.loads.get_mut(owners.1.wrapping_sub(first)) {
                        Some(load) => {
                            load.force -= push.force;
                            load.torque -= push.other_torque;
                            touched.pairs += 1.0;
                        }
                        None => touched.pairs += 0.5,
                    }
                }
            }
            let load = &mut share.loads[grain - first];
            load.force += own.force;
            load.torque += own.torque;
        }
    }

    /// What two balls that met do to each other.
    #[inline]
    fn push(&self, law: impl Law, motions: &[Motion], met: Met<'_>, memory: Memory<'_>) -> Push {
        let Met {
            normal,
            distance,
            balls: (a, b),
            owners,
        } = met;
        let reach = a.radius + b.radius;
        let middle = ((a.center - normal * a.radius) + (b.center + normal * b.radius)) * 0.5;
        let (i, j) = (&motions[owners.0], &motions[owners.1]);
        let (lever_i, lever_j) = (middle - i.position, middle - j.position);
        let (make_i, make_j) = (&self.makes[owners.0], &self.makes[owners.1]);
        let touch = Touch {
            normal,
            overlap: reach - distance,
            velocity: (i.velocity + i.spin.cross(lever_i)) - (j.velocity + j.spin.cross(lever_j)),
            radius: a.radius * b.radius / reach,
            mass: 1.0 / (make_i.inverse_mass + make_j.inverse_mass),
            wetness: 0.5 * f64::from(make_i.wetness + make_j.wetness),
            dt: self.dt,
        };
        let row = make_i.material as usize * self.materials;
        let pair = &self.pairs[row + make_j.material as usize];
        let force = law.force(pair, &touch, memory.0);
        let mut push = Push {
            force,
            torque: lever_i.cross(force),
            other_torque: lever_j.cross(force),
        };
        if let Some(roll) = memory.1 {
            let load = force.dot(normal) + pair.pull(&touch);
            let torque = pair.resist_rolling(&touch, i.spin - j.spin, load, roll);
            push.torque += torque;
            push.other_torque += torque;
        }
        push
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
    (motions, first_ball, first_pair): Read<'_>,
    wall_balls: &[u32],
) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let grains = motions.len();
    let bounds: Vec<usize> = (0..=grains.div_ceil(CHUNK))
        .map(|chunk| (chunk * CHUNK).min(grains))
        .collect();
    let balls = bounds.iter().map(|grain| first_ball[*grain]);
    let pairs = balls.clone().map(|ball| first_pair[ball as usize] as usize);
    let walls = balls.map(|first| wall_balls.partition_point(|ball| *ball < first));
    (bounds.clone(), pairs.collect(), walls.collect())
}
