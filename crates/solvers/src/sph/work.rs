//! The particles of one step, gathered in the order of their cells, and handed back.

use super::kernel::Kernel;
use super::lists::CHUNK;
use super::operator::{Around, Grain, Role};
use super::search::Search;
use super::shown::Shown;
use super::tensor::Sym3;
use super::{PRESSURE, QUIET, SHEAR, SHEAR_RATE, STRESS, USUAL};
use crate::material::friction::{at_rest, inertial};
use barchan_base::cells::Cells;
use barchan_sim::model::Model;
use barchan_sim::scene::{SphLaw, SphScheme, SphSettings};
use barchan_sim::state::Particles;
use glam::{Vec3, Vec3A};
use rayon::prelude::*;

/// Scratch of a step; nothing in it outlives the step but its memory.
#[derive(Default)]
pub struct Work {
    /// Who is where.
    pub cells: Cells,
    /// Places, neighbours and bodies.
    pub around: Around,
    /// Velocities as they are solved for.
    pub v: Vec<Vec3A>,
    /// Velocities before pressure and friction. At the end of a step see `shifts`.
    pub free: Vec<Vec3A>,
    /// What neighbours see.
    pub shown: Vec<Shown>,
    /// Relative densities. `finish` keeps other numbers here.
    pub density: Vec<f32>,
    /// The rest.
    pub grains: Vec<Grain>,
    /// The sorted place of each particle, or one beyond them all.
    pub rank: Vec<u32>,
    /// Shear slower than this [1/s] does not turn friction.
    pub slow: f32,
    /// Shear faster than this [1/s] is dragged even where it is usual.
    pub flow: f32,
    /// The step over the longest, which is less where something is fast.
    pub short: f32,
    /// What stresses answer by, over what a step of the usual length needs. What a strain adds to them in a sweep is the same in the
    /// shorter steps that a scene may ask for. If they answered by as much as such a step's velocities allow, which grows with the inverse
    /// square of its length, flows would lose friction: a channel that runs out by 3.8 radii would by 4.8 in steps a quarter as
    /// long. Only what is to bear its weight before it moves answers in full.
    pub stiffness: f32,
    /// Whether this is the first step: all that is there bears as it lies.
    pub begins: bool,
    /// Which cells take part.
    pub awake: Vec<bool>,
    /// Which cells are solved for.
    pub solved: Vec<bool>,
    /// Which cells sleep beside a body.
    pub leaning: Vec<bool>,
    /// Which cells lend their stress.
    pub wider: Vec<bool>,
    /// Which cells lend their places.
    pub kept: Vec<bool>,
}

/// Shear below this part of √(g/d) is creep.
const CREEP: f32 = 0.02;

/// A material's numbers, as particles look them up.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// Friction coefficient.
    pub mu: f32,
    /// Cohesion [Pa].
    pub cohesion: f32,
    /// Density [kg/m³].
    pub density: f32,
    /// Cohesion [Pa] and viscosity that being wet adds.
    pub wet: (f32, f32),
    /// Grain size where friction grows with inertia [m].
    pub grain_size: Option<f32>,
    /// What shears more slowly than this [1/s] is about to stop.
    pub creep: f32,
}

impl Law {
    /// The laws of a model's materials.
    pub fn of(model: &Model, settings: &SphSettings, kernel: &Kernel) -> Vec<Self> {
        let creep = match settings.scheme {
            SphScheme::Implicit => CREEP * (model.gravity.length() / kernel.spacing).sqrt(),
            SphScheme::Ihmsen => 0.0,
        };
        // The density such that particles of the kernel's volume weigh what the model says.
        let packing = model.particle_volume() as f32 / kernel.volume;
        model
            .materials
            .iter()
            .map(|material| Self {
                mu: material.friction_angle.tan() as f32,
                cohesion: material.cohesion as f32,
                density: material.density as f32 * packing,
                wet: (material.wet_cohesion as f32, material.wet_viscosity as f32),
                grain_size: match settings.law {
                    SphLaw::Constant => None,
                    SphLaw::Inertial => Some(material.grain_size as f32),
                },
                creep,
            })
            .collect()
    }
}

