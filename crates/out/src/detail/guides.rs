//! Particles on their way from one frame to the next.
//!
//! A cubic through both places with both velocities (Hermite) is exact for a particle in free flight. Where one has hit something
//! on its way, such a curve would swing past where it came to rest, and through the floor: along each axis a slope is
//! kept between zero and three times the chord's, and then no curve leaves the box between its two ends (Fritsch &
//! Carlson 1980).

use super::stage::DetailError;
use barchan_base::parallel::chunks;
use barchan_sim::state::Particles;
use glam::Vec3;
use rayon::prelude::*;

/// A particle that went further than this many of its radii and twice what its speeds explain is another one.
const JUMP: f32 = 12.0;

/// Particles from one frame to the next.
#[derive(Clone, Debug, Default)]
pub struct Guides {
    ways: Vec<Way>,
    /// What is worth saying about them.
    pub news: News,
}

/// What is unusual about two frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Particles in the first frame.
    pub before: usize,
    /// Particles that are new in the second frame.
    pub born: usize,
    /// Particles that are in the first frame only.
    pub gone: usize,
    /// Particles with an id of before at a place they cannot have reached.
    pub jumped: usize,
    /// Particles that are nowhere, or without a size, and lead nobody.
    pub unusable: usize,
    /// True where particles moved and their velocities say that they rest.
    pub without_velocity: bool,
}

/// One particle's way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    from: Vec3,
    chord: Vec3,
    /// Slopes at both ends, over the whole way.
    slopes: [Vec3; 2],
    /// How much faster it is at the end [m/s].
    change: Vec3,
    radius: f32,
}

/// A particle during a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guide {
    /// Where it is at the start [m].
    pub position: Vec3,
    /// Its way over the step, divided by the step [m/s].
    pub velocity: Vec3,
    /// Its radius [m].
    pub radius: f32,
    /// How much faster it gets from frame to frame [m/s].
    pub change: Vec3,
}

impl Way {
    /// Where it is after the part `t` of the time.
    fn at(&self, t: f32) -> Vec3 {
        let (t2, t3) = (t * t, t * t * t);
        self.from
            + self.chord * (3.0 * t2 - 2.0 * t3)
            + self.slopes[0] * (t3 - 2.0 * t2 + t)
            + self.slopes[1] * (t3 - t2)
    }
}

/// Indices of particles by their ids, in order.
///
/// # Errors
/// If two have the same id, or one is too large for `per_particle` grains.
pub fn by_id(
    particles: &Particles,
    frame: u32,
    per_particle: u32,
) -> Result<Vec<u32>, DetailError> {
    let ids = &particles.id;
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    if !ids.is_sorted_by(|a, b| a < b) {
        order.sort_unstable_by_key(|i| ids[*i as usize]);
    }
    let id = |i: &u32| ids[*i as usize];
    if let Some(pair) = order.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
        return Err(DetailError::SameId {
            frame,
            id: id(&pair[0]),
        });
    }
    if let Some(last) = order.last().map(id).filter(|last| {
        last.checked_add(1)
            .and_then(|end| end.checked_mul(per_particle.into()))
            .is_none()
    }) {
        return Err(DetailError::LargeId { frame, id: last });
    }
    Ok(order)
}

fn usable(particles: &Particles, i: usize) -> bool {
    let radius = particles.radius[i];
    particles.position[i].is_finite() && radius.is_finite() && radius > 0.0
}

impl Guides {
    /// The ways from `first` to `second`, `seconds` later, each with its order by id; the ids that jumped are told as well.
    pub fn between(
        (first, one): (&Particles, &[u32]),
        (second, two): (&Particles, &[u32]),
        seconds: f32,
    ) -> (Self, Vec<u64>) {
        let mut guides = Self::default();
        let still = |particles: &Particles| particles.velocity.iter().all(|v| *v == Vec3::ZERO);
        let resting = still(first) && still(second);
        let mut jumped = Vec::new();
        let (mut j, mut moved) = (0, false);
        for &i in one {
            let i = i as usize;
            let id = first.id[i];
            while j < two.len() && second.id[two[j] as usize] < id {
                j += 1;
            }
            let next = two
                .get(j)
                .map(|k| *k as usize)
                .filter(|k| second.id[*k] == id);
            let end = next.filter(|k| usable(second, *k));
            guides.news.gone += usize::from(next.is_none());
            if !usable(first, i) {
                guides.news.unusable += 1;
                continue;
            }
            let (from, radius) = (first.position[i], first.radius[i]);
            let leave = finite(first.velocity[i]) * seconds;
            let Some(k) = end else {
                // It goes on as it went, until its grains go with it.
                guides.ways.push(Way::straight(from, leave, radius));
                continue;
            };
            let chord = second.position[k] - from;
            let arrive = finite(second.velocity[k]) * seconds;
            moved |= chord != Vec3::ZERO;
            let explained = 2.0 * leave.length().max(arrive.length()) + JUMP * radius;
            if !resting && chord.length() > explained {
                jumped.push(id);
                guides.ways.push(Way::straight(from, leave, radius));
            } else if resting {
                guides.ways.push(Way::straight(from, chord, radius));
            } else {
                guides.ways.push(Way {
                    from,
                    chord,
                    slopes: [limited(leave, chord), limited(arrive, chord)],
                    change: (arrive - leave) / seconds,
                    radius,
                });
            }
        }
        guides.news.before = first.len();
        guides.news.jumped = jumped.len();
        guides.news.without_velocity = resting && moved;
        let kept = first.len() - guides.news.gone;
        guides.news.born = second.len().saturating_sub(kept);
        (guides, jumped)
    }

