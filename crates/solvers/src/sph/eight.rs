//! Stresses answer to velocity gradients, eight particles side by side.

use super::operator::Grain;
use super::shown::Shown;
use super::tensor::Sym3;
use crate::material::turning::{Turning, parts_turned};
use crate::material::yield_surface::{Deviators, scale_to_yield};
use glam::Mat3A;
use std::f32::consts::SQRT_2;
use wide::f32x8;

/// How much of its own answer each stress takes at once; drag is not kept.
const PRESSURE: f32 = 0.15;
const FRICTION: f32 = 0.15;
const DRAG: f32 = 0.11;
/// The largest response of a lattice; Jacobi sweeps are stable while pressure and friction, which counts twice, answer by less than 2.
const LARGEST: f32 = 2.95;
const _: () = assert!((PRESSURE + 2.0 * (FRICTION + DRAG)) * LARGEST < 2.0);
/// The most of its strength that material is dragged with: what shears slowly, and what is added to that the faster it shears.
/// Friction of real sand grows with the rate of shear, too. What shears slowly must not be dragged by more, or slopes that
/// stand just at their angle creep on.
const MOST_DRAG: f32 = 0.05;
const MORE_DRAG: f32 = 0.04;
/// The rate of shear at which half of that is added, over the one from which on all shear is dragged.
const FAST: f32 = 5.0;
/// Friction of what slides is turned in full up to so much spin over shear. With 2, fine layers 3° below 50° creep three
/// times as far. (Only what slides is turned, so that likely little is left that turns as a whole.)
const MOST_SPIN: f32 = 6.0;

const LANES: usize = 8;

/// Up to eight particles of a chunk and their velocity gradients.
#[derive(Default)]
pub struct Eight {
    /// Places in the chunk; those from `count` on are of no meaning.
    members: [usize; LANES],
    /// Their entries, column by column.
    gradients: [[[f32; LANES]; 3]; 3],
    count: usize,
}

/// What the answer depends on beside the particles.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Length of the step [s].
    pub dt: f32,
    /// Where friction's direction is to be found: shear slower than this [1/s] does not turn it.
    pub turn: Option<f32>,
    /// Shear faster than this [1/s] is dragged even where it is usual.
    pub flow: f32,
    /// The step over the longest: drag is the same in shorter ones.
    pub short: f32,
    /// What the stresses answer by, over what they do in the usual step.
    pub stiffness: f32,
}

impl Eight {
    /// Adds a particle; true where there is room for no other.
    pub fn push(&mut self, member: usize, gradient: Mat3A) -> bool {
        self.members[self.count] = member;
        for (own, column) in self.gradients.iter_mut().zip(gradient.to_cols_array_2d()) {
            for (own, entry) in own.iter_mut().zip(column) {
                own[self.count] = entry;
            }
        }
        self.count += 1;
        self.count == LANES
    }

    /// The particles' stresses answer; `tell` is given each of them, the drag on it [Pa], and its gradient. Empty afterwards.
    pub fn answer(
        &mut self,
        (shown, grains): (&mut [Shown], &mut [Grain]),
        terms: Terms,
        mut tell: impl FnMut(&mut Shown, &Grain, Sym3, &Mat3A),
    ) {
        if self.count == 0 {
            return;
        }
        let last = self.count - 1;
        let members: [usize; LANES] = std::array::from_fn(|lane| self.members[lane.min(last)]);
        let own = members.map(|member| &grains[member]);
        let slopes = self.gradients.map(|column| column.map(f32x8::new));
        let turn = match terms.turn {
            Some(slow) => find_turn(&slopes, of(own, |grain| grain.mu), slow),
            None => std::array::from_fn(|axis| of(own, |grain| grain.turn[axis])),
        };
        let pressure = f32x8::new(members.map(|member| shown[member].pressure()));
        let (pressure, stress, drag) = answer(&slopes, own, (pressure, turn), terms);
        let (pressure, turn) = (pressure.to_array(), turn.map(f32x8::to_array));
        let (stress, drag) = (lanes(&stress), lanes(&drag));
        for lane in 0..self.count {
            let grain = &mut grains[members[lane]];
            grain.stress = stress[lane];
            grain.turn = turn.each_ref().map(|axis| axis[lane]);
            let shown = &mut shown[members[lane]];
            shown.set_pressure(pressure[lane]);
            tell(shown, grain, drag[lane], &self.gradient(lane));
        }
        self.count = 0;
    }

