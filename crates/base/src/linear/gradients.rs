//! Preconditioned conjugate gradients.

use super::vector::dot;
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
    let Scratch {
        residual: r,
        direction: p,
        image: q,
        preconditioned: z,
        sums,
    } = scratch;
    // The norm of what can be solved for is the scale; it uses p, which is not needed yet.
    p.copy_from_slice(b);
    operator.make_compatible(p);
    let scale = sums.dot(p, p).sqrt();
    if scale <= 0.0 {
        x.fill(0.0);
        return Solved {
            iterations: 0,
            residual: 0.0,
            end: End::Converged,
        };
    }
    operator.apply(x, q);
    let mut norm = sums
        .update(r, p, |range, r, p| {
            for ((r, p), q) in r.iter_mut().zip(&*p).zip(&q[range]) {
                *r = p - q;
            }
            dot(r, r)
        })
        .sqrt();
    let mut along_before = 0.0;
    for iteration in 0..=tolerance.max_iterations {
        let residual = norm / scale;
        let solved = |end| Solved {
            iterations: iteration,
            residual,
            end,
        };
        if residual <= tolerance.relative {
            return solved(End::Converged);
        }
        if iteration == tolerance.max_iterations || !residual.is_finite() {
            return solved(End::Stalled);
        }
        preconditioner.precondition(r, z);
        let along = sums.dot(r, z);
        let keep = if iteration == 0 {
            0.0
        } else {
            (along / along_before) as f32
        };
        along_before = along;
        super::vector::each_chunk(p, |range, p| {
            for (p, z) in p.iter_mut().zip(&z[range]) {
                *p = z + keep * *p;
            }
        });
        operator.apply(p, q);
        let curvature = sums.dot(p, q);
        if along <= 0.0 || curvature <= 0.0 {
            return solved(End::Stalled);
        }
        let step = (along / curvature) as f32;
        norm = sums
            .update(x, r, |range, x, r| {
                for ((x, r), (p, q)) in x
                    .iter_mut()
                    .zip(&mut *r)
                    .zip(p[range.clone()].iter().zip(&q[range]))
                {
                    *x += step * p;
                    *r -= step * q;
                }
                dot(r, r)
            })
            .sqrt();
    }
    unreachable!("the last iteration returns")
}
