//! Keeps grains as dense as the particles say, without asking grains about each other.
//!
//! A particle hears how many grains are around it, with the weights that grains feel it with. Where that is more than its
//! own kind around it stands for, it pushes grains away, and draws them near where it is less, as fast as particles there
//! move past each other: what rests is left alone, and so is what moves as one.
//!
//! A particle that flies alone stands for loose grains. It lets them go, so that they fly on as they left the material, each at its own
//! velocity, and no ball of grains is seen in the air.

use super::field::{Field, Hold, Near};
use super::guides::Guide;
use super::rule::{Four, weights};
use super::sampling::place;
use super::settings::Settings;
use barchan_base::parallel::{CHUNK, chunks};
use barchan_base::random::Random;
use glam::{Vec3, Vec4};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Grains of a particle that are heard at least, if it has so many: more make it slower and less noisy.
const HEARD: u32 = 64;
/// Neighbouring grains that are heard together.
const TOGETHER: usize = 64;
/// Loads are added up as whole numbers, so that their order does not matter: so many make one.
const WHOLE: f32 = 65_536.0;
/// Deviations below this are noise.
const NOISE: f32 = 0.1;
/// The strongest pull and push.
const STRONGEST: [f32; 2] = [-0.5, 1.0];
/// Speed of the push over the speed at which particles move past each other.
const STRENGTH: f32 = 1.5;
/// Only particles with this part of the weight inside the material draw grains near, and with that part push them.
const DENSE: [f32; 2] = [0.85, 0.55];
/// Between these parts of the weight inside the material, a particle's own apart, one in free flight goes from letting go to holding.
const COMPANY: [f32; 2] = [0.05, 0.25];
/// A particle flies freely where its velocity changes as gravity asks, within this part of it.
const FLIES: f32 = 0.3;
/// Entries of the table of smeared weights, over the distance to which they reach.
const TABLE: usize = 48;
const SAMPLES: u64 = 1400;

/// What particles hear of grains around them.
pub struct Density {
    /// Weight of a particle's grains at a distance, from zero to the furthest that grains begin and are felt.
    smeared: Vec<f32>,
    /// That distance in radii.
    furthest: f32,
    per_particle: u32,
    stride: usize,
    loads: Vec<AtomicU64>,
}

impl Density {
    /// Prepares for grains of these settings.
    pub fn new(settings: &Settings) -> Self {
        // Grains begin up to two radii away along an axis.
        let furthest = settings.reach + 2.5;
        let random = Random::new(0, 11);
        let weight = |away: f32| {
            let each = |i: u64| {
                let at = place(settings.sampling, &random, i, i as u32);
                let to = random.in_cone(Vec3::Y, std::f32::consts::PI, i, 2) * away;
                let square = to.distance_squared(at) / (settings.reach * settings.reach);
                f64::from((1.0 - square).max(0.0).powi(3))
            };
            ((0..SAMPLES).map(each).sum::<f64>() / SAMPLES as f64) as f32
        };
        let entry = |i: usize| weight(furthest * i as f32 / (TABLE - 1) as f32);
        Self {
            smeared: (0..TABLE).map(entry).collect(),
            furthest,
            per_particle: settings.per_particle,
            stride: (settings.per_particle / HEARD).max(1) as usize,
            loads: Vec::new(),
        }
    }

    /// What each particle does to grains, in the order of `guides`, where gravity makes `fall` [m/s] from frame to frame; `grains` are
    /// in the order of their places.
    pub fn holds(
        &mut self,
        (field, guides): (&Field, &[Guide]),
        fall: Vec3,
        grains: &[Vec3],
        holds: &mut Vec<Hold>,
    ) {
        self.loads.clear();
        self.loads.resize_with(guides.len(), AtomicU64::default);
        grains.par_chunks(CHUNK).for_each(|grains| {
            let (mut near, mut sums) = (Near::default(), Vec::new());
            for grains in grains.chunks(TOGETHER) {
                self.hear(field, grains, &mut near, &mut sums);
            }
        });
        holds.clear();
        holds.resize(guides.len(), Hold::PLAIN);
        let of = |i: usize, near: &mut Near| self.hold((field, guides), fall, i, near);
        chunks(guides.len())
            .zip(holds.par_chunks_mut(CHUNK))
            .for_each(|(range, holds)| {
                let mut near = Near::default();
                for (hold, i) in holds.iter_mut().zip(range) {
                    *hold = of(i, &mut near);
                }
            });
    }

