//! JSON values as TOML text, for the run's record.

use serde_json::Value;
use std::fmt::Write;

/// `value` as an inline TOML value; nulls inside tables are left out.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".into(),
        // JSON's strings, numbers and booleans are TOML's, but for numbers beyond its exponents.
        Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries = map.iter().filter(|(_, value)| !value.is_null());
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{} = {}", quoted(key), inline(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

/// The entries of an object, a line each.
pub fn lines(value: &Value) -> String {
    let mut text = String::new();
    for (key, value) in value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null())
    {
        let _ = writeln!(text, "{} = {}", quoted(key), inline(value));
    }
    text
}

fn quoted(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_toml() {
        let value = json!({ "a": 1.5, "b": { "c d": [1, "x\"y"], "gone": null }, "e": true });
        assert_eq!(
            lines(&value),
            "a = 1.5\nb = { \"c d\" = [1, \"x\\\"y\"] }\ne = true\n"
        );
    }
}
