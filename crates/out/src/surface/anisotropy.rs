//! Stretched kernels for smooth and thin surfaces (Yu & Turk 2013): each particle's kernel is flattened where its
//! neighbours lie flat, and its centre is drawn to their mean.

use super::build::SurfaceError;
use super::cloud::{Cloud, Metric, Near};
use super::field::{Kernel, Spline};
use super::neighbors::each_with_neighbors;
use glam::{DMat3, DVec3, Vec3};

/// The neighbourhood whose shape counts, in reaches: enough to hold [`FEW`] particles in a thin sheet.
const NEIGHBORHOOD: f32 = 1.5;
/// With fewer neighbours a particle keeps its own sphere.
const FEW: usize = 25;
/// The most that an axis may be longer than another.
const MOST_STRETCHED: f64 = 4.0;
/// The most that an axis may be longer than that of a sphere.
const LONGEST: f64 = 2.0;
/// How far centres are drawn to the mean of their neighbours.
const DRAWN: f64 = 0.9;
/// Variance along an axis in a full neighbourhood of radius 1 under the weight 1 − d³.
const FULL_VARIANCE: f64 = 0.15;
/// The sum at the surface.
pub const LEVEL: f32 = 0.4;
/// Where [`Spline`] falls to [`LEVEL`].
const LEVEL_DISTANCE: f64 = 0.412_606;

/// The neighbours of a particle, weighted by nearness.
struct Neighborhood {
    count: usize,
    weight: f64,
    mean: DVec3,
    covariance: DMat3,
}

/// Gives every particle its kernel.
///
/// # Errors
/// If the blocks are too many.
pub fn prepare(cloud: &mut Cloud) -> Result<(), SurfaceError> {
    let density = each_with_neighbors(cloud, |center, near| {
        near.iter().map(|near| influence(near, center)).sum::<f32>()
    })?;
    for reach in &mut cloud.reach {
        *reach *= NEIGHBORHOOD;
    }
    cloud.measure_homes();
    let shapes = each_with_neighbors(cloud, |center, near| {
        let around = Neighborhood::new(center.as_dvec3(), near);
        (center.as_dvec3(), around)
    })?;
    cloud.metric = Vec::with_capacity(cloud.len());
    cloud.weight = Vec::with_capacity(cloud.len());
    for (i, (center, around)) in shapes.into_iter().enumerate() {
        let reach = f64::from(cloud.reach[i] / NEIGHBORHOOD);
        let (axes, lengths) = if around.count > FEW {
            let drawn = DRAWN * (around.mean - center);
            cloud.centers[i] = (cloud.centers[i].as_dvec3() + drawn).as_vec3();
            around.stretch(f64::from(cloud.reach[i]))
        } else {
            let own = f64::from(cloud.radius[i]) / (LEVEL_DISTANCE * reach);
            (DMat3::IDENTITY, DVec3::splat(own))
        };
        let alone = around.count <= FEW;
        // Flat kernels are higher, so that every particle stands for the same amount.
        let height = if alone {
            1.0
        } else {
            1.0 / lengths.element_product()
        };
        cloud.weight.push(height as f32 / density[i]);
        cloud.metric.push(metric(axes, lengths * reach));
        cloud.reach[i] = (lengths.max_element() * reach) as f32;
    }
    cloud.measure_homes();
    Ok(())
}

/// Gives every particle the volume it has among its neighbours.
///
/// # Errors
/// If the blocks are too many.
pub fn weigh(cloud: &mut Cloud) -> Result<(), SurfaceError> {
    cloud.weight = each_with_neighbors(cloud, |center, near| {
        1.0 / near.iter().map(|near| influence(near, center)).sum::<f32>()
    })?;
    Ok(())
}

fn influence(near: &Near, center: Vec3) -> f32 {
    Spline.value(near.center.distance_squared(center) / (near.reach * near.reach))
}

