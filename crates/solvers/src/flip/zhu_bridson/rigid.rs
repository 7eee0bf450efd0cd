//! The rigid motion that a group of cells takes up, with its linear and angular momentum (Zhu 2005, section 2.3.4).
//!
//! On a staggered grid a face knows one component of the velocity, so the group's mass and its inertia tensor come as one
//! 6 × 6 matrix: M = Σ m a aᵀ with a = (e, r × e) for a face of direction e at r. The motion q = (v, ω) that solves
//! M q = Σ m a u has the momenta of the group exactly (the thesis prints its eq. 2.7 without the inertia). A single cell does
//! not feel any turning, and a row of cells not the turning about itself: there M is singular, and its pseudo-inverse
//! takes the least motion of those that do the same to every face.
//!
//! A group at a wall stays out of it, and slides along it as a whole: pieces of wall that it would enter join the system as
//! stiff springs, and friction then takes from the motion what each piece of wall can give. Friction that acted on single
//! cells before the projection would be averaged away, and the group would slide for ever.

use super::pseudo_inverse::{Matrix, SIZE, Vector, dot, pseudo_inverse, times};
use glam::{DVec3, Vec3};
use rayon::prelude::*;

/// Stiffness of all walls together, over the mass of the group.
const STIFF: f64 = 1e4;
/// Rounds in which walls that would be entered are added.
const ROUNDS: usize = 6;
/// Passes over the walls, so that their frictions share the load.
const PASSES: usize = 8;

/// One face of a group: lengths in cells, masses in full cells, velocities in m/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub axis: u32,
    /// Its number among the faces of that axis.
    pub face: u32,
    /// Whole and half numbers, so that nothing is lost.
    pub at: Vec3,
    pub mass: f64,
    pub velocity: f64,
}

impl Face {
    fn at(&self) -> DVec3 {
        self.at.as_dvec3()
    }

    fn direction(&self) -> DVec3 {
        DVec3::AXES[self.axis as usize]
    }

    /// Its velocity where all moves as one.
    pub fn carried(&self, motion: &Motion) -> f64 {
        motion.at(self.at()).dot(self.direction())
    }
}

/// A piece of wall that a group touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contact {
    pub at: DVec3,
    /// Unit vector out of the wall.
    pub normal: DVec3,
    /// Area in faces.
    pub size: f64,
    /// Velocity of the wall.
    pub velocity: DVec3,
    /// The impulse with which the pressure holds the group to the wall here, and the coefficient of friction.
    pub press: f64,
    pub friction: f64,
}

/// A rigid motion about a centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Motion {
    pub center: DVec3,
    /// Velocity of the centre, and turning a second × Δx.
    pub velocity: DVec3,
    pub turning: DVec3,
}

impl Motion {
    /// The velocity at a point.
    pub fn at(&self, point: DVec3) -> DVec3 {
        self.velocity + self.turning.cross(point - self.center)
    }
}

/// The motion of a group, whose faces come in chunks, and the impulse that each contact gave to it.
pub(super) fn project(faces: &[Vec<Face>], contacts: &[Contact]) -> (Motion, Vec<DVec3>) {
    let mass: f64 = faces.iter().flatten().map(|face| face.mass).sum();
    let center = weighted(faces, Face::at) / mass.max(1e-30);
    let spread = weighted(faces, |face| {
        DVec3::splat((face.at() - center).length_squared())
    });
    // Lengths are measured in the group's own size: then no part of the matrix is small beside the others.
    let size = (spread.x / mass.max(1e-30)).sqrt().max(0.5);
    let mut system = System::of(faces, center, size);
    let area: f64 = contacts.iter().map(|contact| contact.size).sum();
    let stiffness = STIFF * mass / area.max(1e-30);
    let pressed = system.press(contacts, stiffness);
    let inverse = pseudo_inverse(&system.matrix);
    let mut q = times(&inverse, &system.momentum);
    let springs = |q: &Vector| -> Vec<f64> {
        let push = |(contact, pressed): (&Contact, &bool)| {
            let row = system.row(contact.at, contact.normal);
            let entering = contact.velocity.dot(contact.normal) - dot(&row, q);
            f64::from(u8::from(*pressed)) * stiffness * contact.size * entering
        };
        contacts.iter().zip(&pressed).map(push).collect()
    };
    // What rests on the wall as a body, and not as a fluid, presses too.
    let most: Vec<f64> = springs(&q)
        .iter()
        .zip(contacts)
        .map(|(push, contact)| contact.friction * (contact.press + push.max(0.0)))
        .collect();
    let mut impulses = system.rub(&inverse, (contacts, &most), &mut q);
    for ((impulse, contact), push) in impulses.iter_mut().zip(contacts).zip(springs(&q)) {
        *impulse += contact.normal * push;
    }
    let motion = Motion {
        center,
        velocity: DVec3::new(q[0], q[1], q[2]),
        turning: DVec3::new(q[3], q[4], q[5]) / size,
    };
    (motion, impulses)
}

