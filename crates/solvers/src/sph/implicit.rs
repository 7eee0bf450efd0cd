//! The default scheme: pressure and friction together, kept from step to step.
//!
//! Each sweep moves the particles by the stresses there are, measures the velocity gradient, and lets the stresses
//! answer: pressure to what still comes together, friction to what still shears, within the yield limit. Stresses are
//! those of the last step to begin with, so a pile at rest is a fixed point and costs no convergence.

use super::eight::{Eight, Terms};
use super::lists::{CHUNK, Four};
use super::operator::{Around, Grain, Site};
use super::shown::{Shown, Two, axes, dot, lanes};
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
            stiffness: self.stiffness,
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
    /// What a particle moves too fast by, times the weight of all around it. Four neighbours at a time. Nothing but ways to
    /// them is taken out: what is exchanged across them would take angular momentum along.
    fn excess(&self, site: Site<'_>) -> Vec3A {
        let mine = &self.shown[site.i];
        let gradient = mine.matrix().to_cols_array_2d();
        let gradient = gradient.map(|column| column.map(f32x4::splat));
        let pressure = f32x4::splat(mine.pressure().abs());
        let (here, own) = (lanes(site.here), lanes(self.v[site.i]));
        let mut excess = [f32x4::ZERO; 3];
        for four in site.particles.fours(site.i) {
            let Four { who, factors } = four;
            let ways = who.map(|j| lanes(self.around.x[j]) - here);
            let changes = who.map(|j| lanes(self.v[j]) - own);
            // What the gradients of both see.
            let theirs = axes(self.seen_by(four, ways));
            let way = axes(ways);
            let [x, y, z] = way;
            let seen: [f32x4; 3] = std::array::from_fn(|axis| {
                let [a, b, c] = gradient.map(|column| column[axis]);
                x.mul_add(a, y.mul_add(b, z.mul_add(c, theirs[axis])))
            });
            let parting = dot(way, axes(changes));
            let unseen = parting - dot(way, seen) * f32x4::HALF;
            let theirs = f32x4::new(who.map(|j| self.shown[j].pressure()));
            let loaded = theirs.abs().fast_min(pressure).simd_gt(f32x4::ZERO);
            let unseen = loaded & (unseen * f32x4::splat(self.strength));
            let matters = loaded | parting.simd_lt(f32x4::ZERO);
            let slowed = matters & (self.part(site.i, who) * parting);
            let squared = dot(way, way).fast_max(f32x4::splat(f32::MIN_POSITIVE));
            let shares = mine.shares(self.shown, who);
            let along = (unseen + slowed) * factors / squared * shares;
            for (excess, way) in excess.iter_mut().zip(way) {
                *excess += way * along;
            }
        }
        Vec3A::from_array(excess.map(f32x4::reduce_add))
    }

    /// How much the velocity should change on the ways to four neighbours by their own gradients.
    #[inline]
    fn seen_by(&self, four: Four, ways: [f32x4; 4]) -> [f32x4; 4] {
        let [first, second, third, fourth] = ways;
        let ways = [Two::new(first, second), Two::new(third, fourth)];
        let [(near, _), (far, _)] = four.twos();
        let [first, second] = [(near, ways[0]), (far, ways[1])].map(|(two, way)| {
            let [x, y, z] = Two::matrices(self.shown, two);
            let sum = x.times(way.along::<0>());
            let sum = y.times_plus(way.along::<1>(), sum);
            z.times_plus(way.along::<2>(), sum).split()
        });
        [first[0], first[1], second[0], second[1]]
    }

    /// The part that viscosity takes out of what a particle and four neighbours move towards each other.
    #[inline]
    fn part(&self, i: usize, who: [usize; 4]) -> f32x4 {
        let mine = self.shown[i].viscosity();
        if mine <= 0.0 {
            return f32x4::ZERO;
        }
        let theirs = f32x4::new(who.map(|j| self.shown[j].viscosity()));
        self.viscous.part(theirs.fast_min(f32x4::splat(mine)))
    }
}

#[inline]
fn show_stress(shown: &mut Shown, grain: &Grain, drag: Sym3) {
    let friction = grain.stress.plus(&drag);
    let sigma = friction.plus(&Sym3::splat(-shown.pressure()));
    shown.set_matrix(&(sigma.matrix() * grain.correction.matrix()));
}
