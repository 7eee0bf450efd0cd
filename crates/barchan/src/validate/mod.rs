//! `barchan validate`: does sand do what sand does, by every method? `docs/validate.md` tells how each case is set up and
//! measured; [`table`] is the list of them.

mod cases;
mod lab;
mod method;
mod profile;
mod scene_text;
mod table;
mod trial;

pub use method::{METHODS, Method, method};
pub use table::{CASES, Case, Size};
pub use trial::{Curve, Finding, Outcome, Setting, Trial, Trouble};
