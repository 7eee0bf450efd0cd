//! Eight particles side by side, a lane each: where they are among the nodes of a grid, and what a field is there.

use barchan_base::grid::Halo;
use glam::Vec3;
use wide::f32x8;

/// Particles that are looked after at once.
pub(super) const LANES: usize = 8;
/// Cells of a block with two more on each side: what a particle can see that crosses a cell at most.
const EDGE: usize = Halo::<2>::EDGE;
pub(super) const SEEN: usize = Halo::<2>::CELLS;
/// The same with four more, all that the blocks beside it hold; room for a power of two.
const WIDE_EDGE: usize = Halo::<4>::EDGE;
pub(super) const SEEN_WIDE: usize = Halo::<4>::CELLS.next_power_of_two();

/// The lowest cell that is seen, from the block's corner.
const fn lowest(edge: usize) -> f32 {
    -((edge - barchan_base::grid::EDGE) as f32) / 2.0
}

/// Eight vectors, component by component.
#[derive(Clone, Copy)]
pub(super) struct Vectors(pub [f32x8; 3]);

impl Vectors {
    /// Of up to eight vectors; the lanes left over stand at the block's corner.
    #[inline]
    pub fn new(vectors: &[Vec3], map: impl Fn(Vec3) -> Vec3) -> Self {
        let mut lanes = [[0.0; LANES]; 3];
        for (lane, vector) in vectors.iter().enumerate().take(LANES) {
            let vector = map(*vector);
            lanes[0][lane] = vector.x;
            lanes[1][lane] = vector.y;
            lanes[2][lane] = vector.z;
        }
        let [x, y, z] = lanes;
        Self([f32x8::new(x), f32x8::new(y), f32x8::new(z)])
    }

    /// One lane's.
    #[inline]
    pub fn lane(&self, lane: usize) -> Vec3 {
        let [x, y, z] = &self.0;
        Vec3::new(x.as_array()[lane], y.as_array()[lane], z.as_array()[lane])
    }

    /// Changes one lane's.
    #[inline]
    pub fn set(&mut self, lane: usize, vector: Vec3) {
        for (axis, lanes) in self.0.iter_mut().enumerate() {
            lanes.as_mut_array()[lane] = vector[axis];
        }
    }

    /// `self` + `other` × `factor`.
    #[inline]
    pub fn plus(&self, other: &Self, factor: f32) -> Self {
        self.plus_each(other, f32x8::splat(factor))
    }

    /// The same with a factor for each lane.
    #[inline]
    pub fn plus_each(&self, other: &Self, factor: f32x8) -> Self {
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([a + x * factor, b + y * factor, c + z * factor])
    }

    /// How long they are.
    #[inline]
    pub fn lengths(&self) -> f32x8 {
        let [x, y, z] = self.0;
        (x * x + y * y + z * z).sqrt()
    }
}

/// Where eight points lie along one axis: the node below each, and how far beyond it.
#[derive(Clone, Copy)]
pub(super) struct Between {
    pub node: f32x8,
    pub beyond: f32x8,
}

impl Between {
    #[inline]
    fn new(coordinate: f32x8) -> Self {
        let node = coordinate.floor();
        Self {
            node,
            beyond: coordinate - node,
        }
    }
}

/// Where eight points lie among the nodes of a staggered grid.
pub(super) struct Among {
    /// By axis: among the faces across it, which lie on whole numbers, and among the middles of cells.
    pub faces: [Between; 3],
    pub middles: [Between; 3],
}

impl Among {
    /// Of points given in cells.
    #[inline]
    pub fn new(points: &Vectors) -> Self {
        let [x, y, z] = points.0;
        let half = f32x8::splat(0.5);
        Self {
            faces: [Between::new(x), Between::new(y), Between::new(z)],
            middles: [
                Between::new(x - half),
                Between::new(y - half),
                Between::new(z - half),
            ],
        }
    }

    /// Among the nodes that hold component `axis`; the cells' middles for the fourth.
    #[inline]
    pub fn nodes(&self, axis: usize) -> [Between; 3] {
        let mut nodes = self.middles;
        if axis < 3 {
            nodes[axis] = self.faces[axis];
        }
        nodes
    }
}

/// A component at eight points, and its slopes a cell.
struct Sample {
    value: f32x8,
    slope: [f32x8; 3],
}

/// The field of three components, as a block sees it, at eight points given in cells from the block's corner.
#[inline]
pub(super) fn sample(values: &[[f32; SEEN]; 3], points: &Vectors) -> Vectors {
    let among = Among::new(points);
    Vectors([0, 1, 2].map(|axis| component::<EDGE, SEEN>(&values[axis], among.nodes(axis)).value))
}