    /// Adds a few neighbouring grains to the loads of the particles around: some are heard, and stand for all of them.
    fn hear(&self, field: &Field, grains: &[Vec3], near: &mut Near, sums: &mut Vec<Vec4>) {
        let (least, most) = super::advance::box_of(grains);
        if !field.find(least, most, near) {
            let (one, two) = grains.split_at(grains.len() / 2);
            if !one.is_empty() {
                self.hear(field, one, near, sums);
                self.hear(field, two, near, sums);
            }
            return;
        }
        sums.clear();
        sums.resize(near.particles.len(), Vec4::ZERO);
        let mut heard = [Vec3::ZERO; 4];
        let mut some = grains.iter().step_by(self.stride).peekable();
        while some.peek().is_some() {
            let mut present = [0.0; 4];
            for ((to, present), from) in heard.iter_mut().zip(&mut present).zip(&mut some) {
                (*to, *present) = (*from, 1.0);
            }
            let present = Vec4::from_array(present);
            let places: Four = super::advance::four(&heard);
            for (sum, source) in sums.iter_mut().zip(&near.particles) {
                *sum += weights(&places, source) * present;
            }
        }
        let each = grains.len() as f32 / grains.len().div_ceil(self.stride) as f32;
        for (sum, guide) in sums.iter().zip(&near.indices) {
            let whole = (sum.element_sum() * each * WHOLE) as u64;
            self.loads[*guide as usize].fetch_add(whole, Ordering::Relaxed);
        }
    }

    /// What particle `i` does.
    fn hold(
        &self,
        (field, guides): (&Field, &[Guide]),
        fall: Vec3,
        i: usize,
        near: &mut Near,
    ) -> Hold {
        let own = &guides[i];
        field.find_wide(own.position, self.furthest * own.radius, near);
        let (mut expected, mut weight, mut past) = (0.0, 0.0, 0.0);
        for other in near.indices.iter().map(|other| &guides[*other as usize]) {
            let away = own.position.distance(other.position) / own.radius;
            expected += self.smeared_at(away);
            let part = field.weight(own.position, other);
            weight += part;
            past += part * own.velocity.distance_squared(other.velocity);
        }
        let cover = weight * field.full();
        let push = match self.excess(i, expected, cover) {
            Some(off) => {
                let stir = (past / weight.max(f32::MIN_POSITIVE)).sqrt();
                STRENGTH * stir * off.clamp(STRONGEST[0], STRONGEST[1])
            }
            None => 0.0,
        };
        let flies = own.change.distance(fall) < FLIES * fall.length();
        let company = (weight - 1.0) * field.full();
        let grip = match flies {
            true => (company - COMPANY[0]) / (COMPANY[1] - COMPANY[0]),
            false => 1.0,
        };
        Hold {
            push,
            grip: grip.clamp(0.0, 1.0),
        }
    }

    /// By what part more grains are heard around particle `i` than the particles there stand for, where that is worth a push.
    fn excess(&self, i: usize, expected: f32, cover: f32) -> Option<f32> {
        let off =
            self.heard(i) / (expected * self.per_particle as f32).max(f32::MIN_POSITIVE) - 1.0;
        let dense = if off < 0.0 { DENSE[0] } else { DENSE[1] };
        (off.abs() >= NOISE && cover >= dense && off.is_finite()).then_some(off)
    }

    /// How many grains particle `i` hears, by their weights.
    fn heard(&self, i: usize) -> f32 {
        self.loads[i].load(Ordering::Relaxed) as f32 / WHOLE
    }

    fn smeared_at(&self, away: f32) -> f32 {
        let at = away / self.furthest * (TABLE - 1) as f32;
        let i = at as usize;
        match self.smeared.get(i..i + 2) {
            Some(two) => two[0] + (two[1] - two[0]) * (at - i as f32),
            None => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::births::sample;
    use super::super::order::by_place;
    use super::*;
    use barchan_sim::solids::Solids;
    use barchan_sim::state::Particles;

    /// Grains that the particles of a lattice at rest hear, over those that they stand for.
    fn heard_of_all(per_particle: u32) -> f32 {
        let settings = Settings::plain(per_particle);
        let mut particles = Particles::default();
        particles.resize(27);
        for i in 0..27u16 {
            let cell = [i % 3, i / 3 % 3, i / 9].map(f32::from);
            particles.id[usize::from(i)] = i.into();
            particles.position[usize::from(i)] = Vec3::from(cell) * 0.04;
        }
        particles.radius.fill(0.02);
        let guide = |position: &Vec3| Guide {
            position: *position,
            velocity: Vec3::ZERO,
            radius: 0.02,
            change: Vec3::ZERO,
        };
        let guides: Vec<Guide> = particles.position.iter().map(guide).collect();
        let mut field = Field::default();
        field.set_reach(settings.reach, 0.02);
        field.sort_particles(&guides, &[]);
        let grains = sample(&settings, &particles, &Solids::default()).expect("grains");
        let order = by_place(&grains.position, field.cell());
        let places: Vec<Vec3> = order.iter().map(|i| grains.position[*i as usize]).collect();
        let mut density = Density::new(&settings);
        density.holds((&field, &guides), Vec3::NEG_Y, &places, &mut Vec::new());
        let pairs = guides
            .iter()
            .flat_map(|a| guides.iter().map(move |b| (a, b)));
        let away = pairs.map(|(a, b)| a.position.distance(b.position) / 0.02);
        let expected: f32 = away.map(|away| density.smeared_at(away)).sum();
        let heard: f32 = (0..guides.len()).map(|i| density.heard(i)).sum();
        heard / (expected * per_particle as f32)
    }

    #[test]
    fn as_many_grains_are_heard_as_there_are() {
        for per_particle in [64, 508, 2000, 65_536] {
            let part = heard_of_all(per_particle);
            assert!((part - 1.0).abs() < 0.05, "{part} of {per_particle}");
        }
    }
}
