//! A scene by another method than its own: the same material and bodies, as many particles, and only the keys that the
//! other method understands.

use super::document::{Method, SeedingDoc, SolverDoc};
use super::node::{Content, Entry, Node};
use super::problem::{Problem, Problems, SceneError};
use super::read::{Defs, Read};
use super::{Scene, load, parse_changed, read_text};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// A scene by another method.
#[derive(Clone, Debug)]
pub struct ByMethod {
    /// The scene.
    pub scene: Scene,
    /// What was changed so that the method takes it, in words.
    pub changes: Vec<String>,
}

/// Loads a scene with the method's own `keys`, each written `key=value` as in `[solver]`, in place of the scene's. Keys of other
/// methods, and those named in `without`, are dropped; the resolution is such that particles are as far apart as in the scene itself.
///
/// # Errors
/// Every problem found, with its place.
pub fn load_by(
    path: &Path,
    overrides: &[String],
    keys: &[&str],
    without: &[&str],
) -> Result<ByMethod, SceneError> {
    let own = load(path, overrides)?;
    let text = read_text(path)?;
    let mut all = overrides.to_vec();
    all.extend(keys.iter().map(|key| format!("solver.{}", key.trim())));
    let mut changes = Vec::new();
    let mut first = |root: &mut Node| changes = drop_foreign(root, without);
    let plain = parse_changed(&text, path, &all, &mut first)?;
    let ratio = f64::from(own.model.spacing) / f64::from(plain.model.spacing);
    if (ratio - 1.0).abs() < 1e-6 {
        return Ok(ByMethod {
            scene: plain,
            changes,
        });
    }
    let resolution = f64::from(plain.model.resolution) * ratio;
    // Six digits are enough, and read better.
    let resolution: f64 = format!("{resolution:.5e}").parse().unwrap_or(resolution);
    all.push(format!("solver.resolution={resolution}"));
    changes.push(format!(
        "solver.resolution is {resolution} m, for particles as far apart as the scene's"
    ));
    let scene = parse_changed(&text, path, &all, &mut |root| {
        drop_foreign(root, without);
    })?;
    Ok(ByMethod { scene, changes })
}

/// A key of `[solver]` that not every method understands.
struct Partial {
    /// The methods that do.
    methods: Vec<Method>,
    /// The word that it is if left out, if it is one.
    default: Option<String>,
}

/// Those keys, from the methods before the colon that their doc comments begin with.
static PARTIAL: LazyLock<BTreeMap<&str, Partial>> = LazyLock::new(|| {
    let mut defs = Defs::default();
    SolverDoc::schema(&mut defs);
    let properties = &defs.0["SolverDoc"]["properties"];
    let partial = |key: &'static str| {
        let (methods, _) = properties[key]["description"].as_str()?.split_once(':')?;
        let methods = methods
            .split(',')
            .map(|word| Method::from_word(word.trim()));
        let methods = methods.collect::<Option<_>>()?;
        let default = properties[key]["default"].as_str().map(str::to_owned);
        Some((key, Partial { methods, default }))
    };
    SolverDoc::KEYS
        .iter()
        .filter_map(|key| partial(key))
        .collect()
});

/// The methods that an entry of `[solver]` is for, if `method` is not one of them. What is so anyway is for all: records of runs
/// repeat it.
fn foreign(entry: &Entry, method: Method) -> Option<&'static [Method]> {
    let partial = PARTIAL.get(entry.key.as_str())?;
    let is_default = matches!((&entry.node.value, &partial.default), (Content::Text(word), Some(default)) if word == default);
    (!partial.methods.contains(&method) && !is_default).then_some(&partial.methods)
}

/// The method that a scene asks for; `None` where whoever reads the tree will tell what is wrong with it.
fn method_of(root: &Node) -> Option<Method> {
    match &root.find("solver")?.find("method")?.value {
        Content::Text(word) => Method::from_word(word),
        _ => None,
    }
}

