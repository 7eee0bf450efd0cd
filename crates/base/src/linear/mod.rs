//! Solving large symmetric systems: conjugate gradients with a multigrid preconditioner, and the same with
//! unknowns that must not be negative.
//!
//! - [`Operator`] and [`Preconditioner`] are the two traits; the solvers know nothing else.
//! - [`Stencil`] is the matrix of a sparse grid of cells, rebuilt in place every time step.
//! - [`Multigrid`] preconditions a stencil. `multigrid.rs` explains its choices.
//! - [`conjugate_gradients`] solves A x = b; [`nonnegative`] minimises ½ xᵀA x − bᵀx with x ≥ 0.
//!
//! Vectors are `f32`, every sum over them is `f64` and runs in chunk order, so results do not depend on the
//! number of threads. A [`Scratch`] that has seen a size once makes later solves free of allocation.

mod dense;
mod gradients;
mod level;
mod multigrid;
mod nonnegative;
mod stencil;
#[cfg(test)]
mod tests;
mod vector;

pub use gradients::conjugate_gradients;
pub use multigrid::Multigrid;
pub use nonnegative::nonnegative;
pub use stencil::{NONE, Row, Stencil};

/// A symmetric matrix without negative eigenvalues, known by what it does to vectors.
pub trait Operator: Sync {
    /// Number of unknowns.
    fn len(&self) -> usize;

    /// Whether there are no unknowns.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes A x into y.
    fn apply(&self, x: &[f32], y: &mut [f32]);

    /// The diagonal of A. A row whose diagonal is zero must be zero: its unknown is left alone.
    fn diagonal(&self) -> &[f32];

    /// Takes out of b what no x can produce, so that A x = b has a solution. Regular operators do nothing.
    fn make_compatible(&self, b: &mut [f32]) {
        let _ = b;
    }

    /// Whether xᵀb grows for ever along some x ≥ 0 with A x = 0, by a slope above `slope` for x of length one.
    fn is_unbounded(&self, b: &[f32], slope: f64) -> bool {
        let _ = (b, slope);
        false
    }

    /// An upper bound of the eigenvalues of D⁻¹A, where the operator knows one.
    fn scaled_norm(&self) -> Option<f32> {
        None
    }
}

/// An approximate inverse: symmetric, positive, cheap. May keep scratch, so it is asked mutably.
pub trait Preconditioner {
    /// Writes B r into z.
    fn precondition(&mut self, r: &[f32], z: &mut [f32]);
}

/// The inverse of the diagonal; zero where the diagonal is zero.
#[derive(Clone, Copy, Debug)]
pub struct Jacobi<'a> {
    /// The diagonal of the operator.
    pub diagonal: &'a [f32],
}

impl Preconditioner for Jacobi<'_> {
    fn precondition(&mut self, r: &[f32], z: &mut [f32]) {
        let diagonal = self.diagonal;
        vector::each(z, |i, z| *z = vector::divide(r[i], diagonal[i]));
    }
}

/// When a solve may stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Norm of the residual over the norm of b at which the solve is done.
    pub relative: f64,
    /// Iterations after which the solve gives up.
    pub max_iterations: usize,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            relative: 1e-4,
            max_iterations: 200,
        }
    }
}

/// How a solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The tolerance is met.
    Converged,
    /// The iterations ran out, or rounding allows no further progress; x is the best that was found.
    Stalled,
    /// There is no solution: along some direction the objective falls for ever. x is where that was found.
    Unbounded,
}

/// What a solve did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// Iterations taken; zero where the start was good enough.
    pub iterations: usize,
    /// Norm of the residual over the norm of b. With x ≥ 0, the residual of the optimality conditions.
    pub residual: f64,
    /// Why it stopped.
    pub end: End,
}

/// Vectors that solves use and leave behind for the next.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    residual: Vec<f32>,
    direction: Vec<f32>,
    image: Vec<f32>,
    preconditioned: Vec<f32>,
    sums: vector::Sums,
}

impl Scratch {
    fn resize(&mut self, len: usize) {
        for vector in [
            &mut self.residual,
            &mut self.direction,
            &mut self.image,
            &mut self.preconditioned,
        ] {
            vector.resize(len, 0.0);
        }
    }
}
