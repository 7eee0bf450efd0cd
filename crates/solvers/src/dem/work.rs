//! The scratch of a step: what each grain is made of, its balls, and the loops over grains.

use super::finish::{Finish, Moved};
use super::lists::{CHUNK, Lists, NEW, Nearby, Past, Search, curve, split};
use super::motion::{Ball, Grain, Kind, Make, Seen};
use super::sleep::{Rest, Watch, wake_turned};
use super::store::{self, Load, MEMORY, Motion, Store, groups, groups_mut, put, put_groups};
use crate::material::drag::Drag;
use barchan_base::column::Column;
use barchan_sim::model::{Air, Model};
use barchan_sim::solver::StepError;
use barchan_sim::state::{Particles, State};
use glam::{DVec3, DVec4, Vec3, Vec4};
use rayon::prelude::*;

/// Lists should last this many steps; the skin is chosen for it, between two parts of the smallest ball's diameter.
const STEPS_A_LIST: f64 = 60.0;
const SKIN: (f64, f64) = (0.04, 0.3);
/// Grains that wait at an emitter's mouth are looked after once in so many steps.
const WAIT: u64 = 16;
/// A mouth is free where a grain overlaps others by less than this part of its radius.
const FREE: f64 = 0.01;

/// Scratch.
#[derive(Default)]
pub struct Work {
    /// What the grains of each material have in common.
    kinds: Vec<Kind>,
    /// What each grain is made of.
    pub makes: Vec<Make>,
    /// What contacts see of each grain: its velocity is that of the end of the step, as the last forces foresee it.
    pub seen: Vec<Seen>,
    /// Centres of mass [m]; nothing where every grain is a ball.
    pub places: Vec<DVec3>,
    /// First ball of each grain, and the end.
    pub first_ball: Vec<u32>,
    /// The balls.
    pub balls: Vec<Ball>,
    /// The grain of each ball.
    pub owners: Vec<u32>,
    /// Chunks that must be looked at.
    pub active: Vec<bool>,
    nearby: Nearby,
    lists: Vec<Lists>,
    /// The lists before the last ones; see `MEMORY`.
    old: Vec<Column>,
    watch: Watch,
    /// Where grains stood in the lists, when some came or went since.
    stood: Option<Vec<u32>>,
    ready: bool,
}

impl Work {
    /// Takes in what came, went, or was turned wet or dry since the last step; true where lists must be made anew for it.
    ///
    /// # Errors
    /// If the state's memory is not that of this method.
    pub fn receive(
        &mut self,
        model: &Model,
        state: &mut State,
        dt: f64,
    ) -> Result<bool, StepError> {
        if !self.ready && !store::is_sound(state) {
            return Err(damaged());
        }
        let mut store = Store::open(&mut state.memory);
        let particles = &state.particles;
        let changed = store.ids.entries::<u64>() != particles.id;
        if changed {
            let stood = places(store.ids.entries(), &particles.id);
            let births = Births {
                particles,
                wait: state.clock.step > 0,
            };
            births.move_in(&stood, &mut store);
            self.stood = Some(stood);
        }
        if changed || !self.ready {
            self.furnish(model, particles);
            self.place_balls(groups(store.motions));
        }
        if !changed && !self.ready {
            if store.first_ball.entries::<u32>() != self.first_ball {
                return Err(damaged());
            }
            self.watch.learn(&store, &self.owners);
        }
        self.ready = true;
        if !model.wet.is_empty() {
            let all = self.makes.iter_mut().zip(&mut self.seen);
            for ((make, seen), wetness) in all.zip(&particles.wetness) {
                make.wetness = *wetness;
                seen.velocity[3] = f64::from(*wetness);
            }
            let now = state.clock.time();
            wake_turned(model, particles, &mut store, [now, now + dt]);
        }
        self.active = match changed {
            // What leaned on those that left must feel it.
            true => vec![true; self.makes.len().div_ceil(CHUNK)],
            false => self.watch.active(&store, &state.solids),
        };
        let waiting = store.marks().waiting > 0.0 && state.clock.step.is_multiple_of(WAIT);
        Ok(changed || waiting)
    }

