//! Sums over each particle's neighbours.

use super::block::{BINS, pack, unpack};
use super::build::SurfaceError;
use super::cloud::{Cloud, Home, Near};
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// What `sum` makes of each particle's centre and the particles near it, in the cloud's order. Given are at least all that
/// reach the centre, as seen from the particle's bin.
///
/// # Errors
/// If the blocks are too many.
pub fn each_with_neighbors<T: Send>(
    cloud: &Cloud,
    sum: impl Fn(Vec3, &[Near]) -> T + Sync,
) -> Result<Vec<T>, SurfaceError> {
    let reached = cloud.reached(1)?;
    let of_home = |near: &mut Vec<Near>, home: &Home| -> Vec<T> {
        let bin = unpack(home.key);
        let block = bin.div_euclid(IVec3::splat(BINS as i32));
        let homes = reached
            .keys
            .binary_search(&pack(block))
            .map_or(&[][..], |i| reached.homes(i));
        cloud.near_bin(home.key, homes, near);
        let origin = cloud.lattice.bin_origin(bin);
        let center = |i: usize| cloud.lattice.local(cloud.centers[i], origin);
        home.range.clone().map(|i| sum(center(i), near)).collect()
    };
    let parts: Vec<Vec<T>> = cloud.homes.par_iter().map_init(Vec::new, of_home).collect();
    Ok(parts.into_iter().flatten().collect())
}
