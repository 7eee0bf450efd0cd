//! Bodies that move by force, inside the solve: they answer to the particles sweep by sweep, as the particles do to them.

use super::lists::CHUNK;
use super::operator::{Around, Drift, Grain};
use barchan_sim::coupling::Impulses;
use barchan_sim::solids::{Inertia, Solids};
use glam::Vec3A;
use rayon::prelude::*;

/// The most that a push moves a place of a ball over what it does to its centre: 1 + 1/0.4.
const TURNING: f32 = 3.5;

/// How the bodies of a step answer.
pub struct Answer {
    bodies: Vec<Inertia>,
}

impl Answer {
    /// Of `solids`; `None` where no body moves by force.
    pub fn of(solids: &Solids) -> Option<Self> {
        let bodies: Vec<Inertia> = solids.all().iter().map(|solid| *solid.inertia()).collect();
        let some = bodies.iter().any(|body| body.inverse_mass > 0.0);
        some.then_some(Self { bodies })
    }

    /// What `impulses` do to the bodies' velocities.
    pub fn update(&self, impulses: Impulses, drifts: &mut Vec<Drift>) {
        drifts.clear();
        let sums = impulses.into_sums();
        drifts.extend(self.bodies.iter().zip(sums).map(|(body, sum)| {
            let (linear, angular) = body.answer(&sum);
            Drift {
                linear: linear.into(),
                angular: angular.into(),
                centre: body.center.into(),
            }
        }));
    }

    /// Makes particles at a body as compliant as all of them together make it: one sweep moves it by what they all give.
    pub fn soften(&self, around: &Around, grains: &mut [Grain], volume: f32) {
        let leans = |chunk: usize, grains: &[Grain]| -> Vec<(usize, usize, f32)> {
            let list = &around.lists[chunk];
            let lean = |k: usize| {
                let (body, lean) = self.lean(around, chunk * CHUNK + k, k)?;
                let size = (grains[k].correction.matrix() * lean).length();
                Some((chunk * CHUNK + k, body, size))
            };
            (0..grains.len())
                .filter(|k| !list.samples(*k).is_empty())
                .filter_map(lean)
                .collect()
        };
        let found: Vec<Vec<(usize, usize, f32)>> = grains
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, grains)| leans(chunk, grains))
            .collect();
        let mut sums = vec![0.0; self.bodies.len()];
        for (_, body, lean) in found.iter().flatten() {
            sums[*body] += lean;
        }
        for (i, body, lean) in found.into_iter().flatten() {
            let response = TURNING * self.bodies[body].inverse_mass * volume;
            grains[i].compliance += response * lean * sums[body];
        }
    }

    /// The dynamic body that a particle touches, and how much it leans on it.
    fn lean(&self, around: &Around, i: usize, k: usize) -> Option<(usize, Vec3A)> {
        let (mut body, mut lean) = (None, Vec3A::ZERO);
        for (b, factor) in around.lists[i / CHUNK].samples(k).iter() {
            let sample = &around.boundary.samples()[b];
            if self.bodies[sample.body as usize].inverse_mass > 0.0 {
                body = Some(sample.body as usize);
                lean += (around.x[i] - sample.position) * factor;
            }
        }
        body.map(|body| (body, lean))
    }
}