    /// Finds what grains are made of, and makes room for their balls.
    fn furnish(&mut self, model: &Model, particles: &Particles) {
        self.kinds = kinds(model);
        self.makes.clear();
        self.first_ball.clear();
        self.first_ball.push(0);
        self.balls.clear();
        self.owners.clear();
        for (i, material) in particles.material.iter().enumerate() {
            let make = make(model, *material, particles.radius[i], particles.wetness[i]);
            let shape = &self.kinds[*material as usize].balls;
            self.balls.extend(shape.iter().map(|(_, radius)| Ball {
                center: DVec3::ZERO,
                radius: radius * make.radius,
            }));
            self.owners.extend(shape.iter().map(|_| i as u32));
            self.first_ball.push(self.balls.len() as u32);
            self.makes.push(make);
        }
    }

    /// Half a step of the last forces, and a step of free motion; returns the speed of the fastest ball [m/s].
    pub fn advance(&mut self, outside: &Outside, state: &mut State, dt: f64) -> f64 {
        let store = Store::open(&mut state.memory);
        let (makes, kinds) = (&self.makes, &self.kinds);
        let (first_ball, active) = (&self.first_ball, &self.active);
        let loads = groups::<Load>(store.loads);
        let balls = split(&mut self.balls, &ball_bounds(first_ball));
        let mut places = self.places.chunks_mut(CHUNK);
        let places: Vec<&mut [DVec3]> = active
            .iter()
            .map(|_| places.next().unwrap_or_default())
            .collect();
        let speeds: Vec<f64> = groups_mut::<Motion>(store.motions)
            .par_chunks_mut(CHUNK)
            .zip(self.seen.par_chunks_mut(CHUNK))
            .zip(balls.into_par_iter().zip(places))
            .enumerate()
            .filter(|(chunk, _)| active[*chunk])
            .map(|(chunk, ((motions, seen), (balls, places)))| {
                let mut fastest = 0.0f64;
                let start = first_ball[chunk * CHUNK] as usize;
                for (k, (motion, seen)) in motions.iter_mut().zip(seen).enumerate() {
                    if motion.is_still() {
                        continue;
                    }
                    let i = chunk * CHUNK + k;
                    let grain = grain(makes, kinds, i);
                    let pull = outside.acceleration(grain.0, motion.velocity);
                    *seen = motion.advance(grain, &loads[i], pull, dt);
                    let own = first_ball[i] as usize - start..first_ball[i + 1] as usize - start;
                    motion.place(grain, &mut balls[own]);
                    if let Some(place) = places.get_mut(k) {
                        *place = motion.position;
                    }
                    fastest = fastest.max(motion.reach_square(grain));
                }
                fastest.sqrt()
            })
            .collect();
        speeds.into_iter().fold(0.0, f64::max)
    }

    /// Sorts the grains, once a frame, and lists anew who is near whom. `rolls` says whether grains, and whether walls, resist
    /// rolling; `way` is the fastest ball's in this step [m].
    pub fn renew(&mut self, (model, rolls): (&Model, [bool; 2]), state: &mut State, way: f64) {
        let stood = self.sort(model, state);
        let mut store = Store::open(&mut state.memory);
        put(store.ids, &state.particles.id);
        let diameters = self.balls.iter().map(|ball| 2.0 * ball.radius);
        let smallest = diameters.fold(f64::INFINITY, f64::min);
        let skin = (2.0 * STEPS_A_LIST * way).clamp(SKIN.0 * smallest, SKIN.1 * smallest);
        let radii = self.makes.iter().map(|make| make.radius);
        let reach = radii.fold(0.0, f64::max);
        let centers: Vec<Vec3> = groups::<Motion>(store.motions)
            .iter()
            .map(|motion| motion.position.as_vec3())
            .collect();
        // A little more than needed, for centres are rounded to 32 bits.
        let size = ((2.0 * reach + skin) * 1.001) as f32;
        self.nearby.sort(&centers, &self.makes, size);
        if store.marks().waiting > 0.0 {
            store.marks().waiting = self.release(groups_mut(store.motions));
        }
        let mut old = Store::open(&mut self.old);
        store.swap_lists(&mut old);
        let motions = std::mem::replace(store.motions, Column::zeros(MEMORY[1], 0));
        let search = Search {
            makes: &self.makes,
            motions: groups(&motions),
            first_ball: &self.first_ball,
            balls: &self.balls,
            skin,
            solids: &state.solids,
            nearby: &self.nearby,
            rolls,
        };
        search.list(&Past::of(&old, &stood), &mut self.lists, &mut store);
        *store.motions = motions;
        self.watch.learn(&store, &self.owners);
        self.active = vec![true; self.makes.len().div_ceil(CHUNK)];
    }

