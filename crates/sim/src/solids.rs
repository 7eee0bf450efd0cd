//! The solids during one step: signed distance, normal and velocity at a point, and the first touch of a moving ball.

mod deformation;

use crate::body::{Body, Form, SequenceError};
use crate::coupling::Impulse;
use crate::model::Model;
use barchan_base::shape::{Shape, Touch};
use barchan_base::{Bounds, Pose};
use deformation::Deformation;
use glam::{DMat3, DQuat, Mat3, Vec3};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All solids, placed for one step.
#[derive(Clone, Debug, Default)]
pub struct Solids {
    solids: Vec<Solid>,
}

/// One solid, at the start and at the end of a step.
#[derive(Clone, Debug)]
pub struct Solid {
    /// Name in the scene.
    name: String,
    /// The word for how it moves.
    motion: &'static str,
    shape: Arc<Shape>,
    /// The place in its own coordinates that goes straight on while it turns: the centre of mass of a dynamic body.
    pivot: Vec3,
    start: Pose,
    end: Pose,
    /// True where it moves or changes in this step.
    moves: bool,
    /// True where it never moves: its shape stands in world coordinates.
    fixed: bool,
    /// Length of the step [s].
    dt: f32,
    /// Box around it during the whole step.
    bounds: Bounds,
    /// Present where the shape itself changes.
    deformation: Option<Deformation>,
    /// How it answers to a push.
    inertia: Inertia,
    /// Velocity [m/s] and angular velocity [rad/s] of a dynamic body when it was last moved.
    rates: (Vec3, Vec3),
    /// Those of the pivot in the mean over the step, without the rounding of places; also of a keyframed solid.
    drift: (Vec3, Vec3),
    /// What of a keyframed solid is at x from its pivot at the end of the step came round to there by this times x
    /// a second [1/s]: the chord of its turn.
    chord: Mat3,
    /// Coefficient of Coulomb friction.
    pub friction: f32,
    /// Part of the speed kept in a bounce; `None` leaves it to the material.
    pub restitution: Option<f32>,
}

/// How a solid answers to a push: what a solver needs to have it in its own solve. All zero for solids that do not
/// answer: static, keyframed, deforming.
///
/// Free of other bodies and joints, an impulse J at a point p changes the velocity that
/// [`Solid::velocity`] gives at q by J/m + (I⁻¹ ((p − c) × J)) × (q − c), to first order in the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inertia {
    /// Centre of mass at the start of the step [m]; the world's origin where there is none.
    pub center: Vec3,
    /// One over the mass [1/kg].
    pub inverse_mass: f32,
    /// Inverse of the inertia about the centre at the start of the step, along the world's axes [1/(kg m²)].
    pub inverse_inertia: Mat3,
    /// Unit vector along the last load, and the part of its free answer that the body showed: 1 for a free one, 0
    /// where other bodies or joints held it.
    pub give: (Vec3, f32),
}

impl Inertia {
    /// Of a solid that does not answer.
    pub const FIXED: Self = Self {
        center: Vec3::ZERO,
        inverse_mass: 0.0,
        inverse_inertia: Mat3::ZERO,
        give: (Vec3::ZERO, 1.0),
    };

    /// Speed [m/s] along the unit vector `direction` that an impulse of 1 N s along it gives to `point`. Where other
    /// bodies held the last load, a push the same way finds them still there.
    pub fn yielding(&self, point: Vec3, direction: Vec3) -> f32 {
        let lever = (point - self.center).cross(direction);
        let free = self.inverse_mass + lever.dot(self.inverse_inertia * lever);
        let (loaded, give) = self.give;
        let along = direction.dot(loaded).max(0.0);
        free * (1.0 - (1.0 - give) * along * along)
    }

    /// Changes of the velocity of its centre [m/s] and of its turning [rad/s] by `impulse`. Where other bodies held the last load, they
    /// hold this one.
    pub fn answer(&self, impulse: &Impulse) -> (Vec3, Vec3) {
        let (loaded, give) = self.give;
        let linear = impulse.linear.as_vec3();
        let held = loaded * ((1.0 - give) * linear.dot(loaded).max(0.0));
        (
            (linear - held) * self.inverse_mass,
            self.inverse_inertia * impulse.angular.as_vec3(),
        )
    }
}

