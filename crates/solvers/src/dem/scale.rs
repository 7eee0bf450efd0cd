//! How stiff grains are taken to be, and how long a step may be: both follow from what the scene can do to a grain.

use super::law::{damping, impact};
use super::suction;
use barchan_base::Bounds;
use barchan_sim::body::Form;
use barchan_sim::grain::Grain;
use barchan_sim::model::{Material, Model};
use barchan_sim::scene::{Contact, Stiffness};
use barchan_sim::solids::Solids;
use glam::Vec3;

/// Steps in the shortest contact of grains that lose some of their speed in it.
const STEPS_IN_CONTACT: f64 = 15.0;
/// A bounce is off by this part of the speed with so many steps, and by the power −2.5 of their number.
const BOUNCE_ERROR: f64 = 1e-3;
/// An elastic bounce may be off by this part of the speed, others by so much of what they lose.
const ELASTIC_ERROR: f64 = 1e-4;
const LOSS_ERROR: f64 = 0.05;
/// Steps over the damping: a grain with many contacts that damp must not be thrown back by them within a step.
const STEPS_FOR_DAMPING: f64 = 30.0;
/// Composites whose balls pull at others with more than this many weights of a grain are sticky: they keep up to so many times the
/// contacts that others have, eleven (tetrahedra) to fourteen (cubes), and all of them damp.
const STICKY: f64 = 5.0;
const STICKY_CONTACTS: f64 = 3.0;
/// Part of the allowed overlap that one impact may take: what comes behind presses too.
const ROOM: f64 = 0.85;
/// Way down that is looked for a floor [m], and looks on it.
const DEEPEST: f32 = 100.0;
const LOOKS: u32 = 200;

/// Stiffness and step of a scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Young's modulus of the grains [Pa].
    pub young: f64,
    /// The longest step [s].
    pub step: f64,
    /// The fastest that grains are expected to meet each other or a solid [m/s].
    pub speed: f64,
    /// How deep two such grains press into each other, over their radius.
    pub overlap: f64,
}

impl Scale {
    /// Of a scene under a law of contact.
    pub fn of(model: &Model, contact: &Contact) -> Self {
        let speed = speed(model);
        let mut scale = Self {
            young: 0.0,
            step: f64::INFINITY,
            speed,
            overlap: 0.0,
        };
        if let Contact::HertzMindlin(stiffness) = contact {
            scale.young = match stiffness {
                Stiffness::Young(young) => *young,
                Stiffness::Auto { overlap } => softest(model, speed, *overlap),
            };
        }
        for (grain, material) in model.grains.iter().zip(&model.materials) {
            let radius = 0.5 * grain.sizes.quantile(0.0);
            let mass = 0.5 * grain.mass(radius as f32, material.grain_density);
            let ball = radius * smallest(grain);
            let k = match contact {
                Contact::HertzMindlin(_) => {
                    let effective = 0.5 * scale.young / (1.0 - grain.poisson * grain.poisson);
                    4.0 / 3.0 * effective * (0.5 * ball).sqrt()
                }
                Contact::Alduan { stiffness, .. } => *stiffness,
            };
            let (deepest, duration) = impact(k, mass, speed);
            // A rigid wall is stiffer than another grain by more than it is heavier.
            let on_wall = match (contact, model.bodies.is_empty()) {
                (Contact::HertzMindlin(_), false) => impact(k * 8f64.sqrt(), 2.0 * mass, speed).1,
                _ => duration,
            };
            let duration = duration.min(on_wall);
            scale.overlap = scale.overlap.max(deepest / ball);
            let walls = model.bodies.iter().filter_map(|body| body.restitution);
            let restitutions = walls.map(f64::from).chain([material.restitution]);
            let contacts = match contact {
                Contact::HertzMindlin(_) if is_sticky(model, (grain, material), (ball, mass)) => {
                    STICKY_CONTACTS
                }
                _ => 1.0,
            };
            let steps = restitutions.map(|kept| steps_in_contact(kept, contacts));
            let steps = steps.fold(0.0, f64::max);
            scale.step = scale.step.min(duration / steps);
            if let Contact::Alduan { damping, .. } = contact {
                // What damps must not turn the approach around within a step.
                let damped = 0.5 * mass / (damping * deepest.sqrt());
                scale.step = scale.step.min(damped);
            }
        }
        scale
    }
}

/// Whether composite grains hold each other by more than a few weights, where they are wet if anything wets them; `ball` is the radius of
/// their balls [m], `mass` half that of a grain [kg].
fn is_sticky(
    model: &Model,
    (grain, material): (&Grain, &Material),
    (ball, mass): (f64, f64),
) -> bool {
    let wet = match model.wet.is_empty() {
        true => 0.0,
        false => material.wet_cohesion,
    };
    let suction = suction(material.friction_angle, material.cohesion + wet);
    let weight = 2.0 * mass * f64::from(model.gravity.length());
    let pull = grain.stickiness * weight + suction * (0.5 * ball).powi(2);
    grain.shape.balls().len() > 1 && pull > STICKY * weight
}

