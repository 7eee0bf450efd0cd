//! The default scheme: pressure and friction together, kept from step to step.
//!
//! Each sweep moves the particles by the stresses there are, measures the velocity gradient, and lets the stresses
//! answer: pressure to what still comes together, friction to what still shears, within the yield limit. Stresses are
//! those of the last step to begin with, so a pile at rest is a fixed point and costs no convergence.

use super::lists::CHUNK;
use super::operator::{Grain, Role};
use super::tensor::Sym3;
use super::work::Work;
use crate::material::friction::yield_norm;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;

/// How much of its own answer each stress takes at once. Jacobi sweeps are stable while (PRESSURE + 2 FRICTION) times
/// 2.95, the largest response of a lattice, is below 2.
const PRESSURE: f32 = 0.2;
const FRICTION: f32 = 0.13;

/// Which sweep it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// The last of a step.
    Last,
    /// Any other.
    Other,
}

impl Work {
    /// σ L of each particle.
    pub fn update_transfer(&mut self) {
        self.transfer
            .par_iter_mut()
            .zip(&self.grains)
            .zip(&self.pressure)
            .with_min_len(CHUNK)
            .for_each(|((transfer, grain), pressure)| {
                *transfer = stress_transfer(grain, *pressure);
            });
    }

    /// Velocities from the free ones and the stresses; `own` is a particle's weight in the mean pressure.
    pub fn move_by_stress(&mut self, dt: f32, own: f32) {
        let Self {
            x,
            v,
            free,
            lists,
            boundary,
            drifts,
            transfer,
            grains,
            pressure,
            ..
        } = self;
        let around = super::operator::Around {
            x,
            lists,
            samples: boundary.samples(),
            drifts,
        };
        let free = &*free;
        around.push((transfer, pressure, own), grains, v, |i, grain, push| {
            free[i] + push * (dt * grain.lightness)
        });
    }

    /// Lets the stresses answer to the velocity gradient. `transfer` becomes what they do next or, after the last sweep,
    /// the gradient itself.
    pub fn relax(&mut self, dt: f32, sweep: Sweep) {
        let Self {
            x,
            v,
            lists,
            boundary,
            drifts,
            transfer,
            grains,
            pressure,
            ..
        } = self;
        let around = super::operator::Around {
            x,
            lists,
            samples: boundary.samples(),
            drifts,
        };
        let v = &*v;
        transfer
            .par_chunks_mut(CHUNK)
            .zip(grains.par_chunks_mut(CHUNK))
            .zip(pressure.par_chunks_mut(CHUNK))
            .zip(&*lists)
            .enumerate()
            .for_each(|(chunk, (((transfer, grains), pressure), list))| {
                for (k, grain) in grains.iter_mut().enumerate() {
                    if grain.role == Role::Asleep {
                        if sweep == Sweep::Last {
                            transfer[k] = Mat3A::ZERO;
                        }
                        continue;
                    }
                    let gradient = around.gradient(chunk * CHUNK + k, (list, k), grain, v);
                    answer(grain, &mut pressure[k], &gradient, dt);
                    transfer[k] = match sweep {
                        Sweep::Last => gradient,
                        Sweep::Other => stress_transfer(grain, pressure[k]),
                    };
                }
            });
    }
}

#[inline]
fn stress_transfer(grain: &Grain, pressure: f32) -> Mat3A {
    let sigma = grain.stress.plus(&Sym3::splat(-pressure));
    sigma.matrix() * grain.correction.matrix()
}

/// One particle's stresses answer to its velocity gradient.
fn answer(grain: &mut Grain, pressure: &mut f32, gradient: &Mat3A, dt: f32) {
    let rate = Sym3::of(gradient);
    let closing = grain.gap - dt * rate.trace();
    *pressure = (*pressure + PRESSURE * closing / (dt * dt * grain.compliance)).max(0.0);
    let gain = 3.0 * FRICTION / (dt * grain.compliance);
    let stress = grain.stress.plus(&rate.deviator().scaled(gain));
    let (norm, most) = (
        stress.norm(),
        yield_norm(grain.mu, grain.cohesion, grain.load),
    );
    grain.stress = if norm > most {
        stress.scaled(most / norm)
    } else {
        stress
    };
}

impl Work {
    /// The velocity gradients of the solved velocities, into `transfer`.
    pub fn differentiate(&mut self) {
        let Self {
            x,
            v,
            lists,
            boundary,
            drifts,
            transfer,
            grains,
            ..
        } = self;
        let around = super::operator::Around {
            x,
            lists,
            samples: boundary.samples(),
            drifts,
        };
        let (v, grains) = (&*v, &*grains);
        transfer
            .par_chunks_mut(CHUNK)
            .zip(&*lists)
            .enumerate()
            .for_each(|(chunk, (gradients, list))| {
                for (k, gradient) in gradients.iter_mut().enumerate() {
                    let i = chunk * CHUNK + k;
                    *gradient = around.gradient(i, (list, k), &grains[i], v);
                }
            });
    }

    /// Takes out of the velocities what no gradient can see: differences between neighbours beyond a linear field.
    /// `strength` is the part taken out, `drag` that of the whole difference per unit of viscosity; `transfer` holds the
    /// gradients.
    pub fn filter(&mut self, (strength, drag): (f32, f32), own: f32) {
        let Self {
            x,
            v,
            free,
            lists,
            transfer,
            pressure,
            grains,
            ..
        } = self;
        let (x, v, gradients, pressure, grains) = (&*x, &*v, &*transfer, &*pressure, &*grains);
        free.par_chunks_mut(CHUNK)
            .zip(&*lists)
            .enumerate()
            .for_each(|(chunk, (free, list))| {
                for (k, smooth) in free.iter_mut().enumerate() {
                    let i = chunk * CHUNK + k;
                    *smooth = v[i];
                    if grains[i].role == Role::Asleep {
                        continue;
                    }
                    let mut rest = Vec3A::ZERO;
                    for (j, factor) in list.particles(k).iter() {
                        let change = v[j] - v[i];
                        if pressure[i] > 0.0 && pressure[j] > 0.0 {
                            let mean = (gradients[i] + gradients[j]) * 0.5;
                            rest -= (change - mean * (x[j] - x[i])) * (factor * strength);
                        }
                        let wet = grains[i].viscosity.min(grains[j].viscosity);
                        rest -= change * (factor * wet * drag);
                    }
                    *smooth += rest / own;
                }
            });
        std::mem::swap(&mut self.v, &mut self.free);
    }
}
