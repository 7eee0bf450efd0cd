//! Grains in the order of their places, so that neighbours are dealt with together.

use barchan_base::parallel::fold_chunks;
use glam::{IVec3, Vec3};
use rayon::prelude::*;

/// Grains that one thread deals out at a time.
const DEAL: usize = 1 << 16;
/// Heaps that grains are dealt to, each sorted on its own.
const HEAPS: usize = 256;
/// Grains looked at to choose the borders between heaps, for each heap.
const SAMPLES: usize = 32;
/// Coordinates end here; what is further out shares the outermost cells.
const FARTHEST: i32 = 1 << 20;
/// Parts along the edge of a cell, within which grains are ordered too.
const PARTS: i32 = 4;

type Entry = (u64, u32);

/// The indices of `points` in the order of cubes of edge `size` [m], row by row, and of smaller cubes within each. Points of one
/// small cube stay in their order: the result depends on the points alone.
pub fn by_place(points: &[Vec3], size: f32) -> Vec<u32> {
    let keys = Keys::around(points, size);
    let borders = borders(points, &keys);
    let dealt: Vec<(Vec<Entry>, Vec<u32>)> = points
        .par_chunks(DEAL)
        .enumerate()
        .map(|(chunk, points)| deal(points, chunk * DEAL, &keys, &borders))
        .collect();
    let sizes: Vec<usize> = (0..HEAPS)
        .map(|heap| {
            dealt
                .iter()
                .map(|(_, starts)| stretch(starts, heap).len())
                .sum()
        })
        .collect();
    let mut order = vec![0; points.len()];
    let mut heaps = Vec::with_capacity(HEAPS);
    let mut rest = &mut order[..];
    for size in sizes {
        let (heap, others) = rest.split_at_mut(size);
        heaps.push(heap);
        rest = others;
    }
    heaps.into_par_iter().enumerate().for_each(|(heap, to)| {
        let mut entries: Vec<Entry> = Vec::with_capacity(to.len());
        for (entry, starts) in &dealt {
            entries.extend(&entry[stretch(starts, heap)]);
        }
        // No two are equal, so that unstable is stable.
        entries.sort_unstable();
        for (place, (_, index)) in to.iter_mut().zip(entries) {
            *place = index;
        }
    });
    order
}

fn stretch(starts: &[u32], heap: usize) -> std::ops::Range<usize> {
    starts[heap] as usize..starts[heap + 1] as usize
}

/// How places become numbers in the order of cells.
struct Keys {
    size: f32,
    corner: IVec3,
    extent: [u64; 2],
}

impl Keys {
    fn around(points: &[Vec3], size: f32) -> Self {
        let none = (IVec3::MAX, IVec3::MIN);
        let part = size / PARTS as f32;
        let range = |points: &[Vec3]| {
            points.iter().fold(none, |(least, most), point| {
                let at = cell(*point, part);
                (least.min(at), most.max(at))
            })
        };
        let (least, most) = fold_chunks(
            points.len(),
            none,
            |chunk| range(&points[chunk]),
            |a, b| (a.0.min(b.0), a.1.max(b.1)),
        );
        let corner = least.div_euclid(IVec3::splat(PARTS));
        let extent = most.div_euclid(IVec3::splat(PARTS)) - corner;
        Self {
            size: part,
            corner,
            extent: [extent.x.max(0) as u64 + 1, extent.y.max(0) as u64 + 1],
        }
    }

    fn key(&self, point: Vec3) -> u64 {
        let at = cell(point, self.size);
        let whole = at.div_euclid(IVec3::splat(PARTS));
        let part = at - whole * PARTS;
        let place = whole - self.corner;
        let [x, y, z] = [place.x, place.y, place.z].map(|c| c as u64);
        let row = (z * self.extent[1] + y) * self.extent[0] + x;
        row << 6 | (part.z << 4 | part.y << 2 | part.x) as u64
    }
}

fn cell(point: Vec3, size: f32) -> IVec3 {
    // A cast saturates, and takes NaN to zero.
    (point / size)
        .floor()
        .as_ivec3()
        .clamp(IVec3::splat(-FARTHEST), IVec3::splat(FARTHEST))
}

/// Keys that part the points into heaps of about the same size.
fn borders(points: &[Vec3], keys: &Keys) -> Vec<u64> {
    let step = (points.len() / (HEAPS * SAMPLES)).max(1);
    let mut sample: Vec<u64> = points.iter().step_by(step).map(|p| keys.key(*p)).collect();
    sample.sort_unstable();
    let border = |heap: usize| sample[heap * sample.len() / HEAPS];
    match sample.is_empty() {
        true => Vec::new(),
        false => (1..HEAPS).map(border).collect(),
    }
}

/// The points of a chunk by heap, and where each heap begins among them.
fn deal(points: &[Vec3], first: usize, keys: &Keys, borders: &[u64]) -> (Vec<Entry>, Vec<u32>) {
    let entries: Vec<(u64, u8)> = points
        .iter()
        .map(|point| {
            let key = keys.key(*point);
            (key, borders.partition_point(|border| *border <= key) as u8)
        })
        .collect();
    let mut starts = vec![0u32; HEAPS + 1];
    for (_, heap) in &entries {
        starts[*heap as usize + 1] += 1;
    }
    for heap in 0..HEAPS {
        starts[heap + 1] += starts[heap];
    }
    let mut next = starts.clone();
    let mut dealt = vec![(0, 0); entries.len()];
    for (i, (key, heap)) in entries.into_iter().enumerate() {
        let place = &mut next[heap as usize];
        dealt[*place as usize] = (key, (first + i) as u32);
        *place += 1;
    }
    (dealt, starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::random::Random;

    #[test]
    fn every_point_comes_once_and_neighbours_come_together() {
        let random = Random::new(1, 2);
        let mut points: Vec<Vec3> = (0..200_000)
            .map(|i| random.in_cube(i, 0) * 4.0 - 2.0)
            .collect();
        points[7] = Vec3::NAN;
        points[8] = Vec3::splat(1e30);
        let order = by_place(&points, 0.5);
        let mut seen = order.clone();
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, s)| i == *s as usize));
        let steps = order
            .windows(2)
            .map(|pair| points[pair[0] as usize].distance(points[pair[1] as usize]));
        let near = steps.filter(|step| *step < 0.5).count();
        assert!(near > 190_000, "{near}");
        assert!(by_place(&[], 1.0).is_empty());
    }
}
