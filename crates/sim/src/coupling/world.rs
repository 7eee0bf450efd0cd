//! Rapier's world: what it holds, how it is made from the model, and how it moves.

use super::collider::{Moves, colliders, to_rapier, x_to};
use super::floating::{self, Moving};
use super::seen::Seen;
use crate::body::{Body, Dynamic, Form, Joint, JointKind, Track};
use crate::model::Model;
use barchan_base::convert::Convert;
use glam::{DMat3, DVec3, Quat, Vec3};
use rapier3d::prelude::*;
use serde::{Deserialize, Serialize};

/// The longest step of rapier's [s]; longer ones are taken in parts.
const LONGEST_STEP: f64 = 1.0 / 200.0;
/// Parts of a step that rapier solves one after the other.
const SOLVER_STEPS: usize = 8;

/// The rigid bodies in motion, to the bit.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct World {
    gravity: Vec3,
    parameters: IntegrationParameters,
    islands: IslandManager,
    broad_phase: BroadPhaseBvh,
    narrow_phase: NarrowPhase,
    bodies: RigidBodySet,
    colliders: ColliderSet,
    joints: ImpulseJointSet,
    multibody_joints: MultibodyJointSet,
    soft_bodies: SoftBodySet,
    /// Rapier's body of each of the model's; deforming ones have none.
    handles: Vec<Option<RigidBodyHandle>>,
    /// The joints in the order of the model's bodies and their joints; `None` once released.
    ties: Vec<Option<ImpulseJointHandle>>,
}

/// Rapier's working memory: nothing in it outlives a step.
#[derive(Default)]
pub(super) struct Workspace {
    pipeline: PhysicsPipeline,
    ccd: CCDSolver,
}

impl World {
    /// Under a constant force, how far the mean velocity over one of rapier's steps is from the first to the last.
    pub const MEAN: f32 = (SOLVER_STEPS as f32 + 1.0) / (2.0 * SOLVER_STEPS as f32);

    /// The bodies of `model` at time zero.
    pub fn new(model: &Model) -> Self {
        let mut world = Self {
            gravity: model.gravity,
            parameters: parameters(model),
            islands: IslandManager::new(),
            broad_phase: BroadPhaseBvh::default(),
            narrow_phase: NarrowPhase::new(),
            bodies: RigidBodySet::new(),
            colliders: ColliderSet::new(),
            joints: ImpulseJointSet::new(),
            multibody_joints: MultibodyJointSet::new(),
            soft_bodies: SoftBodySet::new(),
            handles: Vec::new(),
            ties: Vec::new(),
        };
        for body in &model.bodies {
            let handle = world.add(body);
            world.handles.push(handle);
        }
        world.tie(model);
        world
    }

    fn add(&mut self, body: &Body) -> Option<RigidBodyHandle> {
        let (shape, builder, moves) = match &body.form {
            Form::Sequence(_) => return None,
            Form::Static(shape) => (shape, RigidBodyBuilder::fixed(), Moves::Otherwise),
            Form::Keyframed(shape, track) => {
                let builder = RigidBodyBuilder::kinematic_position_based();
                let pose = to_rapier(track.pose(0.0));
                (shape, builder.pose(pose), Moves::Otherwise)
            }
            Form::Dynamic(dynamic) => (&dynamic.shape, free_body(dynamic), Moves::Dynamic),
        };
        // Rapier's origin of a dynamic body is its centre of mass: there rounding does the least harm.
        let origin = match &body.form {
            Form::Dynamic(dynamic) => dynamic.center.as_vec3(),
            _ => Vec3::ZERO,
        };
        let handle = self.bodies.insert(builder);
        for (pose, collider) in colliders(shape, moves) {
            let collider = ColliderBuilder::new(collider)
                .position(Pose::from_parts(
                    pose.translation - origin.convert(),
                    pose.rotation,
                ))
                .density(0.0)
                .friction(body.friction)
                .restitution(body.restitution.unwrap_or(0.0));
            self.colliders
                .insert_with_parent(collider, handle, &mut self.bodies);
        }
        // The mass is the body's own, not that of its colliders: these are only nearly its shape.
        self.bodies[handle].recompute_mass_properties_from_colliders(&self.colliders);
        Some(handle)
    }

