//! Composite grains as the balls that they are made of, for those who draw or collect balls.

use super::{GrainShape, ORIENTATION};
use crate::state::Particles;
use glam::{DQuat, DVec3, Vec4};
use std::sync::Arc;

/// The balls of all grains, each with what its grain has but for place and radius; `None` where every grain is a ball already.
///
/// Grains of a material that `shapes` does not know are one ball.
pub fn balls_of(particles: &Particles, shapes: &[Arc<GrainShape>]) -> Option<Particles> {
    let turns = particles
        .extra
        .iter()
        .find(|column| column.spec == ORIENTATION)?
        .entries::<Vec4>();
    let balls = |i: usize| -> &[(DVec3, f64)] {
        let shape = shapes.get(usize::from(particles.material[i]));
        shape.map_or(&[], |shape| shape.balls())
    };
    if (0..particles.len()).all(|i| balls(i).len() <= 1) {
        return None;
    }
    let places: Vec<u32> = (0..particles.len())
        .flat_map(|i| std::iter::repeat_n(i as u32, balls(i).len().max(1)))
        .collect();
    let mut apart = Particles {
        extra: particles
            .extra
            .iter()
            .map(|c| barchan_base::column::Column::zeros(c.spec, 0))
            .collect(),
        ..Particles::default()
    };
    apart.append(particles, &places);
    let mut at = 0;
    for (i, turn) in turns.iter().enumerate() {
        let (centre, size) = (
            particles.position[i].as_dvec3(),
            f64::from(particles.radius[i]),
        );
        let turn = DQuat::from_vec4(turn.as_dvec4()).normalize();
        for (k, (place, radius)) in balls(i).iter().enumerate() {
            apart.position[at + k] = (centre + turn * *place * size).as_vec3();
            apart.radius[at + k] = (radius * size) as f32;
        }
        at += balls(i).len().max(1);
    }
    Some(apart)
}

#[cfg(test)]
mod tests {
    use super::super::NAMED;
    use super::*;
    use barchan_base::column::Column;
    use glam::{Quat, Vec3};

    #[test]
    fn balls_lie_in_the_grains_ball_and_keep_its_centre() {
        let shapes = [0, 1].map(|i: usize| NAMED[i].1.clone());
        let mut particles = Particles {
            extra: vec![Column::zeros(ORIENTATION, 0)],
            ..Particles::default()
        };
        particles.resize(3);
        for i in 0..3 {
            particles.id[i] = 40 + i as u64;
            particles.position[i] = Vec3::new(i as f32, 2.0, -1.0);
            particles.radius[i] = 0.25;
            particles.material[i] = u16::from(i == 1);
            let turn = Quat::from_rotation_z(0.5 * i as f32);
            particles.extra[0].set(i, Vec4::from(turn));
        }
        let apart = balls_of(&particles, &shapes).expect("one grain has four balls");
        assert_eq!(apart.id, [40, 41, 41, 41, 41, 42]);
        assert_eq!(apart.position[0], particles.position[0]);
        let mean = apart.position[1..5].iter().sum::<Vec3>() / 4.0;
        assert!(mean.distance(particles.position[1]) < 1e-6);
        for k in 1..5 {
            let reach = apart.position[k].distance(mean) + apart.radius[k];
            assert!((reach - 0.25).abs() < 1e-6, "{reach}");
        }
        // Turned by half a radian about z, the ball that lay on the diagonal lies there too.
        let place = NAMED[1].1.balls()[0].0.as_vec3() * 0.25;
        let turned = Quat::from_rotation_z(0.5) * place + particles.position[1];
        assert!(apart.position[1].distance(turned) < 1e-6);
        assert!(balls_of(&particles, &shapes[..1]).is_none());
    }
}