fn weighted(faces: &[Vec<Face>], value: impl Fn(&Face) -> DVec3 + Sync) -> DVec3 {
    let of_chunk =
        |faces: &Vec<Face>| -> DVec3 { faces.iter().map(|face| value(face) * face.mass).sum() };
    let sums: Vec<DVec3> = faces.par_iter().map(of_chunk).collect();
    sums.into_iter().sum()
}

/// The matrix of a group, and its momenta.
struct System {
    center: DVec3,
    size: f64,
    matrix: Matrix,
    momentum: Vector,
}

impl System {
    /// Of faces about a centre, in lengths of `size`.
    fn of(faces: &[Vec<Face>], center: DVec3, size: f64) -> Self {
        let empty = || Self {
            center,
            size,
            matrix: [[0.0; SIZE]; SIZE],
            momentum: [0.0; SIZE],
        };
        let of_chunk = |faces: &Vec<Face>| {
            let mut system = empty();
            for face in faces {
                let row = system.row(face.at(), face.direction());
                system.add(&row, face.mass, face.velocity);
            }
            system
        };
        let chunks: Vec<Self> = faces.par_iter().map(of_chunk).collect();
        let mut all = empty();
        for chunk in chunks {
            let sums = all.matrix.as_flattened_mut().iter_mut();
            for (sum, part) in sums.zip(chunk.matrix.as_flattened()) {
                *sum += part;
            }
            for (sum, part) in all.momentum.iter_mut().zip(chunk.momentum) {
                *sum += part;
            }
        }
        all
    }

    /// The vector whose product with a motion is its velocity at a point along `direction`; also the momenta that an
    /// impulse there brings.
    fn row(&self, at: DVec3, direction: DVec3) -> Vector {
        let turn = ((at - self.center) / self.size).cross(direction);
        [
            direction.x,
            direction.y,
            direction.z,
            turn.x,
            turn.y,
            turn.z,
        ]
    }

    fn add(&mut self, row: &Vector, weight: f64, velocity: f64) {
        for i in 0..SIZE {
            for j in 0..SIZE {
                self.matrix[i][j] += weight * row[i] * row[j];
            }
            self.momentum[i] += weight * row[i] * velocity;
        }
    }

    /// Adds the walls that the motion would enter, until it enters none; returns which.
    fn press(&mut self, contacts: &[Contact], stiffness: f64) -> Vec<bool> {
        let mut pressed = vec![false; contacts.len()];
        for _ in 0..ROUNDS {
            let q = times(&pseudo_inverse(&self.matrix), &self.momentum);
            let mut any = false;
            for (contact, pressed) in contacts.iter().zip(&mut pressed) {
                let row = self.row(contact.at, contact.normal);
                let along = contact.velocity.dot(contact.normal);
                if !*pressed && dot(&row, &q) < along {
                    *pressed = true;
                    any = true;
                    self.add(&row, stiffness * contact.size, along);
                }
            }
            if !any {
                break;
            }
        }
        pressed
    }