    fn gradient(&self, lane: usize) -> Mat3A {
        let columns = self.gradients.each_ref();
        Mat3A::from_cols_array_2d(
            &columns.map(|column| column.each_ref().map(|entries| entries[lane])),
        )
    }
}

#[inline]
fn of(grains: [&Grain; LANES], number: impl Fn(&Grain) -> f32) -> f32x8 {
    f32x8::new(grains.map(number))
}

/// Eight tensors, one by one.
#[inline]
fn lanes(s: &Deviators) -> [Sym3; LANES] {
    let entries = [s.xx, s.yy, s.zz(), s.yz, s.xz, s.xy].map(f32x8::to_array);
    std::array::from_fn(|lane| {
        let [xx, yy, zz, yz, xz, xy] = entries.each_ref().map(|entry| entry[lane]);
        Sym3 {
            diagonal: [xx, yy, zz],
            off: [yz, xz, xy],
        }
    })
}

/// The symmetric part without trace, and the trace.
#[inline]
fn deviator([x, y, z]: &[[f32x8; 3]; 3]) -> (Deviators, f32x8) {
    let (half, third) = (f32x8::HALF, f32x8::splat(1.0 / 3.0));
    let trace = x[0] + y[1] + z[2];
    let mean = trace * third;
    let deviator = Deviators {
        xx: x[0] - mean,
        yy: y[1] - mean,
        yz: (y[2] + z[1]) * half,
        xz: (x[2] + z[0]) * half,
        xy: (x[1] + y[0]) * half,
    };
    (deviator, trace)
}

/// Pressure answers to what still comes together, friction to what still shears, within the yield limit. And the drag.
#[inline]
fn answer(
    slopes: &[[f32x8; 3]; 3],
    own: [&Grain; LANES],
    (pressure, turn): (f32x8, [f32x8; 3]),
    Terms {
        dt,
        flow,
        short,
        stiffness,
        ..
    }: Terms,
) -> (f32x8, Deviators, Deviators) {
    let (rate, trace) = deviator(slopes);
    let response = f32x8::ONE / (of(own, |grain| grain.compliance) * f32x8::splat(dt));
    let mu = of(own, |grain| grain.mu);
    let cosine = f32x8::ONE / (f32x8::ONE + mu * mu).sqrt();
    let sine = mu * cosine;
    let (gap, cohesion) = (of(own, |grain| grain.gap), of(own, |grain| grain.cohesion));
    let closing = gap - f32x8::splat(dt) * trace;
    let more = closing * response * f32x8::splat(PRESSURE * stiffness / dt);
    let pressure = (pressure + more).fast_max(-tension(gap, cohesion, mu));
    let strength = sine * of(own, |grain| grain.load) + cosine * cohesion;
    let strength = strength.fast_max(f32x8::ZERO);
    let before = Deviators {
        xx: of(own, |grain| grain.stress.diagonal[0]),
        yy: of(own, |grain| grain.stress.diagonal[1]),
        yz: of(own, |grain| grain.stress.off[0]),
        xz: of(own, |grain| grain.stress.off[1]),
        xy: of(own, |grain| grain.stress.off[2]),
    };
    let gain = response * f32x8::splat(3.0 * FRICTION * stiffness);
    let stress = friction(&before, (&rate, gain, turn), (strength, sine));
    let viscosity = response * f32x8::splat(3.0 * DRAG * short);
    let usual = of(own, |grain| grain.usual).fast_min(f32x8::splat(flow));
    let drag = drag(&rate, &stress, (usual, FAST * flow), (viscosity, strength));
    (pressure, stress, drag)
}

