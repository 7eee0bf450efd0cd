//! Rigid bodies moved by rapier.

use super::seen::Seen;
use super::world::{Workspace, World, dynamic_bodies};
use super::{Coupling, Impulse};
use crate::body::Dynamic;
use crate::clock::Step;
use crate::model::Model;
use crate::solids::{Inertia, Motion, Solids};
use barchan_base::Pose;
use glam::{DMat3, DVec3, Vec3};
use rapier3d::prelude::RigidBody;
use serde::{Deserialize, Serialize};

/// Dynamic bodies, their joints and contacts.
pub struct RigidBodies {
    bodies: Bodies,
    /// Where a step without the particles leads, while one is under way.
    alone: Option<(World, Step)>,
    work: Workspace,
}

/// What a checkpoint holds.
#[derive(Serialize, Deserialize)]
struct Bodies {
    world: World,
    /// For each body, the direction of its last load and the part of its free answer that it showed.
    gives: Vec<(Vec3, f32)>,
}

/// Rounding of a place or a turn, in units in the last place of its size.
const ROUNDING: f32 = 4.0 * f32::EPSILON;

impl RigidBodies {
    /// The bodies of `model` at time zero.
    pub fn new(model: &Model) -> Self {
        Self {
            bodies: Bodies {
                world: World::new(model),
                gives: vec![Inertia::FIXED.give; model.bodies.len()],
            },
            alone: None,
            work: Workspace::default(),
        }
    }

    /// Notes how each loaded body answered, for the next step.
    fn note_answers(&mut self, model: &Model, alone: &World, impulses: &[Impulse]) {
        self.bodies.gives.fill(Inertia::FIXED.give);
        for impulse in impulses {
            let Some((_, dynamic)) = dynamic_bodies(model).find(|(body, _)| *body == impulse.body)
            else {
                continue;
            };
            let (with, without) = (
                self.bodies.world.body(impulse.body),
                alone.body(impulse.body),
            );
            let moved = (with.velocity() - without.velocity()).as_dvec3();
            let turned = (with.spin() - without.spin()).as_dvec3();
            let free = impulse.linear.length_squared() / dynamic.mass
                + impulse
                    .angular
                    .dot(inverse_inertia(dynamic, with) * impulse.angular);
            let shown = impulse.linear.dot(moved) + impulse.angular.dot(turned);
            let give = (shown / free).clamp(0.0, 1.0);
            if let Some(direction) = impulse.linear.try_normalize()
                && give.is_finite()
            {
                self.bodies.gives[impulse.body] = (direction.as_vec3(), give as f32);
            }
        }
    }

    fn motion(&self, (index, dynamic): (usize, &Dynamic), to: &World, dt: f32) -> Motion {
        let (now, then) = (self.bodies.world.body(index), to.body(index));
        Motion {
            start: placement(dynamic, now),
            end: placement(dynamic, then),
            rates: (now.velocity(), now.spin()),
            drift: drift(now, then, dt),
            inertia: Inertia {
                center: now.center(),
                inverse_mass: (1.0 / dynamic.mass) as f32,
                inverse_inertia: inverse_inertia(dynamic, now).as_mat3(),
                give: self.bodies.gives[index],
            },
        }
    }
}

impl Coupling for RigidBodies {
    fn place_solids(&mut self, model: &Model, solids: &mut Solids, step: &Step) {
        self.bodies.world.release(model, step.start);
        let mut alone = self.bodies.world.clone();
        alone.advance(model, (step.start, step.end), &mut self.work);
        for body in dynamic_bodies(model) {
            solids.move_body(body.0, &self.motion(body, &alone, step.dt as f32));
        }
        self.alone = Some((alone, *step));
    }

    fn return_impulses(&mut self, model: &Model, solids: &mut Solids, impulses: &[Impulse]) {
        let Some((alone, step)) = self.alone.take() else {
            return;
        };
        let loads: Vec<Impulse> = impulses
            .iter()
            .filter(|impulse| dynamic_bodies(model).any(|(body, _)| body == impulse.body))
            .filter(|impulse| impulse.linear.is_finite() && impulse.angular.is_finite())
            .filter(|impulse| impulse.linear != DVec3::ZERO || impulse.angular != DVec3::ZERO)
            .copied()
            .collect();
        if loads.is_empty() {
            self.bodies.world = alone;
            self.bodies.gives.fill(Inertia::FIXED.give);
        } else {
            for load in &loads {
                self.bodies.world.push(load.body, load.linear, load.angular);
            }
            self.bodies
                .world
                .advance(model, (step.start, step.end), &mut self.work);
            self.note_answers(model, &alone, &loads);
        }
        self.show(model, solids);
    }

    fn show(&self, model: &Model, solids: &mut Solids) {
        for body in dynamic_bodies(model) {
            solids.move_body(body.0, &self.motion(body, &self.bodies.world, 0.0));
        }
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(&self.bodies).expect("rapier's world can be written to memory")
    }

    fn restore(&mut self, saved: &[u8]) -> bool {
        match postcard::from_bytes::<Bodies>(saved) {
            Ok(bodies)
                if bodies.world.is_like(&self.bodies.world)
                    && bodies.gives.len() == self.bodies.gives.len() =>
            {
                self.bodies = bodies;
                true
            }
            _ => false,
        }
    }
}

/// Where a body is, on top of where the scene puts its shape.
fn placement(dynamic: &Dynamic, body: &RigidBody) -> Pose {
    let rotation = body.turn();
    let moved = body.place().as_dvec3() - rotation.as_dquat() * dynamic.center;
    Pose::new(moved.as_vec3(), rotation)
}

fn inverse_inertia(dynamic: &Dynamic, body: &RigidBody) -> DMat3 {
    let turn = DMat3::from_quat(body.turn().as_dquat());
    turn * dynamic.inertia.inverse() * turn.transpose()
}

/// Mean velocity and angular velocity between two moments. Over a short step the difference of two places is mostly
/// rounding: where it agrees with the mean of the rates within that, the rates are taken.
fn drift(now: &RigidBody, then: &RigidBody, dt: f32) -> (Vec3, Vec3) {
    if dt == 0.0 {
        return (now.velocity(), now.spin());
    }
    let mean = |a: Vec3, b: Vec3| a + (b - a) * World::MEAN;
    let choose = |measured: Vec3, rates: Vec3, size: f32| {
        let rounding = ROUNDING * size / dt;
        if measured.distance(rates) > rounding {
            measured
        } else {
            rates
        }
    };
    let way = (then.place() - now.place()) / dt;
    let turn = (then.turn() * now.turn().conjugate()).to_scaled_axis() / dt;
    let size = now.place().abs().max(then.place().abs()).max_element();
    (
        choose(way, mean(now.velocity(), then.velocity()), size),
        choose(turn, mean(now.spin(), then.spin()), 1.0),
    )
}
