//! A small dense factorisation, for the coarsest level.

/// Pivots below this part of their diagonal are rounding.
const VANISHING: f64 = 1e-9;

/// L D Lᵀ of a symmetric matrix without negative eigenvalues. Where a pivot vanishes, as on a part of the grid that no
/// boundary holds, its unknown is zero and the others are solved for.
#[derive(Clone, Debug, Default)]
pub struct Dense {
    /// L below the diagonal, row by row in `pivots.len()` columns.
    lower: Vec<f64>,
    /// D; zero where the pivot vanished.
    pivots: Vec<f64>,
    solution: Vec<f64>,
}

impl Dense {
    /// Factors the matrix of `len` rows whose lower triangle is `entry(row, column)`.
    pub fn factor(&mut self, len: usize, entry: impl Fn(usize, usize) -> f64) {
        self.lower.clear();
        self.lower.resize(len * len, 0.0);
        self.pivots.clear();
        self.solution.resize(len, 0.0);
        for i in 0..len {
            let (above, row) = self.lower.split_at_mut(i * len);
            for j in 0..i {
                let other = &above[j * len..];
                let known: f64 = (0..j).map(|k| row[k] * self.pivots[k] * other[k]).sum();
                let pivot = self.pivots[j];
                row[j] = if pivot > 0.0 {
                    (entry(i, j) - known) / pivot
                } else {
                    0.0
                };
            }
            let diagonal = entry(i, i);
            let known: f64 = (0..i).map(|k| row[k] * row[k] * self.pivots[k]).sum();
            let pivot = diagonal - known;
            self.pivots.push(if pivot > VANISHING * diagonal {
                pivot
            } else {
                0.0
            });
        }
    }

    /// Writes the solution for b into x.
    pub fn solve(&mut self, b: &[f32], x: &mut [f32]) {
        let len = self.pivots.len();
        let y = &mut self.solution;
        for i in 0..len {
            let row = &self.lower[i * len..][..i];
            let known: f64 = row.iter().zip(&*y).map(|(l, y)| l * y).sum();
            y[i] = f64::from(b[i]) - known;
        }
        for (y, &pivot) in y.iter_mut().zip(&self.pivots) {
            *y = if pivot > 0.0 { *y / pivot } else { 0.0 };
        }
        for i in (0..len).rev() {
            let value = y[i];
            for (y, l) in y.iter_mut().zip(&self.lower[i * len..][..i]) {
                *y -= l * value;
            }
            x[i] = value as f32;
        }
    }
}
