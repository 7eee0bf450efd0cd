//! What does not change during a run.

use crate::body::Body;
use crate::grain::{Grain, GrainShape};
use barchan_base::sampling::Layout;
use barchan_base::shape::Shape;
use glam::Vec3;
use std::sync::Arc;

/// Particles further out than this [m] are lost: a 32-bit float has no centimetres left there.
pub const WORLD: f32 = 1e5;

/// Everything a solver may look up: materials, bodies, sources, the outside world. SI units.
#[derive(Clone, Debug)]
pub struct Model {
    /// Unit vector up.
    pub up: Vec3,
    /// Gravity [m/s²].
    pub gravity: Vec3,
    /// Seed of everything random.
    pub seed: u64,
    /// Cell size, particle spacing or grain size [m].
    pub resolution: f32,
    /// Distance between particles as they are laid out [m]; half a cell where the method has cells.
    pub spacing: f32,
    /// Materials; particles name theirs by index.
    pub materials: Vec<Material>,
    /// Their single grains, one entry a material where the method has them, else none.
    pub grains: Vec<Grain>,
    /// The form in which their particles turn and are drawn, one entry a material; none where all are balls.
    pub shapes: Vec<Arc<GrainShape>>,
    /// What is there at the start.
    pub fills: Vec<Fill>,
    /// What arrives later.
    pub emitters: Vec<Emitter>,
    /// Where particles disappear.
    pub sinks: Vec<Sink>,
    /// Where material turns wet or dry.
    pub wet: Vec<Wet>,
    /// Solids.
    pub bodies: Vec<Body>,
    /// The air, if there is any.
    pub air: Option<Air>,
}

impl Model {
    /// Nothing, under gravity along −y; something to add to.
    pub fn empty() -> Self {
        Self {
            up: Vec3::Y,
            gravity: Vec3::new(0.0, -9.81, 0.0),
            seed: 0,
            resolution: 1.0,
            spacing: 1.0,
            materials: Vec::new(),
            grains: Vec::new(),
            shapes: Vec::new(),
            fills: Vec::new(),
            emitters: Vec::new(),
            sinks: Vec::new(),
            wet: Vec::new(),
            bodies: Vec::new(),
            air: None,
        }
    }

    /// Bulk volume [m³] that one particle stands for.
    pub fn particle_volume(&self) -> f64 {
        f64::from(self.spacing).powi(3)
    }

    /// Mass [kg] of one particle of a material: its share of the material as it lies.
    pub fn particle_mass(&self, material: usize) -> f64 {
        self.materials[material].density * self.particle_volume()
    }

    /// Density [kg/m³] of the lightest material that a fill or an emitter brings: the unit of a solver's masses.
    pub fn lightest(&self) -> f64 {
        let fills = self.fills.iter().map(|fill| fill.material);
        let emitters = self.emitters.iter().map(|emitter| emitter.material);
        let brought = fills.chain(emitters).filter_map(|i| self.materials.get(i));
        let lightest = |least: f64, material: &Material| least.min(material.density);
        let brought = brought.fold(f64::INFINITY, lightest);
        // Particles that neither brings may be of any material.
        let any = self.materials.iter().fold(f64::INFINITY, lightest);
        let known = [brought, any]
            .into_iter()
            .find(|density| density.is_finite());
        known.unwrap_or(1.0)
    }

    /// Radius [m] of one particle: particles one spacing apart touch.
    pub fn particle_radius(&self) -> f32 {
        0.5 * self.spacing
    }
}

/// A granular material or a fluid.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Name in the scene.
    pub name: String,
    /// Density as it lies [kg/m³].
    pub density: f64,
    /// Density of a grain [kg/m³].
    pub grain_density: f64,
    /// Diameter of a grain [m].
    pub grain_size: f64,
    /// Angle of internal friction [rad].
    pub friction_angle: f64,
    /// Shear strength without load [Pa].
    pub cohesion: f64,
    /// Shear strength without load that being wet adds [Pa].
    pub wet_cohesion: f64,
    /// Artificial viscosity that being wet adds (Ihmsen et al. 2013, section 3.4).
    pub wet_viscosity: f64,
    /// Part of the speed kept in a bounce.
    pub restitution: f64,
    /// Colour in daylight, linear red, green and blue.
    pub color: [f32; 3],
}

impl Material {
    /// True where it flows at the slightest shear.
    pub fn is_fluid(&self) -> bool {
        self.friction_angle == 0.0 && self.cohesion == 0.0
    }
}

/// Material that is there at the start.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Index of the material.
    pub material: usize,
    /// What it fills.
    pub shape: Shape,
    /// Velocity [m/s].
    pub velocity: Vec3,
    /// How particles are laid out.
    pub layout: Layout,
}

/// Material that arrives while the scene runs.
#[derive(Clone, Debug)]
pub struct Emitter {
    /// Index of the material.
    pub material: usize,
    /// Where it appears.
    pub shape: Shape,
    /// Particles a second.
    pub rate: f64,
    /// Velocity [m/s].
    pub velocity: Vec3,
    /// Half angle of the cone of directions [rad].
    pub spread: f32,
    /// When it works.
    pub active: Interval,
}

/// Where particles disappear.
#[derive(Clone, Debug)]
pub struct Sink {
    /// Particles with their centre inside are removed.
    pub shape: Shape,
    /// When it works.
    pub active: Interval,
}

/// Where material turns wet or dry.
#[derive(Clone, Debug)]
pub struct Wet {
    /// Particles with their centre inside change.
    pub shape: Shape,
    /// The wetness they end at, from 0 to 1.
    pub wetness: f32,
    /// How fast they get there [1/s].
    pub rate: f64,
    /// When it works.
    pub active: Interval,
}

/// A stretch of time [s].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Begins.
    pub from: f64,
    /// Ends; infinite for never.
    pub until: f64,
}

impl Interval {
    /// How much of it has passed at `time` [s].
    pub fn elapsed(self, time: f64) -> f64 {
        (time.min(self.until) - self.from).max(0.0)
    }
}

/// The air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Air {
    /// Density [kg/m³].
    pub density: f64,
    /// Dynamic viscosity [Pa s].
    pub viscosity: f64,
    /// Velocity of the wind [m/s].
    pub wind: Vec3,
}
