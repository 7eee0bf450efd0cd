//! The default scheme: pressure and friction together, kept from step to step.
//!
//! Each sweep moves the particles by the stresses there are, measures the velocity gradient, and lets the stresses
//! answer: pressure to what still comes together, friction to what still shears, within the yield limit. Stresses are
//! those of the last step to begin with, so a pile at rest is a fixed point and costs no convergence.

use super::lists::CHUNK;
use super::operator::Grain;
use super::shown::Shown;
use super::tensor::Sym3;
use super::work::Work;
use crate::material::yield_surface::scale_one_to_yield;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;
use std::f32::consts::SQRT_2;

/// How much of its own answer each stress takes at once. Jacobi sweeps are stable while (PRESSURE + 2 FRICTION) times
/// 2.95, the largest response of a lattice, is below 2.
const PRESSURE: f32 = 0.2;
const FRICTION: f32 = 0.13;

/// Wet material's artificial viscosity spreads with this speed [m/s].
const SIGNAL_SPEED: f32 = 10.0;
/// Dry material's spreads with so many times the speed at which neighbours meet. Friction alone does not slow what flows at
/// its angle: an avalanche, here a spacing or two thick, would run out too far.
const HARSH: f32 = 60.0;
/// The most that viscosity takes out in a step.
const MOST_DRAG: f32 = 0.25;

/// Artificial viscosity in a step.
#[derive(Clone, Copy, Debug)]
pub struct Viscous {
    /// The step over the kernel's support [s/m].
    pub pace: f32,
}

impl Viscous {
    /// The part taken out of the `speed` [m/s] with which neighbours come together or part; `wet` is the viscosity of both.
    #[inline]
    fn part(self, wet: f32, speed: f32) -> f32 {
        let signal = wet * SIGNAL_SPEED + HARSH * speed.abs();
        (signal * self.pace).min(MOST_DRAG)
    }
}

/// Which sweep it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// The last of a step.
    Last,
    /// The first.
    First,
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
        let slow = self.slow;
        let (around, v) = (&self.around, &self.v);
        around.for_each(&mut self.shown, &mut self.grains, |site, shown, grain| {
            let gradient = around.gradient(site, grain, v);
            if sweep == Sweep::First {
                find_turn(grain, &gradient, slow);
            }
            answer(grain, shown, &gradient, dt);
            match sweep {
                Sweep::Last => shown.set_matrix(&gradient),
                Sweep::First | Sweep::Other => show_stress(shown, grain),
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
            if grain.role.is_out() {
                shown.set_matrix(&Mat3A::ZERO);
            }
        });
    }

    /// Takes out of the velocities what no gradient can see: differences between neighbours beyond a linear field.
    /// `strength` is the part taken out. Then viscosity, of what neighbours move towards each other or, under load, from each
    /// other: along the line between them, so that nothing stops to turn. The gradients are shown.
    pub fn filter(&mut self, strength: f32, viscous: Viscous, own: f32) {
        let (around, shown, v) = (&self.around, &self.shown, &self.v);
        around.for_each(&mut self.free, &mut self.grains, |site, smooth, _| {
            let mine = &shown[site.i];
            let mut rest = Vec3A::ZERO;
            for (j, factor) in site.particles.iter() {
                let (change, other) = (v[j] - v[site.i], &shown[j]);
                let way = around.x[j] - site.here;
                let parting = change.dot(way);
                let loaded = mine.pressure().min(other.pressure()) > 0.0;
                if loaded {
                    let linear = (mine.times(way) + other.times(way)) * 0.5;
                    rest -= (change - linear) * (factor * strength);
                }
                if loaded || parting < 0.0 {
                    let squared = way.length_squared().max(f32::MIN_POSITIVE);
                    let wet = mine.viscosity().min(other.viscosity());
                    let part = viscous.part(wet, parting / squared.sqrt());
                    rest -= way * (part * factor * parting / squared);
                }
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
    let against = rate.deviator().turned(grain.turn.into()).scaled(gain);
    let stress = grain.stress.plus(&against);
    let cosine = 1.0 / (1.0 + grain.mu * grain.mu).sqrt();
    let sine = grain.mu * cosine;
    let strength = sine * grain.load + cosine * grain.cohesion;
    grain.stress = stress.scaled(scale_one_to_yield(stress.invariants(), strength, sine));
}

/// Turns friction by half the friction angle against the spin, in proportion to how much of the motion is spin: the plane of
/// shearing is then one that Mohr and Coulomb's law lets slide. Shear slower than `slow` [1/s] turns nothing.
fn find_turn(grain: &mut Grain, gradient: &Mat3A, slow: f32) {
    let (x, y, z) = (gradient.x_axis, gradient.y_axis, gradient.z_axis);
    let curl = Vec3A::new(y.z - z.y, z.x - x.z, x.y - y.x);
    let rate = SQRT_2 * Sym3::of(gradient).deviator().norm();
    let spin = curl.length();
    let angle = -0.5 * grain.mu.atan() * (spin / (rate + slow)).min(1.0);
    grain.turn = (curl * ((0.5 * angle).tan() / spin.max(f32::MIN_POSITIVE))).into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shear_band_slides_at_the_friction_angle() {
        for (degrees, direction) in [(20f32, 1.0f32), (34.0, 1.0), (34.0, -1.0), (45.0, 1.0)] {
            // Layers of y that move along x.
            let shear = Vec3A::X * (3.0 * direction);
            let gradient = Mat3A::from_cols(Vec3A::ZERO, shear, Vec3A::ZERO);
            let mut grain = Grain {
                mu: degrees.to_radians().tan(),
                compliance: 1.0,
                load: 500.0,
                ..Grain::default()
            };
            let mut shown = Shown::new(500.0, 0.0);
            find_turn(&mut grain, &gradient, 1e-6);
            for _ in 0..100 {
                answer(&mut grain, &mut shown, &gradient, 1e-3);
            }
            let (along, across) = (grain.stress.off[2], 500.0 - grain.stress.diagonal[1]);
            let found = (along * direction / across).atan().to_degrees();
            assert!((found - degrees).abs() < 0.1, "{found} for {degrees}");
        }
    }

    #[test]
    fn a_slope_at_rest_stands_no_steeper_than_its_angle() {
        // The steepest direction of any stress that holds: asin((σ₁ − σ₃) / (σ₁ + σ₃)).
        let mut grain = Grain {
            mu: 30f32.to_radians().tan(),
            compliance: 1.0,
            load: 800.0,
            ..Grain::default()
        };
        let mut shown = Shown::new(800.0, 0.0);
        for axes in [[1.0, 0.0, -1.0], [1.0, -0.5, -0.5], [0.5, 0.5, -1.0]] {
            let gradient = Mat3A::from_diagonal(axes.into());
            for _ in 0..100 {
                answer(&mut grain, &mut shown, &gradient, 1e-3);
            }
            let mut stress = grain.stress.diagonal.map(|s| 800.0 - s);
            stress.sort_by(f32::total_cmp);
            let sine = (stress[2] - stress[0]) / (stress[2] + stress[0]);
            assert!((sine - 0.5).abs() < 1e-3, "{axes:?}: {sine}");
        }
    }
}
