//! Declared once, known everywhere: the `table!`, `choice!` and `keywords!` macros turn a declaration with its doc
//! comments into a type, its reader (with every problem's place and the nearest valid name), its JSON Schema and its
//! final value for the run's record.

use super::node::{Content, Entry, Node};
use super::problem::{Problem, Problems, suggest};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// A value that can stand in a scene file.
pub trait Read: Sized {
    /// Reads it, noting what is wrong; `path` names it in messages.
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self>;

    /// What it is where its key is missing; `None` if the key is required.
    fn missing() -> Option<Self> {
        None
    }

    /// Its JSON Schema.
    fn schema(defs: &mut Defs) -> Value;

    /// Its final value, in SI units and degrees.
    fn json(&self) -> Value;
}

/// Named parts of a JSON Schema, each written once.
#[derive(Default)]
pub struct Defs(pub Map<String, Value>);

impl Defs {
    /// A reference to the definition `name`, made by `make` when first asked for.
    pub fn named(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.0.contains_key(name) {
            // Reserved first, so that a shape may hold shapes.
            self.0.insert(name.to_owned(), Value::Null);
            let definition = make(self);
            self.0.insert(name.to_owned(), definition);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// The entries of a table being read.
pub struct Fields<'a> {
    entries: &'a [Entry],
    path: &'a str,
    /// Where to point when a key is missing.
    span: Range<usize>,
}

impl<'a> Fields<'a> {
    /// Opens a table, noting every key that is not one of `known`.
    pub fn open(
        node: &'a Node,
        path: &'a str,
        known: &[&str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let Content::Table(entries) = &node.value else {
            return problems.none(wrong_kind(node, path, "a table"));
        };
        for entry in entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()))
        {
            let message = format!("unknown key \"{}\"", joined(path, &entry.key));
            problems.push(
                Problem::new(entry.key_span.clone(), message).help(suggest(&entry.key, known)),
            );
        }
        Some(Self {
            entries,
            path,
            span: header(node, entries),
        })
    }

    /// Reads the field `key`, or takes its default.
    pub fn take<T: Read>(
        &self,
        key: &str,
        default: Option<T>,
        problems: &mut Problems,
    ) -> Option<T> {
        let path = joined(self.path, key);
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => T::read(&entry.node, &path, problems),
            None => default.or_else(|| {
                let message = format!("\"{path}\" is missing");
                problems.none(
                    Problem::new(self.span.clone(), message).help(format!("add the key {key}")),
                )
            }),
        }
    }
}

/// Where a table begins: its first key if it has one, for long tables would underline pages.
fn header(node: &Node, entries: &[Entry]) -> Range<usize> {
    match entries.first() {
        Some(first) if node.span.len() > 80 => first.key_span.clone(),
        _ => node.span.clone(),
    }
}

