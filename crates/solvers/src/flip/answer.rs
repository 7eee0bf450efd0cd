//! Bodies that move by force, inside the coupled solve: between sweeps they move as its stresses push them, and the next sweep sees
//! them so. Taken for walls that move by themselves they would sink into what carries them by what they fall in a step, and be thrown
//! back by all the material that they then push away.

use super::field::Field;
use super::lanes::Group;
use super::laws::RELAX;
use barchan_base::grid::CELLS;
use barchan_sim::coupling::Impulses;
use barchan_sim::solids::{Inertia, Solids};
use glam::Vec3;

/// How the bodies of a step answer.
#[derive(Default)]
pub(super) struct Answer {
    bodies: Vec<Inertia>,
    pieces: Vec<Piece>,
    /// What the bodies took before the solve.
    taken: Impulses,
    /// Mass of a full cell [kg].
    unit: f32,
    /// Change of the bodies' velocities by the stresses of the last sweep.
    drifts: Vec<Drift>,
}

/// A piece of wall of a body that answers: where it is among the groups' walls, and where its cell is.
struct Piece {
    group: usize,
    lanes: usize,
    lane: usize,
    wall: usize,
    body: usize,
    center: Vec3,
}

/// Change of a body's velocity: of its centre [m/s] and of its turning [rad/s].
#[derive(Clone, Copy, Default)]
struct Drift {
    linear: Vec3,
    angular: Vec3,
}

/// How much a body gives to all pieces of its wall together: the sum of their leverage, and of that times their distance from its centre.
#[derive(Clone, Copy, Default)]
struct Lean {
    pushed: f32,
    turned: f32,
}

impl Answer {
    /// The bodies among `solids`, what they took before the solve, and the mass of a full cell [kg].
    pub fn begin(&mut self, solids: &Solids, taken: &Impulses, unit: f32) {
        self.bodies.clear();
        self.bodies
            .extend(solids.all().iter().map(|solid| *solid.inertia()));
        self.pieces.clear();
        self.taken.clone_from(taken);
        self.unit = unit;
        self.drifts.clear();
        self.drifts.resize(self.bodies.len(), Drift::default());
    }

    /// Finds the bodies' pieces of wall among the groups, and makes what lies at them as compliant as the bodies are.
    pub fn join(&mut self, field: &Field, groups: &mut [Group]) {
        if self.bodies.iter().all(|body| body.inverse_mass == 0.0) {
            return;
        }
        for (place, group) in groups.iter().enumerate() {
            for (lanes, walls) in group.wall_lanes.iter().enumerate() {
                for (lane, wall) in walls.pieces() {
                    let (block, body) = (group.blocks[lane], group.walls[wall].body);
                    let cell = block * CELLS + walls.local;
                    // What is held does not feel the body, nor the body it.
                    if self.bodies[body].inverse_mass == 0.0 || field.held[cell] {
                        continue;
                    }
                    self.pieces.push(Piece {
                        group: place,
                        lanes,
                        lane,
                        wall,
                        body,
                        center: field.center(block, walls.local),
                    });
                }
            }
        }
        self.soften(groups);
    }

    /// One sweep moves a body by what all pieces of its wall give: pressure and friction there must take steps that suit.
    fn soften(&self, groups: &mut [Group]) {
        let mut leans = vec![Lean::default(); self.bodies.len()];
        for piece in &self.pieces {
            let size = groups[piece.group].walls[piece.wall].area.length();
            let lean = &mut leans[piece.body];
            lean.pushed += 1.0 + size;
            lean.turned += (1.0 + size) * self.lever(piece);
        }
        for piece in &self.pieces {
            let body = &self.bodies[piece.body];
            let lean = leans[piece.body];
            let turns = stiffest_turn(body) * self.lever(piece);
            let gives = self.unit * (body.inverse_mass * lean.pushed + turns * lean.turned) / RELAX;
            let group = &mut groups[piece.group];
            let size = group.walls[piece.wall].area.length();
            let walls = &mut group.wall_lanes[piece.lanes];
            let law = &mut group.laws[walls.local];
            let soften = |step: &mut f32, stiffness: &mut f32, gives: f32| {
                *stiffness += gives;
                *step = 1.0 / *stiffness;
            };
            let lane = piece.lane;
            soften(
                &mut law.pressure_step.as_mut_array()[lane],
                &mut law.pressure_weight.as_mut_array()[lane],
                gives * size,
            );
            soften(
                &mut walls.step.as_mut_array()[lane],
                &mut walls.stiffness.as_mut_array()[lane],
                gives,
            );
        }
    }

    fn lever(&self, piece: &Piece) -> f32 {
        piece.center.distance(self.bodies[piece.body].center)
    }

    /// Moves the bodies as the present stresses push them, and ahead of that along the last change as the sweep goes ahead.
    pub fn follow(&mut self, groups: &mut [Group], momentum: f32) {
        if self.pieces.is_empty() {
            return;
        }
        let mut impulses = self.taken.clone();
        for piece in &self.pieces {
            let group = &groups[piece.group];
            let walls = &group.wall_lanes[piece.lanes];
            let force = walls.force.map(|force| force.as_array()[piece.lane]);
            let stress = group.stress[walls.local].values(piece.lane);
            let push = Vec3::from_array(force) - group.walls[piece.wall].push(&stress);
            impulses.push(piece.body, piece.center, push * self.unit);
        }
        let ahead: Vec<Drift> = self
            .bodies
            .iter()
            .zip(impulses.into_sums())
            .zip(&mut self.drifts)
            .map(|((body, impulse), drift)| {
                let (linear, angular) = body.answer(&impulse);
                let before = std::mem::replace(drift, Drift { linear, angular });
                Drift {
                    linear: linear + momentum * (linear - before.linear),
                    angular: angular + momentum * (angular - before.angular),
                }
            })
            .collect();
        for piece in &self.pieces {
            let Drift { linear, angular } = ahead[piece.body];
            let lever = piece.center - self.bodies[piece.body].center;
            groups[piece.group].move_wall(
                (piece.lanes, piece.lane, piece.wall),
                linear + angular.cross(lever),
            );
        }
    }
}

/// The most that a turning push of 1 turns a body.
fn stiffest_turn(body: &Inertia) -> f32 {
    let of = &body.inverse_inertia;
    of.x_axis.x + of.y_axis.y + of.z_axis.z
}
