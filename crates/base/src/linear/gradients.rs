//! Preconditioned conjugate gradients.

use super::vector::{dot, each, each_chunk};
use super::{End, Operator, Preconditioner, Scratch, Solved, Tolerance};

/// Solves A x = b from the x that is there. On a singular operator the part of b that no x can produce is left out.
///
/// The residual is the one the iteration carries along. Where x is large beside b (a deep column), rounding x to `f32`
/// alone leaves a true residual near 10⁻⁷ |A||x|.
pub fn conjugate_gradients(
    operator: &impl Operator,
    preconditioner: &mut impl Preconditioner,
    b: &[f32],
    x: &mut [f32],
    tolerance: Tolerance,
    scratch: &mut Scratch,
) -> Solved {
    scratch.resize(b.len());
    let scale = begin(operator, b, x, scratch);
    if scale <= 0.0 {
        x.fill(0.0);
        return Solved {
            iterations: 0,
            residual: 0.0,
            end: End::Converged,
        };
    }
    let Scratch {
        residual: r,
        direction: p,
        image: q,
        preconditioned: z,
        sums,
    } = scratch;
    let mut residual = sums.dot(r, r).sqrt() / scale;
    let mut iterations = 0;
    let mut before = None;
    let end = loop {
        if residual <= tolerance.relative {
            break End::Converged;
        }
        if iterations == tolerance.max_iterations || !residual.is_finite() {
            break End::Stalled;
        }
        preconditioner.precondition(r, z);
        let along = sums.dot(r, z);
        let keep = before.map_or(0.0, |before| along / before) as f32;
        each_chunk(p, |range, p| {
            for (p, z) in p.iter_mut().zip(&z[range]) {
                *p = z + keep * *p;
            }
        });
        operator.apply(p, q);
        let curvature = sums.dot(p, q);
        if along <= 0.0 || curvature <= 0.0 {
            break End::Stalled;
        }
        let step = (along / curvature) as f32;
        let squared = sums.update(x, r, |range, x, r| {
            let along = p[range.clone()].iter().zip(&q[range]);
            for ((x, r), (p, q)) in x.iter_mut().zip(&mut *r).zip(along) {
                *x += step * p;
                *r -= step * q;
            }
            dot(r, r)
        });
        residual = squared.sqrt() / scale;
        before = Some(along);
        iterations += 1;
    };
    Solved {
        iterations,
        residual,
        end,
    }
}

/// Writes the residual of x and clears the direction; returns the norm of the part of b that can be solved for.
fn begin(operator: &impl Operator, b: &[f32], x: &[f32], scratch: &mut Scratch) -> f64 {
    let r = &mut scratch.residual;
    r.copy_from_slice(b);
    operator.make_compatible(r);
    let scale = scratch.sums.dot(r, r).sqrt();
    operator.apply(x, &mut scratch.image);
    let image = &scratch.image;
    each(r, |i, r| *r -= image[i]);
    scratch.direction.fill(0.0);
    scale
}
