//! The scene file as a tree of values that know where they stand, with `--set` overrides merged in.
//!
//! The only file that knows the TOML parser.

use super::problem::{Problem, Problems};
use std::ops::Range;
use toml_spanner::{Arena, Item, Value};

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub struct Node {
    /// Byte range in the text; overrides stand after the end of the file.
    pub span: Range<usize>,
    /// What stands there.
    pub value: Content,
}

/// The kinds of values a scene file has.
#[derive(Clone, Debug)]
pub enum Content {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// A number with a point.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A list.
    List(Vec<Node>),
    /// Keys and values.
    Table(Vec<Entry>),
    /// A date, which no key takes.
    Date,
}

/// A key, where it stands, and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Byte range of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The value of `key`, if this is a table that has it.
    pub fn find(&self, key: &str) -> Option<&Self> {
        let Content::Table(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.node)
    }
}

impl Content {
    /// What to call it in a message.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Date => "a date",
        }
    }
}

/// A table without keys.
pub fn empty() -> Node {
    Node {
        span: 0..0,
        value: Content::Table(Vec::new()),
    }
}

/// Parses `text`; its spans are moved by `offset`.
pub fn parse(text: &str, offset: usize) -> Result<Node, Problem> {
    let arena = Arena::new();
    let document = toml_spanner::parse(text, &arena).map_err(|error| {
        let span = error
            .primary_label()
            .map_or(error.span(), |(span, _)| span)
            .range();
        Problem::new(offset + span.start..offset + span.end, error.message(text))
    })?;
    let mut root = convert(document.table().as_item(), offset, 0)?;
    root.span = offset..offset + text.len();
    Ok(root)
}

/// Tables and lists within each other, at most; deeper ones would exhaust the stack.
const MOST_DEPTH: usize = 64;

fn convert(item: &Item<'_>, offset: usize, depth: usize) -> Result<Node, Problem> {
    let shift = |span: Range<usize>| span.start + offset..span.end + offset;
    let span = shift(item.span().range());
    if depth > MOST_DEPTH {
        let message = format!("keys and lists are nested more than {MOST_DEPTH} deep");
        return Err(Problem::new(span, message));
    }
    let entry = |key: &toml_spanner::Key<'_>, item: &Item<'_>| {
        Ok(Entry {
            key: key.name.to_owned(),
            key_span: shift(key.span.range()),
            node: convert(item, offset, depth + 1)?,
        })
    };
    let value = match item.value() {
        Value::String(text) => Content::Text((*text).to_owned()),
        Value::Integer(number) => Content::Integer(number.as_i128()),
        Value::Float(number) => Content::Float(*number),
        Value::Boolean(flag) => Content::Bool(*flag),
        Value::DateTime(_) => Content::Date,
        Value::Array(array) => {
            let items = array.iter().map(|item| convert(item, offset, depth + 1));
            Content::List(items.collect::<Result<_, _>>()?)
        }
        Value::Table(table) => {
            let entries = table.iter().map(|(key, item)| entry(key, item));
            Content::Table(entries.collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { span, value })
}

/// Merges the override `path = value` whose text begins at `offset`; a path goes through tables by key and through
/// lists by number.
pub fn apply_override(root: &mut Node, text: &str, offset: usize, problems: &mut Problems) {
    let Some((path, value)) = text.split_once('=') else {
        let message = "an override is written key=value, for example solver.resolution=\"4 mm\"";
        problems.push(Problem::new(offset..offset + text.len(), message));
        return;
    };
    let value_offset = offset + path.len() + 1;
    let node = match parse(&format!("v={value}"), value_offset.saturating_sub(2)) {
        Ok(Node {
            value: Content::Table(mut entries),
            ..
        }) if entries.len() == 1 => entries.remove(0).node,
        // What is not a TOML value is text: shells eat quotation marks.
        _ => Node {
            span: value_offset..offset + text.len(),
            value: Content::Text(value.trim().to_owned()),
        },
    };
    let span = offset..offset + path.len();
    if let Err(message) = place(root, path.trim(), &span, node) {
        problems.push(Problem::new(span, message));
    }
}

/// Puts `node` where `path` leads, making tables on the way.
fn place(root: &mut Node, path: &str, span: &Range<usize>, node: Node) -> Result<(), String> {
    if path.split('.').count() > MOST_DEPTH {
        return Err(format!("a path may have at most {MOST_DEPTH} keys"));
    }
    let mut at = root;
    for segment in path.split('.') {
        let segment = segment.trim().trim_matches('"');
        if segment.is_empty() {
            return Err(format!("\"{path}\" is not a path of keys"));
        }
        at = match &mut at.value {
            Content::Table(entries) => {
                let found = entries.iter().position(|entry| entry.key == segment);
                let index = found.unwrap_or_else(|| {
                    entries.push(Entry {
                        key: segment.to_owned(),
                        key_span: span.clone(),
                        node: Node {
                            span: span.clone(),
                            value: Content::Table(Vec::new()),
                        },
                    });
                    entries.len() - 1
                });
                &mut entries[index].node
            }
            Content::List(items) => {
                let count = items.len();
                let index = segment.parse::<usize>().ok().filter(|index| *index < count);
                let index = index.ok_or_else(|| {
                    format!(
                        "\"{segment}\" in \"{path}\" must be a number from 0 to {}",
                        count.saturating_sub(1)
                    )
                })?;
                &mut items[index]
            }
            other => {
                return Err(format!(
                    "\"{path}\" leads through {}, not a table",
                    other.kind()
                ));
            }
        };
    }
    *at = node;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(scene: &str, overrides: &[&str]) -> (String, Vec<String>) {
        let mut root = parse(scene, 0).unwrap();
        let mut problems = Problems::default();
        for text in overrides {
            apply_override(&mut root, text, scene.len(), &mut problems);
        }
        (format!("{:?}", plain(&root)), problems.messages())
    }

    fn plain(node: &Node) -> serde_json::Value {
        match &node.value {
            Content::Text(text) => text.clone().into(),
            Content::Integer(number) => (*number as i64).into(),
            Content::Float(number) => (*number).into(),
            Content::Bool(flag) => (*flag).into(),
            Content::List(items) => items.iter().map(plain).collect(),
            Content::Table(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), plain(&e.node)))
                    .collect(),
            ),
            Content::Date => serde_json::Value::Null,
        }
    }

    #[test]
    fn overrides_reach_tables_lists_and_new_keys() {
        let scene = "a = 1\n[b]\nc = 'x'\n[[d]]\ne = [1, 2]\n";
        let (tree, problems) = set(scene, &["a=2.5", "b.c=4 mm", "d.0.e.1=true", "f.g={h = 1}"]);
        assert!(problems.is_empty(), "{problems:?}");
        let (expected, _) = set(
            "a = 2.5\n[b]\nc = '4 mm'\n[[d]]\ne = [1, true]\n[f.g]\nh = 1",
            &[],
        );
        assert_eq!(tree, expected);
    }

    #[test]
    fn bad_overrides_say_why() {
        let scene = "a = 1\n[[d]]\ne = 1\n";
        for (text, reason) in [
            ("a", "written key=value"),
            ("d.1.e=2", "must be a number from 0 to 0"),
            ("a.b=1", "leads through a number"),
            ("=1", "not a path"),
        ] {
            let (_, problems) = set(scene, &[text]);
            assert!(
                problems.len() == 1 && problems[0].contains(reason),
                "{text}: {problems:?}"
            );
        }
    }
}
