//! Many small grains that follow the particles of any run (Ihmsen et al. 2013, section 4; Alduán et al. 2009, section 4).
//!
//! Frame by frame: particles are led from one frame to the next (`guides.rs`), bodies with them (`walls.rs`); grains are put
//! in the order of their places (`order.rs`) and moved in steps of their own (`advance.rs`), by a rule (`rule.rs`), held to
//! the particles' density (`density.rs`), stopped by bodies (`contact.rs`). A particle's birth makes its grains,
//! its death removes them (`births.rs`, `sampling.rs`). `stage.rs` does a run's frames, `measure.rs` tells how good they
//! are. `docs/detail.md` explains.

mod advance;
mod births;
mod contact;
mod density;
mod field;
mod guides;
mod interval;
mod measure;
mod order;
mod rule;
mod sampling;
mod settings;
mod stage;
mod walls;

pub use births::sample;
pub use guides::{Guides, News};
pub use interval::{Advancer, Interval};
pub use measure::{Figures, measure};
pub use settings::{Rule, Sampling, Settings, Storage};
pub use stage::{DetailError, Made, Stage};
pub(crate) use walls::Walls;
