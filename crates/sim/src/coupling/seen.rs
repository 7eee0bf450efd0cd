//! Rapier's bodies in our own vectors.

use barchan_base::convert::Convert;
use glam::{Quat, Vec3};
use rapier3d::prelude::RigidBody;

/// Where a body is and how it moves.
pub(super) trait Seen {
    fn place(&self) -> Vec3;
    fn turn(&self) -> Quat;
    fn center(&self) -> Vec3;
    fn velocity(&self) -> Vec3;
    fn spin(&self) -> Vec3;
    fn set_spin(&mut self, spin: Vec3);
}

impl Seen for RigidBody {
    fn place(&self) -> Vec3 {
        self.translation().convert()
    }

    fn turn(&self) -> Quat {
        self.rotation().convert()
    }

    fn center(&self) -> Vec3 {
        self.center_of_mass().convert()
    }

    fn velocity(&self) -> Vec3 {
        self.linvel().convert()
    }

    fn spin(&self) -> Vec3 {
        self.angvel().convert()
    }

    fn set_spin(&mut self, spin: Vec3) {
        self.set_angvel(spin.convert(), false);
    }
}
