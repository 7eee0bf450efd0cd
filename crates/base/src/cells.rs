//! Points sorted into cells: who is near whom, without a fixed domain.
//!
//! Cells are cubes as wide as the reach of a query. Points are sorted by cell, row by row along x, so that the 27 cells
//! around one are nine stretches of the sorted points. Only occupied cells are kept; far strays cost nothing. The order
//! within a cell is the order of the points, so everything that follows depends on the points alone.

use crate::parallel::chunks;
use glam::{IVec3, Vec3};
use rayon::prelude::*;
use std::ops::Range;

/// Coordinates of cells end here; points further out share the outermost cells, which costs time but misses nobody.
const FARTHEST: i32 = 1 << 20;
/// Bits sorted in one pass.
const DIGIT: u32 = 11;

/// Points sorted into cells.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    size: f32,
    corner: IVec3,
    extent: [u64; 3],
    order: Vec<u32>,
    keys: Vec<u64>,
    starts: Vec<u32>,
    sorting: Vec<Entry>,
    other: Vec<Entry>,
}

/// A point while it is sorted. The key is in halves: there are many entries, and a whole one would leave a gap in each.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: [u32; 2],
    point: u32,
}

impl Entry {
    fn new(key: u64, point: u32) -> Self {
        Self {
            key: [key as u32, (key >> 32) as u32],
            point,
        }
    }

    fn key(&self) -> u64 {
        u64::from(self.key[0]) | u64::from(self.key[1]) << 32
    }
}

/// Remembers where the last look-ups ended; cells asked for in their order are then found at once.
#[derive(Clone, Debug, Default)]
pub struct Cursor([usize; 9]);

impl Cells {
    /// Sorts `points` into cubes of edge `size` [m].
    pub fn sort(&mut self, points: &[Vec3], size: f32) {
        self.size = size;
        self.sorting.clear();
        self.sorting.resize(points.len(), Entry::default());
        self.measure(points);
        let this = (self.corner, self.extent);
        chunks(points.len())
            .zip(self.sorting.par_chunks_mut(crate::parallel::CHUNK))
            .for_each(|(range, sorting)| {
                for (i, entry) in range.zip(sorting) {
                    let at = coordinates(points[i], size) - this.0;
                    *entry = Entry::new(key(at, this.1), i as u32);
                }
            });
        self.sort_keys();
        self.find_cells();
    }

    /// Finds the box of cells that the points need.
    fn measure(&mut self, points: &[Vec3]) {
        let none = (IVec3::MAX, IVec3::MIN);
        let size = self.size;
        let (least, most) = chunks(points.len())
            .map(|range| {
                points[range].iter().fold(none, |(least, most), point| {
                    let at = coordinates(*point, size);
                    (least.min(at), most.max(at))
                })
            })
            .reduce(|| none, |a, b| (a.0.min(b.0), a.1.max(b.1)));
        self.corner = if points.is_empty() {
            IVec3::ZERO
        } else {
            least
        };
        let extent = (most.max(self.corner) - self.corner).to_array();
        self.extent = extent.map(|e| e as u64 + 1);
    }

    /// Stable radix sort; passes over bits that no key has are left out.
    fn sort_keys(&mut self) {
        let most = self.extent.iter().product::<u64>();
        let mut shift = 0;
        while shift < 64 && most >> shift > 0 {
            let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
            let mut counts = [0u32; 1 << DIGIT];
            for entry in &self.sorting {
                counts[digit(entry.key())] += 1;
            }
            let mut total = 0;
            for count in &mut counts {
                total += std::mem::replace(count, total);
            }
            self.other.resize(self.sorting.len(), Entry::default());
            for entry in &self.sorting {
                let place = &mut counts[digit(entry.key())];
                self.other[*place as usize] = *entry;
                *place += 1;
            }
            std::mem::swap(&mut self.sorting, &mut self.other);
            shift += DIGIT;
        }
    }

    fn find_cells(&mut self) {
        self.order.clear();
        self.order
            .extend(self.sorting.iter().map(|entry| entry.point));
        self.keys.clear();
        self.starts.clear();
        for (place, entry) in self.sorting.iter().enumerate() {
            let key = entry.key();
            if self.keys.last() != Some(&key) {
                self.keys.push(key);
                self.starts.push(place as u32);
            }
        }
        self.starts.push(self.sorting.len() as u32);
    }

