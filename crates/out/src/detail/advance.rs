//! One step of all grains: a few neighbours at a time, four in one go.

use super::contact::Contacts;
use super::field::{Field, Near};
use super::rule::{Four, Law, blend, pushed};
use barchan_base::parallel::CHUNK;
use glam::{Vec3, Vec4};
use rayon::prelude::*;

/// Neighbouring grains that look for particles together.
const TOGETHER: usize = 32;

/// What a step needs.
pub struct Stepper<'a> {
    /// The rule; none where grains only fly, between two interpolations of Alduán's rule.
    pub law: Option<Law>,
    /// Particles and walls.
    pub field: &'a Field,
    /// Bodies.
    pub contacts: Contacts<'a>,
    /// What gravity gives in the step [m/s].
    pub pull: Vec3,
    /// Length of the step [s].
    pub dt: f32,
}

impl Stepper<'_> {
    /// Moves all grains of radii `radius` [m], which are best in the order of their places; each one's way depends on itself alone.
    pub fn advance(&self, position: &mut [Vec3], velocity: &mut [Vec3], radius: &[f32]) {
        position
            .par_chunks_mut(CHUNK)
            .zip(velocity.par_chunks_mut(CHUNK))
            .zip(radius.par_chunks(CHUNK))
            .for_each(|((position, velocity), radius)| {
                let mut near = Near::default();
                for ((position, velocity), radius) in position
                    .chunks_mut(TOGETHER)
                    .zip(velocity.chunks_mut(TOGETHER))
                    .zip(radius.chunks(TOGETHER))
                {
                    self.some(position, velocity, radius, &mut near);
                }
            });
    }

    /// Moves a few grains together, or in halves where they are far apart.
    fn some(&self, position: &mut [Vec3], velocity: &mut [Vec3], radius: &[f32], near: &mut Near) {
        let (least, most) = box_of(position);
        if let Some(law) = &self.law {
            if !self.field.find(least, most, near) {
                let half = position.len() / 2;
                if half == 0 {
                    return; // nowhere: it stays there
                }
                let (p, q) = position.split_at_mut(half);
                let (v, w) = velocity.split_at_mut(half);
                let (r, s) = radius.split_at(half);
                self.some(p, v, r, near);
                self.some(q, w, s, near);
                return;
            }
            for (position, velocity) in position.chunks(4).zip(velocity.chunks_mut(4)) {
                self.lead(law, position, velocity, near);
            }
        } else {
            velocity.iter_mut().for_each(|v| *v += self.pull);
        }
        self.travel((least, most), position, velocity, radius);
    }

    /// Gives up to four grains their velocities.
    #[inline]
    fn lead(&self, law: &Law, position: &[Vec3], velocity: &mut [Vec3], near: &Near) {
        let (places, own) = (four(position), four(velocity));
        let mut moved = law.moved(&places, &near.particles, &near.walls);
        law.lean(&mut moved, (&places, &own), &near.particles, self.pull);
        let mut after = blend(&moved, &own, self.pull);
        if near.pushes {
            let push = pushed(&places, &near.particles);
            let held = Vec4::ONE - moved.free;
            for axis in 0..3 {
                after[axis] += push[axis] * held;
            }
        }
        let [x, y, z] = after.map(|axis| axis.to_array());
        for (lane, velocity) in velocity.iter_mut().enumerate() {
            *velocity = Vec3::new(x[lane], y[lane], z[lane]);
        }
    }

    /// Moves grains by their velocities, among the bodies near their box.
    fn travel(
        &self,
        (least, most): (Vec3, Vec3),
        position: &mut [Vec3],
        velocity: &mut [Vec3],
        radius: &[f32],
    ) {
        let fastest = velocity.iter().map(|v| v.length_squared());
        let way = fastest.fold(0.0, f32::max).sqrt() * self.dt;
        let (middle, around) = (0.5 * (least + most), 0.5 * (most - least).length());
        let mask = self.contacts.near(middle, around, way);
        for ((position, velocity), radius) in position.iter_mut().zip(velocity).zip(radius) {
            if mask == 0 {
                *position += *velocity * self.dt;
            } else {
                self.contacts.advance(position, velocity, *radius, mask);
            }
        }
    }
}

/// Least and greatest corner of the box around `places`.
pub fn box_of(places: &[Vec3]) -> (Vec3, Vec3) {
    let none = (Vec3::INFINITY, Vec3::NEG_INFINITY);
    let corners = |(a, b): (Vec3, Vec3), p: &Vec3| (a.min(*p), b.max(*p));
    places.iter().fold(none, corners)
}

/// Up to four vectors, axis by axis; the last one fills up what is missing.
#[inline]
pub fn four(vectors: &[Vec3]) -> Four {
    let at = |i: usize| vectors[i.min(vectors.len() - 1)];
    let [a, b, c, d] = [at(0), at(1), at(2), at(3)];
    [
        Vec4::new(a.x, b.x, c.x, d.x),
        Vec4::new(a.y, b.y, c.y, d.y),
        Vec4::new(a.z, b.z, c.z, d.z),
    ]
}