/// A rigid placement of a dynamic body over a step.
#[derive(Clone, Copy, Debug)]
pub struct Motion {
    /// Placement at the start of the step, on top of where the scene puts its shape.
    pub start: Pose,
    /// Placement at the end of the step.
    pub end: Pose,
    /// Velocity of the centre of mass [m/s] and angular velocity [rad/s], now.
    pub rates: (Vec3, Vec3),
    /// The same in the mean over the step: what takes it from `start` to `end`, without the rounding of places.
    pub drift: (Vec3, Vec3),
    /// How it answers to a push.
    pub inertia: Inertia,
}

/// Where a body is, as frames record it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyPlace {
    /// Name in the scene.
    pub name: String,
    /// How it moves: static, keyframed, sequence or dynamic.
    pub motion: String,
    /// Moved by this much [m], after the turn, on top of where the scene puts its shape.
    pub position: [f32; 3],
    /// Turned about the origin by this quaternion: x, y, z, w.
    pub rotation: [f32; 4],
    /// Centre of mass [m]; dynamic bodies only.
    pub center: [f32; 3],
    /// Velocity of the centre of mass [m/s]; dynamic bodies only.
    pub velocity: [f32; 3],
    /// Angular velocity [rad/s]; dynamic bodies only.
    pub spin: [f32; 3],
}

/// What a solid answers at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contact {
    /// Signed distance [m], negative inside.
    pub distance: f32,
    /// Unit vector away from the solid.
    pub normal: Vec3,
    /// Velocity of the solid there [m/s].
    pub velocity: Vec3,
}

impl Solids {
    /// The solids of `model`, placed for the time from `start` to `end` [s].
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn place(&mut self, model: &Model, start: f64, end: f64) -> Result<(), SequenceError> {
        if self.solids.len() != model.bodies.len() {
            self.solids = model
                .bodies
                .iter()
                .map(|body| Solid::new(body, start))
                .collect::<Result<_, _>>()?;
        }
        for (solid, body) in self.solids.iter_mut().zip(&model.bodies) {
            solid.place(body, start, end)?;
        }
        Ok(())
    }

    /// The solids, in the order of the model's bodies.
    pub fn all(&self) -> &[Solid] {
        &self.solids
    }

    /// Moves dynamic body `body`; those who take part in a step see it from `start` to `end`.
    pub fn move_body(&mut self, body: usize, motion: &Motion) {
        let solid = &mut self.solids[body];
        (solid.start, solid.end) = (motion.start, motion.end);
        solid.inertia = motion.inertia;
        (solid.rates, solid.drift) = (motion.rates, motion.drift);
        solid.surround();
    }

    /// The fastest turn of a dynamic body [rad/s].
    pub fn fastest_spin(&self) -> f32 {
        let spins = self.solids.iter().map(|solid| solid.rates.1.length());
        spins.fold(0.0, f32::max)
    }

    /// Where the bodies are at the end of the step.
    pub fn places(&self) -> Vec<BodyPlace> {
        let place = |solid: &Solid| BodyPlace {
            name: solid.name.clone(),
            motion: solid.motion.to_owned(),
            position: solid.end.position.to_array(),
            rotation: solid.end.rotation.to_array(),
            center: solid.inertia.center.to_array(),
            velocity: solid.rates.0.to_array(),
            spin: solid.rates.1.to_array(),
        };
        self.solids.iter().map(place).collect()
    }

    /// The most any keyframed solid turns in a step of `dt` [s] from `time` [s] on [rad].
    pub fn turn_within(model: &Model, time: f64, dt: f64) -> f32 {
        let turns = model.bodies.iter().map(|body| match &body.form {
            Form::Keyframed(_, track) => track.way(time, time + dt).1.length() as f32,
            Form::Static(_) | Form::Sequence(_) | Form::Dynamic(_) => 0.0,
        });
        turns.fold(0.0, f32::max)
    }
}

