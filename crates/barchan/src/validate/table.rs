//! The table of cases: what is swept, at both sizes, and who measures it. Tolerances are those of the figures themselves.

use super::cases::{bank, bodies, column, conserve, flow, pile, slope, tray, water};
use super::method::{Method, Skill};
use super::trial::{Outcome, Setting, Trial, Trouble};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A few thousand particles, minutes for everything.
    Fast,
    /// Sweeps up to half a million particles, hours.
    Full,
}

/// A case.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What a method must be able to do.
    pub needs: Skill,
    /// What it calls its ratio; empty where it has none.
    pub ratio: &'static str,
    /// What is run at the fast size.
    pub fast: &'static [Sweep],
    /// What is run at the full size.
    pub full: &'static [Sweep],
    /// Runs it and measures.
    pub measure: fn(&Trial) -> Result<Outcome, Trouble>,
}

/// Settings that differ in a few numbers: all combinations.
#[derive(Clone, Copy)]
pub struct Sweep {
    /// What all have in common.
    pub base: Setting,
    /// What a method must be able to do beyond what the case needs.
    pub needs: &'static [Skill],
    /// Friction angles [deg].
    pub angles: &'static [f64],
    /// Aspect ratios, or what else the case calls its ratio.
    pub ratios: &'static [f64],
    /// Particles along the reference length.
    pub across: &'static [f64],
    /// Lengths of steps.
    pub steps: &'static [f64],
}

/// Numbers asked for in place of those of the table; empty lists leave the table's.
#[derive(Default)]
pub struct Wanted {
    /// Friction angles [deg].
    pub angles: Vec<f64>,
    /// Ratios.
    pub ratios: Vec<f64>,
    /// Particles along the reference length.
    pub across: Vec<f64>,
    /// Distance between particles over what it would be.
    pub spacing: Option<f64>,
    /// Lengths of steps.
    pub steps: Vec<f64>,
    /// Rate of pouring over the usual one.
    pub rate: Option<f64>,
    /// How many seeds the mean is taken of.
    pub seeds: Option<u32>,
    /// Shape of single grains.
    pub shape: Option<&'static str>,
    /// The only form, where a case has several.
    pub form: Option<String>,
}

impl Sweep {
    /// Every combination.
    pub fn settings(&self, wanted: &Wanted) -> Vec<Setting> {
        let mut all = Vec::new();
        for across in either(&wanted.across, self.across) {
            for step in either(&wanted.steps, self.steps) {
                for ratio in either(&wanted.ratios, self.ratios) {
                    let angles = either(&wanted.angles, self.angles);
                    all.extend(angles.iter().map(|angle| Setting {
                        angle: *angle,
                        ratio: *ratio,
                        across: *across / wanted.spacing.unwrap_or(1.0),
                        step: *step,
                        rate: wanted.rate.unwrap_or(self.base.rate),
                        seeds: wanted.seeds.unwrap_or(self.base.seeds),
                        shape: wanted.shape.or(self.base.shape),
                        ..self.base
                    }));
                }
            }
        }
        all
    }
}

fn either<'a>(wanted: &'a [f64], listed: &'a [f64]) -> &'a [f64] {
    if wanted.is_empty() { listed } else { wanted }
}

impl Case {
    /// What is run of `method` at `size`, with the numbers `wanted`.
    pub fn settings(&self, method: &Method, size: Size, wanted: &Wanted) -> Vec<Setting> {
        let sweeps = match size {
            Size::Fast => self.fast,
            Size::Full => self.full,
        };
        let mut all: Vec<Setting> = Vec::new();
        let can = |sweep: &&Sweep| sweep.needs.iter().all(|skill| method.can(*skill));
        let is_wanted = |sweep: &&Sweep| match &wanted.form {
            Some(form) => sweep.base.form == form,
            None => true,
        };
        for sweep in sweeps.iter().filter(can).filter(is_wanted) {
            for setting in sweep.settings(wanted) {
                // Sweeps that differ only in what is replaced by the numbers wanted.
                if !all.contains(&setting) {
                    all.push(setting);
                }
            }
        }
        all
    }

