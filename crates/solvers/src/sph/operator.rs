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

use super::boundary::Placed;
use super::lists::{CHUNK, List};
use super::tensor::Sym3;
use barchan_sim::coupling::Impulses;
use glam::{Mat3A, Vec3A};
use rayon::prelude::*;

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
}

/// What only the particle itself looks up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grain {
    /// L.
    pub correction: Sym3,
    /// Σ V g over the particles around [1/m].
    pub lean: [f32; 3],
    /// What a unit of pressure does to the divergence within a unit of time [m³/kg/m²].
    pub compliance: f32,
    /// How much closer it may come before it is full, negative or zero.
    pub gap: f32,
    /// Friction stress [Pa].
    pub stress: Sym3,
    /// Pressure averaged over the particles around [Pa].
    pub load: f32,
    /// Friction coefficient.
    pub mu: f32,
    /// Cohesion [Pa].
    pub cohesion: f32,
    /// Artificial viscosity.
    pub viscosity: f32,
    /// Inverse of the density [m³/kg].
    pub lightness: f32,
    /// How well the bodies that it touches hold it.
    pub hold: Hold,
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
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Places.
    pub x: &'a [Vec3A],
    /// Neighbours.
    pub lists: &'a [List],
    /// Boundary samples.
    pub samples: &'a [Placed],
    /// Change of each body's velocity.
    pub drifts: &'a [Drift],
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

