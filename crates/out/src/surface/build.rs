//! From particles to a mesh.

use super::anisotropy;
use super::averaged::Averaged;
use super::band::Band;
use super::block::Lattice;
use super::cloud::{Cloud, mean_radius};
use super::crumbs;
use super::field::{Bump, Field, Kernel, Spline};
use super::mesh::SurfaceMesh;
use super::polygons;
use super::settings::{Settings, Style};
use super::summed::Summed;
use glam::Vec3;

/// Particles to wrap a surface around. Columns are as long as `positions`; those after `radii` may be empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Points<'a> {
    /// Centres [m].
    pub positions: &'a [Vec3],
    /// Radii [m]: half their spacing.
    pub radii: &'a [f32],
    /// Velocities [m/s].
    pub velocities: &'a [Vec3],
    /// Linear colours.
    pub colors: &'a [Vec3],
    /// Indices of their materials.
    pub materials: &'a [u16],
}

/// A surface, and what there is to say about it.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    /// The mesh; empty where there are no particles.
    pub mesh: SurfaceMesh,
    /// Particles left out: not finite, without a radius, or too far away for the grid.
    pub skipped: usize,
    /// Blocks of 8³ nodes that were kept.
    pub blocks: usize,
    /// Closed pieces smaller than a particle that were swept away.
    pub crumbs: usize,
}

/// Why there is no surface.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    /// The grid would not fit.
    #[error(
        "a grid with cells of {cell} m would need about {blocks:.1e} blocks around these particles; choose a larger cell"
    )]
    TooFine {
        /// Distance between nodes [m].
        cell: f64,
        /// Blocks asked for.
        blocks: f64,
    },
    /// The mesh would not fit.
    #[error("the surface has more than 4 billion vertices; choose a larger cell")]
    TooLarge,
    /// Settings that make no sense together.
    #[error(
        "a particle's radius ({radius} radii) must be smaller than its support ({support} spacings)"
    )]
    Settings {
        /// In radii.
        radius: f32,
        /// In spacings.
        support: f32,
    },
    /// Columns of different length.
    #[error("the particles' columns differ in length")]
    Columns,
}

/// The sum at the surface of SPH densities, as in splashsurf (Löschner, Böttcher, Jeske & Bender 2023).
const DENSITY_LEVEL: f32 = 0.6;

/// Makes the surface around `points`. The same on any number of threads.
///
/// # Errors
/// If the grid or the mesh would not fit into memory, or the input makes no sense.
pub fn build(points: &Points<'_>, settings: &Settings) -> Result<Surface, SurfaceError> {
    check(points, settings)?;
    let Some(mean_radius) = mean_radius(points) else {
        return Ok(Surface {
            skipped: points.positions.len(),
            ..Surface::default()
        });
    };
    let lattice = Lattice {
        cell: settings.cell.unwrap_or(mean_radius),
    };
    let mut cloud = Cloud::new(points, settings, lattice);
    // What a summed function is multiplied with to be about a distance: half its support.
    let reach = 2.0 * settings.support * mean_radius as f32;
    match settings.style {
        Style::ZhuBridson => surface(
            &cloud,
            &Averaged::new(settings.support, reach),
            points,
            settings,
        ),
        Style::Blobby => {
            let level = settings.radius / (2.0 * settings.support);
            cloud.weight = vec![1.0 / Bump.value(level * level); cloud.len()];
            surface(&cloud, &summed(Bump, 1.0, reach), points, settings)
        }
        Style::Sph => {
            anisotropy::weigh(&mut cloud)?;
            surface(
                &cloud,
                &summed(Spline, DENSITY_LEVEL, reach),
                points,
                settings,
            )
        }
        Style::Anisotropic => {
            anisotropy::prepare(&mut cloud)?;
            let field = Summed {
                stretched: true,
                ..summed(Spline, anisotropy::LEVEL, reach)
            };
            surface(&cloud, &field, points, settings)
        }
    }
}

fn summed<K: Kernel>(kernel: K, level: f32, reach: f32) -> Summed<K> {
    Summed {
        kernel,
        level,
        scale: 0.5 * reach,
        stretched: false,
    }
}

fn check(points: &Points<'_>, settings: &Settings) -> Result<(), SurfaceError> {
    let count = points.positions.len();
    let optional = [
        points.velocities.len(),
        points.colors.len(),
        points.materials.len(),
    ];
    if points.radii.len() != count || optional.iter().any(|&len| len != 0 && len != count) {
        return Err(SurfaceError::Columns);
    }
    if settings.radius >= 2.0 * settings.support {
        return Err(SurfaceError::Settings {
            radius: settings.radius,
            support: settings.support,
        });
    }
    Ok(())
}

fn surface(
    cloud: &Cloud,
    field: &impl Field,
    points: &Points<'_>,
    settings: &Settings,
) -> Result<Surface, SurfaceError> {
    let reached = cloud.reached(1 + settings.smoothing as usize)?;
    let mut band = Band::new(cloud, &reached, field);
    band.smooth(settings.smoothing);
    let rough = polygons::polygons(cloud, &reached, &band, field, points)?;
    let (mesh, crumbs) = crumbs::sweep(rough);
    Ok(Surface {
        mesh,
        skipped: cloud.skipped,
        blocks: band.len(),
        crumbs,
    })
}
