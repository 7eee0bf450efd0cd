//! Materials by name: data in `presets.toml`, each number with its source.

use super::node;
use super::problem::Problems;
use super::quantity::{
    Angle, Density, Dimension, Length, NotNegative, Positive, Pressure, Quantity, Ratio, Rule, Unit,
};
use super::read::{Defs, Read, Text};
use crate::model::Material;
use crate::table;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A number and where it comes from.
#[derive(Clone, Debug)]
pub struct Sourced<D, R> {
    /// The number.
    pub value: Quantity<D, R>,
    /// Its source.
    pub source: Text,
}

impl<D: Dimension, R: Rule> Read for Sourced<D, R> {
    fn read(node: &node::Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let fields = super::read::Fields::open(node, path, &["value", "source"], problems)?;
        let value = fields.take("value", None, problems);
        let source = fields.take("source", None, problems);
        Some(Self {
            value: value?,
            source: source?,
        })
    }

    fn schema(defs: &mut Defs) -> Value {
        Quantity::<D, R>::schema(defs)
    }

    fn json(&self) -> Value {
        self.value.json()
    }
}

table! {
    /// A material with all its numbers.
    pub struct Preset {
        /// Density as it lies.
        density: Sourced<Density, Positive>,
        /// Density of a grain.
        grain_density: Sourced<Density, Positive>,
        /// Diameter of a grain.
        grain_size: Sourced<Length, Positive>,
        /// Angle of internal friction.
        friction_angle: Sourced<Angle, super::quantity::Acute>,
        /// Shear strength without load.
        cohesion: Sourced<Pressure, NotNegative>,
        /// Part of the speed kept in a bounce.
        restitution: Sourced<Ratio, Unit>,
        /// Red, green and blue of the material in daylight, linear.
        color: Vec<Quantity<Ratio, Unit>>,
    }
}

impl Preset {
    /// The material that is this and nothing else, called `name`. Being wet adds nothing to it.
    pub fn material(&self, name: &str) -> Material {
        Material {
            name: name.to_owned(),
            density: self.density.value.si,
            grain_density: self.grain_density.value.si,
            grain_size: self.grain_size.value.si,
            friction_angle: self.friction_angle.value.si,
            cohesion: self.cohesion.value.si,
            wet_cohesion: 0.0,
            wet_viscosity: 0.0,
            restitution: self.restitution.value.si,
            color: std::array::from_fn(|i| self.color[i].si as f32),
        }
    }
}

/// All presets, by name.
pub static PRESETS: LazyLock<BTreeMap<String, Preset>> = LazyLock::new(|| {
    let root = node::parse(include_str!("presets.toml"), 0).expect("presets.toml is valid TOML");
    let mut problems = Problems::default();
    let presets = BTreeMap::read(&root, "", &mut problems);
    presets.unwrap_or_else(|| panic!("presets.toml is wrong: {:?}", problems.messages()))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_complete_and_names_its_sources() {
        for name in [
            "dry-sand", "wet-sand", "gravel", "soil", "rice", "sugar", "coffee", "popcorn", "snow",
            "water",
        ] {
            let preset = &PRESETS[name];
            assert!(
                preset.grain_density.value.si >= preset.density.value.si,
                "{name} would float in itself"
            );
            assert_eq!(preset.color.len(), 3, "{name}");
            for source in [
                &preset.density.source,
                &preset.grain_size.source,
                &preset.friction_angle.source,
            ] {
                assert!(!source.value.is_empty(), "{name}");
            }
        }
        assert_eq!(PRESETS.len(), 10);
    }
}
