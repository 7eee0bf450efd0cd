//! Functions that add up what particles give: blobs (Blinn 1982), SPH densities, and the stretched kernels of Yu & Turk (2013).

use super::block::{EDGE, NODES, Values};
use super::cloud::{Metric, Near};
use super::field::{Field, Kernel, rows};
use glam::Vec3;

/// (level − Σ weight · kernel) · scale.
pub struct Summed<K> {
    /// How influence falls.
    pub kernel: K,
    /// The sum at the surface.
    pub level: f32,
    /// Makes it about a distance [m].
    pub scale: f32,
    /// True where particles have metrics.
    pub stretched: bool,
}

fn stretch(m: &Metric, d: Vec3) -> Vec3 {
    Vec3::new(
        m[0] * d.x + m[3] * d.y + m[5] * d.z,
        m[3] * d.x + m[1] * d.y + m[4] * d.z,
        m[5] * d.x + m[4] * d.y + m[2] * d.z,
    )
}

impl<K: Kernel> Summed<K> {
    fn square(&self, near: &Near, d: Vec3) -> f32 {
        if self.stretched {
            stretch(&near.metric, d).length_squared()
        } else {
            d.length_squared() / (near.reach * near.reach)
        }
    }

    fn add(&self, near: &Near, cell: f32, sums: &mut Values) {
        let scale = 1.0 / (near.reach * near.reach);
        for row in rows(near, cell) {
            let across = row.dy * row.dy + row.dz * row.dz;
            for (x, sum) in sums[row.start..row.start + EDGE].iter_mut().enumerate() {
                let dx = near.center.x - x as f32 * cell;
                *sum += near.weight * self.kernel.value((dx * dx + across) * scale);
            }
        }
    }

    fn add_stretched(&self, near: &Near, cell: f32, sums: &mut Values) {
        for row in rows(near, cell) {
            // Along a row the stretched vector moves by the matrix's first column.
            let first = stretch(&near.metric, Vec3::new(near.center.x, row.dy, row.dz));
            let m = &near.metric;
            let step = Vec3::new(m[0], m[3], m[5]) * cell;
            for (x, sum) in sums[row.start..row.start + EDGE].iter_mut().enumerate() {
                let d = first - step * x as f32;
                *sum += near.weight * self.kernel.value(d.length_squared());
            }
        }
    }
}

impl<K: Kernel> Field for Summed<K> {
    fn fill(&self, near: &[Near], cell: f32, values: &mut Values) {
        let mut sums = [0.0; NODES];
        for near in near {
            if self.stretched {
                self.add_stretched(near, cell, &mut sums);
            } else {
                self.add(near, cell, &mut sums);
            }
        }
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = (self.level - sum) * self.scale;
        }
    }

    fn at(&self, near: &[Near], place: Vec3) -> f32 {
        let sum: f32 = near.iter().map(|near| self.share(near, place)).sum();
        (self.level - sum) * self.scale
    }

    fn gradient(&self, near: &[Near], place: Vec3) -> Vec3 {
        let mut sum = Vec3::ZERO;
        for near in near {
            let d = near.center - place;
            let slope = near.weight * self.kernel.slope(self.square(near, d));
            let along = if self.stretched {
                stretch(&near.metric, stretch(&near.metric, d))
            } else {
                d / (near.reach * near.reach)
            };
            sum += along * (2.0 * slope);
        }
        sum * self.scale
    }

    fn share(&self, near: &Near, place: Vec3) -> f32 {
        near.weight * self.kernel.value(self.square(near, near.center - place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::{Bump, Spline};
    use super::*;
    use barchan_base::random::Random;

    fn scattered(metric: Metric) -> Vec<Near> {
        let random = Random::new(3, 0);
        let near = |i| Near {
            center: random.in_cube(i, 0) * 4.0,
            reach: 2.0,
            radius: 0.5,
            weight: 0.5 + random.uniform(i, 3),
            metric,
            index: i as u32,
        };
        (0..60).map(near).collect()
    }

    fn agrees(field: &impl Field, near: &[Near]) {
        let mut values = [0.0; NODES];
        field.fill(near, 0.5, &mut values);
        for (i, value) in values.iter().enumerate() {
            let place = Vec3::new((i % 8) as f32, (i / 8 % 8) as f32, (i / 64) as f32) * 0.5;
            assert!((value - field.at(near, place)).abs() < 1e-4, "node {i}");
            let step = 1e-2;
            let slope = Vec3::from_array(Vec3::AXES.map(|axis| {
                (field.at(near, place + axis * step) - field.at(near, place - axis * step))
                    / (2.0 * step)
            }));
            let gradient = field.gradient(near, place);
            assert!((slope - gradient).length() < 0.03 * (1.0 + slope.length())); // differences of f32 sums
        }
    }

    #[test]
    fn nodes_places_and_gradients_agree() {
        let near = scattered([0.5, 0.7, 0.6, 0.1, -0.05, 0.08]);
        agrees(
            &Summed {
                kernel: Bump,
                level: 1.0,
                scale: 1.0,
                stretched: false,
            },
            &near,
        );
        agrees(
            &Summed {
                kernel: Spline,
                level: 1.0,
                scale: 1.0,
                stretched: true,
            },
            &near,
        );
    }
}
