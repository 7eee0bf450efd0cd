//! What grains feel: particles and points on walls, sorted so that those near a few grains are found at once.

use super::guides::Guide;
use barchan_base::cells::{Cells, Cursor};
use glam::{Vec3, Vec4};

/// Cells are this much wider than the furthest reach, so that grains near a border need not look further.
const SLACK: f32 = 1.25;

/// Particles and points on walls during a step.
#[derive(Default)]
pub struct Field {
    /// How far the largest is felt [m].
    reach: f32,
    particles: Sorted,
    walls: Sorted,
}

#[derive(Default)]
struct Sorted {
    cells: Cells,
    places: Vec<Vec3>,
    sources: Vec<Source>,
}

/// Someone who is felt.
#[derive(Clone, Copy, Debug)]
struct Source {
    position: Vec3,
    /// One over the square of its reach [1/m²].
    inverse: f32,
    velocity: Vec3,
}

/// The same, four times over, for four grains at a time.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Where it is [m].
    pub position: [Vec4; 3],
    /// One over the square of its reach [1/m²].
    pub inverse: Vec4,
    /// Its velocity [m/s].
    pub velocity: [Vec4; 3],
}

/// Those that some grains may feel.
#[derive(Default)]
pub struct Near {
    /// Particles.
    pub particles: Vec<Spread>,
    /// Points on walls.
    pub walls: Vec<Spread>,
    cursors: [Cursor; 2],
}

impl Sorted {
    fn sort(&mut self, guides: &[Guide], size: f32, reach: f32) {
        self.places.clear();
        self.places.extend(guides.iter().map(|guide| guide.position));
        self.cells.sort(&self.places, size);
        self.sources.clear();
        let source = |i: &u32| {
            let guide = &guides[*i as usize];
            Source {
                position: guide.position,
                inverse: (reach * guide.radius).powi(2).recip(),
                velocity: guide.velocity,
            }
        };
        self.sources.extend(self.cells.order().iter().map(source));
    }

    /// Those within `reach` [m] of a box, in the order of cells, which is the same whatever box is asked for.
    fn find(
        &self,
        (least, most, reach): (Vec3, Vec3, f32),
        at: glam::IVec3,
        cursor: &mut Cursor,
        found: &mut Vec<Spread>,
    ) {
        found.clear();
        if self.cells.is_empty() {
            return;
        }
        for stretch in self.cells.stretches(&self.cells.rows(at, cursor)) {
            for source in &self.sources[stretch] {
                let off = source.position - source.position.clamp(least, most);
                if off.length_squared() < reach * reach {
                    found.push(Spread::from(source));
                }
            }
        }
    }
}

impl From<&Source> for Spread {
    fn from(source: &Source) -> Self {
        let spread = |v: Vec3| [v.x, v.y, v.z].map(Vec4::splat);
        Self {
            position: spread(source.position),
            inverse: Vec4::splat(source.inverse),
            velocity: spread(source.velocity),
        }
    }
}

impl Field {
    /// Sorts the particles of a step, felt as far as `reach` of their radii, of which `largest` [m] is the largest.
    pub fn sort_particles(&mut self, guides: &[Guide], reach: f32, largest: f32) {
        self.reach = reach * largest;
        self.particles.sort(guides, self.cell(), reach);
    }

    /// Sorts the points on walls.
    pub fn sort_walls(&mut self, points: &[Guide], reach: f32) {
        let size = self.cell();
        self.walls.sort(points, size, reach);
    }

    /// Edge of a cell [m].
    pub fn cell(&self) -> f32 {
        SLACK * self.reach
    }

    /// The particles' cells.
    pub fn cells(&self) -> &Cells {
        &self.particles.cells
    }

    /// Finds those that grains in the box from `least` to `most` may feel; false where the box is too wide to ask at once.
    pub fn find(&self, least: Vec3, most: Vec3, near: &mut Near) -> bool {
        let size = self.cell();
        let at = (0.5 * (least + most) / size).floor().as_ivec3();
        let slack = size - self.reach;
        let corner = at.as_vec3() * size - slack;
        let fits = least.cmpge(corner).all() && most.cmple(corner + (size + 2.0 * slack)).all();
        let point = least == most;
        if !fits && !point {
            return false;
        }
        let around = (least, most, self.reach);
        let [one, two] = &mut near.cursors;
        self.particles.find(around, at, one, &mut near.particles);
        self.walls.find(around, at, two, &mut near.walls);
        true
    }
}
