//! Single grains in the scene file, for the method that has them.

use super::node::{Content, Node};
use super::problem::{Problem, Problems};
use super::quantity::{Length, NotNegative, Positive, Pressure, Quantity, Ratio, Unit};
use super::read::{Defs, Read, read_word, wrong_kind};
use super::repose::REPOSE;
use super::{Contact, DemSettings, Stiffness};
use crate::grain::{Grain, GrainShape, NAMED, Sizes};
use crate::model::Material;
use crate::{choice, keywords, table};
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

/// The smallest grain over the largest, where nobody says.
const SMALLEST: f64 = 0.8;

table! {
    /// dem: the single grains of a material; hybrid: the shape in which its particles tumble and are drawn.
    pub struct GrainDoc {
        /// "ball", "tetrahedron" (4 spheres), "octahedron" (6), "cube" (8), "popcorn" (9), or a list of spheres, each
        /// [x, y, z, radius] in any one unit: only their proportions count.
        shape: GrainShapeDoc = GrainShapeDoc::Named("ball"),
        /// Diameters, each of the smallest ball about a grain; any from 0.8 to 1 of `solver.resolution` if left out: grains
        /// of one size would lie in rows as no sand does.
        size: Option<SizeDoc>,
        /// Coefficient of friction where two grains touch. Left out, what gives the material's friction_angle with this shape
        /// (`barchan calibrate`), and its tangent for shapes of one's own.
        friction: Option<Quantity<Ratio, NotNegative>>,
        /// Coefficient of rolling resistance: the lever of the load over the grain's radius. Left out, what friction needs
        /// besides to give the friction_angle, and none where friction is given.
        rolling_friction: Option<Quantity<Ratio, NotNegative>>,
        /// Poisson's ratio.
        poisson: Quantity<Ratio, Unit> = Quantity::of(0.25),
        /// Pull that it takes to part two grains, in weights of the smaller.
        stickiness: Quantity<Ratio, NotNegative> = Quantity::of(0.0),
    }
}

choice! {
    /// A distribution of diameters, by number unless said otherwise.
    pub enum SizeDoc {
        /// Any between two as likely.
        Uniform(UniformDoc) = "uniform",
        /// A bell curve, cut at 2.5 standard deviations.
        Normal(NormalDoc) = "normal",
        /// A bell curve of the logarithm, cut likewise.
        LogNormal(LogNormalDoc) = "log-normal",
        /// The part of the mass that passes each sieve.
        Sieve(SieveDoc) = "sieve",
    }
}

table! {
    /// Any diameter between two as likely.
    pub struct UniformDoc {
        /// The smallest.
        from: Quantity<Length, Positive>,
        /// The largest.
        to: Quantity<Length, Positive>,
    }
}

table! {
    /// A bell curve.
    pub struct NormalDoc {
        /// Its middle.
        mean: Quantity<Length, Positive>,
        /// Its standard deviation.
        spread: Quantity<Length, NotNegative>,
    }
}

table! {
    /// A bell curve of the logarithm.
    pub struct LogNormalDoc {
        /// Its middle.
        median: Quantity<Length, Positive>,
        /// Standard deviation of the natural logarithm.
        spread: Quantity<Ratio, NotNegative>,
    }
}

table! {
    /// A sieve curve.
    pub struct SieveDoc {
        /// Openings of the sieves, rising.
        openings: Vec<Quantity<Length, Positive>>,
        /// The part of the mass that passes each, from 0 to 1.
        passing: Vec<Quantity<Ratio, Unit>>,
    }
}

keywords! {
    /// A law of contact.
    pub enum ContactDoc {
        /// Hertz's normal force, Mindlin's tangential one with its history: grains hold each other at rest.
        HertzMindlin = "hertz-mindlin",
        /// As published by Alduán, Tena and Otaduy in 2009: friction against the sliding, without memory.
        Alduan = "alduan",
    }
}

/// What Alduán et al. took for sand: k_n, γ_n, μ and k_s.
const ALDUAN_STIFFNESS: f64 = 1e5;
const ALDUAN_DAMPING: f64 = 300.0;
const ALDUAN_FRICTION: f64 = 0.4;
const ALDUAN_VISCOUS_FRICTION: f64 = 1e4;