    /// Brings the grains into the order of the curve where this frame's lists are the first; returns where each stood in the last.
    fn sort(&mut self, model: &Model, state: &mut State) -> Vec<u32> {
        let (particles, mut store) = (&mut state.particles, Store::open(&mut state.memory));
        let stood = match self.stood.take() {
            Some(stood) => stood,
            None => (0..self.makes.len() as u32).collect(),
        };
        let frame = f64::from(state.clock.frame) + 1.0;
        if (store.marks().sorted_frame - frame).abs() <= 0.5 {
            return stood;
        }
        store.marks().sorted_frame = frame;
        let order = curve(groups(store.motions), f64::from(model.spacing));
        permute(particles, &mut store, &order);
        let seen = ordered(&self.seen, &order);
        self.furnish(model, particles);
        self.place_balls(groups(store.motions));
        self.seen = seen;
        ordered(&stood, &order)
    }

    /// Lets go of those that wait where nobody else is, in their order; returns how many still wait.
    fn release(&self, motions: &mut [Motion]) -> f64 {
        let mut left = 0.0;
        for grain in 0..motions.len() {
            if !motions[grain].waits() {
                continue;
            }
            let mut taken = false;
            self.nearby.around(grain, |other, _| {
                let other = other as usize;
                let reach = self.makes[grain].radius + self.makes[other].radius;
                let free = reach - FREE * self.makes[grain].radius;
                let apart = motions[grain].position - motions[other].position;
                taken |= !motions[other].waits() && apart.length_squared() < free * free;
            });
            match taken {
                true => left += 1.0,
                false => motions[grain].quiet = 0.0,
            }
        }
        left
    }

    /// Places the balls, and lets contacts see the grains as they are.
    fn place_balls(&mut self, motions: &[Motion]) {
        let grains = (0..motions.len()).map(|i| grain(&self.makes, &self.kinds, i));
        let seen = motions.iter().zip(grains);
        self.seen = seen
            .map(|(motion, grain)| Seen::of(motion, grain))
            .collect();
        self.places.clear();
        if !self.kinds.iter().all(Kind::is_ball) {
            self.places
                .extend(motions.iter().map(|motion| motion.position));
        }
        for (i, motion) in motions.iter().enumerate() {
            let own = self.first_ball[i] as usize..self.first_ball[i + 1] as usize;
            motion.place(grain(&self.makes, &self.kinds, i), &mut self.balls[own]);
        }
    }

    /// How a step's last half is done.
    pub fn finish<'a>(&'a self, outside: &'a Outside, dt: f64) -> Finish<'a> {
        Finish {
            outside,
            makes: &self.makes,
            kinds: &self.kinds,
            dt,
        }
    }

    /// Lets contacts see those stopped that fell asleep: nobody tells of them again until they wake.
    pub fn stop(&mut self, moved: &[Moved], motions: &[Motion]) {
        for &i in moved.iter().flat_map(|part| &part.slept) {
            self.seen[i] = Seen::of(&motions[i], grain(&self.makes, &self.kinds, i));
        }
    }
}

/// What pulls grains apart from contacts: gravity, and the air with its wind.
pub struct Outside {
    gravity: DVec3,
    /// The air, and the density of each material's grains [kg/m³].
    air: Option<(Air, Vec<f64>)>,
    /// When grains fall asleep and wake.
    pub rest: Rest,
}

impl Outside {
    /// Of a scene.
    pub fn of(model: &Model) -> Self {
        let densities = model
            .materials
            .iter()
            .map(|material| material.grain_density);
        Self {
            gravity: model.gravity.as_dvec3(),
            air: model.air.map(|air| (air, densities.collect())),
            rest: Rest {
                gravity: f64::from(model.gravity.length()),
            },
        }
    }

    /// Acceleration [m/s²] of a grain at `velocity` [m/s].
    #[inline(always)]
    pub fn acceleration(&self, make: &Make, velocity: DVec3) -> DVec3 {
        match &self.air {
            None => self.gravity,
            Some((air, densities)) => {
                self.in_air(air, densities[make.material as usize], make, velocity)
            }
        }
    }

    fn in_air(&self, air: &Air, density: f64, make: &Make, velocity: DVec3) -> DVec3 {
        // The ball of the same volume.
        let size = (1.0 / (make.inverse_mass * density) * 6.0 / std::f64::consts::PI).cbrt();
        let drag = Drag::new(size, density, air.density, air.viscosity);
        let relative = air.wind.as_dvec3() - velocity;
        let time = drag.response_time(relative.length() as f32);
        self.gravity * f64::from(drag.buoyancy) + relative / f64::from(time)
    }
}

