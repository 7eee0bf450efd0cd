//! Pictures of a run: rays through grains, surfaces and bodies, in sun and sky.
//!
//! [`Stage`] goes through the frames of a run; what they share (camera, light, colour scale, found by a `survey` of the run) is a
//! `studio`, where each picture is taken.
//! A frame becomes a `world`: grains in a sparse tree of cells (`grains`), surfaces in a tree of boxes (`bvh`), the scene's
//! solids (`bodies`). `shade` follows rays through it, `film` makes a [`Picture`] of them. Every number comes from the
//! pixel and the sample, so that the same frame has the same picture on any number of threads.

mod bodies;
mod bvh;
mod camera;
mod columns;
mod error;
mod film;
mod font;
mod framing;
mod grain_tree;
mod grain_walk;
mod grains;
mod legend;
mod look;
mod movie;
mod paint;
mod picture;
mod ray;
mod shade;
mod sky;
mod stage;
mod studio;
mod survey;
mod world;

pub use error::RenderError;
pub use font::{draw as draw_text, width as text_width};
pub(crate) use framing::central_bounds;
pub use movie::{movie, to_jpeg};
pub use picture::Picture;
pub use stage::{Outcome, Stage, share_view};
pub use studio::{Shot, still};
