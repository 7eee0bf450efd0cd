//! Numbers with a dimension and a rule: `5`, `"5 mm"`, `"30 deg"`. Inside, everything is SI.

use super::node::{Content, Node};
use super::problem::{Problem, Problems, suggest};
use super::read::{Defs, Read, wrong_kind};
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::ops::Range;

/// A physical dimension: what it is called, and its units with their size in SI.
pub trait Dimension: Clone + std::fmt::Debug {
    /// For messages.
    const NAME: &'static str;
    /// Units, the one of bare numbers first.
    const UNITS: &'static [(&'static str, f64)];
}

macro_rules! dimensions {
    ($( $(#[$doc:meta])* $name:ident, $text:literal, [$( $unit:literal = $size:expr ),+ $(,)?]; )+) => {
        $( $(#[$doc])* #[derive(Clone, Debug)] pub struct $name;
        impl Dimension for $name {
            const NAME: &'static str = $text;
            const UNITS: &'static [(&'static str, f64)] = &[$(($unit, $size)),+];
        } )+
    };
}

const DEGREE: f64 = std::f64::consts::PI / 180.0;
/// Standard gravity of the kilogram-force and of "g" [m/s²] (CGPM 1901).
const STANDARD_GRAVITY: f64 = 9.806_65;

dimensions! {
    /// A pure number.
    Ratio, "a number", ["" = 1.0, "%" = 0.01];
    /// Metres.
    Length, "a length", ["m" = 1.0, "km" = 1e3, "cm" = 1e-2, "mm" = 1e-3, "um" = 1e-6, "µm" = 1e-6, "in" = 0.0254, "ft" = 0.3048];
    /// Seconds.
    Time, "a time", ["s" = 1.0, "ms" = 1e-3, "us" = 1e-6, "µs" = 1e-6, "min" = 60.0, "h" = 3600.0];
    /// Degrees outside, radians inside.
    Angle, "an angle", ["deg" = DEGREE, "°" = DEGREE, "rad" = 1.0];
    /// Kilograms a cubic metre.
    Density, "a density", ["kg/m3" = 1.0, "kg/m³" = 1.0, "g/cm3" = 1e3, "g/cm³" = 1e3, "kg/l" = 1e3, "t/m3" = 1e3];
    /// Kilograms.
    Mass, "a mass", ["kg" = 1.0, "g" = 1e-3, "mg" = 1e-6, "t" = 1e3];
    /// Degrees a second outside, radians a second inside.
    Spin, "an angular speed", ["deg/s" = DEGREE, "°/s" = DEGREE, "rad/s" = 1.0, "rpm" = 6.0 * DEGREE];
    /// Metres a second.
    Speed, "a speed", ["m/s" = 1.0, "cm/s" = 1e-2, "mm/s" = 1e-3, "km/h" = 1.0 / 3.6];
    /// Metres a second squared.
    Acceleration, "an acceleration", ["m/s2" = 1.0, "m/s²" = 1.0, "g" = STANDARD_GRAVITY];
    /// Pascals.
    Pressure, "a pressure", ["Pa" = 1.0, "kPa" = 1e3, "MPa" = 1e6, "GPa" = 1e9, "N/m2" = 1.0];
    /// Pascal-seconds.
    Viscosity, "a viscosity", ["Pa s" = 1.0, "Pa·s" = 1.0, "mPa s" = 1e-3, "uPa s" = 1e-6];
    /// Frames a second.
    Frequency, "a rate", ["Hz" = 1.0, "fps" = 1.0, "1/s" = 1.0];
    /// Cubic metres a second.
    VolumeRate, "a volume a second", ["m3/s" = 1.0, "m³/s" = 1.0, "l/s" = 1e-3, "cm3/s" = 1e-6, "ml/s" = 1e-6, "l/min" = 1e-3 / 60.0];
    /// Particles a second.
    ParticleRate, "particles a second", ["particles/s" = 1.0, "/s" = 1.0, "1/s" = 1.0, "grains/s" = 1.0];
}

/// A rule that a number must keep, in the units of bare numbers.
pub trait Rule: Clone + std::fmt::Debug {
    /// The rule in words, after "must be".
    const TEXT: &'static str;
    /// True where it is kept.
    fn holds(value: f64) -> bool;
    /// JSON Schema keywords for it.
    fn schema() -> Value;
}

macro_rules! rules {
    ($( $(#[$doc:meta])* $name:ident, $text:literal, $holds:expr, $schema:tt; )+) => {
        $( $(#[$doc])* #[derive(Clone, Debug)] pub struct $name;
        impl Rule for $name {
            const TEXT: &'static str = $text;
            fn holds(value: f64) -> bool {
                let holds: fn(f64) -> bool = $holds;
                holds(value)
            }
            fn schema() -> Value {
                json!($schema)
            }
        } )+
    };
}

rules! {
    /// Any finite number.
    Any, "a finite number", |_| true, {};
    /// Above zero.
    Positive, "positive", |x| x > 0.0, { "exclusiveMinimum": 0 };
    /// Zero or above.
    NotNegative, "zero or positive", |x| x >= 0.0, { "minimum": 0 };
    /// From zero to one.
    Unit, "between 0 and 1", |x| (0.0..=1.0).contains(&x), { "minimum": 0, "maximum": 1 };
    /// An angle from zero to below a right angle.
    Acute, "at least 0 and below 90 degrees", |x| (0.0..90.0).contains(&x), { "minimum": 0, "exclusiveMaximum": 90 };
    /// At most a frame before or after.
    FrameAway, "between -1 and 1", |x| (-1.0..=1.0).contains(&x), { "minimum": -1, "maximum": 1 };
    /// An angle from zero to a straight one.
    UpToStraight, "between 0 and 180 degrees", |x| (0.0..=180.0).contains(&x), { "minimum": 0, "maximum": 180 };
}

/// A number of dimension `D` that keeps rule `R`.
#[derive(Clone, Debug)]
pub struct Quantity<D, R = Any> {
    /// The value in SI units.
    pub si: f64,
    /// Where it stands.
    pub span: Range<usize>,
    kind: PhantomData<(D, R)>,
}

impl<D: Dimension, R: Rule> Quantity<D, R> {
    /// A default, in the unit of bare numbers.
    pub fn of(value: f64) -> Self {
        Self {
            si: value * D::UNITS[0].1,
            span: 0..0,
            kind: PhantomData,
        }
    }
}

/// The longest text of a number and its unit.
const MOST_TEXT: usize = 64;

/// The number that `node` holds, in the unit of bare numbers.
fn parse<D: Dimension>(node: &Node, path: &str) -> Result<f64, Problem> {
    let bare_unit = D::UNITS[0];
    let units: Vec<&str> = D::UNITS
        .iter()
        .map(|(unit, _)| *unit)
        .filter(|unit| !unit.is_empty())
        .collect();
    match &node.value {
        Content::Integer(number) => Ok(*number as f64),
        Content::Float(number) => Ok(*number),
        Content::Text(text) => {
            let text = text.trim();
            if text.len() > MOST_TEXT {
                let message = format!(
                    "\"{path}\" must be {}, written in at most {MOST_TEXT} letters",
                    D::NAME
                );
                return Err(Problem::new(node.span.clone(), message).help(example(bare_unit.0)));
            }
            // The number is the longest prefix that parses; "1e-3 m" and "4mm" both work.
            let split = (0..=text.len())
                .rev()
                .filter(|at| text.is_char_boundary(*at))
                .find_map(|at| {
                    text[..at]
                        .trim()
                        .parse::<f64>()
                        .ok()
                        .map(|number| (number, text[at..].trim()))
                });
            let Some((number, unit)) = split else {
                let message = format!("\"{path}\" must be {}, got \"{text}\"", D::NAME);
                return Err(Problem::new(node.span.clone(), message).help(example(bare_unit.0)));
            };
            if unit.is_empty() {
                return Ok(number);
            }
            match D::UNITS.iter().find(|(name, _)| *name == unit) {
                Some((_, size)) => Ok(number * size / bare_unit.1),
                None => {
                    let message = format!(
                        "\"{path}\" must be {}, and \"{unit}\" is not a unit of that",
                        D::NAME
                    );
                    Err(Problem::new(node.span.clone(), message).help(suggest(unit, &units)))
                }
            }
        }
        _ => Err(wrong_kind(
            node,
            path,
            &format!("{} (a number, or a string with a unit)", D::NAME),
        )),
    }
}

/// A number as people write it: without rows of noughts.
fn shown(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-5..1e9).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

fn example(unit: &str) -> String {
    if unit.is_empty() {
        "write a number such as 0.5".into()
    } else {
        format!("write a number such as 0.5, or with a unit as \"0.5 {unit}\"")
    }
}

impl<D: Dimension, R: Rule> Read for Quantity<D, R> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let value = match parse::<D>(node, path) {
            Ok(value) => value,
            Err(problem) => return problems.none(problem),
        };
        // Everything is stored as 32-bit floats in the end: what they cannot hold is a mistake.
        let si = value * D::UNITS[0].1;
        if !value.is_finite() || !(si as f32).is_finite() {
            let what = if value.is_finite() {
                "at most 3.4e38"
            } else {
                "a finite number"
            };
            let message = format!("\"{path}\" must be {what}, got {}", shown(value));
            return problems.none(Problem::new(node.span.clone(), message));
        }
        let vanishes = si != 0.0 && si as f32 == 0.0;
        if !R::holds(value) || vanishes && !R::holds(0.0) {
            let unit = D::UNITS[0].0;
            let message = format!(
                "\"{path}\" must be {}, got {}{}{unit}",
                R::TEXT,
                shown(value),
                if unit.is_empty() { "" } else { " " }
            );
            return problems.none(Problem::new(node.span.clone(), message));
        }
        Some(Self {
            si,
            span: node.span.clone(),
            kind: PhantomData,
        })
    }

    fn schema(_: &mut Defs) -> Value {
        let mut number = R::schema();
        number["type"] = "number".into();
        let units: Vec<&str> = D::UNITS.iter().map(|(unit, _)| *unit).collect();
        let text = format!(
            "{}, in {} or as a string with one of the units {}",
            D::NAME,
            units[0],
            units.join(", ")
        );
        let string = json!({
            "type": "string", "description": text.trim(), "x-dimension": D::NAME, "x-units": units,
        });
        json!({ "anyOf": [number, string] })
    }

    fn json(&self) -> Value {
        // Twelve digits: degrees come back from radians as they were written.
        let value = self.si / D::UNITS[0].1;
        let rounded: f64 = format!("{value:.12e}").parse().unwrap_or(value);
        json!(rounded)
    }
}

/// Three numbers of dimension `D`.
#[derive(Clone, Debug)]
pub struct Triple<D> {
    /// The values in SI units.
    pub si: [f64; 3],
    /// Where they stand.
    pub span: Range<usize>,
    kind: PhantomData<D>,
}

impl<D: Dimension> Triple<D> {
    /// A default, in the unit of bare numbers.
    pub fn of(values: [f64; 3]) -> Self {
        Self {
            si: values.map(|value| value * D::UNITS[0].1),
            span: 0..0,
            kind: PhantomData,
        }
    }

    /// As a 32-bit vector.
    pub fn vec3(&self) -> glam::Vec3 {
        glam::DVec3::from_array(self.si).as_vec3()
    }
}

impl<D: Dimension> Read for Triple<D> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let items = match &node.value {
            Content::List(items) if items.len() == 3 => items,
            Content::List(items) => {
                let message = format!("\"{path}\" must have three numbers, got {}", items.len());
                return problems.none(Problem::new(node.span.clone(), message));
            }
            _ => return problems.none(wrong_kind(node, path, "three numbers, [x, y, z]")),
        };
        let mut read = |i: usize| {
            Quantity::<D>::read(&items[i], &format!("{path}[{i}]"), problems).map(|q| q.si)
        };
        let si = [read(0), read(1), read(2)];
        Some(Self {
            si: [si[0]?, si[1]?, si[2]?],
            span: node.span.clone(),
            kind: PhantomData,
        })
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "type": "array", "items": Quantity::<D>::schema(defs), "minItems": 3, "maxItems": 3 })
    }

    fn json(&self) -> Value {
        self.si
            .iter()
            .map(|si| Quantity::<D>::of(si / D::UNITS[0].1).json())
            .collect()
    }
}