/// `path.key`, or `key` at the top.
pub fn joined(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The problem of a value that is not of the `wanted` kind.
pub fn wrong_kind(node: &Node, path: &str, wanted: &str) -> Problem {
    Problem::new(
        node.span.clone(),
        format!("\"{path}\" must be {wanted}, not {}", node.value.kind()),
    )
}

/// Joins the lines of a doc comment.
pub fn doc_text(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}

/// Declares a table of keys. A field is required unless it has `= default` or its type knows what missing means.
#[macro_export]
#[doc(hidden)]
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $( $(#[doc = $field_doc:literal])* $field:ident : $type:ty $(= $default:expr)?, )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            /// Where it stands in the scene's text.
            #[allow(dead_code)] // every table has it; not every table is ever pointed at
            pub span: std::ops::Range<usize>,
            $( $(#[doc = $field_doc])* pub $field: $type, )*
        }

        impl $name {
            /// The keys it may have.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        impl $crate::scene::read::Read for $name {
            fn read(
                node: &$crate::scene::node::Node,
                path: &str,
                problems: &mut $crate::scene::problem::Problems,
            ) -> Option<Self> {
                let fields = $crate::scene::read::Fields::open(node, path, Self::KEYS, problems)?;
                $( let $field = fields.take(stringify!($field), $crate::table!(@default $type $(, $default)?), problems); )*
                Some(Self { span: node.span.clone(), $( $field: $field?, )* })
            }

            fn missing() -> Option<Self> {
                Some(Self { span: 0..0, $( $field: ($crate::table!(@default $type $(, $default)?) as Option<$type>)?, )* })
            }

            fn schema(defs: &mut $crate::scene::read::Defs) -> serde_json::Value {
                use $crate::scene::read::{IntoField, Read, doc_text, object_schema};
                defs.named(stringify!($name), |defs| {
                    let fields = vec![$( (
                        stringify!($field),
                        doc_text(&[$($field_doc),*]),
                        <$type as Read>::schema(defs),
                        $crate::table!(@default $type $(, $default)?) as Option<$type>,
                    ).into_field(), )*];
                    object_schema(&doc_text(&[$($doc),*]), fields)
                })
            }

            fn json(&self) -> serde_json::Value {
                let mut map = serde_json::Map::new();
                $( map.insert(stringify!($field).to_owned(), $crate::scene::read::Read::json(&self.$field)); )*
                serde_json::Value::Object(map)
            }
        }
    };
    (@default $type:ty, $default:expr) => { Some($default) };
    (@default $type:ty) => { <$type as $crate::scene::read::Read>::missing() };
}

/// A field of an object's schema.
pub struct FieldSchema {
    name: &'static str,
    schema: Value,
    required: bool,
}

/// Turns what `table!` knows of a field into its schema.
pub trait IntoField {
    /// Does so.
    fn into_field(self) -> FieldSchema;
}

impl<T: Read> IntoField for (&'static str, String, Value, Option<T>) {
    fn into_field(self) -> FieldSchema {
        let (name, doc, schema, default) = self;
        let required = default.is_none();
        let mut described = match schema {
            Value::Object(map) if !map.contains_key("$ref") => Value::Object(map),
            reference => json!({ "allOf": [reference] }),
        };
        described["description"] = doc.into();
        if let Some(default) = default.map(|value| value.json())
            && !default.is_null()
        {
            described["default"] = default;
        }
        FieldSchema {
            name,
            schema: described,
            required,
        }
    }
}

/// The schema of a table.
pub fn object_schema(doc: &str, fields: Vec<FieldSchema>) -> Value {
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name)
        .collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), field.schema.clone()))
        .collect();
    let mut schema = json!({
        "type": "object",
        "description": doc,
        "properties": properties,
        "x-order": fields.iter().map(|field| field.name).collect::<Vec<_>>(),
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Declares a set of words.
#[macro_export]
#[doc(hidden)]
macro_rules! keywords {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident { $( $(#[doc = $variant_doc:literal])* $variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant, )+ }

        impl $name {
            /// Every word, in the order of declaration.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }

            /// What `word` stands for, if it is one of the words.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$variant), )+ _ => None }
            }
        }

        impl $crate::scene::read::Read for $name {
            fn read(
                node: &$crate::scene::node::Node,
                path: &str,
                problems: &mut $crate::scene::problem::Problems,
            ) -> Option<Self> {
                let word = $crate::scene::read::read_word(node, path, Self::WORDS, problems)?;
                Self::from_word(word)
            }

            fn schema(_: &mut $crate::scene::read::Defs) -> serde_json::Value {
                use $crate::scene::read::{doc_text, words_schema};
                words_schema(Self::WORDS, &[$( doc_text(&[$($variant_doc),*]) ),+])
            }

            fn json(&self) -> serde_json::Value {
                self.word().into()
            }
        }
    };
}

/// The schema of words, with what each means where the editors of TOML look for it.
pub fn words_schema(words: &[&str], meanings: &[String]) -> Value {
    json!({ "enum": words, "x-taplo": { "docs": { "enumValues": meanings } } })
}

/// Reads one of `words`.
pub fn read_word(
    node: &Node,
    path: &str,
    words: &[&'static str],
    problems: &mut Problems,
) -> Option<&'static str> {
    let Content::Text(text) = &node.value else {
        let problem = wrong_kind(node, path, "a word in quotation marks");
        return problems.none(problem.help(format!("possible: {}", words.join(", "))));
    };
    words
        .iter()
        .find(|word| *word == text)
        .copied()
        .or_else(|| {
            let problem = Problem::new(
                node.span.clone(),
                format!("\"{path}\" cannot be \"{text}\""),
            );
            problems.none(problem.help(suggest(text, words)))
        })
}

/// Declares alternatives, each a table under its own name: `{ sphere = { radius = 1 } }`. A name alone, `"ground"`,
/// stands for its table with all defaults.
#[macro_export]
#[doc(hidden)]
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident { $( $(#[doc = $variant_doc:literal])* $variant:ident($type:ty) = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant($type), )+ }

        impl $name {
            /// Where it stands in the scene's text.
            pub fn span(&self) -> std::ops::Range<usize> {
                match self { $( Self::$variant(inner) => inner.span.clone(), )+ }
            }
        }

        impl $crate::scene::read::Read for $name {
            fn read(
                node: &$crate::scene::node::Node,
                path: &str,
                problems: &mut $crate::scene::problem::Problems,
            ) -> Option<Self> {
                use $crate::scene::read::{Alternative, Read, joined, open_choice};
                const WORDS: &[&str] = &[$($word),+];
                match open_choice(node, path, WORDS, problems)? {
                    $( Alternative::Full($word, inner) => {
                        <$type as Read>::read(inner, &joined(path, $word), problems).map(Self::$variant)
                    } )+
                    $( Alternative::Bare($word) => match <$type as Read>::missing() {
                        Some(mut inner) => {
                            inner.span = node.span.clone();
                            Some(Self::$variant(inner))
                        }
                        None => problems.none($crate::scene::read::needs_keys(node, path, $word)),
                    }, )+
                    _ => None,
                }
            }

            fn schema(defs: &mut $crate::scene::read::Defs) -> serde_json::Value {
                use $crate::scene::read::{Read, alternative_schemas, doc_text};
                defs.named(stringify!($name), |defs| {
                    let mut all = Vec::new();
                    $( {
                        let bare = <$type as Read>::missing().is_some();
                        let schema = <$type as Read>::schema(defs);
                        all.extend(alternative_schemas($word, &doc_text(&[$($variant_doc),*]), schema, bare));
                    } )+
                    serde_json::json!({ "description": doc_text(&[$($doc),*]), "anyOf": all })
                })
            }

            fn json(&self) -> serde_json::Value {
                match self { $( Self::$variant(inner) => serde_json::json!({ $word: $crate::scene::read::Read::json(inner) }), )+ }
            }
        }
    };
}

/// How an alternative was written.
pub enum Alternative<'a> {
    /// With its table.
    Full(&'static str, &'a Node),
    /// By its name alone.
    Bare(&'static str),
}

/// Finds which alternative is meant.
pub fn open_choice<'a>(
    node: &'a Node,
    path: &str,
    words: &[&'static str],
    problems: &mut Problems,
) -> Option<Alternative<'a>> {
    match &node.value {
        Content::Text(_) => read_word(node, path, words, problems).map(Alternative::Bare),
        Content::Table(entries) if entries.len() == 1 => {
            let entry = &entries[0];
            match words.iter().find(|word| **word == entry.key) {
                Some(word) => Some(Alternative::Full(word, &entry.node)),
                None => {
                    let problem = Problem::new(
                        entry.key_span.clone(),
                        format!("\"{path}\" cannot be \"{}\"", entry.key),
                    );
                    problems.none(problem.help(suggest(&entry.key, words)))
                }
            }
        }
        Content::Table(entries) if entries.iter().any(|entry| words.contains(&&*entry.key)) => {
            let named = |entry: &&Entry| words.contains(&&*entry.key);
            let (choices, others): (Vec<_>, Vec<_>) = entries.iter().partition(named);
            let word = &choices[0].key;
            let problem = match others.first() {
                Some(other) => Problem::new(
                    other.key_span.clone(),
                    format!("\"{}\" stands beside {word}, and belongs to it", other.key),
                )
                .help(format!("write {{ {word} = {{ …, {} = … }} }}", other.key)),
                None => Problem::new(
                    choices[1].key_span.clone(),
                    format!("\"{path}\" cannot be {word} and {} at once", choices[1].key),
                )
                .help("keep one of them"),
            };
            problems.none(problem)
        }
        _ => {
            let wanted = format!(
                "a name or a table with one name, such as {{ {} = {{ … }} }}",
                words[0]
            );
            problems.none(
                wrong_kind(node, path, &wanted).help(format!("possible: {}", words.join(", "))),
            )
        }
    }
}

/// The problem of a bare name whose table has required keys.
pub fn needs_keys(node: &Node, path: &str, word: &str) -> Problem {
    let message = format!("\"{path}\": \"{word}\" needs its measures");
    Problem::new(node.span.clone(), message).help(format!("write {{ {word} = {{ … }} }}"))
}

/// Schemas of one alternative: the table, and the bare name where that is allowed.
pub fn alternative_schemas(word: &str, doc: &str, schema: Value, bare: bool) -> Vec<Value> {
    let mut all = vec![json!({
        "type": "object",
        "description": doc,
        "properties": { word: schema },
        "required": [word],
        "additionalProperties": false,
    })];
    if bare {
        all.push(json!({ "const": word, "description": doc }));
    }
    all
}

impl<T: Read> Read for Option<T> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        T::read(node, path, problems).map(Some)
    }

    fn missing() -> Option<Self> {
        Some(None)
    }

    fn schema(defs: &mut Defs) -> Value {
        T::schema(defs)
    }

    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Read::json)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let Content::List(items) = &node.value else {
            return problems.none(wrong_kind(node, path, "a list"));
        };
        // Every item is read, so that every problem is found.
        let read: Vec<Option<T>> = items
            .iter()
            .enumerate()
            .map(|(i, item)| T::read(item, &format!("{path}[{i}]"), problems))
            .collect();
        read.into_iter().collect()
    }

    fn missing() -> Option<Self> {
        Some(Vec::new())
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "type": "array", "items": T::schema(defs) })
    }

    fn json(&self) -> Value {
        self.iter().map(Read::json).collect()
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let Content::Table(entries) = &node.value else {
            return problems.none(wrong_kind(node, path, "a table"));
        };
        let read: Vec<Option<(String, T)>> = entries
            .iter()
            .map(|e| {
                T::read(&e.node, &joined(path, &e.key), problems)
                    .map(|value| (e.key.clone(), value))
            })
            .collect();
        read.into_iter().collect()
    }

    fn missing() -> Option<Self> {
        Some(Self::new())
    }

    fn schema(defs: &mut Defs) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(defs) })
    }

    fn json(&self) -> Value {
        Value::Object(
            self.iter()
                .map(|(key, value)| (key.clone(), value.json()))
                .collect(),
        )
    }
}