    /// The ways from one frame to the next, for particles in the order of their ids in both.
    pub fn in_order(first: &Particles, second: &Particles, seconds: f32) -> Self {
        let order = |particles: &Particles| -> Vec<u32> { (0..particles.len() as u32).collect() };
        Self::between((first, &order(first)), (second, &order(second)), seconds).0
    }

    /// Where they are from the part `begin` of the time to the part `end`, `dt` [s] later, in the order of their ids.
    pub fn during(&self, (begin, end): (f32, f32), dt: f32, guides: &mut Vec<Guide>) {
        guides.resize(self.ways.len(), Guide::NONE);
        chunks(self.ways.len())
            .zip(guides.par_chunks_mut(barchan_base::parallel::CHUNK))
            .for_each(|(range, guides)| {
                for (way, guide) in self.ways[range].iter().zip(guides) {
                    let position = way.at(begin);
                    *guide = Guide {
                        position,
                        velocity: (way.at(end) - position) / dt,
                        radius: way.radius,
                        change: way.change,
                    };
                }
            });
    }

    /// True where there is nobody.
    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// The largest radius [m]; zero where there is nobody.
    pub fn largest_radius(&self) -> f32 {
        self.ways.iter().map(|way| way.radius).fold(0.0, f32::max)
    }
}

impl Guide {
    const NONE: Self = Self {
        position: Vec3::ZERO,
        velocity: Vec3::ZERO,
        radius: 0.0,
        change: Vec3::ZERO,
    };
}

impl Way {
    fn straight(from: Vec3, chord: Vec3, radius: f32) -> Self {
        Self {
            from,
            chord,
            slopes: [chord; 2],
            change: Vec3::ZERO,
            radius,
        }
    }
}

fn finite(vector: Vec3) -> Vec3 {
    if vector.is_finite() {
        vector
    } else {
        Vec3::ZERO
    }
}

/// A slope between none and three times that of the chord, along each axis.
fn limited(slope: Vec3, chord: Vec3) -> Vec3 {
    let limit = 3.0 * chord;
    slope.clamp(limit.min(Vec3::ZERO), limit.max(Vec3::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(position: Vec3, velocity: Vec3) -> Particles {
        let mut particles = Particles::default();
        particles.resize(1);
        particles.position[0] = position;
        particles.velocity[0] = velocity;
        particles.radius[0] = 0.02;
        particles
    }

    fn way(first: &Particles, second: &Particles, seconds: f32) -> Way {
        Guides::between((first, &[0]), (second, &[0]), seconds)
            .0
            .ways[0]
    }

    #[test]
    fn free_flight_is_exact_and_nothing_swings_through_a_floor() {
        let (g, dt) = (Vec3::new(0.0, -9.81, 0.0), 0.04);
        let start = Vec3::new(3.0, -1.0, 0.5);
        let fly = |t: f32| start * t + g * (0.5 * t * t);
        let way_of_flight = way(&one(Vec3::ZERO, start), &one(fly(dt), start + g * dt), dt);
        for t in [0.0, 0.3, 0.7, 1.0] {
            assert!((way_of_flight.at(t) - fly(t * dt)).length() < 1e-6, "{t}");
        }
        // One that falls at 5 m/s and is found at rest on the floor, 1 cm lower.
        let landed = way(
            &one(Vec3::Y * 0.01, Vec3::Y * -5.0),
            &one(Vec3::ZERO, Vec3::ZERO),
            dt,
        );
        for i in 0..=100 {
            assert!(landed.at(i as f32 * 0.01).y >= -1e-7);
        }
    }

    #[test]
    fn strange_frames_are_noticed() {
        let (here, there) = (one(Vec3::ZERO, Vec3::ZERO), one(Vec3::X * 0.01, Vec3::ZERO));
        let news =
            |a: &Particles, b: &Particles| Guides::between((a, &[0]), (b, &[0]), 0.02).0.news;
        assert!(news(&here, &there).without_velocity);
        assert!(!news(&here, &here).without_velocity);
        let far = one(Vec3::X * 7.0, Vec3::X);
        assert_eq!(news(&here, &far).jumped, 1);
        assert_eq!(news(&one(Vec3::NAN, Vec3::ZERO), &there).unusable, 1);
        let mut other = there.clone();
        other.id[0] = 5;
        let changed = news(&here, &other);
        assert_eq!((changed.gone, changed.born), (1, 1));
    }

    #[test]
    fn ids_must_be_unique_and_have_room_for_grains() {
        let mut two = Particles::default();
        two.resize(2);
        assert!(matches!(
            by_id(&two, 3, 10),
            Err(DetailError::SameId { frame: 3, id: 0 })
        ));
        two.id[0] = u64::MAX / 10;
        assert!(matches!(
            by_id(&two, 3, 10),
            Err(DetailError::LargeId { .. })
        ));
        two.id[0] -= 1;
        assert_eq!(by_id(&two, 3, 10).unwrap(), [1, 0]);
    }
}
