//! Constitutive laws: pure functions, tested alone.

pub mod drag;
pub mod friction;
pub mod turning;
pub mod yield_surface;

pub use barchan_sim::contact;