    /// True where it says something about `method`.
    pub fn applies_to(&self, method: &Method) -> bool {
        method.can(self.needs)
    }
}

/// What most cases begin from.
const SETTING: Setting = Setting {
    form: "",
    angle: 34.0,
    ratio: 1.0,
    across: 1.0,
    step: 1.0,
    rate: 1.0,
    seeds: 1,
    shape: None,
    patience: 1.0,
};

/// One setting, to be changed.
const ONE: Sweep = Sweep {
    base: SETTING,
    needs: &[],
    angles: &[34.0],
    ratios: &[1.0],
    across: &[1.0],
    steps: &[1.0],
};

/// The usual setting of a form.
pub const fn form(form: &'static str) -> Setting {
    Setting { form, ..SETTING }
}

/// What has cells of eight particles, what is a continuum without them, and what is single grains.
const ON_A_GRID: &[Skill] = &[Skill::Grid];
const AS_PARTICLES: &[Skill] = &[Skill::Continuum, Skill::Meshless];
const AS_GRAINS: &[Skill] = &[Skill::Grains];
/// Either of the last two.
const WITHOUT_CELLS: &[Skill] = &[Skill::Meshless];

/// A column that is let go.
const fn released(
    form_name: &'static str,
    needs: &'static [Skill],
    ratios: &'static [f64],
    across: &'static [f64],
) -> Sweep {
    Sweep {
        base: form(form_name),
        needs,
        angles: &[31.0],
        ratios,
        across,
        ..ONE
    }
}

/// Three openings, the smallest so many particles wide.
const fn through(needs: &'static [Skill], across: &'static [f64]) -> Sweep {
    Sweep {
        needs,
        across,
        ..ONE
    }
}

/// The usual step, and half of it.
const STEPS: &[f64] = &[1.0, 0.5];
/// The angles that are promised.
const ANGLES: &[f64] = &[20.0, 25.0, 30.0, 34.0, 40.0, 45.0];