fn damaged() -> StepError {
    StepError("the checkpoint's memory of contacts is damaged; start anew with --fresh".into())
}

/// Where chunks of grains begin among the balls, and the end.
fn ball_bounds(first_ball: &[u32]) -> Vec<usize> {
    let grains = first_ball.len() - 1;
    (0..=grains.div_ceil(CHUNK))
        .map(|chunk| first_ball[(chunk * CHUNK).min(grains)] as usize)
        .collect()
}

/// Where each of `now` stood in `before`, both in the order of arrival or a sorted order that only lost some and got
/// some at the end.
fn places(before: &[u64], now: &[u64]) -> Vec<u32> {
    let mut next = 0;
    let find = |id: &u64| match before[next..].iter().position(|old| old == id) {
        Some(skipped) => {
            next += skipped + 1;
            (next - 1) as u32
        }
        None => {
            next = before.len();
            NEW
        }
    };
    now.iter().map(find).collect()
}

/// Grains that come into the store.
struct Births<'a> {
    particles: &'a Particles,
    /// True where new ones wait until their place is free.
    wait: bool,
}

impl Births<'_> {
    /// Brings motions and loads to the particles there are; those that are new begin as their particle says.
    fn move_in(&self, places: &[u32], store: &mut Store<'_>) {
        let motions = groups::<Motion>(store.motions);
        let loads = groups::<Load>(store.loads);
        let old = |place: u32| (place != NEW).then_some(place as usize);
        let motions: Vec<Motion> = places
            .iter()
            .enumerate()
            .map(|(i, place)| old(*place).map_or_else(|| self.born(i), |old| motions[old]))
            .collect();
        let loads: Vec<Load> = places
            .iter()
            .map(|place| old(*place).map_or_else(Load::default, |old| loads[old]))
            .collect();
        store.marks().waiting = motions.iter().filter(|m| m.waits()).count() as f64;
        put_groups(store.motions, &motions);
        put_groups(store.loads, &loads);
    }

    fn born(&self, i: usize) -> Motion {
        let particles = self.particles;
        let turn = particles.extra[0].get::<Vec4>(i).as_dvec4();
        Motion {
            position: particles.position[i].as_dvec3(),
            velocity: particles.velocity[i].as_dvec3(),
            orientation: turn.try_normalize().unwrap_or(DVec4::W).to_array(),
            quiet: if self.wait { -1.0 } else { 0.0 },
            ..Motion::default()
        }
    }
}

/// A grain, to be moved.
#[inline(always)]
pub fn grain<'a>(makes: &'a [Make], kinds: &'a [Kind], i: usize) -> Grain<'a> {
    let make = &makes[i];
    (make, &kinds[make.material as usize])
}

fn kinds(model: &Model) -> Vec<Kind> {
    let kind = |grain: &barchan_sim::grain::Grain| {
        let solid = grain.shape.solid();
        Kind {
            balls: grain.shape.balls().to_vec(),
            inverse_inertia: solid.inertia.x / solid.inertia,
            turns_alike: solid.turns_alike(),
        }
    };
    model.grains.iter().map(kind).collect()
}

fn make(model: &Model, material: u16, radius: f32, wetness: f32) -> Make {
    let density = model.materials[material as usize].grain_density;
    let solid = model.grains[material as usize].shape.solid();
    let radius = f64::from(radius);
    Make {
        inverse_mass: 1.0 / (density * solid.volume * radius.powi(3)),
        inverse_inertia: 1.0 / (density * solid.inertia.x * radius.powi(5)),
        radius,
        wetness,
        material,
    }
}

fn ordered<T: Copy>(all: &[T], order: &[u32]) -> Vec<T> {
    order.iter().map(|i| all[*i as usize]).collect()
}

/// Brings particles, motions and loads into an order.
fn permute(particles: &mut Particles, store: &mut Store<'_>, order: &[u32]) {
    particles.permute(order, &mut Vec::new()); // Rarely: lists last for many steps.
    let motions = ordered(groups::<Motion>(store.motions), order);
    let loads = ordered(groups::<Load>(store.loads), order);
    put_groups(store.motions, &motions);
    put_groups(store.loads, &loads);
}
