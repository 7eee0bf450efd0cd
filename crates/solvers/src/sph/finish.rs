//! The end of a step: volume repaired by displacement, places and columns handed back, nothing inside a body.
//!
//! Memory is what limits scenes, so what is found here is kept where the sweeps kept what nobody asks for any more: `free` holds the
//! displacements of repairs, `density` first their pressures, then how long particles have been quiet. Here they go by those names.

use super::QUIET;
use super::boundary::Placed;
use super::kernel::Kernel;
use super::lists::{CHUNK, Four, Near};
use super::operator::{Around, Grain, Role, Site};
use super::shown::{Shown, axes, dot, lanes};
use super::sleep::{self, Thresholds};
use super::work::Work;
use crate::material::contact::bounce;
use barchan_sim::coupling::Impulses;
use barchan_sim::model::WORLD;
use barchan_sim::solids::{Solid, Solids};
use barchan_sim::state::Particles;
use glam::{Vec3, Vec3A};
use rayon::prelude::*;
use wide::f32x4;

/// Part of the density error repaired in a step. With less, slopes sag before they stand.
const REPAIR: f32 = 0.4;
/// Density that is left alone. With a hundredth more, layers sag further before they stand, and flow a degree later.
const FULL: f32 = 1.0;
/// Pairs nearer than this many spacings are taken apart one by one, by this part of what is missing in a step: the kernel's
/// gradient vanishes between them, and a repair that cannot part them would lift the rest for ever.
const CLOSE: f32 = 0.6;
const PART: f32 = 0.05;
/// The longest displacement of a repair over the spacing.
const MOST_REPAIR: f32 = 0.1;
/// The largest part of its velocity relative to another that a particle loses in being taken apart from it.
const MOST_SLOWER: f32 = 0.1;
/// No particle comes nearer to a body than this many spacings.
const KEEP_OFF: f32 = 0.25;

impl Work {
    /// Displacements [m] of the repairs.
    pub fn shifts(&self) -> &[Vec3A] {
        &self.free
    }

    /// Leaves places as they are.
    pub fn skip_repairs(&mut self) {
        self.free.fill(Vec3A::ZERO);
        for grain in &mut self.grains {
            grain.keep(Repair::default());
        }
    }

    /// Displacements [m] that take over-full places apart, and what keeps the angular momentum meanwhile. They never enter the
    /// velocity, and there is no friction in them.
    pub fn find_repairs(&mut self, kernel: &Kernel) {
        self.density
            .par_iter_mut()
            .zip(&self.grains)
            .with_min_len(CHUNK)
            .for_each(|(density, grain)| {
                let pressure = REPAIR * (*density - FULL).max(0.0) / grain.compliance;
                *density = pressure * grain.correction.trace() / 3.0;
            });
        let (around, shifts, push) = (&self.around, &mut self.free, &self.density);
        let close = CLOSE * kernel.spacing;
        let repairs = Repairs {
            around,
            push,
            shown: &self.shown,
            v: &self.v,
            close,
            steep: kernel.slope(close * close) * kernel.volume,
        };
        around.for_each(shifts, &mut self.grains, |site, shift, grain| {
            let repair = repairs.of_pairs(site, grain);
            let whole = repair.apart + repairs.of_walls(site, grain);
            *shift = whole.clamp_length_max(MOST_REPAIR * kernel.spacing);
            grain.keep(repair);
        });
    }
}

/// What the end of a step keeps of a particle, in place of what its sweeps did.
impl Grain {
    fn keep(&mut self, Repair { apart, slower }: Repair) {
        (self.turn, self.lean) = (apart.into(), slower.into());
    }

    /// The part of its displacement [m] that pairs of particles make.
    fn apart(&self) -> Vec3 {
        self.turn.into()
    }

    /// The change of its velocity [m/s] that goes with it.
    fn slower(&self) -> Vec3 {
        self.lean.into()
    }

    /// How fast it shears [1/s].
    fn shear_rate(&self) -> f32 {
        self.gap
    }

    /// Notes how fast it shears [1/s].
    pub fn note_shear_rate(&mut self, rate: f32) {
        self.gap = rate;
    }
}

/// What repairs look up.
struct Repairs<'a> {
    around: &'a Around,
    /// The pressure of the repair [Pa s²], times the mean of L's diagonal: zero where a place is not crowded.
    push: &'a [f32],
    shown: &'a [Shown],
    v: &'a [Vec3A],
    /// Pairs nearer than this [m] are close; their factors are below `steep`.
    close: f32,
    steep: f32,
}

