//! What moves a grain: the particles and walls around it, and gravity where there are few.

use super::field::Spread;
use super::settings::{Rule, Settings};
use glam::{Vec3, Vec4};

/// Where one particle has this part of all weight or more, the material is sparse (Ihmsen et al. 2013, eq. 25).
const ALONE: f32 = 0.6;
/// Integral of the weight over the unit ball: 4π · 16/315.
const INTEGRAL: f32 = 0.638_29;
/// Between these parts of the weight that there is inside the material, grains go from free to held. A flat surface has half.
const COVERED: [f32; 2] = [0.15, 0.45];
/// Grains less free than this rest on what is beneath them.
const LEANS: f32 = 0.1;

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
    /// Weight of particles around, over that inside the material.
    pub cover: Vec4,
}

impl Law {
    /// The law that settings ask for.
    pub fn new(settings: &Settings) -> Self {
        let reach = settings.reach;
        Self {
            rule: settings.rule,
            hold: settings.hold_density,
            at_radius: (1.0 - 1.0 / (reach * reach)).max(0.0).powi(3),
            // Particles stand two radii apart.
            full: 1.0 / (INTEGRAL * (0.5 * reach).powi(3)),
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
            cover,
        }
    }
}

/// Weights of eq. 23, and sums with them.
#[inline]
fn feel(places: &Four, sources: &[Spread]) -> Felt {
    let mut felt = Felt::default();
    for source in sources {
        let x = places[0] - source.position[0];
        let y = places[1] - source.position[1];
        let z = places[2] - source.position[2];
        let near = (Vec4::ONE - (x * x + y * y + z * z) * source.inverse).max(Vec4::ZERO);
        let weight = near * near * near;
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
        cover: Vec4::ZERO,
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