    fn tie(&mut self, model: &Model) {
        let anchor = self.bodies.insert(RigidBodyBuilder::fixed());
        for (body, joint) in joints(model) {
            let other = match joint.to {
                Some(to) => self.handles[to],
                None => Some(anchor),
            };
            let handle = self.handles[body].zip(other).map(|(one, other)| {
                self.joints
                    .insert(one, other, self.joint(joint, (one, other)), true)
            });
            self.ties.push(handle);
        }
    }

    fn joint(
        &self,
        joint: &Joint,
        (one, other): (RigidBodyHandle, RigidBodyHandle),
    ) -> GenericJoint {
        let (free, turn) = match joint.kind {
            JointKind::Rope { .. } => (JointAxesMask::empty(), Quat::IDENTITY),
            JointKind::Hinge { axis } => (JointAxesMask::LOCKED_REVOLUTE_AXES, x_to(axis)),
            JointKind::Ball => (JointAxesMask::LOCKED_SPHERICAL_AXES, Quat::IDENTITY),
            JointKind::Fixed => (JointAxesMask::LOCKED_FIXED_AXES, Quat::IDENTITY),
        };
        let frame = |handle: RigidBodyHandle, at: Vec3| {
            self.bodies[handle].position().inverse()
                * Pose::from_parts(at.convert(), turn.convert())
        };
        let builder = GenericJointBuilder::new(free)
            .local_frame1(frame(one, joint.at))
            .local_frame2(frame(other, joint.to_at));
        match joint.kind {
            JointKind::Rope { length } => builder
                .coupled_axes(JointAxesMask::LIN_AXES)
                .limits(JointAxis::LinX, [0.0, length])
                .build(),
            // What is held together at a place would only push itself apart there.
            _ => builder.contacts_enabled(false).build(),
        }
    }

    /// Unties what is to be released by `time` [s].
    pub fn release(&mut self, model: &Model, time: f64) {
        for ((_, joint), tie) in joints(model).zip(&mut self.ties) {
            if joint.release <= time
                && let Some(handle) = tie.take()
            {
                self.joints.remove(handle, true);
            }
        }
    }

    /// True where it can be the same world at another time.
    pub fn is_like(&self, other: &Self) -> bool {
        let handles = self.handles.iter().flatten();
        self.handles == other.handles
            && self.ties.len() == other.ties.len()
            && self.bodies.len() == other.bodies.len()
            && self.colliders.len() == other.colliders.len()
            && handles
                .into_iter()
                .all(|handle| self.bodies.contains(*handle))
    }

    /// Rapier's body of the dynamic body `body`.
    pub fn body(&self, body: usize) -> &RigidBody {
        let handle = self.handles[body].expect("a dynamic body has one of rapier's");
        &self.bodies[handle]
    }

    /// Gives the dynamic body `body` an impulse [N s] and an angular impulse about its centre [N m s].
    pub fn push(&mut self, body: usize, linear: DVec3, angular: DVec3) {
        let handle = self.handles[body].expect("a dynamic body has one of rapier's");
        let body = &mut self.bodies[handle];
        body.apply_impulse(linear.as_vec3().convert(), true);
        body.apply_torque_impulse(angular.as_vec3().convert(), true);
    }