impl Read for bool {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Content::Bool(flag) => Some(flag),
            _ => problems.none(wrong_kind(node, path, "true or false")),
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "boolean" })
    }

    fn json(&self) -> Value {
        (*self).into()
    }
}

/// A string and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The string.
    pub value: String,
    /// Where it stands.
    pub span: Range<usize>,
}

impl Read for Text {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Content::Text(text) => Some(Self {
                value: text.clone(),
                span: node.span.clone(),
            }),
            _ => problems.none(wrong_kind(node, path, "a string")),
        }
    }

    fn schema(_: &mut Defs) -> Value {
        json!({ "type": "string" })
    }

    fn json(&self) -> Value {
        self.value.clone().into()
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<const LEAST: u64, const MOST: u64 = { u64::MAX }>(pub u64);

impl<const LEAST: u64, const MOST: u64> Read for Count<LEAST, MOST> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = match node.value {
            Content::Integer(number) => number,
            Content::Float(_) => {
                let message = format!(
                    "\"{path}\" must be a whole number, written without a point or an exponent"
                );
                return problems.none(Problem::new(node.span.clone(), message));
            }
            _ => return problems.none(wrong_kind(node, path, "a whole number")),
        };
        // Files store counts in 64 bits, of which TOML can write 63.
        match u64::try_from(number) {
            Ok(count) if (LEAST..=MOST).contains(&count) => Some(Self(count)),
            // More than 64 bits hold is too many as well.
            _ if number > i128::from(LEAST) => {
                let message = format!("\"{path}\" must be at most {MOST}, got {number}");
                problems.none(Problem::new(node.span.clone(), message))
            }
            _ => {
                let message = format!("\"{path}\" must be at least {LEAST}, got {number}");
                problems.none(Problem::new(node.span.clone(), message))
            }
        }
    }

    fn schema(_: &mut Defs) -> Value {
        let mut schema = json!({ "type": "integer", "minimum": LEAST });
        if MOST < u64::MAX {
            schema["maximum"] = MOST.into();
        }
        schema
    }

    fn json(&self) -> Value {
        self.0.into()
    }
}
