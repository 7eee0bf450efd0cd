//! The law of a contact: what two balls that press into each other do to one another.

use super::number::{Number, Vector};
use wide::f64x4;

/// A contact of ball i with ball j or a solid, seen from i.
#[derive(Clone, Copy, Debug)]
pub struct Touch<N = f64> {
    /// Unit vector from j to i.
    pub normal: Vector<N>,
    /// How deep they press into each other [m].
    pub overlap: N,
    /// Velocity of i against j where they touch [m/s].
    pub velocity: Vector<N>,
    /// r_i r_j / (r_i + r_j) [m].
    pub radius: N,
    /// m_i m_j / (m_i + m_j) [kg].
    pub mass: N,
    /// How wet the two are, from 0 to 1.
    pub wetness: N,
    /// Length of the step [s].
    pub dt: N,
}

/// The constants of two materials that touch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pair<N = f64> {
    /// Effective Young's modulus E* [Pa].
    pub young: N,
    /// √(tangential over normal stiffness), √(4 G*/E*).
    pub tangential: N,
    /// Damping −ln e / √(π² + ln² e) of the restitution e.
    pub damping: N,
    /// Coefficient of Coulomb friction.
    pub friction: N,
    /// Coefficient of rolling resistance.
    pub rolling: N,
    /// Coefficient of the resistance of composite grains to any turning against each other.
    pub turning: N,
    /// Pull that it takes to part them, over the effective mass [m/s²].
    pub pull: N,
    /// Pull over the square of the effective radius [Pa]: dry, and what being wet adds.
    pub suction: (N, N),
}

impl<N: Number> Pair<N> {
    /// Pull that it takes to part the two [N].
    #[inline(always)]
    pub fn pull(&self, touch: &Touch<N>) -> N {
        let suction = self.suction.0 + self.suction.1 * touch.wetness;
        self.pull * touch.mass + suction * touch.radius * touch.radius
    }

    /// Torque [N m] on i against its rolling over j with relative spin `rolling` [rad/s]: a spring that yields at the
    /// coefficient's limit, and a damper while it holds (Ai, Chen, Rotter & Ooi 2011, model C). `spring` is the
    /// angle [rad] remembered, `load` [N] what presses the two together.
    #[inline(always)]
    pub fn resist_rolling(
        &self,
        touch: &Touch<N>,
        rolling: Vector<N>,
        load: N,
        spring: &mut Vector<N>,
    ) -> Vector<N> {
        let arm = self.rolling * touch.radius;
        let contact_radius = (touch.radius * touch.overlap).root();
        let reach = self.rolling.at_most(N::of(STIFFEST_ROLLING)) * touch.radius;
        let stiff = N::of(2.0 * ROLLING_STIFFNESS) * self.young * contact_radius * reach * reach;
        let rolling = rolling - touch.normal * rolling.dot(touch.normal);
        let half = rolling * (touch.dt * N::of(0.5));
        let turned = *spring + half;
        let turned = turned - touch.normal * turned.dot(touch.normal);
        let most = arm * load.at_least(N::of(0.0));
        let torque = -(turned * stiff);
        let holds = (torque.dot(torque), most * most);
        let yielding = torque * (most / holds.0.root());
        let least = N::of(f64::MIN_POSITIVE);
        *spring = turned.within(holds, -(yielding * (N::of(1.0) / stiff.at_least(least)))) + half;
        // A ball rolling on its edge has 7/5 m r² to be stopped.
        let inertia = N::of(1.4) * touch.mass * touch.radius * touch.radius;
        let damp = N::of(2.0 * ROLLING_DAMPING) * (inertia * stiff).root();
        (torque - rolling * damp).within(holds, yielding)
    }

    /// Torque [N m] on i against its turning over or upon j with relative spin `turning` [rad/s]: where two grains touch is a spot and no
    /// point. Without it a composite grain that rocks on two others, or spins on one, would never stop: there nothing slides. `load` [N]
    /// is what presses the two together.
    #[inline(always)]
    pub fn resist_turning(&self, touch: &Touch<N>, turning: Vector<N>, load: N) -> Vector<N> {
        let most = self.turning * touch.radius * load.at_least(N::of(0.0));
        let viscous = N::of(MOST_TURNING) * touch.mass * touch.radius * touch.radius / touch.dt;
        let speed = turning.dot(turning).root();
        let rubbing = (viscous * speed).within(most, viscous, most / speed);
        -(turning * rubbing)
    }

    /// The same constants in all lanes.
    pub fn all(one: &Pair) -> Self {
        Self {
            young: N::of(one.young),
            tangential: N::of(one.tangential),
            damping: N::of(one.damping),
            friction: N::of(one.friction),
            rolling: N::of(one.rolling),
            turning: N::of(one.turning),
            pull: N::of(one.pull),
            suction: (N::of(one.suction.0), N::of(one.suction.1)),
        }
    }
}

