//! Solids as the scene describes them: a shape that stands, follows keyframes, follows a sequence of meshes, or moves
//! by force.

use barchan_base::Pose;
use barchan_base::mesh::{LoadError, Mesh, MeshError, load_mesh};
use barchan_base::shape::Shape;
use glam::{DMat3, DQuat, DVec3, Vec3};
use std::path::PathBuf;
use std::sync::Arc;

/// A solid.
#[derive(Clone, Debug)]
pub struct Body {
    /// Name in reports.
    pub name: String,
    /// What it is and how it moves.
    pub form: Form,
    /// Coefficient of Coulomb friction.
    pub friction: f32,
    /// Part of the speed kept in a bounce; `None` leaves it to the material.
    pub restitution: Option<f32>,
}

/// What a solid is and how it moves.
#[derive(Clone, Debug)]
pub enum Form {
    /// A shape that stands still.
    Static(Arc<Shape>),
    /// A shape on a track.
    Keyframed(Arc<Shape>, Track),
    /// A mesh that moves and deforms.
    Sequence(MeshSequence),
    /// A rigid body that its [`Coupling`](crate::coupling::Coupling) moves by force.
    Dynamic(Box<Dynamic>),
}

impl Form {
    /// The word for how it moves.
    pub fn motion(&self) -> &'static str {
        match self {
            Self::Static(_) => "static",
            Self::Keyframed(..) => "keyframed",
            Self::Sequence(_) => "sequence",
            Self::Dynamic(_) => "dynamic",
        }
    }
}

/// A rigid body that moves by force, at time zero and in world coordinates.
#[derive(Clone, Debug)]
pub struct Dynamic {
    /// Its shape, where it starts.
    pub shape: Arc<Shape>,
    /// Mass [kg].
    pub mass: f64,
    /// Centre of mass [m].
    pub center: DVec3,
    /// Inertia about the centre of mass [kg m²].
    pub inertia: DMat3,
    /// Velocity of the centre of mass [m/s].
    pub velocity: Vec3,
    /// Angular velocity [rad/s].
    pub spin: Vec3,
    /// What ties it to other bodies or to the world.
    pub joints: Vec<Joint>,
}

impl Dynamic {
    /// A body of one density [kg/m³]; `None` where the shape has no end or no volume.
    pub fn of_density(shape: Arc<Shape>, density: f64) -> Option<Self> {
        let moments = shape.moments()?;
        Some(Self {
            shape,
            mass: moments.volume * density,
            center: moments.center,
            inertia: moments.inertia * density,
            velocity: Vec3::ZERO,
            spin: Vec3::ZERO,
            joints: Vec::new(),
        })
    }
}

/// A tie between a dynamic body and another body or the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// What it lets free.
    pub kind: JointKind,
    /// Index of the other body; the world if none.
    pub to: Option<usize>,
    /// Where it holds the body that owns it, at time zero [m].
    pub at: Vec3,
    /// Where it holds the other body, at time zero [m].
    pub to_at: Vec3,
    /// When it lets go [s]; infinite for never.
    pub release: f64,
}

/// What a joint lets free.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JointKind {
    /// Everything within a length [m].
    Rope {
        /// The furthest that the two places can be apart [m].
        length: f32,
    },
    /// A turn about an axis.
    Hinge {
        /// Unit vector along it, at time zero.
        axis: Vec3,
    },
    /// Every turn.
    Ball,
    /// Nothing.
    Fixed,
}

/// How to move between keyframes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// Cubic, without kinks.
    Smooth,
    /// Straight, at constant speed.
    Linear,
}

/// Poses at times, in order.
#[derive(Clone, Debug)]
pub struct Track {
    times: Vec<f64>,
    positions: Vec<DVec3>,
    rotations: Vec<DQuat>,
    interpolation: Interpolation,
}

impl Track {
    /// A track through `keys`, whose times [s] must increase.
    pub fn new(keys: &[(f64, Pose)], interpolation: Interpolation) -> Self {
        let mut rotations: Vec<DQuat> = keys
            .iter()
            .map(|(_, pose)| pose.rotation.as_dquat().normalize())
            .collect();
        for i in 1..rotations.len() {
            // Of a rotation's two quaternions, take the one nearer to its predecessor: the short way round.
            if rotations[i].dot(rotations[i - 1]) < 0.0 {
                rotations[i] = -rotations[i];
            }
        }
        Self {
            times: keys.iter().map(|(time, _)| *time).collect(),
            positions: keys
                .iter()
                .map(|(_, pose)| pose.position.as_dvec3())
                .collect(),
            rotations,
            interpolation,
        }
    }

