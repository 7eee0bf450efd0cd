//! A trial: one case with one setting by one method, and what was found in it.

use super::method::Method;
use std::sync::Arc;

/// What is turned when a case is swept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Which form of the case, where it has several.
    pub form: &'static str,
    /// Friction angle of the material [deg].
    pub angle: f64,
    /// Aspect ratio, or what else the case calls its ratio.
    pub ratio: f64,
    /// Particles along the case's reference length.
    pub across: f64,
    /// Length of steps over what the method would take.
    pub step: f64,
    /// Rate of pouring over the usual one.
    pub rate: f64,
    /// Seeds whose mean is taken.
    pub seeds: u32,
    /// Shape of single grains; none for the usual one.
    pub shape: Option<&'static str>,
    /// Length of what is watched over the usual one.
    pub patience: f64,
}

/// One case with one setting by one method.
pub struct Trial {
    /// What is turned.
    pub setting: Setting,
    /// By which method.
    pub method: &'static Method,
    /// Table of its single grains, in place of what the material's angle asks for; empty for that.
    pub grain: String,
    /// Seed of everything random, the first where there are several.
    pub seed: u32,
    /// Changes to its scenes, each written `path.to.key=value`.
    pub set: Arc<[String]>,
}

/// When a figure is right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// Not farther from the reference than this, in its unit.
    Within(f64),
    /// Not farther from the reference than this part of it.
    Part(f64),
    /// No larger than the reference.
    AtMost,
    /// No smaller than the reference.
    AtLeast,
}

impl Check {
    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Within(_) => "within",
            Self::Part(_) => "part",
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
        }
    }
}

/// A figure that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub figure: &'static str,
    /// Its unit; empty for pure numbers.
    pub unit: &'static str,
    /// What it should be.
    pub reference: f64,
    /// What it is.
    pub obtained: f64,
    /// When it is right.
    pub check: Check,
}

impl Finding {
    /// What a trial finds that breaks down.
    pub fn broken() -> Self {
        Self {
            figure: "it runs",
            unit: "",
            reference: 1.0,
            obtained: f64::NAN,
            check: Check::AtLeast,
        }
    }

    /// How far it is off: in its unit, as a part of the reference, or by how much a limit is missed.
    pub fn error(&self) -> f64 {
        let off = self.obtained - self.reference;
        match self.check {
            Check::Within(_) => off,
            Check::Part(_) => off / self.reference,
            Check::AtMost => off.max(0.0),
            Check::AtLeast => (-off).max(0.0),
        }
    }

    /// How far it may be off.
    pub fn tolerance(&self) -> f64 {
        match self.check {
            Check::Within(tolerance) | Check::Part(tolerance) => tolerance,
            Check::AtMost | Check::AtLeast => 0.0,
        }
    }

    /// True where it is right; what is not a number never is.
    pub fn passes(&self) -> bool {
        self.obtained.is_finite() && self.error().abs() <= self.tolerance()
    }
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The plot it belongs to: what is on its axes.
    pub plot: &'static str,
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<[f64; 2]>,
    /// True for what it should be, false for what was found.
    pub is_reference: bool,
}

/// What a trial found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The most particles in it.
    pub particles: usize,
    /// The figures.
    pub findings: Vec<Finding>,
    /// Lines for the report.
    pub curves: Vec<Curve>,
}

/// Why a trial could not be made.
pub type Trouble = String;

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(obtained: f64, check: Check) -> Finding {
        Finding {
            figure: "f",
            unit: "",
            reference: 4.0,
            obtained,
            check,
        }
    }

    #[test]
    fn checks_say_what_is_right() {
        let passes = |obtained, check| finding(obtained, check).passes();
        assert!(passes(5.9, Check::Within(2.0)) && !passes(6.1, Check::Within(2.0)));
        assert!(passes(4.2, Check::Part(0.1)) && !passes(3.5, Check::Part(0.1)));
        assert!(passes(3.0, Check::AtMost) && !passes(4.1, Check::AtMost));
        assert!(passes(5.0, Check::AtLeast) && !passes(3.9, Check::AtLeast));
        assert!(!passes(f64::NAN, Check::AtMost) && !passes(f64::NAN, Check::Within(9.0)));
    }
}
