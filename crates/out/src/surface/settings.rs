//! How a surface is made.

use barchan_sim::scene::SurfaceDoc;
pub use barchan_sim::scene::SurfaceStyle as Style;

/// How a surface is made. Lengths that follow the particles are in spacings: a particle's spacing is twice its radius.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The function whose zero is the surface.
    pub style: Style,
    /// Distance between nodes of the grid [m]; half the particles' mean spacing if none.
    pub cell: Option<f64>,
    /// How far a particle reaches, in its spacings.
    pub support: f32,
    /// Radius of a particle's own surface, in radii.
    pub radius: f32,
    /// Passes of smoothing, which only ever adds to the inside.
    pub smoothing: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self::from(&SurfaceDoc::default())
    }
}

impl From<&SurfaceDoc> for Settings {
    fn from(doc: &SurfaceDoc) -> Self {
        Self {
            style: doc.style,
            cell: doc.cell.as_ref().map(|cell| cell.si),
            support: doc.support.si as f32,
            radius: doc.radius.si as f32,
            smoothing: doc.smoothing.0 as u32,
        }
    }
}