    /// Moves everything from `start` to `end` [s].
    pub fn advance(&mut self, model: &Model, (start, end): (f64, f64), work: &mut Workspace) {
        let parts = ((end - start) / LONGEST_STEP).ceil().max(1.0);
        let dt = (end - start) / parts;
        self.parameters.dt = dt as f32;
        for part in 0..parts as u32 {
            let time = start + f64::from(part + 1) * dt;
            for (handle, track) in self.tracks(model) {
                self.bodies[handle].set_next_kinematic_position(to_rapier(track.pose(time)));
            }
            let before = self.moving(model);
            let turning = self.begin_turns(model, dt);
            self.step(work);
            self.end_turns(&turning);
            self.keep_turning(model, &before);
        }
    }

    /// Mass and motion of the dynamic bodies.
    fn moving(&self, model: &Model) -> Vec<Moving> {
        dynamic_bodies(model)
            .map(|(index, dynamic)| Moving::of(dynamic, self.body(index)))
            .collect()
    }

    /// Who touches or is tied to whom, by number among the dynamic bodies; `None` is all that is held.
    fn links(&self, bodies: &[usize]) -> Vec<(Option<usize>, Option<usize>)> {
        let number = |handle: Option<RigidBodyHandle>| {
            let handle = handle?;
            bodies
                .iter()
                .position(|body| self.handles[*body] == Some(handle))
        };
        let parent = |collider| number(self.colliders.get(collider).and_then(Collider::parent));
        let touching = self.narrow_phase.contact_pairs();
        let touching = touching
            .filter(|pair| pair.has_any_active_contact())
            .map(|pair| (parent(pair.collider1), parent(pair.collider2)));
        let tied = self.joints.iter();
        let tied =
            tied.map(|(_, joint)| (number(Some(joint.body1())), number(Some(joint.body2()))));
        touching.chain(tied).collect()
    }

    /// Gives what floats freely the angular momentum back that it had `before`.
    fn keep_turning(&mut self, model: &Model, before: &[Moving]) {
        let bodies: Vec<usize> = dynamic_bodies(model).map(|(index, _)| index).collect();
        let groups = floating::groups(bodies.len(), self.links(&bodies).into_iter());
        if groups.is_empty() {
            return;
        }
        let after = self.moving(model);
        for group in groups {
            let pick = |all: &[Moving]| -> Vec<Moving> { group.iter().map(|i| all[*i]).collect() };
            let turn = floating::restoring_turn(&pick(before), &pick(&after));
            for (member, (velocity, spin)) in group.iter().zip(turn.into_iter().flatten()) {
                let Some(handle) = self.handles[bodies[*member]] else {
                    continue;
                };
                let body = &mut self.bodies[handle];
                body.set_linvel(body.linvel() + velocity.as_vec3().convert(), false);
                body.set_spin(body.spin() + spin.as_vec3());
            }
        }
    }

    fn step(&mut self, work: &mut Workspace) {
        work.pipeline.step(
            self.gravity.convert(),
            &self.parameters,
            &mut self.islands,
            &mut self.broad_phase,
            &mut self.narrow_phase,
            &mut self.bodies,
            &mut self.colliders,
            &mut self.joints,
            &mut self.multibody_joints,
            &mut self.soft_bodies,
            &mut work.ccd,
            &(),
            &(),
        );
    }

