//! One discrete gradient for pressure and friction, and its exact adjoint for the force.
//!
//! With V the volume of a particle, g the kernel's gradient and L = (Σ V (x_j − x_i) g^T)⁻¹,
//!
//! ```text
//! ∇v_i = Σ_j V_j (v_j − v_i) g_ij^T L_i          force on i per volume = Σ_j V_j (T_i + T_j) g_ij,  T = σ L
//! ```
//!
//! so that Σ V σ:∇v is minus the power of the forces, walls included. Linear fields are differentiated exactly at every
//! surface, forces are equal and opposite, and a rigid turn costs nothing. A wall that does not grip is seen through
//! P = n n^T + grip (1 − n n^T), in both.

use super::boundary::Placed;
use super::lists::{CHUNK, List};
use super::tensor::Sym3;
use glam::{DVec3, Mat3A, Vec3A};
use rayon::prelude::*;

/// A moment matrix is inverted where its trace and its determinant are at least this; three and one are full.
const LEAST_TRACE: f32 = 0.6;
const LEAST_DETERMINANT: f32 = 0.008;
/// Elsewhere the gradient is only scaled, at most by this.
const MOST_SCALE: f32 = 2.0;
const LEAST_SCALED_TRACE: f32 = 0.5;

/// How a particle takes part in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Moves.
    #[default]
    Awake,
    /// Asleep, but near someone who moves: its load is solved for, and may wake it.
    Dozing,
    /// Asleep, and only lends its stress to others.
    Asleep,
}

/// What only the particle itself looks up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grain {
    /// L.
    pub correction: Sym3,
    /// Σ V g over the particles around [1/m].
    pub lean: [f32; 3],
    /// What a unit of pressure does to the divergence within a unit of time [m³/kg/m²].
    pub compliance: f32,
    /// How much closer it may come before it is full, negative or zero.
    pub gap: f32,
    /// Friction stress [Pa].
    pub stress: Sym3,
    /// Pressure averaged over the particles around [Pa].
    pub load: f32,
    /// Friction coefficient.
    pub mu: f32,
    /// Cohesion [Pa].
    pub cohesion: f32,
    /// Artificial viscosity.
    pub viscosity: f32,
    /// Inverse of the density [m³/kg].
    pub lightness: f32,
    /// How well walls hold it, from 0 to 1.
    pub grip: f32,
    /// How it takes part.
    pub role: Role,
}

/// How a body's velocity has changed within the step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    /// Of its centre [m/s].
    pub linear: Vec3A,
    /// Turning [rad/s].
    pub angular: Vec3A,
    /// The centre.
    pub centre: Vec3A,
}

/// What all particles share during a sweep.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Places.
    pub x: &'a [Vec3A],
    /// Neighbours.
    pub lists: &'a [List],
    /// Boundary samples.
    pub samples: &'a [Placed],
    /// Change of each body's velocity.
    pub drifts: &'a [Drift],
}

impl Placed {
    /// Its velocity, with what its body gained in this step.
    #[inline]
    fn velocity_now(&self, drifts: &[Drift]) -> Vec3A {
        match drifts.get(self.body as usize) {
            Some(drift) => {
                self.velocity + drift.linear + drift.angular.cross(self.position - drift.centre)
            }
            None => self.velocity,
        }
    }

    /// What a wall that grips only partly sees or gives of a vector.
    #[inline]
    fn gripped(&self, vector: Vec3A, grip: f32) -> Vec3A {
        let along = self.normal * self.normal.dot(vector);
        along + (vector - along) * grip
    }
}

#[inline]
fn outer(a: Vec3A, b: Vec3A) -> Mat3A {
    Mat3A::from_cols(a * b.x, a * b.y, a * b.z)
}

