//! Fields of particles on voxels: how much is there, how fast it goes, how far away it is.

use super::file::{Field, Leaf};
use super::tree::{EDGE, voxel_slot};
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};

/// Half the width of the band of distances [voxels], as OpenVDB's own tools make it.
pub const BAND: f32 = 3.0;
/// Balls this much larger than particles leave no hole between neighbours on a lattice: √3.
pub const CLOSING: f32 = 1.732_050_8;

/// Calls `act` with the place and slot of each voxel of the leaf at `origin` that lies between `least` and `most`.
pub fn each_voxel(origin: IVec3, (least, most): (Vec3, Vec3), mut act: impl FnMut(Vec3, usize)) {
    let a = (least.ceil().as_ivec3() - origin).max(IVec3::ZERO);
    let b = (most.floor().as_ivec3() - origin).min(IVec3::splat(EDGE - 1));
    for x in a.x..=b.x {
        for y in a.y..=b.y {
            for z in a.z..=b.z {
                let voxel = IVec3::new(x, y, z);
                act((origin + voxel).as_vec3(), voxel_slot(voxel));
            }
        }
    }
}

/// Distance to balls around the particles [m].
pub struct Distance<'a> {
    pub particles: &'a Particles,
    pub voxel: f32,
}

impl Field for Distance<'_> {
    type Value = f32;

    fn name(&self) -> (&'static str, &'static str) {
        ("distance", "level set")
    }

    fn background(&self) -> f32 {
        BAND * self.voxel
    }

    fn is_level_set(&self) -> bool {
        true
    }

    fn leaf(&self, origin: IVec3, things: &[u32]) -> Leaf<f32> {
        let mut leaf = Leaf::filled(self.background());
        for &thing in things {
            let place = self.particles.position[thing as usize] / self.voxel;
            let ball = CLOSING * self.particles.radius[thing as usize] / self.voxel;
            let reach = (place - ball - BAND, place + ball + BAND);
            each_voxel(origin, reach, |voxel, slot| {
                let distance = (place - voxel).length() - ball;
                leaf.values[slot] = leaf.values[slot].min(distance * self.voxel);
            });
        }
        for (slot, value) in leaf.values.iter().enumerate() {
            if value.abs() < self.background() {
                leaf.active.set(slot);
            }
        }
        leaf
    }
}

/// Mass that a leaf's voxels receive from the particles around them, with what `of` makes of each particle.
fn spread<V: super::file::Value + std::ops::AddAssign + std::ops::Mul<f32, Output = V>>(
    (particles, voxel): (&Particles, f32),
    origin: IVec3,
    things: &[u32],
    of: impl Fn(usize) -> V,
) -> Leaf<V> {
    let mut leaf = Leaf::filled(V::default());
    for i in things.iter().map(|&thing| thing as usize) {
        let place = particles.position[i] / voxel;
        each_voxel(origin, (place - 1.0, place + 1.0), |near, slot| {
            let away = (place - near).abs();
            let weight = (1.0 - away).max(Vec3::ZERO).element_product() * particles.mass[i];
            if weight > 0.0 {
                leaf.values[slot] += of(i) * weight;
                leaf.active.set(slot);
            }
        });
    }
    leaf
}

/// Mass in a voxel's room [kg/m³].
pub struct Density<'a> {
    pub particles: &'a Particles,
    pub voxel: f32,
}

impl Field for Density<'_> {
    type Value = f32;

    fn name(&self) -> (&'static str, &'static str) {
        ("density", "fog volume")
    }

    fn background(&self) -> f32 {
        0.0
    }

    fn is_level_set(&self) -> bool {
        false
    }

    fn leaf(&self, origin: IVec3, things: &[u32]) -> Leaf<f32> {
        let room = self.voxel.powi(3);
        spread((self.particles, self.voxel), origin, things, |_| 1.0 / room)
    }
}

/// Mean velocity of the mass in a voxel [m/s].
pub struct Velocity<'a> {
    pub particles: &'a Particles,
    pub voxel: f32,
}

impl Field for Velocity<'_> {
    type Value = Vec3;

    fn name(&self) -> (&'static str, &'static str) {
        ("velocity", "unknown")
    }

    fn background(&self) -> Vec3 {
        Vec3::ZERO
    }

    fn is_level_set(&self) -> bool {
        false
    }

    fn leaf(&self, origin: IVec3, things: &[u32]) -> Leaf<Vec3> {
        let from = (self.particles, self.voxel);
        let mass = spread(from, origin, things, |_| 1.0f32);
        let mut leaf = spread(from, origin, things, |i| self.particles.velocity[i]);
        for (value, mass) in leaf.values.iter_mut().zip(&mass.values) {
            *value /= mass.max(f32::MIN_POSITIVE);
        }
        leaf
    }
}
