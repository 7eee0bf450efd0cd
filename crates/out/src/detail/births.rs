//! Grains come and go with their particles.

use super::contact::mirrored;
use super::guides::by_id;
use super::sampling::place;
use super::settings::Settings;
use super::stage::DetailError;
use crate::cache::{Bunch, GrainKey, Grains};
use barchan_sim::solids::Solids;
use barchan_sim::state::Particles;
use glam::Vec3;
use rayon::prelude::*;

/// Grains are counted in 32 bits.
const MOST: u64 = u32::MAX as u64;

/// What grains with these settings follow from.
pub fn key(settings: &Settings) -> GrainKey {
    GrainKey {
        per_particle: settings.per_particle,
        seed: settings.seed,
        spread: settings.spread,
    }
}

fn usable(particles: &Particles, i: usize) -> bool {
    particles.position[i].is_finite()
        && particles.radius[i] > 0.0
        && particles.radius[i].is_finite()
}

/// The grains of particle `i`, as far as they follow from it.
pub fn bunch(settings: &Settings, particles: &Particles, i: usize, count: u32) -> Bunch {
    Bunch {
        id: particles.id[i],
        count,
        radius: settings.radius(particles.radius[i], count),
        mass: particles.mass[i] / count.max(1) as f32,
        material: particles.material[i],
        wetness: particles.wetness[i],
    }
}

/// Grains for `particles`, among `solids`.
///
/// # Errors
/// If ids are not unique or too large, or there would be too many grains.
pub fn sample(
    settings: &Settings,
    particles: &Particles,
    solids: &Solids,
) -> Result<Grains, DetailError> {
    let order = by_id(particles, 0, settings.per_particle)?;
    let mut grains = Grains::none(key(settings));
    follow(&mut grains, settings, (particles, &order), &[], solids)?;
    Ok(grains)
}

/// Makes the grains those of `particles`, given in the order of their ids: a particle that had none gets them, those whose
/// particle is gone go. Particles with ids in `anew`, in order, get new ones.
///
/// # Errors
/// If there would be too many.
pub fn follow(
    grains: &mut Grains,
    settings: &Settings,
    (particles, order): (&Particles, &[u32]),
    anew: &[u64],
    solids: &Solids,
) -> Result<(), DetailError> {
    let (bunches, sources) = pair_up(grains, settings, (particles, order), anew);
    let total: u64 = bunches.iter().map(|bunch| u64::from(bunch.count)).sum();
    if total > MOST {
        return Err(DetailError::TooMany { grains: total });
    }
    let unchanged = bunches.len() == grains.bunches.len()
        && sources
            .iter()
            .all(|source| matches!(source, Source::Old(_)));
    if unchanged {
        grains.bunches = bunches;
        return Ok(());
    }
    let mut next = Grains {
        bunches,
        position: vec![Vec3::ZERO; total as usize],
        velocity: vec![Vec3::ZERO; total as usize],
        ..Grains::none(grains.key)
    };
    let by_id: Vec<u64> = next.bunches.iter().map(|bunch| bunch.id).collect();
    let key = grains.key;
    next.each(|bunch, places, speeds| {
        let at = by_id.binary_search(&bunch.id).unwrap_or_default();
        match sources[at] {
            Source::Old(start) => {
                let range = start..start + places.len();
                places.copy_from_slice(&grains.position[range.clone()]);
                speeds.copy_from_slice(&grains.velocity[range]);
            }
            Source::Born(i) => {
                born(settings, key, bunch, (particles, i), solids, places);
                speeds.fill(match particles.velocity[i] {
                    velocity if velocity.is_finite() => velocity,
                    _ => Vec3::ZERO,
                });
            }
        }
    });
    *grains = next;
    Ok(())
}

/// The bunches that particles have, and where each comes from.
fn pair_up(
    grains: &Grains,
    settings: &Settings,
    (particles, order): (&Particles, &[u32]),
    anew: &[u64],
) -> (Vec<Bunch>, Vec<Source>) {
    let mut old = grains.bunches.iter().zip(grains.ranges()).peekable();
    let mut pairs = (
        Vec::with_capacity(order.len()),
        Vec::with_capacity(order.len()),
    );
    for &i in order {
        let i = i as usize;
        let id = particles.id[i];
        while old.next_if(|(bunch, _)| bunch.id < id).is_some() {}
        let before = old.next_if(|(bunch, _)| bunch.id == id);
        let kept = before.filter(|_| anew.binary_search(&id).is_err());
        let (count, source) = match kept {
            Some((bunch, range)) => (bunch.count, Source::Old(range.start)),
            None if usable(particles, i) => {
                (settings.count(particles.position[i]), Source::Born(i))
            }
            None => continue,
        };
        pairs.0.push(bunch(settings, particles, i, count));
        pairs.1.push(source);
    }
    pairs
}

#[derive(Clone, Copy)]
enum Source {
    /// Grains that were there, from this one on.
    Old(usize),
    /// A particle that has none yet.
    Born(usize),
}

fn born(
    settings: &Settings,
    key: GrainKey,
    bunch: &Bunch,
    (particles, i): (&Particles, usize),
    solids: &Solids,
    places: &mut [Vec3],
) {
    let random = key.random();
    let (centre, radius) = (particles.position[i], particles.radius[i]);
    // Grains begin at most three radii away: the corner of a support point's cube.
    let near = solids
        .all()
        .iter()
        .any(|solid| !solid.is_beyond(centre, 3.0 * radius));
    for (number, to) in (0..).zip(places) {
        let id = key.id(bunch.id, number);
        let at = centre + place(settings.sampling, &random, id, number) * radius;
        *to = if near {
            mirrored(solids, centre, at, bunch.radius)
        } else {
            at
        };
    }
}

/// The grains that a frame of them holds, for the particles it was made from.
///
/// # Errors
/// What does not fit.
pub fn restored(
    settings: &Settings,
    (particles, order): (&Particles, &[u32]),
    frame: Particles,
) -> Result<Grains, String> {
    let key = key(settings);
    let mut grains = Grains::none(key);
    let per = u64::from(key.per_particle);
    let mut at = 0;
    for &i in order {
        let id = particles.id[i as usize];
        let start = at;
        while at < frame.len() && frame.id[at] / per == id {
            if frame.id[at] != key.id(id, (at - start) as u32) {
                return Err("its grains are not in order".into());
            }
            at += 1;
        }
        if at > start {
            let count = (at - start) as u32;
            grains
                .bunches
                .push(bunch(settings, particles, i as usize, count));
        }
    }
    if at != frame.len() {
        return Err("it has grains whose particle is not there".into());
    }
    grains.position = frame.position;
    grains.velocity = frame.velocity;
    let bad = grains.position.par_iter().any(|place| !place.is_finite());
    match bad {
        true => Err("it has grains that are nowhere".into()),
        false => Ok(grains),
    }
}
