//! Contacts of grains with solids, through the solids' distances. In a corner a ball touches several faces of one solid,
//! and the nearest is all that a distance knows: others are looked for from a place just off the first, and what each
//! contact remembers is found again by its normal.

use super::forces::{Scene, Share, Touched, remembered};
use super::law::{Law, Touch};
use super::motion::Ball;
use super::number::Vector;
use super::store::TOUCHING;
use barchan_base::shape::Shape;
use barchan_sim::solids::Solid;
use glam::DVec3;
use std::ops::Range;

/// The most faces of one solid that a ball touches.
pub const MOST_FACES: usize = 3;
/// Normals whose cosine is above this are of one face.
const SAME_FACE: f64 = 0.9;
/// How far off the first face the next is looked for, in radii, beyond where the first is no longer touched.
const OFF: f64 = 0.05;

/// How many faces of a solid a ball can touch at once.
pub fn faces(shape: &Shape) -> usize {
    match shape {
        Shape::Placed(shape, _, _) => faces(shape),
        Shape::HalfSpace { .. }
        | Shape::Sphere { .. }
        | Shape::Cuboid { .. }
        | Shape::Cylinder { .. }
        | Shape::Capsule { .. }
        | Shape::Cone { .. } => 1,
        _ => MOST_FACES,
    }
}

/// A face that a ball touches.
#[derive(Clone, Copy, Debug, Default)]
struct Face {
    normal: DVec3,
    /// From the ball's centre [m].
    distance: f64,
}

/// Distance and normal of a solid at a place. Distances are 32-bit numbers; what rounding took from the place is added
/// back.
fn nearest(solid: &Solid, at: DVec3) -> Face {
    if let Some(face) = plane(solid, at) {
        return face;
    }
    let rounded = at.as_vec3();
    let contact = solid.contact(rounded);
    let normal = contact.normal.as_dvec3();
    Face {
        normal,
        distance: f64::from(contact.distance) + normal.dot(at - rounded.as_dvec3()),
    }
}

/// The same of a plane that never moves, in 64 bits: most that grains lean on are one.
#[inline]
fn plane(solid: &Solid, at: DVec3) -> Option<Face> {
    let (normal, on) = match &**solid.shape_at_start() {
        Shape::HalfSpace { normal } => (*normal, DVec3::ZERO),
        Shape::Placed(shape, pose, _) => match **shape {
            Shape::HalfSpace { normal } => (pose.vector(normal), pose.position.as_dvec3()),
            _ => return None,
        },
        _ => return None,
    };
    let normal = normal.as_dvec3();
    let distance = normal.dot(at - on);
    solid.is_fixed().then_some(Face { normal, distance })
}

/// The faces of a solid, at most `most`, that a ball touches.
fn find(solid: &Solid, ball: &Ball, most: usize) -> ([Face; MOST_FACES], usize) {
    let mut found = [Face::default(); MOST_FACES];
    let mut count = 0;
    let mut off = DVec3::ZERO;
    while count < most {
        let mut face = nearest(solid, ball.center + off);
        face.distance -= face.normal.dot(off);
        let known = found[..count]
            .iter()
            .any(|other| other.normal.dot(face.normal) > SAME_FACE);
        if face.distance >= ball.radius || known {
            break;
        }
        found[count] = face;
        count += 1;
        off += face.normal * (ball.radius - face.distance + OFF * ball.radius);
    }
    (found, count)
}