impl Around<'_> {
    /// L, the lean and the compliance of each particle.
    pub fn measure(&self, grains: &mut [Grain]) {
        grains
            .par_chunks_mut(CHUNK)
            .zip(self.lists)
            .enumerate()
            .for_each(|(chunk, (grains, list))| {
                for (k, grain) in grains.iter_mut().enumerate() {
                    self.measure_one(chunk * CHUNK + k, (list, k), grain);
                }
            });
    }

    fn measure_one(&self, i: usize, (list, k): (&List, usize), grain: &mut Grain) {
        let here = self.x[i];
        let (mut moment, mut squares) = (Mat3A::ZERO, Mat3A::ZERO);
        let (mut lean, mut all) = (Vec3A::ZERO, Vec3A::ZERO);
        for (j, factor) in list.particles(k).iter() {
            let way = here - self.x[j];
            let g = way * factor;
            moment -= outer(way, g);
            squares += outer(g, g);
            lean += g;
        }
        for (b, factor) in list.samples(k).iter() {
            let way = here - self.samples[b].position;
            moment -= outer(way, way * factor);
            all += way * factor;
        }
        all += lean;
        let correction = invert(&Sym3::of(&moment));
        let l = correction.matrix();
        grain.correction = correction;
        grain.lean = lean.into();
        let resistance = Sym3::of(&(l * squares * l)).trace() + (l * all).length_squared();
        grain.compliance = resistance * grain.lightness;
    }

    /// The forces per volume of `transfer` = σ L on each particle that is solved for, made into velocities by `take`.
    /// On the way it finds the mean pressure around each particle and how well walls hold it.
    pub fn push(
        &self,
        (transfer, pressures, own_weight): (&[Mat3A], &[f32], f32),
        grains: &mut [Grain],
        velocities: &mut [Vec3A],
        take: impl Fn(usize, &Grain, Vec3A) -> Vec3A + Sync,
    ) {
        velocities
            .par_chunks_mut(CHUNK)
            .zip(grains.par_chunks_mut(CHUNK))
            .zip(self.lists)
            .enumerate()
            .for_each(|(chunk, ((velocities, grains), list))| {
                for (k, (velocity, grain)) in velocities.iter_mut().zip(grains).enumerate() {
                    if grain.role == Role::Asleep {
                        continue;
                    }
                    let i = chunk * CHUNK + k;
                    let (here, own) = (self.x[i], &transfer[i]);
                    let mut push = *own * Vec3A::from(grain.lean);
                    let (mut load, mut weight) = (own_weight * pressures[i], own_weight);
                    for (j, factor) in list.particles(k).iter() {
                        push += transfer[j] * ((here - self.x[j]) * factor);
                        load -= factor * pressures[j];
                        weight -= factor;
                    }
                    grain.load = load / weight;
                    if !list.samples(k).is_empty() {
                        // Next to a wall the first row carries more than the second: its own load counts.
                        grain.load = pressures[i];
                        let (normal, sliding, friction) = self.wall(i, (list, k), own);
                        grain.grip = grip(normal, sliding, friction);
                        push += self.push_of_walls(i, (list, k), own, grain.grip);
                    }
                    *velocity = take(i, grain, push);
                }
            });
    }

    /// What walls would give to particle `i` if they held it: normal force, tangential force, friction coefficient.
    fn wall(&self, i: usize, (list, k): (&List, usize), own: &Mat3A) -> (f32, f32, f32) {
        let (mut normal, mut sliding) = (0.0, Vec3A::ZERO);
        let (mut friction, mut weight) = (0.0, 0.0);
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            let force = *own * ((self.x[i] - sample.position) * factor);
            let along = sample.normal.dot(force);
            normal += along.abs();
            sliding += force - sample.normal * along;
            friction -= sample.friction * factor;
            weight -= factor;
        }
        (normal, sliding.length(), friction / weight.max(f32::MIN_POSITIVE))
    }

    fn push_of_walls(&self, i: usize, (list, k): (&List, usize), own: &Mat3A, grip: f32) -> Vec3A {
        let mut push = Vec3A::ZERO;
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            let force = *own * ((self.x[i] - sample.position) * factor);
            push += sample.gripped(force, grip);
        }
        push
    }

    /// Impulse and angular impulse on each body of forces per volume that last `time` [s], in the chunks' order.
    pub fn reactions(
        &self,
        transfer: &[Mat3A],
        grains: &[Grain],
        (volume, time): (f32, f32),
        totals: &mut [(DVec3, DVec3)],
    ) {
        let scale = -f64::from(volume * time);
        let bodies = totals.len();
        let parts: Vec<Vec<(DVec3, DVec3)>> = grains
            .par_chunks(CHUNK)
            .zip(self.lists)
            .enumerate()
            .map(|(chunk, (grains, list))| {
                let mut sums = Vec::new();
                for (k, grain) in grains.iter().enumerate() {
                    let i = chunk * CHUNK + k;
                    if grain.role == Role::Asleep || list.samples(k).is_empty() {
                        continue;
                    }
                    sums.resize(bodies, (DVec3::ZERO, DVec3::ZERO));
                    for (b, factor) in list.samples(k).iter() {
                        let sample = &self.samples[b];
                        let force = transfer[i] * ((self.x[i] - sample.position) * factor);
                        let force = sample.gripped(force, grain.grip).as_dvec3() * scale;
                        let sum = &mut sums[sample.body as usize];
                        sum.0 += force;
                        sum.1 += sample.position.as_dvec3().cross(force);
                    }
                }
                sums
            })
            .collect();
        for part in parts {
            for (total, sum) in totals.iter_mut().zip(part) {
                total.0 += sum.0;
                total.1 += sum.1;
            }
        }
    }

    /// The velocity gradient at particle `i`.
    #[inline]
    pub fn gradient(
        &self,
        i: usize,
        (list, k): (&List, usize),
        grain: &Grain,
        velocities: &[Vec3A],
    ) -> Mat3A {
        let (here, own) = (self.x[i], velocities[i]);
        let mut sum = Mat3A::ZERO;
        for (j, factor) in list.particles(k).iter() {
            let g = (here - self.x[j]) * factor;
            let change = velocities[j] - own;
            sum.x_axis += change * g.x;
            sum.y_axis += change * g.y;
            sum.z_axis += change * g.z;
        }
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            let g = (here - sample.position) * factor;
            let change = sample.gripped(sample.velocity_now(self.drifts) - own, grain.grip);
            sum += outer(change, g);
        }
        sum * grain.correction.matrix()
    }
}

/// How well a wall of this friction holds: fully below its Coulomb limit.
fn grip(normal: f32, sliding: f32, friction: f32) -> f32 {
    let limit = friction * normal;
    if sliding > limit { limit / sliding } else { 1.0 }
}

fn invert(moment: &Sym3) -> Sym3 {
    let trace = moment.trace();
    let matrix = moment.matrix();
    let determinant = matrix.determinant();
    if trace > LEAST_TRACE && determinant > LEAST_DETERMINANT * trace * trace * trace {
        return Sym3::of(&matrix.inverse());
    }
    Sym3::splat((3.0 / trace.max(LEAST_SCALED_TRACE)).min(MOST_SCALE))
}
