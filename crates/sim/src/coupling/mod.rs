//! What joins particles and rigid bodies: two calls a step, and `()` for the uncoupled world.
//!
//! A step of length dt goes like this.
//!
//! 1. [`Coupling::place_solids`]: each dynamic body is moved as it would move without the particles, other bodies, joints
//!    and gravity included. The solver sees it as any other solid on its way from where it is to where that leads.
//! 2. The solver advances the particles and returns, for each body, the momentum that the particles lost to it:
//!    the sum of the impulses J [N s] **on the body**, and of (p − c) × J [N m s], where p is the place at which the
//!    particle's momentum changed and c is [`Inertia::center`](crate::solids::Inertia::center). That is the centre of
//!    mass at the *start* of the step: the impulses are handed over there, and with any other point angular momentum
//!    would not be kept. A place is the particle's own, not the nearest of the surface, for the same reason. Gravity on the
//!    body is not the solver's: it is in 1. Impulses on bodies that do not answer are welcome and go nowhere.
//! 3. [`Coupling::return_impulses`]: the body goes back to the start of the step, takes the impulses, and moves anew.
//!    Where nothing holds it, it ends with the mean velocity that [`Solid::velocity`](crate::solids::Solid::velocity)
//!    gave, changed by the impulses as [`Inertia`](crate::solids::Inertia) says. A solver that has the bodies in its
//!    own solve therefore sees them move as it solved them.
//!
//! A body much lighter than what pushes it must not be taken for a wall: use
//! [`Inertia::yielding`](crate::solids::Inertia::yielding) with the mass of all that pushes in the step, or solve for the
//! body's motion.

mod collider;
mod floating;
mod rigid;
mod seen;
mod world;

pub use collider::can_collide;
pub use rigid::RigidBodies;

use crate::body::Form;
use crate::clock::Step;
use crate::model::Model;
use crate::solids::Solids;
use glam::{DVec3, Vec3};

/// What the particles did to a body in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impulse {
    /// Index of the body.
    pub body: usize,
    /// Impulse on the body [N s].
    pub linear: DVec3,
    /// Angular impulse on it about its [`Inertia::center`](crate::solids::Inertia::center) [N m s].
    pub angular: DVec3,
}

/// Impulses on all bodies, added up. Give each chunk of a parallel loop its own and add them in the order of the
/// chunks: then no thread decides a bit.
#[derive(Clone, Debug, Default)]
pub struct Impulses {
    sums: Vec<Impulse>,
    centers: Vec<DVec3>,
}

impl Impulses {
    /// None yet, on the solids of a step.
    pub fn new(solids: &Solids) -> Self {
        let center = |solid: &crate::solids::Solid| solid.inertia().center.as_dvec3();
        let sum = |body| Impulse {
            body,
            ..Default::default()
        };
        Self {
            sums: (0..solids.all().len()).map(sum).collect(),
            centers: solids.all().iter().map(center).collect(),
        }
    }

    /// Notes that `body` took `momentum` [N s] from a particle at `point`.
    #[inline]
    pub fn push(&mut self, body: usize, point: Vec3, momentum: Vec3) {
        let (lever, momentum) = (point.as_dvec3() - self.centers[body], momentum.as_dvec3());
        self.sums[body].linear += momentum;
        self.sums[body].angular += lever.cross(momentum);
    }

    /// Notes that `body` took angular momentum [N m s] without a push.
    #[inline]
    pub fn turn(&mut self, body: usize, angular: Vec3) {
        self.sums[body].angular += angular.as_dvec3();
    }

    /// Adds those of another chunk.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.linear += more.linear;
            sum.angular += more.angular;
        }
    }

    /// The sums, one a body.
    pub fn into_sums(self) -> Vec<Impulse> {
        self.sums
    }
}

/// The other side of the solids: whoever moves those that move by force. See the [module](self) for what it asks of
/// a solver.
pub trait Coupling: Send {
    /// Brings the solids to where the bodies would be at the end of the step without the particles.
    fn place_solids(&mut self, model: &Model, solids: &mut Solids, step: &Step);
    /// Hands the particles' impulses to the bodies, moves them over the step, and brings the solids to where they are.
    fn return_impulses(&mut self, model: &Model, solids: &mut Solids, impulses: &[Impulse]);
    /// Brings the solids to where the bodies are now: before a first step, and after [`restore`](Self::restore).
    fn show(&self, model: &Model, solids: &mut Solids);
    /// What a checkpoint must hold of it.
    fn save(&self) -> Vec<u8>;
    /// Takes up what [`save`](Self::save) gave; false where it is not understood.
    fn restore(&mut self, saved: &[u8]) -> bool;
}

impl Coupling for () {
    fn place_solids(&mut self, _: &Model, _: &mut Solids, _: &Step) {}
    fn return_impulses(&mut self, _: &Model, _: &mut Solids, _: &[Impulse]) {}
    fn show(&self, _: &Model, _: &mut Solids) {}
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, saved: &[u8]) -> bool {
        saved.is_empty()
    }
}

/// The coupling that the bodies of `model` need.
pub fn coupling(model: &Model) -> Box<dyn Coupling> {
    let dynamic = |form: &Form| matches!(form, Form::Dynamic(_));
    match model.bodies.iter().any(|body| dynamic(&body.form)) {
        true => Box::new(RigidBodies::new(model)),
        false => Box::new(()),
    }
}
