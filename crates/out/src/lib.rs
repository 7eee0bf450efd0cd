//! What becomes of a run: its folder of frames ([`cache`]), figures about them ([`stats`]), surfaces around them ([`surface`]),
//! grains spread on a surface ([`spread`]),
//! pictures ([`render`]), runs side by side ([`compare`]), plots ([`plot`]) and other programs' files ([`export`]).
//!
//! Sees particles, never a solver: it works on anyone's particles.

pub mod cache;
pub mod compare;
pub mod detail;
pub mod export;
mod geometry;
pub mod plot;
pub mod render;
pub mod spread;
pub mod stats;
pub mod surface;