/// What pairs do to one of their particles.
#[derive(Default)]
struct Repair {
    /// Its displacement [m].
    apart: Vec3A,
    /// The change of its velocity [m/s]: who turns about each other turns more slowly further apart.
    slower: Vec3A,
}

impl Repairs<'_> {
    /// Pairs move apart along the line between them, the lighter one further, and their velocities across it shrink as their distance
    /// grows: neither momentum nor angular momentum changes. Four neighbours at a time.
    fn of_pairs(&self, site: Site<'_>, grain: &Grain) -> Repair {
        let (here, own) = (lanes(site.here), lanes(self.v[site.i]));
        let mine = &self.shown[site.i];
        let pushed = f32x4::splat(self.push[site.i]);
        let least = f32x4::splat(f32::MIN_POSITIVE);
        let (mut apart, mut slower) = ([f32x4::ZERO; 3], [f32x4::ZERO; 3]);
        for Four { who, factors } in site.particles.fours(site.i) {
            let push = pushed + f32x4::new(who.map(|j| self.push[j]));
            let close = factors.simd_lt(f32x4::splat(self.steep));
            // Most pairs of a pile at rest have nothing to repair.
            if !(push.simd_gt(f32x4::ZERO) | close).any() {
                continue;
            }
            let way = axes(who.map(|j| here - lanes(self.around.x[j])));
            let between = axes(who.map(|j| own - lanes(self.v[j])));
            let squared = dot(way, way);
            let distance = squared.sqrt().fast_max(least);
            let missing = f32x4::splat(self.close) / distance - f32x4::ONE;
            let parting = close & (missing * f32x4::splat(PART)).fast_max(f32x4::ZERO);
            let shares = mine.shares(self.shown, who);
            let mut growth = parting - push * factors * (f32x4::splat(grain.lightness) / shares);
            let together = close & distance.simd_le(least);
            if together.any() {
                // Two in one place part along x, the later one forwards.
                let side = f32x4::new(who.map(|j| if site.i > j { 1.0 } else { -1.0 }));
                apart[0] += together & (side * f32x4::splat(PART * self.close) * shares);
                growth = together.select(f32x4::ZERO, growth);
            }
            let along = dot(between, way) / squared.fast_max(least);
            let slowed = growth.fast_min(f32x4::splat(MOST_SLOWER)) * shares;
            let growth = growth * shares;
            for axis in 0..3 {
                apart[axis] += way[axis] * growth;
                slower[axis] -= (between[axis] - way[axis] * along) * slowed;
            }
        }
        Repair {
            apart: Vec3A::from_array(apart.map(f32x4::reduce_add)),
            slower: Vec3A::from_array(slower.map(f32x4::reduce_add)),
        }
    }

    /// The displacement [m] that bodies give a particle.
    fn of_walls(&self, site: Site<'_>, grain: &Grain) -> Vec3A {
        let push = self.push[site.i];
        if push <= 0.0 || site.samples.is_empty() {
            return Vec3A::ZERO;
        }
        let mut mine = Shown::default();
        let pressure = push * 3.0 / grain.correction.trace();
        mine.set_matrix(&(grain.correction.matrix() * -pressure));
        self.around.support(site, &mine, grain.mu).push * grain.lightness
    }
}

/// What a step did, chunk by chunk.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Kinetic energy [J].
    pub kinetic_energy: f64,
    /// Fastest, squared.
    pub max_speed_squared: f32,
    /// Lost particles.
    pub lost: Vec<usize>,
    /// Particles that a body stopped.
    pub stopped: u64,
    /// What bodies received.
    pub impulses: Impulses,
}

/// A particle on its way through a step.
struct Moved {
    /// Where it was, and how fast, before it was repaired.
    from: Vec3,
    began: Vec3,
    position: Vec3,
    velocity: Vec3,
    /// The largest coefficient of friction with which a body can hold it.
    rough: f32,
    /// How often a body stopped it; the last entry is the sum of those that have no place.
    stops: usize,
    stopped: [Stop; STOPS],
}

/// A body that takes of a particle's velocity.
#[derive(Clone, Copy, Default)]
struct Stop {
    body: usize,
    place: Vec3,
    taken: Vec3,
}

/// The stops of one particle in a step that are told apart.
const STOPS: usize = 4;

impl Moved {
    /// Takes out of the velocity what a body in its way does not let pass, and what its friction takes of the rest. It
    /// happens at `place`.
    fn stop(&mut self, (body, solid): (usize, &Solid), place: Vec3, normal: Vec3) {
        let wall = solid.velocity(place);
        let friction = solid.friction.min(self.rough);
        let after = wall + bounce(self.velocity - wall, normal, 0.0, friction);
        let stop = &mut self.stopped[self.stops.min(STOPS - 1)];
        *stop = Stop {
            body,
            place,
            taken: stop.taken + self.velocity - after,
        };
        self.velocity = after;
        self.stops += 1;
    }