impl Solids {
    /// A bound on how fast [m/s] the solids that can be within `near` move in the next `dt` [s] from `time` [s] on; what deforms
    /// counts as still. It follows from the clock and the bodies alone, not from the step before, so that a run that goes on
    /// from a checkpoint finds the same.
    pub fn fastest_within(&self, model: &Model, near: Bounds, (time, dt): (f64, f64)) -> f32 {
        let speeds = self.solids.iter().zip(&model.bodies).map(|(solid, body)| {
            let speed = match &body.form {
                Form::Static(_) | Form::Sequence(_) => 0.0,
                Form::Keyframed(_, track) => {
                    let (way, turn) = track.way(time, time + dt);
                    let rates = (way / dt, turn / dt);
                    solid.fastest((rates.0.as_vec3(), rates.1.as_vec3()))
                }
                Form::Dynamic(_) => solid.fastest(solid.rates),
            };
            let reach = solid.end.bounds(solid.shape.bounds());
            let reach = reach.grown(speed * dt as f32);
            if reach.intersection(near).is_empty() {
                0.0
            } else {
                speed
            }
        });
        speeds.filter(|speed| speed.is_finite()).fold(0.0, f32::max)
    }
}

impl Solid {
    fn new(body: &Body, time: f64) -> Result<Self, SequenceError> {
        let (shape, deformation) = match &body.form {
            Form::Static(shape) | Form::Keyframed(shape, _) => (shape.clone(), None),
            Form::Dynamic(dynamic) => (dynamic.shape.clone(), None),
            Form::Sequence(sequence) => {
                let (shape, deformation) = Deformation::new(sequence, time)?;
                (shape, Some(deformation))
            }
        };
        Ok(Self {
            name: body.name.clone(),
            motion: body.form.motion(),
            shape,
            pivot: match &body.form {
                Form::Dynamic(dynamic) => dynamic.center.as_vec3(),
                Form::Static(_) | Form::Keyframed(..) | Form::Sequence(_) => Vec3::ZERO,
            },
            start: Pose::IDENTITY,
            end: Pose::IDENTITY,
            moves: false,
            fixed: matches!(body.form, Form::Static(_)),
            dt: 0.0,
            bounds: Bounds::EVERYTHING,
            deformation,
            inertia: Inertia::FIXED,
            rates: Default::default(),
            drift: Default::default(),
            chord: Mat3::ZERO,
            friction: body.friction,
            restitution: body.restitution,
        })
    }

    fn place(&mut self, body: &Body, start: f64, end: f64) -> Result<(), SequenceError> {
        self.dt = (end - start) as f32;
        match &body.form {
            // A dynamic body is moved by its coupling; without one it stays.
            Form::Static(_) | Form::Dynamic(_) => {}
            Form::Keyframed(_, track) => {
                (self.start, self.end) = (track.pose(start), track.pose(end));
                let a_second = if end > start {
                    1.0 / (end - start)
                } else {
                    0.0
                };
                let (way, turn) = track.way(start, end);
                self.drift = ((way * a_second).as_vec3(), (turn * a_second).as_vec3());
                let back = DMat3::from_quat(DQuat::from_scaled_axis(-turn));
                self.chord = ((DMat3::IDENTITY - back) * a_second).as_mat3();
            }
            Form::Sequence(sequence) => {
                if let Some(deformation) = &mut self.deformation {
                    self.shape = deformation.follow(sequence, start, end)?;
                }
            }
        }
        self.surround();
        Ok(())
    }

    /// Finds whether it moves, and the box around its way.
    fn surround(&mut self) {
        // In a short step a keyframed solid may move by less than two places can tell.
        let glides = self.inertia.inverse_mass == 0.0 && self.drift != Default::default();
        self.moves = self.start != self.end || glides || self.deformation.is_some();
        let before = self.deformation.as_ref().map_or(&self.shape, |d| &d.before);
        let bounds = self
            .start
            .bounds(before.bounds())
            .union(self.end.bounds(self.shape.bounds()));
        // A turn between start and end bulges out of both boxes, as far as its arc is from the chord.
        let half_turn = 0.5 * self.start.rotation.angle_between(self.end.rotation);
        self.bounds = bounds.grown((1.0 - half_turn.cos()) * self.arm());
    }

    /// How far [m] any of it is from its pivot; 0 where it has no end.
    fn arm(&self) -> f32 {
        let local = self.shape.bounds();
        let corner = (local.min - self.pivot)
            .abs()
            .max((local.max - self.pivot).abs());
        if local.is_finite() {
            corner.length()
        } else {
            0.0
        }
    }

    /// A bound on how fast [m/s] any of it moves where its pivot has this velocity [m/s] and it this angular velocity [rad/s].
    fn fastest(&self, (velocity, spin): (Vec3, Vec3)) -> f32 {
        velocity.length() + spin.length() * self.arm()
    }

