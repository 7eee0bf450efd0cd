//! How large grains are: a table of diameters against the part of all grains that are smaller.

/// Points of the table.
const POINTS: usize = 65;
/// Bell curves end this many standard deviations from their middle.
const TAIL: f64 = 2.5;

/// A distribution of diameters, by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Diameters [m] at equal steps of the part that is smaller.
    table: Vec<f64>,
}

/// Sizes that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SizeError {
    /// A diameter is not above zero.
    #[error("grains of this distribution would be as small as {0} m")]
    Small(f64),
    /// The smallest is larger than the largest.
    #[error("the smallest size must come first")]
    Order,
    /// A sieve curve that does not rise to all.
    #[error("a sieve curve needs two sizes or more, rising, and parts that rise from 0 to 1")]
    Sieve,
}

impl Sizes {
    /// All of one `diameter` [m].
    pub fn one(diameter: f64) -> Self {
        Self {
            table: vec![diameter; 2],
        }
    }

    /// Any diameter between two [m] as likely.
    ///
    /// # Errors
    /// If they are not in order or not above zero.
    pub fn uniform(from: f64, to: f64) -> Result<Self, SizeError> {
        Self::checked(vec![from, to])
    }

    /// A bell curve about `mean` with standard deviation `spread` [m], cut at two and a half of them.
    ///
    /// # Errors
    /// If some would be zero or less.
    pub fn normal(mean: f64, spread: f64) -> Result<Self, SizeError> {
        Self::checked(bell().map(|z| mean + z * spread).collect())
    }

    /// A bell curve of the logarithm, about `median` [m], with standard deviation `spread` of the natural logarithm; cut
    /// likewise.
    ///
    /// # Errors
    /// If some would be zero or less.
    pub fn log_normal(median: f64, spread: f64) -> Result<Self, SizeError> {
        Self::checked(bell().map(|z| median * (z * spread).exp()).collect())
    }

    /// A sieve curve: diameters [m], and the part of the mass that passes each. Between sieves the logarithm of the
    /// diameter is even.
    ///
    /// # Errors
    /// If the curve does not rise from 0 to 1.
    pub fn sieve(curve: &[(f64, f64)]) -> Result<Self, SizeError> {
        let rises = curve
            .windows(2)
            .all(|w| w[1].0 > w[0].0 && w[1].1 >= w[0].1);
        let whole = |part: f64, end: f64| (part - end).abs() < 1e-9;
        let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
            return Err(SizeError::Sieve);
        };
        if curve.len() < 2 || !rises || !whole(first.1, 0.0) || !whole(last.1, 1.0) {
            return Err(SizeError::Sieve);
        }
        if first.0.is_nan() || first.0 <= 0.0 {
            return Err(SizeError::Small(first.0));
        }
        // So much mass of grains of a diameter is so many of them over its cube.
        const PARTS: usize = 32;
        let mut numbers = vec![(first.0, 0.0)];
        let mut total = 0.0;
        for pair in curve.windows(2) {
            let ratio = (pair[1].0 / pair[0].0).powf(1.0 / PARTS as f64);
            for part in 0..PARTS {
                let from = pair[0].0 * ratio.powi(part as i32);
                let middle = from * ratio.sqrt();
                total += (pair[1].1 - pair[0].1) / PARTS as f64 / middle.powi(3);
                numbers.push((from * ratio, total));
            }
        }
        let at = |part: f64| {
            let wanted = part * total;
            let next = numbers
                .partition_point(|(_, n)| *n < wanted)
                .clamp(1, numbers.len() - 1);
            let (a, b) = (numbers[next - 1], numbers[next]);
            let f = if b.1 > a.1 {
                ((wanted - a.1) / (b.1 - a.1)).clamp(0.0, 1.0)
            } else {
                1.0
            };
            a.0 + (b.0 - a.0) * f
        };
        // Few large grains carry much mass: the table must be fine at its end.
        let fine = 32 * (POINTS - 1);
        Self::checked((0..=fine).map(|i| at(i as f64 / fine as f64)).collect())
    }

    fn checked(table: Vec<f64>) -> Result<Self, SizeError> {
        if let Some(bad) = table.iter().find(|size| !size.is_finite() || **size <= 0.0) {
            return Err(SizeError::Small(*bad));
        }
        match table.is_sorted() {
            true => Ok(Self { table }),
            false => Err(SizeError::Order),
        }
    }

    /// The diameter [m] that the part `part` of all grains is smaller than.
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.table.len() - 1;
        let at = part.clamp(0.0, 1.0) * last as f64;
        let below = (at.floor() as usize).min(last - 1);
        let f = at - below as f64;
        self.table[below] * (1.0 - f) + self.table[below + 1] * f
    }
}

/// The bell curve's quantiles at equal steps, its tails cut.
fn bell() -> impl Iterator<Item = f64> {
    // The integral of the bell from the lower cut, on a fine table, then looked up backwards.
    const FINE: usize = 4000;
    let z = |i: usize| TAIL * (2.0 * i as f64 / FINE as f64 - 1.0);
    let mut sums = vec![0.0];
    for i in 0..FINE {
        let middle = 0.5 * (z(i) + z(i + 1));
        sums.push(sums[i] + (-0.5 * middle * middle).exp());
    }
    (0..POINTS).map(move |i| {
        let wanted = sums[FINE] * i as f64 / (POINTS - 1) as f64;
        let next = sums.partition_point(|sum| *sum < wanted).clamp(1, FINE);
        let f = (wanted - sums[next - 1]) / (sums[next] - sums[next - 1]);
        z(next - 1) + (z(next) - z(next - 1)) * f
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sizes: &Sizes, of: impl Fn(f64) -> f64) -> f64 {
        let n = 20_000;
        (0..n)
            .map(|i| of(sizes.quantile((i as f64 + 0.5) / n as f64)))
            .sum::<f64>()
            / n as f64
    }

    #[test]
    fn bells_have_their_mean_and_spread() {
        let sizes = Sizes::normal(2.0, 0.3).unwrap();
        let middle = mean(&sizes, |d| d);
        let spread = mean(&sizes, |d| (d - middle).powi(2)).sqrt();
        assert!((middle - 2.0).abs() < 1e-3);
        assert!((spread - 0.3 * 0.955).abs() < 0.006, "{spread}"); // the cut takes 4.5 % of it
        let sizes = Sizes::log_normal(2.0, 0.5).unwrap();
        assert!((mean(&sizes, f64::ln) - 2f64.ln()).abs() < 1e-3);
    }

    #[test]
    fn a_sieve_curve_is_of_mass() {
        let sizes = Sizes::sieve(&[(1.0, 0.0), (2.0, 0.5), (4.0, 1.0)]).unwrap();
        let below = mean(&sizes, |d| if d < 2.0 { d.powi(3) } else { 0.0 });
        let all = mean(&sizes, |d| d.powi(3));
        assert!((below / all - 0.5).abs() < 0.01, "{}", below / all);
        assert!((sizes.quantile(1.0) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Sizes::uniform(2.0, 1.0).is_err());
        assert!(Sizes::normal(1.0, 0.5).is_err());
        assert!(Sizes::sieve(&[(1.0, 0.0), (2.0, 0.9)]).is_err());
        assert!(Sizes::sieve(&[]).is_err());
    }
}
