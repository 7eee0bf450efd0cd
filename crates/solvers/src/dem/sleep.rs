//! Sleeping: a grain that has been still for a while stops, and is moved again only when its load no longer balances, or where it is
//! turned wet or dry. A chunk in which all sleep, and around which all sleep, costs nothing.

use super::lists::CHUNK;
use super::motion::Grain;
use super::store::{Load, Motion, Store, TOUCHING, groups, groups_mut};
use barchan_sim::model::Model;
use barchan_sim::solids::Solids;
use barchan_sim::state::Particles;
use barchan_sim::wet::Turned;
use glam::DVec3;
use rayon::prelude::*;

/// Still for this long [s], a grain sleeps.
pub const AFTER: f64 = 0.1;
/// Still is slower than this part of what a fall through its own size gives, √(g d).
const SLEEP: f64 = 2e-3;
/// A sleeping grain wakes when what its load leaves over passes this part of its weight.
const WAKE: f64 = 0.1;

/// When grains fall asleep and wake.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// Gravity [m/s²]; without it nothing sleeps.
    pub gravity: f64,
}

impl Motion {
    /// True while it sleeps or waits.
    #[inline]
    pub fn is_still(&self) -> bool {
        self.quiet >= AFTER || self.quiet < 0.0
    }

    /// True while it waits at an emitter's mouth.
    #[inline]
    pub fn waits(&self) -> bool {
        self.quiet < 0.0
    }

    /// Goes to sleep, or wakes, after a step at the end of which it is loaded with `load`; `pulled` is its acceleration by what
    /// is not a contact [m/s²], and the step's length [s].
    #[inline]
    pub fn rest(&mut self, rest: Rest, grain: Grain<'_>, load: &Load, pulled: (DVec3, f64)) {
        let ((make, kind), (acceleration, dt)) = (grain, pulled);
        let left = load.force * make.inverse_mass + acceleration;
        if self.quiet >= AFTER {
            if left.length_squared() > (WAKE * rest.gravity).powi(2) {
                self.quiet = 0.0;
            }
            return;
        }
        // A ball may turn about its contact for ever; one that rolls moves.
        let turning = match kind.is_ball() {
            true => 0.0,
            false => self.spin(kind).length_squared() * make.radius * make.radius,
        };
        let limit = SLEEP * SLEEP * 2.0 * make.radius * rest.gravity;
        if self.velocity.length_squared() + turning >= limit {
            self.quiet = 0.0;
            return;
        }
        self.quiet += dt;
        if self.quiet >= AFTER && left.length_squared() < (0.5 * WAKE * rest.gravity).powi(2) {
            (self.velocity, self.turning) = (DVec3::ZERO, DVec3::ZERO);
        } else if self.quiet >= AFTER {
            self.quiet = 0.0;
        }
    }
}

/// Wakes all that sleep; those that wait go on waiting.
pub fn wake_all(store: &mut Store<'_>) {
    for motion in groups_mut::<Motion>(store.motions) {
        motion.quiet = motion.quiet.min(0.0);
    }
}

/// Wakes who sleeps where it may have been turned wet or dry in the step from `start` to `end` [s]: its contacts pull as they did
/// not when it fell asleep.
pub fn wake_turned(
    model: &Model,
    particles: &Particles,
    store: &mut Store<'_>,
    [start, end]: [f64; 2],
) {
    let Some(turned) = Turned::within(model, start, end) else {
        return;
    };
    let lying = particles.position.par_iter().zip(&particles.wetness);
    let motions = groups_mut::<Motion>(store.motions).par_iter_mut();
    motions.zip(lying).for_each(|(motion, (place, wetness))| {
        if motion.quiet >= AFTER && turned.holds(*place, *wetness) {
            motion.quiet = 0.0;
        }
    });
}

/// Which chunks have each other as neighbours, and which have someone awake.
#[derive(Default)]
pub struct Watch {
    near: Vec<Vec<u32>>,
}

impl Watch {
    /// Learns from new lists.
    pub fn learn(&mut self, store: &Store<'_>, owners: &[u32]) {
        let first_ball = store.first_ball.entries::<u32>();
        let first_pair = store.first_pair.entries::<u32>();
        let partners = store.partners.entries::<u32>();
        let grains = first_ball.len() - 1;
        self.near = (0..grains.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let ends = [chunk * CHUNK, ((chunk + 1) * CHUNK).min(grains)];
                let [from, to] = ends.map(|grain| first_pair[first_ball[grain] as usize] as usize);
                let mut near: Vec<u32> = Vec::new();
                for partner in &partners[from..to] {
                    let other = owners[(partner & !TOUCHING) as usize] / CHUNK as u32;
                    if other as usize != chunk && near.last() != Some(&other) {
                        near.push(other);
                    }
                }
                near.sort_unstable();
                near.dedup();
                near
            })
            .collect();
    }

    /// The chunks that must be looked at: those with someone awake, their neighbours, and those near a solid that moves
    /// or can be moved.
    pub fn active(&self, store: &Store<'_>, solids: &Solids) -> Vec<bool> {
        let motions = groups::<Motion>(store.motions);
        let awake: Vec<bool> = motions
            .par_chunks(CHUNK)
            .map(|motions| motions.iter().any(|motion| !motion.is_still()))
            .collect();
        let mut active = awake.clone();
        for (chunk, near) in self.near.iter().enumerate() {
            active[chunk] |= near.iter().any(|other| awake[*other as usize]);
        }
        let restless = |solid: u32| {
            let solid = &solids.all()[(solid & !TOUCHING) as usize];
            solid.moves() || solid.inertia().inverse_mass > 0.0
        };
        if solids
            .all()
            .iter()
            .any(|s| s.moves() || s.inertia().inverse_mass > 0.0)
        {
            let first_ball = store.first_ball.entries::<u32>();
            let walls = store.wall_balls.entries::<u32>().iter();
            for (ball, solid) in walls.zip(store.wall_solids.entries::<u32>()) {
                if restless(*solid) {
                    let grain = first_ball.partition_point(|first| first <= ball) - 1;
                    active[grain / CHUNK] = true;
                }
            }
        }
        active
    }
}
