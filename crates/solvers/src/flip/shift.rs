//! Moving particles that come too close to each other are pushed apart, a little: it keeps them spread evenly, so that the
//! density the grid sees is the density there is. Never by more than a part of the way they go anyhow, so that what
//! rests stays.

use super::field::Field;
use barchan_base::grid::{CELLS, offset_number};
use barchan_sim::state::Particles;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Particles closer than this part of the spacing are pushed apart.
const CLOSE: f32 = 0.95;
/// Part of the way of a step that the push may be.
const MOST: f32 = 0.1;

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
    (&field.occupied, shifts)
        .into_par_iter()
        .for_each(|(block, shifts)| {
            let block = *block as usize;
            let first = field.particles_in(block).start;
            for (i, shift) in shifts.iter_mut().enumerate() {
                let most = MOST * dt * particles.velocity[first + i].length();
                if most > 0.0 {
                    let push = crowd(
                        field,
                        &particles.position,
                        (block, first + i),
                        CLOSE * spacing,
                    );
                    *shift = push.clamp_length_max(most);
                }
            }
        });
}

/// Half the overlaps of a particle with those around it.
fn crowd(field: &Field, positions: &[Vec3], (block, particle): (usize, usize), reach: f32) -> Vec3 {
    let at = positions[particle];
    let inner = field.within(block, at);
    let cell = inner.floor();
    // Half a cell away at most: only the cells on the particle's side can hold others.
    let side = ((inner - cell) * 2.0).floor().as_ivec3() * 2 - 1;
    let cell = cell.as_ivec3();
    let local = barchan_base::grid::local_of(cell);
    let mut push = Vec3::ZERO;
    for corner in 0..8i32 {
        let o = IVec3::new(corner & 1, corner >> 1 & 1, corner >> 2) * side;
        let there = field.grid.step(block, local, offset_number(o.x, o.y, o.z));
        if there >= field.grid.len() * CELLS {
            continue;
        }
        for other in field.particles_of_cell(there) {
            let away = at - positions[other];
            let square = away.length_squared();
            if square < reach * reach && square > 1e-12 * reach * reach {
                let distance = square.sqrt();
                push += away * (0.5 * (reach - distance) / distance);
            }
        }
    }
    push
}
