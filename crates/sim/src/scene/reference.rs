//! The scene file as a page of the manual: every table, every key, its values and its default, from the JSON Schema.

use super::preset::{PRESETS, Preset};
use super::quantity::{Dimension, Quantity, Rule};
use super::schema;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const HEAD: &str = "\
# The scene file, key by key

<!-- Made by `barchan schema --markdown`, and held to it by a test: change the doc comments in the code, then make it again. -->

Every table that a scene may have, with its keys. \"needed\" means that a key cannot be left out; a dash, that nothing stands in for it.
Numbers without a unit are in the unit in brackets; a string may carry any of the units [at the end](#units).
";

const PRESET_HEAD: &str = "\
# Materials

<!-- Made by `barchan info presets --markdown`, and held to it by a test: change presets.toml, then make it again. -->

A material starts from a preset, `dry-sand` if none is named, and any of its numbers can be overridden:

```toml
[materials.sand]
preset         = \"dry-sand\"
friction_angle = 30
cohesion       = \"500 Pa\"
```

Densities are of the material as it lies, loosely poured. A source names a work that tabulates such values; the numbers were entered
from general knowledge of those ranges and have not been checked against the page. \"chosen\" is an effective value of ours. A material
without friction and cohesion is a fluid. How a method uses each number is told on its own page.
";

/// The page of all keys, in Markdown.
pub fn reference() -> String {
    let schema = schema();
    let defs = schema["$defs"].as_object().expect("a schema has parts");
    let mut page = Page {
        defs,
        titles: BTreeMap::new(),
        order: Vec::new(),
    };
    page.visit("SceneDoc", "The top of the file", "");
    let mut text = HEAD.to_owned();
    for name in &page.order {
        page.section(name, &mut text);
    }
    units(&schema, &mut text);
    text
}

/// The page of all presets, in Markdown.
pub fn preset_reference() -> String {
    let mut text = PRESET_HEAD.to_owned();
    for (name, preset) in PRESETS.iter() {
        let _ = write!(
            text,
            "\n## {name}\n\n| key | value | source |\n|---|---|---|\n"
        );
        for [key, value, source] in preset.rows() {
            let _ = writeln!(text, "| `{key}` | {value} | {source} |");
        }
    }
    text
}

impl Preset {
    /// Its numbers: key, value with unit, source.
    pub fn rows(&self) -> [[String; 3]; 6] {
        fn shown<D: Dimension, R: Rule>(quantity: &Quantity<D, R>, unit: &str) -> String {
            let (_, size) = D::UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .expect("it is a unit of that");
            let rounded = (quantity.si / size * 1e6).round() / 1e6;
            format!("{rounded} {unit}").trim_end().to_owned()
        }
        let row = |key: &str, value: String, source: &super::read::Text| {
            [key.to_owned(), value, source.value.clone()]
        };
        let (density, grain) = (&self.density, &self.grain_density);
        let (size, angle) = (&self.grain_size, &self.friction_angle);
        let (cohesion, bounce) = (&self.cohesion, &self.restitution);
        [
            row("density", shown(&density.value, "kg/m3"), &density.source),
            row("grain_density", shown(&grain.value, "kg/m3"), &grain.source),
            row("grain_size", shown(&size.value, "mm"), &size.source),
            row("friction_angle", shown(&angle.value, "deg"), &angle.source),
            row("cohesion", shown(&cohesion.value, "Pa"), &cohesion.source),
            row("restitution", shown(&bounce.value, ""), &bounce.source),
        ]
    }
}

/// What is known while the page is written.
struct Page<'a> {
    defs: &'a Map<String, Value>,
    /// The heading of each part of the schema.
    titles: BTreeMap<String, String>,
    /// Parts in the order in which a reader meets them.
    order: Vec<String>,
}

/// The keys of a table in the order of their declaration.
fn keys(table: &Value) -> Vec<&str> {
    let order = table["x-order"].as_array().into_iter().flatten();
    order.filter_map(Value::as_str).collect()
}

