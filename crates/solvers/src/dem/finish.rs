//! The last half of a step, done for a chunk of grains while its new loads are at hand: what they do to its motion, who falls asleep or
//! wakes, and what others see of it.

use super::forces::Share;
use super::lists::CHUNK;
use super::motion::{Grain, Kind, Make};
use super::store::Motion;
use super::work::{Outside, grain};
use barchan_sim::model::WORLD;
use barchan_sim::state::Particles;
use glam::{Vec3, Vec4};

/// What happened to a chunk of grains.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Their kinetic energy [J].
    pub kinetic_energy: f64,
    /// The square of the fastest one's speed [m²/s²].
    pub max_square: f64,
    /// Those that are awake.
    pub awake: u32,
    /// Those that are lost.
    pub lost: Vec<usize>,
    /// Those that fell asleep.
    pub slept: Vec<usize>,
}

/// What others see of a chunk of grains: their columns among the particles'.
pub struct Shown<'a> {
    positions: &'a mut [Vec3],
    velocities: &'a mut [Vec3],
    turns: &'a mut [Vec4],
    spins: &'a mut [Vec3],
}

impl<'a> Shown<'a> {
    /// Of all chunks.
    pub fn chunks(particles: &'a mut Particles) -> Vec<Self> {
        let [turns, spins] = particles.extra.as_mut_slice() else {
            unreachable!("the solver's columns are two")
        };
        let positions = particles.position.chunks_mut(CHUNK);
        let velocities = particles.velocity.chunks_mut(CHUNK);
        let turns = turns.entries_mut::<Vec4>().chunks_mut(CHUNK);
        let spins = spins.entries_mut::<Vec3>().chunks_mut(CHUNK);
        let all = positions.zip(velocities).zip(turns.zip(spins));
        all.map(|((positions, velocities), (turns, spins))| Self {
            positions,
            velocities,
            turns,
            spins,
        })
        .collect()
    }

    fn show(&mut self, k: usize, motion: &Motion, kind: &Kind) {
        self.positions[k] = motion.position.as_vec3();
        self.velocities[k] = motion.velocity.as_vec3();
        self.turns[k] = Vec4::from_array(motion.orientation.map(|part| part as f32));
        self.spins[k] = motion.spin(kind).as_vec3();
    }
}

/// The last half of a step, chunk by chunk.
pub struct Finish<'a> {
    /// What pulls besides contacts.
    pub outside: &'a Outside,
    /// What grains are made of, and what those of a material have in common.
    pub makes: &'a [Make],
    /// See `makes`.
    pub kinds: &'a [Kind],
    /// Length of the step [s].
    pub dt: f64,
}

impl Finish<'_> {
    /// Half a step of a chunk's new loads; then its grains fall asleep or wake, and are shown.
    pub fn chunk(&self, share: &mut Share<'_>, mut shown: Shown<'_>) -> Moved {
        let mut moved = Moved::default();
        for (k, (motion, load)) in share.motions.iter_mut().zip(&*share.loads).enumerate() {
            if motion.waits() {
                continue;
            }
            let i = share.first_grain + k;
            let grain = grain(self.makes, self.kinds, i);
            let pull = self.outside.acceleration(grain.0, motion.velocity);
            let slept = motion.is_still();
            if !slept {
                motion.kick(grain.0, load, pull, 0.5 * self.dt);
            }
            motion.rest(self.outside.rest, grain, load, (pull, self.dt));
            moved.count(i, motion, grain);
            if slept && motion.is_still() {
                continue;
            }
            if motion.is_still() {
                moved.slept.push(i);
            }
            shown.show(k, motion, grain.1);
        }
        moved
    }
}

impl Moved {
    fn count(&mut self, i: usize, motion: &Motion, grain: Grain<'_>) {
        let energy = motion.energy(grain);
        let sound = energy.is_finite() && motion.position.is_finite();
        if !sound || motion.position.abs().max_element() >= f64::from(WORLD) {
            self.lost.push(i);
            return;
        }
        self.kinetic_energy += energy;
        self.max_square = self.max_square.max(motion.velocity.length_squared());
        self.awake += u32::from(!motion.is_still());
    }
}
