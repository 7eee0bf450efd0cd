//! Grains as they lie. Single grains begin on a lattice, a third looser than grains ever lie, so that a bed of them would first
//! fall together, and gain speed down an incline before it rests on it. They do that in a box of their own, and the case
//! begins with those that lie within its fill. With all their friction they would lie as loose as grains can, and give way as soon
//! as they are loaded otherwise; sand that was shovelled, levelled or shaken lies denser. So they fall with less.

use super::lab::{G, LastLine};
use super::scene_text::FPS;
use super::trial::Trouble;
use barchan_base::shape::Shape;
use barchan_base::{Bounds, Pose};
use barchan_sim::body::{Body, Form};
use barchan_sim::coupling::coupling;
use barchan_sim::grain::GrainShape;
use barchan_sim::model::Fill;
use barchan_sim::run::Run;
use barchan_sim::scene::{Contact, Scene, Stiffness};
use barchan_sim::start::start;
use barchan_sim::state::State;
use barchan_solvers::dem::Dem;
use glam::{Quat, Vec3};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Height of the lattice over that of the fill: balls that lie on a lattice are this much looser, and a little more.
const HIGHER: f64 = 1.75;
/// How long grains fall together, over the time of a fall through the lattice's height.
const FALLS: f64 = 2.5;
/// Friction while they fall over what they have, and they roll freely and do not stick.
const SHAKEN: f64 = 0.5;
/// A grain is taken where this part of its radius is inside the fill's surface.
const INSIDE: f32 = 0.9;

/// Lets the grains of a scene's only fill fall together, and begins `state` with them.
pub fn pack(scene: &Scene, state: &mut State) -> Result<(), Trouble> {
    let [fill] = scene.model.fills.as_slice() else {
        return Ok(());
    };
    let bounds = fill.shape.bounds();
    let heap = boxed(scene, fill, &bounds);
    let columns = barchan_solvers::solver(&heap).columns();
    let mut settled = start(&heap.model, heap.fps, columns).map_err(|e| e.to_string())?;
    let height = higher(scene, fill) * f64::from(bounds.size().y);
    let frames = (FALLS * (2.0 * height / G).sqrt() * FPS).ceil();
    let mut run = Run {
        model: &heap.model,
        solver: &mut *barchan_solvers::solver(&heap),
        coupling: &mut *coupling(&heap.model),
        max_step: heap.max_step,
        stop: &AtomicBool::new(false),
    };
    run.until(frames as u32, &mut settled, &mut LastLine::default())
        .map_err(|error| error.to_string())?;
    let mut grains = settled.particles;
    let places = grains.position.iter().zip(&grains.radius);
    let taken: Vec<bool> = places
        .map(|(place, radius)| fill.shape.distance(*place) <= -INSIDE * radius)
        .collect();
    grains.retain(&taken);
    // They begin at rest, with the ids that they would have had.
    grains.velocity.fill(Vec3::ZERO);
    for column in &mut grains.extra {
        if column.spec.name == "spin" {
            column.entries_mut::<Vec3>().fill(Vec3::ZERO);
        }
    }
    for (id, place) in grains.id.iter_mut().zip(0..) {
        *id = place;
    }
    state.tally.next_id = grains.len() as u64;
    state.particles = grains;
    Ok(())
}

/// The scene with nothing but its grains, in a smooth box as wide as their fill, as stiff as they will be, and easier to move.
fn boxed(scene: &Scene, fill: &Fill, bounds: &Bounds) -> Scene {
    let mut heap = scene.clone();
    if let Contact::HertzMindlin(_) = scene.dem.contact {
        let young = Dem::new(&scene.model, scene.dem).scale().young;
        heap.dem.contact = Contact::HertzMindlin(Stiffness::Young(young));
    }
    let model = &mut heap.model;
    model.gravity = Vec3::NEG_Y * G as f32;
    for (grain, material) in model.grains.iter_mut().zip(&mut model.materials) {
        grain.friction *= SHAKEN;
        grain.rolling = 0.0;
        grain.stickiness = 0.0;
        material.cohesion = 0.0;
    }
    model.emitters.clear();
    model.sinks.clear();
    model.wet.clear();
    let size = bounds.size() * Vec3::new(1.0, higher(scene, fill) as f32, 1.0);
    let middle = Pose::new(bounds.min + 0.5 * size, Quat::IDENTITY);
    model.fills = vec![Fill {
        shape: Shape::Cuboid { half: 0.5 * size }.placed(middle, 1.0),
        velocity: Vec3::ZERO,
        ..fill.clone()
    }];
    let walls = [
        (Vec3::Y, bounds.min),
        (Vec3::X, bounds.min),
        (Vec3::Z, bounds.min),
        (Vec3::NEG_X, bounds.max),
        (Vec3::NEG_Z, bounds.max),
    ];
    model.bodies = walls.map(|(normal, at)| wall(normal, at)).to_vec();
    heap
}

/// Height of the lattice over that of the fill. On a lattice a grain has the room of a ball that holds it, of which composites fill less.
fn higher(scene: &Scene, fill: &Fill) -> f64 {
    let ball = GrainShape::ball().solid().volume;
    let grain = scene.model.grains.get(fill.material);
    HIGHER * grain.map_or(1.0, |grain| ball / grain.shape.solid().volume)
}

fn wall(normal: Vec3, at: Vec3) -> Body {
    let plane = Shape::HalfSpace { normal }.placed(Pose::new(at, Quat::IDENTITY), 1.0);
    Body {
        name: "wall".into(),
        form: Form::Static(Arc::new(plane)),
        friction: 0.0,
        restitution: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::grains::of_shape;
    use crate::validate::lab::Lab;
    use crate::validate::method::method;
    use crate::validate::scene_text::{SceneText, block};
    use crate::validate::table::form;
    use crate::validate::trial::{Setting, Trial};

    /// Grains of `shape`, a centimetre large, that begin in a cube with this `edge` [m].
    fn cube(shape: &str, edge: f64) -> Lab {
        let trial = Trial {
            setting: Setting {
                angle: 38.0,
                across: edge / 0.01,
                ..form("")
            },
            method: method("dem").expect("a method"),
            grain: of_shape(shape),
            seed: 1,
            set: [].into(),
        };
        let text = SceneText::new(&trial, 0.01)
            .seed(1)
            .sand(trial.setting.angle)
            .ground(1.0)
            .fill(&block([0.0; 3], [edge; 3]));
        Lab::new(&trial, &text).expect("a scene")
    }

    #[test]
    fn grains_begin_as_dense_as_sand_that_was_levelled() {
        let lab = cube("ball", 0.08);
        let solid = lab.mass() / lab.scene.model.materials[0].grain_density;
        let filled = solid / (lab.volume() * lab.state.particles.len() as f64);
        // In a narrow box walls take some of it; with all their friction they would fill 0.52.
        assert!((0.555..0.64).contains(&filled), "{filled}");
    }

    #[test]
    fn composites_fill_what_they_should() {
        // On a lattice they are so loose that a multiple of the height that does for balls leaves them half as high.
        let edge = 0.04;
        let places = &cube("tetrahedron", edge).state.particles.position;
        let highest = places.iter().map(|place| place.y).fold(0.0, f32::max);
        assert!(f64::from(highest) > edge - 0.01, "{highest}");
    }
}