/// How a table stands under its key.
#[derive(Clone, Copy)]
enum Wrap {
    /// `[key]`.
    Plain,
    /// `[[key]]`.
    List,
    /// `[key.NAME]`.
    Named,
}

/// The part that a schema refers to.
fn direct(schema: &Value) -> Option<&str> {
    let bare = schema["$ref"].as_str();
    let described = schema["allOf"][0]["$ref"].as_str();
    bare.or(described)?.strip_prefix("#/$defs/")
}

/// The part that a key's schema leads to, and how it stands under the key.
fn referred(schema: &Value) -> Option<(&str, Wrap)> {
    let list = || Some((direct(&schema["items"])?, Wrap::List));
    let named = || Some((direct(&schema["additionalProperties"])?, Wrap::Named));
    let plain = direct(schema).map(|name| (name, Wrap::Plain));
    plain.or_else(list).or_else(named)
}

/// Alternatives of a choice: the words that lead to the same table, with what is said of them, and the table.
fn alternatives(choice: &Value) -> Vec<(Vec<[&str; 2]>, &str)> {
    let mut found: Vec<(Vec<[&str; 2]>, &str)> = Vec::new();
    for option in choice["anyOf"].as_array().into_iter().flatten() {
        let tables = option["properties"].as_object().into_iter().flatten();
        for (word, schema) in tables {
            let Some(table) = direct(schema) else {
                continue;
            };
            let said = [
                word.as_str(),
                option["description"].as_str().unwrap_or_default(),
            ];
            match found.iter_mut().find(|(_, known)| *known == table) {
                Some((words, _)) => words.push(said),
                None => found.push((vec![said], table)),
            }
        }
    }
    found
}