table! {
    /// The constants of Alduán et al. 2009, equations 1 and 2, with their values for sand.
    pub struct AlduanDoc {
        /// Stiffness k_n, N/m^1.5.
        stiffness: Quantity<Ratio, Positive> = Quantity::of(ALDUAN_STIFFNESS),
        /// Damping γ_n, N s/m^1.5.
        damping: Quantity<Ratio, NotNegative> = Quantity::of(ALDUAN_DAMPING),
        /// Coulomb friction μ.
        friction: Quantity<Ratio, NotNegative> = Quantity::of(ALDUAN_FRICTION),
        /// Viscous friction k_s, N s/m.
        viscous_friction: Quantity<Ratio, NotNegative> = Quantity::of(ALDUAN_VISCOUS_FRICTION),
    }
}

/// How stiff grains are: "auto", or Young's modulus.
#[derive(Clone, Debug)]
pub enum StiffnessDoc {
    /// As soft as the bound on overlaps allows.
    Auto,
    /// Young's modulus.
    Young(Quantity<Pressure, Positive>),
}

impl Read for StiffnessDoc {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Content::Text(text) if text == "auto" => Some(Self::Auto),
            _ => Quantity::read(node, path, problems).map(Self::Young),
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "anyOf": [{ "const": "auto" }, Quantity::<Pressure, Positive>::schema(defs)] })
    }

    fn json(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Young(young) => young.json(),
        }
    }
}

/// A grain's shape: a name, or spheres.
#[derive(Clone, Debug)]
pub enum GrainShapeDoc {
    /// One of the named shapes.
    Named(&'static str),
    /// x, y, z and radius of each sphere.
    Spheres(Vec<[f64; 4]>, Range<usize>),
}

const NAMES: &[&str] = &["ball", "tetrahedron", "octahedron", "cube", "popcorn"];

impl Read for GrainShapeDoc {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Content::Text(_) => read_word(node, path, NAMES, problems).map(Self::Named),
            Content::List(items) => {
                let spheres: Vec<Option<[f64; 4]>> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| sphere(item, &format!("{path}[{i}]"), problems))
                    .collect();
                let spheres = spheres.into_iter().collect::<Option<_>>()?;
                Some(Self::Spheres(spheres, node.span.clone()))
            }
            _ => {
                let problem = wrong_kind(node, path, "a name, or a list of [x, y, z, radius]");
                problems.none(problem.help(format!("possible: {}", NAMES.join(", "))))
            }
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        let number = Quantity::<Length>::schema(defs);
        let sphere = json!({ "type": "array", "items": number, "minItems": 4, "maxItems": 4 });
        json!({ "anyOf": [{ "enum": NAMES }, { "type": "array", "items": sphere, "minItems": 1 }] })
    }

    fn json(&self) -> Value {
        match self {
            Self::Named(name) => (*name).into(),
            Self::Spheres(spheres, _) => json!(spheres),
        }
    }
}

fn sphere(node: &Node, path: &str, problems: &mut Problems) -> Option<[f64; 4]> {
    let Content::List(items) = &node.value else {
        return problems.none(wrong_kind(node, path, "a sphere, [x, y, z, radius]"));
    };
    let numbers: Vec<Option<f64>> = items
        .iter()
        .enumerate()
        .map(|(i, item)| {
            Quantity::<Length>::read(item, &format!("{path}[{i}]"), problems).map(|q| q.si)
        })
        .collect();
    let numbers: Vec<f64> = numbers.into_iter().collect::<Option<_>>()?;
    <[f64; 4]>::try_from(numbers).ok().or_else(|| {
        let message = format!("\"{path}\" must have four numbers, [x, y, z, radius]");
        problems.none(Problem::new(node.span.clone(), message))
    })
}