impl Work {
    /// Copies the particles of the kept cells.
    pub fn gather(&mut self, particles: &Particles, laws: &[Law]) {
        let order = self.cells.order();
        let count = order.len();
        self.around.x.resize(count, Vec3A::ZERO);
        self.v.resize(count, Vec3A::ZERO);
        self.free.resize(count, Vec3A::ZERO);
        self.shown.resize(count, Shown::default());
        self.density.resize(count, 0.0);
        self.grains.resize(count, Grain::default());
        let columns = Columns::of(particles);
        let own = (
            self.around.x.par_chunks_mut(CHUNK),
            self.v.par_chunks_mut(CHUNK),
            self.shown.par_chunks_mut(CHUNK),
            self.grains.par_chunks_mut(CHUNK),
        );
        own.into_par_iter().zip(order.par_chunks(CHUNK)).for_each(
            |((x, v, shown, grains), order)| {
                for (k, from) in order.iter().enumerate() {
                    let from = *from as usize;
                    x[k] = particles.position[from].into();
                    v[k] = particles.velocity[from].into();
                    let law = &laws[particles.material[from] as usize];
                    shown[k] = columns.shown(from, law);
                    grains[k] = columns.grain(from, law);
                }
            },
        );
    }

    /// Finds the sorted place of each of `count` particles.
    pub fn find_ranks(&mut self, count: usize) {
        self.rank.clear();
        self.rank.resize(count, u32::MAX);
        for (place, particle) in self.cells.order().iter().enumerate() {
            self.rank[*particle as usize] = place as u32;
        }
    }

    /// Sorts out who moves, who dozes and who sleeps, by cell.
    pub fn assign_roles(&mut self, particles: &Particles) {
        let quiet = particles.extra[QUIET].entries::<f32>();
        let (cells, solved) = (&self.cells, &self.solved);
        let (leaning, wider) = (&self.leaning, &self.wider);
        self.grains
            .par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, grains)| {
                let mut cell = cells.cell_of(chunk * CHUNK);
                for (k, grain) in grains.iter_mut().enumerate() {
                    let place = chunk * CHUNK + k;
                    while cells.places(cell).end <= place {
                        cell += 1;
                    }
                    let still = quiet[cells.order()[place] as usize] >= super::sleep::AFTER;
                    grain.role = match (still, solved[cell], leaning[cell]) {
                        (false, ..) => Role::Awake,
                        (true, true, _) => Role::Dozing,
                        (true, false, true) => Role::Leaning,
                        (true, false, false) if wider[cell] => Role::Asleep,
                        (true, false, false) => Role::Apart,
                    };
                }
            });
    }

    /// Finds all neighbours, and measures densities and corrections.
    pub fn search(&mut self, kernel: Kernel) {
        let Around {
            x, lists, boundary, ..
        } = &mut self.around;
        let search = Search {
            cells: &self.cells,
            x,
            boundary,
            kernel,
        };
        search.fill(lists, &mut self.density, &mut self.grains);
    }
}

struct Columns<'a> {
    pressure: &'a [f32],
    normal: &'a [Vec3],
    shear: &'a [Vec3],
    rate: &'a [f32],
    usual: &'a [f32],
    wetness: &'a [f32],
}

impl<'a> Columns<'a> {
    fn of(particles: &'a Particles) -> Self {
        let extra = &particles.extra;
        Self {
            pressure: extra[PRESSURE].entries(),
            normal: extra[STRESS].entries(),
            shear: extra[SHEAR].entries(),
            rate: extra[SHEAR_RATE].entries(),
            usual: extra[USUAL].entries(),
            wetness: &particles.wetness,
        }
    }

    fn shown(&self, from: usize, law: &Law) -> Shown {
        let viscosity = self.wetness[from] * law.wet.1;
        Shown::new(self.pressure[from], viscosity, 1.0 / law.density)
    }

    fn grain(&self, from: usize, law: &Law) -> Grain {
        let rate = self.rate[from];
        let still = at_rest(law.mu, rate, law.creep);
        let mu = law.grain_size.map_or(still, |size| {
            inertial(still, rate, size, self.pressure[from], law.density)
        });
        Grain {
            stress: Sym3 {
                diagonal: self.normal[from].into(),
                off: self.shear[from].into(),
            },
            usual: self.usual[from],
            mu,
            cohesion: law.cohesion + self.wetness[from] * law.wet.0,
            lightness: 1.0 / law.density,
            ..Grain::default()
        }
    }
}