/// Friction after it has answered to what shears by `gain` [Pa s], within the yield surface. What holds answers along the strain rate, like
/// an elastic solid; only what slides is turned, so that it slides at its angle. (With what holds turned too, fine
/// layers creep twice as far: docs/sph-trials.md.)
#[inline]
fn friction(
    before: &Deviators,
    (rate, gain, turn): (&Deviators, f32x8, [f32x8; 3]),
    (strength, sine): (f32x8, f32x8),
) -> Deviators {
    let held = before.plus(&rate.times(gain));
    let slides = scale_to_yield(&held, strength, sine).simd_lt(f32x8::ONE);
    if slides.none() {
        return held;
    }
    let slid = before.plus(&turned(rate, turn).times(gain));
    let slid = slid.times(scale_to_yield(&slid, strength, sine));
    Deviators::select(slides, &slid, &held)
}

/// What shears along its friction faster than is `usual` [1/s] is dragged, as by a fluid of this `viscosity` [Pa s] and never by more than
/// a small part of its `strength` [Pa], larger where it is `fast` [1/s]. Friction does not depend on how fast material shears, so it damps nothing: waves would run
/// through fine layers and let them creep.
#[inline]
fn drag(
    rate: &Deviators,
    friction: &Deviators,
    (usual, fast): (f32x8, f32),
    (viscosity, strength): (f32x8, f32x8),
) -> Deviators {
    let norm = friction.square().sqrt();
    let along = friction.times(f32x8::ONE / norm.fast_max(f32x8::splat(f32::MIN_POSITIVE)));
    let shear = rate.dot(&along) * f32x8::splat(SQRT_2);
    let beyond = (shear - usual).fast_max(f32x8::ZERO);
    let square = beyond * beyond;
    let half = f32x8::splat((fast * fast).max(f32::MIN_POSITIVE));
    let most = f32x8::splat(MOST_DRAG) + f32x8::splat(MORE_DRAG) * square / (square + half);
    // As shear stress, which counts twice in a norm.
    let stress = (viscosity * beyond * f32x8::HALF).fast_min(strength * most);
    along.times(stress * f32x8::splat(SQRT_2))
}

/// The tension [Pa] that cohesive material bears where it is whole: up to the apex of Mohr and Coulomb's cone, and no more than its
/// cohesion.
#[inline]
fn tension(gap: f32x8, cohesion: f32x8, mu: f32x8) -> f32x8 {
    let apex = f32x8::ONE / mu.fast_max(f32x8::ONE);
    gap.simd_ge(f32x8::ZERO) & (cohesion * apex)
}

/// Friction is turned by half the friction angle against the spin, or the part of it that this motion takes: the plane of
/// shearing is then one that Mohr and Coulomb's law lets slide. Shear slower than `slow` [1/s] turns nothing. The axis is
/// given times the tangent of half the angle.
#[inline]
fn find_turn(slopes: &[[f32x8; 3]; 3], mu: f32x8, slow: f32) -> [f32x8; 3] {
    let [x, y, z] = slopes;
    let curl = [y[2] - z[1], z[0] - x[2], x[1] - y[0]];
    let spin = curl[0] * curl[0] + curl[1] * curl[1] + curl[2] * curl[2];
    let spin = spin.sqrt();
    let rate = (deviator(slopes).0.square() * f32x8::splat(2.0)).sqrt();
    let turning = Turning {
        slow,
        most_spin: MOST_SPIN,
    };
    let part = parts_turned(spin, rate, turning);
    // Half of half the friction angle: so small that three terms of the tangent do.
    let half = mu.atan() * part * f32x8::splat(-0.25);
    let square = half * half;
    let tangent = half
        * (f32x8::ONE + square * (f32x8::splat(1.0 / 3.0) + square * f32x8::splat(2.0 / 15.0)));
    let scale = tangent / spin.fast_max(f32x8::splat(f32::MIN_POSITIVE));
    curl.map(|curl| curl * scale)
}