    /// How it answers to a push.
    pub fn inertia(&self) -> &Inertia {
        &self.inertia
    }

    /// Box around it during the whole step.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Distance, normal and velocity at `point`, at the end of the step.
    pub fn contact(&self, point: Vec3) -> Contact {
        let local = self.end.local_point(point);
        let surface = self.shape.surface(local);
        Contact {
            distance: surface.distance,
            normal: self.end.vector(surface.normal),
            velocity: self.velocity(point),
        }
    }

    /// Signed distance [m] at `point`, at the end of the step.
    #[inline]
    pub fn distance(&self, point: Vec3) -> f32 {
        if self.fixed {
            return self.shape.distance(point);
        }
        self.shape.distance(self.end.local_point(point))
    }

    /// True where the solid, at the end of the step, is surely further than `reach` [m] from `point`.
    #[inline]
    pub fn is_beyond(&self, point: Vec3, reach: f32) -> bool {
        if self.fixed {
            return self.shape.is_beyond(point, reach);
        }
        self.shape.is_beyond(self.end.local_point(point), reach)
    }

    /// Velocity [m/s] of the solid at `point`: its way over the step, divided by the step.
    pub fn velocity(&self, point: Vec3) -> Vec3 {
        if self.dt == 0.0 {
            return Vec3::ZERO;
        }
        if let Some(deformation) = &self.deformation {
            return deformation.velocity(point);
        }
        if !self.moves {
            return Vec3::ZERO;
        }
        if self.inertia.inverse_mass > 0.0 {
            let (velocity, spin) = self.drift;
            return velocity + spin.cross(point - (self.inertia.center + velocity * self.dt));
        }
        self.drift.0 + self.chord * (point - self.end.position)
    }

    /// First touch of a ball of `radius` [m] that moves from `from` to `to` during the part of the step between the
    /// fractions `begin` and 1, while the solid moves too.
    pub fn sweep(&self, from: Vec3, to: Vec3, radius: f32, begin: f32) -> Option<Touch> {
        if let Some(deformation) = &self.deformation {
            // Seen by someone who rides on the nearest triangle.
            let drift = deformation.velocity(from) * self.dt * (1.0 - begin);
            return deformation.before.sweep(from, to - drift, radius);
        }
        if self.fixed {
            return self.shape.sweep(from, to, radius);
        }
        if !self.moves {
            let touch =
                self.shape
                    .sweep(self.end.local_point(from), self.end.local_point(to), radius)?;
            return Some(Touch {
                normal: self.end.vector(touch.normal),
                ..touch
            });
        }
        let now = self.pose_at(begin);
        let touch = self
            .shape
            .sweep(now.local_point(from), self.end.local_point(to), radius)?;
        let then = self.pose_at(begin + (1.0 - begin) * touch.fraction);
        Some(Touch {
            normal: then.vector(touch.normal),
            ..touch
        })
    }

    /// Where `point` is at the end of the step if the solid takes it along from the fraction `begin` on.
    pub fn carry(&self, point: Vec3, begin: f32) -> Vec3 {
        if let Some(deformation) = &self.deformation {
            return point + deformation.velocity(point) * (self.dt * (1.0 - begin));
        }
        if !self.moves {
            return point;
        }
        self.end.point(self.pose_at(begin).local_point(point))
    }

    /// Distance and normal at `point` when the fraction `moment` of the step has passed; for deforming solids at its
    /// start or, from the middle on, at its end.
    pub fn surface_at(&self, point: Vec3, moment: f32) -> barchan_base::shape::Surface {
        if let Some(deformation) = self.deformation.as_ref().filter(|_| moment < 0.5) {
            return deformation.before.surface(point);
        }
        if self.fixed {
            return self.shape.surface(point);
        }
        let pose = self.pose_at(moment);
        let local = self.shape.surface(pose.local_point(point));
        barchan_base::shape::Surface {
            distance: local.distance,
            normal: pose.vector(local.normal),
        }
    }

    /// True where the solid moves or changes in this step.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// True where the solid never moves and never changes.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// True where its shape itself changes.
    pub fn is_deforming(&self) -> bool {
        self.deformation.is_some()
    }

    /// A bound on how fast [m/s] any of it moves in this step.
    pub fn speed(&self) -> f32 {
        match &self.deformation {
            Some(deformation) => deformation.speed(),
            None if self.moves && self.dt > 0.0 => self.fastest(self.drift),
            None => 0.0,
        }
    }

