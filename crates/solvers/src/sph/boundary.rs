//! Bodies as particles see them: samples on their surfaces (Akinci et al. 2012), only where there is material near.

use super::kernel::Kernel;
use barchan_base::Pose;
use barchan_base::cells::{Cells, Cursor};
use barchan_base::shape::Shape;
use barchan_base::shell;
use barchan_sim::solids::{Solid, Solids};
use glam::{IVec3, Vec3, Vec3A};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// So many sets of blocks are remembered while they are collected.
const RECENT: usize = 8;

/// How the surface of a body is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// How many spacings samples lie below the surface.
    pub inset: f32,
    /// The volume of a sample, times its number density.
    pub share: f32,
}

impl Layer {
    /// As published (eq. 16): one layer counts for all that would lie below it, and for nearly half as much again.
    pub const PUBLISHED: Self = Self {
        inset: 0.5,
        share: 1.0,
    };
    /// A sample has the volume of a particle where both lie on a lattice (Band et al. 2018), so that walls weigh as much as
    /// material does. It lies nearer to the surface: otherwise the first row sinks before it bears anything.
    pub const AS_PARTICLES: Self = Self {
        inset: 0.38,
        share: 0.7,
    };
}

impl Default for Layer {
    fn default() -> Self {
        Self::AS_PARTICLES
    }
}

/// Samples of every body near material, and this step's samples in the world, sorted by cell.
#[derive(Default)]
pub struct Boundary {
    layer: Layer,
    blocks: HashMap<(u32, IVec3), Vec<Sample>>,
    /// The shape each body's blocks were sampled from.
    shapes: Vec<Option<Arc<Shape>>>,
    wanted: Vec<(u32, IVec3)>,
    /// The blocks whose samples are placed where they stay for as long as no body moves, and where the bodies are.
    standing: (Vec<(u32, IVec3)>, Vec<Pose>),
    wanted_by_chunk: Vec<Vec<(u32, IVec3)>>,
    points: Vec<Vec3>,
    loose: Vec<Placed>,
    cells: Cells,
    placed: Vec<Placed>,
}

/// A sample in its body's own coordinates.
#[derive(Clone, Copy, Debug)]
struct Sample {
    position: Vec3,
    normal: Vec3,
    volume: f32,
}

/// A sample in the world.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Where, at the start of the step.
    pub position: Vec3A,
    /// How fast, over the step [m/s].
    pub velocity: Vec3A,
    /// Unit vector out of the body.
    pub normal: Vec3A,
    /// Volume [m³] it stands for.
    pub volume: f32,
    /// Coefficient of friction of its body.
    pub friction: f32,
    /// Index of its body.
    pub body: u32,
    /// Its body moves by force, so its velocity changes within the step.
    pub gives: bool,
}

impl Placed {
    /// True where this and another are the same to all particles but for their places.
    pub fn is_one_with(&self, other: &Self) -> bool {
        let same = self.body == other.body && !self.gives;
        same && self.normal == other.normal && self.velocity == other.velocity
    }
}

impl Boundary {
    /// Samples that lie so.
    pub fn new(layer: Layer) -> Self {
        Self {
            layer,
            ..Self::default()
        }
    }

    /// Places the samples that particles in `cells` of edge `kernel.reach` can meet.
    pub fn place(&mut self, solids: &Solids, cells: &Cells, kernel: &Kernel) {
        self.forget_changed(solids);
        self.find_wanted(solids, cells, kernel);
        if self.stands(solids) {
            return;
        }
        self.sample_missing(kernel);
        self.loose.clear();
        self.points.clear();
        for key in &self.wanted {
            let solid = &solids.all()[key.0 as usize];
            for sample in &self.blocks[key] {
                let placed = sample.placed(solid, key.0);
                self.points.push(placed.position.into());
                self.loose.push(placed);
            }
        }
        self.cells.sort(&self.points, kernel.reach);
        self.placed.clear();
        let order = self.cells.order().iter();
        self.placed.extend(order.map(|i| self.loose[*i as usize]));
    }

    /// True where what was placed before stands, and has all that is wanted; what it has beyond that no particle is near to.
    fn stands(&mut self, solids: &Solids) -> bool {
        let (blocks, poses) = &mut self.standing;
        let now = || solids.all().iter().map(|solid| solid.pose_at(0.0));
        let moves = solids.all().iter().any(Solid::moves);
        let stand = !moves && now().eq(poses.iter().copied());
        let has = |key: &_| blocks.binary_search_by_key(&order(key), order).is_ok();
        if stand && self.wanted.iter().all(has) {
            return true;
        }
        // Where material flows, blocks are wanted in turns: all are kept until most are of no use.
        if stand && blocks.len() <= 2 * self.wanted.len() {
            self.wanted.extend(blocks.iter());
            self.wanted.sort_unstable_by_key(order);
            self.wanted.dedup();
        }
        blocks.clone_from(&self.wanted);
        poses.clear();
        if !moves {
            poses.extend(now());
        }
        false
    }

