//! Bodies during an interval between two frames, and points on them that grains feel like particles.

use super::guides::Guide;
use crate::cache::FrameMeta;
use barchan_base::Pose;
use barchan_base::cells::Cells;
use barchan_base::shape::Shape;
use barchan_base::shell;
use barchan_sim::body::{Form, SequenceError};
use barchan_sim::model::Model;
use barchan_sim::solids::{BodyPlace, Inertia, Motion, Solid, Solids};
use glam::{IVec3, Quat, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// How many spacings points lie below the surface: as if the material went on.
const INSET: f32 = 0.5;

/// The solids of a step, and points on those near material.
#[derive(Default)]
pub struct Walls {
    /// The solids over the step.
    pub solids: Solids,
    blocks: HashMap<(u32, IVec3), Vec<Vec3>>,
    /// The shape each body's blocks were sampled from, and the spacing.
    sampled: Vec<Option<Arc<Shape>>>,
    spacing: f32,
}

/// When a step begins and ends: times [s], and parts of the interval between two frames.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Times [s].
    pub times: (f64, f64),
    /// Parts of the interval.
    pub parts: (f32, f32),
}

impl Walls {
    /// Places the solids of `model` for a step; dynamic ones between where two frames have them.
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn place(
        &mut self,
        model: &Model,
        moment: Moment,
        (before, after): (&[BodyPlace], &[BodyPlace]),
    ) -> Result<(), SequenceError> {
        self.solids.place(model, moment.times.0, moment.times.1)?;
        for (index, body) in model.bodies.iter().enumerate() {
            if !matches!(body.form, Form::Dynamic(_)) {
                continue;
            }
            // Frames of other scenes may know fewer bodies: those stay where the scene puts them.
            let (Some(first), Some(second)) = (before.get(index), after.get(index)) else {
                continue;
            };
            let motion = Motion {
                start: pose_between(first, second, moment.parts.0),
                end: pose_between(first, second, moment.parts.1),
                rates: Default::default(),
                drift: Default::default(),
                inertia: Inertia::FIXED,
            };
            self.solids.move_body(index, &motion);
        }
        Ok(())
    }

    /// Places the solids of `model` where a frame has them.
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn place_at(&mut self, model: &Model, frame: &FrameMeta) -> Result<(), SequenceError> {
        let moment = Moment {
            times: (frame.time, frame.time),
            parts: (1.0, 1.0),
        };
        self.place(model, moment, (&frame.bodies, &frame.bodies))
    }

    /// Points about `spacing` [m] apart on the solids near the occupied cells of `cells`, which are `size` [m] wide, moving as the
    /// solids do.
    pub fn points(&mut self, cells: &Cells, size: f32, spacing: f32, points: &mut Vec<Guide>) {
        self.forget_changed(spacing);
        let mut wanted: Vec<(u32, [i32; 3])> = Vec::new();
        for (body, solid) in self.solids.all().iter().enumerate() {
            for cell in 0..cells.len() {
                let middle = (cells.coordinates(cell).as_vec3() + 0.5) * size;
                add_blocks(
                    solid,
                    body as u32,
                    (middle, 1.8661 * size),
                    spacing,
                    &mut wanted,
                );
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        let missing: Vec<(u32, IVec3)> = wanted
            .iter()
            .map(|(body, block)| (*body, IVec3::from_array(*block)))
            .filter(|key| !self.blocks.contains_key(key))
            .collect();
        let sampled = &self.sampled;
        let found: Vec<Vec<Vec3>> = missing
            .par_iter()
            .map(|(body, block)| match &sampled[*body as usize] {
                Some(shape) => shell::block(shape, (spacing, INSET * spacing), *block)
                    .into_iter()
                    .filter(|point| point.own)
                    .map(|point| point.position)
                    .collect(),
                None => Vec::new(),
            })
            .collect();
        self.blocks.extend(missing.into_iter().zip(found));
        points.clear();
        for (body, block) in wanted {
            let solid = &self.solids.all()[body as usize];
            let pose = solid.pose_at(0.0);
            for point in &self.blocks[&(body, IVec3::from_array(block))] {
                let position = pose.point(*point);
                points.push(Guide {
                    position,
                    velocity: solid.velocity_from(position),
                    radius: 0.5 * spacing,
                    change: Vec3::ZERO,
                });
            }
        }
    }

    /// Drops the points of bodies whose shape is no longer what was sampled.
    fn forget_changed(&mut self, spacing: f32) {
        let solids = self.solids.all();
        if self.spacing.to_bits() != spacing.to_bits() {
            self.blocks.clear();
            self.spacing = spacing;
        }
        self.sampled.resize(solids.len(), None);
        for (body, (known, solid)) in self.sampled.iter_mut().zip(solids).enumerate() {
            let shape = solid.shape_at_start();
            if !known
                .as_ref()
                .is_some_and(|known| Arc::ptr_eq(known, shape))
            {
                self.blocks.retain(|key, _| key.0 != body as u32);
                *known = Some(shape.clone());
            }
        }
    }
}

/// Adds the blocks of a body within `reach` [m] of `middle`.
fn add_blocks(
    solid: &Solid,
    body: u32,
    (middle, reach): (Vec3, f32),
    spacing: f32,
    wanted: &mut Vec<(u32, [i32; 3])>,
) {
    if solid.bounds().distance_squared(middle) > reach * reach {
        return;
    }
    let local = solid.pose_at(0.0).local_point(middle);
    let shape = solid.shape_at_start();
    if shape.is_beyond(local, reach) || shape.distance(local) < -reach {
        return;
    }
    let first = shell::block_at(local - reach, spacing);
    let last = shell::block_at(local + reach, spacing);
    for z in first.z..=last.z {
        for y in first.y..=last.y {
            for x in first.x..=last.x {
                let key = (body, [x, y, z]);
                if wanted.last() != Some(&key) {
                    wanted.push(key);
                }
            }
        }
    }
}

/// A dynamic body between two frames: its centre of mass goes straight, and it turns about it.
fn pose_between(first: &BodyPlace, second: &BodyPlace, part: f32) -> Pose {
    let pose = |place: &BodyPlace| {
        let rotation = Quat::from_array(place.rotation);
        let rotation = if rotation.is_finite() && rotation.length_squared() > 0.0 {
            rotation.normalize()
        } else {
            Quat::IDENTITY
        };
        Pose::new(Vec3::from(place.position), rotation)
    };
    let (a, b) = (pose(first), pose(second));
    // Where the centre of mass was at the start of the run: it stays there in the body's own coordinates.
    let own = a.local_point(Vec3::from(first.center));
    let center = a.point(own).lerp(b.point(own), part);
    let rotation = a.rotation.slerp(b.rotation, part);
    Pose::new(center - rotation * own, rotation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinning_body_turns_about_its_centre() {
        let place = |angle: f32, center: Vec3| {
            let rotation = Quat::from_rotation_z(angle);
            // Its centre was at (1, 0, 0) at the start of the run.
            let position = center - rotation * Vec3::X;
            BodyPlace {
                name: "disc".into(),
                motion: "dynamic".into(),
                position: position.to_array(),
                rotation: rotation.to_array(),
                center: center.to_array(),
                velocity: [0.0; 3],
                spin: [0.0; 3],
            }
        };
        let (a, b) = (place(0.5, Vec3::X * 2.0), place(1.5, Vec3::X * 3.0));
        let half = pose_between(&a, &b, 0.5);
        assert!((half.point(Vec3::X) - Vec3::X * 2.5).length() < 1e-5);
        assert!(half.rotation.angle_between(Quat::from_rotation_z(1.0)) < 1e-3);
    }
}
