//! The physics: one folder a family of methods, and the laws they share in [`material`].
//!
//! | family | what it is | after |
//! |---|---|---|
//! | [`ballistic`] | free grains: gravity, drag, wind, bouncing off bodies | textbook mechanics; drag by Schiller & Naumann 1935 |
//!
//! Families do not import each other.

pub mod ballistic;
pub mod material;

use barchan_sim::scene::Method;
use barchan_sim::solver::Solver;

/// The solver of a method.
pub fn solver(method: Method) -> Box<dyn Solver> {
    match method {
        Method::Ballistic => Box::new(ballistic::Ballistic::default()),
    }
}