    /// The shape at the start of the step, in its own coordinates.
    pub fn shape_at_start(&self) -> &Arc<Shape> {
        self.deformation.as_ref().map_or(&self.shape, |d| &d.before)
    }

    /// Velocity [m/s] of what is at `point` at the start of the step.
    pub fn velocity_from(&self, point: Vec3) -> Vec3 {
        if self.dt == 0.0 || !self.moves {
            return Vec3::ZERO;
        }
        if self.inertia.inverse_mass > 0.0 {
            let (velocity, spin) = self.drift;
            return velocity + spin.cross(point - self.inertia.center);
        }
        if let Some(deformation) = &self.deformation {
            return deformation.velocity(point);
        }
        self.drift.0 - self.chord.transpose() * (point - self.start.position)
    }

    /// Where the solid is when the fraction `fraction` of the step has passed.
    pub fn pose_at(&self, fraction: f32) -> Pose {
        if !self.moves {
            return self.end;
        }
        let rotation = self.start.rotation.slerp(self.end.rotation, fraction);
        let (from, to) = (self.start.point(self.pivot), self.end.point(self.pivot));
        Pose::new(from.lerp(to, fraction) - rotation * self.pivot, rotation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{Interpolation, MeshSequence, Track};
    use glam::Quat;

    fn keyframed(shape: Shape, keys: &[(f64, Pose)]) -> Body {
        Body {
            name: "moving".into(),
            form: Form::Keyframed(Arc::new(shape), Track::new(keys, Interpolation::Linear)),
            friction: 0.5,
            restitution: None,
        }
    }

    fn placed(body: &Body, start: f64, end: f64) -> Solid {
        let mut solid = Solid::new(body, start).unwrap();
        solid.place(body, start, end).unwrap();
        solid
    }

    #[test]
    fn a_turning_solid_moves_at_omega_cross_r() {
        let body = keyframed(
            Shape::Sphere { radius: 1.0 },
            &[
                (0.0, Pose::IDENTITY),
                (1.0, Pose::new(Vec3::ZERO, Quat::from_rotation_y(2.0))),
            ],
        );
        let solid = placed(&body, 0.5, 0.501);
        let point = Vec3::new(0.7, 0.3, -0.2);
        let expected = (Vec3::Y * 2.0).cross(point);
        assert!(
            (solid.velocity(point) - expected).length() < 5e-3,
            "{}",
            solid.velocity(point)
        ); // first order in dt
    }

    #[test]
    fn a_moving_wall_meets_a_resting_ball() {
        let wall = Shape::Cuboid {
            half: Vec3::new(0.0005, 1.0, 1.0),
        };
        let body = keyframed(
            wall,
            &[
                (0.0, Pose::new(Vec3::new(-0.3, 0.0, 0.0), Quat::IDENTITY)),
                (0.01, Pose::new(Vec3::new(0.2, 0.0, 0.0), Quat::IDENTITY)),
            ],
        );
        let solid = placed(&body, 0.0, 0.01);
        let touch = solid
            .sweep(Vec3::ZERO, Vec3::ZERO, 0.002, 0.0)
            .expect("the wall passes through the ball");
        assert!(
            (touch.fraction - (0.3 - 0.0025) / 0.5).abs() < 1e-3,
            "{}",
            touch.fraction
        );
        assert!((touch.normal - Vec3::X).length() < 1e-3);
        assert!((solid.contact(Vec3::ZERO).velocity - Vec3::X * 50.0).length() < 0.01);
    }

    #[test]
    fn a_mesh_sequence_moves_and_answers_with_its_vertex_velocities() {
        let folder = tempfile::tempdir().unwrap();
        for (number, x) in [(1, 0.0f32), (2, 0.5)] {
            let mut text = String::new();
            for v in barchan_base::mesh::unit_cube().vertices() {
                text += &format!("v {} {} {}\n", v.x + x, v.y, v.z);
            }
            for t in barchan_base::mesh::unit_cube().triangles() {
                text += &format!("f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1);
            }
            std::fs::write(folder.path().join(format!("cube_{number}.obj")), text).unwrap();
        }
        let sequence = MeshSequence {
            files: vec![
                folder.path().join("cube_1.obj"),
                folder.path().join("cube_2.obj"),
            ],
            fps: 10.0,
            start: 0.0,
            pose: Pose::IDENTITY,
            scale: 1.0,
            cell: Some(0.1),
            resolution: 0.1,
        };
        let body = Body {
            name: "cube".into(),
            form: Form::Sequence(sequence),
            friction: 0.5,
            restitution: None,
        };
        let solid = placed(&body, 0.02, 0.06);
        // Half a metre in a tenth of a second; at 0.06 s the right face is at 0.5 + 0.3.
        let contact = solid.contact(Vec3::new(0.9, 0.1, 0.1));
        assert!(
            (contact.distance - 0.1).abs() < 0.01,
            "{}",
            contact.distance
        );
        assert!((contact.velocity - Vec3::X * 5.0).length() < 0.01);
        let ahead = Vec3::new(0.7, 0.0, 0.0);
        assert!(
            solid.sweep(ahead, ahead, 0.01, 0.0).is_some(),
            "the face runs over the ball"
        );
        assert!(
            placed(&body, 0.5, 0.6).contact(ahead).velocity.length() < 1e-6,
            "past its end it rests"
        );
    }

    #[test]
    fn a_slow_wall_far_from_the_origin_moves_as_its_track_in_the_shortest_step() {
        let key = |y: f32, turn: f32| {
            let place = Vec3::new(3.7, y, 0.0);
            Pose::new(place, Quat::from_rotation_z(turn))
        };
        let body = keyframed(
            Shape::Sphere { radius: 1.0 },
            &[(0.0, key(0.0, 0.0)), (1.0, key(0.005, 0.004))],
        );
        let solid = placed(&body, 0.5, 0.500_007);
        let point = Vec3::new(4.7, 0.0, 0.0);
        for velocity in [solid.velocity(point), solid.velocity_from(point)] {
            let expected = Vec3::new(0.0, 0.009, 0.0);
            assert!((velocity - expected).length() < 1e-4, "{velocity}");
        }
        assert!((0.009..0.014).contains(&solid.speed()), "{}", solid.speed());
    }

    #[test]
    fn the_way_of_a_point_is_its_velocity_times_the_step_however_far_it_turns() {
        let key =
            |x: f32, turn: f32| Pose::new(Vec3::new(x, 0.0, 0.0), Quat::from_rotation_y(turn));
        let body = keyframed(
            Shape::Sphere { radius: 1.0 },
            &[(0.0, key(0.0, 0.0)), (1.0, key(0.3, 1.0))],
        );
        let solid = placed(&body, 0.0, 0.5);
        let from = Vec3::new(0.7, 0.3, -0.2);
        let to = solid.carry(from, 0.0);
        for velocity in [solid.velocity(to), solid.velocity_from(from)] {
            assert!((velocity * 0.5 - (to - from)).length() < 1e-5, "{velocity}");
        }
    }

    #[test]
    fn a_body_far_from_the_origin_is_as_fast_and_as_large_as_it_is() {
        let center = Vec3::new(100.0, 0.0, 0.0);
        let shape = Shape::Sphere { radius: 0.1 }.placed(Pose::new(center, Quat::IDENTITY), 1.0);
        let dynamic = crate::body::Dynamic::of_density(Arc::new(shape), 1000.0).unwrap();
        let body = Body {
            name: "ball".into(),
            form: Form::Dynamic(Box::new(dynamic)),
            friction: 0.5,
            restitution: None,
        };
        let mut solid = Solid::new(&body, 0.0).unwrap();
        solid.dt = 0.1;
        let turn = Quat::from_rotation_y(0.2);
        let mut solids = Solids {
            solids: vec![solid],
        };
        solids.move_body(
            0,
            &Motion {
                start: Pose::IDENTITY,
                end: Pose::new(center - turn * center, turn),
                rates: (Vec3::ZERO, Vec3::Y * 2.0),
                drift: (Vec3::ZERO, Vec3::Y * 2.0),
                inertia: Inertia {
                    center,
                    inverse_mass: 1.0,
                    ..Inertia::FIXED
                },
            },
        );
        let solid = &solids.all()[0];
        assert!(solid.speed() < 0.4, "{}", solid.speed());
        assert!(solid.bounds().size().max_element() < 0.3);
        let middle = solid.pose_at(0.5).point(center);
        assert!((middle - center).length() < 1e-4, "{middle}");
    }
}
