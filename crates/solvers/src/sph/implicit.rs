//! The default scheme: pressure and friction together, kept from step to step.
//!
//! Each sweep moves the particles by the stresses there are, measures the velocity gradient, and lets the stresses
//! answer: pressure to what still comes together, friction to what still shears, within the yield limit. Stresses are
//! those of the last step to begin with, so a pile at rest is a fixed point and costs no convergence.

use super::lists::CHUNK;
use super::operator::{Grain, Role};
use super::shown::Shown;
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
    /// Shows σ L of each particle.
    pub fn show_stress(&mut self) {
        self.shown
            .par_iter_mut()
            .zip(&self.grains)
            .with_min_len(CHUNK)
            .for_each(|(shown, grain)| show_stress(shown, grain));
    }

    /// Velocities from the free ones and the stresses; `own` is a particle's weight in the mean pressure.
    pub fn move_by_stress(&mut self, dt: f32, own: f32) {
        let (around, shown, free) = (&self.around, &self.shown, &self.free);
        around.for_each(&mut self.v, &mut self.grains, |site, v, grain| {
            let push = around.push(site, shown, grain, own);
            *v = free[site.i] + push * (dt * grain.lightness);
        });
    }

    /// Lets the stresses answer to the velocity gradient. What is shown becomes what they do next or, after the last
    /// sweep, the gradient itself.
    pub fn relax(&mut self, dt: f32, sweep: Sweep) {
        let (around, v) = (&self.around, &self.v);
        around.for_each(&mut self.shown, &mut self.grains, |site, shown, grain| {
            let gradient = around.gradient(site, grain, v);
            answer(grain, shown, &gradient, dt);
            match sweep {
                Sweep::Last => shown.set_matrix(&gradient),
                Sweep::Other => show_stress(shown, grain),
            }
        });
        if sweep == Sweep::Last {
            self.still_sleepers();
        }
    }

    /// Shows the velocity gradients of the solved velocities.
    pub fn differentiate(&mut self) {
        let (around, v) = (&self.around, &self.v);
        around.for_each(&mut self.shown, &mut self.grains, |site, shown, grain| {
            shown.set_matrix(&around.gradient(site, grain, v));
        });
        self.still_sleepers();
    }

    /// Those asleep have no gradient.
    fn still_sleepers(&mut self) {
        let own = self.shown.par_iter_mut().zip(&self.grains);
        own.with_min_len(CHUNK).for_each(|(shown, grain)| {
            if grain.role == Role::Asleep {
                shown.set_matrix(&Mat3A::ZERO);
            }
        });
    }

    /// Takes out of the velocities what no gradient can see: differences between neighbours beyond a linear field.
    /// `strength` is the part taken out, `drag` that of the whole difference per unit of viscosity. The gradients are
    /// shown.
    pub fn filter(&mut self, (strength, drag): (f32, f32), own: f32) {
        let (around, shown, v) = (&self.around, &self.shown, &self.v);
        around.for_each(&mut self.free, &mut self.grains, |site, smooth, _| {
            let mine = &shown[site.i];
            let mut rest = Vec3A::ZERO;
            for (j, factor) in site.particles.iter() {
                let (change, other) = (v[j] - v[site.i], &shown[j]);
                if mine.pressure().min(other.pressure()) > 0.0 {
                    let way = around.x[j] - site.here;
                    let linear = (mine.times(way) + other.times(way)) * 0.5;
                    rest -= (change - linear) * (factor * strength);
                }
                let wet = mine.viscosity().min(other.viscosity());
                rest -= change * (factor * wet * drag);
            }
            *smooth = v[site.i] + rest / own;
        });
        std::mem::swap(&mut self.v, &mut self.free);
    }
}

#[inline]
fn show_stress(shown: &mut Shown, grain: &Grain) {
    let sigma = grain.stress.plus(&Sym3::splat(-shown.pressure()));
    shown.set_matrix(&(sigma.matrix() * grain.correction.matrix()));
}

/// One particle's stresses answer to its velocity gradient.
fn answer(grain: &mut Grain, shown: &mut Shown, gradient: &Mat3A, dt: f32) {
    let rate = Sym3::of(gradient);
    let closing = grain.gap - dt * rate.trace();
    let more = PRESSURE * closing / (dt * dt * grain.compliance);
    shown.set_pressure((shown.pressure() + more).max(0.0));
    let gain = 3.0 * FRICTION / (dt * grain.compliance);
    let most = yield_norm(grain.mu, grain.cohesion, grain.load);
    grain.stress = grain
        .stress
        .plus(&rate.deviator().scaled(gain))
        .within(most);
}