impl Around<'_> {
    /// L, the lean and the compliance of each particle.
    pub fn measure(&self, grains: &mut [Grain]) {
        grains
            .par_chunks_mut(CHUNK)
            .zip(self.lists)
            .enumerate()
            .for_each(|(chunk, (grains, list))| {
                for (k, grain) in grains.iter_mut().enumerate() {
                    self.measure_one(chunk * CHUNK + k, (list, k), grain);
                }
            });
    }

    fn measure_one(&self, i: usize, (list, k): (&List, usize), grain: &mut Grain) {
        let here = self.x[i];
        let (mut moment, mut squares) = (Mat3A::ZERO, Mat3A::ZERO);
        let (mut lean, mut all) = (Vec3A::ZERO, Vec3A::ZERO);
        for (j, factor) in list.particles(k).iter() {
            let way = here - self.x[j];
            let g = way * factor;
            moment -= outer(way, g);
            squares += outer(g, g);
            lean += g;
        }
        for (b, factor) in list.samples(k).iter() {
            let way = here - self.samples[b].position;
            moment -= outer(way, way * factor);
            all += way * factor;
        }
        all += lean;
        let correction = invert(&Sym3::of(&moment));
        let l = correction.matrix();
        grain.correction = correction;
        grain.lean = lean.into();
        let resistance = Sym3::of(&(l * squares * l)).trace() + (l * all).length_squared();
        // Alone, nothing resists; the least keeps what is divided by it finite.
        grain.compliance = resistance.max(LEAST_RESISTANCE) * grain.lightness;
    }

    /// The forces per volume of `transfer` = σ L on each particle that is solved for, made into velocities by `take`.
    /// On the way it finds the mean pressure around each particle and how well walls hold it.
    pub fn push(
        &self,
        (transfer, pressures, own_weight): (&[Mat3A], &[f32], f32),
        grains: &mut [Grain],
        velocities: &mut [Vec3A],
        take: impl Fn(usize, &Grain, Vec3A) -> Vec3A + Sync,
    ) {
        velocities
            .par_chunks_mut(CHUNK)
            .zip(grains.par_chunks_mut(CHUNK))
            .zip(self.lists)
            .enumerate()
            .for_each(|(chunk, ((velocities, grains), list))| {
                for (k, (velocity, grain)) in velocities.iter_mut().zip(grains).enumerate() {
                    if grain.role == Role::Asleep {
                        continue;
                    }
                    let i = chunk * CHUNK + k;
                    let (here, own) = (self.x[i], &transfer[i]);
                    let mut push = *own * Vec3A::from(grain.lean);
                    let (mut load, mut weight) = (own_weight * pressures[i], own_weight);
                    for (j, factor) in list.particles(k).iter() {
                        push += transfer[j] * ((here - self.x[j]) * factor);
                        load -= factor * pressures[j];
                        weight -= factor;
                    }
                    grain.load = load / weight;
                    if !list.samples(k).is_empty() {
                        // Next to a wall the first row carries more than the second: its own load counts.
                        grain.load = pressures[i];
                        grain.hold = self.hold(i, (list, k), own);
                        push += self.push_of_walls(i, (list, k), own, &grain.hold);
                    }
                    *velocity = take(i, grain, push);
                }
            });
    }

    /// How well bodies hold particle `i`: fully below the Coulomb limit of what they would give it if they did.
    fn hold(&self, i: usize, (list, k): (&List, usize), own: &Mat3A) -> Hold {
        let mut hold = Hold::default();
        let mut walls = [(0.0f32, Vec3A::ZERO, 0.0f32, f32::MIN_POSITIVE); 2];
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            if hold.first == u32::MAX {
                hold.first = sample.body;
            }
            let (normal, sliding, friction, weight) =
                &mut walls[usize::from(sample.body != hold.first)];
            let force = *own * ((self.x[i] - sample.position) * factor);
            let along = sample.normal.dot(force);
            *normal += along.abs();
            *sliding += force - sample.normal * along;
            *friction -= sample.friction * factor;
            *weight -= factor;
        }
        hold.grips = walls.map(|(normal, sliding, friction, weight)| {
            let (limit, sliding) = (friction / weight * normal, sliding.length());
            if sliding > limit {
                limit / sliding
            } else {
                1.0
            }
        });
        hold
    }

    fn push_of_walls(
        &self,
        i: usize,
        (list, k): (&List, usize),
        own: &Mat3A,
        hold: &Hold,
    ) -> Vec3A {
        let mut push = Vec3A::ZERO;
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            let force = *own * ((self.x[i] - sample.position) * factor);
            push += sample.gripped(force, hold.by(sample.body));
        }
        push
    }

    /// What the bodies receive from forces per volume that last `time` [s], in the chunks' order; `none` are no impulses.
    pub fn reactions(
        &self,
        transfer: &[Mat3A],
        grains: &[Grain],
        (volume, time): (f32, f32),
        none: &Impulses,
    ) -> Impulses {
        let scale = -volume * time;
        let parts: Vec<Option<Impulses>> = grains
            .par_chunks(CHUNK)
            .zip(self.lists)
            .enumerate()
            .map(|(chunk, (grains, list))| {
                let mut sums: Option<Impulses> = None;
                for (k, grain) in grains.iter().enumerate() {
                    let i = chunk * CHUNK + k;
                    if grain.role == Role::Asleep || list.samples(k).is_empty() {
                        continue;
                    }
                    let sums = sums.get_or_insert_with(|| none.clone());
                    for (b, factor) in list.samples(k).iter() {
                        let sample = &self.samples[b];
                        let force = transfer[i] * ((self.x[i] - sample.position) * factor);
                        let grip = grain.hold.by(sample.body);
                        let push = sample.gripped(force, grip) * scale;
                        sums.push(sample.body as usize, sample.position.into(), push.into());
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

    /// The velocity gradient at particle `i`.
    #[inline]
    pub fn gradient(
        &self,
        i: usize,
        (list, k): (&List, usize),
        grain: &Grain,
        velocities: &[Vec3A],
    ) -> Mat3A {
        let (here, own) = (self.x[i], velocities[i]);
        let mut sum = Mat3A::ZERO;
        for (j, factor) in list.particles(k).iter() {
            let g = (here - self.x[j]) * factor;
            let change = velocities[j] - own;
            sum.x_axis += change * g.x;
            sum.y_axis += change * g.y;
            sum.z_axis += change * g.z;
        }
        for (b, factor) in list.samples(k).iter() {
            let sample = &self.samples[b];
            let g = (here - sample.position) * factor;
            let change = sample.velocity_now(self.drifts) - own;
            sum += outer(sample.gripped(change, grain.hold.by(sample.body)), g);
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
    use crate::sph::boundary::Boundary;
    use crate::sph::kernel::Kernel;
    use crate::sph::lists::Search;
    use barchan_base::cells::Cells;
    use barchan_base::random::Random;
    use barchan_sim::body::{Body, Form};
    use barchan_sim::model::Model;
    use barchan_sim::solids::Solids;
    use glam::{DVec3, Vec3, vec3a};
    use std::sync::Arc;

    struct Cloud {
        x: Vec<Vec3A>,
        lists: Vec<List>,
        boundary: Boundary,
        grains: Vec<Grain>,
        kernel: Kernel,
        solids: Solids,
    }

    /// A jittered block on a floor.
    fn cloud() -> Cloud {
        let random = Random::new(1, 2);
        let kernel = Kernel::new(0.1);
        let mut points = Vec::new();
        for i in 0..6 * 6 * 6 {
            let at = Vec3::new((i % 6) as f32, (i / 6 % 6) as f32 + 0.7, (i / 36) as f32);
            points.push((at + (random.in_cube(i, 0) - 0.5) * 0.4) * kernel.spacing);
        }
        let mut cells = Cells::default();
        cells.sort(&points, kernel.reach);
        let mut solids = Solids::default();
        let mut model = Model::empty();
        model.bodies.push(Body {
            name: "floor".into(),
            form: Form::Static(Arc::new(barchan_base::shape::Shape::HalfSpace {
                normal: Vec3::Y,
            })),
            friction: 0.3,
            restitution: None,
        });
        solids
            .place(&model, 0.0, 0.01)
            .expect("a floor can be placed");
        let mut boundary = Boundary::default();
        boundary.place(&solids, &cells, &kernel);
        let x: Vec<Vec3A> = cells
            .order()
            .iter()
            .map(|i| points[*i as usize].into())
            .collect();
        let (mut lists, mut densities) = (Vec::new(), Vec::new());
        let axes = [0, 1, 2].map(|axis| x.iter().map(|x| x[axis]).collect());
        let search = Search {
            cells: &cells,
            x: &x,
            axes: &axes,
            boundary: &boundary,
            kernel,
        };
        search.fill(&mut lists, &mut densities);
        let grain = Grain {
            lightness: 1.0,
            ..Grain::default()
        };
        let mut cloud = Cloud {
            grains: vec![grain; x.len()],
            x,
            lists,
            boundary,
            kernel,
            solids,
        };
        let mut grains = std::mem::take(&mut cloud.grains);
        cloud.around().measure(&mut grains);
        cloud.grains = grains;
        cloud
    }

    impl Cloud {
        fn around(&self) -> Around<'_> {
            Around {
                x: &self.x,
                lists: &self.lists,
                samples: self.boundary.samples(),
                drifts: &[],
            }
        }

        fn gradient(&self, i: usize, velocities: &[Vec3A]) -> Mat3A {
            let list = (&self.lists[i / CHUNK], i % CHUNK);
            self.around().gradient(i, list, &self.grains[i], velocities)
        }
    }

    fn noise(stream: u64, i: usize) -> Vec3A {
        Vec3A::from(Random::new(9, stream).in_cube(i as u64, 0)) - 0.5
    }

    #[test]
    fn linear_fields_are_differentiated_exactly() {
        let cloud = cloud();
        let slope = Mat3A::from_cols(vec3a(0.3, -1.0, 0.2), Vec3A::ZERO, vec3a(0.1, 0.0, -0.7));
        // The floor stands still: the field vanishes at its samples, half a spacing below it.
        let depth = vec3a(0.0, 0.5 * cloud.kernel.spacing, 0.0);
        let slope = Mat3A::from_cols(Vec3A::ZERO, slope.x_axis, Vec3A::ZERO);
        let velocities: Vec<Vec3A> = cloud.x.iter().map(|x| slope * (*x + depth)).collect();
        for i in 0..cloud.x.len() {
            let error = cloud.gradient(i, &velocities) - slope;
            let size = error.x_axis.length() + error.y_axis.length() + error.z_axis.length();
            assert!(size < 1e-4, "{i}: {error}");
        }
    }

    #[test]
    fn the_force_is_the_adjoint_of_the_gradient() {
        let mut cloud = cloud();
        let count = cloud.x.len();
        let velocities: Vec<Vec3A> = (0..count).map(|i| noise(0, i)).collect();
        let stress: Vec<Mat3A> = (0..count)
            .map(|i| Sym3::of(&outer(noise(1, i), noise(2, i))).matrix())
            .collect();
        let transfer: Vec<Mat3A> = (0..count)
            .map(|i| stress[i] * cloud.grains[i].correction.matrix())
            .collect();
        let mut grains = std::mem::take(&mut cloud.grains);
        let mut forces = vec![Vec3A::ZERO; count];
        let pressures = vec![0.0; count];
        cloud.around().push(
            (&transfer, &pressures, 1.0),
            &mut grains,
            &mut forces,
            |_, _, push| push,
        );
        cloud.grains = grains; // with the grip that the walls had
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
        let transfer: Vec<Mat3A> = (0..cloud.x.len())
            .map(|i| outer(noise(3, i), noise(4, i)))
            .collect();
        let mut grains = std::mem::take(&mut cloud.grains);
        let mut forces = vec![Vec3A::ZERO; transfer.len()];
        let pressures = vec![0.0; transfer.len()];
        cloud.around().push(
            (&transfer, &pressures, 1.0),
            &mut grains,
            &mut forces,
            |_, _, push| push,
        );
        let share = (cloud.kernel.volume, 1.0);
        let none = Impulses::new(&cloud.solids);
        let total = cloud.around().reactions(&transfer, &grains, share, &none);
        let floor = total.into_sums()[0].linear;
        let sum: DVec3 = forces.iter().map(|force| force.as_dvec3()).sum();
        let given = sum * f64::from(cloud.kernel.volume) + floor;
        assert!(given.length() < 1e-4 * floor.length(), "{given}");
    }

    #[test]
    fn full_surroundings_need_no_correction() {
        let cloud = cloud();
        let inside = |x: &Vec3A| x.min_element() > 0.15 && x.max_element() < 0.45;
        let deep: Vec<usize> = (0..cloud.x.len())
            .filter(|i| inside(&cloud.x[*i]))
            .collect();
        assert!(!deep.is_empty());
        for i in deep {
            let correction = cloud.grains[i].correction;
            let off = correction.plus(&Sym3::splat(-1.0)).norm();
            assert!(off < 0.5, "{correction:?}");
        }
    }
}
