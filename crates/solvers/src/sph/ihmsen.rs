//! The published scheme (Ihmsen, Wahl & Teschner 2013, section 3): pressure and friction anew in each step, by a fixed
//! number of predictions and corrections, with its printed slips repaired.
//!
//! Repaired: the velocity gradient takes differences (eq. 3 lacks −v_i); the prefactor of D is turned over (eq. 12), the
//! sign of the friction force too (eqs. 5 and 11 together feed energy); the strain rate is of the gradient (eq. 14); the
//! norm of the stress is limited, not its components (eq. 13 against eq. 4); the mass makes a lattice full (section 3.5). Gains
//! are the prototype's, less where particles are more crowded than that.

use super::boundary::Placed;
use super::kernel::Kernel;
use super::operator::{Around, Grain, Site};
use super::shown::Shown;
use super::tensor::Sym3;
use super::work::Work;
use crate::material::friction::yield_norm;
use glam::{Mat3A, Vec3A};

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
    /// What a particle in a full lattice resists with [1/m²].
    resistance: f32,
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
            resistance: squares,
        }
    }

    /// Solves for the velocities of `work`, whose `free` ones hold gravity.
    pub fn solve(&self, work: &mut Work, iterations: u32) {
        self.begin(work);
        for _ in 0..iterations {
            self.accelerate(work);
            self.correct(work);
        }
        self.accelerate(work);
    }

    fn begin(&self, work: &mut Work) {
        for (grain, shown) in work.grains.iter_mut().zip(&mut work.shown) {
            grain.correction = Sym3::splat(1.0);
            // The sine of the angle, where the other scheme takes its tangent.
            grain.mu /= (1.0 + grain.mu * grain.mu).sqrt();
            if !grain.role.is_out() {
                grain.stress = Sym3::default();
                shown.set_pressure(0.0);
            }
        }
        work.show_stress();
    }

    /// Velocities of the stresses there are (eq. 15).
    fn accelerate(&self, work: &mut Work) {
        let pairs = Pairs {
            around: &work.around,
            free: &work.free,
            density: &work.density,
            shown: &work.shown,
        };
        let around = pairs.around;
        around.for_each(&mut work.v, &mut work.grains, |site, v, grain| {
            let (mut push, mut jolt) = self.push_of_particles(site, grain, &pairs);
            for (b, factor) in site.samples.iter() {
                let sample = &around.boundary.samples()[b];
                push += self.push_of_sample(site, sample, (factor, &*grain), &pairs);
            }
            jolt += push * grain.lightness;
            *v = pairs.free[site.i] + jolt * self.dt;
        });
    }

    /// Force per volume of the stresses, and acceleration of viscosity and of single meetings.
    fn push_of_particles(
        &self,
        site: Site<'_>,
        grain: &Grain,
        pairs: &Pairs<'_>,
    ) -> (Vec3A, Vec3A) {
        let i = site.i;
        let mut push = pairs.shown[i].times(Vec3A::from(grain.lean));
        let mut jolt = Vec3A::ZERO;
        for (j, factor) in site.particles.iter() {
            let way = site.here - pairs.around.x[j];
            let g = way * factor;
            push += pairs.shown[j].times(g);
            let closing = (pairs.free[i] - pairs.free[j]).dot(way);
            if closing >= 0.0 {
                continue;
            }
            let squared = way.length_squared();
            let soft = squared + SOFTENING * self.kernel.support.powi(2);
            let closing = closing * pairs.shown[i].share(&pairs.shown[j]);
            jolt += g * (self.viscous(VISCOSITY) * closing / soft);
            let sparse = pairs.density[i].min(pairs.density[j]) < SPARSE;
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
        site: Site<'_>,
        sample: &Placed,
        (factor, grain): (f32, &Grain),
        pairs: &Pairs<'_>,
    ) -> Vec3A {
        let way = site.here - sample.position;
        let g = way * factor;
        let pressure = -pairs.shown[site.i].pressure();
        let friction = grain.stress.matrix() * g;
        let closing = (pairs.free[site.i] - sample.velocity).dot(way).min(0.0);
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
        let (around, v, density) = (&work.around, &work.v, &work.density);
        around.for_each(&mut work.shown, &mut work.grains, |site, shown, grain| {
            if density[site.i] < SPARSE {
                return;
            }
            let predicted = self.predict_density(site, around, v);
            let gradient = around.gradient(site, grain, v);
            self.correct_one(grain, shown, predicted, &gradient);
        });
        work.show_stress();
    }

    fn predict_density(&self, site: Site<'_>, around: &Around, v: &[Vec3A]) -> f32 {
        let here = site.here + v[site.i] * self.dt;
        let mut sum = self.kernel.value(0.0);
        for (j, _) in site.particles.iter() {
            let other = around.x[j] + v[j] * self.dt;
            sum += self.kernel.value((here - other).length_squared());
        }
        let mut density = sum * self.kernel.volume;
        for (b, _) in site.samples.iter() {
            let sample = &around.boundary.samples()[b];
            let other = sample.position + sample.velocity * self.dt;
            density += sample.volume * self.kernel.value((here - other).length_squared());
        }
        density
    }

    fn correct_one(&self, grain: &mut Grain, shown: &mut Shown, density: f32, gradient: &Mat3A) {
        // Crowded ones answer more than the prototype does, and would be thrown apart.
        let crowded = grain.compliance / (grain.lightness * self.resistance);
        let share = 1.0 / (grain.lightness * crowded.max(1.0));
        let more = self.pressure_gain * share * (density - 1.0).max(0.0);
        shown.set_pressure(shown.pressure() + more);
        let rate = Sym3::of(gradient).deviator();
        let most = yield_norm(grain.mu, grain.cohesion, shown.pressure());
        grain.stress = grain
            .stress
            .plus(&rate.scaled(self.stress_gain * share))
            .within(most);
    }
}

/// What pairs of particles look up.
struct Pairs<'a> {
    around: &'a Around,
    free: &'a [Vec3A],
    density: &'a [f32],
    shown: &'a [Shown],
}
