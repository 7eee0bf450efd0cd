//! One discrete gradient for pressure and friction, and its exact adjoint for the force.
//!
//! With V the volume of a particle, g the kernel's gradient and L = (Σ V (x_j − x_i) g^T)⁻¹,
//!
//! ```text
//! ∇v_i = Σ_j V_j (v_j − v_i) g_ij^T L_i          force on i per volume = Σ_j V_j (T_i + T_j) g_ij,  T = σ L
//! ```
//!
//! so that Σ V σ:∇v is minus the power of the forces, walls included. Linear fields are differentiated exactly at every
//! surface, forces are equal and opposite, and a rigid turn costs nothing. A wall that does not grip is seen through
//! P = n n^T + grip (1 − n n^T), in both.

use super::boundary::{Boundary, Placed};
use super::lists::{CHUNK, List, Near, Touch};
use super::shown::{SPARE, Shown, Two, vector};
use super::tensor::Sym3;
use barchan_sim::coupling::Impulses;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;
use wide::f32x8;

/// A moment matrix is inverted where its trace and its determinant are at least this; three and one are full.
const LEAST_TRACE: f32 = 0.6;
const LEAST_DETERMINANT: f32 = 0.008;
/// Elsewhere the gradient is only scaled, at most by this.
const MOST_SCALE: f32 = 2.0;
const LEAST_SCALED_TRACE: f32 = 0.5;

/// What a particle without neighbours resists with [1/m²].
const LEAST_RESISTANCE: f32 = 1e-6;

/// How a particle takes part in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Moves.
    #[default]
    Awake,
    /// Asleep, but near someone who moves: its load is solved for, and may wake it.
    Dozing,
    /// Asleep, and only lends its stress to others.
    Asleep,
    /// Asleep, and only lends its place to those who lend their stress.
    Apart,
    /// Asleep, and near a body: what it gives to the body is still told.
    Leaning,
}

impl Role {
    /// True for who is left out of the solve.
    #[inline]
    pub fn is_out(self) -> bool {
        matches!(self, Self::Asleep | Self::Apart | Self::Leaning)
    }
}

/// What only the particle itself looks up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grain {
    /// L.
    pub correction: Sym3,
    /// Σ V g over the particles around [1/m]. After the sweeps see `slower`.
    pub lean: [f32; 3],
    /// Σ V |g| over the distance, over the same [1/m²].
    pub weight: f32,
    /// What a unit of pressure does to the divergence within a unit of time [m³/kg/m²].
    pub compliance: f32,
    /// How much closer it may come before it is full, negative or zero. Before the sweeps, |Σ V g| over all that is around [1/m]: how much
    /// it is at a surface. After them see `shear_rate`.
    pub gap: f32,
    /// Friction stress [Pa].
    pub stress: Sym3,
    /// How fast it has sheared along its friction of late [1/s].
    pub usual: f32,
    /// Pressure averaged over the particles around [Pa].
    pub load: f32,
    /// Friction coefficient.
    pub mu: f32,
    /// Cohesion [Pa].
    pub cohesion: f32,
    /// Inverse of the density [m³/kg].
    pub lightness: f32,
    /// How well the bodies that it touches hold it.
    pub hold: Hold,
    /// How friction is turned against the spin: axis times tangent of half the angle. After the sweeps see `apart`.
    pub turn: [f32; 3],
    /// How it takes part.
    pub role: Role,
}

/// How well bodies hold a particle, from 0 to 1: the first that it touches, and all others together.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    first: u32,
    grips: [f32; 2],
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            first: u32::MAX,
            grips: [1.0; 2],
        }
    }
}

impl Hold {
    #[inline]
    fn by(&self, body: u32) -> f32 {
        self.grips[usize::from(body != self.first)]
    }
}

/// What bodies do to a particle.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// How well they hold it.
    pub hold: Hold,
    /// The coefficient of friction of the roughest, at most the particle's own.
    pub rough: f32,
    /// The force per volume [N/m³] that they give it.
    pub push: Vec3A,
}

