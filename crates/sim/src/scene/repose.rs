//! Which contacts give which angle of repose: data in `repose.toml`, found by `barchan calibrate`.

use super::node;
use super::problem::Problems;
use super::quantity::{Acute, Angle, NotNegative, Quantity, Ratio};
use super::read::Read;
use crate::table;
use std::collections::BTreeMap;
use std::sync::LazyLock;

table! {
    /// A shape's contacts, and the angles that they give; all three rise.
    pub struct Repose {
        /// Coefficients of friction.
        friction: Vec<Quantity<Ratio, NotNegative>>,
        /// Coefficients of rolling resistance.
        rolling: Vec<Quantity<Ratio, NotNegative>>,
        /// Angles of repose.
        angle: Vec<Quantity<Angle, Acute>>,
    }
}

/// All shapes that were calibrated, by name.
pub static REPOSE: LazyLock<BTreeMap<String, Repose>> = LazyLock::new(|| {
    let root = node::parse(include_str!("repose.toml"), 0).expect("repose.toml is valid TOML");
    let mut problems = Problems::default();
    let shapes = BTreeMap::read(&root, "", &mut problems);
    shapes.unwrap_or_else(|| panic!("repose.toml is wrong: {:?}", problems.messages()))
});

impl Repose {
    /// The least and the steepest angle [rad].
    pub fn range(&self) -> (f64, f64) {
        let angle = |row: usize| self.angle[row].si;
        (angle(0), angle(self.angle.len() - 1))
    }

    /// Friction and rolling resistance that give `angle` [rad]; beyond the table, those at its end.
    pub fn contact(&self, angle: f64) -> (f64, f64) {
        let last = self.angle.len() - 1;
        let above = self.angle.iter().position(|known| known.si >= angle);
        let (low, high) = match above {
            Some(0) => (0, 0),
            Some(above) => (above - 1, above),
            None => (last, last),
        };
        let gap = self.angle[high].si - self.angle[low].si;
        let part = if gap > 0.0 {
            (angle - self.angle[low].si) / gap
        } else {
            0.0
        };
        let between = |all: &[Quantity<Ratio, NotNegative>]| {
            all[low].si + part * (all[high].si - all[low].si)
        };
        (between(&self.friction), between(&self.rolling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grain::NAMED;

    #[test]
    fn every_named_shape_is_calibrated_and_its_table_rises() {
        for (name, _) in NAMED.iter() {
            let repose = &REPOSE[*name];
            let rises = |all: &[f64]| all.is_sorted();
            let values = |all: &[Quantity<Ratio, NotNegative>]| {
                all.iter().map(|one| one.si).collect::<Vec<f64>>()
            };
            let angles: Vec<f64> = repose.angle.iter().map(|one| one.si).collect();
            assert!(rises(&values(&repose.friction)), "{name}");
            assert!(rises(&values(&repose.rolling)), "{name}");
            assert!(rises(&angles), "{name}");
            assert_eq!(angles.len(), repose.friction.len(), "{name}");
            assert_eq!(angles.len(), repose.rolling.len(), "{name}");
        }
    }

    #[test]
    fn contacts_lie_between_those_that_were_tried() {
        let ball = &REPOSE["ball"];
        let (first, last) = (0, ball.angle.len() - 1);
        let middle = 0.5 * (ball.angle[first].si + ball.angle[first + 1].si);
        let (friction, rolling) = ball.contact(middle);
        let mean = |all: &[Quantity<Ratio, NotNegative>]| 0.5 * (all[first].si + all[first + 1].si);
        assert!((friction - mean(&ball.friction)).abs() < 1e-12);
        assert!((rolling - mean(&ball.rolling)).abs() < 1e-12);
        assert!((ball.contact(0.0).0 - ball.friction[first].si).abs() < 1e-12);
        assert!((ball.contact(1.5).1 - ball.rolling[last].si).abs() < 1e-12);
    }
}
