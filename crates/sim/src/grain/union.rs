//! A rigid union of balls: volume, centre and inertia of what they cover, each place counted once.

use glam::{DMat3, DVec3};

/// The most balls in a grain.
pub const MOST_BALLS: usize = 256;
/// Columns across a shape in the integrals: moments to 1e-4 and better.
const COLUMNS: usize = 512;
/// Moments of inertia nearer than this are one: the error of the integrals.
const SAME: f64 = 1e-3;

/// A union of balls, scaled to fit the unit ball about its centre of mass, turned to its principal axes.
#[derive(Clone, Debug, PartialEq)]
pub struct GrainShape {
    balls: Vec<(DVec3, f64)>,
    solid: Solid,
}

/// Of a body with density 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solid {
    /// Volume [m³].
    pub volume: f64,
    /// Moments of inertia about the principal axes [m⁵].
    pub inertia: DVec3,
}

impl Solid {
    /// True where all axes are alike: it turns as a ball does.
    pub fn turns_alike(&self) -> bool {
        (self.inertia.max_element() - self.inertia.min_element()).abs() < 1e-12
    }
}

/// Balls that make no grain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// There is none.
    #[error("a grain needs at least one sphere")]
    Empty,
    /// There are too many.
    #[error("a grain may have {MOST_BALLS} spheres, not {0}")]
    Many(usize),
    /// One has no size.
    #[error("sphere {0} needs a radius above 0 and a finite place")]
    Radius(usize),
    /// One is lost between the columns of the integrals.
    #[error(
        "sphere {0} is too small: its radius must be at least 1/{THINNEST} of the grain's size"
    )]
    Thin(usize),
    /// Its volume or inertia is not a number.
    #[error("its spheres are too large, too small or too far away to be reckoned with")]
    Beyond,
}

/// A ball's radius goes into the size of the whole so many times at most: four columns.
const THINNEST: usize = COLUMNS / 4;

impl GrainShape {
    /// A single ball.
    pub fn ball() -> Self {
        let volume = 4.0 / 3.0 * std::f64::consts::PI;
        Self {
            balls: vec![(DVec3::ZERO, 1.0)],
            solid: Solid {
                volume,
                inertia: DVec3::splat(0.4 * volume),
            },
        }
    }

    /// The union of balls, each x, y, z and radius in any one unit of length.
    ///
    /// # Errors
    /// If there are none or too many, or one has no size or hardly any.
    pub fn new(balls: &[[f64; 4]]) -> Result<Self, ShapeError> {
        if balls.is_empty() {
            return Err(ShapeError::Empty);
        }
        if balls.len() > MOST_BALLS {
            return Err(ShapeError::Many(balls.len()));
        }
        let good = |b: &[f64; 4]| b.iter().all(|x| x.is_finite()) && b[3] > 0.0;
        if let Some(bad) = balls.iter().position(|ball| !good(ball)) {
            return Err(ShapeError::Radius(bad));
        }
        let balls: Vec<(DVec3, f64)> = balls
            .iter()
            .map(|&[x, y, z, r]| (DVec3::new(x, y, z), r))
            .collect();
        if balls.len() == 1 {
            return Ok(Self::ball());
        }
        let (least, most) = extent(&balls);
        let size = (most - least).max_element();
        if let Some(thin) = balls.iter().position(|(_, r)| r * (THINNEST as f64) < size) {
            return Err(ShapeError::Thin(thin));
        }
        let (_, center, _) = moments(&balls);
        let centered: Vec<_> = balls.iter().map(|(at, r)| (*at - center, *r)).collect();
        let reach = centered.iter().map(|(at, r)| at.length() + r);
        let scale = 1.0 / reach.fold(0.0, f64::max);
        let unit: Vec<_> = centered
            .iter()
            .map(|(at, r)| (*at * scale, r * scale))
            .collect();
        let (volume, _, inertia) = moments(&unit);
        let (inertia, axes) = principal(inertia);
        if !(volume > 0.0 && inertia.min_element() > 0.0 && inertia.is_finite()) {
            return Err(ShapeError::Beyond);
        }
        Ok(Self {
            balls: unit
                .iter()
                .map(|(at, r)| (axes.transpose() * *at, *r))
                .collect(),
            solid: Solid { volume, inertia },
        })
    }