    fn tracks<'a>(&self, model: &'a Model) -> Vec<(RigidBodyHandle, &'a Track)> {
        let keyframed = |(body, handle): (&'a Body, &Option<RigidBodyHandle>)| match &body.form {
            Form::Keyframed(_, track) => Some(((*handle)?, track)),
            _ => None,
        };
        model
            .bodies
            .iter()
            .zip(&self.handles)
            .filter_map(keyframed)
            .collect()
    }

    /// Rapier turns a body at one rate through a step. Gives it the rate of the middle of the step, where the same
    /// angular momentum meets another inertia.
    fn begin_turns(&mut self, model: &Model, dt: f64) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (index, dynamic) in dynamic_bodies(model) {
            let Some(handle) = self.handles[index] else {
                continue;
            };
            let body = &mut self.bodies[handle];
            let rotation = body.turn().as_dquat();
            let spin = body.spin().as_dvec3();
            let momentum = inertia_at(dynamic, rotation) * spin;
            let half = glam::DQuat::from_scaled_axis(spin * (0.5 * dt)) * rotation;
            let inertia = inertia_at(dynamic, half);
            let middle = (inertia.inverse() * momentum).as_vec3();
            body.set_spin(middle);
            turns.push(Turn {
                handle,
                at_rest: dynamic.inertia,
                momentum,
                inertia,
                spin: middle.as_dvec3(),
            });
        }
        turns
    }

    /// Gives each body the rate that its angular momentum, and what contacts and joints added to it, make at the end.
    fn end_turns(&mut self, turns: &[Turn]) {
        for turn in turns {
            let body = &mut self.bodies[turn.handle];
            let added = turn.inertia * (body.spin().as_dvec3() - turn.spin);
            let rotation = DMat3::from_quat(body.turn().as_dquat());
            let inertia = rotation * turn.at_rest * rotation.transpose();
            let spin = inertia.inverse() * (turn.momentum + added);
            if spin.is_finite() {
                body.set_spin(spin.as_vec3());
            }
        }
    }
}

/// A body's turn through one of rapier's steps.
struct Turn {
    handle: RigidBodyHandle,
    at_rest: DMat3,
    momentum: DVec3,
    /// In the middle of the step.
    inertia: DMat3,
    spin: DVec3,
}

/// Inertia of a body turned by `rotation`, along the world's axes.
pub(super) fn inertia_at(dynamic: &Dynamic, rotation: glam::DQuat) -> DMat3 {
    let turn = DMat3::from_quat(rotation);
    turn * dynamic.inertia * turn.transpose()
}

/// The dynamic bodies of a model with their indices.
pub(super) fn dynamic_bodies(model: &Model) -> impl Iterator<Item = (usize, &Dynamic)> {
    model
        .bodies
        .iter()
        .enumerate()
        .filter_map(|(index, body)| match &body.form {
            Form::Dynamic(dynamic) => Some((index, &**dynamic)),
            _ => None,
        })
}

/// All joints, with the body that owns each.
fn joints(model: &Model) -> impl Iterator<Item = (usize, &Joint)> {
    dynamic_bodies(model)
        .flat_map(|(body, dynamic)| dynamic.joints.iter().map(move |joint| (body, joint)))
}

fn free_body(dynamic: &Dynamic) -> RigidBodyBuilder {
    let inertia = dynamic.inertia.as_mat3();
    RigidBodyBuilder::dynamic()
        .translation(dynamic.center.as_vec3().convert())
        .linvel(dynamic.velocity.convert())
        .angvel(dynamic.spin.convert())
        .additional_mass_properties(MassProperties::with_inertia_matrix(
            Vector::ZERO,
            dynamic.mass as f32,
            Matrix::from_cols_array(&inertia.to_cols_array()),
        ))
        // Particles may lean on it at any time; nobody would wake it.
        .can_sleep(false)
        .allow_fast_rotation(true)
        // See `begin_turns`.
        .gyroscopic_forces_enabled(false)
        .ccd_enabled(true)
}

fn parameters(model: &Model) -> IntegrationParameters {
    // Rapier's tolerances are for bodies about a metre long.
    let size = dynamic_bodies(model)
        .map(|(_, dynamic)| dynamic.shape.bounds().size().max_element())
        .fold(1.0, f32::min)
        .max(1e-3);
    IntegrationParameters {
        length_unit: size,
        normalized_max_linear_velocity: f32::MAX,
        num_solver_iterations: SOLVER_STEPS,
        // One friction a contact plane. Point by point, rapier's friction on a sliding face does not point against the
        // sliding: a box would feel nine tenths of it.
        friction_model: FrictionModel::Simplified,
        warmstart_joints: true,
        ..Default::default()
    }
}