impl Page<'_> {
    /// Gives the part `name`, found at `path`, its heading, and then the parts below it.
    fn visit(&mut self, name: &str, title: &str, path: &str) {
        if self.titles.contains_key(name) {
            return;
        }
        self.titles.insert(name.to_owned(), title.to_owned());
        self.order.push(name.to_owned());
        let definition = &self.defs[name];
        // A choice's tables are written where the choice is.
        let tables: Vec<&Value> = match alternatives(definition)[..] {
            [] => vec![definition],
            ref all => all.iter().map(|(_, table)| &self.defs[*table]).collect(),
        };
        for table in tables {
            for key in keys(table) {
                if let Some((below, wrap)) = referred(&table["properties"][key]) {
                    let path = super::read::joined(path, key);
                    let (title, path) = match wrap {
                        _ if !alternatives(&self.defs[below]).is_empty() => {
                            (format!("`{key}`"), path)
                        }
                        Wrap::Plain => (format!("`[{path}]`"), path),
                        Wrap::List => (format!("`[[{path}]]`"), path),
                        Wrap::Named => (format!("`[{path}.NAME]`"), format!("{path}.NAME")),
                    };
                    self.visit(below, &title, &path);
                }
            }
        }
    }

    /// Writes the part `name`.
    fn section(&self, name: &str, text: &mut String) {
        let definition = &self.defs[name];
        let _ = write!(
            text,
            "\n<a id=\"{}\"></a>\n\n## {}\n\n{}\n",
            name,
            self.titles[name],
            definition["description"].as_str().unwrap_or_default()
        );
        let all = alternatives(definition);
        if all.is_empty() {
            self.table(definition, &keys(definition), text);
            return;
        }
        let tables: Vec<&Value> = all.iter().map(|(_, table)| &self.defs[*table]).collect();
        // What every alternative has is told once.
        let first = tables[0];
        let shared: Vec<&str> = keys(first)
            .into_iter()
            .filter(|key| {
                let same = |table: &&Value| table["properties"][*key] == first["properties"][*key];
                tables.len() > 1 && tables.iter().all(same)
            })
            .collect();
        if !shared.is_empty() {
            text.push_str("\nEach takes\n");
            self.table(first, &shared, text);
        }
        for ((words, _), table) in all.iter().zip(tables) {
            text.push('\n');
            for [word, said] in words {
                let _ = write!(text, "\n**`{word}`** {said}");
            }
            text.push('\n');
            let own: Vec<&str> = keys(table)
                .into_iter()
                .filter(|key| !shared.contains(key))
                .collect();
            self.table(table, &own, text);
        }
    }

    /// Writes some keys of a table, and then what the words of each mean.
    fn table(&self, table: &Value, keys: &[&str], text: &mut String) {
        if keys.is_empty() {
            return;
        }
        text.push_str("\n| key | value | if left out | |\n|---|---|---|---|\n");
        let needed = |key: &str| {
            let mut required = table["required"].as_array().into_iter().flatten();
            required.any(|name| name == key)
        };
        for key in keys {
            let schema = &table["properties"][*key];
            let left_out = match needed(key) {
                true => "needed".into(),
                false => usual(&schema["default"]),
            };
            let _ = writeln!(
                text,
                "| `{key}` | {} | {left_out} | {} |",
                self.value(schema),
                schema["description"].as_str().unwrap_or_default()
            );
        }
        for key in keys {
            words(key, &table["properties"][*key], text);
        }
    }

    /// What may stand behind a key, in words.
    fn value(&self, schema: &Value) -> String {
        if let Some((name, wrap)) = referred(schema) {
            let link = match self.titles.get(name) {
                Some(title) => format!("[{title}](#{name})"),
                None => "a table".into(),
            };
            return match wrap {
                Wrap::Plain => link,
                Wrap::List => format!("list of {link}"),
                Wrap::Named => format!("tables by name: {link}"),
            };
        }
        if let Some(word) = schema["const"].as_str() {
            return format!("`\"{word}\"`");
        }
        if let Some(words) = schema["enum"].as_array() {
            let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            return quoted.join(", ");
        }
        if let Some(options) = schema["anyOf"].as_array() {
            return match options.iter().find(|option| option["x-units"].is_array()) {
                Some(quantity) if options.len() == 2 => measured(quantity) + &limits(&options[0]),
                _ => {
                    let all: Vec<String> = options.iter().map(|o| self.value(o)).collect();
                    all.join(" or ")
                }
            };
        }
        match schema["type"].as_str() {
            Some("integer") => format!("whole number{}", limits(schema)),
            Some("number") => format!("number{}", limits(schema)),
            Some("boolean") => "`true` or `false`".into(),
            Some("string") => "text".into(),
            Some("array") => {
                let item = self.value(&schema["items"]);
                match schema["minItems"].as_u64().zip(schema["maxItems"].as_u64()) {
                    Some((3, 3)) => format!("`[x, y, z]`, each {item}"),
                    Some((least, most)) if least == most => format!("list of {least}, each {item}"),
                    _ => format!("list, each {item}"),
                }
            }
            _ => "a table".into(),
        }
    }
}

/// A quantity in words: what it is, and the unit of bare numbers.
fn measured(quantity: &Value) -> String {
    let name = quantity["x-dimension"].as_str().unwrap_or_default();
    match quantity["x-units"][0].as_str() {
        Some(unit) if !unit.is_empty() => format!("{name} [{unit}]"),
        _ => name.to_owned(),
    }
}

/// The limits of a number, after a comma.
fn limits(number: &Value) -> String {
    let at = |key: &str| number[key].as_f64();
    let limits = (
        at("minimum"),
        at("maximum"),
        at("exclusiveMinimum"),
        at("exclusiveMaximum"),
    );
    match limits {
        (Some(low), Some(high), ..) => format!(", {low} to {high}"),
        (Some(low), None, _, Some(high)) => format!(", {low} to below {high}"),
        (Some(low), ..) => format!(", at least {low}"),
        (_, _, Some(low), _) => format!(", above {low}"),
        _ => String::new(),
    }
}

