//! Grains by the particle they belong to: what a particle's grains share is kept once, and what follows from a grain's id is
//! not kept at all.

use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_base::random::Random;
use barchan_sim::state::Particles;
use glam::{Quat, Vec3};
use rayon::prelude::*;
use std::ops::Range;

/// Random numbers of grains come from this stream.
const STREAM: u64 = 7 << 32;
/// Key of what grains follow from in a frame's metadata.
pub(super) const KEY: &str = "barchan.grains";

/// A number of its own for each grain, for shading.
pub const SEED: ColumnSpec = ColumnSpec::new("seed", "1", Kind::U32);

/// How each grain is turned: the axis times the angle.
pub const ORIENTATION: ColumnSpec = ColumnSpec::new("orientation", "rad", Kind::Vec3);

/// What the looks of grains follow from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrainKey {
    /// Ids that each particle's grains may have; a grain's id over this is its particle's id.
    pub per_particle: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Grains are up to this part larger or smaller.
    pub spread: f32,
}

/// The grains of one particle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bunch {
    /// Id of the particle.
    pub id: u64,
    /// How many grains it has.
    pub count: u32,
    /// Radius of a grain of the mean volume [m].
    pub radius: f32,
    /// Mass of a grain [kg].
    pub mass: f32,
    /// Index of their material.
    pub material: u16,
    /// How wet they are, from 0 to 1.
    pub wetness: f32,
}

/// Grains, bunch by bunch, in the order of the particles' ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Grains {
    /// What looks follow from.
    pub key: GrainKey,
    /// Whose grains they are.
    pub bunches: Vec<Bunch>,
    /// Where each grain is [m].
    pub position: Vec<Vec3>,
    /// How fast [m/s].
    pub velocity: Vec<Vec3>,
}

impl GrainKey {
    /// Random numbers by a grain's id.
    pub fn random(&self) -> Random {
        Random::new(self.seed, STREAM)
    }

    /// The id of grain `number` of particle `id`.
    pub fn id(&self, id: u64, number: u32) -> u64 {
        id.wrapping_mul(u64::from(self.per_particle))
            .wrapping_add(u64::from(number))
    }

    pub(super) fn to_pair(self) -> (String, String) {
        let text = format!("{} {} {}", self.per_particle, self.seed, self.spread);
        (KEY.to_owned(), text)
    }

    /// What a frame's metadata says; `None` where it keeps grains one by one or has none.
    pub(super) fn from_pairs(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let Some(text) = get(KEY) else {
            return Ok(None);
        };
        let mut words = text.split(' ');
        let key = (|| {
            let key = Self {
                per_particle: words.next()?.parse().ok()?,
                seed: words.next()?.parse().ok()?,
                spread: words.next()?.parse().ok()?,
            };
            (key.per_particle > 0).then_some(key)
        })();
        key.map(Some)
            .ok_or_else(|| "what it says of its grains makes no sense".into())
    }
}

