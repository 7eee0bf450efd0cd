//! How good grains are: whether they gather, whether they are pressed together where the material is thin, whether they are
//! inside of bodies.

use super::field::{Field, Near};
use super::guides::Guide;
use super::sampling::place;
use super::settings::Settings;
use super::walls::Walls;
use crate::cache::Frame;
use barchan_base::random::Random;
use barchan_sim::body::SequenceError;
use barchan_sim::model::Model;
use glam::{IVec3, Vec3};
use std::collections::HashMap;

/// Particles with this part of the weight inside the material, or more, are in the bulk.
const BULK: f32 = 0.9;
/// Particles between these parts are at an edge; those with less are alone.
const EDGE: [f32; 2] = [0.5, 0.75];
/// Boxes with this part at their middle and their corners are inside the material.
const INSIDE: f32 = 0.6;
/// Grains drawn to find what a particle's grains weigh around it.
const DRAWS: u64 = 256;

/// Figures of a frame of grains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Grains.
    pub grains: usize,
    /// Variance of counts in boxes of one particle's volume, over the square of their mean; boxes inside the material only.
    pub clumping: f64,
    /// Boxes counted.
    pub boxes: usize,
    /// Density of grains around particles at edges, over that which their particles stand for, over the same in the bulk.
    pub edge: f64,
    /// Particles at edges.
    pub edge_particles: usize,
    /// How deep the deepest grain's centre is inside a body, over its radius; zero where none is.
    pub deepest: f64,
    /// The fastest grain [m/s].
    pub fastest: f64,
}

/// Measures a frame of grains made from `base`.
///
/// # Errors
/// If a body cannot be placed.
pub fn measure(
    model: &Model,
    settings: &Settings,
    base: &Frame,
    grains: &Frame,
) -> Result<Figures, SequenceError> {
    let (particles, fine) = (&base.particles, &grains.particles);
    let radii = particles.radius.iter().map(|radius| f64::from(*radius));
    let radius = (radii.sum::<f64>() / particles.len().max(1) as f64) as f32;
    let guide = |position: &Vec3| Guide {
        position: *position,
        velocity: Vec3::ZERO,
        radius,
        change: Vec3::ZERO,
    };
    let guides: Vec<Guide> = particles.position.iter().map(guide).collect();
    let mut field = Field::default();
    field.set_reach(settings.reach, radius);
    field.sort_particles(&guides, &[]);
    let (clumping, boxes) = clumping(&field, &guides, &fine.position, 2.0 * radius);
    let (edge, edge_particles) = edges(settings, &field, &guides, &fine.position);
    let mut walls = Walls::default();
    walls.place_at(model, &base.meta)?;
    let depth = |i: usize| {
        let distances = walls
            .solids
            .all()
            .iter()
            .map(|solid| solid.distance(fine.position[i]));
        -distances.fold(f32::INFINITY, f32::min) / fine.radius[i]
    };
    let deepest = (0..fine.len()).map(depth).fold(0.0, f32::max);
    let fastest = fine.velocity.iter().map(|v| v.length()).fold(0.0, f32::max);
    Ok(Figures {
        grains: fine.len(),
        clumping,
        boxes,
        edge,
        edge_particles,
        deepest: deepest.into(),
        fastest: fastest.into(),
    })
}

/// The box that a point is in. Fills seeded on a lattice have a particle in the middle of each cell: boxes lie between those.
fn box_at(point: Vec3, size: f32) -> IVec3 {
    (point / size - 0.5).floor().as_ivec3()
}

fn counts(points: &[Vec3], size: f32) -> HashMap<IVec3, u32> {
    let mut counts = HashMap::new();
    for point in points {
        *counts.entry(box_at(*point, size)).or_default() += 1;
    }
    counts
}

/// Clumping, and how many boxes it was found in.
fn clumping(field: &Field, guides: &[Guide], grains: &[Vec3], size: f32) -> (f64, usize) {
    let places: Vec<Vec3> = guides.iter().map(|guide| guide.position).collect();
    let (coarse, fine) = (counts(&places, size), counts(grains, size));
    let mut near = Default::default();
    let mut inside: Vec<IVec3> = coarse
        .keys()
        .filter(|at| {
            // The middle and the corners.
            let parts = (0..9).map(|i| match i {
                8 => Vec3::splat(0.5),
                _ => IVec3::new(i & 1, i >> 1 & 1, i >> 2 & 1).as_vec3(),
            });
            parts.into_iter().all(|part| {
                cover(field, guides, (at.as_vec3() + part + 0.5) * size, &mut near) >= INSIDE
            })
        })
        .copied()
        .collect();
    inside.sort_unstable_by_key(|at| at.to_array());
    let number = |at: &IVec3| f64::from(fine.get(at).copied().unwrap_or(0));
    let boxes = inside.len().max(1) as f64;
    let mean = inside.iter().map(number).sum::<f64>() / boxes;
    let off = |at: &IVec3| (number(at) - mean).powi(2);
    let square = inside.iter().map(off).sum::<f64>() / boxes;
    (square / (mean * mean).max(f64::MIN_POSITIVE), inside.len())
}

/// Weight of particles at `place`, over that inside the material.
fn cover(field: &Field, guides: &[Guide], place: Vec3, near: &mut Near) -> f32 {
    field.find(place, place, near);
    let guides = near.indices.iter().map(|i| &guides[*i as usize]);
    guides.map(|guide| field.weight(place, guide)).sum::<f32>() * field.full()
}

/// Density of grains around particles at edges over that in the bulk, each over what the particles around stand for.
fn edges(settings: &Settings, field: &Field, guides: &[Guide], grains: &[Vec3]) -> (f64, usize) {
    let mut near = Default::default();
    let mut heard = vec![0f64; guides.len()];
    for grain in grains {
        field.find(*grain, *grain, &mut near);
        for i in &near.indices {
            heard[*i as usize] += f64::from(field.weight(*grain, &guides[*i as usize]));
        }
    }
    // What the particles' grains weigh where they are sampled, each drawn anew.
    let random = Random::new(0, 12);
    let mut stood = vec![0f64; guides.len()];
    for (k, own) in guides.iter().enumerate() {
        for draw in 0..DRAWS {
            let at = place(
                settings.sampling,
                &random,
                k as u64 * DRAWS + draw,
                draw as u32,
            );
            let at = own.position + at * own.radius;
            field.find(at, at, &mut near);
            for i in &near.indices {
                stood[*i as usize] += f64::from(field.weight(at, &guides[*i as usize]));
            }
        }
    }
    let covers = guides.iter();
    let cover: Vec<f32> = covers
        .map(|own| cover(field, guides, own.position, &mut near))
        .collect();
    let mean = |some: &dyn Fn(f32) -> bool| {
        let chosen = (0..guides.len()).filter(|i| some(cover[*i]));
        let ratios = chosen.map(|i| heard[i] / stood[i].max(f64::MIN_POSITIVE));
        let (sum, count) = ratios.fold((0.0, 0i32), |(sum, count), ratio| (sum + ratio, count + 1));
        (sum / f64::from(count.max(1)), count as usize)
    };
    let (edge, count) = mean(&|cover| (EDGE[0]..EDGE[1]).contains(&cover));
    let (bulk, inside) = mean(&|cover| cover >= BULK);
    // Loosely poured grains have no bulk to compare with: that is no figure, and `null` in JSON.
    let ratio = if inside > 0 { edge / bulk } else { f64::NAN };
    (ratio, count)
}