impl Pair<f64x4> {
    /// Constants of four contacts.
    pub fn each(four: [&Pair; 4]) -> Self {
        let lanes = |part: fn(&Pair) -> f64| f64x4::new(four.map(part));
        Self {
            young: lanes(|pair| pair.young),
            tangential: lanes(|pair| pair.tangential),
            damping: lanes(|pair| pair.damping),
            friction: lanes(|pair| pair.friction),
            rolling: lanes(|pair| pair.rolling),
            turning: lanes(|pair| pair.turning),
            pull: lanes(|pair| pair.pull),
            suction: (lanes(|pair| pair.suction.0), lanes(|pair| pair.suction.1)),
        }
    }
}

impl Pair {
    /// Two bodies of Young's moduli [Pa] and Poisson's ratios; an infinite modulus is a rigid body. Contacts neither
    /// damp nor rub.
    pub fn elastic(one: (f64, f64), other: (f64, f64)) -> Self {
        let yielding = |(young, poisson): (f64, f64)| (1.0 - poisson * poisson) / young;
        let shearing =
            |(young, poisson): (f64, f64)| 2.0 * (2.0 - poisson) * (1.0 + poisson) / young;
        let young = 1.0 / (yielding(one) + yielding(other));
        let shear = 1.0 / (shearing(one) + shearing(other));
        Self {
            young,
            tangential: (4.0 * shear / young).sqrt(),
            ..Self::default()
        }
    }
}

/// Stiffness of the rolling spring over that of the contact and the arm squared, and its damping over the critical one
/// (Wensrich & Katterfeld 2012).
const ROLLING_STIFFNESS: f64 = 2.25;
const ROLLING_DAMPING: f64 = 0.3;
/// A larger coefficient holds more but is no stiffer: a grain with many such contacts would be turned too far in a step.
const STIFFEST_ROLLING: f64 = 0.5;

/// The most that one contact takes of a grain's turning in a step, over m r²: of a dozen contacts together it stays below all.
const MOST_TURNING: f64 = 0.02;

/// Damping that gives restitution `e` with a force that is proportional to √stiffness (Antypov & Elliott 2011); e = 0
/// is taken as one hundredth, which nobody can tell from it.
pub fn damping(restitution: f64) -> f64 {
    let log = restitution.clamp(0.01, 1.0).ln();
    -log / (std::f64::consts::PI.powi(2) + log * log).sqrt()
}

/// A law of contact: the force on i, given what is remembered of the contact.
pub trait Law: Copy + Send + Sync {
    /// The force on i [N]; `spring` is the tangential displacement [m] in the middle of the step, and is moved on to the
    /// middle of the next.
    fn force<N: Number>(
        &self,
        pair: &Pair<N>,
        touch: &Touch<N>,
        spring: &mut Vector<N>,
    ) -> Vector<N>;
}

/// Hertz's normal force with damping that gives a constant restitution (Tsuji, Tanaka & Ishida 1992), Mindlin's
/// tangential one with the displacement remembered (no-slip solution), limited by Coulomb's.
#[derive(Clone, Copy, Debug)]
pub struct HertzMindlin;

/// 2 √(5/6): damping over √(stiffness × mass).
const TSUJI: f64 = 1.825_741_858_350_553_8;

impl Law for HertzMindlin {
    #[inline(always)]
    fn force<N: Number>(
        &self,
        pair: &Pair<N>,
        touch: &Touch<N>,
        spring: &mut Vector<N>,
    ) -> Vector<N> {
        let contact_radius = (touch.radius * touch.overlap).root();
        let stiff = N::of(2.0) * pair.young * contact_radius;
        let stiff_shear = stiff * pair.tangential * pair.tangential;
        let damp = N::of(TSUJI) * pair.damping * (stiff * touch.mass).root();
        let approach = touch.velocity.dot(touch.normal);
        let sliding = touch.velocity - touch.normal * approach;
        let elastic = N::of(2.0 / 3.0) * stiff * touch.overlap;
        let pull = pair.pull(touch);
        let normal = elastic - damp * approach - pull;

        // The velocity is that of the end of the step: half of its way lies behind, half ahead.
        let half = sliding * (touch.dt * N::of(0.5));
        let stretched = *spring + half;
        let stretched = stretched - touch.normal * stretched.dot(touch.normal);
        let damp_shear = damp * pair.tangential;
        let shear = -(stretched * stiff_shear + sliding * damp_shear);
        let most = pair.friction * (normal + pull).at_least(N::of(0.0));
        let holds = (shear.dot(shear), most * most);
        let slipping = shear * (most / holds.0.root());
        let slipped = -((slipping + sliding * damp_shear) * (N::of(1.0) / stiff_shear));
        *spring = stretched.within(holds, slipped) + half;
        touch.normal * normal + shear.within(holds, slipping)
    }
}

/// Alduán, Tena & Otaduy 2009, equations 1 and 2. There is no memory.
#[derive(Clone, Copy, Debug)]
pub struct Alduan {
    /// k_n [N/m^1.5].
    pub stiffness: f64,
    /// γ_n [N s/m^1.5].
    pub damping: f64,
    /// k_s [N s/m].
    pub viscous_friction: f64,
}