    /// Occupied cells.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True where there are no points.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The point at each sorted place.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The sorted places of the points in a cell.
    #[inline]
    pub fn places(&self, cell: usize) -> Range<usize> {
        self.starts[cell] as usize..self.starts[cell + 1] as usize
    }

    /// The cell of a sorted place.
    pub fn cell_of(&self, place: usize) -> usize {
        self.starts
            .partition_point(|start| *start as usize <= place)
            - 1
    }

    /// Where a cell lies; its cube spans from this times the size to one more.
    pub fn coordinates(&self, cell: usize) -> IVec3 {
        let [x, y, _] = self.extent;
        let key = self.keys[cell];
        let at = [key % x, key / x % y, key / x / y].map(|c| c as i32);
        self.corner + IVec3::from_array(at)
    }

    /// The cell that a point is or would be in.
    #[inline]
    pub fn at(&self, point: Vec3) -> IVec3 {
        coordinates(point, self.size)
    }

    /// The nine rows of three cells around the cell at `at`, as ranges of cells; `cursor` makes it fast where cells
    /// are asked for in order.
    pub fn rows(&self, at: IVec3, cursor: &mut Cursor) -> [Range<usize>; 9] {
        let at = at - self.corner;
        std::array::from_fn(|row| {
            let (y, z) = (at.y + row as i32 % 3 - 1, at.z + row as i32 / 3 - 1);
            let last = IVec3::from_array(self.extent.map(|e| (e - 1) as i32));
            let none = y < 0 || z < 0 || y > last.y || z > last.z;
            if none || at.x > last.x + 1 || at.x < -1 {
                return 0..0;
            }
            let from = key(IVec3::new((at.x - 1).max(0), y, z), self.extent);
            let until = key(IVec3::new((at.x + 1).min(last.x), y, z), self.extent);
            let first = self.find(from, cursor.0[row]);
            cursor.0[row] = first;
            let mut end = first;
            while self.keys.get(end).is_some_and(|key| *key <= until) {
                end += 1;
            }
            first..end
        })
    }

    /// The sorted places in nine rows of cells.
    pub fn stretches(&self, rows: &[Range<usize>; 9]) -> [Range<usize>; 9] {
        std::array::from_fn(|row| {
            let cells = &rows[row];
            self.starts[cells.start] as usize..self.starts[cells.end] as usize
        })
    }