    /// This step's samples, in the order of their cells.
    pub fn samples(&self) -> &[Placed] {
        &self.placed
    }

    /// The samples around the cell at `at`, as stretches of [`samples`](Self::samples).
    pub fn around(&self, at: IVec3, cursor: &mut Cursor) -> [Range<usize>; 9] {
        if self.cells.is_empty() {
            return Default::default();
        }
        self.cells.stretches(&self.cells.rows(at, cursor))
    }

    /// Drops the samples of bodies whose shape is no longer what was sampled.
    fn forget_changed(&mut self, solids: &Solids) {
        self.shapes.resize(solids.all().len(), None);
        for (body, (known, solid)) in self.shapes.iter_mut().zip(solids.all()).enumerate() {
            let shape = solid.shape_at_start();
            if !known
                .as_ref()
                .is_some_and(|known| Arc::ptr_eq(known, shape))
            {
                self.blocks.retain(|key, _| key.0 != body as u32);
                self.standing.1.clear();
                *known = Some(shape.clone());
            }
        }
    }

    fn find_wanted(&mut self, solids: &Solids, cells: &Cells, kernel: &Kernel) {
        const CHUNK: usize = 256;
        let chunks = cells.len().div_ceil(CHUNK);
        self.wanted_by_chunk.resize_with(chunks, Vec::new);
        self.wanted_by_chunk
            .par_iter_mut()
            .enumerate()
            .for_each(|(chunk, wanted)| {
                wanted.clear();
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(cells.len());
                for (body, solid) in solids.all().iter().enumerate() {
                    // Cells beside each other mostly meet the same blocks.
                    let (mut recent, mut next) = ([None; RECENT], 0);
                    for cell in range.clone() {
                        let blocks = blocks_near(solid, cells.coordinates(cell), kernel);
                        if blocks.is_none() || recent.contains(&blocks) {
                            continue;
                        }
                        recent[next % RECENT] = blocks;
                        next += 1;
                        let all = blocks.iter().flat_map(Blocks::all);
                        wanted.extend(all.map(|block| (body as u32, block)));
                    }
                }
                wanted.sort_unstable_by_key(order);
                wanted.dedup();
            });
        self.wanted.clear();
        for chunk in &self.wanted_by_chunk {
            self.wanted.extend(chunk);
        }
        self.wanted.sort_unstable_by_key(order);
        self.wanted.dedup();
    }

    fn sample_missing(&mut self, kernel: &Kernel) {
        let missing: Vec<(u32, IVec3)> = self
            .wanted
            .iter()
            .filter(|key| !self.blocks.contains_key(key))
            .copied()
            .collect();
        let (shapes, layer) = (&self.shapes, self.layer);
        let sampled: Vec<Vec<Sample>> = missing
            .par_iter()
            .map(|(body, block)| match &shapes[*body as usize] {
                Some(shape) => layer.sample_block(shape, *block, kernel),
                None => Vec::new(),
            })
            .collect();
        self.blocks.extend(missing.into_iter().zip(sampled));
    }
}

fn order(key: &(u32, IVec3)) -> (u32, [i32; 3]) {
    (key.0, key.1.to_array())
}

/// Blocks between two corners, both with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blocks {
    first: IVec3,
    last: IVec3,
}

impl Blocks {
    fn all(&self) -> impl Iterator<Item = IVec3> + use<> {
        let Self { first, last } = *self;
        let row = move |z: i32, y: i32| (first.x..=last.x).map(move |x| IVec3::new(x, y, z));
        (first.z..=last.z).flat_map(move |z| (first.y..=last.y).flat_map(move |y| row(z, y)))
    }
}

/// The blocks of a body that particles in the cell at `at` can meet.
fn blocks_near(solid: &Solid, at: IVec3, kernel: &Kernel) -> Option<Blocks> {
    let middle = (at.as_vec3() + 0.5) * kernel.reach;
    // From the middle of the cell to its corner, from there to the end of the kernel, and down to the samples.
    let reach = (0.8661 + 1.0) * kernel.reach;
    if solid.bounds().distance_squared(middle) > reach * reach {
        return None;
    }
    let local = solid.pose_at(0.0).local_point(middle);
    let shape = solid.shape_at_start();
    if shape.is_beyond(local, reach) || shape.distance(local) < -reach {
        return None;
    }
    Some(Blocks {
        first: shell::block_at(local - reach, kernel.spacing),
        last: shell::block_at(local + reach, kernel.spacing),
    })
}

impl Layer {
    fn sample_block(self, shape: &Shape, block: IVec3, kernel: &Kernel) -> Vec<Sample> {
        let inset = self.inset * kernel.spacing;
        let points = shell::block(shape, (kernel.spacing, inset), block);
        points
            .iter()
            .filter(|point| point.own)
            .map(|point| {
                let number: f32 = points
                    .iter()
                    .map(|other| kernel.value(other.position.distance_squared(point.position)))
                    .sum();
                Sample {
                    position: point.position,
                    normal: point.normal,
                    volume: self.share / number,
                }
            })
            .collect()
    }
}

