//! What moves a grain: the particles and walls around it, and gravity where there are few.

use super::field::{Spread, full};
use super::settings::{Rule, Settings};
use glam::{Vec3, Vec4};

/// Where one particle has this part of all weight or more, the material is sparse (Ihmsen et al. 2013, eq. 25).
const ALONE: f32 = 0.6;
/// Between these parts of the weight that there is inside the material, grains go from free to held. A flat surface has half.
const COVERED: [f32; 2] = [0.15, 0.45];
/// Grains less free than this rest on what is beneath them.
const LEANS: f32 = 0.15;
/// Grains lean on what is beside them, too, where the cosine between their weight and the way to the material is less than this. Those above
/// it sink onto it.
const BESIDE: f32 = 0.3;
/// But only those that slide slower than this many times what gravity gives in a step.
const SLOW: f32 = 3.0;

/// A rule with its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    rule: Rule,
    hold: bool,
    /// Weight of a particle one radius away.
    at_radius: f32,
    /// One over the weight that there is inside the material.
    full: f32,
}

/// Four grains' places, or velocities.
pub type Four = [Vec4; 3];

/// What four grains feel.
#[derive(Clone, Copy, Debug, Default)]
struct Felt {
    weight: Vec4,
    most: Vec4,
    count: Vec4,
    velocity: Four,
}

/// What moves four grains.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Velocity of what is around them [m/s].
    pub around: Four,
    /// The part that they are free of it, from 0 to 1.
    pub free: Vec4,
}

impl Law {
    /// The law that settings ask for.
    pub fn new(settings: &Settings) -> Self {
        let reach = settings.reach;
        Self {
            rule: settings.rule,
            hold: settings.hold_density,
            at_radius: (1.0 - 1.0 / (reach * reach)).max(0.0).powi(3),
            full: full(reach),
        }
    }

    /// What moves four grains at `places`.
    #[inline]
    pub fn moved(&self, places: &Four, particles: &[Spread], walls: &[Spread]) -> Moved {
        match self.rule {
            Rule::Ihmsen => self.ihmsen(&feel(places, particles), &feel(places, walls)),
            Rule::Alduan => alduan(&feel_alduan(places, particles)),
        }
    }

    /// Holds those of four grains that would slide slowly down an upright side of the material: they would never come to rest.
    #[inline]
    pub fn lean(
        &self,
        moved: &mut Moved,
        (places, own): (&Four, &Four),
        particles: &[Spread],
        pull: Vec3,
    ) {
        let between = moved.free.cmpgt(Vec4::ZERO) & moved.free.cmplt(Vec4::ONE);
        if !self.hold || self.rule != Rule::Ihmsen || !between.any() {
            return;
        }
        let weight = pull.length();
        let down = pull.to_array().map(Vec4::splat);
        let slides: Four =
            std::array::from_fn(|axis| (own[axis] + down[axis] - moved.around[axis]) * moved.free);
        let slow = dot(&slides, &slides).cmple(Vec4::splat((SLOW * weight).powi(2)));
        let toward = toward(places, particles);
        let along = dot(&toward, &down);
        let most = BESIDE * weight;
        // The cosine without a root: its sign, then its square.
        let beside =
            along.cmple(Vec4::ZERO) | (along * along).cmplt(dot(&toward, &toward) * (most * most));
        moved.free = Vec4::select(between & slow & beside, Vec4::ZERO, moved.free);
    }

    /// The blend of Ihmsen et al. 2013, eqs. 23 to 25. Held to the material's density, a grain inside it is not free,
    /// however it lies between the particles, and walls are asked only where particles do not tell.
    #[inline]
    fn ihmsen(&self, particles: &Felt, walls: &Felt) -> Moved {
        let cover = particles.weight * self.full;
        let held = match self.hold {
            true => (cover - COVERED[0]) / (COVERED[1] - COVERED[0]),
            false => Vec4::ZERO,
        };
        let open = Vec4::ONE - held.clamp(Vec4::ZERO, Vec4::ONE);
        let asked = if self.hold { open } else { Vec4::ONE };
        let most = particles.most.max(walls.most * asked);
        let weight = particles.weight + walls.weight * asked;
        let share = Vec4::ONE / weight.max(Vec4::splat(f32::MIN_POSITIVE));
        let around = std::array::from_fn(|axis| {
            (particles.velocity[axis] + walls.velocity[axis] * asked) * share
        });
        let sparse = most.cmpge(weight * ALONE) | most.cmple(Vec4::splat(self.at_radius));
        let free = Vec4::select(sparse, Vec4::ONE - most, Vec4::ZERO) * open;
        let leans = free.cmplt(Vec4::splat(if self.hold { LEANS } else { 0.0 }));
        Moved {
            around,
            free: Vec4::select(leans, Vec4::ZERO, free),
        }
    }
}