impl GrainDoc {
    /// The grains of `material`; `resolution` [m] is the size where none is given.
    pub fn build(
        &self,
        material: &Material,
        resolution: f64,
        problems: &mut Problems,
    ) -> Option<Grain> {
        let shape = self.build_shape(problems);
        let sizes = match &self.size {
            Some(size) => build_sizes(size, problems),
            None => Sizes::uniform(SMALLEST * resolution, resolution).ok(),
        };
        let shape = shape?;
        if self.poisson.si > 0.5 {
            let message = format!("Poisson's ratio is at most 0.5, got {}", self.poisson.si);
            return problems.none(Problem::new(self.poisson.span.clone(), message));
        }
        let (friction, rolling) = self.contact(material.friction_angle);
        Some(Grain {
            shape,
            sizes: sizes?,
            poisson: self.poisson.si,
            friction,
            rolling,
            stickiness: self.stickiness.si,
        })
    }

    /// Friction and rolling resistance: as given, or what gives `angle` [rad].
    fn contact(&self, angle: f64) -> (f64, f64) {
        let known = match self.shape {
            GrainShapeDoc::Named(name) => REPOSE.get(name),
            GrainShapeDoc::Spheres(..) => None,
        };
        let given = |doc: &Option<Quantity<Ratio, NotNegative>>| doc.as_ref().map(|given| given.si);
        let rolling = given(&self.rolling_friction);
        match (given(&self.friction), known) {
            (Some(friction), _) => (friction, rolling.unwrap_or(0.0)),
            (None, Some(repose)) => {
                let found = repose.contact(angle);
                (found.0, rolling.unwrap_or(found.1))
            }
            (None, None) => (angle.tan(), rolling.unwrap_or(0.0)),
        }
    }

    /// Their form.
    pub fn build_shape(&self, problems: &mut Problems) -> Option<Arc<GrainShape>> {
        match &self.shape {
            GrainShapeDoc::Named(word) => NAMED
                .iter()
                .find(|(name, _)| name == word)
                .map(|(_, shape)| shape.clone()),
            GrainShapeDoc::Spheres(spheres, span) => match GrainShape::new(spheres) {
                Ok(shape) => Some(Arc::new(shape)),
                Err(error) => {
                    let help =
                        "write shape = [[x, y, z, radius], …], or a name such as \"tetrahedron\"";
                    problems.none(Problem::new(span.clone(), error.to_string()).help(help))
                }
            },
        }
    }
}

fn build_sizes(doc: &SizeDoc, problems: &mut Problems) -> Option<Sizes> {
    let sizes = match doc {
        SizeDoc::Uniform(doc) => Sizes::uniform(doc.from.si, doc.to.si),
        SizeDoc::Normal(doc) => Sizes::normal(doc.mean.si, doc.spread.si),
        SizeDoc::LogNormal(doc) => Sizes::log_normal(doc.median.si, doc.spread.si),
        SizeDoc::Sieve(doc) => {
            let openings = doc.openings.iter().map(|opening| opening.si);
            let passing = doc.passing.iter().map(|part| part.si);
            match doc.openings.len() == doc.passing.len() {
                true => Sizes::sieve(&openings.zip(passing).collect::<Vec<_>>()),
                false => Sizes::sieve(&[]),
            }
        }
    };
    match sizes {
        Ok(sizes) => Some(sizes),
        Err(error) => problems.none(Problem::new(doc.span(), error.to_string())),
    }
}

/// The settings of the method, from its keys.
pub fn settings(doc: &super::document::SolverDoc) -> DemSettings {
    let overlap = doc.overlap.as_ref().map_or(0.01, |overlap| overlap.si);
    let contact = match doc.contact.unwrap_or(ContactDoc::HertzMindlin) {
        ContactDoc::HertzMindlin => Contact::HertzMindlin(match &doc.stiffness {
            Some(StiffnessDoc::Young(young)) => Stiffness::Young(young.si),
            Some(StiffnessDoc::Auto) | None => Stiffness::Auto { overlap },
        }),
        ContactDoc::Alduan => match &doc.alduan {
            Some(doc) => Contact::Alduan {
                stiffness: doc.stiffness.si,
                damping: doc.damping.si,
                friction: doc.friction.si,
                viscous_friction: doc.viscous_friction.si,
            },
            None => Contact::Alduan {
                stiffness: ALDUAN_STIFFNESS,
                damping: ALDUAN_DAMPING,
                friction: ALDUAN_FRICTION,
                viscous_friction: ALDUAN_VISCOUS_FRICTION,
            },
        },
    };
    DemSettings { contact }
}
