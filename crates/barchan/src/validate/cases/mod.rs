//! The cases: how each is set up, run and measured. docs/validate.md tells it in words.

pub mod bank;
pub mod bodies;
pub mod column;
pub mod conserve;
pub mod flow;
pub mod pile;
pub mod slope;
pub mod tray;
pub mod water;

use super::trial::{Check, Finding};

/// A figure in some unit.
fn finding(
    (figure, unit): (&'static str, &'static str),
    reference: f64,
    obtained: f64,
    check: Check,
) -> Finding {
    Finding {
        figure,
        unit,
        reference,
        obtained,
        check,
    }
}