impl Sample {
    fn placed(&self, solid: &Solid, body: u32) -> Placed {
        let pose = solid.pose_at(0.0);
        let position = pose.point(self.position);
        Placed {
            position: position.into(),
            velocity: solid.velocity_from(position).into(),
            normal: pose.vector(self.normal).into(),
            volume: self.volume,
            friction: solid.friction,
            body,
            gives: solid.inertia().inverse_mass > 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_sim::body::{Body, Form, Interpolation, Track};
    use barchan_sim::model::Model;

    #[test]
    fn samples_are_where_a_body_went_when_it_stands_again() {
        let kernel = Kernel::new(0.1);
        let keys = [0.0, 1.0].map(|time| {
            let position = Vec3::Y * (0.05 * time as f32);
            (
                time,
                Pose {
                    position,
                    ..Pose::IDENTITY
                },
            )
        });
        let mut model = Model::empty();
        model.bodies.push(Body {
            name: "floor".into(),
            form: Form::Keyframed(
                Arc::new(Shape::HalfSpace { normal: Vec3::Y }),
                Track::new(&keys, Interpolation::Linear),
            ),
            friction: 0.5,
            restitution: None,
        });
        let mut cells = Cells::default();
        cells.sort(&[Vec3::new(0.0, 0.1, 0.0)], kernel.reach);
        let placed = |boundary: &mut Boundary, time: f64| -> Vec<[Vec3A; 2]> {
            let mut solids = Solids::default();
            solids
                .place(&model, time, time + 0.1)
                .expect("a floor can be placed");
            boundary.place(&solids, &cells, &kernel);
            let samples = boundary.samples().iter();
            samples
                .map(|sample| [sample.position, sample.velocity])
                .collect()
        };
        let mut kept = Boundary::default();
        let mut heights = Vec::new();
        // It moves, it stands, it stands, and it is where it began, moving.
        for time in [0.5, 1.0, 2.0, 3.0, 0.0, 0.2] {
            let found = placed(&mut kept, time);
            assert_eq!(found, placed(&mut Boundary::default(), time), "{time}");
            heights.push(found[0][0].y);
        }
        assert!(
            heights[2] > heights[0] && heights[4] < heights[0],
            "{heights:?}"
        );
    }

    #[test]
    fn what_a_particle_meets_does_not_depend_on_where_others_were() {
        let kernel = Kernel::new(0.1);
        let mut model = Model::empty();
        let ball = Shape::Sphere { radius: 2.0 };
        for (name, shape) in [
            ("ball", ball),
            ("floor", Shape::HalfSpace { normal: Vec3::Y }),
        ] {
            model.bodies.push(Body {
                name: name.into(),
                form: Form::Static(Arc::new(shape)),
                friction: 0.5,
                restitution: None,
            });
        }
        let mut solids = Solids::default();
        solids.place(&model, 0.0, 0.1).expect("they can be placed");
        let near = |boundary: &mut Boundary, place: Vec3| -> Vec<Vec3A> {
            let mut cells = Cells::default();
            cells.sort(&[place], kernel.reach);
            boundary.place(&solids, &cells, &kernel);
            let around = boundary.around(cells.at(place), &mut Cursor::default());
            let samples = around.into_iter().flatten();
            let places = samples.map(|sample| boundary.samples()[sample].position);
            places
                .filter(|at| at.distance(place.into()) < kernel.reach)
                .collect()
        };
        let mut kept = Boundary::default();
        let mut most = 0;
        // Round the foot of the ball, and off.
        for step in 0..40 {
            let angle = 0.3 * step as f32;
            let place = Vec3::new(2.05 * angle.cos(), 0.05, 2.05 * angle.sin());
            let found = near(&mut kept, place);
            assert_eq!(found, near(&mut Boundary::default(), place), "{step}");
            assert!(found.len() > 5, "{step}: {}", found.len());
            most = most.max(kept.standing.0.len());
        }
        assert!(near(&mut kept, Vec3::splat(9.0)).is_empty());
        let one = near(&mut kept, Vec3::new(6.0, 0.05, 0.0));
        assert!(!one.is_empty() && kept.standing.0.len() < most);
    }

    #[test]
    fn samples_of_a_flat_wall_weigh_as_much_as_particles_do() {
        let kernel = Kernel::new(0.1);
        let floor = Shape::HalfSpace { normal: Vec3::Y };
        let samples = Layer::AS_PARTICLES.sample_block(&floor, IVec3::new(0, -1, 0), &kernel);
        assert!(samples.len() > 50, "{}", samples.len());
        for sample in &samples {
            let share = sample.volume / kernel.volume;
            assert!((share - 1.0).abs() < 0.01, "{share}");
            let depth = sample.position.y / kernel.spacing;
            assert!((depth + Layer::AS_PARTICLES.inset).abs() < 1e-4, "{depth}");
        }
    }
}