    /// Places and radii of the balls; the grain's radius is 1.
    pub fn balls(&self) -> &[(DVec3, f64)] {
        &self.balls
    }

    /// Its volume and inertia.
    pub fn solid(&self) -> &Solid {
        &self.solid
    }
}

/// The corners of the box around balls.
fn extent(balls: &[(DVec3, f64)]) -> (DVec3, DVec3) {
    let corners = balls.iter().map(|(at, r)| (*at - *r, *at + *r));
    corners
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or_default()
}

/// Volume, centre, and inertia about the centre. Along z the union is exact: a few stretches on each column.
fn moments(balls: &[(DVec3, f64)]) -> (f64, DVec3, DMat3) {
    let (least, most) = extent(balls);
    let step = (most - least) / COLUMNS as f64;
    let area = step.x * step.y;
    let (mut volume, mut first, mut second) = (0.0, DVec3::ZERO, DMat3::ZERO);
    let mut stretches: Vec<(f64, f64)> = Vec::new();
    for i in 0..COLUMNS * COLUMNS {
        let (x, y) = (
            least.x + ((i % COLUMNS) as f64 + 0.5) * step.x,
            least.y + ((i / COLUMNS) as f64 + 0.5) * step.y,
        );
        covered(balls, (x, y), &mut stretches);
        for &(from, to) in &stretches {
            // Integrals of 1, z and z² over the stretch.
            let (m0, m1, m2) = (
                (to - from) * area,
                0.5 * (to * to - from * from) * area,
                (to.powi(3) - from.powi(3)) / 3.0 * area,
            );
            volume += m0;
            first += DVec3::new(x * m0, y * m0, m1);
            second += DMat3::from_cols_array(&[
                x * x * m0,
                x * y * m0,
                x * m1,
                x * y * m0,
                y * y * m0,
                y * m1,
                x * m1,
                y * m1,
                m2,
            ]);
        }
    }
    let center = first / volume;
    let outer = DMat3::from_cols(center * center.x, center * center.y, center * center.z);
    let second = second - outer * volume;
    let trace = second.x_axis.x + second.y_axis.y + second.z_axis.z;
    (
        volume,
        center,
        DMat3::from_diagonal(DVec3::splat(trace)) - second,
    )
}

/// The stretches of the column at x, y that balls cover, without overlaps.
fn covered(balls: &[(DVec3, f64)], (x, y): (f64, f64), stretches: &mut Vec<(f64, f64)>) {
    stretches.clear();
    for (at, r) in balls {
        let square = r * r - (x - at.x).powi(2) - (y - at.y).powi(2);
        if square > 0.0 {
            let half = square.sqrt();
            stretches.push((at.z - half, at.z + half));
        }
    }
    stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut kept = 0;
    for i in 1..stretches.len() {
        if stretches[i].0 <= stretches[kept].1 {
            stretches[kept].1 = stretches[kept].1.max(stretches[i].1);
        } else {
            kept += 1;
            stretches[kept] = stretches[i];
        }
    }
    stretches.truncate((kept + 1).min(stretches.len()));
}

