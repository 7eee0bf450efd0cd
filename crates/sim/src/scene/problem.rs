//! What is wrong with a scene, where, and what to do about it.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Something wrong at a place in the text.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Byte range in the text, overrides after the end of the file.
    pub span: Range<usize>,
    /// The rule that was broken, with the value found.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without advice.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
        }
    }

    /// The same with advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All problems found so far: a scene is read to its end before anyone complains.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Notes a problem and gives nothing, for `return problems.none(…)`.
    pub fn none<T>(&mut self, problem: Problem) -> Option<T> {
        self.push(problem);
        None
    }

    /// True where nothing is wrong yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The messages alone.
    pub fn messages(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|problem| problem.message.clone())
            .collect()
    }
}

/// The text that was read: the file, and the overrides from the command line.
#[derive(Clone, Debug)]
pub struct Source {
    /// What to call the file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// One override a line.
    pub overrides: String,
}

/// The scene cannot be used: every problem with its place.
#[derive(Debug)]
pub struct SceneError {
    /// At least one problem.
    pub problems: Vec<SceneProblem>,
}

/// One problem, ready to be shown with the line it stands on.
#[derive(Debug)]
pub struct SceneProblem {
    problem: Problem,
    source: Arc<NamedSource<String>>,
}

impl SceneError {
    /// Joins problems with the text they stand in.
    pub fn new(source: &Source, problems: Problems) -> Self {
        let file = Arc::new(NamedSource::new(&source.name, source.text.clone()));
        let overrides = Arc::new(NamedSource::new("--set", source.overrides.clone()));
        let length = source.text.len();
        let mut all = problems.0;
        all.sort_by_key(|problem| problem.span.start);
        let locate = |mut problem: Problem| {
            let in_overrides = problem.span.start >= length && !source.overrides.is_empty();
            let (text, source) = if in_overrides {
                problem.span = problem.span.start - length..problem.span.end.saturating_sub(length);
                (source.overrides.len(), overrides.clone())
            } else {
                (length, file.clone())
            };
            problem.span = problem.span.start.min(text)..problem.span.end.min(text);
            SceneProblem { problem, source }
        };
        Self {
            problems: all.into_iter().map(locate).collect(),
        }
    }

    /// A problem with the file as a whole.
    pub fn whole(name: &str, message: impl Into<String>, help: &str) -> Self {
        let problem = Problem::new(0..0, message).help(help);
        Self {
            problems: vec![SceneProblem {
                problem,
                source: Arc::new(NamedSource::new(name, String::new())),
            }],
        }
    }
}

impl fmt::Display for SceneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        f.write_str(&messages.join("; "))
    }
}

impl std::error::Error for SceneError {}

impl fmt::Display for SceneProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for SceneProblem {}

impl Diagnostic for SceneProblem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem
            .help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.source.inner().is_empty()).then_some(&*self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span.clone();
        let label = LabeledSpan::new_primary_with_span(Some("here".into()), span);
        (!self.source.inner().is_empty()).then(|| Box::new(std::iter::once(label)) as Box<_>)
    }
}

/// The name nearest to `wrong` among `right`, if one is near enough to be meant.
pub fn nearest<'a>(wrong: &str, right: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let closeness = |name: &str| {
        strsim::jaro_winkler(wrong, name).max(strsim::normalized_damerau_levenshtein(wrong, name))
    };
    right
        .into_iter()
        .map(|name| (closeness(name), name))
        .filter(|(closeness, _)| *closeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Advice for an unknown name: the nearest right one, or all of them.
pub fn suggest(wrong: &str, right: &[&str]) -> String {
    match nearest(wrong, right.iter().copied()) {
        Some(name) => format!("did you mean \"{name}\"? Possible: {}", right.join(", ")),
        None => format!("possible: {}", right.join(", ")),
    }
}
