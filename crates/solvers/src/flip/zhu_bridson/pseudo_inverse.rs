//! The inverse of a small symmetric matrix on the space it acts on: directions it maps to nothing are left out.

/// Rows and columns: three of motion, three of turning.
pub(super) const SIZE: usize = 6;
/// A vector of that space.
pub(super) type Vector = [f64; SIZE];
/// A matrix on it.
pub(super) type Matrix = [Vector; SIZE];

/// Eigenvalues below this part of the largest are zero.
const ZERO: f64 = 1e-13;
/// Sweeps of rotations; each squares what is left off the diagonal, so these are plenty.
const SWEEPS: usize = 24;

/// `matrix` times `vector`.
pub(super) fn times(matrix: &Matrix, vector: &Vector) -> Vector {
    matrix.map(|row| dot(&row, vector))
}

/// The inner product.
pub(super) fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Moore and Penrose's inverse of a symmetric matrix without negative eigenvalues, by Jacobi's rotations.
pub(super) fn pseudo_inverse(matrix: &Matrix) -> Matrix {
    let mut values = *matrix;
    let mut vectors = [[0.0; SIZE]; SIZE];
    for (i, row) in vectors.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    for _ in 0..SWEEPS {
        for p in 0..SIZE {
            for q in p + 1..SIZE {
                rotate(&mut values, &mut vectors, p, q);
            }
        }
    }
    let largest = (0..SIZE).map(|i| values[i][i]).fold(0.0, f64::max);
    let mut inverse = [[0.0; SIZE]; SIZE];
    for k in (0..SIZE).filter(|k| values[*k][*k] > ZERO * largest) {
        for i in 0..SIZE {
            for j in 0..SIZE {
                inverse[i][j] += vectors[i][k] * vectors[j][k] / values[k][k];
            }
        }
    }
    inverse
}

/// One rotation, that makes the entry at (p, q) zero.
fn rotate(values: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize) {
    let off = values[p][q];
    if off == 0.0 {
        return;
    }
    let theta = (values[q][q] - values[p][p]) / (2.0 * off);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turn = |a: &mut f64, b: &mut f64| {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    };
    for row in values.iter_mut().chain(vectors.iter_mut()) {
        let (left, right) = row.split_at_mut(q);
        turn(&mut left[p], &mut right[0]);
    }
    let (upper, lower) = values.split_at_mut(q);
    for (a, b) in upper[p].iter_mut().zip(&mut lower[0]) {
        turn(a, b);
    }
    (values[p][q], values[q][p]) = (0.0, 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    /// A random matrix of the given rank.
    fn random_matrix(rank: u64, seed: u64) -> Matrix {
        let random = Random::new(seed, 0);
        let mut matrix = [[0.0; SIZE]; SIZE];
        for k in 0..rank {
            let v: Vector = std::array::from_fn(|i| f64::from(random.uniform(k, i as u32)) - 0.5);
            for i in 0..SIZE {
                for j in 0..SIZE {
                    matrix[i][j] += v[i] * v[j];
                }
            }
        }
        matrix
    }

    #[test]
    fn it_inverts_on_what_the_matrix_reaches_whatever_its_rank() {
        for rank in 0..=6 {
            for seed in 0..20 {
                let matrix = random_matrix(rank, seed);
                let inverse = pseudo_inverse(&matrix);
                let random = Random::new(seed, 9);
                let x: Vector = std::array::from_fn(|i| f64::from(random.uniform(0, i as u32)));
                let reached = times(&matrix, &x);
                let again = times(&matrix, &times(&inverse, &reached));
                for (a, b) in again.iter().zip(reached) {
                    assert!((a - b).abs() < 1e-9, "rank {rank}: {a} {b}");
                }
            }
        }
    }
}