/// Weights of someone for four grains (eq. 23).
#[inline]
pub fn weights(places: &Four, source: &Spread) -> Vec4 {
    let x = places[0] - source.position[0];
    let y = places[1] - source.position[1];
    let z = places[2] - source.position[2];
    let near = (Vec4::ONE - (x * x + y * y + z * z) * source.inverse).max(Vec4::ZERO);
    near * near * near * source.grip
}

fn dot(a: &Four, b: &Four) -> Vec4 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The way from four grains to where there is more material: up the slope of the particles' weights, not of unit length.
fn toward(places: &Four, sources: &[Spread]) -> Four {
    let mut sum = Four::default();
    for source in sources {
        let to: Four = std::array::from_fn(|axis| source.position[axis] - places[axis]);
        let near = (Vec4::ONE - dot(&to, &to) * source.inverse).max(Vec4::ZERO);
        for axis in 0..3 {
            sum[axis] += to[axis] * (near * near * source.inverse);
        }
    }
    sum
}

/// Velocity [m/s] that particles push four grains away with.
pub fn pushed(places: &Four, sources: &[Spread]) -> Four {
    let mut sum = Four::default();
    for source in sources {
        let off: Four = std::array::from_fn(|axis| places[axis] - source.position[axis]);
        let square = off[0] * off[0] + off[1] * off[1] + off[2] * off[2];
        let near = (Vec4::ONE - square * source.inverse).max(Vec4::ZERO);
        let push = near * near * source.push;
        for axis in 0..3 {
            sum[axis] += off[axis] * push;
        }
    }
    sum
}

/// Sums with the weights of all.
#[inline]
fn feel(places: &Four, sources: &[Spread]) -> Felt {
    let mut felt = Felt::default();
    for source in sources {
        let weight = weights(places, source);
        felt.weight += weight;
        felt.most = felt.most.max(weight);
        felt.velocity[0] += weight * source.velocity[0];
        felt.velocity[1] += weight * source.velocity[1];
        felt.velocity[2] += weight * source.velocity[2];
    }
    felt
}

/// Weights of Alduán et al. 2009, eq. 3, and sums with them.
fn feel_alduan(places: &Four, sources: &[Spread]) -> Felt {
    let mut felt = Felt::default();
    for source in sources {
        let off: Four = std::array::from_fn(|axis| places[axis] - source.position[axis]);
        let square = (off[0] * off[0] + off[1] * off[1] + off[2] * off[2]) * source.inverse;
        let away = Vec4::from_array(square.to_array().map(f32::sqrt));
        let inside = away.cmplt(Vec4::ONE);
        let weight = Vec4::select(inside, (3.0 - 2.0 * away) * 0.25, Vec4::ZERO);
        felt.weight += weight;
        felt.count += Vec4::select(inside, Vec4::ONE, Vec4::ZERO);
        for axis in 0..3 {
            felt.velocity[axis] += weight * source.velocity[axis];
        }
    }
    felt
}

/// Alduán et al. 2009, eq. 4: near two particles or more a grain is led, elsewhere it is free.
fn alduan(particles: &Felt) -> Moved {
    let share = Vec4::ONE / particles.weight.max(Vec4::splat(f32::MIN_POSITIVE));
    let led = particles.count.cmpge(Vec4::splat(2.0));
    Moved {
        around: particles.velocity.map(|sum| sum * share),
        free: Vec4::select(led, Vec4::ZERO, Vec4::ONE),
    }
}

/// The velocities of grains that move at `own` now, after a pull of `pull` [m/s].
#[inline]
pub fn blend(moved: &Moved, own: &Four, pull: Vec3) -> Four {
    let pull = pull.to_array();
    std::array::from_fn(|axis| {
        let free = own[axis] + pull[axis];
        moved.around[axis] * (Vec4::ONE - moved.free) + free * moved.free
    })
}

