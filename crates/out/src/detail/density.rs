//! Keeps grains as dense as the particles say, without asking grains about each other.
//!
//! A particle hears how many grains are around it, with the weights that grains feel it with. Where that is more than its
//! own kind around it stands for, it pushes grains away, and draws them near where it is less, as fast as particles there
//! move past each other: what rests is left alone, and so is what moves as one.

use super::field::{Field, Near};
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

    /// How strongly each particle pushes grains away, in the order of `guides` [m/s]; `grains` are in the order of their
    /// places.
    pub fn pushes(
        &mut self,
        field: &Field,
        guides: &[Guide],
        grains: &[Vec3],
        pushes: &mut Vec<f32>,
    ) {
        self.loads.clear();
        self.loads.resize_with(guides.len(), AtomicU64::default);
        grains.par_chunks(CHUNK).for_each(|grains| {
            let (mut near, mut sums) = (Near::default(), Vec::new());
            for grains in grains.chunks(TOGETHER) {
                self.hear(field, grains, &mut near, &mut sums);
            }
        });
        pushes.clear();
        pushes.resize(guides.len(), 0.0);
        let of = |i: usize, near: &mut Near| self.push(field, guides, i, near);
        chunks(guides.len())
            .zip(pushes.par_chunks_mut(CHUNK))
            .for_each(|(range, pushes)| {
                let mut near = Near::default();
                for (push, i) in pushes.iter_mut().zip(range) {
                    *push = of(i, &mut near);
                }
            });
    }

    /// Adds some of a few neighbouring grains to the loads of the particles around.
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
        for (sum, guide) in sums.iter().zip(&near.indices) {
            let whole = (sum.element_sum() * WHOLE) as u64;
            self.loads[*guide as usize].fetch_add(whole, Ordering::Relaxed);
        }
    }

    /// How strongly particle `i` pushes [m/s].
    fn push(&self, field: &Field, guides: &[Guide], i: usize, near: &mut Near) -> f32 {
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
        let heard = self.loads[i].load(Ordering::Relaxed) as f32 / WHOLE * self.stride as f32;
        let off = heard / (expected * self.per_particle as f32).max(f32::MIN_POSITIVE) - 1.0;
        let cover = weight * field.full();
        let dense = if off < 0.0 { DENSE[0] } else { DENSE[1] };
        if off.abs() < NOISE || cover < dense || !off.is_finite() {
            return 0.0;
        }
        let stir = (past / weight.max(f32::MIN_POSITIVE)).sqrt();
        STRENGTH * stir * off.clamp(STRONGEST[0], STRONGEST[1])
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
