//! The last few: smooth flow moves fractions of points, but points come whole.
//!
//! From each face that still holds too many, the shortest way over sides to a face with room is found, and one point
//! steps over each side on it. Every step is short, and each way takes one point off the excess.

use super::crowd::{Crowd, Spot};
use super::faces::{Faces, NONE};
use crate::random::Random;
use glam::Vec2;
use std::collections::HashMap;

/// Settles points on faces that may hold `most` each.
pub fn settle(faces: &Faces, most: impl Fn(usize) -> u32, crowd: &mut Crowd) {
    let mut settling = Settling {
        faces,
        counts: (0..faces.len()).map(|face| crowd.count(face)).collect(),
        crowd,
        lists: HashMap::new(),
        search: Search {
            came: vec![NONE; faces.len()],
            seen: Vec::new(),
        },
    };
    for face in 0..faces.len() {
        while settling.counts[face] > most(face) {
            let counts = &settling.counts;
            let room = |other: usize| counts[other] < most(other);
            let Some(way) = settling.search.way(faces, face as u32, room) else {
                break;
            };
            for pair in way.windows(2) {
                settling.step(pair[0] as usize, pair[1] as usize);
            }
        }
    }
    crowd.sort(faces.len());
}

struct Settling<'a> {
    faces: &'a Faces,
    crowd: &'a mut Crowd,
    counts: Vec<u32>,
    /// The spots on faces that were touched, by their place.
    lists: HashMap<u32, Vec<u32>>,
    search: Search,
}

impl Settling<'_> {
    /// Lets the point of one face that is nearest to another step onto it.
    fn step(&mut self, from: usize, to: usize) {
        let goal = self.faces.centers[to].truncate();
        let spots = &mut self.crowd.spots;
        let starts = &self.crowd.starts;
        let list = |face: usize| (starts[face]..starts[face + 1]).collect::<Vec<u32>>();
        let here = self.lists.entry(from as u32).or_insert_with(|| list(from));
        let away = |place: &u32| spots[*place as usize].at.distance_squared(goal);
        let nearest = (0..here.len()).min_by(|a, b| away(&here[*a]).total_cmp(&away(&here[*b])));
        let Some(nearest) = nearest else {
            return;
        };
        let place = here.remove(nearest);
        let spot: &mut Spot = &mut spots[place as usize];
        spot.face = to as u32;
        spot.at = somewhere(self.faces, to, u64::from(spot.who));
        let there = self.lists.entry(to as u32).or_insert_with(|| list(to));
        there.push(place);
        self.counts[from] -= 1;
        self.counts[to] += 1;
    }
}

/// A search for room, in memory that stays.
struct Search {
    /// The face from which each was reached.
    came: Vec<u32>,
    seen: Vec<u32>,
}

impl Search {
    /// The shortest way over sides from `first` to a face with room, both included.
    fn way(
        &mut self,
        faces: &Faces,
        first: u32,
        has_room: impl Fn(usize) -> bool,
    ) -> Option<Vec<u32>> {
        self.seen.push(first);
        self.came[first as usize] = first;
        let mut next = 0;
        let mut found = None;
        while next < self.seen.len() && found.is_none() {
            let face = self.seen[next];
            next += 1;
            for &other in faces.neighbors[face as usize]
                .iter()
                .filter(|n| **n != NONE)
            {
                if self.came[other as usize] == NONE {
                    self.came[other as usize] = face;
                    self.seen.push(other);
                    if found.is_none() && has_room(other as usize) {
                        found = Some(other);
                    }
                }
            }
        }
        let way = found.map(|last| {
            let mut way = vec![last];
            while way[way.len() - 1] != first {
                way.push(self.came[way[way.len() - 1] as usize]);
            }
            way.reverse();
            way
        });
        for face in self.seen.drain(..) {
            self.came[face as usize] = NONE;
        }
        way
    }
}

/// A place on a face, evenly distributed on its triangles; the same for the same point.
fn somewhere(faces: &Faces, face: usize, who: u64) -> Vec2 {
    let random = Random::new(face as u64, 0);
    let corners = &faces.corners[face];
    let corner = |k: usize| faces.vertices[corners[k] as usize].truncate();
    let (a, mut b, mut c) = (corner(0), corner(1), corner(2));
    if corners[3] != NONE {
        let d = corner(3);
        let (first, second) = ((b - a).perp_dot(c - a), (c - a).perp_dot(d - a));
        if random.uniform(who, 2) * (first + second) > first {
            (b, c) = (c, d);
        }
    }
    let (mut u, mut v) = (random.uniform(who, 0), random.uniform(who, 1));
    if u + v > 1.0 {
        (u, v) = (1.0 - u, 1.0 - v);
    }
    // Never on the rim, where another face may cover it.
    let center = (a + b + c) / 3.0;
    center + (a + (b - a) * u + (c - a) * v - center) * 0.98
}
