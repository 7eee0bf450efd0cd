//! What joins particles and rigid bodies: two calls a step, and `()` for the uncoupled world.

use crate::clock::Step;
use crate::model::Model;
use crate::solids::Solids;
use glam::DVec3;

/// What the particles did to a body in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impulse {
    /// Index of the body.
    pub body: usize,
    /// Impulse [N s].
    pub linear: DVec3,
    /// Angular impulse about the world's origin [N m s].
    pub angular: DVec3,
}

/// The other side of the solids: whoever moves those that move by force.
pub trait Coupling: Send {
    /// Brings the solids to where the bodies will be at the end of the step.
    fn place_solids(&mut self, model: &Model, solids: &mut Solids, step: &Step);
    /// Hands the particles' impulses to the bodies.
    fn return_impulses(&mut self, impulses: &[Impulse]);
    /// What a checkpoint must hold of it.
    fn save(&self) -> Vec<u8>;
    /// Takes up what [`save`](Self::save) gave; false where it is not understood.
    fn restore(&mut self, saved: &[u8]) -> bool;
}

impl Coupling for () {
    fn place_solids(&mut self, _: &Model, _: &mut Solids, _: &Step) {}
    fn return_impulses(&mut self, _: &[Impulse]) {}
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
    fn restore(&mut self, saved: &[u8]) -> bool {
        saved.is_empty()
    }
}