    /// The highest mean speed [m/s] between two of its keys.
    pub fn fastest(&self) -> f64 {
        let ways = self.positions.windows(2).zip(self.times.windows(2));
        ways.map(|(way, time)| way[0].distance(way[1]) / (time[1] - time[0]))
            .fold(0.0, f64::max)
    }

    /// The pose at `time` [s]; before the first and after the last key it stands still.
    pub fn pose(&self, time: f64) -> Pose {
        let (position, rotation) = self.place(time);
        Pose::new(position.as_vec3(), rotation.as_quat())
    }

    /// How far it moves [m] and turns [rad], along the axis, from `start` to `end` [s]: finer than two poses can tell.
    pub fn way(&self, start: f64, end: f64) -> (DVec3, DVec3) {
        let ((from, before), (to, after)) = (self.place(start), self.place(end));
        let turn = after * before.conjugate();
        // Not glam's scaled axis: to it, the turn of a short step is none.
        let angle = 2.0 * turn.xyz().length().atan2(turn.w.abs());
        let axis = turn.xyz().normalize_or_zero() * turn.w.signum();
        (to - from, axis * angle)
    }

    fn place(&self, time: f64) -> (DVec3, DQuat) {
        let last = self.times.len() - 1;
        let next = self.times.partition_point(|t| *t <= time);
        if next == 0 || next > last {
            let end = next.min(last);
            return (self.positions[end], self.rotations[end]);
        }
        let (a, b) = (next - 1, next);
        let span = self.times[b] - self.times[a];
        let f = (time - self.times[a]) / span;
        match self.interpolation {
            Interpolation::Linear => (
                self.positions[a].lerp(self.positions[b], f),
                self.rotations[a].slerp(self.rotations[b], f),
            ),
            Interpolation::Smooth => {
                // Cubic Hermite with Catmull–Rom slopes; the ends start and stop at rest.
                let (f2, f3) = (f * f, f * f * f);
                let weights = [
                    2.0 * f3 - 3.0 * f2 + 1.0,
                    f3 - 2.0 * f2 + f,
                    3.0 * f2 - 2.0 * f3,
                    f3 - f2,
                ];
                let position = self.positions[a] * weights[0]
                    + self.slope(a, |i| self.positions[i]) * (weights[1] * span)
                    + self.positions[b] * weights[2]
                    + self.slope(b, |i| self.positions[i]) * (weights[3] * span);
                let turn = |i: usize| glam::DVec4::from(self.rotations[i]);
                let rotation = turn(a) * weights[0]
                    + self.slope(a, turn) * (weights[1] * span)
                    + turn(b) * weights[2]
                    + self.slope(b, turn) * (weights[3] * span);
                (position, DQuat::from_vec4(rotation).normalize())
            }
        }
    }

    /// The slope of a smooth curve at key `i`: of the chord between its neighbours, and zero at the ends.
    fn slope<V>(&self, i: usize, value: impl Fn(usize) -> V) -> V
    where
        V: std::ops::Sub<Output = V> + std::ops::Mul<f64, Output = V> + Copy,
    {
        if i == 0 || i + 1 == self.times.len() {
            return value(i) * 0.0;
        }
        (value(i + 1) - value(i - 1)) * (1.0 / (self.times[i + 1] - self.times[i - 1]))
    }
}

/// Mesh files, one a frame, with the same triangles and moving vertices.
#[derive(Clone, Debug)]
pub struct MeshSequence {
    /// The files in order; at least one.
    pub files: Vec<PathBuf>,
    /// Files a second.
    pub fps: f64,
    /// Time of the first file [s].
    pub start: f64,
    /// Where the meshes are placed.
    pub pose: Pose,
    /// Scale before placing.
    pub scale: f32,
    /// Cell size of the sampled distance [m]; chosen from the mesh if none.
    pub cell: Option<f32>,
    /// Resolution of the scene [m].
    pub resolution: f32,
}

