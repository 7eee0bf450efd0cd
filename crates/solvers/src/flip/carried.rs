//! Thin cells at the surface are carried by what they lie on.
//!
//! A cell that is hardly filled bears no pressure, so the solve does not find the velocity of its faces. Those beside a face that
//! it does find go along with that one. So that no weight and no momentum is lost they lend theirs to it: what lies on a slope pulls
//! at it, and presses on it, as if it were part of it.

use super::boundary::Boundary;
use super::field::{Faces, Field};
use barchan_base::grid::{BESIDE, BlockGrid, CELLS, Mask, places};
use rayon::prelude::*;

/// A face that goes along with another.
#[derive(Clone, Copy)]
struct Share {
    face: u32,
    with: u32,
    /// Which part of it does.
    part: f32,
}

/// The faces that are carried, axis by axis.
#[derive(Default)]
pub(super) struct Carried([Vec<Share>; 3]);

impl Carried {
    /// Finds those with mass that are not `firm`, beside some that are, and open: what solids cover weighs on nothing.
    pub fn find(&mut self, grid: &BlockGrid, boundary: &Boundary, faces: &[[Mask; 3]; 2]) {
        let [massive, firm] = faces;
        for (axis, shares) in self.0.iter_mut().enumerate() {
            let (massive, firm) = (&massive[axis], &firm[axis]);
            let of_block = |block: usize| {
                let loose = massive.of(block) & !firm.of(block);
                let carried = match loose {
                    0 => 0,
                    _ => loose & firm.beside_any(grid.around(block)),
                };
                let open = move |local: &usize| boundary.open(axis, block * CELLS + local) > 0.0;
                let carried = places(carried).filter(open);
                carried.flat_map(move |local| share(grid, firm, block, local))
            };
            shares.clear();
            shares.par_extend((0..grid.len()).into_par_iter().flat_map_iter(of_block));
        }
    }

    /// None.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(Vec::clear);
    }

    /// Gives mass and momentum of the faces that are carried to those that carry them.
    pub fn lend(&self, field: &mut Field) {
        let Field { velocity, mass, .. } = field;
        for ((shares, velocity), mass) in self.0.iter().zip(velocity).zip(mass) {
            for share in shares {
                let (face, with) = (share.face as usize, share.with as usize);
                let more = share.part * mass[face];
                let momentum = velocity[with] * mass[with] + velocity[face] * more;
                mass[with] += more;
                velocity[with] = momentum / mass[with];
            }
        }
    }

    /// Gives the faces that are carried the velocity of those that carry them.
    pub fn follow(&self, velocity: &mut Faces) {
        for (shares, velocity) in self.0.iter().zip(velocity) {
            for same in shares.chunk_by(|a, b| a.face == b.face) {
                let parts = same.iter();
                velocity[same[0].face as usize] =
                    parts.map(|s| s.part * velocity[s.with as usize]).sum();
            }
        }
    }

    /// Adds the faces that are carried to sets of faces.
    pub fn add_to(&self, faces: &mut [Mask; 3]) {
        for (shares, faces) in self.0.iter().zip(faces) {
            for face in shares.iter().map(|share| share.face as usize) {
                faces.add(face / CELLS, 1 << (face % CELLS));
            }
        }
    }
}

/// The firm faces beside a face, each with an equal share of it.
fn share(
    grid: &BlockGrid,
    firm: &Mask,
    block: usize,
    local: usize,
) -> impl Iterator<Item = Share> + use<> {
    let sides: [bool; 6] =
        std::array::from_fn(|side| firm.beside(grid.around(block), side) >> local & 1 == 1);
    let with = BESIDE.map(|offset| grid.step(block, local, offset) as u32);
    let part = 1.0 / sides.iter().filter(|is_firm| **is_firm).count() as f32;
    let face = (block * CELLS + local) as u32;
    let firm = with.into_iter().zip(sides).filter(|(_, is_firm)| *is_firm);
    firm.map(move |(with, _)| Share { face, with, part })
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::grid::bits_of;
    use barchan_base::random::Random;
    use barchan_sim::solids::Solids;
    use barchan_sim::state::Particles;

    /// Whatever is carried by what: lending and following change no momentum.
    #[test]
    fn momentum_is_kept_by_lending_and_by_following() {
        let random = Random::new(3, 4);
        let mut particles = Particles::default();
        particles.resize(200);
        for (i, position) in particles.position.iter_mut().enumerate() {
            *position = random.in_cube(i as u64, 0) * 12.0;
        }
        let (mut field, mut boundary) = (Field::default(), Boundary::default());
        field.lay(&particles, 1.0);
        boundary.sample(&field, &Solids::default());
        let cells = field.grid.len() * CELLS;
        for axis in 0..3 {
            for cell in 0..cells {
                let chance = random.in_cube(cell as u64, 1 + axis as u32);
                field.mass[axis][cell] = (chance.x - 0.4).max(0.0);
                field.velocity[axis][cell] = chance.y - 0.5;
            }
        }
        let mask = |of: &dyn Fn(usize, usize) -> bool| -> [Mask; 3] {
            std::array::from_fn(|axis| {
                let mut mask = Mask::default();
                let bits: Vec<u64> = (0..field.grid.len())
                    .map(|block| bits_of(|local| of(axis, block * CELLS + local)))
                    .collect();
                mask.fill(&field.grid, |block| bits[block]);
                mask
            })
        };
        let massive = mask(&|axis, cell| field.mass[axis][cell] > 0.0);
        let firm = mask(&|axis, cell| random.in_cube(cell as u64, 5 + axis as u32).z < 0.3);
        let mut carried = Carried::default();
        carried.find(&field.grid, &boundary, &[massive, firm]);
        let original = field.mass.clone();
        let momentum = |mass: &Faces, velocity: &Faces, axis: usize| -> f64 {
            let product = |cell| f64::from(mass[axis][cell]) * f64::from(velocity[axis][cell]);
            (0..cells).map(product).sum()
        };
        let before: [f64; 3] =
            std::array::from_fn(|axis| momentum(&field.mass, &field.velocity, axis));
        carried.lend(&mut field);
        carried.follow(&mut field.velocity);
        for (axis, before) in before.into_iter().enumerate() {
            assert!(carried.0[axis].len() > 1000);
            let after = momentum(&original, &field.velocity, axis);
            assert!((after - before).abs() < 1e-4, "{after} {before}");
        }
    }
}