/// Moments and axes of a symmetric matrix, by Jacobi's rotations; moments that the integrals cannot tell apart are one.
fn principal(matrix: DMat3) -> (DVec3, DMat3) {
    let mut m = matrix.to_cols_array_2d();
    let mut axes = DMat3::IDENTITY.to_cols_array_2d();
    let scale = m[0][0].max(m[1][1]).max(m[2][2]);
    let apart = |m: &[[f64; 3]; 3]| m[0][1].abs().max(m[0][2].abs()).max(m[1][2].abs());
    let spread = m[0][0].max(m[1][1]).max(m[2][2]) - m[0][0].min(m[1][1]).min(m[2][2]);
    if apart(&m).max(spread) < SAME * scale {
        let mean = (m[0][0] + m[1][1] + m[2][2]) / 3.0;
        return (DVec3::splat(mean), DMat3::IDENTITY);
    }
    for _ in 0..64 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if m[p][q].abs() < 1e-300 {
                continue;
            }
            let angle = 0.5 * (2.0 * m[p][q]).atan2(m[p][p] - m[q][q]);
            let (sin, cos) = angle.sin_cos();
            let turn = |a: f64, b: f64| (cos * a + sin * b, cos * b - sin * a);
            for row in &mut m {
                (row[p], row[q]) = turn(row[p], row[q]);
            }
            let (old_p, old_q) = (m[p], m[q]);
            for k in 0..3 {
                (m[p][k], m[q][k]) = turn(old_p[k], old_q[k]);
            }
            let (old_p, old_q) = (axes[p], axes[q]);
            for k in 0..3 {
                (axes[p][k], axes[q][k]) = turn(old_p[k], old_q[k]);
            }
        }
    }
    let mut axes = DMat3::from_cols_array_2d(&axes);
    if axes.determinant() < 0.0 {
        axes.z_axis = -axes.z_axis;
    }
    (DVec3::new(m[0][0], m[1][1], m[2][2]), axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn two_balls_far_apart_are_their_sum_and_two_in_one_are_one() {
        let apart = GrainShape::new(&[[0., 0., -3., 1.], [0., 0., 3., 1.]]).unwrap();
        let ball = 4.0 / 3.0 * PI / 64.0; // the radius of the whole is 4
        let exact = 2.0 * ball;
        assert!((apart.solid().volume / exact - 1.0).abs() < 1e-4);
        // About the long axis 2/5 m r² each; across it the parallel axis too.
        let along = 2.0 * ball * 0.4 / 16.0;
        let across = along + 2.0 * ball * (3.0f64 / 4.0).powi(2);
        let mut found = apart.solid().inertia.to_array();
        found.sort_by(f64::total_cmp);
        for (found, exact) in found.iter().zip([along, across, across]) {
            assert!((found / exact - 1.0).abs() < 1e-4, "{found} for {exact}");
        }
        let twice = GrainShape::new(&[[1., 2., 3., 2.], [1., 2., 3., 2.]]).unwrap();
        assert!((twice.solid().volume / GrainShape::ball().solid().volume - 1.0).abs() < 1e-4);
        assert!(twice.solid().turns_alike());
    }

    #[test]
    fn overlap_is_counted_once() {
        // A lens of two unit balls at distance d: V = π (2 − d)² (d² + 4 d) / (12 d).
        let d: f64 = 1.0;
        let lens = PI * (2.0 - d).powi(2) * (d * d + 4.0 * d) / (12.0 * d);
        let exact = (2.0 * 4.0 / 3.0 * PI - lens) / (1.0 + d / 2.0).powi(3);
        let shape = GrainShape::new(&[[0., 0., 0., 1.], [d, 0., 0., 1.]]).unwrap();
        assert!((shape.solid().volume / exact - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_crooked_grain_lies_along_its_principal_axes() {
        let balls = [[0., 0., 0., 1.], [1., 1., 0., 0.7], [2., 2.5, 0.3, 0.5]];
        let shape = GrainShape::new(&balls).unwrap();
        let again: Vec<[f64; 4]> = shape
            .balls()
            .iter()
            .map(|(p, r)| [p.x, p.y, p.z, *r])
            .collect();
        let again = GrainShape::new(&again).unwrap();
        let difference = (again.solid().inertia - shape.solid().inertia)
            .abs()
            .max_element();
        assert!(difference < 1e-4 * shape.solid().inertia.max_element());
    }

    #[test]
    fn balls_that_make_no_grain_are_refused() {
        assert_eq!(GrainShape::new(&[]), Err(ShapeError::Empty));
        assert_eq!(
            GrainShape::new(&[[0., 0., 0., 0.]]),
            Err(ShapeError::Radius(0))
        );
        let nan = [[0., 0., 0., 1.], [f64::NAN, 0., 0., 1.]];
        assert_eq!(GrainShape::new(&nan), Err(ShapeError::Radius(1)));
        assert!(GrainShape::new(&vec![[0., 0., 0., 1.]; 257]).is_err());
    }

    #[test]
    fn spheres_too_thin_for_the_columns_are_refused() {
        for thin in [1e-4, 1e-300, 5e-324] {
            let balls = [[0., 0., 0., thin], [1., 1., 0., thin]];
            assert_eq!(GrainShape::new(&balls), Err(ShapeError::Thin(0)), "{thin}");
        }
        let huge = [[0., 0., 0., 1e200], [1e200, 1., 0., 1e200]];
        assert_eq!(GrainShape::new(&huge), Err(ShapeError::Beyond));
    }
}