/// A mesh sequence that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum SequenceError {
    /// A file is missing or broken.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A mesh became unusable when placed.
    #[error("{path}: {source}")]
    Mesh {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: MeshError,
    },
    /// The triangles changed.
    #[error(
        "{path} has {found} triangles and vertices, the file before it {expected}: a sequence must keep them"
    )]
    Topology {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What it should have.
        expected: String,
    },
}

impl MeshSequence {
    /// The two files around `time` [s] and how far it is from the first to the second.
    pub fn files_at(&self, time: f64) -> (usize, usize, f64) {
        let last = self.files.len() - 1;
        let at = ((time - self.start) * self.fps).clamp(0.0, last as f64);
        let first = (at.floor() as usize).min(last);
        (first, (first + 1).min(last), at - first as f64)
    }

    /// Loads and places file `index`.
    ///
    /// # Errors
    /// If the file is missing or not a usable mesh.
    pub fn load(&self, index: usize) -> Result<Mesh, SequenceError> {
        let path = &self.files[index];
        let mesh = load_mesh(path)?;
        mesh.mapped(|vertex| self.pose.point(vertex * self.scale))
            .map_err(|source| SequenceError::Mesh {
                path: path.clone(),
                source,
            })
    }

    /// Whether the mesh `b`, of file `b_index`, has the triangles of the mesh `a` before it.
    ///
    /// # Errors
    /// If it has not.
    pub fn check_alike(&self, a: &Mesh, b: &Mesh, b_index: usize) -> Result<(), SequenceError> {
        if a.triangles() == b.triangles() && a.vertices().len() == b.vertices().len() {
            return Ok(());
        }
        let counts =
            |mesh: &Mesh| format!("{} and {}", mesh.triangles().len(), mesh.vertices().len());
        Err(SequenceError::Topology {
            path: self.files[b_index].clone(),
            found: counts(b),
            expected: counts(a),
        })
    }

    /// The mesh between two loaded files.
    ///
    /// # Errors
    /// If their triangles differ.
    pub fn blend(&self, a: &Mesh, b: &Mesh, b_index: usize, f: f64) -> Result<Mesh, SequenceError> {
        self.check_alike(a, b, b_index)?;
        let vertices: Vec<Vec3> = a
            .vertices()
            .iter()
            .zip(b.vertices())
            .map(|(a, b)| a.lerp(*b, f as f32))
            .collect();
        Mesh::new(vertices, a.triangles().to_vec()).map_err(|source| SequenceError::Mesh {
            path: self.files[b_index].clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Quat;

    fn track(interpolation: Interpolation) -> Track {
        let turn = |angle: f32| Quat::from_rotation_y(angle);
        Track::new(
            &[
                (0.0, Pose::new(Vec3::ZERO, turn(0.0))),
                (1.0, Pose::new(Vec3::X, turn(1.0))),
                (3.0, Pose::new(Vec3::new(1.0, 2.0, 0.0), turn(2.0))),
            ],
            interpolation,
        )
    }

    #[test]
    fn tracks_pass_through_their_keys_and_hold_their_ends() {
        for interpolation in [Interpolation::Linear, Interpolation::Smooth] {
            let track = track(interpolation);
            for (time, place) in [
                (-1.0, Vec3::ZERO),
                (0.0, Vec3::ZERO),
                (1.0, Vec3::X),
                (9.0, Vec3::new(1.0, 2.0, 0.0)),
            ] {
                assert!(
                    (track.pose(time).position - place).length() < 1e-5,
                    "{interpolation:?} at {time}"
                );
            }
            assert!(
                track
                    .pose(1.0)
                    .rotation
                    .angle_between(Quat::from_rotation_y(1.0))
                    < 1e-3
            );
        }
    }

    #[test]
    fn linear_tracks_have_constant_speed_and_smooth_ones_no_kinks() {
        let speed = |track: &Track, time: f64| {
            let h = 1e-3;
            (track.pose(time + h).position - track.pose(time - h).position) / (2.0 * h as f32)
        };
        let linear = track(Interpolation::Linear);
        assert!((speed(&linear, 0.3) - speed(&linear, 0.7)).length() < 1e-2);
        let smooth = track(Interpolation::Smooth);
        assert!((speed(&smooth, 0.99) - speed(&smooth, 1.01)).length() < 0.1); // a kink would be about 1.4
        assert!(speed(&smooth, 0.002).length() < 0.05); // starts at rest
    }
}
