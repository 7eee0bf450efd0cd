//! How grains move: velocity Verlet for the centres, and for turning a splitting into turns about one principal axis
//! after another (Dullweber, Leimkuhler & McLachlan 1997), which keeps angular momentum exactly and energy for ever.

use super::store::{Load, Motion};
use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DQuat, DVec3};

/// What grains of a material have in common.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Places and radii of the balls of a grain of radius 1.
    pub balls: Vec<(DVec3, f64)>,
    /// One over the moments of inertia about the principal axes, over that about the first.
    pub inverse_inertia: DVec3,
    /// True where all principal axes are alike.
    pub turns_alike: bool,
}

impl Kind {
    /// True for a single ball, whose turning in place moves nobody.
    #[inline]
    pub fn is_ball(&self) -> bool {
        self.balls.len() == 1
    }

    /// Angular velocity [rad/s] of a grain turned like this, from what its [`Motion`] keeps of its turning.
    #[inline]
    pub fn spin(&self, turn: DQuat, turning: DVec3) -> DVec3 {
        if self.turns_alike {
            return turning;
        }
        turn * (self.inverse_inertia * (turn.conjugate() * turning))
    }
}

/// What does not change about a grain. Small: every step reads it twice, and a million of them come from memory.
#[derive(Clone, Copy, Debug)]
pub struct Make {
    /// One over its mass [1/kg].
    pub inverse_mass: f64,
    /// One over its moment of inertia about the first principal axis [1/(kg m²)].
    pub inverse_inertia: f64,
    /// Radius of the ball that holds it [m].
    pub radius: f64,
    /// How wet it is, from 0 to 1.
    pub wetness: f32,
    /// Index of its material, which says its [`Kind`].
    pub material: u16,
}

/// What contacts see of a grain's motion, in rows of four numbers that fill a line of the processor's memory: neighbours are
/// read in any order.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Seen {
    /// Velocity [m/s], and how wet it is.
    pub velocity: [f64; 4],
    /// Angular velocity [rad/s], and one over the mass [1/kg].
    pub spin: [f64; 4],
}

impl Seen {
    /// Of a grain that moves like this.
    #[inline]
    pub fn of(motion: &Motion, (make, kind): Grain<'_>) -> Self {
        Self {
            velocity: row(motion.velocity, f64::from(make.wetness)),
            spin: row(motion.spin(kind), make.inverse_mass),
        }
    }

    /// Its velocity [m/s].
    #[inline]
    pub fn velocity(&self) -> DVec3 {
        DVec3::from_slice(&self.velocity)
    }

    /// Angular velocity [rad/s].
    #[inline]
    pub fn spin(&self) -> DVec3 {
        DVec3::from_slice(&self.spin)
    }
}

/// A vector and one more number.
#[inline(always)]
fn row(vector: DVec3, last: f64) -> [f64; 4] {
    [vector.x, vector.y, vector.z, last]
}

/// A ball of a grain, where it is.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Ball {
    /// Centre [m].
    pub center: DVec3,
    /// Radius [m].
    pub radius: f64,
}

/// A grain that is moved: what it is made of, and what all of its material are.
pub type Grain<'a> = (&'a Make, &'a Kind);

impl Motion {
    /// Half a step of force and a step of free motion; returns what contacts see of the grain, its velocity and spin
    /// half a step of the same force further on. `acceleration` [m/s²] is what does not come from contacts.
    #[inline]
    pub fn advance(&mut self, grain: Grain<'_>, load: &Load, acceleration: DVec3, dt: f64) -> Seen {
        let (make, kind) = grain;
        let gained = (load.force * make.inverse_mass + acceleration) * (0.5 * dt);
        let turned = load.torque * (make.inverse_inertia * (0.5 * dt));
        self.velocity += gained;
        self.turning += turned;
        self.drift(kind, dt);
        Seen {
            velocity: row(self.velocity + gained, f64::from(make.wetness)),
            spin: row(
                kind.spin(self.turn(), self.turning + turned),
                make.inverse_mass,
            ),
        }
    }

    /// Half a step of force; `acceleration` [m/s²] is what does not come from contacts.
    #[inline]
    pub fn kick(&mut self, make: &Make, load: &Load, acceleration: DVec3, half: f64) {
        self.velocity += (load.force * make.inverse_mass + acceleration) * half;
        self.turning += load.torque * (make.inverse_inertia * half);
    }

    /// A step without force.
    #[inline]
    pub fn drift(&mut self, kind: &Kind, dt: f64) {
        self.position += self.velocity * dt;
        if kind.turns_alike {
            let turn = turn_by(self.turning * dt) * self.turn();
            self.orientation = unit(turn).to_array();
        } else {
            self.turn_freely(kind.inverse_inertia, dt);
        }
    }

