//! The function of Zhu & Bridson (2005): φ(x) = |x − x̄| − r̄ with x̄ and r̄ the weighted means of the centres and radii nearby.
//!
//! One particle alone gives its exact sphere, and many give nearly flat surfaces. In concave places x̄ may run far
//! ahead of x and leave the particles, which makes specks of inside where there is nothing. There x̄ moves faster than x:
//! the largest eigenvalue of ∂x̄/∂x tells (Solenthaler, Schläfli & Pajarola 2007), and the radius shrinks with it.

use super::block::{EDGE, NODES, Values};
use super::cloud::Near;
use super::field::{Bump, Field, Kernel, Row, rows};
use glam::Vec3;

/// Largest eigenvalue of ∂x̄/∂x up to which nothing is wrong. It is 1 inside and along smooth surfaces.
const SOUND: f32 = 1.6;
/// Largest eigenvalue from which on nothing is left of the radius.
const UNSOUND: f32 = 3.5;

/// The function of Zhu & Bridson.
pub struct Averaged {
    /// Its value where no particle reaches [m].
    pub empty: f32,
    /// Sum of weights below which a place may be one of the wrong ones.
    pub sparse: f32,
}

impl Averaged {
    /// The function of particles that reach so many spacings, with `empty` where there are none.
    pub fn new(support: f32, empty: f32) -> Self {
        // At a flat surface the sum is half of what it is inside, ∫(1 − s²)³ over the support: 64π/315 of its cube.
        let inside = 64.0 * std::f32::consts::PI / 315.0 * support.powi(3);
        Self {
            empty,
            sparse: 0.4 * inside,
        }
    }
}

/// What particles add up to at the nodes of a block.
struct Sums {
    weight: Values,
    toward: [Values; 3],
    radius: Values,
}

/// The weights and vectors of one row and one particle.
struct Lanes {
    k: [f32; EDGE],
    dx: [f32; EDGE],
}

impl Lanes {
    fn new(near: &Near, row: &Row, cell: f32) -> Self {
        let scale = 1.0 / (near.reach * near.reach);
        let across = row.dy * row.dy + row.dz * row.dz;
        let dx: [f32; EDGE] = std::array::from_fn(|x| near.center.x - x as f32 * cell);
        Self {
            k: dx.map(|dx| Bump.value((dx * dx + across) * scale)),
            dx,
        }
    }
}

fn place_of(node: usize) -> Vec3 {
    Vec3::new(
        (node % EDGE) as f32,
        (node / EDGE % EDGE) as f32,
        (node / (EDGE * EDGE)) as f32,
    )
}

fn lanes(values: &mut Values, start: usize) -> &mut [f32; EDGE] {
    (&mut values[start..start + EDGE])
        .try_into()
        .expect("a row has as many nodes as an edge")
}

impl Sums {
    fn new(near: &[Near], cell: f32) -> Self {
        let mut sums = Self {
            weight: [0.0; NODES],
            toward: [[0.0; NODES]; 3],
            radius: [0.0; NODES],
        };
        for near in near {
            for row in rows(near, cell) {
                sums.add(near, &row, cell);
            }
        }
        sums
    }

    fn add(&mut self, near: &Near, row: &Row, cell: f32) {
        let Lanes { k, dx } = Lanes::new(near, row, cell);
        let [toward_x, toward_y, toward_z] = &mut self.toward;
        add(lanes(&mut self.weight, row.start), |x| k[x]);
        add(lanes(toward_x, row.start), |x| k[x] * dx[x]);
        add(lanes(toward_y, row.start), |x| k[x] * row.dy);
        add(lanes(toward_z, row.start), |x| k[x] * row.dz);
        add(lanes(&mut self.radius, row.start), |x| k[x] * near.radius);
    }

    /// From the node to x̄, and r̄.
    fn mean(&self, i: usize) -> (Vec3, f32) {
        let [x, y, z] = &self.toward;
        let scale = 1.0 / self.weight[i];
        (Vec3::new(x[i], y[i], z[i]) * scale, self.radius[i] * scale)
    }
}

