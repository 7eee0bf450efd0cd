//! Single grains of any contact put to those cases that measure an angle.

use super::cases::{pile, slope};
use super::method::method;
use super::table::form;
use super::trial::{Outcome, Setting, Trial, Trouble};

/// Single grains that are tried.
#[derive(Clone, Copy, Debug)]
pub struct Grains<'a> {
    /// Name of their shape.
    pub shape: &'a str,
    /// Coefficient of friction where they touch.
    pub friction: f64,
    /// Coefficient of rolling resistance.
    pub rolling: f64,
}

/// The table of grains of a shape in a scene, which rub as their angle asks for.
pub fn of_shape(shape: &str) -> String {
    format!("[materials.m.grain]\nshape = \"{shape}\"")
}

/// A way to measure the angle of a material.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    case: fn(&Trial) -> Result<Outcome, Trouble>,
    base: Setting,
}

/// As much is poured, or cut out for the flow, as a slope of this angle [deg] needs: others end nearer or further.
const EXPECTED: f64 = 30.0;

/// The ways.
pub const WAYS: &[Way] = &[
    Way {
        name: "slab",
        case: pile::pile,
        base: form("slab"),
    },
    Way {
        name: "cone",
        case: pile::pile,
        base: form("cone"),
    },
    Way {
        name: "drain",
        case: slope::drain,
        base: form(""),
    },
    Way {
        name: "tilt",
        case: slope::tilt,
        base: Setting {
            ratio: 3.0,
            ..form("gravity")
        },
    },
];

impl Way {
    /// The angle [deg] that `grains` have, `across` of them along the case's length, poured at `rate` times the usual.
    pub fn angle(
        &self,
        grains: Grains<'_>,
        (across, rate): (f64, f64),
        seed: u32,
    ) -> Result<f64, Trouble> {
        let Grains {
            shape,
            friction,
            rolling,
        } = grains;
        let trial = Trial {
            setting: Setting {
                angle: EXPECTED,
                across,
                rate,
                ..self.base
            },
            method: method("dem").ok_or("there is no method of single grains")?,
            grain: format!(
                "{}\nfriction = {friction}\nrolling_friction = {rolling}",
                of_shape(shape)
            ),
            seed,
            set: [].into(),
        };
        let outcome = (self.case)(&trial)?;
        let found = outcome.findings.first().map(|finding| finding.obtained);
        Ok(found.unwrap_or(f64::NAN))
    }
}