impl Scene<'_> {
    /// Contacts of grains with solids.
    pub fn lean(&self, law: impl Law, share: &mut Share<'_>, touched: &mut Touched) {
        let mut entry = 0;
        while entry < share.wall_balls.len() {
            let (ball, solid) = (
                share.wall_balls[entry],
                share.wall_solids[entry] & !TOUCHING,
            );
            let same = |k: &usize| {
                share.wall_balls.get(*k) == Some(&ball)
                    && share.wall_solids[*k] & !TOUCHING == solid
            };
            let end = (entry..).take_while(same).count() + entry;
            let a = &self.balls[ball as usize];
            let (found, count) = find(&self.solids.all()[solid as usize], a, end - entry);
            let slots = assign(&found[..count], entry..end, share);
            for slot in entry..end {
                if !slots[..count].contains(&slot) {
                    share.wall_solids[slot] = solid;
                }
            }
            for (face, slot) in found[..count].iter().zip(slots) {
                self.push_off(
                    law,
                    ball as usize,
                    (face, slot),
                    (&mut *share, &mut *touched),
                );
            }
            entry = end;
        }
    }

    /// What a face does to a ball.
    fn push_off(
        &self,
        law: impl Law,
        ball: usize,
        (face, slot): (&Face, usize),
        (share, touched): (&mut Share<'_>, &mut Touched),
    ) {
        let Face { normal, distance } = *face;
        let index = (share.wall_solids[slot] & !TOUCHING) as usize;
        let (solid, a) = (&self.solids.all()[index], &self.balls[ball]);
        let overlap = a.radius - distance;
        let grain = self.owners[ball] as usize;
        let (seen, make) = (&self.seen[grain], &self.makes[grain]);
        let point = a.center - normal * (distance + 0.5 * overlap);
        let lever = point - self.place(grain, ball);
        let place = point.as_vec3();
        let mut velocity = seen.velocity() + seen.spin().cross(lever);
        let mut yielding = 0.0;
        if !solid.is_fixed() {
            yielding = f64::from(solid.inertia().yielding(place, normal.as_vec3()));
            velocity -= solid.velocity(place).as_dvec3();
        }
        let touch = Touch {
            normal: normal.into(),
            overlap,
            velocity: velocity.into(),
            radius: a.radius,
            mass: 1.0 / (make.inverse_mass + yielding),
            wetness: f64::from(make.wetness),
            dt: self.dt,
        };
        let pair = &self.walls[make.material as usize * self.solids.all().len() + index];
        let memory = (
            &mut share.wall_springs[slot],
            share.wall_rolls.get_mut(slot),
        );
        let memory = remembered(&mut share.wall_solids[slot], memory);
        let mut spring = Vector::from(*memory.0);
        let force: DVec3 = law.force(pair, &touch, &mut spring).into();
        *memory.0 = spring.into();
        let mut torque = lever.cross(force);
        let pressing = force.dot(normal) + pair.pull(&touch);
        torque += DVec3::from(pair.resist_turning(&touch, seen.spin().into(), pressing));
        if let Some(roll) = memory.1 {
            let mut rolled = Vector::from(*roll);
            let resisted = pair.resist_rolling(&touch, seen.spin().into(), pressing, &mut rolled);
            *roll = rolled.into();
            torque += DVec3::from(resisted);
        }
        share.wall_normals[slot] = normal;
        let load = &mut share.loads[grain - share.first_grain];
        load.force += force;
        load.torque += torque;
        touched
            .impulses
            .push(index, place, (force * -self.dt).as_vec3());
        touched.deepest = touched.deepest.max(overlap / a.radius);
    }
}

/// The slot of each face: the one that remembers its normal, or a free one.
fn assign(found: &[Face], slots: Range<usize>, share: &Share<'_>) -> [usize; MOST_FACES] {
    let mut taken = [usize::MAX; MOST_FACES];
    if slots.len() == 1 {
        taken[0] = slots.start;
        return taken;
    }
    let touching = |slot: usize| share.wall_solids[slot] & TOUCHING != 0;
    for (k, face) in found.iter().enumerate() {
        let known = slots.clone().find(|slot| {
            touching(*slot)
                && !taken.contains(slot)
                && share.wall_normals[*slot].dot(face.normal) > SAME_FACE
        });
        taken[k] = known.unwrap_or(usize::MAX);
    }
    for k in 0..found.len() {
        if taken[k] == usize::MAX {
            // A slot whose face is no longer touched is as good as free.
            let free = slots.clone().find(|slot| !taken.contains(slot));
            taken[k] = free.unwrap_or(slots.start);
        }
    }
    taken
}
