//! Particles sorted into bins, and the blocks they reach.

use super::block::{BINS, EDGE, Lattice, pack, unpack};
use super::build::{Points, SurfaceError};
use super::settings::Settings;
use glam::{DVec3, IVec3, Vec3};
use rayon::prelude::*;
use std::ops::Range;

/// The most pairs of a home and a block it reaches: two gigabytes.
const MOST_PAIRS: u64 = 1 << 27;

/// A particle's ellipsoid: how its space is stretched, a symmetric matrix [1/m] in the order xx, yy, zz, xy, yz, zx, so that
/// its support is where the stretched distance is below one.
pub type Metric = [f32; 6];

/// The usable particles, those of one bin together.
#[derive(Debug)]
pub struct Cloud {
    /// The grid.
    pub lattice: Lattice,
    /// Centres [m].
    pub centers: Vec<Vec3>,
    /// How far each reaches [m].
    pub reach: Vec<f32>,
    /// Radius of each one's own surface [m].
    pub radius: Vec<f32>,
    /// How much each counts; empty where all count alike.
    pub weight: Vec<f32>,
    /// Stretched space of each; empty where space is not stretched.
    pub metric: Vec<Metric>,
    /// Place of each among the given points.
    pub source: Vec<u32>,
    /// Bins with particles, by key.
    pub homes: Vec<Home>,
    /// Points that cannot be used.
    pub skipped: usize,
}

/// A bin that particles are in.
#[derive(Clone, Debug)]
pub struct Home {
    /// Key of the bin.
    pub key: u64,
    /// Its particles.
    pub range: Range<usize>,
    /// The box of their centres [m].
    low: Vec3,
    high: Vec3,
    /// How far any of them reaches [m].
    reach: f32,
}

/// A particle as a block sees it.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    /// Centre, from the block's first node [m].
    pub center: Vec3,
    /// How far it reaches [m].
    pub reach: f32,
    /// Radius of its own surface [m].
    pub radius: f32,
    /// How much it counts.
    pub weight: f32,
    /// Its stretched space.
    pub metric: Metric,
    /// Its place in the cloud.
    pub index: u32,
}

/// The blocks that particles reach, each with the homes of those that may.
#[derive(Debug)]
pub struct Reached {
    /// Keys, in order.
    pub keys: Vec<u64>,
    starts: Vec<usize>,
    homes: Vec<u32>,
}

impl Reached {
    /// The homes that may reach block `i`.
    pub fn homes(&self, i: usize) -> &[u32] {
        &self.homes[self.starts[i]..self.starts[i + 1]]
    }
}

/// The mean radius of the usable points [m].
pub fn mean_radius(points: &Points<'_>) -> Option<f64> {
    let usable = |i: &usize| is_usable(points.positions[*i], points.radii[*i]);
    let (sum, count) = barchan_base::parallel::fold_chunks(
        points.positions.len(),
        (0.0, 0u64),
        |range| {
            let radii = range.filter(usable).map(|i| f64::from(points.radii[i]));
            radii.fold((0.0, 0), |(sum, count), radius| (sum + radius, count + 1))
        },
        |a, b| (a.0 + b.0, a.1 + b.1),
    );
    (count > 0).then(|| sum / count as f64)
}

fn is_usable(position: Vec3, radius: f32) -> bool {
    position.is_finite() && radius.is_finite() && radius > 0.0
}

impl Cloud {
    /// Sorts the usable points by bin, in each bin by their order.
    pub fn new(points: &Points<'_>, settings: &Settings, lattice: Lattice) -> Self {
        let rim = lattice.reach();
        let key = |i: usize| {
            let place = points.positions[i].as_dvec3();
            let usable =
                is_usable(points.positions[i], points.radii[i]) && place.abs().max_element() < rim;
            usable.then(|| (pack(lattice.bin_of(place)), i as u32))
        };
        let count = points.positions.len();
        let mut order: Vec<(u64, u32)> = (0..count).into_par_iter().filter_map(key).collect();
        order.par_sort_unstable();
        let radius = |i: u32| points.radii[i as usize];
        let mut cloud = Self {
            lattice,
            centers: gather(&order, |i| points.positions[i as usize]),
            reach: gather(&order, |i| 2.0 * settings.support * radius(i)),
            radius: gather(&order, |i| settings.radius * radius(i)),
            weight: Vec::new(),
            metric: Vec::new(),
            source: gather(&order, |i| i),
            homes: homes(&order),
            skipped: count - order.len(),
        };
        cloud.measure_homes();
        cloud
    }

    /// How many particles there are.
    pub fn len(&self) -> usize {
        self.centers.len()
    }

    /// Particle `index` as seen from where its centre is at `center`.
    fn near(&self, index: usize, center: Vec3) -> Near {
        Near {
            center,
            reach: self.reach[index],
            radius: self.radius[index],
            weight: self.weight.get(index).copied().unwrap_or(1.0),
            metric: self.metric.get(index).copied().unwrap_or_default(),
            index: index as u32,
        }
    }

