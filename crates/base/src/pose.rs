//! Where a rigid thing is: a rotation followed by a translation.

use crate::Bounds;
use glam::{Quat, Vec3};

/// A rigid placement: rotate first, then translate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Rotation from local to world axes.
    pub rotation: Quat,
    /// World position of the local origin [m].
    pub position: Vec3,
}

impl Pose {
    /// Where nothing is moved.
    pub const IDENTITY: Self = Self {
        rotation: Quat::IDENTITY,
        position: Vec3::ZERO,
    };

    /// A pose from its two parts.
    pub fn new(position: Vec3, rotation: Quat) -> Self {
        Self { rotation, position }
    }

    /// World place of a local point.
    pub fn point(&self, local: Vec3) -> Vec3 {
        self.rotation * local + self.position
    }

    /// World direction of a local vector.
    pub fn vector(&self, local: Vec3) -> Vec3 {
        self.rotation * local
    }

    /// Local place of a world point.
    pub fn local_point(&self, world: Vec3) -> Vec3 {
        self.rotation.conjugate() * (world - self.position)
    }

    /// Local direction of a world vector.
    pub fn local_vector(&self, world: Vec3) -> Vec3 {
        self.rotation.conjugate() * world
    }

    /// World box around a local box; an infinite side makes the whole box infinite.
    pub fn bounds(&self, local: Bounds) -> Bounds {
        if local.is_empty() {
            return Bounds::EMPTY;
        }
        if !local.is_finite() {
            return Bounds::EVERYTHING;
        }
        Bounds::of(local.corners().map(|corner| self.point(corner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_and_world_are_inverse() {
        let pose = Pose::new(
            Vec3::new(1.0, -2.0, 3.0),
            Quat::from_rotation_z(0.7) * Quat::from_rotation_x(-1.1),
        );
        let point = Vec3::new(0.3, 5.0, -2.0);
        assert!((pose.local_point(pose.point(point)) - point).length() < 1e-5); // a few roundings at 5 m
        assert!((pose.vector(pose.local_vector(point)) - point).length() < 1e-5);
    }
}
