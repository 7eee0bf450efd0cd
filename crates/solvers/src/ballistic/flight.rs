//! Flight between touches, exact in the step.

use crate::material::drag::Drag;
use barchan_sim::model::{Material, Model};
use glam::Vec3;

/// How grains of one material fly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    gravity: Vec3,
    air: Option<(Drag, Vec3)>,
}

impl Flight {
    pub fn new(model: &Model, material: &Material) -> Self {
        let drag = |air: &barchan_sim::model::Air| {
            Drag::new(
                material.grain_size,
                material.grain_density,
                air.density,
                air.viscosity,
            )
        };
        Self {
            gravity: model.gravity,
            air: model.air.as_ref().map(|air| (drag(air), air.wind)),
        }
    }

    /// Displacement [m] and velocity [m/s] after `time` [s] of flight at `velocity` to begin with.
    #[inline]
    pub fn after(&self, velocity: Vec3, time: f32) -> (Vec3, Vec3) {
        match &self.air {
            None => (
                velocity * time + self.gravity * (0.5 * time * time),
                velocity + self.gravity * time,
            ),
            Some((drag, wind)) => self.in_air(velocity, time, drag, *wind),
        }
    }

    fn in_air(&self, velocity: Vec3, time: f32, drag: &Drag, wind: Vec3) -> (Vec3, Vec3) {
        // The response time changes with the speed: take that of the middle of the step.
        let gravity = self.gravity * drag.buoyancy;
        let (_, half) = relax(
            velocity,
            wind,
            gravity,
            drag.response_time((velocity - wind).length()),
            0.5 * time,
        );
        relax(
            velocity,
            wind,
            gravity,
            drag.response_time((half - wind).length()),
            time,
        )
    }

    /// Acceleration [m/s²] of a grain at rest: what holds it down where it lies.
    pub fn pull(&self, velocity: Vec3) -> Vec3 {
        match &self.air {
            None => self.gravity,
            Some((drag, wind)) => {
                let relative = *wind - velocity;
                self.gravity * drag.buoyancy + relative / drag.response_time(relative.length())
            }
        }
    }
}

/// The exact solution of v′ = g + (wind − v) / τ for a constant τ.
fn relax(velocity: Vec3, wind: Vec3, gravity: Vec3, tau: f32, time: f32) -> (Vec3, Vec3) {
    let terminal = wind + gravity * tau;
    let excess = velocity - terminal;
    let x = time / tau;
    // 1 − e^(−x), without cancellation where drag is weak.
    let lost = -(-x).exp_m1();
    (
        terminal * time + excess * (tau * lost),
        velocity - excess * lost,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relaxation_solves_its_equation() {
        let (velocity, wind, gravity) = (
            Vec3::new(3.0, 1.0, -2.0),
            Vec3::X,
            Vec3::new(0.0, -9.81, 0.0),
        );
        for (tau, time) in [(0.1f32, 0.01f32), (1e3, 0.01), (1e-4, 0.01), (0.5, 1.0)] {
            let (way, end) = relax(velocity, wind, gravity, tau, time);
            // The same by many small steps of the midpoint rule.
            let n = 20_000;
            let h = f64::from(time) / f64::from(n);
            let rate = |v: glam::DVec3| gravity.as_dvec3() + (wind.as_dvec3() - v) / f64::from(tau);
            let (mut x, mut v) = (glam::DVec3::ZERO, velocity.as_dvec3());
            for _ in 0..n {
                let middle = v + rate(v) * (0.5 * h);
                v += rate(middle) * h;
                x += middle * h;
            }
            assert!(
                (way.as_dvec3() - x).length() < 1e-5 * (1.0 + x.length()),
                "τ {tau}: {way} for {x}"
            );
            assert!(
                (end.as_dvec3() - v).length() < 1e-4 * (1.0 + v.length()),
                "τ {tau}: {end} for {v}"
            );
        }
    }
}