/// Tensors turned about axes that are given times the tangent of half the angle.
#[inline]
fn turned(s: &Deviators, [x, y, z]: [f32x8; 3]) -> Deviators {
    let two = f32x8::splat(2.0);
    let square = x * x + y * y + z * z;
    let scale = f32x8::ONE / (f32x8::ONE + square);
    let keep = (f32x8::ONE - square) * scale;
    let (dx, dy, dz) = (x * two * scale, y * two * scale, z * two * scale);
    // Rows of the rotation.
    let r = [
        [keep + dx * x, dx * y - dz, dx * z + dy],
        [dy * x + dz, keep + dy * y, dy * z - dx],
        [dz * x - dy, dz * y + dx, keep + dz * z],
    ];
    s.turned(&r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Vec3A, vec3a};

    /// One particle's stresses after a while of the same motion.
    fn answered(grain: Grain, gradient: Mat3A, turn: bool) -> (Grain, f32) {
        let mut grains = [grain];
        let mut shown = [Shown::new(grain.load, 0.0, 1.0)];
        for _ in 0..100 {
            let mut eight = Eight::default();
            eight.push(0, gradient);
            let terms = Terms {
                dt: 1e-3,
                turn: turn.then_some(1e-6),
                flow: 0.0,
                short: 1.0,
                stiffness: 1.0,
            };
            eight.answer((&mut shown, &mut grains), terms, |_, _, _, _| {});
        }
        (grains[0], shown[0].pressure())
    }

    #[test]
    fn a_shear_band_slides_at_the_friction_angle() {
        for (degrees, direction) in [(20f32, 1.0f32), (34.0, 1.0), (34.0, -1.0), (45.0, 1.0)] {
            // Layers of y that move along x.
            let shear = Vec3A::X * (3.0 * direction);
            let gradient = Mat3A::from_cols(Vec3A::ZERO, shear, Vec3A::ZERO);
            let grain = Grain {
                mu: degrees.to_radians().tan(),
                compliance: 1.0,
                load: 500.0,
                ..Grain::default()
            };
            let (grain, _) = answered(grain, gradient, true);
            let (along, across) = (grain.stress.off[2], 500.0 - grain.stress.diagonal[1]);
            let found = (along * direction / across).atan().to_degrees();
            assert!((found - degrees).abs() < 0.1, "{found} for {degrees}");
        }
    }

    #[test]
    fn what_holds_answers_along_the_strain_rate() {
        // A hundredth of the motion that slides.
        let gradient = Mat3A::from_cols(Vec3A::ZERO, Vec3A::X * 1e-4, Vec3A::ZERO);
        let grain = Grain {
            mu: 1.0,
            compliance: 1.0,
            load: 500.0,
            ..Grain::default()
        };
        let (grain, _) = answered(grain, gradient, true);
        assert!(grain.stress.off[2] > 1.0, "{:?}", grain.stress);
        for across in grain.stress.diagonal {
            assert!(across.abs() < 1e-6, "{:?}", grain.stress);
        }
    }

    #[test]
    fn a_slope_at_rest_stands_no_steeper_than_its_angle() {
        // The steepest direction of any stress that holds: asin((σ₁ − σ₃) / (σ₁ + σ₃)).
        let grain = Grain {
            mu: 30f32.to_radians().tan(),
            compliance: 1.0,
            load: 800.0,
            ..Grain::default()
        };
        for axes in [[1.0, 0.0, -1.0], [1.0, -0.5, -0.5], [0.5, 0.5, -1.0]] {
            let (grain, _) = answered(grain, Mat3A::from_diagonal(axes.into()), false);
            let mut stress = grain.stress.diagonal.map(|s| 800.0 - s);
            stress.sort_by(f32::total_cmp);
            let sine = (stress[2] - stress[0]) / (stress[2] + stress[0]);
            assert!((sine - 0.5).abs() < 1e-3, "{axes:?}: {sine}");
        }
    }

    #[test]
    fn cohesive_material_bears_tension_while_it_is_whole() {
        let mut whole = Grain {
            mu: 2.0,
            cohesion: 300.0,
            compliance: 1.0,
            ..Grain::default()
        };
        let apart = Mat3A::from_diagonal(Vec3A::splat(0.1).into());
        assert!((answered(whole, apart, false).1 + 150.0).abs() < 1e-3);
        whole.mu = 0.5;
        assert!((answered(whole, apart, false).1 + 300.0).abs() < 1e-3);
        let torn = Grain { gap: -0.1, ..whole };
        let dry = Grain {
            cohesion: 0.0,
            ..whole
        };
        for grain in [torn, dry] {
            assert!(answered(grain, apart, false).1.abs() < 1e-12);
        }
    }

    #[test]
    fn what_shears_faster_than_usual_is_dragged_by_a_small_part_of_its_strength() {
        let along = |xy| Deviators {
            xx: f32x8::ZERO,
            yy: f32x8::ZERO,
            yz: f32x8::ZERO,
            xz: f32x8::ZERO,
            xy,
        };
        let shear = f32x8::new([-3.0, 0.0, 0.9, 1.1, 1.5, 2.0, 50.0, 1e6]);
        let (rate, usual) = (along(shear * f32x8::HALF), f32x8::ONE);
        let (usual, terms) = ((usual, 49.0), (f32x8::splat(2.0), f32x8::splat(100.0)));
        let found = drag(&rate, &along(f32x8::splat(30.0)), usual, terms);
        // As by a fluid beyond a shear of 1 /s, and at most that part of 100 Pa: with half of what can be added, and all.
        let half = (MOST_DRAG + 0.5 * MORE_DRAG) * 100.0;
        let most = (MOST_DRAG + MORE_DRAG) * 100.0;
        let expected = [0.0, 0.0, 0.0, 0.1, 0.5, 1.0, half, most];
        for (found, expected) in found.xy.to_array().into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
        }
        // Nothing that has no friction is.
        let free = drag(&rate, &along(f32x8::ZERO), usual, terms);
        assert!(
            free.square()
                .to_array()
                .iter()
                .all(|square| *square < 1e-12)
        );
    }

    #[test]
    fn drag_and_what_a_strain_adds_do_not_depend_on_the_step() {
        // It is sheared, and pressed together.
        let gradient = Mat3A::from_cols(Vec3A::ZERO, vec3a(0.02, -0.01, 0.0), Vec3A::ZERO);
        let found_in = |short: f32| {
            let (mut grains, mut shown) = ([Grain::default()], [Shown::new(500.0, 0.0, 1.0)]);
            (grains[0].mu, grains[0].compliance, grains[0].load) = (0.6, 1.0, 500.0);
            let mut eight = Eight::default();
            eight.push(0, gradient);
            let terms = Terms {
                dt: 1e-3 * short,
                turn: None,
                flow: 0.0,
                short,
                stiffness: short * short,
            };
            let mut found = 0.0;
            eight.answer((&mut shown, &mut grains), terms, |_, _, drag, _| {
                found = drag.off[2];
            });
            let added = [shown[0].pressure() - 500.0, grains[0].stress.off[2]];
            [found, added[0] / short, added[1] / short]
        };
        let (whole, half) = (found_in(1.0), found_in(0.5));
        for (whole, half) in whole.into_iter().zip(half) {
            assert!(whole > 1.0, "{whole}");
            assert!((whole - half).abs() < 1e-3 * whole, "{whole} {half}");
        }
    }

    #[test]
    fn what_does_not_move_without_gravity_turns_nothing() {
        let still = [[f32x8::ZERO; 3]; 3];
        for axis in find_turn(&still, f32x8::splat(0.6), 0.0) {
            assert!(axis.to_array().iter().all(|turn| turn.abs() < 1e-12));
        }
    }

    #[test]
    fn turning_is_a_rotation() {
        let one = f32x8::splat;
        let s = Deviators {
            xx: one(1.0),
            yy: one(-2.0),
            yz: one(0.3),
            xz: one(-0.2),
            xy: one(0.7),
        };
        let (axis, angle) = (vec3a(0.6, 0.0, 0.8), 0.4f32);
        let by = axis * (0.5 * angle).tan();
        let found = turned(&s, [one(by.x), one(by.y), one(by.z)]);
        let matrix = Mat3A::from_cols(
            vec3a(1.0, 0.7, -0.2),
            vec3a(0.7, -2.0, 0.3),
            vec3a(-0.2, 0.3, 1.0),
        );
        let turn = Mat3A::from_axis_angle(axis.into(), angle);
        let expected = Sym3::of(&(turn * matrix * turn.transpose()));
        let found = [found.xx, found.yy, found.zz(), found.yz, found.xz, found.xy];
        let expected = [expected.diagonal, expected.off].concat();
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found.to_array()[3] - expected).abs() < 1e-5);
        }
    }
}
