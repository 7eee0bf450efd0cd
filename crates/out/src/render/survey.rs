//! A look over the whole run, for what must not change from frame to frame: the camera and the colour scale.

use super::bodies::Placed;
use super::framing::central_bounds;
use super::paint::{Scale, ends};
use super::{RenderError, columns};
use crate::cache::RunFolder;
use barchan_base::Bounds;
use barchan_sim::state::Particles;
use glam::Vec3;

/// Frames looked at, spread evenly over the run.
const FRAMES: usize = 7;
/// Particles looked at in each.
const PARTICLES: usize = 50_000;
/// Bodies larger than the material by this factor are scenery, and need not be in the picture.
const SCENERY: f32 = 3.0;

/// What a run shows on the whole.
pub struct Survey {
    /// Places of particles over the run, without strays.
    pub points: Vec<Vec3>,
    /// Ends of the colour scale; none where no column was asked for.
    pub scale: Option<Scale>,
}

/// Looks over `frames` of a run, which must not be empty, and at the numbers of `column`.
///
/// # Errors
/// If there is no such column.
pub fn survey(
    run: &RunFolder,
    frames: &[u32],
    column: Option<&str>,
    up: Vec3,
) -> Result<Survey, RenderError> {
    let last = frames.len() - 1;
    let mut chosen: Vec<u32> = (0..FRAMES)
        .map(|i| frames[i * last / (FRAMES - 1)])
        .collect();
    chosen.dedup();
    let (mut points, mut numbers) = (Vec::new(), Vec::new());
    for frame in chosen {
        // A damaged frame is told of when its picture is due.
        let Ok(frame) = run.read_frame(frame) else {
            continue;
        };
        let particles = &frame.particles;
        let step = (particles.len() / PARTICLES).max(1);
        let some = || (0..particles.len()).step_by(step);
        points.extend(central_points(particles));
        if let Some(name) = column {
            let values = columns::values(particles, up, name).map_err(RenderError::Column)?;
            numbers.extend(some().map(|i| values.numbers[i]));
        }
    }
    let scale = column.map(|_| ends(numbers.into_iter()));
    Ok(Survey { points, scale })
}

/// Places of nearly all particles, from a sample; each with room for its radius.
pub fn central_points(particles: &Particles) -> Vec<Vec3> {
    let step = (particles.len() / PARTICLES).max(1);
    let some = || (0..particles.len()).step_by(step);
    let bounds = central_bounds(some().map(|i| particles.position[i]));
    let radius = |i: usize| {
        Some(particles.radius[i])
            .filter(|radius| radius.is_finite())
            .unwrap_or(0.0)
    };
    some()
        .filter(|i| bounds.contains(particles.position[*i]))
        .flat_map(|i| [-1.0, 1.0].map(|side| particles.position[i] + Vec3::splat(side * radius(i))))
        .collect()
}

/// Adds the corners of bodies about the material to its `points`, but not those of scenery.
pub fn with_bodies(mut points: Vec<Vec3>, bodies: &[Placed]) -> Vec<Vec3> {
    let material = Bounds::of(points.iter().copied());
    let near = |bounds: &Bounds| {
        let small = bounds.size().max_element() <= SCENERY * material.size().max_element();
        bounds.is_finite() && (material.is_empty() || small)
    };
    let about = bodies.iter().map(Placed::bounds).filter(near);
    points.extend(about.flat_map(Bounds::corners));
    points
}