    /// Turns about z, y, x, y, z in a row; each leaves the angular momentum in the world where it is.
    fn turn_freely(&mut self, inverse_inertia: DVec3, dt: f64) {
        let mut turn = self.turn();
        let mut momentum = turn.conjugate() * self.turning;
        let parts = [
            (DVec3::Z, 0.5),
            (DVec3::Y, 0.5),
            (DVec3::X, 1.0),
            (DVec3::Y, 0.5),
            (DVec3::Z, 0.5),
        ];
        for (axis, part) in parts {
            let angle = momentum.dot(axis) * inverse_inertia.dot(axis) * part * dt;
            let small = turn_by(axis * angle);
            momentum = small.conjugate() * momentum;
            turn *= small;
        }
        self.orientation = turn.normalize().to_array();
    }

    /// Angular velocity [rad/s].
    #[inline]
    pub fn spin(&self, kind: &Kind) -> DVec3 {
        kind.spin(self.turn(), self.turning)
    }

    /// Kinetic energy [J].
    #[inline]
    pub fn energy(&self, (make, kind): Grain<'_>) -> f64 {
        let turning = self.spin(kind).dot(self.turning) / make.inverse_inertia;
        0.5 * (self.velocity.length_squared() / make.inverse_mass + turning)
    }

    /// The square of a bound on the speed of its places [m²/s²], exact for a ball.
    #[inline]
    pub fn reach_square(&self, (make, kind): Grain<'_>) -> f64 {
        if kind.is_ball() {
            return self.velocity.length_squared();
        }
        let spin = self.spin(kind).length_squared();
        2.0 * (self.velocity.length_squared() + spin * make.radius.powi(2))
    }

    /// Places the grain's balls.
    #[inline]
    pub fn place(&self, (make, kind): Grain<'_>, balls: &mut [Ball]) {
        if let [ball] = balls {
            ball.center = self.position;
            return;
        }
        let axes = DMat3::from_quat(self.turn()) * make.radius;
        for (ball, (at, _)) in balls.iter_mut().zip(&kind.balls) {
            ball.center = self.position + axes * *at;
        }
    }
}

/// A turn whose length is off by rounding only, set right.
#[inline]
fn unit(turn: DQuat) -> DQuat {
    turn * (1.5 - 0.5 * turn.length_squared())
}

/// The turn by a rotation vector [rad].
#[inline]
fn turn_by(rotation: DVec3) -> DQuat {
    let half = rotation * 0.5;
    let square = half.length_squared();
    // Below this the series are exact to the last bit or so.
    let (sinc, cos) = if square < 1e-3 {
        // Factors, not divisors: this is done for every grain in every step.
        const SIN: [f64; 3] = [1.0 / 6.0, 1.0 / 20.0, 1.0 / 42.0];
        const COS: [f64; 3] = [1.0 / 2.0, 1.0 / 12.0, 1.0 / 30.0];
        let series =
            |[a, b, c]: [f64; 3]| 1.0 - square * a * (1.0 - square * b * (1.0 - square * c));
        (series(SIN), series(COS))
    } else {
        let angle = square.sqrt();
        (angle.sin() / angle, angle.cos())
    };
    let axis = half * sinc;
    DQuat::from_xyzw(axis.x, axis.y, axis.z, cos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Angular momentum from angular velocity, of a grain whose first moment of inertia is 1.
    fn angular_momentum(motion: &Motion, kind: &Kind) -> DVec3 {
        let turn = motion.turn();
        turn * ((turn.conjugate() * motion.spin(kind)) / kind.inverse_inertia)
    }

    #[test]
    fn a_free_crooked_grain_keeps_momentum_and_energy_for_a_million_steps() {
        let make = Make {
            inverse_mass: 1.0,
            inverse_inertia: 1.0,
            radius: 1.0,
            material: 0,
            wetness: 0.0,
        };
        let kind = Kind {
            balls: Vec::new(),
            inverse_inertia: DVec3::new(1.0, 0.5, 0.21),
            turns_alike: false,
        };
        let grain = (&make, &kind);
        // Near the middle axis, where it tumbles.
        let mut motion = Motion {
            orientation: DQuat::from_euler(glam::EulerRot::XYZ, 0.3, 1.0, -0.4).to_array(),
            turning: DVec3::new(0.01, 3.0, 0.02),
            ..Motion::default()
        };
        let (momentum, energy) = (angular_momentum(&motion, &kind), motion.energy(grain));
        let (mut worst_momentum, mut worst_energy) = (0.0f64, 0.0f64);
        for _ in 0..1_000_000 {
            motion.drift(&kind, 1e-3);
            let off = angular_momentum(&motion, &kind) - momentum;
            worst_momentum = worst_momentum.max(off.length() / momentum.length());
            worst_energy = worst_energy.max((motion.energy(grain) / energy - 1.0).abs());
        }
        assert!(worst_momentum < 1e-10, "{worst_momentum:e}");
        assert!(worst_energy < 1e-6, "{worst_energy:e}");
    }

    #[test]
    fn small_and_large_turns_are_turns() {
        for angle in [1e-9, 1e-4, 0.06, 0.07, 2.0] {
            let axis = DVec3::new(1.0, -2.0, 0.5).normalize();
            let exact = DQuat::from_axis_angle(axis, angle);
            let found = turn_by(axis * angle);
            assert!((found - exact).length() < 1e-14, "{angle}");
        }
    }
}
