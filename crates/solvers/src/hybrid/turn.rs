//! How particles that are more than balls turn: with the liquid while they are in it, and on in flight as they left it.

use super::{AFFINE, TURN};
use barchan_base::parallel::CHUNK;
use barchan_sim::state::Particles;
use glam::{DQuat, DVec4, Mat3, Vec3, Vec4};
use rayon::prelude::*;

/// Turns all `particles` as the velocity about each does. In flight nothing changes that, so grains keep the spin they left with:
/// that of a ball, which the named shapes are to the turning.
pub(super) fn tumble(particles: &mut Particles, dt: f32) {
    let (before, turns) = particles.extra.split_at_mut(TURN);
    let slopes = before[AFFINE].entries::<Mat3>();
    let turns = turns[0].entries_mut::<Vec4>();
    turns
        .par_chunks_mut(CHUNK)
        .zip(slopes.par_chunks(CHUNK))
        .for_each(|(turns, slopes)| {
            for (turn, slopes) in turns.iter_mut().zip(slopes) {
                *turn = turned(*turn, spin(slopes) * dt);
            }
        });
}

/// Half the curl of a velocity with these slopes, those of its x in the first row [rad/s].
fn spin(slopes: &Mat3) -> Vec3 {
    let [x, y, z] = [slopes.x_axis, slopes.y_axis, slopes.z_axis];
    Vec3::new(y.z - z.y, z.x - x.z, x.y - y.x) * 0.5
}

/// A turn followed by another, as an axis times its angle; a turn that is none stays as it is. In double precision: a thousand
/// small turns add up.
fn turned(turn: Vec4, by: Vec3) -> Vec4 {
    if by == Vec3::ZERO || !by.is_finite() {
        return turn;
    }
    let next = DQuat::from_scaled_axis(by.as_dvec3()) * DQuat::from_vec4(turn.as_dvec4());
    let next = DVec4::from(next).try_normalize();
    next.map_or(turn, |next| next.as_vec4())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Quat;

    #[test]
    fn the_spin_of_a_rigid_turn_is_its_own() {
        let w = Vec3::new(0.3, -2.0, 1.1);
        let slopes = Mat3::from_cols(w.cross(Vec3::X), w.cross(Vec3::Y), w.cross(Vec3::Z));
        assert!(spin(&slopes).distance(w) < 1e-6);
        let shear = Mat3::from_cols(Vec3::ZERO, Vec3::X, Vec3::ZERO);
        assert_eq!(spin(&shear), Vec3::new(0.0, 0.0, -0.5));
    }

    #[test]
    fn many_small_turns_are_one_large_one() {
        let (w, steps) = (Vec3::new(0.0, 0.5, 0.0), 1000);
        let start = Quat::from_rotation_x(0.7);
        let mut turn = Vec4::from(start);
        for _ in 0..steps {
            turn = turned(turn, w / steps as f32);
        }
        let all = Vec4::from(Quat::from_scaled_axis(w) * start);
        assert!(turn.distance(all) < 1e-5);
        assert_eq!(turned(Vec4::ZERO, w), Vec4::ZERO);
        assert_eq!(turned(turn, Vec3::NAN), turn);
    }
}