    /// Angular momentum over mass [m²/s] that it has gained without a push of a body on its way: by being displaced, but not by
    /// the `apart` of pairs, who see to theirs at the velocities that they began with.
    fn lost_turn(&self, apart: Vec3) -> Vec3 {
        let told = self.stopped[..self.stops.min(STOPS)].iter();
        let told: Vec3 = told
            .map(|stop| (stop.place - self.from).cross(stop.taken))
            .sum();
        (self.position - self.from).cross(self.velocity) - apart.cross(self.began) + told
    }
}

/// What is needed to hand particles back.
pub struct Finish<'a> {
    /// The bodies.
    pub solids: &'a Solids,
    /// Length of the step [s].
    pub dt: f32,
    /// Spacing [m].
    pub spacing: f32,
    /// When to sleep and wake.
    pub thresholds: Thresholds,
    /// Whether bodies hold no better than the material's own friction, however rough they are.
    pub limited: bool,
}

impl Finish<'_> {
    /// Moves the particles by their velocities and repairs, and notes how long each has been quiet.
    pub fn advance(&self, work: &mut Work, particles: &Particles, notes: &mut Vec<Notes>) {
        let Work {
            around,
            v,
            free: shifts,
            density: quiet,
            grains,
            cells,
            ..
        } = work;
        let Around {
            x, lists, boundary, ..
        } = around;
        let none = Impulses::new(self.solids);
        let quiets = particles.extra[QUIET].entries::<f32>();
        let own = (
            x.par_chunks_mut(CHUNK),
            v.par_chunks_mut(CHUNK),
            quiet.par_chunks_mut(CHUNK),
            shifts.par_chunks(CHUNK),
        );
        own.into_par_iter()
            .zip(&*lists)
            .enumerate()
            .map(|(chunk, ((x, v, quiet, shifts), list))| {
                let mut notes = Notes {
                    impulses: none.clone(),
                    ..Notes::default()
                };
                let own = x.iter_mut().zip(v).zip(quiet).zip(shifts);
                for (k, (((x, v), quiet), shift)) in own.enumerate() {
                    let i = chunk * CHUNK + k;
                    let from = cells.order()[i] as usize;
                    *quiet = quiets[from];
                    if grains[i].role.is_out() {
                        continue;
                    }
                    let near = (list.samples(k), boundary.samples());
                    let moved = self.advance_one((x, v, quiet), *shift, (&grains[i], near));
                    if let Some(moved) = moved {
                        let beside = near.0.iter().next();
                        let body = beside.map(|(sample, _)| near.1[sample].body as usize);
                        notes.note((from, particles.mass[from]), &moved, (&grains[i], body));
                    }
                }
                notes
            })
            .collect_into_vec(notes);
    }

    /// Moves a particle and returns how, or lets it doze on.
    fn advance_one(
        &self,
        (x, v, quiet): (&mut Vec3A, &mut Vec3A, &mut f32),
        shift: Vec3A,
        (grain, near): (&Grain, (Near<'_>, &[Placed])),
    ) -> Option<Moved> {
        let moved = self.move_one((*x, *v, shift), grain, near);
        let speed = moved.velocity.length();
        *quiet = self.thresholds.quiet(*quiet, speed, self.dt);
        if grain.role == Role::Dozing && *quiet > 0.0 {
            // It stays, but what pulls at it adds up until it wakes: sleep is no strength.
            *v = Vec3A::from(moved.velocity) * self.thresholds.kept(self.dt);
            return None;
        }
        (*x, *v) = (moved.position.into(), moved.velocity.into());
        if *quiet >= sleep::AFTER {
            // Who falls asleep stops: what is left of its motion is no pull.
            *v = Vec3A::ZERO;
        }
        Some(moved)
    }

    /// Moves a particle by its velocity and repair, stopping it at bodies.
    fn move_one(
        &self,
        (from, began, shift): (Vec3A, Vec3A, Vec3A),
        grain: &Grain,
        (near, samples): (Near<'_>, &[Placed]),
    ) -> Moved {
        let (from, began) = (Vec3::from(from), Vec3::from(began));
        let velocity = began + grain.slower();
        let rough = if self.limited {
            grain.mu
        } else {
            f32::INFINITY
        };
        let mut moved = Moved {
            from,
            began,
            position: from + velocity * self.dt + Vec3::from(shift),
            velocity,
            rough,
            stops: 0,
            stopped: [Stop::default(); STOPS],
        };
        // Once more for what a body that stopped it led it into.
        for _ in 0..2 {
            let mut last = usize::MAX;
            let stops = moved.stops;
            for (sample, _) in near.iter() {
                let body = samples[sample].body as usize;
                if body != last {
                    last = body;
                    self.meet(&self.solids.all()[body], body, from, &mut moved);
                }
            }
            if moved.stops == stops {
                break;
            }
        }
        moved
    }

    /// Stops a particle that would come too near to a body; what is left of its way it slides.
    fn meet(&self, solid: &Solid, body: usize, from: Vec3, moved: &mut Moved) {
        let radius = KEEP_OFF * self.spacing;
        let way = moved.position - from;
        let carried = solid.velocity_from(from) * self.dt;
        let before = solid.surface_at(from, 0.0);
        let near = radius + (way - carried).length();
        if before.distance > near {
            return;
        }
        if before.distance < -near {
            // It began inside: out, little by little.
            moved.stop((body, solid), from, before.normal);
            let out = before.normal * (MOST_REPAIR * self.spacing);
            moved.position = from + moved.velocity * self.dt + out;
            return;
        }
        if let Some(touch) = solid.sweep(from, moved.position, radius, 0.0) {
            let shift = way - moved.velocity * self.dt;
            moved.stop((body, solid), from + way * touch.fraction, touch.normal);
            let along = shift - touch.normal * shift.dot(touch.normal);
            let slid = moved.velocity * self.dt + along;
            moved.position = from + way * touch.fraction + slid * (1.0 - touch.fraction);
        }
        let surface = solid.surface_at(moved.position, 1.0);
        if surface.distance < radius {
            moved.position += surface.normal * (radius - surface.distance);
            moved.stop((body, solid), moved.position, surface.normal);
        }
    }

    /// Hands the particles back.
    pub fn hand_back(&self, work: &mut Work, particles: &mut Particles) {
        work.find_ranks(particles.len());
        let (work, quiets) = (&*work, &work.density);
        let solved = |place: u32| {
            let grain = work.grains.get(place as usize);
            grain.filter(|grain| !grain.role.is_out())
        };
        let places = &work.rank;
        let [pressure, normal, shear, rate, quiet, usual] = &mut particles.extra[..] else {
            unreachable!("the solver's columns")
        };
        (
            particles.position.par_chunks_mut(CHUNK),
            particles.velocity.par_chunks_mut(CHUNK),
            places.par_chunks(CHUNK),
            pressure.entries_mut::<f32>().par_chunks_mut(CHUNK),
            normal.entries_mut::<Vec3>().par_chunks_mut(CHUNK),
            shear.entries_mut::<Vec3>().par_chunks_mut(CHUNK),
            rate.entries_mut::<f32>().par_chunks_mut(CHUNK),
            quiet.entries_mut::<f32>().par_chunks_mut(CHUNK),
            usual.entries_mut::<f32>().par_chunks_mut(CHUNK),
        )
            .into_par_iter()
            .for_each(
                |(position, velocity, places, pressure, normal, shear, rate, quiet, usual)| {
                    for (k, place) in places.iter().enumerate() {
                        let Some(grain) = solved(*place) else {
                            velocity[k] = Vec3::ZERO;
                            continue;
                        };
                        let i = *place as usize;
                        position[k] = work.around.x[i].into();
                        velocity[k] = work.v[i].into();
                        pressure[k] = work.shown[i].pressure();
                        normal[k] = grain.stress.diagonal.into();
                        shear[k] = grain.stress.off.into();
                        rate[k] = grain.shear_rate();
                        usual[k] = grain.usual;
                        quiet[k] = quiets[i];
                    }
                },
            );
    }
}

impl Notes {
    /// Notes how a particle moved, which is beside a `body` or none.
    fn note(
        &mut self,
        (index, mass): (usize, f32),
        moved: &Moved,
        (grain, body): (&Grain, Option<usize>),
    ) {
        let speed_squared = moved.velocity.length_squared();
        // Written so that NaN counts as lost.
        if !(moved.position.abs().max_element() < WORLD && speed_squared.is_finite()) {
            self.lost.push(index);
            return;
        }
        self.kinetic_energy += 0.5 * f64::from(mass) * f64::from(speed_squared);
        self.max_speed_squared = self.max_speed_squared.max(speed_squared);
        self.stopped += u64::from(moved.stops > 0);
        for stop in &moved.stopped[..moved.stops.min(STOPS)] {
            self.impulses.push(stop.body, stop.place, stop.taken * mass);
        }
        if let Some(body) = body {
            let turn = moved.lost_turn(grain.apart()) * mass;
            self.impulses.turn(body, -turn);
        }
    }
}
