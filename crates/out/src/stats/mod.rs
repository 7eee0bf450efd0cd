//! Figures about a frame: how many, how heavy, how fast, where; and the shape of a pile.

mod pile;

pub use pile::{Pile, fit_pile};

use crate::cache::Frame;
use barchan_base::Bounds;
use barchan_base::parallel::fold_chunks;
use barchan_sim::solids::BodyPlace;
use glam::{DVec3, Vec3};
use serde::Serialize;

/// The figures of one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameStats {
    /// Number of the frame.
    pub frame: u32,
    /// Time [s].
    pub time: f64,
    /// Particles.
    pub particles: usize,
    /// Their mass [kg].
    pub mass: f64,
    /// Kinetic energy [J].
    pub kinetic_energy: f64,
    /// Potential energy [J], zero at the origin's level.
    pub potential_energy: f64,
    /// The fastest particle [m/s].
    pub max_speed: f64,
    /// Centre of mass [m]; zeros for an empty frame.
    pub center_of_mass: [f64; 3],
    /// Least coordinates of the centres [m].
    pub bounds_min: [f64; 3],
    /// Greatest coordinates of the centres [m].
    pub bounds_max: [f64; 3],
    /// The bodies that can move.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyPlace>,
    /// The pile, where asked for and found.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub pile: Option<Pile>,
}

/// Sums over a chunk.
#[derive(Clone, Copy)]
struct Sums {
    mass: f64,
    moment: DVec3,
    kinetic: f64,
    speed_squared: f32,
    bounds: Bounds,
}

impl Sums {
    const ZERO: Self = Self {
        mass: 0.0,
        moment: DVec3::ZERO,
        kinetic: 0.0,
        speed_squared: 0.0,
        bounds: Bounds::EMPTY,
    };

    fn plus(self, other: Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            moment: self.moment + other.moment,
            kinetic: self.kinetic + other.kinetic,
            speed_squared: self.speed_squared.max(other.speed_squared),
            bounds: self.bounds.union(other.bounds),
        }
    }
}

/// The figures of `frame`; the pile stays open.
pub fn frame_stats(frame: &Frame) -> FrameStats {
    let particles = &frame.particles;
    let one = |i: usize| {
        let (mass, position, velocity) = (
            f64::from(particles.mass[i]),
            particles.position[i],
            particles.velocity[i],
        );
        Sums {
            mass,
            moment: position.as_dvec3() * mass,
            kinetic: 0.5 * mass * velocity.as_dvec3().length_squared(),
            speed_squared: velocity.length_squared(),
            bounds: Bounds {
                min: position,
                max: position,
            },
        }
    };
    let sums = fold_chunks(
        particles.len(),
        Sums::ZERO,
        |range| range.map(one).fold(Sums::ZERO, Sums::plus),
        Sums::plus,
    );
    let array = |v: Vec3| {
        if v.is_finite() {
            v.as_dvec3().to_array()
        } else {
            [0.0; 3]
        }
    };
    let centre = if sums.mass > 0.0 {
        sums.moment / sums.mass
    } else {
        DVec3::ZERO
    };
    FrameStats {
        frame: frame.meta.frame,
        time: frame.meta.time,
        particles: particles.len(),
        mass: sums.mass,
        kinetic_energy: sums.kinetic,
        potential_energy: -frame.meta.gravity.as_dvec3().dot(sums.moment),
        max_speed: f64::from(sums.speed_squared).sqrt(),
        center_of_mass: centre.to_array(),
        bounds_min: array(sums.bounds.min),
        bounds_max: array(sums.bounds.max),
        bodies: frame
            .meta
            .bodies
            .iter()
            .filter(|body| body.motion != "static")
            .cloned()
            .collect(),
        pile: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::FrameMeta;
    use barchan_sim::state::Particles;

    fn frame(particles: Particles) -> Frame {
        Frame {
            meta: FrameMeta {
                frame: 3,
                time: 0.125,
                fps: 24.0,
                scene: "s".into(),
                up: Vec3::Y,
                gravity: Vec3::new(0.0, -10.0, 0.0),
                materials: vec![],
                bodies: Vec::new(),
            },
            particles,
        }
    }

    #[test]
    fn two_particles_by_hand() {
        let mut particles = Particles::default();
        particles.resize(2);
        particles.mass = vec![1.0, 3.0];
        particles.position = vec![Vec3::new(0.0, 1.0, 0.0), Vec3::new(4.0, 2.0, 0.0)];
        particles.velocity = vec![Vec3::new(2.0, 0.0, 0.0), Vec3::new(0.0, 0.0, -1.0)];
        let stats = frame_stats(&frame(particles));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} for {b}");
        close(stats.mass, 4.0);
        close(stats.kinetic_energy, 2.0 + 1.5);
        close(stats.potential_energy, 10.0 * (1.0 + 6.0));
        close(stats.max_speed, 2.0);
        close(stats.center_of_mass[0], 3.0);
        close(stats.bounds_max[1], 2.0);
    }

    #[test]
    fn an_empty_frame_is_all_zeros() {
        let stats = frame_stats(&frame(Particles::default()));
        assert_eq!(
            (stats.particles, stats.bounds_min, stats.center_of_mass),
            (0, [0.0; 3], [0.0; 3])
        );
        assert!(serde_json::to_string(&stats).is_ok());
    }
}
