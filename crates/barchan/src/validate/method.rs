//! The methods that are put to the test. A new one is one more line in [`METHODS`].

/// What a case needs of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skill {
    /// Grains that rub: piles, slopes, flows.
    Sand,
    /// Sand that coheres, wet or not.
    Cohesion,
    /// Pushing bodies, and being pushed by them.
    Bodies,
    /// Water.
    Water,
    /// Momentum and energy in flight.
    Flight,
    /// Being a continuum: a particle stands for many grains, and what is only a few particles high is not seen well.
    Continuum,
    /// Being single grains, however few.
    Grains,
    /// Having cells of eight particles: what is as fine in cells has more particles.
    Grid,
    /// Having no cells.
    Meshless,
}

/// A method.
pub struct Method {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Its keys in a scene's `[solver]`.
    pub keys: &'static str,
    /// Its resolution over the distance between particles: 2 where it has cells of eight.
    pub cell: f64,
    /// What it can do, beside what its cells say.
    pub skills: &'static [Skill],
    /// True for what runs only when it is named: kept for comparison, or not yet fit for all cases.
    pub only_by_name: bool,
}

impl Method {
    /// Whether it can do what a case needs.
    pub fn can(&self, skill: Skill) -> bool {
        match skill {
            Skill::Grid => self.cell > 1.0,
            Skill::Meshless => self.cell <= 1.0,
            _ => self.skills.contains(&skill),
        }
    }
}

use Skill::{Bodies, Cohesion, Continuum, Flight, Grains, Sand, Water};

/// All methods.
pub const METHODS: &[Method] = &[
    Method {
        name: "flip",
        keys: "method = \"flip\"",
        cell: 2.0,
        skills: &[Sand, Cohesion, Bodies, Water, Flight, Continuum],
        only_by_name: false,
    },
    Method {
        name: "sph",
        keys: "method = \"sph\"",
        cell: 1.0,
        skills: &[Sand, Cohesion, Bodies, Flight, Continuum],
        only_by_name: false,
    },
    Method {
        name: "dem",
        keys: "method = \"dem\"\noverlap = 0.05",
        cell: 1.0,
        skills: &[Sand, Cohesion, Bodies, Flight, Grains],
        only_by_name: true,
    },
    Method {
        name: "hybrid",
        keys: "method = \"hybrid\"",
        cell: 2.0,
        skills: &[Sand, Cohesion, Bodies, Flight, Continuum],
        only_by_name: true,
    },
    Method {
        name: "ballistic",
        keys: "method = \"ballistic\"",
        cell: 1.0,
        skills: &[Flight],
        only_by_name: false,
    },
    Method {
        name: "zhu-bridson",
        keys: "method = \"flip\"\nfriction = \"zhu-bridson\"",
        cell: 2.0,
        skills: &[Sand, Cohesion, Flight, Continuum],
        only_by_name: true,
    },
    Method {
        name: "ihmsen",
        keys: "method = \"sph\"\nscheme = \"ihmsen\"",
        cell: 1.0,
        skills: &[Sand, Cohesion, Flight, Continuum],
        only_by_name: true,
    },
];

/// The method called `name`.
pub fn method(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}
