//! `barchan validate`: does sand do what sand does, by every method? `docs/validate.md` tells how each case is set up and
//! measured; [`table`] is the list of them.

mod cases;
mod grains;
mod lab;
mod method;
mod packed;
mod profile;
mod record;
mod report;
mod scene_text;
mod side_by_side;
mod table;
mod trial;

pub use grains::{Grains, WAYS, Way};
pub use method::{METHODS, Method, Skill, method};
pub use record::Record;
pub use report::page;
pub use side_by_side::{Plan, make_all};
pub use table::{CASES, Case, Size, Wanted};
pub use trial::Finding;