    /// The blocks that particles reach, and `margin` cells around.
    ///
    /// # Errors
    /// If they are too many to be made.
    pub fn reached(&self, margin: usize) -> Result<Reached, SurfaceError> {
        let margin = self.lattice.cell * margin as f64;
        let boxes: Vec<(IVec3, IVec3)> = self
            .homes
            .par_iter()
            .map(|home| self.reached_box(home, margin))
            .collect();
        let volume = |(low, high): &(IVec3, IVec3)| {
            let size = (*high - *low + IVec3::ONE).as_dvec3();
            size.x * size.y * size.z
        };
        let pairs: f64 = boxes.iter().map(volume).sum();
        if pairs > MOST_PAIRS as f64 {
            return Err(SurfaceError::TooFine {
                cell: self.lattice.cell,
                blocks: pairs,
            });
        }
        let mut pairs: Vec<(u64, u32)> = boxes
            .into_par_iter()
            .enumerate()
            .flat_map_iter(|(home, (low, high))| {
                blocks_between(low, high).map(move |block| (pack(block), home as u32))
            })
            .collect();
        pairs.par_sort_unstable();
        let keys: Vec<u64> = unique(&pairs);
        let mut starts: Vec<usize> = Vec::with_capacity(keys.len() + 1);
        starts.extend((0..pairs.len()).filter(|&i| i == 0 || pairs[i].0 != pairs[i - 1].0));
        starts.push(pairs.len());
        Ok(Reached {
            keys,
            starts,
            homes: pairs.into_iter().map(|(_, home)| home).collect(),
        })
    }

    /// The first and last block that particles of a home reach.
    fn reached_box(&self, home: &Home, margin: f64) -> (IVec3, IVec3) {
        let reach = DVec3::splat(f64::from(home.reach) + margin);
        // Blocks beyond the rim have no key; particles that far are already left out.
        let rim = DVec3::splat(self.lattice.reach() + self.lattice.cell * EDGE as f64);
        (
            self.lattice
                .block_of((home.low.as_dvec3() - reach).max(-rim)),
            self.lattice
                .block_of((home.high.as_dvec3() + reach).min(rim)),
        )
    }

    /// The particles of `homes` that reach a node of block `key`, or come within `margin` cells of doing so, as seen from it.
    pub fn near_block(&self, key: u64, homes: &[u32], margin: f32, near: &mut Vec<Near>) {
        let size = (EDGE - 1) as f32 + margin;
        self.near_box(
            self.lattice.origin(unpack(key)),
            [-margin, size],
            homes,
            near,
        );
    }

    /// The particles of `homes` that reach a place in bin `key`, as seen from it.
    pub fn near_bin(&self, key: u64, homes: &[u32], near: &mut Vec<Near>) {
        let origin = self.lattice.bin_origin(unpack(key));
        self.near_box(origin, [0.0, (EDGE / BINS) as f32], homes, near);
    }

    /// Those that reach into the box from `span[0]` to `span[1]` cells beyond `origin` on each axis.
    fn near_box(&self, origin: DVec3, span: [f32; 2], homes: &[u32], near: &mut Vec<Near>) {
        near.clear();
        let [low, high] = span.map(|cells| Vec3::splat(cells * self.lattice.cell as f32));
        // Most are far away, which rounded coordinates tell as well, with a margin for the rounding.
        let rounding = Vec3::splat(1e-6 * origin.abs().max_element() as f32) + high * 1e-6;
        let first = origin.as_vec3() + low - rounding;
        let last = origin.as_vec3() + high + rounding;
        for home in homes.iter().map(|home| &self.homes[*home as usize]) {
            let gap = (first - home.high).max(home.low - last).max(Vec3::ZERO);
            if gap.length_squared() >= home.reach * home.reach {
                continue;
            }
            for i in home.range.clone() {
                let (center, square) = (self.centers[i], self.reach[i] * self.reach[i]);
                if (center - center.clamp(first, last)).length_squared() >= square {
                    continue;
                }
                let center = self.lattice.local(center, origin);
                if (center - center.clamp(low, high)).length_squared() < square {
                    near.push(self.near(i, center));
                }
            }
        }
    }

    /// Finds out anew what room the homes' particles take, after their centres or reaches have changed.
    pub fn measure_homes(&mut self) {
        let (centers, reach) = (&self.centers, &self.reach);
        self.homes.par_iter_mut().for_each(|home| {
            let centers = &centers[home.range.clone()];
            home.low = centers.iter().copied().fold(Vec3::INFINITY, Vec3::min);
            home.high = centers.iter().copied().fold(Vec3::NEG_INFINITY, Vec3::max);
            home.reach = reach[home.range.clone()]
                .iter()
                .copied()
                .fold(0.0, f32::max);
        });
    }
}

fn blocks_between(low: IVec3, high: IVec3) -> impl Iterator<Item = IVec3> {
    (low.z..=high.z).flat_map(move |z| {
        (low.y..=high.y).flat_map(move |y| (low.x..=high.x).map(move |x| IVec3::new(x, y, z)))
    })
}

fn gather<T: Send>(order: &[(u64, u32)], get: impl Fn(u32) -> T + Sync) -> Vec<T> {
    order.par_iter().map(|(_, i)| get(*i)).collect()
}

fn unique(pairs: &[(u64, u32)]) -> Vec<u64> {
    let mut keys: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    keys.dedup();
    keys
}

fn homes(order: &[(u64, u32)]) -> Vec<Home> {
    order
        .chunk_by(|a, b| a.0 == b.0)
        .scan(0, |start, chunk| {
            let range = *start..*start + chunk.len();
            *start = range.end;
            Some(Home {
                key: chunk[0].0,
                range,
                low: Vec3::ZERO,
                high: Vec3::ZERO,
                reach: 0.0,
            })
        })
        .collect()
}