/// A default: shown where it is short.
fn usual(default: &Value) -> String {
    match default {
        Value::Null | Value::Object(_) => "–".into(),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Number(number) if number.as_f64().is_some_and(|x| x.fract().abs() < 1e-12) => {
            // 24.0 is written 24.
            format!("`{}`", number.as_f64().unwrap_or_default())
        }
        Value::Array(items) if items.iter().all(|item| item == 0.0) => "`[0, 0, 0]`".into(),
        other => format!("`{other}`"),
    }
}

/// What each word of a key means.
fn words(key: &str, schema: &Value, text: &mut String) {
    let choice = [schema, &schema["items"]]
        .into_iter()
        .find(|schema| schema["enum"].is_array());
    let Some(choice) = choice else {
        return;
    };
    let all = choice["enum"].as_array().into_iter().flatten();
    let said = choice["x-taplo"]["docs"]["enumValues"].as_array();
    let Some(said) = said else {
        return;
    };
    let _ = write!(text, "\n`{key}`:\n\n");
    for (word, meaning) in all.zip(said) {
        let meaning = meaning.as_str().unwrap_or_default();
        let _ = writeln!(text, "- `{word}`: {meaning}");
    }
}

/// Writes the units of every dimension that the schema speaks of.
fn units(schema: &Value, text: &mut String) {
    let mut found = BTreeSet::new();
    collect_units(schema, &mut found);
    text.push_str("\n<a id=\"units\"></a>\n\n## Units\n\n| quantity | units, that of bare numbers first |\n|---|---|\n");
    for (name, units) in found {
        let _ = writeln!(text, "| {name} | {units} |");
    }
}

fn collect_units(schema: &Value, found: &mut BTreeSet<(String, String)>) {
    if let (Some(name), Some(units)) =
        (schema["x-dimension"].as_str(), schema["x-units"].as_array())
    {
        let units: Vec<String> = units
            .iter()
            .filter_map(Value::as_str)
            .map(|unit| {
                if unit.is_empty() {
                    "none".into()
                } else {
                    format!("`{unit}`")
                }
            })
            .collect();
        found.insert((name.to_owned(), units.join(", ")));
    }
    match schema {
        Value::Object(map) => map.values().for_each(|below| collect_units(below, found)),
        Value::Array(items) => items.iter().for_each(|below| collect_units(below, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_schema_is_on_the_page() {
        let page = reference();
        let schema = schema();
        for definition in schema["$defs"].as_object().expect("parts").values() {
            for key in keys(definition) {
                assert!(page.contains(&format!("| `{key}` |")), "{key} is missing");
            }
        }
        for part in [
            "## `[solver]`",
            "## `[[fill]]`",
            "## `[materials.NAME]`",
            "**`smooth_union`**",
            "`\"apic\"`: Particles carry",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn values_and_defaults_are_in_words() {
        let page = reference();
        for row in [
            "| `resolution` | a length [m], above 0 | needed |",
            "| `frames` | whole number, 1 to 999999 | needed |",
            "| `at` | `[x, y, z]`, each a length [m] | `[0, 0, 0]` |",
            "| `fps` | a rate [Hz], above 0 | `24` |",
        ] {
            assert!(page.contains(row), "{row} is missing");
        }
    }

    #[test]
    fn every_link_leads_somewhere() {
        let page = reference();
        for link in page.split("](#").skip(1) {
            let name = link.split(')').next().expect("a link ends");
            assert!(page.contains(&format!("<a id=\"{name}\">")), "{name}");
        }
    }

    #[test]
    fn every_preset_is_on_its_page() {
        let page = preset_reference();
        for name in PRESETS.keys() {
            assert!(page.contains(&format!("\n## {name}\n")));
        }
        assert!(page.contains("| `grain_size` | 0.3 mm |"));
    }
}
