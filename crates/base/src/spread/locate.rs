//! Which face a point lies over.

use super::faces::{Faces, sides};
use glam::{IVec2, Vec2, Vec3};

/// Bins for each face at most, however the faces lie.
const BINS_PER_FACE: f64 = 4.0;

/// Faces sorted into the bins that they cover in plan.
#[derive(Clone, Debug)]
pub struct Locator {
    corner: Vec2,
    inverse: f32,
    counts: IVec2,
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Locator {
    /// Sorts the faces.
    pub fn new(faces: &Faces) -> Self {
        let used = |visit: &mut dyn FnMut(Vec2)| {
            for corners in &faces.corners {
                for corner in &corners[..sides(corners)] {
                    visit(faces.vertices[*corner as usize].truncate());
                }
            }
        };
        let (mut low, mut high) = (Vec2::INFINITY, Vec2::NEG_INFINITY);
        used(&mut |at| {
            low = low.min(at);
            high = high.max(at);
        });
        let size = high - low;
        // As wide as a face of average extent in plan, but never more bins than there is work.
        let flat = |face: usize| f64::from(faces.areas[face] * faces.normals[face].z);
        let mean = (0..faces.len()).map(flat).sum::<f64>() / faces.len() as f64;
        let most = BINS_PER_FACE * faces.len() as f64 + 64.0;
        let wide = (f64::from(size.x) * f64::from(size.y) / most).sqrt();
        let long = f64::from(size.max_element()) / most;
        let width = mean.sqrt().max(wide).max(long).max(1e-30) as f32;
        let mut locator = Self {
            corner: low,
            inverse: 1.0 / width,
            counts: (size / width).floor().as_ivec2() + 1,
            starts: Vec::new(),
            members: Vec::new(),
        };
        locator.fill(faces);
        locator
    }

    fn fill(&mut self, faces: &Faces) {
        let bins = self.bins();
        let covered = |face: usize| {
            let corners = &faces.corners[face];
            let (mut low, mut high) = (Vec2::INFINITY, Vec2::NEG_INFINITY);
            for corner in &corners[..sides(corners)] {
                let at = faces.vertices[*corner as usize].truncate();
                low = low.min(at);
                high = high.max(at);
            }
            (self.coordinates(low), self.coordinates(high))
        };
        let each = |face: usize, visit: &mut dyn FnMut(usize)| {
            let (low, high) = covered(face);
            for y in low.y..=high.y {
                for x in low.x..=high.x {
                    visit((y * self.counts.x + x) as usize);
                }
            }
        };
        let mut starts = vec![0u32; bins + 1];
        for face in 0..faces.len() {
            each(face, &mut |bin| starts[bin + 1] += 1);
        }
        for bin in 0..bins {
            starts[bin + 1] += starts[bin];
        }
        let mut members = vec![0u32; starts[bins] as usize];
        let mut next = starts.clone();
        for face in 0..faces.len() {
            each(face, &mut |bin| {
                members[next[bin] as usize] = face as u32;
                next[bin] += 1;
            });
        }
        self.starts = starts;
        self.members = members;
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.counts.x as usize * self.counts.y as usize
    }

    fn coordinates(&self, at: Vec2) -> IVec2 {
        let place = ((at - self.corner) * self.inverse).floor().as_ivec2();
        place.clamp(IVec2::ZERO, self.counts - 1)
    }

    /// The bin of a place in plan, or the nearest.
    #[inline]
    pub fn bin(&self, at: Vec2) -> usize {
        let place = self.coordinates(at);
        (place.y * self.counts.x + place.x) as usize
    }

    /// Of the faces over or under a place in plan the one nearest in height.
    #[inline]
    pub fn find(&self, faces: &Faces, at: Vec3) -> Option<u32> {
        let place = at.truncate();
        let bin = self.bin(place);
        let members = &self.members[self.starts[bin] as usize..self.starts[bin + 1] as usize];
        let away = |face: u32| (at.z - faces.height(face as usize, place)).abs();
        let mut found: Option<(u32, f32)> = None;
        for &face in members {
            if faces.covers(face as usize, place) {
                let away = away(face);
                if found.is_none_or(|(_, least)| away < least) {
                    found = Some((face, away));
                }
            }
        }
        found.map(|(face, _)| face)
    }
}
