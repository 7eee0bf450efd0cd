//! Bodies that touch nothing but each other keep their angular momentum.
//!
//! Rapier solves the contacts and joints of a step where they were at its start, and moves the bodies while it solves:
//! where bodies pass each other, a hundredth of the angular momentum of a collision is lost. What hangs together and on
//! nothing that is held is therefore turned as a whole, by what is missing. Its linear momentum does not change.

use super::seen::Seen;
use super::world::inertia_at;
use crate::body::Dynamic;
use glam::{DMat3, DVec3};
use rapier3d::prelude::RigidBody;

/// A body's mass and motion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    mass: f64,
    inertia: DMat3,
    center: DVec3,
    velocity: DVec3,
    spin: DVec3,
}

impl Moving {
    /// As it is now.
    pub fn of(dynamic: &Dynamic, body: &RigidBody) -> Self {
        Self {
            mass: dynamic.mass,
            inertia: inertia_at(dynamic, body.turn().as_dquat()),
            center: body.center().as_dvec3(),
            velocity: body.velocity().as_dvec3(),
            spin: body.spin().as_dvec3(),
        }
    }
}

/// Angular momentum of bodies about their common centre of mass, which is returned too.
fn angular_momentum(bodies: &[Moving]) -> (DVec3, DVec3) {
    let mass: f64 = bodies.iter().map(|body| body.mass).sum();
    let mean = |value: fn(&Moving) -> DVec3| -> DVec3 {
        bodies
            .iter()
            .map(|body| value(body) * body.mass)
            .sum::<DVec3>()
            / mass
    };
    let (center, velocity) = (mean(|body| body.center), mean(|body| body.velocity));
    let momentum = bodies.iter().map(|body| {
        let orbit = (body.center - center).cross(body.velocity - velocity) * body.mass;
        orbit + body.inertia * body.spin
    });
    (momentum.sum(), center)
}

/// The turn that gives bodies the angular momentum back that they had `before`: what to add to the velocity and to the
/// spin of each.
pub(super) fn restoring_turn(before: &[Moving], after: &[Moving]) -> Option<Vec<(DVec3, DVec3)>> {
    let ((had, _), (has, center)) = (angular_momentum(before), angular_momentum(after));
    let inertia: DMat3 = after
        .iter()
        .map(|body| {
            let arm = body.center - center;
            let outer = DMat3::from_cols(arm * arm.x, arm * arm.y, arm * arm.z);
            let orbit = DMat3::from_diagonal(DVec3::splat(arm.length_squared())) - outer;
            body.inertia + orbit * body.mass
        })
        .fold(DMat3::ZERO, |sum, one| sum + one);
    let turn = inertia.inverse() * (had - has);
    let change = |body: &Moving| (turn.cross(body.center - center), turn);
    turn.is_finite().then(|| after.iter().map(change).collect())
}

/// Groups of bodies that hang together, as indices; those tied to `None`, which is all that is held, are left out.
pub(super) fn groups(
    count: usize,
    ties: impl Iterator<Item = (Option<usize>, Option<usize>)>,
) -> Vec<Vec<usize>> {
    // The last is what is held.
    let mut leader: Vec<usize> = (0..=count).collect();
    fn lead(leader: &[usize], mut one: usize) -> usize {
        while leader[one] != one {
            one = leader[one];
        }
        one
    }
    for (one, other) in ties {
        let [one, other] = [one, other].map(|body| lead(&leader, body.unwrap_or(count)));
        leader[one.min(other)] = one.max(other);
    }
    let mut groups = vec![Vec::new(); count + 1];
    for body in 0..count {
        groups[lead(&leader, body)].push(body);
    }
    groups.truncate(count);
    groups.retain(|group| group.len() > 1);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_left_out_and_the_rest_hangs_together() {
        let ties = [
            (Some(0), Some(3)),
            (Some(1), None),
            (Some(3), Some(5)),
            (Some(1), Some(2)),
        ];
        assert_eq!(groups(6, ties.into_iter()), vec![vec![0, 3, 5]]);
        assert_eq!(
            groups(2, [(None, None)].into_iter()),
            Vec::<Vec<usize>>::new()
        );
    }

    #[test]
    fn a_turn_brings_back_what_was_lost_and_nothing_else() {
        let body = |x: f64, v: f64, w: f64| Moving {
            mass: 2.0 + x,
            inertia: DMat3::from_diagonal(DVec3::new(0.1, 0.2, 0.3)),
            center: DVec3::new(x, 0.2 * x, -x * x),
            velocity: DVec3::new(v, 1.0, 0.3),
            spin: DVec3::new(0.0, w, 1.0),
        };
        let before = [body(0.0, 1.0, 2.0), body(1.0, -2.0, 0.5)];
        let mut after = [body(0.1, 0.9, 2.0), body(0.9, -2.0, 0.7)];
        let momentum = |bodies: &[Moving]| -> DVec3 {
            bodies.iter().map(|body| body.velocity * body.mass).sum()
        };
        let linear = momentum(&after);
        let turn = restoring_turn(&before, &after).unwrap();
        for (body, (velocity, spin)) in after.iter_mut().zip(turn) {
            body.velocity += velocity;
            body.spin += spin;
        }
        let (had, has) = (angular_momentum(&before).0, angular_momentum(&after).0);
        assert!((had - has).length() < 1e-12, "{had} {has}");
        assert!((momentum(&after) - linear).length() < 1e-12);
    }
}