/// The same in a wider view; and the lanes whose points it does not reach, where the nearest that it holds is given.
#[inline]
pub(super) fn sample_wide(values: &[[f32; SEEN_WIDE]; 3], points: &Vectors) -> (Vectors, f32x8) {
    let among = Among::new(points);
    let found = [0, 1, 2]
        .map(|axis| component::<WIDE_EDGE, SEEN_WIDE>(&values[axis], among.nodes(axis)).value);
    let low = f32x8::splat(lowest(WIDE_EDGE) + 0.5);
    let high = f32x8::splat(lowest(WIDE_EDGE) + WIDE_EDGE as f32 - 1.0);
    let beyond = points.0.map(|x| x.simd_lt(low) | x.simd_ge(high));
    (Vectors(found), beyond[0] | beyond[1] | beyond[2])
}

/// The same with the slopes, row by row.
#[inline]
pub(super) fn sample_with_slopes(
    values: &[[f32; SEEN]; 3],
    points: &Vectors,
) -> (Vectors, [Vectors; 3]) {
    let among = Among::new(points);
    let [u, v, w] = [0, 1, 2].map(|axis| component::<EDGE, SEEN>(&values[axis], among.nodes(axis)));
    (
        Vectors([u.value, v.value, w.value]),
        [Vectors(u.slope), Vectors(v.slope), Vectors(w.slope)],
    )
}

#[inline]
fn component<const EDGE: usize, const ROOM: usize>(
    values: &[f32; ROOM],
    [x, y, z]: [Between; 3],
) -> Sample {
    // A point near the rim of what is seen is drawn back to it.
    let last = f32x8::splat((EDGE - 2) as f32);
    let place = |b: Between| {
        (b.node - f32x8::splat(lowest(EDGE)))
            .fast_max(f32x8::ZERO)
            .fast_min(last)
    };
    let row = f32x8::splat(EDGE as f32);
    let first = place(x) + row * (place(y) + row * place(z));
    let first = first.fast_trunc_int().to_array();
    // The mask changes nothing; it tells the compiler that nothing is read beyond the end.
    let at = |lane: usize, offset: usize| values[(first[lane] as usize + offset) & (ROOM - 1)];
    let corner = |offset: usize| {
        f32x8::new([
            at(0, offset),
            at(1, offset),
            at(2, offset),
            at(3, offset),
            at(4, offset),
            at(5, offset),
            at(6, offset),
            at(7, offset),
        ])
    };
    let lerp = |a: f32x8, b: f32x8, f: f32x8| a + (b - a) * f;
    // Along x first, then y, then z.
    let along = |offset: usize| {
        let (low, high) = (corner(offset), corner(offset + 1));
        (lerp(low, high, x.beyond), high - low)
    };
    let (a, step_a) = along(0);
    let (b, step_b) = along(EDGE);
    let (c, step_c) = along(EDGE * EDGE);
    let (d, step_d) = along(EDGE * EDGE + EDGE);
    let (bottom, top) = (lerp(a, b, y.beyond), lerp(c, d, y.beyond));
    Sample {
        value: lerp(bottom, top, z.beyond),
        slope: [
            lerp(
                lerp(step_a, step_b, y.beyond),
                lerp(step_c, step_d, y.beyond),
                z.beyond,
            ),
            lerp(b - a, d - c, z.beyond),
            top - bottom,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    /// A field that is linear in each coordinate is found exactly, with its slopes.
    #[test]
    fn a_trilinear_field_is_found_exactly() {
        let f = |p: Vec3, axis: usize| {
            let a = axis as f32 + 1.0;
            a + 0.5 * p.x - a * p.y + 0.25 * p.z + 0.125 * p.x * p.y
        };
        let node = |i: usize, axis: usize| {
            let cell = Vec3::new(
                (i % EDGE) as f32,
                (i / EDGE % EDGE) as f32,
                (i / EDGE / EDGE) as f32,
            );
            let mut at = cell + lowest(EDGE) + 0.5;
            at[axis] -= 0.5;
            at
        };
        let values: [[f32; SEEN]; 3] =
            std::array::from_fn(|axis| std::array::from_fn(|i| f(node(i, axis), axis)));
        let random = Random::new(1, 2);
        let points: Vec<Vec3> = (0..8).map(|i| random.in_cube(i, 0) * 6.0 - 1.0).collect();
        let at = Vectors::new(&points, |p| p);
        let (found, slopes) = sample_with_slopes(&values, &at);
        let plain = sample(&values, &at);
        for (lane, p) in points.iter().enumerate() {
            for (axis, slopes) in slopes.iter().enumerate() {
                let a = axis as f32 + 1.0;
                let slope = Vec3::new(0.5 + 0.125 * p.y, -a + 0.125 * p.x, 0.25);
                let value = found.lane(lane)[axis];
                assert!((value - f(*p, axis)).abs() < 1e-4, "{p} {axis}: {value}");
                assert!(slopes.lane(lane).abs_diff_eq(slope, 1e-4));
                assert_eq!(value.to_bits(), plain.lane(lane)[axis].to_bits());
            }
        }
    }
}
