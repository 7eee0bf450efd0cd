//! The published scheme (Ihmsen, Wahl & Teschner 2013, section 3): pressure and friction anew in each step, by a fixed
//! number of predictions and corrections, with its printed slips repaired.
//!
//! Repaired: the velocity gradient takes differences (eq. 3 lacks −v_i); the prefactor of D is turned over (eq. 12), the
//! sign of the friction force too (eqs. 5 and 11 together feed energy); the strain rate is of the gradient (eq. 14); the
//! norm of the stress is limited, not its components (eq. 13 against eq. 4); the mass makes a lattice full (section 3.5).

use super::boundary::Placed;
use super::kernel::Kernel;
use super::lists::{CHUNK, List};
use super::operator::{Grain, Role};
use super::tensor::Sym3;
use super::work::Work;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;

/// Below this relative density particles meet one by one (Algorithm 1).
const SPARSE: f32 = 0.6;
/// Artificial viscosity of dry material (section 3.4) and the speed that it spreads with [m/s] (eq. 20).
const VISCOSITY: f32 = 0.01;
/// Artificial viscosity at a wall of friction coefficient one; rougher walls have no more, or the step would be too long.
const WALL_VISCOSITY: f32 = 0.1;
const SIGNAL_SPEED: f32 = 30.0;
/// Keeps the viscosity finite for particles that meet (eq. 20).
const SOFTENING: f32 = 0.01;

/// Part of the stress gain of eq. 12 that is taken: in three dimensions Jacobi sweeps on pressure and shear together
/// diverge with the whole of it.
const STRESS_SHARE: f32 = 1.0 / 6.0;

/// What stays the same during a step.
#[derive(Clone, Copy)]
pub struct Prediction {
    kernel: Kernel,
    dt: f32,
    /// Pressure for a unit of relative density, times the lightness (eq. 7).
    pressure_gain: f32,
    /// Stress for a unit of strain rate, times the lightness (eq. 12).
    stress_gain: f32,
}

impl Prediction {
    /// For steps of `dt` [s]; gains are those of a particle in a full lattice.
    pub fn new(kernel: Kernel, dt: f32) -> Self {
        let axis = || (-2..=2).map(|c: i32| c as f32 * kernel.spacing);
        let squares: f32 = axis()
            .flat_map(|x| axis().flat_map(move |y| axis().map(move |z| x * x + y * y + z * z)))
            .filter(|squared| *squared > 0.0 && *squared < kernel.support * kernel.support)
            .map(|squared| (kernel.slope(squared) * kernel.volume).powi(2) * squared)
            .sum();
        Self {
            kernel,
            dt,
            pressure_gain: 1.0 / (2.0 * dt * dt * squares),
            stress_gain: STRESS_SHARE * 3.0 / (2.0 * dt * squares),
        }
    }

    /// Solves for the velocities of `work`, whose `free` ones hold gravity; `transfer` becomes the stress.
    pub fn solve(&self, work: &mut Work, iterations: u32) {
        self.begin(work);
        for _ in 0..iterations {
            self.accelerate(work);
            self.correct(work);
        }
        self.accelerate(work);
    }

    fn begin(&self, work: &mut Work) {
        for (grain, pressure) in work.grains.iter_mut().zip(&mut work.pressure) {
            grain.correction = Sym3::splat(1.0);
            // The sine of the angle, where the other scheme takes its tangent.
            grain.mu /= (1.0 + grain.mu * grain.mu).sqrt();
            if grain.role != Role::Asleep {
                grain.stress = Sym3::default();
                *pressure = 0.0;
            }
        }
        work.update_transfer();
    }

    /// Velocities of the stresses there are (eq. 15).
    fn accelerate(&self, work: &mut Work) {
        let Work {
            x,
            v,
            free,
            lists,
            boundary,
            transfer,
            density,
            grains,
            ..
        } = work;
        let (x, free, samples) = (&*x, &*free, boundary.samples());
        let (transfer, density) = (&*transfer, &*density);
        v.par_chunks_mut(CHUNK)
            .zip(grains.par_chunks(CHUNK))
            .zip(&*lists)
            .enumerate()
            .for_each(|(chunk, ((v, grains), list))| {
                for (k, (v, grain)) in v.iter_mut().zip(grains).enumerate() {
                    let i = chunk * CHUNK + k;
                    if grain.role == Role::Asleep {
                        continue;
                    }
                    let pair = Pair {
                        x,
                        free,
                        density,
                        transfer,
                    };
                    let (mut push, mut jolt) = self.push_of_particles(i, (list, k), &pair);
                    for (b, factor) in list.samples(k).iter() {
                        push += self.push_of_sample(i, &samples[b], (factor, grain), &pair);
                    }
                    jolt += push * grain.lightness;
                    *v = free[i] + jolt * self.dt;
                }
            });
    }