impl Grains {
    /// No grains.
    pub fn none(key: GrainKey) -> Self {
        Self {
            key,
            bunches: Vec::new(),
            position: Vec::new(),
            velocity: Vec::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.position.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Which grains each bunch has.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut end = 0;
        self.bunches.iter().map(move |bunch| {
            let start = end;
            end += bunch.count as usize;
            start..end
        })
    }

    /// Stretches of bunches with about `most` grains each, with the grains they have.
    pub fn pieces(&self, most: usize) -> Vec<(Range<usize>, Range<usize>)> {
        let mut pieces: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for (bunch, grains) in self.ranges().enumerate() {
            match pieces.last_mut() {
                Some((bunches, all)) if grains.end - all.start <= most => {
                    bunches.end = bunch + 1;
                    all.end = grains.end;
                }
                _ => pieces.push((bunch..bunch + 1, grains)),
            }
        }
        pieces
    }

    /// The grains of some bunches as particles with all their columns.
    pub fn particles(&self, bunches: Range<usize>, grains: Range<usize>) -> Particles {
        let mut rows = Particles {
            extra: vec![Column::zeros(SEED, 0), Column::zeros(ORIENTATION, 0)],
            ..Default::default()
        };
        rows.resize(grains.len());
        rows.position
            .copy_from_slice(&self.position[grains.clone()]);
        rows.velocity.copy_from_slice(&self.velocity[grains]);
        let mut at = 0;
        for bunch in &self.bunches[bunches] {
            describe(&mut rows, at, bunch, &self.key);
            at += bunch.count as usize;
        }
        rows
    }

    /// Calls `act` with each bunch and its grains' places and velocities.
    pub fn each(&mut self, act: impl Fn(&Bunch, &mut [Vec3], &mut [Vec3]) + Sync) {
        let (mut places, mut speeds) = (&mut self.position[..], &mut self.velocity[..]);
        let mut parts = Vec::with_capacity(self.bunches.len());
        for bunch in &self.bunches {
            let (place, rest) = places.split_at_mut(bunch.count as usize);
            places = rest;
            let (speed, rest) = speeds.split_at_mut(bunch.count as usize);
            speeds = rest;
            parts.push((bunch, place, speed));
        }
        parts
            .into_par_iter()
            .with_min_len(64)
            .for_each(|(bunch, places, speeds)| act(bunch, places, speeds));
    }
}

/// Fills in all that follows from the ids of a bunch's grains and from their particle, from row `at` on.
pub(super) fn describe(rows: &mut Particles, at: usize, bunch: &Bunch, key: &GrainKey) {
    let random = key.random();
    // Such that the mean volume is that of the mean grain.
    let mean = bunch.radius / (1.0 + key.spread * key.spread).cbrt();
    for number in 0..bunch.count {
        let (row, id) = (at + number as usize, key.id(bunch.id, number));
        let bits = random.bits(id, 0);
        rows.id[row] = id;
        let part = 2.0 * random.uniform(id, 1) - 1.0;
        rows.radius[row] = mean * (1.0 + key.spread * part);
        rows.mass[row] = bunch.mass;
        rows.material[row] = bunch.material;
        rows.wetness[row] = bunch.wetness;
        rows.extra[0].set(row, (bits >> 32) as u32);
        rows.extra[1].set(row, turn(random.in_cube(id, 2)));
    }
}

/// A turn, uniform among all (Shoemake 1992), from a uniform point of the unit cube.
fn turn(u: Vec3) -> Vec3 {
    use std::f32::consts::TAU;
    let (a, b) = ((1.0 - u.x).sqrt(), u.x.sqrt());
    let ((sa, ca), (sb, cb)) = ((TAU * u.y).sin_cos(), (TAU * u.z).sin_cos());
    Quat::from_xyzw(a * sa, a * ca, b * sb, b * cb)
        .normalize()
        .to_scaled_axis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_spread_about_the_mean_volume_and_ids_are_unique() {
        let key = GrainKey {
            per_particle: 20_000,
            seed: 3,
            spread: 0.4,
        };
        let bunch = |id| Bunch {
            id,
            count: 20_000,
            radius: 0.01,
            mass: 1.0,
            material: 0,
            wetness: 0.0,
        };
        let grains = Grains {
            key,
            bunches: vec![bunch(0), bunch(1)],
            position: vec![Vec3::ZERO; 40_000],
            velocity: vec![Vec3::ZERO; 40_000],
        };
        let rows = grains.particles(0..2, 0..40_000);
        assert!(rows.id.windows(2).all(|pair| pair[0] < pair[1]));
        let volume: f64 = rows.radius.iter().map(|r| f64::from(*r).powi(3)).sum();
        // The mean of 40,000 cubes with a spread of about their own size: four standard errors.
        assert!((volume / 40_000.0 / 1e-6 - 1.0).abs() < 0.02, "{volume}");
        let least = rows.radius.iter().copied().fold(f32::MAX, f32::min);
        let most = rows.radius.iter().copied().fold(0.0, f32::max);
        assert!(most / least > 2.2 && most / least < 1.4 / 0.6 + 1e-3);
    }
}