/// Notes the keys of `[solver]` that the scene's method does not understand.
pub fn check_keys(root: &Node, problems: &mut Problems) {
    let (Some(method), Some(solver)) = (method_of(root), root.find("solver")) else {
        return;
    };
    let Content::Table(entries) = &solver.value else {
        return;
    };
    for entry in entries {
        if let Some(methods) = foreign(entry, method) {
            let key = &entry.key;
            let words: Vec<String> = methods
                .iter()
                .map(|m| format!("\"{}\"", m.word()))
                .collect();
            let wanted = format!("method = {}", words.join(" or "));
            let message = format!("\"solver.{key}\" means something for {wanted} only");
            let help = format!("remove {key}, or choose {wanted}");
            problems.push(Problem::new(entry.key_span.clone(), message).help(help));
        }
    }
}

/// Drops what the scene's method does not understand; returns what was dropped, in words.
fn drop_foreign(root: &mut Node, without: &[&str]) -> Vec<String> {
    let Some(method) = method_of(root) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    let Content::Table(tables) = &mut root.value else {
        return changes;
    };
    for table in tables {
        match (table.key.as_str(), &mut table.node.value) {
            ("solver", Content::Table(keys)) => keys.retain(|entry| {
                let foreign = foreign(entry, method);
                if let Some(methods) = foreign {
                    let names: Vec<&str> = methods.iter().map(|method| method.word()).collect();
                    changes.push(format!(
                        "solver.{} is for {} only, and is left out",
                        entry.key,
                        names.join(", ")
                    ));
                } else if without.contains(&entry.key.as_str()) {
                    changes.push(format!("solver.{} is left out", entry.key));
                    return false;
                }
                foreign.is_none()
            }),
            ("fill", Content::List(fills)) if method == Method::Dem => {
                for (number, fill) in fills.iter_mut().enumerate() {
                    if drop_overlapping(fill) {
                        changes.push(format!("fill.{number}.seeding would lay grains over each other, and is left out"));
                    }
                }
            }
            _ => {}
        }
    }
    changes
}

/// Drops a fill's seeding where it lays particles over each other; tells whether it did.
fn drop_overlapping(fill: &mut Node) -> bool {
    let Content::Table(keys) = &mut fill.value else {
        return false;
    };
    let before = keys.len();
    keys.retain(|entry| {
        let overlapping = [SeedingDoc::Jittered, SeedingDoc::Settled].map(SeedingDoc::word);
        entry.key != "seeding"
            || !matches!(&entry.node.value, Content::Text(word) if overlapping.contains(&word.as_str()))
    });
    keys.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: &str = r#"schema = 1
frames = 2
[solver]
method = "flip"
resolution = "4 cm"
cfl = 0.5
max_step = "1 ms"
[materials.sand]
[[fill]]
material = "sand"
seeding = "settled"
shape = { sphere = { radius = 0.5 } }
"#;

    fn by(keys: &[&str], without: &[&str]) -> ByMethod {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.toml");
        std::fs::write(&path, SCENE).expect("a file");
        load_by(&path, &[], keys, without).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn other_methods_lose_foreign_keys_and_keep_the_spacing() {
        let sph = by(&["method=\"sph\"", "iterations=3"], &[]);
        assert_eq!(
            (sph.scene.method, sph.scene.sph.iterations),
            (Method::Sph, 3)
        );
        assert!((sph.scene.model.spacing - 0.02).abs() < 1e-7);
        assert_eq!(sph.changes.len(), 2, "{:?}", sph.changes);
        assert!(sph.changes[0].starts_with("solver.cfl is for flip"));
        let dem = by(&["method=\"dem\""], &["max_step"]);
        assert!((dem.scene.model.spacing - 0.02).abs() < 1e-5);
        assert!(dem.scene.max_step.is_infinite());
        assert!(
            dem.changes
                .iter()
                .any(|change| change.contains("fill.0.seeding"))
        );
    }

    #[test]
    fn its_own_method_changes_nothing() {
        let own = by(&[], &[]);
        assert!(own.changes.is_empty() && own.scene.method == Method::Flip);
    }

    #[test]
    fn keys_say_whose_they_are() {
        let methods = |key: &str| PARTIAL.get(key).map(|partial| partial.methods.as_slice());
        assert_eq!(methods("resolution"), None);
        assert_eq!(methods("iterations"), Some(&[Method::Sph][..]));
        assert_eq!(methods("overlap"), Some(&[Method::Dem][..]));
        assert_eq!(methods("cfl"), Some(&[Method::Flip, Method::Hybrid][..]));
    }
}