fn add(row: &mut [f32; EDGE], term: impl Fn(usize) -> f32) {
    for (x, value) in row.iter_mut().enumerate() {
        *value += term(x);
    }
}

impl Field for Averaged {
    fn fill(&self, near: &[Near], cell: f32, values: &mut Values) {
        let sums = Sums::new(near, cell);
        for (i, value) in values.iter_mut().enumerate() {
            if sums.weight[i] <= 0.0 {
                *value = self.empty;
                continue;
            }
            let (toward, radius) = sums.mean(i);
            *value = toward.length() - radius;
            if *value < 0.0 && sums.weight[i] < self.sparse {
                *value = self.at(near, place_of(i) * cell);
            }
        }
    }

    fn at(&self, near: &[Near], place: Vec3) -> f32 {
        let here = Here::new(near, place);
        if here.weight <= 0.0 {
            return self.empty;
        }
        let value = here.toward.length() - here.radius;
        if value < 0.0 && here.weight < self.sparse {
            let doubt = 1.0 - here.weight / self.sparse;
            let lost = shrinkage(here.fastest(near, place)) * doubt;
            return value + here.radius * lost;
        }
        value
    }

    fn gradient(&self, near: &[Near], place: Vec3) -> Vec3 {
        let here = Here::new(near, place);
        if here.weight <= 0.0 {
            return Vec3::ZERO;
        }
        let away = here.toward.normalize_or_zero();
        let mut sum = Vec3::ZERO;
        for near in near {
            let (d, _, c) = here.terms(near, place);
            sum += d * (c * ((d - here.toward).dot(away) - (near.radius - here.radius)));
        }
        sum / here.weight - away
    }

    fn share(&self, near: &Near, place: Vec3) -> f32 {
        weight(near, place)
    }
}

fn weight(near: &Near, place: Vec3) -> f32 {
    Bump.value(near.center.distance_squared(place) / (near.reach * near.reach))
}

/// The means at one place.
struct Here {
    weight: f32,
    toward: Vec3,
    radius: f32,
}

impl Here {
    fn new(near: &[Near], place: Vec3) -> Self {
        let (mut total, mut toward, mut radius) = (0.0, Vec3::ZERO, 0.0);
        for near in near {
            let k = weight(near, place);
            total += k;
            toward += (near.center - place) * k;
            radius += near.radius * k;
        }
        let scale = 1.0 / total;
        Self {
            weight: total,
            toward: toward * scale,
            radius: radius * scale,
        }
    }

    /// From the place to a particle, its weight, and c where ∇weight = c times the vector.
    fn terms(&self, near: &Near, place: Vec3) -> (Vec3, f32, f32) {
        let d = near.center - place;
        let scale = 1.0 / (near.reach * near.reach);
        let square = d.length_squared() * scale;
        (d, Bump.value(square), -2.0 * scale * Bump.slope(square))
    }

    /// How fast x̄ moves when the place moves, in the direction where it is fastest: the largest eigenvalue of the symmetric
    /// part of ∂x̄/∂x = Σ c (d − d̄) dᵀ / Σ k.
    fn fastest(&self, near: &[Near], place: Vec3) -> f32 {
        let mut matrix = [0.0f32; 6];
        for near in near {
            let (d, _, c) = self.terms(near, place);
            let (e, d) = (d - self.toward, d * c);
            matrix[0] += e.x * d.x;
            matrix[1] += e.y * d.y;
            matrix[2] += e.z * d.z;
            matrix[3] += 0.5 * (e.x * d.y + e.y * d.x);
            matrix[4] += 0.5 * (e.y * d.z + e.z * d.y);
            matrix[5] += 0.5 * (e.z * d.x + e.x * d.z);
        }
        largest_eigenvalue(matrix.map(|m| m / self.weight))
    }
}

/// How much of the radius goes where x̄ moves `speed` times as fast as x.
fn shrinkage(speed: f32) -> f32 {
    let part = ((speed - SOUND) / (UNSOUND - SOUND)).max(0.0);
    part * part * part
}