    /// Friction: each piece of wall stops what slides along it, as far as it can.
    fn rub(
        &self,
        inverse: &Matrix,
        (contacts, most): (&[Contact], &[f64]),
        q: &mut Vector,
    ) -> Vec<DVec3> {
        let mut impulses = vec![DVec3::ZERO; contacts.len()];
        for _ in 0..PASSES {
            for ((contact, most), impulse) in contacts.iter().zip(most).zip(&mut impulses) {
                let Some(slide) = self.sliding(contact, q).filter(|_| *most > 0.0) else {
                    continue;
                };
                let speed = slide.length();
                let row = self.row(contact.at, slide / speed);
                let answer = dot(&row, &times(inverse, &row));
                if answer <= 0.0 {
                    continue;
                }
                let wanted = *impulse - slide / answer;
                let given = wanted.clamp_length_max(*most);
                let row = self.row(contact.at, given - *impulse);
                let change = times(inverse, &row);
                for (q, change) in q.iter_mut().zip(change) {
                    *q += change;
                }
                *impulse = given;
            }
        }
        impulses
    }

    /// How the motion slides along a piece of wall, if it does.
    fn sliding(&self, contact: &Contact, q: &Vector) -> Option<DVec3> {
        let turning = DVec3::new(q[3], q[4], q[5]) / self.size;
        let there = DVec3::new(q[0], q[1], q[2]) + turning.cross(contact.at - self.center);
        let slide = (there - contact.velocity).reject_from_normalized(contact.normal);
        (slide.length_squared() > 1e-24).then_some(slide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;
    use glam::IVec3;
    use std::collections::BTreeSet;

    /// The faces of some cells, with random masses and velocities.
    fn faces(cells: &BTreeSet<[i32; 3]>, seed: u64) -> Vec<Face> {
        let random = Random::new(seed, 1);
        let mut places = BTreeSet::new();
        for cell in cells {
            for axis in 0..3 {
                let mut upper = *cell;
                upper[axis] += 1;
                places.insert((axis, *cell));
                places.insert((axis, upper));
            }
        }
        let face = |(i, (axis, cell)): (usize, (usize, [i32; 3]))| {
            let middle = IVec3::from_array(cell).as_vec3() + 0.5;
            Face {
                axis: axis as u32,
                face: i as u32,
                at: middle - 0.5 * Vec3::AXES[axis],
                mass: 0.1 + f64::from(random.uniform(i as u64, 0)),
                velocity: f64::from(random.uniform(i as u64, 1)) - 0.3,
            }
        };
        places.into_iter().enumerate().map(face).collect()
    }

    fn in_chunks(faces: &[Face]) -> Vec<Vec<Face>> {
        faces.chunks(7).map(<[Face]>::to_vec).collect()
    }

    /// A connected group that grew at random.
    fn random_group(count: usize, seed: u64) -> BTreeSet<[i32; 3]> {
        let random = Random::new(seed, 2);
        let mut cells = BTreeSet::from([[-7, 40, 3]]);
        let mut tries = 0;
        while cells.len() < count {
            let from = (random.uniform(tries, 0) * cells.len() as f32) as usize;
            let mut cell = *cells.iter().nth(from).expect("it is among them");
            let side = (random.uniform(tries, 1) * 6.0) as usize;
            cell[side / 2] += if side.is_multiple_of(2) { -1 } else { 1 };
            cells.insert(cell);
            tries += 1;
        }
        cells
    }

    /// Linear and angular momentum about the origin.
    fn momenta(faces: &[Face], velocity: impl Fn(&Face) -> f64) -> (DVec3, DVec3) {
        let mut sum = (DVec3::ZERO, DVec3::ZERO);
        for face in faces {
            let momentum = face.direction() * (face.mass * velocity(face));
            sum.0 += momentum;
            sum.1 += face.at().cross(momentum);
        }
        sum
    }

    fn check_momenta(cells: &BTreeSet<[i32; 3]>, seed: u64) {
        let faces = faces(cells, seed);
        let (motion, _) = project(&in_chunks(&faces), &[]);
        let before = momenta(&faces, |face| face.velocity);
        let after = momenta(&faces, |face| face.carried(&motion));
        let scale: f64 = faces.iter().map(|f| f.mass * f.at().length()).sum();
        assert!((before.0 - after.0).length() < 1e-11 * scale);
        assert!(
            (before.1 - after.1).length() < 1e-11 * scale,
            "{} cells: {} {}",
            cells.len(),
            before.1,
            after.1
        );
    }

    #[test]
    fn both_momenta_are_kept_to_rounding_by_groups_of_any_shape() {
        for seed in 0..60 {
            check_momenta(&random_group(1 + seed as usize * 3, seed), seed);
        }
        let line = |axis: usize, length: i32| {
            (0..length)
                .map(|i| {
                    let mut cell = [5, -3, 2];
                    cell[axis] += i;
                    cell
                })
                .collect()
        };
        for axis in 0..3 {
            for length in [1, 2, 3, 50, 1000] {
                check_momenta(&line(axis, length), length as u64);
            }
        }
        let plane = (0..200).map(|i| [i % 20, 7, i / 20]).collect();
        check_momenta(&plane, 3);
    }

    #[test]
    fn what_moves_rigidly_is_left_alone() {
        let truth = Motion {
            center: DVec3::new(1.0, 2.0, 3.0),
            velocity: DVec3::new(0.4, -1.0, 0.2),
            turning: DVec3::new(0.01, 0.02, -0.03),
        };
        for count in [1, 2, 8, 300] {
            let mut faces = faces(&random_group(count, 4), 4);
            for face in &mut faces {
                face.velocity = face.carried(&truth);
            }
            let (motion, _) = project(&in_chunks(&faces), &[]);
            for face in &faces {
                let found = face.carried(&motion);
                assert!((found - face.velocity).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn a_single_cell_does_not_turn_and_a_row_not_about_itself() {
        let even = |cells: BTreeSet<[i32; 3]>| {
            let mut faces = faces(&cells, 1);
            for face in &mut faces {
                face.mass = 1.0;
            }
            project(&in_chunks(&faces), &[]).0
        };
        let cell = even(BTreeSet::from([[3, 4, 5]]));
        assert!(cell.turning.length() < 1e-12);
        let row = even((0..9).map(|i| [i, 2, 2]).collect());
        assert!(row.turning.x.abs() < 1e-12 && row.turning.z.abs() > 1e-4);
    }

    /// A block of cells on a floor, moving along it while pressed down.
    fn block_on_floor(friction: f64) -> (Vec<Face>, Vec<Contact>) {
        let cells = (0..192)
            .map(|i| [i % 8, i / 64, i / 8 % 8])
            .collect::<BTreeSet<_>>();
        let mut all = faces(&cells, 1);
        all.retain(|face| face.axis != 1 || face.at.y > 0.1);
        for face in &mut all {
            face.mass = 1.0;
            face.velocity = [1.0, 0.0, 0.5][face.axis as usize];
        }
        let contact = |i: i32| Contact {
            at: DVec3::new(f64::from(i % 8) + 0.5, 0.5, f64::from(i / 8) + 0.5),
            normal: DVec3::Y,
            size: 1.0,
            velocity: DVec3::ZERO,
            press: 1.0,
            friction,
        };
        (all, (0..64).map(contact).collect())
    }

    #[test]
    fn a_group_on_a_floor_neither_enters_it_nor_slides_for_ever() {
        let (mut faces, contacts) = block_on_floor(0.0);
        for face in faces.iter_mut().filter(|face| face.axis == 1) {
            face.velocity = -0.2 - 0.1 * face.at().x;
        }
        let (free, _) = project(&in_chunks(&faces), &contacts);
        assert!((free.velocity.x - 1.0).abs() < 0.01 && free.velocity.y.abs() < 1e-3);
        for contact in &contacts {
            assert!(free.at(contact.at).y > -1e-3);
        }
        // Weak friction takes from the momentum what it can; strong friction stops it dead.
        let (faces, contacts) = block_on_floor(0.5);
        let (slow, impulses) = project(&in_chunks(&faces), &contacts);
        let given: DVec3 = impulses.iter().sum();
        assert!(
            (DVec3::new(given.x, 0.0, given.z).length() - 32.0).abs() < 1e-3,
            "{given}"
        );
        let before = momenta(&faces, |face| face.velocity).0;
        let after = momenta(&faces, |face| face.carried(&slow)).0;
        assert!((before + given - after).length() < 1e-9);
        let (faces, contacts) = block_on_floor(1e3);
        let (stopped, _) = project(&in_chunks(&faces), &contacts);
        assert!(stopped.velocity.length() < 1e-4 && stopped.turning.length() < 1e-4);
    }
}
