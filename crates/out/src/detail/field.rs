//! What grains feel: particles and points on walls, sorted so that those near a few grains are found at once.

use super::guides::Guide;
use barchan_base::cells::{Cells, Cursor};
use glam::{Vec3, Vec4};

/// Cells are this much wider than the furthest reach, so that grains near a border need not look further.
const SLACK: f32 = 1.25;

/// Integral of the weight over the unit ball: 4π · 16/315.
const INTEGRAL: f32 = 0.638_29;

/// One over the weight inside a material of particles two radii apart that are felt as far as `reach` radii.
pub fn full(reach: f32) -> f32 {
    1.0 / (INTEGRAL * (0.5 * reach).powi(3))
}

/// Particles and points on walls during a step.
#[derive(Default)]
pub struct Field {
    /// How far the largest is felt [m].
    reach: f32,
    /// How far each is felt, in its radii.
    radii: f32,
    particles: Sorted,
    walls: Sorted,
}

#[derive(Default)]
struct Sorted {
    cells: Cells,
    places: Vec<Vec3>,
    sources: Vec<Source>,
}

/// What a particle does to grains beside leading them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    /// How strongly it pushes them away [m/s].
    pub push: f32,
    /// The part that they are held by it, from 0 to 1.
    pub grip: f32,
}

impl Hold {
    /// What a particle does of which nothing is known.
    pub const PLAIN: Self = Self {
        push: 0.0,
        grip: 1.0,
    };
}

/// Someone who is felt.
#[derive(Clone, Copy, Debug)]
struct Source {
    position: Vec3,
    /// One over the square of its reach [1/m²].
    inverse: f32,
    velocity: Vec3,
    hold: Hold,
    /// Its index before sorting.
    index: u32,
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
    /// How strongly it pushes grains away, over its reach [1/s].
    pub push: Vec4,
    /// The part that grains are held by it.
    pub grip: Vec4,
}

/// Those that some grains may feel.
#[derive(Default)]
pub struct Near {
    /// Particles.
    pub particles: Vec<Spread>,
    /// Their indices.
    pub indices: Vec<u32>,
    /// True where one of them pushes.
    pub pushes: bool,
    /// Points on walls.
    pub walls: Vec<Spread>,
    cursors: [Cursor; 2],
}

impl Sorted {
    fn sort(&mut self, guides: &[Guide], size: f32, (reach, holds): (f32, &[Hold])) {
        self.places.clear();
        self.places
            .extend(guides.iter().map(|guide| guide.position));
        self.cells.sort(&self.places, size);
        self.sources.clear();
        let source = |i: &u32| {
            let guide = &guides[*i as usize];
            Source {
                position: guide.position,
                inverse: (reach * guide.radius).powi(2).recip(),
                velocity: guide.velocity,
                hold: holds.get(*i as usize).copied().unwrap_or(Hold::PLAIN),
                index: *i,
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
        mut found: impl FnMut(&Source),
    ) {
        if self.cells.is_empty() {
            return;
        }
        for stretch in self.cells.stretches(&self.cells.rows(at, cursor)) {
            for source in &self.sources[stretch] {
                let off = source.position - source.position.clamp(least, most);
                if off.length_squared() < reach * reach {
                    found(source);
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
            push: Vec4::splat(source.hold.push * source.inverse.sqrt()),
            grip: Vec4::splat(source.hold.grip),
        }
    }
}

impl Field {
    /// A field of particles felt as far as `reach` of their radii, of which `largest` [m] is the largest.
    pub fn set_reach(&mut self, reach: f32, largest: f32) {
        (self.reach, self.radii) = (reach * largest, reach);
    }

    /// Sorts the particles of a step, with what each does to grains; those beyond the end of `holds` are plain.
    pub fn sort_particles(&mut self, guides: &[Guide], holds: &[Hold]) {
        let size = self.cell();
        self.particles.sort(guides, size, (self.radii, holds));
    }

    /// Sorts the points on walls.
    pub fn sort_walls(&mut self, points: &[Guide]) {
        let size = self.cell();
        self.walls.sort(points, size, (self.radii, &[]));
    }

    /// One over the weight that there is inside the material, where particles stand two radii apart.
    pub fn full(&self) -> f32 {
        full(self.radii)
    }

    /// Weight of `guide` at `place`.
    pub fn weight(&self, place: Vec3, guide: &Guide) -> f32 {
        let reach = self.radii * guide.radius;
        let square = place.distance_squared(guide.position) / (reach * reach);
        (1.0 - square).max(0.0).powi(3)
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
        let Near {
            particles,
            indices,
            pushes,
            walls,
            cursors: [one, two],
        } = near;
        particles.clear();
        indices.clear();
        walls.clear();
        *pushes = false;
        self.particles.find(around, at, one, |source| {
            particles.push(Spread::from(source));
            indices.push(source.index);
            *pushes |= source.hold.push != 0.0;
        });
        self.walls
            .find(around, at, two, |source| walls.push(Spread::from(source)));
        true
    }

    /// Finds the particles within `reach` [m] of `place`, which may be further than grains feel, by their indices.
    pub fn find_wide(&self, place: Vec3, reach: f32, near: &mut Near) {
        let size = self.cell();
        near.indices.clear();
        let [first, last] = [place - reach, place + reach].map(|p| (p / size).floor().as_ivec3());
        // Rows of three cells around every third cell cover all of them once.
        let mut at = first + 1;
        while at.z <= last.z + 1 {
            let indices = &mut near.indices;
            self.particles
                .find((place, place, reach), at, &mut near.cursors[0], |source| {
                    indices.push(source.index);
                });
            at.x += 3;
            if at.x > last.x + 1 {
                (at.x, at.y) = (first.x + 1, at.y + 3);
            }
            if at.y > last.y + 1 {
                (at.y, at.z) = (first.y + 1, at.z + 3);
            }
        }
    }
}
