//! What is allowed but is hardly meant: told before a run, and no reason not to run.

use super::repose::REPOSE;
use super::{Contact, Method, Scene};
use crate::body::Form;

/// What falls from a height of so many cells is as fast as anything in a scene should be.
const HIGHEST_FALL: f64 = 2500.0;
/// An angle is off by more than anybody can measure [rad]: one degree.
const OFF: f64 = 0.0175;

/// Sentences about keys whose values are hardly meant, each beginning with its key.
pub fn cautions(scene: &Scene) -> Vec<String> {
    let mut all: Vec<String> = coarse(scene).collect();
    all.extend(fast(scene));
    all.extend(out_of_reach(scene));
    all
}

/// Angles that no contact of single grains gives; those of the same shape that come nearest are taken.
fn out_of_reach(scene: &Scene) -> impl Iterator<Item = String> + '_ {
    let is_calibrated =
        scene.method == Method::Dem && matches!(scene.dem.contact, Contact::HertzMindlin(_));
    let materials = scene.model.materials.iter().filter(move |_| is_calibrated);
    materials.filter_map(|material| {
        let grain = &scene.parameters["materials"][&material.name]["grain"];
        let shape = grain["shape"].as_str()?;
        let (least, most) = REPOSE.get(shape)?.range();
        let asked = material.friction_angle;
        let nearest = asked.clamp(least, most);
        let given = !grain["friction"].is_null();
        let degrees = |angle: f64| format!("{:.0}°", angle.to_degrees());
        ((asked - nearest).abs() > OFF && !given).then(|| {
            format!(
                "materials.{}.friction_angle: piles of grains of shape \"{shape}\" stand at {} to {}, and not at {}; {} is taken. \
                 Choose another grain.shape, or grain.friction and grain.rolling_friction of your own",
                material.name,
                degrees(least),
                degrees(most),
                degrees(asked),
                degrees(nearest)
            )
        })
    })
}

/// Fills of which less than a cell is there.
fn coarse(scene: &Scene) -> impl Iterator<Item = String> + '_ {
    let cell = scene.model.resolution;
    let fills = scene.model.fills.iter().enumerate();
    fills.filter_map(move |(index, fill)| {
        let size = fill.shape.bounds().size();
        let thin = size.min_element();
        (thin.is_finite() && thin < cell).then(|| {
            format!(
                "solver.resolution: {cell} m is coarser than fill.{index} is thick ({thin} m): little or nothing of it will be there. \
                 A tenth of the thickness shows how it moves"
            )
        })
    })
}

/// Bodies that are through the material before it knows.
fn fast(scene: &Scene) -> impl Iterator<Item = String> + '_ {
    let model = &scene.model;
    let cell = f64::from(model.resolution);
    let gravity = f64::from(model.gravity.length()).max(1e-3);
    let most = (2.0 * gravity * cell * HIGHEST_FALL).sqrt();
    model.bodies.iter().filter_map(move |body| {
        let (speed, key) = match &body.form {
            Form::Dynamic(dynamic) => (f64::from(dynamic.velocity.length()), "velocity"),
            Form::Keyframed(_, track) => (track.fastest(), "keyframes"),
            Form::Static(_) | Form::Sequence(_) => return None,
        };
        (speed > most).then(|| {
            format!(
                "body.{key}: \"{}\" moves at {speed:.0} m/s, over cells of {} m. It will pass through material that has no time to answer; \
                 lower the speed, or make solver.resolution coarser",
                body.name, model.resolution
            )
        })
    })
}
