//! Sums over each particle's neighbours.

use super::build::SurfaceError;
use super::cloud::{Cloud, Home, Near};
use glam::Vec3;
use rayon::prelude::*;

/// What `sum` makes of each particle's centre and the particles near it, in the cloud's order. Given are at least all that
/// reach the centre, in the coordinates of the particle's block.
///
/// # Errors
/// If the blocks are too many.
pub fn each_with_neighbors<T: Send>(
    cloud: &Cloud,
    sum: impl Fn(Vec3, &[Near]) -> T + Sync,
) -> Result<Vec<T>, SurfaceError> {
    let reached = cloud.reached(1)?;
    let of_home = |near: &mut Vec<Near>, home: &Home| -> Vec<T> {
        let homes = reached
            .keys
            .binary_search(&home.key)
            .map_or(&[][..], |i| reached.homes(i));
        // Particles are anywhere between nodes: a cell more than what reaches nodes.
        cloud.near_block(home.key, homes, 1.0, near);
        let origin = cloud.lattice.origin(super::block::unpack(home.key));
        let center = |i: usize| cloud.lattice.local(cloud.centers[i], origin);
        home.range.clone().map(|i| sum(center(i), near)).collect()
    };
    let parts: Vec<Vec<T>> = cloud.homes.par_iter().map_init(Vec::new, of_home).collect();
    Ok(parts.into_iter().flatten().collect())
}