/// Sums over the samples of a wall.
#[derive(Clone, Copy, Debug)]
struct Wall {
    /// What presses the particle against it, and what it would have to hold along it [N/m³].
    load: f32,
    sliding: Vec3A,
    /// Coefficient of friction times weight, and weight [1/m²].
    friction: f32,
    weight: f32,
}

impl Default for Wall {
    fn default() -> Self {
        Self {
            load: 0.0,
            sliding: Vec3A::ZERO,
            friction: 0.0,
            weight: f32::MIN_POSITIVE,
        }
    }
}

impl Wall {
    fn roughness(&self) -> f32 {
        self.friction / self.weight
    }

    /// The part that it holds of what it would have to.
    fn grip(&self) -> f32 {
        let limit = self.roughness() * self.load.max(0.0);
        let sliding = self.sliding.length();
        if sliding > limit {
            limit / sliding
        } else {
            1.0
        }
    }
}

/// How a body's velocity has changed within the step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    /// Of its centre [m/s].
    pub linear: Vec3A,
    /// Turning [rad/s].
    pub angular: Vec3A,
    /// The centre.
    pub centre: Vec3A,
}

/// What all particles share during a sweep.
#[derive(Default)]
pub struct Around {
    /// Places.
    pub x: Vec<Vec3A>,
    /// Neighbours.
    pub lists: Vec<List>,
    /// The bodies.
    pub boundary: Boundary,
    /// Change of each body's velocity.
    pub drifts: Vec<Drift>,
}

/// One particle of a sweep, and who is near.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// Which.
    pub i: usize,
    /// Where.
    pub here: Vec3A,
    /// Particles around.
    pub particles: Near<'a>,
    /// Boundary samples around.
    pub samples: Near<'a>,
    /// The same, those that are one together.
    pub touches: &'a [Touch],
}

impl Placed {
    /// Its velocity, with what its body gained in this step.
    #[inline]
    fn velocity_now(&self, drifts: &[Drift]) -> Vec3A {
        match drifts.get(self.body as usize) {
            Some(drift) => {
                self.velocity + drift.linear + drift.angular.cross(self.position - drift.centre)
            }
            None => self.velocity,
        }
    }

    /// What a wall that grips only partly sees or gives of a vector.
    #[inline]
    fn gripped(&self, vector: Vec3A, grip: f32) -> Vec3A {
        let along = self.normal * self.normal.dot(vector);
        along + (vector - along) * grip
    }
}

#[inline]
fn outer(a: Vec3A, b: Vec3A) -> Mat3A {
    Mat3A::from_cols(a * b.x, a * b.y, a * b.z)
}

/// Sums over the neighbours of one particle, eight of them at a time.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    density: f32x8,
    factor: f32x8,
    lean: [f32x8; 3],
    /// Σ V (x_j − x_i) g^T, and Σ V² g g^T: xx, yy, zz, yz, xz, xy.
    moment: [f32x8; 6],
    squares: [f32x8; 6],
}

/// Axes of the six numbers of a symmetric tensor.
const AXES: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)];

impl Moments {
    /// Adds eight neighbours: the ways from them, their parts of the density, and their factors.
    #[inline]
    pub fn add(&mut self, way: [f32x8; 3], density: f32x8, factor: f32x8) {
        self.density += density;
        self.factor += factor;
        let g = way.map(|way| way * factor);
        for (sum, g) in self.lean.iter_mut().zip(g) {
            *sum += g;
        }
        let sums = self.moment.iter_mut().zip(&mut self.squares);
        for ((moment, square), (a, b)) in sums.zip(AXES) {
            let product = g[a] * way[b];
            *moment -= product;
            *square = product.mul_add(factor, *square);
        }
    }

    /// The neighbours' part of the relative density.
    pub fn density(&self) -> f32 {
        self.density.reduce_add()
    }

    fn lean(&self) -> [f32; 3] {
        self.lean.map(f32x8::reduce_add)
    }
}

fn tensor(sums: &[f32x8; 6]) -> Sym3 {
    let [xx, yy, zz, yz, xz, xy] = sums.map(f32x8::reduce_add);
    Sym3 {
        diagonal: [xx, yy, zz],
        off: [yz, xz, xy],
    }
}