    /// The first cell whose key is at least `key`; fast where it is at or just after `hint`.
    fn find(&self, key: u64, hint: usize) -> usize {
        let before = |cell: usize| self.keys[cell] < key;
        if hint > 0 && (hint > self.keys.len() || !before(hint - 1)) {
            return self.keys.partition_point(|other| *other < key);
        }
        let mut step = 1;
        let mut low = hint;
        while low + step <= self.keys.len() && before(low + step - 1) {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(self.keys.len());
        low + self.keys[low..high].partition_point(|other| *other < key)
    }

    /// Flags the cells that are flagged or have a flagged cell around them; `flags` has one flag a cell.
    pub fn dilate(&self, flags: &[bool], wider: &mut Vec<bool>) {
        wider.clear();
        wider.resize(flags.len(), false);
        wider
            .par_chunks_mut(crate::parallel::CHUNK)
            .zip(chunks(flags.len()))
            .for_each(|(wider, range)| {
                let mut cursor = Cursor::default();
                for (flag, cell) in wider.iter_mut().zip(range) {
                    *flag = flags[cell]
                        || self
                            .rows(self.coordinates(cell), &mut cursor)
                            .into_iter()
                            .flatten()
                            .any(|near| flags[near]);
                }
            });
    }

    /// Forgets the points of all cells but the flagged ones.
    pub fn keep(&mut self, flags: &[bool]) {
        let (mut kept, mut place) = (0, 0);
        for (cell, _) in flags.iter().enumerate().filter(|(_, keep)| **keep) {
            let places = self.places(cell);
            let count = places.len();
            self.order.copy_within(places, place);
            self.keys[kept] = self.keys[cell];
            self.starts[kept] = place as u32;
            kept += 1;
            place += count;
        }
        self.keys.truncate(kept);
        self.starts.truncate(kept);
        self.starts.push(place as u32);
        self.order.truncate(place);
    }
}

fn coordinates(point: Vec3, size: f32) -> IVec3 {
    // A cast saturates, and takes NaN to zero.
    (point / size)
        .floor()
        .as_ivec3()
        .clamp(IVec3::splat(-FARTHEST), IVec3::splat(FARTHEST))
}

fn key(at: IVec3, extent: [u64; 3]) -> u64 {
    (at.z as u64 * extent[1] + at.y as u64) * extent[0] + at.x as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn cloud(count: u64, scale: Vec3) -> Vec<Vec3> {
        let random = Random::new(7, 1);
        (0..count)
            .map(|i| (random.in_cube(i, 0) - 0.5) * scale)
            .collect()
    }

    fn near_by_cells(points: &[Vec3], reach: f32) -> Vec<Vec<usize>> {
        let mut cells = Cells::default();
        cells.sort(points, reach);
        let mut found = vec![Vec::new(); points.len()];
        let mut cursor = Cursor::default();
        for cell in 0..cells.len() {
            let rows = cells.rows(cells.coordinates(cell), &mut cursor);
            for place in cells.places(cell) {
                let i = cells.order()[place] as usize;
                for other in cells.stretches(&rows).into_iter().flatten() {
                    let j = cells.order()[other] as usize;
                    if points[i].distance_squared(points[j]) < reach * reach {
                        found[i].push(j);
                    }
                }
            }
        }
        found.iter_mut().for_each(|list| list.sort_unstable());
        found
    }

    #[test]
    fn cells_find_whom_a_plain_search_finds() {
        let mut strays = cloud(300, Vec3::splat(1.0));
        strays.extend(cloud(30, Vec3::splat(4e6))); // beyond the farthest cells
        strays.extend([Vec3::ZERO, Vec3::ZERO, Vec3::splat(0.1)]);
        for points in [
            vec![],
            cloud(1, Vec3::ONE),
            cloud(600, Vec3::ONE),
            cloud(900, Vec3::new(2.0, 0.1, 1.0)),
            strays,
        ] {
            let reach = 0.1;
            let found = near_by_cells(&points, reach);
            for (i, point) in points.iter().enumerate() {
                let plain: Vec<usize> = (0..points.len())
                    .filter(|j| point.distance_squared(points[*j]) < reach * reach)
                    .collect();
                assert_eq!(found[i], plain, "{point}");
            }
        }
    }

    #[test]
    fn the_order_within_a_cell_is_the_order_of_the_points() {
        let points = cloud(5000, Vec3::ONE);
        let mut cells = Cells::default();
        cells.sort(&points, 0.2);
        assert_eq!(cells.order().len(), points.len());
        for cell in 0..cells.len() {
            let members = &cells.order()[cells.places(cell)];
            assert!(members.windows(2).all(|pair| pair[0] < pair[1]));
            for member in members {
                let at = coordinates(points[*member as usize], 0.2);
                assert_eq!(at, cells.coordinates(cell));
            }
            assert_eq!(cells.cell_of(cells.places(cell).start), cell);
        }
    }

    #[test]
    fn keeping_cells_keeps_their_points_and_neighbours() {
        let points = cloud(3000, Vec3::ONE);
        let mut cells = Cells::default();
        cells.sort(&points, 0.1);
        let seed: Vec<bool> = (0..cells.len())
            .map(|cell| cells.coordinates(cell) == IVec3::ZERO)
            .collect();
        let mut wide = Vec::new();
        cells.dilate(&seed, &mut wide);
        cells.keep(&wide);
        let expected = points
            .iter()
            .filter(|point| coordinates(**point, 0.1).abs().max_element() <= 1)
            .count();
        assert_eq!(cells.order().len(), expected);
        let mut cursor = Cursor::default();
        let rows = cells.rows(IVec3::ZERO, &mut cursor);
        assert_eq!(rows.into_iter().map(|row| row.len()).sum::<usize>(), 27);
    }
}