/// What a tangential impulse at the surface of a ball must move, over its mass: 1 / (1 + 5/2).
const TANGENTIAL_MASS: f64 = 2.0 / 7.0;

impl Law for Alduan {
    #[inline(always)]
    fn force<N: Number>(&self, pair: &Pair<N>, touch: &Touch<N>, _: &mut Vector<N>) -> Vector<N> {
        let root = touch.overlap.root();
        let approach = touch.velocity.dot(touch.normal);
        let sliding = touch.velocity - touch.normal * approach;
        // Their penetration rate is −approach; what damps must not pull.
        let normal =
            root * (N::of(self.stiffness) * touch.overlap - N::of(self.damping) * approach);
        let normal = normal.at_least(N::of(0.0));
        // With their k_s a light grain would be stopped many times over in a step: stopping it once is enough.
        let viscous =
            N::of(self.viscous_friction).at_most(N::of(TANGENTIAL_MASS) * touch.mass / touch.dt);
        let speed = sliding.dot(sliding).root();
        let most = pair.friction * normal;
        let rubbing = (viscous * speed).within(most, viscous, most / speed);
        touch.normal * normal - sliding * rubbing
    }
}

/// How two balls that collide at `speed` [m/s] press into each other under a force k δ^1.5, k in N/m^1.5: how deep [m],
/// and for how long [s] (Hertz 1881; Landau & Lifshitz, Theory of Elasticity, §9).
pub fn impact(k: f64, mass: f64, speed: f64) -> (f64, f64) {
    let deepest = (1.25 * mass * speed * speed / k).powf(0.4);
    (deepest, 2.943_275 * deepest / speed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::DVec3;

    const GLASS: Pair = Pair {
        young: 1e7,
        tangential: 1.095,
        damping: 0.0,
        friction: 0.3,
        rolling: 0.0,
        turning: 0.0,
        pull: 0.0,
        suction: (0.0, 0.0),
    };

    fn touch(overlap: f64, velocity: DVec3) -> Touch {
        Touch {
            normal: DVec3::Y.into(),
            overlap,
            velocity: velocity.into(),
            radius: 0.0025,
            mass: 1e-3,
            wetness: 0.0,
            dt: 1e-6,
        }
    }

    #[test]
    fn force_and_history_seen_from_the_other_side_are_opposite_to_the_bit() {
        let velocity = DVec3::new(0.3, -0.2, 0.11);
        let from_i = touch(2e-5, velocity);
        let from_j = Touch {
            normal: (-DVec3::Y).into(),
            velocity: (-velocity).into(),
            ..from_i
        };
        let start: Vector<f64> = DVec3::new(1e-6, 3e-7, -2e-6).into();
        let (mut a, mut b) = (start, -start);
        for pair in [
            GLASS,
            Pair {
                friction: 9.0,
                damping: 0.2,
                ..GLASS
            },
        ] {
            let one = HertzMindlin.force(&pair, &from_i, &mut a);
            let other = HertzMindlin.force(&pair, &from_j, &mut b);
            assert_eq!(one, -other);
            assert_eq!(a, -b);
        }
    }

    #[test]
    fn friction_never_passes_coulombs_limit_and_holds_below_it() {
        let mut spring = Vector::default();
        for _ in 0..1000 {
            let force: DVec3 = HertzMindlin
                .force(&GLASS, &touch(2e-5, DVec3::X), &mut spring)
                .into();
            let across = DVec3::new(force.x, 0.0, force.z).length();
            assert!(across <= 0.3 * force.y * (1.0 + 1e-12));
        }
        // At rest the stretched spring still holds: true static friction.
        let held = HertzMindlin.force(&GLASS, &touch(2e-5, DVec3::ZERO), &mut spring);
        assert!(held.0[0] < -0.29 * held.0[1]);
    }

    #[test]
    fn the_papers_law_is_equations_1_and_2() {
        let law = Alduan {
            stiffness: 1e5,
            damping: 300.0,
            viscous_friction: 1e-3,
        };
        let pair = Pair {
            friction: 0.4,
            ..Pair::default()
        };
        let (overlap, rate, slide): (f64, f64, f64) = (1e-4, 0.2, 0.5);
        let velocity = DVec3::new(slide, -rate, 0.0);
        let force = law
            .force(&pair, &touch(overlap, velocity), &mut Vector::default())
            .0;
        let normal = 1e5 * overlap.powf(1.5) + 300.0 * rate * overlap.sqrt();
        assert!((force[1] / normal - 1.0).abs() < 1e-12);
        assert!((force[0] / -(1e-3 * slide) - 1.0).abs() < 1e-12);
        let rough = Alduan {
            viscous_friction: 1e4,
            ..law
        };
        let quick = touch(overlap, DVec3::new(50.0, -rate, 0.0));
        let force = rough.force(&pair, &quick, &mut Vector::default()).0;
        assert!((force[0] / (-0.4 * normal) - 1.0).abs() < 1e-12);
    }
}