    /// Force per volume of the stresses, and acceleration of viscosity and of single meetings.
    fn push_of_particles(
        &self,
        i: usize,
        (list, k): (&List, usize),
        pair: &Pair,
    ) -> (Vec3A, Vec3A) {
        let (mut push, mut jolt) = (Vec3A::ZERO, Vec3A::ZERO);
        for (j, factor) in list.particles(k).iter() {
            let way = pair.x[i] - pair.x[j];
            let g = way * factor;
            push += (pair.transfer[i] + pair.transfer[j]) * g;
            let closing = (pair.free[i] - pair.free[j]).dot(way);
            if closing >= 0.0 {
                continue;
            }
            let squared = way.length_squared();
            let soft = squared + SOFTENING * self.kernel.support.powi(2);
            jolt += g * (self.viscous(VISCOSITY) * closing / soft);
            let sparse = pair.density[i] < SPARSE || pair.density[j] < SPARSE;
            if sparse && squared < self.kernel.spacing.powi(2) {
                jolt -= way * (0.5 * closing / (squared * self.dt));
            }
        }
        (push, jolt)
    }

    fn viscous(&self, strength: f32) -> f32 {
        strength * self.kernel.support * SIGNAL_SPEED * 0.5
    }

    /// Pressure, and of the two dissipative forces the larger (eqs. 17 to 21).
    fn push_of_sample(
        &self,
        i: usize,
        sample: &Placed,
        (factor, grain): (f32, &Grain),
        pair: &Pair,
    ) -> Vec3A {
        let way = pair.x[i] - sample.position;
        let g = way * factor;
        let sigma = Sym3::of(&pair.transfer[i]);
        let pressure = sigma.trace() / 3.0;
        let friction = sigma.deviator().matrix() * g;
        let closing = (pair.free[i] - sample.velocity).dot(way).min(0.0);
        let soft = way.length_squared() + SOFTENING * self.kernel.support.powi(2);
        let viscous = g
            * (self.viscous(WALL_VISCOSITY * sample.friction.min(1.0)) * closing
                / (soft * grain.lightness));
        let larger = if viscous.length_squared() > friction.length_squared() {
            viscous
        } else {
            friction
        };
        g * pressure + larger
    }

    /// Predicts density and strain rate, and corrects pressure and stress (eqs. 6, 8, 11, 13, 14).
    fn correct(&self, work: &mut Work) {
        let Work {
            x,
            v,
            lists,
            boundary,
            drifts,
            transfer,
            pressure,
            density,
            grains,
            ..
        } = work;
        let around = super::operator::Around {
            x,
            lists,
            samples: boundary.samples(),
            drifts,
        };
        let (x, v, density, samples) = (&*x, &*v, &*density, boundary.samples());
        transfer
            .par_chunks_mut(CHUNK)
            .zip(grains.par_chunks_mut(CHUNK))
            .zip(pressure.par_chunks_mut(CHUNK))
            .zip(&*lists)
            .enumerate()
            .for_each(|(chunk, (((transfer, grains), pressure), list))| {
                for (k, grain) in grains.iter_mut().enumerate() {
                    let i = chunk * CHUNK + k;
                    if grain.role == Role::Asleep || density[i] < SPARSE {
                        continue;
                    }
                    let predicted = self.predict_density(i, (list, k), (x, v), samples);
                    let gradient = around.gradient(i, (list, k), grain, v);
                    self.correct_one(grain, &mut pressure[k], predicted, &gradient);
                    transfer[k] = grain.stress.plus(&Sym3::splat(-pressure[k])).matrix();
                }
            });
    }

    fn predict_density(
        &self,
        i: usize,
        (list, k): (&List, usize),
        (x, v): (&[Vec3A], &[Vec3A]),
        samples: &[Placed],
    ) -> f32 {
        let here = x[i] + v[i] * self.dt;
        let mut sum = self.kernel.value(0.0);
        for (j, _) in list.particles(k).iter() {
            let other = x[j] + v[j] * self.dt;
            sum += self.kernel.value((here - other).length_squared());
        }
        let mut density = sum * self.kernel.volume;
        for (b, _) in list.samples(k).iter() {
            let sample = &samples[b];
            let other = sample.position + sample.velocity * self.dt;
            density += sample.volume * self.kernel.value((here - other).length_squared());
        }
        density
    }

    fn correct_one(&self, grain: &mut Grain, pressure: &mut f32, density: f32, gradient: &Mat3A) {
        let rest = 1.0 / grain.lightness;
        *pressure += self.pressure_gain * rest * (density - 1.0).max(0.0);
        let rate = Sym3::of(gradient).deviator();
        let stress = grain.stress.plus(&rate.scaled(self.stress_gain * rest));
        let most = crate::material::friction::yield_norm(grain.mu, grain.cohesion, *pressure);
        let norm = stress.norm();
        grain.stress = if norm > most {
            stress.scaled(most / norm)
        } else {
            stress
        };
    }
}

/// What pairs of particles look up.
struct Pair<'a> {
    x: &'a [Vec3A],
    free: &'a [Vec3A],
    density: &'a [f32],
    transfer: &'a [Mat3A],
}