#[cfg(test)]
mod tests {
    use super::super::field::{Field, Near};
    use super::super::guides::Guide;
    use super::super::settings::Sampling;
    use super::*;
    use barchan_base::random::Random;

    fn settings(hold_density: bool) -> Settings {
        Settings {
            per_particle: 10,
            rule: Rule::Ihmsen,
            sampling: Sampling::SupportPoints,
            reach: 3.0,
            step: 0.01,
            every: 1,
            hold_density,
            radius: None,
            spread: 0.0,
            seed: 0,
            near: None,
        }
    }

    /// Equations 23 to 25 as they stand.
    fn plain(place: Vec3, own: Vec3, pull: Vec3, all: &[Guide]) -> Vec3 {
        let weight = |guide: &Guide| {
            let h = 3.0 * guide.radius;
            (1.0 - place.distance_squared(guide.position) / (h * h))
                .max(0.0)
                .powi(3)
        };
        let sum: f32 = all.iter().map(weight).sum();
        let most = all.iter().map(weight).fold(0.0, f32::max);
        let mean = all
            .iter()
            .map(|guide| guide.velocity * weight(guide))
            .sum::<Vec3>();
        let mean = if sum > 0.0 { mean / sum } else { Vec3::ZERO };
        let sparse = most / sum.max(1e-30) >= 0.6 || most <= (8.0f32 / 9.0).powi(3);
        let alpha = if sparse { 1.0 - most } else { 0.0 };
        mean * (1.0 - alpha) + (own + pull) * alpha
    }

    #[test]
    fn the_blend_is_that_of_the_paper() {
        let random = Random::new(2, 2);
        let guide = |i: u64| Guide {
            position: random.in_cube(i, 0) * 0.3,
            velocity: random.in_cube(i, 3) - 0.5,
            radius: 0.02,
            change: Vec3::ZERO,
        };
        let guides: Vec<Guide> = (0..200).map(guide).collect();
        let walls: Vec<Guide> = (200..260).map(guide).collect();
        let all: Vec<Guide> = guides.iter().chain(&walls).copied().collect();
        let mut field = Field::default();
        field.set_reach(3.0, 0.02);
        field.sort_particles(&guides, &[]);
        field.sort_walls(&walls);
        let law = Law::new(&settings(false));
        let pull = Vec3::new(0.0, -0.0981, 0.0);
        let mut near = Near::default();
        for i in 0..2000 {
            let (place, own) = (random.in_cube(i, 6) * 0.34, random.in_cube(i, 9));
            assert!(field.find(place, place, &mut near));
            let places = [place.x, place.y, place.z].map(Vec4::splat);
            let moved = law.moved(&places, &near.particles, &near.walls);
            let after = blend(&moved, &[own.x, own.y, own.z].map(Vec4::splat), pull);
            let after = Vec3::new(after[0].x, after[1].y, after[2].z);
            let expected = plain(place, own, pull, &all);
            assert!((after - expected).length() < 1e-4, "{after} for {expected}");
        }
    }

    #[test]
    fn inside_the_material_no_grain_is_free_once_density_is_held() {
        let cell = |i: i32| glam::IVec3::new(i % 8, i / 8 % 8, i / 64).as_vec3();
        let guides: Vec<Guide> = (0..512)
            .map(|i| Guide {
                position: cell(i) * 0.04,
                velocity: Vec3::X,
                radius: 0.02,
                change: Vec3::ZERO,
            })
            .collect();
        let mut field = Field::default();
        field.set_reach(3.0, 0.02);
        field.sort_particles(&guides, &[]);
        field.sort_walls(&[]);
        let random = Random::new(1, 1);
        let mut near = Near::default();
        let mut free = |hold: bool| {
            let law = Law::new(&settings(hold));
            let grains = (0..1000).map(|i| Vec3::splat(0.08) + random.in_cube(i, 0) * 0.12);
            let freed = grains.filter(|place| {
                assert!(field.find(*place, *place, &mut near));
                let places = [place.x, place.y, place.z].map(Vec4::splat);
                law.moved(&places, &near.particles, &[]).free.x > 0.0
            });
            freed.count()
        };
        assert_eq!(free(true), 0);
        // As published, those more than a radius from every particle fall: on a lattice about half.
        let published = free(false);
        assert!((350..650).contains(&published), "{published}");
    }
}