/// How fast an emitter works: a volume or a number of particles a second.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Cubic metres a second.
    Volume(Quantity<VolumeRate, Positive>),
    /// Particles a second.
    Particles(Quantity<ParticleRate, Positive>),
}

impl Read for Rate {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let counts = |text: &str| {
            ParticleRate::UNITS.iter().any(|(unit, _)| {
                text.trim()
                    .strip_suffix(unit)
                    .is_some_and(|number| number.trim().parse::<f64>().is_ok())
            })
        };
        match &node.value {
            Content::Text(text) if counts(text) => {
                Quantity::read(node, path, problems).map(Self::Particles)
            }
            _ => Quantity::read(node, path, problems).map(Self::Volume),
        }
    }

    fn schema(defs: &mut Defs) -> Value {
        let mut schema = Quantity::<VolumeRate, Positive>::schema(defs);
        schema["description"] =
            "m³/s as a number, or a string in m3/s, l/s, cm3/s or particles/s".into();
        schema
    }

    fn json(&self) -> Value {
        match self {
            Self::Volume(rate) => rate.json(),
            Self::Particles(rate) => format!("{} particles/s", rate.si).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::node;
    use super::*;

    fn read<T: Read>(text: &str) -> Result<T, Vec<String>> {
        let root = node::parse(&format!("x = {text}"), 0).unwrap();
        let Content::Table(entries) = &root.value else {
            unreachable!()
        };
        let mut problems = Problems::default();
        T::read(&entries[0].node, "x", &mut problems).ok_or_else(|| problems.messages())
    }

    fn si<D: Dimension, R: Rule>(text: &str) -> f64 {
        read::<Quantity<D, R>>(text).unwrap().si
    }

    #[test]
    fn units_become_si() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} for {b}");
        close(si::<Length, Any>("\"5 mm\""), 0.005);
        close(si::<Length, Any>("\"5mm\""), 0.005);
        close(si::<Length, Any>("2"), 2.0);
        close(si::<Angle, Any>("34"), 34.0 * DEGREE);
        close(si::<Angle, Any>("\"1 rad\""), 1.0);
        close(si::<Density, Any>("\"1.6 g/cm3\""), 1600.0);
        close(si::<Speed, Any>("\"36 km/h\""), 10.0);
        close(si::<Time, Any>("\"1e2 ms\""), 0.1);
        close(si::<Viscosity, Any>("\"1 mPa s\""), 1e-3);
    }

    #[test]
    fn rules_and_units_are_named_when_broken() {
        let fails = |text: &str, reason: &str| {
            let messages = read::<Quantity<Length, Positive>>(text).unwrap_err();
            assert!(
                messages.len() == 1 && messages[0].contains(reason),
                "{text}: {messages:?}"
            );
        };
        fails("-1", "must be positive, got -1 m");
        fails("nan", "must be a finite number");
        fails("inf", "must be a finite number");
        fails("1e300", "must be at most 3.4e38");
        fails("\"5 kg\"", "\"kg\" is not a unit of that");
        fails("\"wide\"", "must be a length, got \"wide\"");
        fails("true", "must be a length");
        fails("1e-50", "must be positive");
        fails(&format!("\"{}1 m\"", "0".repeat(64)), "at most 64");
        assert!(read::<Triple<Length>>("[1, 2]").unwrap_err()[0].contains("three numbers"));
        assert!(
            read::<Quantity<Angle, Acute>>("95").unwrap_err()[0]
                .contains("below 90 degrees, got 95 deg")
        );
    }

    #[test]
    fn rates_are_volumes_or_particles() {
        assert!(
            matches!(read::<Rate>("\"2 l/s\""), Ok(Rate::Volume(q)) if (q.si - 0.002).abs() < 1e-15)
        );
        assert!(
            matches!(read::<Rate>("\"500 particles/s\""), Ok(Rate::Particles(q)) if (q.si - 500.0).abs() < 1e-9)
        );
        assert!(matches!(read::<Rate>("0.5"), Ok(Rate::Volume(_))));
        assert!(read::<Rate>("\"500 furlongs\"").is_err());
    }

    #[test]
    fn final_values_read_as_they_were_written() {
        assert_eq!(read::<Quantity<Angle>>("34").unwrap().json(), json!(34.0));
        assert_eq!(
            read::<Quantity<Length>>("\"5 mm\"").unwrap().json(),
            json!(0.005)
        );
    }
}
