//! Constitutive laws: pure functions, tested alone.

pub mod contact;
pub mod drag;
pub mod friction;
pub mod yield_surface;