impl Grain {
    /// Notes L, the lean, the weight and the compliance; `particles` are the sums over the particles around, `all` those
    /// with the boundary samples.
    pub fn measure(&mut self, particles: &Moments, all: &Moments) {
        self.correction = invert(&tensor(&all.moment));
        let l = self.correction.matrix();
        self.lean = particles.lean();
        self.weight = -particles.factor.reduce_add();
        let squares = tensor(&particles.squares).matrix();
        let lean = Vec3A::from_array(all.lean());
        self.gap = lean.length();
        let along = l * lean;
        let resistance = Sym3::of(&(l * squares * l)).trace() + along.length_squared();
        // Alone, nothing resists; the least keeps what is divided by it finite.
        self.compliance = resistance.max(LEAST_RESISTANCE) * self.lightness;
    }
}

impl Around {
    /// Gives each particle that is not asleep to `visit`, with its entry of `own` and its grain.
    pub fn for_each<T: Send>(
        &self,
        own: &mut [T],
        grains: &mut [Grain],
        visit: impl Fn(Site<'_>, &mut T, &mut Grain) + Sync,
    ) {
        own.par_chunks_mut(CHUNK)
            .zip(grains.par_chunks_mut(CHUNK))
            .zip(&self.lists)
            .enumerate()
            .for_each(|(chunk, ((own, grains), list))| {
                for (k, (own, grain)) in own.iter_mut().zip(grains).enumerate() {
                    if !grain.role.is_out() {
                        visit(self.site(chunk, k, list), own, grain);
                    }
                }
            });
    }

    /// The `k`th particle of a chunk.
    #[inline(always)]
    pub fn site<'a>(&self, chunk: usize, k: usize, list: &'a List) -> Site<'a> {
        let i = chunk * CHUNK + k;
        Site {
            i,
            here: self.x[i],
            particles: list.particles(k),
            samples: list.samples(k),
            touches: list.touches(k),
        }
    }

    /// The force per volume of the `shown` σ L on a particle. On the way it finds the mean pressure around it, in which its
    /// own has the weight `own`, and how well walls hold it.
    #[inline]
    pub fn push(&self, site: Site<'_>, shown: &[Shown], grain: &mut Grain, own: f32) -> Vec3A {
        let mine = &shown[site.i];
        let here = Two::same(site.here);
        // Sums that do not wait for each other.
        let (mut sums, mut loads) = ([Two::ZERO; 3], Two::ZERO);
        for four in site.particles.fours(site.i) {
            for (two, factor) in four.twos() {
                let way = here.minus(Two::vectors(&self.x, two));
                let [x, y, z] = Two::matrices(shown, two);
                let g = way.times(factor);
                sums[0] = x.times_plus(g.along::<0>(), sums[0]);
                sums[1] = y.times_plus(g.along::<1>(), sums[1]);
                sums[2] = z.times_plus(g.along::<2>(), sums[2]);
                // The pressures are beside the first column.
                loads = x.times_plus(factor, loads);
            }
        }
        let [x, y, z] = sums.map(Two::sum);
        let mut push = vector(mine.times_lanes(Vec3A::from(grain.lean)) + x + y + z);
        let load = own * mine.pressure() - loads.sum().to_array()[SPARE];
        grain.load = load / (own + grain.weight);
        if !site.samples.is_empty() {
            let support = self.support(site, mine, grain.mu);
            grain.hold = support.hold;
            // Next to a wall the first row carries more than the second: its own load counts, as far as the wall can make use of
            // it. What lies on top bears nothing itself: without what is around it, it would creep along the wall.
            let more = (mine.pressure() - grain.load).max(0.0);
            grain.load += more * (support.rough / grain.mu).min(1.0);
            push += support.push;
        }
        push
    }

    /// What bodies do to a particle of friction `mu` that shows `mine`. They hold it fully below the Coulomb limit of what they would
    /// give it if they did. However rough they are, they hold no more than the material itself would: its strength is of the mean
    /// pressure around it, which may well be more than what presses it against the wall.
    pub fn support(&self, site: Site<'_>, mine: &Shown, mu: f32) -> Support {
        let mut first = u32::MAX;
        let mut walls = [Wall::default(); 2];
        let mut push = Vec3A::ZERO;
        for touch in site.touches {
            let sample = &self.boundary.samples()[touch.sample as usize];
            if first == u32::MAX {
                first = sample.body;
            }
            let wall = &mut walls[usize::from(sample.body != first)];
            let force = mine.times(touch.pull.into());
            let along = sample.normal.dot(force);
            let across = sample.normal * along;
            wall.load += along;
            wall.sliding += force - across;
            wall.friction -= sample.friction.min(mu) * touch.factor;
            wall.weight -= touch.factor;
            push += across;
        }
        let grips = walls.map(|wall| wall.grip());
        for (wall, grip) in walls.iter().zip(grips) {
            push += wall.sliding * grip;
        }
        Support {
            hold: Hold { first, grips },
            rough: walls[0].roughness().max(walls[1].roughness()),
            push,
        }
    }

    /// What the bodies receive from forces per volume that last `time` [s], in the chunks' order; `none` are no impulses.
    pub fn reactions(
        &self,
        shown: &[Shown],
        grains: &[Grain],
        (volume, time): (f32, f32),
        none: &Impulses,
    ) -> Impulses {
        let scale = -volume * time;
        let parts: Vec<Option<Impulses>> = grains
            .par_chunks(CHUNK)
            .zip(&self.lists)
            .enumerate()
            .map(|(chunk, (grains, list))| {
                let mut sums: Option<Impulses> = None;
                for (k, grain) in grains.iter().enumerate() {
                    let site = self.site(chunk, k, list);
                    if matches!(grain.role, Role::Asleep | Role::Apart) || site.samples.is_empty() {
                        continue;
                    }
                    let sums = sums.get_or_insert_with(|| none.clone());
                    let hold = match grain.role {
                        Role::Leaning => self.support(site, &shown[site.i], grain.mu).hold,
                        _ => grain.hold,
                    };
                    for (b, factor) in site.samples.iter() {
                        let sample = &self.boundary.samples()[b];
                        let way = site.here - sample.position;
                        let force = shown[site.i].times(way * factor) * scale;
                        let push = sample.gripped(force, hold.by(sample.body));
                        let body = sample.body as usize;
                        sums.push(body, sample.position.into(), push.into());
                        // All forces of a stress together turn nothing; what a slipping wall does not give of them would.
                        sums.turn(body, way.cross(push - force).into());
                    }
                }
                sums
            })
            .collect();
        let mut total = none.clone();
        for part in parts.iter().flatten() {
            total.add(part);
        }
        total
    }

    /// The velocity gradient at a particle.
    #[inline]
    pub fn gradient(&self, site: Site<'_>, grain: &Grain, velocities: &[Vec3A]) -> Mat3A {
        let own = velocities[site.i];
        let (here, mine) = (Two::same(site.here), Two::same(own));
        let mut sums = [Two::ZERO; 3];
        for four in site.particles.fours(site.i) {
            for (two, factor) in four.twos() {
                let g = here.minus(Two::vectors(&self.x, two)).times(factor);
                let change = Two::vectors(velocities, two).minus(mine);
                sums[0] = change.times_plus(g.along::<0>(), sums[0]);
                sums[1] = change.times_plus(g.along::<1>(), sums[1]);
                sums[2] = change.times_plus(g.along::<2>(), sums[2]);
            }
        }
        let [x, y, z] = sums.map(|sum| vector(sum.sum()));
        let mut sum = Mat3A::from_cols(x, y, z);
        for touch in site.touches {
            let sample = &self.boundary.samples()[touch.sample as usize];
            let change = sample.velocity_now(&self.drifts) - own;
            let seen = sample.gripped(change, grain.hold.by(sample.body));
            sum += outer(seen, touch.pull.into());
        }
        sum * grain.correction.matrix()
    }
}

