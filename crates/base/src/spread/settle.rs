//! The last few: whole points that step over a side, where the smooth flow would move fractions.

use super::crowd::{Crowd, Spot};
use super::faces::{Faces, NONE, sides};
use crate::random::Random;
use glam::Vec3;
use rayon::prelude::*;

/// Lets the points nearest to a side step over it, as many as the pressure asks for; `random` decides about fractions and where
/// they go. Returns how many did.
pub fn settle(faces: &Faces, pressure: &[f32], crowd: &mut Crowd, random: Random) -> usize {
    let pushed: Vec<u32> = (0..faces.len() as u32)
        .filter(|face| pressure[*face as usize] > 0.0 && crowd.count(*face as usize) > 0)
        .collect();
    let spots = &crowd.spots;
    let steps: Vec<(usize, Spot)> = pushed
        .par_iter()
        .flat_map_iter(|face| {
            let first = crowd.starts[*face as usize] as usize;
            let here = &spots[first..crowd.starts[*face as usize + 1] as usize];
            let steps = leave(faces, pressure, *face as usize, here, random);
            steps
                .into_iter()
                .map(move |(place, spot)| (first + place, spot))
        })
        .collect();
    for (place, spot) in &steps {
        crowd.spots[*place] = *spot;
    }
    crowd.sort(faces.len());
    steps.len()
}

/// Those of the spots on `face` that leave it, by their place among `here`.
fn leave(
    faces: &Faces,
    pressure: &[f32],
    face: usize,
    here: &[Spot],
    random: Random,
) -> Vec<(usize, Spot)> {
    let mut gone = vec![false; here.len()];
    let mut steps = Vec::new();
    for side in 0..sides(&faces.corners[face]) {
        let other = faces.neighbors[face][side];
        if other == NONE {
            continue;
        }
        let flow = faces.ease(face, side) * (pressure[face] - pressure[other as usize]);
        let chance = random.uniform(face as u64, side as u32);
        let count = (flow.max(0.0) + chance) as usize;
        let [a, b] = faces.side(face, side).map(Vec3::truncate);
        let middle = 0.5 * (a + b);
        let mut near: Vec<(f32, usize)> = (0..here.len())
            .filter(|place| !gone[*place])
            .map(|place| (here[place].at.distance_squared(middle), place))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, place) in near.into_iter().take(count) {
            gone[place] = true;
            let mut spot = here[place];
            spot.face = other;
            spot.at = somewhere(faces, other as usize, u64::from(spot.who), random);
            steps.push((place, spot));
        }
    }
    steps
}

/// A place on a face, evenly distributed on its triangles.
fn somewhere(faces: &Faces, face: usize, index: u64, random: Random) -> glam::Vec2 {
    let corners = &faces.corners[face];
    let corner = |k: usize| faces.vertices[corners[k] as usize].truncate();
    let (a, mut b, mut c) = (corner(0), corner(1), corner(2));
    if corners[3] != NONE {
        let d = corner(3);
        let (first, second) = ((b - a).perp_dot(c - a), (c - a).perp_dot(d - a));
        if random.uniform(index, 11) * (first + second) > first {
            (b, c) = (c, d);
        }
    }
    let (mut u, mut v) = (random.uniform(index, 9), random.uniform(index, 10));
    if u + v > 1.0 {
        (u, v) = (1.0 - u, 1.0 - v);
    }
    // Never on the rim, where another face may cover it.
    let inner = 0.98;
    let center = (a + b + c) / 3.0;
    center + (a + (b - a) * u + (c - a) * v - center) * inner
}
