//! The physics: one folder a family of methods, and the laws they share in [`material`].
//!
//! | family | what it is | after |
//! |---|---|---|
//! | [`ballistic`] | free grains: gravity, drag, wind, bouncing off bodies | textbook mechanics; drag by Schiller & Naumann 1935 |
//! | [`dem`] | grain by grain: rigid grains of one or more balls that touch | Alduán, Tena & Otaduy 2009; Cundall & Strack 1979 |
//! | [`flip`] | sand and water on a sparse grid | Zhu & Bridson 2005 |
//! | [`hybrid`] | three phases: solid that rests, liquid by flip, gas by ballistic | Munns 2015; Holladay & Egbert 2012 |
//! | [`sph`] | sand as particles that carry a continuum | Ihmsen, Wahl & Teschner 2013; Akinci et al. 2012 |
//!
//! Families do not import each other; `hybrid`, which is made of two of them, is the exception.

pub mod ballistic;
pub mod dem;
pub mod flip;
pub mod hybrid;
pub mod material;
pub mod sph;

use barchan_sim::scene::{Method, Scene};
use barchan_sim::solver::Solver;

/// The solver that a scene asks for.
pub fn solver(scene: &Scene) -> Box<dyn Solver> {
    match scene.method {
        Method::Ballistic => Box::new(ballistic::Ballistic::default()),
        Method::Dem => Box::new(dem::Dem::new(&scene.model, scene.dem)),
        Method::Flip => Box::new(flip::Flip::new(&scene.model, scene.flip)),
        Method::Hybrid => Box::new(hybrid::Hybrid::new(&scene.model, scene.hybrid, scene.flip)),
        Method::Sph => Box::new(sph::Sph::new(scene.sph)),
    }
}
