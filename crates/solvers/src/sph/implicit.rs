//! The default scheme: pressure and friction together, kept from step to step.
//!
//! Each sweep moves the particles by the stresses there are, measures the velocity gradient, and lets the stresses
//! answer: pressure to what still comes together, friction to what still shears, within the yield limit. Stresses are
//! those of the last step to begin with, so a pile at rest is a fixed point and costs no convergence.

use super::eight::{Eight, Terms};
use super::lists::CHUNK;
use super::operator::{Around, Grain, Site};
use super::shown::{Shown, dot, lanes, vector, weighted};
use super::tensor::Sym3;
use super::work::Work;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;
use wide::f32x4;

/// Wet material's artificial viscosity spreads with this speed [m/s].
const SIGNAL_SPEED: f32 = 10.0;
/// The most that viscosity takes out in a step.
const MOST_TAKEN: f32 = 0.34;

/// Artificial viscosity in a step.
#[derive(Clone, Copy, Debug)]
pub struct Viscous {
    /// The step over the kernel's support [s/m].
    pub pace: f32,
}

impl Viscous {
    /// The part taken out of what neighbours move towards or from each other; `wet` is the viscosity of both.
    #[inline]
    fn part(self, wet: f32x4) -> f32x4 {
        (wet * f32x4::splat(SIGNAL_SPEED * self.pace)).fast_min(f32x4::splat(MOST_TAKEN))
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
            .for_each(|(shown, grain)| show_stress(shown, grain, Sym3::default()));
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
        let terms = Terms {
            dt,
            turn: (sweep == Sweep::First).then_some(self.slow),
            flow: self.flow,
            short: self.short,
        };
        let tell = |shown: &mut Shown, grain: &Grain, drag, gradient: &Mat3A| match sweep {
            Sweep::Last => shown.set_matrix(gradient),
            Sweep::First | Sweep::Other => show_stress(shown, grain, drag),
        };
        let (around, v) = (&self.around, &self.v);
        self.shown
            .par_chunks_mut(CHUNK)
            .zip(self.grains.par_chunks_mut(CHUNK))
            .zip(&around.lists)
            .enumerate()
            .for_each(|(chunk, ((shown, grains), list))| {
                let mut eight = Eight::default();
                for k in 0..grains.len() {
                    if grains[k].role.is_out() {
                        continue;
                    }
                    let gradient = around.gradient(around.site(chunk, k, list), &grains[k], v);
                    if eight.push(k, gradient) {
                        eight.answer((shown, grains), terms, tell);
                    }
                }
                eight.answer((shown, grains), terms, tell);
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

    /// Takes out of the velocities what no gradient can see: differences between neighbours that bear a load, beyond a linear field.
    /// `strength` is the part taken out. Then viscosity, of what neighbours move towards each other or, under load, from each
    /// other. Both along the line between them, so that nothing stops to turn. The gradients are shown.
    pub fn filter(&mut self, strength: f32, viscous: Viscous, own: f32) {
        let neighbours = Neighbours {
            around: &self.around,
            shown: &self.shown,
            v: &self.v,
            strength,
            viscous,
        };
        let (around, v) = (&self.around, &self.v);
        around.for_each(&mut self.free, &mut self.grains, |site, smooth, _| {
            *smooth = v[site.i] - neighbours.excess(site) / own;
        });
        std::mem::swap(&mut self.v, &mut self.free);
    }
}

/// What the filter looks up. The gradients are shown.
struct Neighbours<'a> {
    around: &'a Around,
    shown: &'a [Shown],
    v: &'a [Vec3A],
    strength: f32,
    viscous: Viscous,
}

impl Neighbours<'_> {
    /// What a particle moves too fast by, times the weight of all around it. Four neighbours at a time.
    fn excess(&self, site: Site<'_>) -> Vec3A {
        let (here, own) = (lanes(site.here), lanes(self.v[site.i]));
        let mut excess = f32x4::ZERO;
        for (four, factors) in site.particles.fours(site.i) {
            let ways = four.map(|j| lanes(self.around.x[j]) - here);
            let changes = four.map(|j| lanes(self.v[j]) - own);
            let along = self.along(site.i, (&four, factors), (&ways, &changes));
            excess += weighted(&ways, along);
        }
        vector(excess)
    }

    /// The parts of the ways to four neighbours that are taken out. Nothing but ways is: what is exchanged across them would take
    /// angular momentum along.
    #[inline]
    fn along(
        &self,
        i: usize,
        (four, factors): (&[usize; 4], f32x4),
        (ways, changes): (&[f32x4; 4], &[f32x4; 4]),
    ) -> f32x4 {
        let mine = &self.shown[i];
        let ([x, y, z, _], [u, v, w, _]) = (f32x4::transpose(*ways), f32x4::transpose(*changes));
        let parting = dot([x, y, z], [u, v, w]);
        let squared = dot([x, y, z], [x, y, z]).fast_max(f32x4::splat(f32::MIN_POSITIVE));
        let pressure = f32x4::new(four.map(|j| self.shown[j].pressure()));
        let least = pressure.abs().fast_min(f32x4::splat(mine.pressure().abs()));
        let loaded = least.simd_gt(f32x4::ZERO);
        // What the gradients of both see.
        let seen = std::array::from_fn(|k| {
            let way = vector(ways[k]);
            mine.times_lanes(way) + self.shown[four[k]].times_lanes(way)
        });
        let [u, v, w, _] = f32x4::transpose(seen);
        let unseen = parting - dot([x, y, z], [u, v, w]) * f32x4::HALF;
        let unseen = loaded & (unseen * f32x4::splat(self.strength));
        let wet = f32x4::new(four.map(|j| self.shown[j].viscosity()));
        let wet = wet.fast_min(f32x4::splat(mine.viscosity()));
        let part = self.viscous.part(wet);
        let matters = loaded | parting.simd_lt(f32x4::ZERO);
        (unseen + (matters & (part * parting))) * factors / squared
    }
}

#[inline]
fn show_stress(shown: &mut Shown, grain: &Grain, drag: Sym3) {
    let friction = grain.stress.plus(&drag);
    let sigma = friction.plus(&Sym3::splat(-shown.pressure()));
    shown.set_matrix(&(sigma.matrix() * grain.correction.matrix()));
}
