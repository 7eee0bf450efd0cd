//! What a run's grains are made with.

use barchan_sim::scene::{DetailDoc, Scene};
use glam::Vec3;

pub use barchan_sim::scene::{
    DetailRule as Rule, DetailSampling as Sampling, DetailStorage as Storage,
};

/// Part of the material's volume that its grains fill, as sand poured does.
const PACKED: f64 = 0.6;

/// What grains are made with, in SI units.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Grains in place of each particle.
    pub per_particle: u32,
    /// What moves a grain.
    pub rule: Rule,
    /// Where grains begin.
    pub sampling: Sampling,
    /// How far a particle is felt, in its radii.
    pub reach: f32,
    /// The longest step [s].
    pub step: f64,
    /// Steps from one interpolation to the next, for Alduán's rule.
    pub every: u32,
    /// Whether grains are held to the particles' density.
    pub hold_density: bool,
    /// Radius of a grain [m], if it does not follow from the packing.
    pub radius: Option<f32>,
    /// Grains are up to this part larger or smaller.
    pub spread: f32,
    /// Seed of everything random.
    pub seed: u64,
    /// Where cameras stand, and how far from them all grains are made [m].
    pub near: Option<(Vec<Vec3>, f32)>,
}

impl Settings {
    /// So many grains of one size a particle, and else what is usual.
    #[cfg(test)]
    pub fn plain(per_particle: u32) -> Self {
        Self {
            per_particle,
            rule: Rule::Ihmsen,
            sampling: Sampling::SupportPoints,
            reach: 3.0,
            step: 0.01,
            every: 1,
            hold_density: true,
            radius: None,
            spread: 0.0,
            seed: 1,
            near: None,
        }
    }

    /// What `doc` says, for a run of `scene`.
    pub fn new(doc: &DetailDoc, scene: &Scene) -> Self {
        let own = match doc.rule {
            Rule::Ihmsen => Sampling::SupportPoints,
            Rule::Alduan => Sampling::Sphere,
        };
        let camera = scene
            .render
            .as_ref()
            .and_then(|render| render.camera.as_ref());
        let near = doc.near.as_ref().zip(camera).map(|(near, camera)| {
            let places = camera.keys.iter().map(|(_, view)| view.at).collect();
            (places, near.si as f32)
        });
        Self {
            per_particle: doc.grains_per_particle.0 as u32,
            rule: doc.rule,
            sampling: doc.sampling.unwrap_or(own),
            reach: doc.reach.si as f32,
            step: doc.step.si,
            every: doc.every.0 as u32,
            hold_density: doc.hold_density,
            radius: doc.size.as_ref().map(|size| 0.5 * size.si as f32),
            spread: doc.size_spread.si as f32,
            seed: scene.model.seed,
            near,
        }
    }

    /// How many grains a particle at `place` gets: all near a camera, fewer with the square of the distance.
    pub fn count(&self, place: Vec3) -> u32 {
        let Some((cameras, near)) = &self.near else {
            return self.per_particle;
        };
        let away = cameras.iter().map(|camera| camera.distance(place));
        let away = away.fold(f32::INFINITY, f32::min).max(*near);
        let part = (near / away).powi(2);
        ((self.per_particle as f32 * part).round() as u32).clamp(1, self.per_particle)
    }

    /// Radius [m] of each of `count` grains in place of a particle of radius `radius` [m]; particles one diameter apart
    /// share the material's volume.
    pub fn radius(&self, radius: f32, count: u32) -> f32 {
        use std::f64::consts::PI;
        self.radius.unwrap_or_else(|| {
            let share = (2.0 * f64::from(radius)).powi(3) / f64::from(count.max(1));
            (PACKED * share * 0.75 / PI).cbrt() as f32
        })
    }
}