fn invert(moment: &Sym3) -> Sym3 {
    let trace = moment.trace();
    let matrix = moment.matrix();
    let determinant = matrix.determinant();
    if trace > LEAST_TRACE && determinant > LEAST_DETERMINANT * trace * trace * trace {
        return Sym3::of(&matrix.inverse());
    }
    Sym3::splat((3.0 / trace.max(LEAST_SCALED_TRACE)).min(MOST_SCALE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sph::boundary::Layer;
    use crate::sph::kernel::Kernel;
    use crate::sph::search::Search;
    use barchan_base::cells::Cells;
    use barchan_base::random::Random;
    use barchan_sim::body::{Body, Form};
    use barchan_sim::model::Model;
    use barchan_sim::solids::Solids;
    use glam::{DVec3, Vec3, vec3a};
    use std::sync::Arc;

    struct Cloud {
        around: Around,
        grains: Vec<Grain>,
        kernel: Kernel,
        solids: Solids,
    }

    /// A jittered block on a floor.
    fn cloud() -> Cloud {
        cloud_among(&[(Vec3::Y, 0.3)])
    }

    /// A wall through the origin.
    fn wall(normal: Vec3, friction: f32) -> Body {
        Body {
            name: "wall".into(),
            form: Form::Static(Arc::new(barchan_base::shape::Shape::HalfSpace { normal })),
            friction,
            restitution: None,
        }
    }

    /// A jittered block among walls with these normals and coefficients of friction.
    fn cloud_among(walls: &[(Vec3, f32)]) -> Cloud {
        let random = Random::new(1, 2);
        let kernel = Kernel::new(0.1);
        let mut points = Vec::new();
        for i in 0..6 * 6 * 6 {
            let at = Vec3::new(
                (i % 6) as f32 + 0.7,
                (i / 6 % 6) as f32 + 0.7,
                (i / 36) as f32,
            );
            points.push((at + (random.in_cube(i, 0) - 0.5) * 0.4) * kernel.spacing);
        }
        let mut cells = Cells::default();
        cells.sort(&points, kernel.reach);
        let mut solids = Solids::default();
        let mut model = Model::empty();
        let walls = walls.iter();
        model
            .bodies
            .extend(walls.map(|(normal, friction)| wall(*normal, *friction)));
        solids
            .place(&model, 0.0, 0.01)
            .expect("walls can be placed");
        let mut boundary = Boundary::default();
        boundary.place(&solids, &cells, &kernel);
        let x: Vec<Vec3A> = cells
            .order()
            .iter()
            .map(|i| points[*i as usize].into())
            .collect();
        let search = Search {
            cells: &cells,
            x: &x,
            boundary: &boundary,
            kernel,
        };
        let grain = Grain {
            lightness: 1.0,
            mu: 0.6,
            ..Grain::default()
        };
        let (mut lists, mut grains) = (Vec::new(), vec![grain; x.len()]);
        search.fill(&mut lists, &mut vec![0.0; x.len()], &mut grains);
        Cloud {
            around: Around {
                x,
                lists,
                boundary,
                drifts: Vec::new(),
            },
            grains,
            kernel,
            solids,
        }
    }

    impl Cloud {
        fn site(&self, i: usize) -> Site<'_> {
            let chunk = i / CHUNK;
            self.around
                .site(chunk, i % CHUNK, &self.around.lists[chunk])
        }

        /// Those beside walls, of whom there are many.
        fn beside_walls(&self) -> Vec<Site<'_>> {
            let sites = (0..self.grains.len()).map(|i| self.site(i));
            let beside: Vec<Site<'_>> = sites.filter(|site| !site.samples.is_empty()).collect();
            assert!(beside.len() > 20, "{}", beside.len());
            beside
        }

        fn gradient(&self, i: usize, velocities: &[Vec3A]) -> Mat3A {
            self.around
                .gradient(self.site(i), &self.grains[i], velocities)
        }

        /// The forces of `matrices`; grains note the grip that the walls had.
        fn forces(&mut self, matrices: &[Mat3A]) -> (Vec<Shown>, Vec<Vec3A>) {
            let shown: Vec<Shown> = matrices
                .iter()
                .map(|matrix| {
                    let mut shown = Shown::default();
                    shown.set_matrix(matrix);
                    shown
                })
                .collect();
            let mut forces = vec![Vec3A::ZERO; shown.len()];
            let around = &self.around;
            around.for_each(&mut forces, &mut self.grains, |site, force, grain| {
                *force = around.push(site, &shown, grain, 1.0);
            });
            (shown, forces)
        }
    }

    fn noise(stream: u64, i: usize) -> Vec3A {
        Vec3A::from(Random::new(9, stream).in_cube(i as u64, 0)) - 0.5
    }

    #[test]
    fn no_wall_holds_more_than_it_or_the_material_can() {
        let cloud = cloud();
        let mut mine = Shown::default();
        // Pressure, and so much shear along the floor that it slips.
        mine.set_matrix(&Mat3A::from_cols(
            vec3a(-1000.0, 900.0, 0.0),
            vec3a(900.0, -1000.0, 0.0),
            vec3a(0.0, 0.0, -1000.0),
        ));
        for site in cloud.beside_walls() {
            // The floor's own friction is 0.3.
            for (mu, most) in [(0.1, 0.1), (0.25, 0.25), (0.6, 0.3)] {
                let Support { rough, push, .. } = cloud.around.support(site, &mine, mu);
                let along = Vec3A::new(push.x, 0.0, push.z).length();
                assert!(along < 1.05 * most * push.y.abs(), "{along} of {}", push.y);
                assert!(along > 0.8 * most * push.y.abs(), "{along} of {}", push.y);
                assert!((rough - most).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_wall_does_not_hold_what_pulls_away_from_it() {
        let cloud = cloud();
        let mut mine = Shown::default();
        // Tension, as in cohesive material, and shear along the floor.
        mine.set_matrix(&Mat3A::from_cols(
            vec3a(1000.0, 300.0, 0.0),
            vec3a(300.0, 1000.0, 0.0),
            vec3a(0.0, 0.0, 1000.0),
        ));
        for site in cloud.beside_walls() {
            let push = cloud.around.support(site, &mine, 0.6).push;
            let along = Vec3A::new(push.x, 0.0, push.z).length();
            assert!(along < 1e-3 * push.y.abs(), "{along} of {}", push.y);
        }
    }

    #[test]
    fn in_a_corner_the_rougher_wall_counts() {
        let cloud = cloud_among(&[(Vec3::Y, 0.5), (Vec3::X, 0.0)]);
        let mut mine = Shown::default();
        mine.set_matrix(&(Mat3A::IDENTITY * -1000.0));
        let mut corners = 0;
        for i in 0..cloud.grains.len() {
            let site = cloud.site(i);
            let bodies = site.samples.iter();
            let bodies = bodies.map(|(b, _)| cloud.around.boundary.samples()[b].body);
            let (floor, wall) = bodies.fold((false, false), |(floor, wall), body| {
                (floor || body == 0, wall || body == 1)
            });
            let rough = cloud.around.support(site, &mine, 0.6).rough;
            match (floor, wall) {
                (true, _) => assert!((rough - 0.5).abs() < 1e-5, "{rough}"),
                _ => assert!(rough.abs() < 1e-5, "{rough}"),
            }
            corners += u32::from(floor && wall);
        }
        assert!(corners > 5, "{corners}");
    }

    #[test]
    fn touches_are_the_samples_summed_by_wall() {
        let cloud = cloud_among(&[(Vec3::Y, 0.5), (Vec3::X, 0.0)]);
        let samples = cloud.around.boundary.samples();
        let mut corners = 0;
        for site in cloud.beside_walls() {
            for normal in [Vec3A::Y, Vec3A::X] {
                let of_wall = |sample: usize| samples[sample].normal == normal;
                let touches = site.touches.iter();
                let touches: Vec<_> = touches.filter(|t| of_wall(t.sample as usize)).collect();
                let found: Vec<_> = site.samples.iter().filter(|(b, _)| of_wall(*b)).collect();
                let pulls = found.iter();
                let pulls = pulls.map(|(b, factor)| (site.here - samples[*b].position) * *factor);
                let (pull, factor): (Vec3A, f32) =
                    (pulls.sum(), found.iter().map(|(_, factor)| factor).sum());
                assert_eq!(touches.len(), usize::from(!found.is_empty()));
                for touch in &touches {
                    let off = (Vec3A::from(touch.pull) - pull).length();
                    assert!(off < 1e-5 * pull.length(), "{off} of {pull}");
                    assert!((touch.factor - factor).abs() < 1e-5 * factor.abs());
                }
            }
            corners += u32::from(site.touches.len() == 2);
        }
        assert!(corners > 5, "{corners}");
    }

    #[test]
    fn linear_fields_are_differentiated_exactly() {
        let cloud = cloud();
        let slope = Mat3A::from_cols(vec3a(0.3, -1.0, 0.2), Vec3A::ZERO, vec3a(0.1, 0.0, -0.7));
        // The floor stands still: the field vanishes at its samples, below it.
        let depth = vec3a(0.0, Layer::default().inset * cloud.kernel.spacing, 0.0);
        let slope = Mat3A::from_cols(Vec3A::ZERO, slope.x_axis, Vec3A::ZERO);
        let velocities: Vec<Vec3A> = cloud
            .around
            .x
            .iter()
            .map(|x| slope * (*x + depth))
            .collect();
        for i in 0..cloud.around.x.len() {
            let error = cloud.gradient(i, &velocities) - slope;
            let size = error.x_axis.length() + error.y_axis.length() + error.z_axis.length();
            assert!(size < 1e-4, "{i}: {error}");
        }
    }

    #[test]
    fn the_force_is_the_adjoint_of_the_gradient() {
        let mut cloud = cloud();
        let count = cloud.around.x.len();
        let velocities: Vec<Vec3A> = (0..count).map(|i| noise(0, i)).collect();
        let stress: Vec<Mat3A> = (0..count)
            .map(|i| Sym3::of(&outer(noise(1, i), noise(2, i))).matrix())
            .collect();
        let transfer: Vec<Mat3A> = (0..count)
            .map(|i| stress[i] * cloud.grains[i].correction.matrix())
            .collect();
        let (_, forces) = cloud.forces(&transfer);
        let power: f64 = (0..count)
            .map(|i| f64::from(velocities[i].dot(forces[i])))
            .sum();
        let work: f64 = (0..count)
            .map(|i| {
                let gradient = cloud.gradient(i, &velocities).to_cols_array();
                let pairs = stress[i].to_cols_array().into_iter().zip(gradient);
                pairs.map(|(a, b)| f64::from(a * b)).sum::<f64>()
            })
            .sum();
        assert!((power + work).abs() < 1e-4 * work.abs(), "{power} {work}");
    }

    #[test]
    fn what_particles_receive_the_floor_gives() {
        let mut cloud = cloud();
        let transfer: Vec<Mat3A> = (0..cloud.around.x.len())
            .map(|i| outer(noise(3, i), noise(4, i)))
            .collect();
        let (shown, forces) = cloud.forces(&transfer);
        let share = (cloud.kernel.volume, 1.0);
        let none = Impulses::new(&cloud.solids);
        let total = cloud.around.reactions(&shown, &cloud.grains, share, &none);
        let floor = total.into_sums()[0].linear;
        let sum: DVec3 = forces.iter().map(|force| force.as_dvec3()).sum();
        let given = sum * f64::from(cloud.kernel.volume) + floor;
        assert!(given.length() < 1e-4 * floor.length(), "{given}");
    }

    #[test]
    fn full_surroundings_need_no_correction() {
        let cloud = cloud();
        let inside = |x: &Vec3A| x.min_element() > 0.15 && x.max_element() < 0.45;
        let deep: Vec<usize> = (0..cloud.around.x.len())
            .filter(|i| inside(&cloud.around.x[*i]))
            .collect();
        assert!(!deep.is_empty());
        for i in deep {
            let correction = cloud.grains[i].correction;
            let off = correction.plus(&Sym3::splat(-1.0)).norm();
            assert!(off < 0.5, "{correction:?}");
        }
    }
}