/// The largest eigenvalue of a symmetric matrix xx, yy, zz, xy, yz, zx (Smith 1961).
pub fn largest_eigenvalue([xx, yy, zz, xy, yz, zx]: [f32; 6]) -> f32 {
    let mean = (xx + yy + zz) / 3.0;
    let (a, b, c) = (xx - mean, yy - mean, zz - mean);
    let off = xy * xy + yz * yz + zx * zx;
    let size = ((a * a + b * b + c * c + 2.0 * off) / 6.0).sqrt();
    if size <= f32::MIN_POSITIVE {
        return mean;
    }
    let determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * zx) + zx * (xy * yz - b * zx);
    let angle = (determinant / (2.0 * size * size * size))
        .clamp(-1.0, 1.0)
        .acos()
        / 3.0;
    mean + 2.0 * size * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    fn particle(center: Vec3) -> Near {
        Near {
            center,
            reach: 2.0,
            radius: 0.5,
            weight: 1.0,
            metric: [0.0; 6],
            index: 0,
        }
    }

    fn scattered(count: u64) -> Vec<Near> {
        let random = Random::new(3, 0);
        (0..count)
            .map(|i| particle(random.in_cube(i, 0) * 4.0))
            .collect()
    }

    #[test]
    fn one_particle_is_its_sphere() {
        let near = [particle(Vec3::new(1.0, 1.2, 0.9))];
        let field = Averaged::new(2.0, 2.0);
        for place in [Vec3::new(2.0, 1.5, 1.0), Vec3::new(1.0, 1.0, 1.0)] {
            let exact = near[0].center.distance(place) - 0.5;
            assert!((field.at(&near, place) - exact).abs() < 1e-6);
        }
        assert!((field.at(&near, Vec3::splat(9.0)) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn nodes_and_places_agree() {
        let near = scattered(60);
        let field = Averaged::new(2.0, 2.0);
        let mut values = [0.0; NODES];
        field.fill(&near, 0.5, &mut values);
        for (i, value) in values.iter().enumerate() {
            let place = Vec3::new((i % 8) as f32, (i / 8 % 8) as f32, (i / 64) as f32) * 0.5;
            assert!((value - field.at(&near, place)).abs() < 1e-5, "node {i}");
        }
    }

    #[test]
    fn the_gradient_is_the_derivative() {
        let near = scattered(60);
        let field = Averaged::new(2.0, 2.0);
        let random = Random::new(4, 0);
        for i in 0..50 {
            let place = Vec3::splat(1.0) + random.in_cube(i, 0) * 2.0;
            let step = 1e-2;
            let slope = Vec3::from_array(Vec3::AXES.map(|axis| {
                (field.at(&near, place + axis * step) - field.at(&near, place - axis * step))
                    / (2.0 * step)
            }));
            let gradient = field.gradient(&near, place);
            assert!((slope - gradient).length() < 0.02, "{slope} and {gradient}"); // second order in the step
        }
    }

    #[test]
    fn eigenvalues_are_those_of_known_matrices() {
        assert!((largest_eigenvalue([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]) - 3.0).abs() < 1e-5);
        assert!((largest_eigenvalue([2.0, 2.0, 5.0, 1.0, 0.0, 0.0]) - 5.0).abs() < 1e-5);
        assert!((largest_eigenvalue([2.0, 2.0, 1.0, 1.0, 0.0, 0.0]) - 3.0).abs() < 1e-5);
        assert!((largest_eigenvalue([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn specks_in_concave_places_are_gone() {
        // Two particles that both just reach the middle: x̄ jumps from one to the other there.
        let near = [
            particle(Vec3::new(0.0, 1.0, 1.0)),
            particle(Vec3::new(3.9, 1.0, 1.0)),
        ];
        let place = Vec3::new(1.95, 1.0, 1.0);
        let here = Here::new(&near, place);
        assert!(here.toward.length() < here.radius, "the speck is there");
        let field = Averaged::new(2.0, 2.0);
        assert!(field.at(&near, place) > 0.0);
        let mut values = [1.0; NODES];
        field.fill(&near, 1.0, &mut values);
        assert!(values[super::super::block::node(2, 1, 1)] > 0.0);
    }
}
