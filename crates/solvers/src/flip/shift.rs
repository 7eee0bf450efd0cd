//! Moving particles that come too close to each other are pushed apart, a little: it keeps them spread evenly, so that the
//! density the grid sees is the density there is. Never by more than a part of the way they go anyhow, so that what
//! rests stays.

use super::eight::LANES;
use super::field::Field;
use barchan_base::grid::{CELLS, Halo};
use barchan_sim::state::Particles;
use glam::Vec3;
use rayon::prelude::*;
use std::ops::Range;
use wide::f32x8;

/// Particles closer than this part of the spacing are pushed apart. The spacing is half a cell, so only the eight cells on a
/// particle's side can hold such.
const CLOSE: f32 = 0.95;
/// Part of the way of a step that the push may be.
const MOST: f32 = 0.1;
/// A place in cells from the block where nobody is.
const FAR_OFF: f32 = 1e6;
/// The numbers of the lanes.
const NUMBERS: f32x8 = f32x8::new([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
/// Cells along the edge of what a block's particles look at, and cells in it.
const EDGE: usize = Halo::<1>::EDGE;
const SEEN: usize = Halo::<1>::CELLS;

/// Fills `shift` with the displacement [m] of each particle.
pub(super) fn shift(
    field: &Field,
    particles: &Particles,
    (spacing, dt): (f32, f32),
    shift: &mut Vec<Vec3>,
) {
    shift.clear();
    shift.resize(particles.len(), Vec3::ZERO);
    let found = field.found();
    let shifts = field.split(&mut shift[..found]);
    let halo = Halo::<1>::new();
    let reach = CLOSE * spacing * field.inverse;
    (&field.occupied, shifts).into_par_iter().for_each_init(
        Crowd::default,
        |crowd, (block, shifts)| {
            let block = *block as usize;
            let mine = field.particles_in(block);
            let velocities = &particles.velocity[mine.clone()];
            if velocities.iter().all(|velocity| *velocity == Vec3::ZERO) {
                return;
            }
            crowd.gather(field, &halo, block, &particles.position);
            let positions = &particles.position[mine];
            let corner = field.corner(block);
            for ((shift, velocity), position) in shifts.iter_mut().zip(velocities).zip(positions) {
                let most = MOST * dt * velocity.length();
                if most > 0.0 {
                    // To the last bit as the crowd has it: a particle is not in its own way, wherever the world's origin is.
                    let at = (*position - corner) * field.inverse;
                    let push = crowd.push(at, reach) * field.dx;
                    *shift = push.clamp_length_max(most);
                }
            }
        },
    );
}

/// The particles in and around a block, in cells from its corner, cell after cell.
struct Crowd {
    x: Vec<f32>,
    y: Vec<f32>,
    z: Vec<f32>,
    /// Where each cell's begin.
    starts: [u32; SEEN + 1],
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            x: Vec::new(),
            y: Vec::new(),
            z: Vec::new(),
            starts: [0; SEEN + 1],
        }
    }
}

impl Crowd {
    fn gather(&mut self, field: &Field, halo: &Halo<1>, block: usize, positions: &[Vec3]) {
        self.x.clear();
        self.y.clear();
        self.z.clear();
        let corner = field.corner(block);
        let outside = field.grid.len() * CELLS;
        halo.scatter(field.grid.around(block), |cell, i| {
            if cell < outside {
                for position in &positions[field.particles_of_cell(cell)] {
                    let at = (*position - corner) * field.inverse;
                    self.x.push(at.x);
                    self.y.push(at.y);
                    self.z.push(at.z);
                }
            }
            self.starts[i + 1] = self.x.len() as u32;
        });
        // Eight are looked at together: the last ones need company.
        for coordinates in [&mut self.x, &mut self.y, &mut self.z] {
            coordinates.resize(coordinates.len() + LANES, FAR_OFF);
        }
    }

    /// Half the overlaps, in cells, of a particle with those around it.
    fn push(&self, at: Vec3, reach: f32) -> Vec3 {
        let cell = at.floor();
        // The lower of the two cells along each axis, counted from the first that is seen.
        let low = |axis: usize| {
            let upper_half = at[axis] - cell[axis] >= 0.5;
            (cell[axis].max(0.0) as usize).min(EDGE - 3) + usize::from(upper_half)
        };
        let first = low(0) + EDGE * (low(1) + EDGE * low(2));
        let mut push = [f32x8::ZERO; 3];
        for row in [0, EDGE, EDGE * EDGE, EDGE * EDGE + EDGE] {
            // Two cells that follow each other.
            let start = self.starts[first + row] as usize;
            let end = self.starts[first + row + 2] as usize;
            for start in (start..end).step_by(LANES) {
                self.add_eight(start..end, at, reach, &mut push);
            }
        }
        Vec3::from_array(push.map(f32x8::reduce_add))
    }

    /// Adds the overlaps with the first eight of some.
    #[inline]
    fn add_eight(&self, some: Range<usize>, at: Vec3, reach: f32, push: &mut [f32x8; 3]) {
        let away = |coordinates: &[f32], at: f32| {
            let eight = coordinates[some.start..].first_chunk::<LANES>();
            f32x8::splat(at) - f32x8::new(*eight.expect("they have company"))
        };
        let away = [
            away(&self.x, at.x),
            away(&self.y, at.y),
            away(&self.z, at.z),
        ];
        let square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2];
        let reach = f32x8::splat(reach);
        let most = reach * reach;
        // The particle itself does not count, nor does another in the same place: nobody knows which way apart is.
        let there = NUMBERS.simd_lt(f32x8::splat(some.len() as f32));
        let counts = square.simd_lt(most) & square.simd_gt(most * f32x8::splat(1e-10)) & there;
        if !counts.any() {
            return;
        }
        let distance = square.sqrt();
        let half = counts.select(
            f32x8::splat(0.5) * (reach - distance) / distance,
            f32x8::ZERO,
        );
        for (push, away) in push.iter_mut().zip(away) {
            *push += away * half;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    /// The same by looking at all pairs.
    #[test]
    fn pushes_are_those_of_all_pairs_that_overlap() {
        all_pairs_push(Vec3::ZERO, 1e-5);
        // A thousand cells off places are known to some 1e-5 m.
        all_pairs_push(Vec3::new(-100.0, 20.0, 100.0), 1e-4);
    }

    fn all_pairs_push(offset: Vec3, tolerance: f32) {
        let (dx, spacing) = (0.1, 0.05);
        let random = Random::new(3, 4);
        let mut particles = Particles::default();
        particles.resize(4000);
        for i in 0..particles.len() {
            particles.position[i] = random.in_cube(i as u64, 0) * Vec3::new(0.9, 0.7, 0.6) - 0.21;
            particles.position[i] += offset;
            particles.velocity[i] = Vec3::X;
        }
        let mut field = Field::default();
        field.lay(&particles, dx);
        particles.permute(&field.order, &mut Vec::new());
        let mut found = Vec::new();
        shift(&field, &particles, (spacing, 1e3), &mut found);
        let reach = CLOSE * spacing;
        let mut pushed = 0;
        for (at, found) in particles.position.iter().zip(&found) {
            let mut push = Vec3::ZERO;
            for other in &particles.position {
                let away = *at - *other;
                let distance = away.length();
                if distance < reach && distance > 1e-5 * reach {
                    push += away * (0.5 * (reach - distance) / distance);
                    pushed += 1;
                }
            }
            assert!(
                found.abs_diff_eq(push, tolerance),
                "{at}: {found} for {push}"
            );
        }
        assert!(pushed > 1000);
    }
}