/// How many steps a contact that keeps this part of the speed must have, of grains with so many times the `contacts` of poured balls.
fn steps_in_contact(restitution: f64, contacts: f64) -> f64 {
    let allowed = ELASTIC_ERROR.max(LOSS_ERROR * (1.0 - restitution));
    let accurate = STEPS_IN_CONTACT * (BOUNCE_ERROR / allowed).powf(0.4);
    STEPS_IN_CONTACT
        .max(accurate)
        .max(STEPS_FOR_DAMPING * damping(restitution) * contacts)
}

/// Radius of the smallest ball of a grain, over the grain's.
pub fn smallest(grain: &Grain) -> f64 {
    let radii = grain.shape.balls().iter().map(|(_, radius)| *radius);
    radii.fold(1.0, f64::min)
}

/// The softest Young's modulus [Pa] with which neither an impact at `speed` [m/s] nor the load of all that lies above
/// presses grains deeper than `overlap` radii.
fn softest(model: &Model, speed: f64, overlap: f64) -> f64 {
    let grains = model.grains.iter().zip(&model.materials);
    let needed = grains.map(|(grain, material)| {
        let radius = 0.5 * grain.sizes.quantile(0.0);
        let mass = 0.5 * grain.mass(radius as f32, material.grain_density);
        let ball = radius * smallest(grain);
        let deepest = ROOM * overlap * ball;
        let by_impact = 1.25 * mass * speed * speed / deepest.powf(2.5);
        // A chain of contacts carries the load of its own column, one grain wide.
        let gravity = f64::from(model.gravity.length());
        let load = material.density * gravity * height(model) * (2.0 * radius).powi(2);
        let by_load = load / deepest.powf(1.5);
        let k = by_impact.max(by_load);
        let effective = 0.75 * k / (0.5 * ball).sqrt();
        2.0 * effective * (1.0 - grain.poisson * grain.poisson)
    });
    needed.fold(f64::MIN_POSITIVE, f64::max)
}

/// How high material lies [m], at most.
fn height(model: &Model) -> f64 {
    let heights = model
        .fills
        .iter()
        .map(|fill| extent(&fill.shape.bounds(), model.up));
    f64::from(heights.fold(0.0, f32::max))
}

fn extent(bounds: &Bounds, up: Vec3) -> f32 {
    let size = bounds.size();
    if size.is_finite() {
        size.dot(up.abs())
    } else {
        0.0
    }
}

/// The fastest that grains are expected to meet [m/s]: by their own speed, by the fall to what is below, by the height
/// of the material, and by the solids' motion.
fn speed(model: &Model) -> f64 {
    let gravity = f64::from(model.gravity.length());
    let size = model.grains.iter().map(Grain::largest).fold(0.0, f64::max);
    let mut solids = Solids::default();
    // Without its files a solid cannot be placed; the run will say so.
    let placed = solids.place(model, 0.0, 0.0).is_ok();
    let drop = |bounds: &Bounds| {
        if placed {
            f64::from(fall(model, &solids, bounds))
        } else {
            0.0
        }
    };
    let fills = model.fills.iter().map(|fill| {
        let bounds = fill.shape.bounds();
        let own = f64::from(fill.velocity.length_squared());
        own + gravity * (f64::from(extent(&bounds, model.up)) + 2.0 * drop(&bounds))
    });
    let emitters = model.emitters.iter().map(|emitter| {
        let own = f64::from(emitter.velocity.length_squared());
        own + 2.0 * gravity * drop(&emitter.shape.bounds())
    });
    let by_material = fills.chain(emitters).fold(gravity * size, f64::max).sqrt();
    by_material.max(fastest_body(model)).max(1e-3)
}

/// How far down a floor is below a shape [m]; none counts as none.
fn fall(model: &Model, solids: &Solids, bounds: &Bounds) -> f32 {
    if !bounds.is_finite() {
        return 0.0;
    }
    let (center, half) = ((bounds.min + bounds.max) * 0.5, bounds.size() * 0.5);
    let down = -model.up;
    let mut point = center + down * half.dot(model.up.abs());
    let mut way = 0.0;
    for _ in 0..LOOKS {
        let free = solids
            .all()
            .iter()
            .map(|solid| solid.distance(point))
            .fold(f32::INFINITY, f32::min);
        if free < 0.5 * model.resolution {
            return way;
        }
        if way > DEEPEST || !free.is_finite() {
            return 0.0;
        }
        way += free.max(0.25 * model.resolution);
        point = center + down * (half.dot(model.up.abs()) + way);
    }
    0.0
}

/// The fastest that a solid comes along [m/s].
fn fastest_body(model: &Model) -> f64 {
    const MOMENT: f64 = 1.0 / 60.0;
    let speeds = model.bodies.iter().map(|body| match &body.form {
        Form::Keyframed(shape, track) => {
            let bounds = shape.bounds();
            let arm = if bounds.is_finite() {
                bounds.size().length()
            } else {
                0.0
            };
            let ends = (0..600).map(|i| {
                let (a, b) = (
                    track.pose(f64::from(i) * MOMENT),
                    track.pose(f64::from(i + 1) * MOMENT),
                );
                let turn = a.rotation.angle_between(b.rotation);
                f64::from(a.position.distance(b.position) + turn * arm) / MOMENT
            });
            ends.fold(0.0, f64::max)
        }
        Form::Dynamic(dynamic) => f64::from(dynamic.velocity.length()),
        Form::Static(_) | Form::Sequence(_) => 0.0,
    });
    speeds.fold(0.0, f64::max)
}