impl Neighborhood {
    fn new(center: DVec3, near: &[Near]) -> Self {
        let mut this = Self {
            count: 0,
            weight: 0.0,
            mean: DVec3::ZERO,
            covariance: DMat3::ZERO,
        };
        let mut offset = DVec3::ZERO;
        let mut square = DMat3::ZERO;
        let here = center.as_vec3();
        for near in near {
            let part = near.center.distance_squared(here) / (near.reach * near.reach);
            if part < 1.0 {
                let d = near.center.as_dvec3() - center;
                let weight = f64::from(1.0 - part * part.sqrt());
                this.count += 1;
                this.weight += weight;
                offset += d * weight;
                square += outer(d) * weight;
            }
        }
        // A particle is always its own neighbour, so the weight is at least one.
        offset /= this.weight;
        this.mean = center + offset;
        this.covariance = square * (1.0 / this.weight) - outer(offset);
        this
    }

    /// Axes and lengths of the stretched kernel, relative to a sphere's.
    fn stretch(&self, radius: f64) -> (DMat3, DVec3) {
        let (axes, variance) = eigen(self.covariance);
        let relative = variance / (FULL_VARIANCE * radius * radius);
        let longest = relative.max_element();
        let lengths = relative.max(DVec3::splat(longest / MOST_STRETCHED));
        (
            axes,
            lengths.clamp(DVec3::splat(0.05), DVec3::splat(LONGEST)),
        )
    }
}

fn outer(d: DVec3) -> DMat3 {
    DMat3::from_cols(d * d.x, d * d.y, d * d.z)
}

/// The matrix that takes the ellipsoid with these axes and lengths to the unit sphere.
fn metric(axes: DMat3, lengths: DVec3) -> Metric {
    let m = axes * DMat3::from_diagonal(lengths.recip()) * axes.transpose();
    [
        m.x_axis.x, m.y_axis.y, m.z_axis.z, m.y_axis.x, m.z_axis.y, m.z_axis.x,
    ]
    .map(|v| v as f32)
}

/// Eigenvectors (columns) and eigenvalues of a symmetric matrix, by Jacobi's rotations.
fn eigen(mut m: DMat3) -> (DMat3, DVec3) {
    const SWEEPS: usize = 12;
    let mut axes = DMat3::IDENTITY;
    for _ in 0..SWEEPS {
        for (p, q) in [(0, 1), (1, 2), (0, 2)] {
            let off = m.col(q)[p];
            if off.abs() <= f64::MIN_POSITIVE {
                continue;
            }
            let theta = (m.col(q)[q] - m.col(p)[p]) / (2.0 * off);
            let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let cos = 1.0 / (tangent * tangent + 1.0).sqrt();
            let sin = tangent * cos;
            let mut turn = DMat3::IDENTITY;
            turn.col_mut(p)[p] = cos;
            turn.col_mut(q)[q] = cos;
            turn.col_mut(q)[p] = sin;
            turn.col_mut(p)[q] = -sin;
            m = turn.transpose() * m * turn;
            axes *= turn;
        }
    }
    (axes, DVec3::new(m.x_axis.x, m.y_axis.y, m.z_axis.z))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_put_the_matrix_together_again() {
        let m = DMat3::from_cols_array(&[4.0, 1.0, -2.0, 1.0, 3.0, 0.5, -2.0, 0.5, 1.0]);
        let (axes, values) = eigen(m);
        let again = axes * DMat3::from_diagonal(values) * axes.transpose();
        assert!(again.abs_diff_eq(m, 1e-12), "{again} for {m}");
        assert!((axes * axes.transpose()).abs_diff_eq(DMat3::IDENTITY, 1e-12));
    }

    #[test]
    fn the_level_is_where_the_kernel_falls_to_it() {
        let distance = LEVEL_DISTANCE as f32;
        assert!((Spline.value(distance * distance) - LEVEL).abs() < 1e-3);
    }
}
