//! The measures of a scene that the changes of phase are judged by.

use barchan_sim::model::Model;
use barchan_sim::scene::HybridSettings;

/// Particles slower than this part of √(g Δx) are still.
const STILL: f32 = 0.003;
/// Time of rest before material turns solid, over √(Δx / g).
const REST: f64 = 10.0;
/// Time in which grains at the surface take up the liquid's velocity, over √(Δx / g).
const BORROW: f32 = 0.25;

/// Lengths, speeds and loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Edge of a cell [m] and its inverse.
    pub dx: f32,
    pub inverse: f32,
    /// Density as the material lies [kg/m³], and mass of a full cell [kg].
    pub density: f32,
    pub cell_mass: f32,
    /// Pressure [Pa] of a stress of 1 m/s², and of the weight of a cell.
    pub pressure: f32,
    pub weight: f32,
    /// Difference of pressure [Pa] that material bears without a load: the strongest's cohesion.
    pub cohesion: f32,
    /// 1 / √(g Δx) [s/m]; infinite where nothing pulls.
    pub per_speed: f32,
    /// Speed [m/s] below which a particle is still.
    pub still: f32,
    /// How long [s] a cell must be still before it freezes.
    pub rest_time: f32,
    /// How fast [s] grains take up the liquid's velocity.
    pub borrow_time: f32,
}

impl Scale {
    pub fn new(model: &Model, settings: &HybridSettings) -> Self {
        let dx = model.resolution;
        let gravity = model.gravity.length();
        let density = model.lightest() as f32;
        let strengths = model.materials.iter().map(|material| material.cohesion);
        let strongest = strengths.fold(0.0, f64::max);
        let fall = (f64::from(dx) / f64::from(gravity)).sqrt();
        let speed = (gravity * dx).sqrt();
        Self {
            dx,
            inverse: 1.0 / dx,
            density,
            cell_mass: density * dx * dx * dx,
            pressure: density * dx,
            weight: density * gravity * dx,
            cohesion: strongest as f32,
            per_speed: 1.0 / speed,
            still: STILL * speed,
            rest_time: settings.rest_time.unwrap_or(REST * fall) as f32,
            borrow_time: BORROW * fall as f32,
        }
    }
}