/// All cases, in the order in which they are run: first those that take longest, so that no core waits for another's in the end.
pub const CASES: &[Case] = &[
    Case {
        name: "silo",
        needs: Skill::Sand,
        ratio: "fill",
        // The ratio is the height of the fill in radii: the last two hardly differ once it saturates. (At 6 the floor bears
        // nine tenths of what it does under any more.)
        fast: &[Sweep {
            angles: &[30.0],
            ratios: &[3.0, 6.0],
            across: &[12.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: &[25.0, 30.0, 34.0],
            ratios: &[2.0, 4.0, 8.0, 16.0],
            across: &[10.0, 16.0],
            ..ONE
        }],
        measure: flow::silo,
    },
    Case {
        name: "hourglass",
        needs: Skill::Sand,
        ratio: "",
        // Particles without cells pass a rim of two spacings: of finer openings it takes less.
        fast: &[
            through(ON_A_GRID, &[9.0]),
            through(AS_PARTICLES, &[11.0]),
            through(AS_GRAINS, &[9.0]),
        ],
        full: &[Sweep {
            angles: &[25.0, 34.0],
            across: &[10.0, 16.0],
            steps: STEPS,
            ..ONE
        }],
        measure: flow::hourglass,
    },
    Case {
        name: "column",
        needs: Skill::Sand,
        ratio: "aspect ratio",
        // What is left of a low column is a thin wedge: its height, not its radius, says how fine it must be. A grid must be
        // finer than what has no cells, for a cell holds eight particles.
        fast: &[
            released("cylinder", ON_A_GRID, &[0.5], &[44.0]),
            released("cylinder", ON_A_GRID, &[0.9], &[34.0]),
            released("cylinder", ON_A_GRID, &[3.0], &[20.0]),
            released("channel", ON_A_GRID, &[1.0, 3.0], &[24.0]),
            released("cylinder", AS_PARTICLES, &[0.5], &[40.0]),
            released("cylinder", AS_PARTICLES, &[0.9], &[28.0]),
            released("cylinder", AS_PARTICLES, &[3.0], &[16.0]),
            released("channel", AS_PARTICLES, &[1.0], &[16.0]),
            released("channel", AS_PARTICLES, &[3.0], &[12.0]),
            released("cylinder", AS_GRAINS, &[0.5, 0.9], &[24.0]),
            released("cylinder", AS_GRAINS, &[3.0], &[20.0]),
            released("channel", AS_GRAINS, &[1.0, 3.0], &[24.0]),
        ],
        full: &[
            Sweep {
                base: form("cylinder"),
                angles: &[31.0],
                ratios: &[0.5, 0.7, 0.9, 1.0],
                across: &[40.0, 72.0],
                ..ONE
            },
            Sweep {
                base: form("cylinder"),
                angles: &[31.0],
                ratios: &[1.5, 2.0, 3.0, 4.0, 5.0],
                across: &[20.0, 36.0],
                ..ONE
            },
            Sweep {
                base: form("channel"),
                angles: &[31.0],
                ratios: &[0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0],
                across: &[24.0, 48.0],
                ..ONE
            },
            Sweep {
                base: form("cylinder"),
                angles: &[31.0],
                ratios: &[1.0],
                across: &[40.0],
                steps: &[0.5],
                ..ONE
            },
            Sweep {
                base: form("cylinder"),
                angles: &[31.0],
                ratios: &[3.0],
                across: &[20.0],
                steps: &[0.5],
                ..ONE
            },
        ],
        measure: column::column,
    },
    Case {
        name: "pile",
        needs: Skill::Sand,
        ratio: "",
        fast: &[
            Sweep {
                base: form("slab"),
                needs: ON_A_GRID,
                angles: &[25.0, 34.0, 42.0],
                across: &[40.0],
                ..ONE
            },
            Sweep {
                base: form("cone"),
                needs: ON_A_GRID,
                across: &[32.0],
                ..ONE
            },
            Sweep {
                base: form("slab"),
                needs: WITHOUT_CELLS,
                angles: &[25.0, 34.0, 42.0],
                across: &[24.0],
                ..ONE
            },
            Sweep {
                base: form("cone"),
                needs: WITHOUT_CELLS,
                across: &[24.0],
                ..ONE
            },
        ],
        // As cones of 10,000, 60,000 and 500,000 particles, of which a quarter is simulated; slabs are as fine.
        full: &[
            Sweep {
                base: Setting {
                    seeds: 3,
                    ..form("slab")
                },
                angles: ANGLES,
                across: &[24.0, 44.0, 88.0],
                ..ONE
            },
            Sweep {
                base: Setting {
                    seeds: 3,
                    ..form("cone")
                },
                angles: ANGLES,
                across: &[24.0, 44.0, 88.0],
                ..ONE
            },
            Sweep {
                base: Setting {
                    seeds: 3,
                    rate: 0.5,
                    ..form("slab")
                },
                angles: &[25.0, 34.0, 42.0],
                across: &[24.0, 44.0],
                ..ONE
            },
            Sweep {
                base: Setting {
                    seeds: 3,
                    ..form("slab")
                },
                angles: &[25.0, 34.0, 42.0],
                across: &[24.0, 44.0],
                steps: &[0.5],
                ..ONE
            },
        ],
        measure: pile::pile,
    },
    Case {
        name: "tilt",
        needs: Skill::Sand,
        ratio: "",
        // With 32 a grid's layer is four cells deep, and begins to flow late.
        fast: &[
            Sweep {
                base: form("gravity"),
                needs: ON_A_GRID,
                angles: &[25.0, 34.0, 42.0],
                across: &[64.0],
                ..ONE
            },
            Sweep {
                base: form("gravity"),
                needs: WITHOUT_CELLS,
                angles: &[25.0, 34.0, 42.0],
                across: &[32.0],
                ..ONE
            },
        ],
        full: &[
            Sweep {
                base: form("gravity"),
                angles: ANGLES,
                across: &[40.0, 72.0],
                steps: STEPS,
                ..ONE
            },
            Sweep {
                base: form("askew"),
                angles: ANGLES,
                across: &[40.0, 72.0],
                ..ONE
            },
            Sweep {
                base: form("box"),
                angles: ANGLES,
                across: &[40.0, 72.0],
                ..ONE
            },
        ],
        measure: slope::tilt,
    },
    Case {
        name: "slide",
        needs: Skill::Sand,
        ratio: "incline less angle",
        // The ratio is the incline's angle less the material's.
        fast: &[Sweep {
            angles: &[25.0, 34.0],
            ratios: &[10.0, -3.0],
            across: &[40.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: ANGLES,
            ratios: &[15.0, 10.0, -3.0],
            across: &[40.0, 80.0],
            steps: STEPS,
            ..ONE
        }],
        measure: slope::slide,
    },
    Case {
        name: "drain",
        needs: Skill::Sand,
        ratio: "",
        fast: &[Sweep {
            across: &[24.0],
            base: Setting {
                patience: 0.6,
                ..SETTING
            },
            ..ONE
        }],
        full: &[Sweep {
            angles: ANGLES,
            across: &[40.0, 80.0],
            ..ONE
        }],
        measure: slope::drain,
    },
    Case {
        name: "wedge",
        needs: Skill::Sand,
        ratio: "",
        fast: &[Sweep {
            angles: &[34.0],
            across: &[24.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: ANGLES,
            across: &[40.0, 80.0],
            steps: STEPS,
            ..ONE
        }],
        measure: slope::wedge,
    },
    Case {
        name: "rest",
        needs: Skill::Sand,
        ratio: "",
        fast: &[Sweep {
            base: Setting {
                patience: 0.3,
                ..form("slab")
            },
            across: &[16.0],
            ..ONE
        }],
        full: &[
            Sweep {
                base: form("slab"),
                angles: &[25.0, 34.0, 42.0],
                across: &[24.0, 44.0],
                ..ONE
            },
            Sweep {
                base: form("cone"),
                across: &[24.0, 44.0],
                ..ONE
            },
        ],
        measure: pile::rest,
    },
    Case {
        name: "truck",
        needs: Skill::Sand,
        ratio: "acceleration",
        // The ratio is the acceleration over μ g.
        fast: &[Sweep {
            ratios: &[0.3],
            across: &[20.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: &[25.0, 34.0, 42.0],
            ratios: &[0.2, 0.3],
            across: &[24.0, 44.0],
            steps: STEPS,
            ..ONE
        }],
        measure: tray::truck,
    },
    Case {
        name: "cohesion",
        needs: Skill::Cohesion,
        ratio: "height",
        // The ratio is the height over the one that stands.
        fast: &[Sweep {
            angles: &[30.0],
            ratios: &[0.9, 1.6],
            across: &[20.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: &[20.0, 30.0, 40.0],
            ratios: &[0.5, 0.9, 1.5, 2.5],
            across: &[20.0, 40.0],
            ..ONE
        }],
        measure: bank::cohesion,
    },
    Case {
        name: "wet",
        needs: Skill::Cohesion,
        ratio: "",
        fast: &[Sweep {
            angles: &[30.0],
            across: &[16.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: &[30.0],
            across: &[16.0, 32.0],
            steps: STEPS,
            ..ONE
        }],
        measure: bank::wet,
    },
    Case {
        name: "buoyancy",
        needs: Skill::Bodies,
        ratio: "",
        fast: &[Sweep {
            angles: &[30.0],
            across: &[6.0],
            ..ONE
        }],
        full: &[Sweep {
            angles: &[30.0],
            across: &[8.0, 14.0],
            ..ONE
        }],
        measure: bodies::buoyancy,
    },
    Case {
        name: "impact",
        needs: Skill::Bodies,
        ratio: "",
        fast: &[Sweep {
            base: form("fall"),
            angles: &[25.0],
            across: &[6.0],
            ..ONE
        }],
        full: &[
            Sweep {
                base: form("fall"),
                angles: &[25.0],
                across: &[8.0, 14.0],
                ..ONE
            },
            Sweep {
                base: form("density"),
                angles: &[25.0],
                across: &[8.0, 14.0],
                ..ONE
            },
            Sweep {
                base: form("diameter"),
                angles: &[25.0],
                across: &[8.0, 14.0],
                ..ONE
            },
        ],
        measure: bodies::impact,
    },
    Case {
        name: "water-rest",
        needs: Skill::Water,
        ratio: "",
        fast: &[Sweep {
            across: &[12.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[20.0, 40.0],
            steps: STEPS,
            ..ONE
        }],
        measure: water::rest,
    },
    Case {
        name: "dam-break",
        needs: Skill::Water,
        ratio: "",
        fast: &[Sweep {
            across: &[25.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[25.0, 50.0, 100.0],
            steps: STEPS,
            ..ONE
        }],
        measure: water::dam,
    },
    Case {
        name: "volume",
        needs: Skill::Water,
        ratio: "",
        fast: &[Sweep {
            base: Setting {
                patience: 0.5,
                ..SETTING
            },
            across: &[20.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[20.0, 40.0],
            ..ONE
        }],
        measure: water::volume,
    },
    Case {
        name: "vortex",
        needs: Skill::Water,
        ratio: "",
        // What PIC loses is in proportion to the cell.
        fast: &[Sweep {
            across: &[24.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[24.0, 48.0],
            ..ONE
        }],
        measure: water::vortex,
    },
    Case {
        name: "flight",
        needs: Skill::Flight,
        ratio: "",
        fast: &[Sweep {
            across: &[6.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[8.0, 16.0],
            steps: STEPS,
            ..ONE
        }],
        measure: conserve::flight,
    },
    Case {
        name: "fall",
        needs: Skill::Flight,
        ratio: "",
        fast: &[Sweep {
            across: &[6.0],
            ..ONE
        }],
        full: &[Sweep {
            across: &[8.0, 16.0],
            steps: STEPS,
            ..ONE
        }],
        measure: conserve::fall,
    },
];

#[cfg(test)]
mod tests {
    use super::super::method::method;
    use super::*;

    fn columns(name: &str, wanted: &Wanted) -> Vec<(&'static str, f64, f64)> {
        let case = CASES.iter().find(|case| case.name == "column");
        let method = method(name).expect("it is a method");
        let settings = case
            .expect("it is a case")
            .settings(method, Size::Fast, wanted);
        let told = settings.iter().map(|s| (s.form, s.ratio, s.across));
        told.collect()
    }

    #[test]
    fn a_continuum_has_low_columns_finer_than_single_grains_have() {
        let none = Wanted::default();
        assert!(columns("flip", &none).contains(&("cylinder", 0.5, 44.0)));
        assert!(columns("dem", &none).contains(&("cylinder", 0.5, 24.0)));
        assert!(!columns("dem", &none).contains(&("cylinder", 0.5, 44.0)));
    }

    #[test]
    fn numbers_that_are_wanted_replace_the_tables_once() {
        let wanted = Wanted {
            ratios: vec![0.7],
            across: vec![16.0],
            ..Wanted::default()
        };
        let expected = [("cylinder", 0.7, 16.0), ("channel", 0.7, 16.0)];
        assert_eq!(columns("flip", &wanted), expected);
        let wanted = Wanted {
            form: Some("channel".to_owned()),
            ..wanted
        };
        assert_eq!(columns("flip", &wanted), expected[1..]);
        let wanted = Wanted {
            spacing: Some(0.5),
            ..wanted
        };
        assert_eq!(columns("flip", &wanted), [("channel", 0.7, 32.0)]);
    }
}
