//! `barchan validate`: runs the cases, tells what each found, and fails where one fails.

use super::say::{duration, grouped, out, talk};
use super::{Failure, start_threads};
use crate::validate::{
    CASES, Case, Finding, METHODS, Method, Outcome, Setting, Size, Trial, method,
};
use serde_json::json;
use std::time::Instant;

/// Arguments of `validate`.
#[derive(clap::Args)]
pub struct ValidateArgs {
    /// Only this case; can be given again [default: all]
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Only this method; can be given again [default: all but those kept for comparison]
    #[arg(long = "method", value_name = "NAME")]
    methods: Vec<String>,
    /// fast: thousands of particles, minutes; full: sweeps up to half a million, hours
    #[arg(long, value_name = "SIZE", default_value = "fast", value_parser = ["fast", "full"])]
    size: String,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// A trial that was made.
struct Made {
    case: &'static Case,
    setting: Setting,
    method: &'static Method,
    outcome: Outcome,
    seconds: f64,
}

/// Runs `validate`.
pub fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    let size = if args.size == "full" {
        Size::Full
    } else {
        Size::Fast
    };
    let (cases, methods) = (chosen_cases(&args.cases)?, chosen_methods(&args.methods)?);
    let began = Instant::now();
    let mut trials = Vec::new();
    for case in cases {
        for method in methods.iter().filter(|method| case.applies_to(method)) {
            for setting in case.settings(size) {
                trials.push(make(case, setting, method, args.json));
            }
        }
    }
    let figures = || trials.iter().flat_map(|made| &made.outcome.findings);
    let (all, failed) = (
        figures().count(),
        figures().filter(|finding| !finding.passes()).count(),
    );
    let took = duration(began.elapsed().as_secs_f64());
    if all == 0 {
        return Err(Failure::Input(
            "none of these cases says anything about that method".into(),
        ));
    }
    talk(&format!(
        "{} of {all} figures are right, in {took}",
        all - failed
    ));
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Run(format!("{failed} of {all} figures are wrong"))),
    }
}

fn chosen_cases(names: &[String]) -> Result<Vec<&'static Case>, Failure> {
    let known = |name: &String| {
        let case = CASES.iter().find(|case| case.name == name);
        case.ok_or_else(|| {
            let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            Failure::Input(format!(
                "there is no case \"{name}\"; there are: {}",
                all.join(", ")
            ))
        })
    };
    match names {
        [] => Ok(CASES.iter().collect()),
        _ => names.iter().map(known).collect(),
    }
}

fn chosen_methods(names: &[String]) -> Result<Vec<&'static Method>, Failure> {
    let known = |name: &String| {
        method(name).ok_or_else(|| {
            let all: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
            Failure::Input(format!(
                "there is no method \"{name}\"; there are: {}",
                all.join(", ")
            ))
        })
    };
    match names {
        [] => Ok(METHODS
            .iter()
            .filter(|method| !method.only_by_name)
            .collect()),
        _ => names.iter().map(known).collect(),
    }
}

/// Makes a trial and tells what it found; one that breaks down found nothing, which is wrong.
fn make(case: &'static Case, setting: Setting, method: &'static Method, as_json: bool) -> Made {
    let began = Instant::now();
    let outcome = (case.measure)(&Trial { setting, method }).unwrap_or_else(|trouble| {
        talk(&format!("{} by {}: {trouble}", case.name, method.name));
        Outcome {
            findings: vec![Finding::broken()],
            ..Outcome::default()
        }
    });
    let made = Made {
        case,
        setting,
        method,
        outcome,
        seconds: began.elapsed().as_secs_f64(),
    };
    for finding in &made.outcome.findings {
        out(&if as_json {
            made.json(finding)
        } else {
            made.line(finding)
        });
    }
    made
}

impl Made {
    fn json(&self, finding: &Finding) -> String {
        let setting = &self.setting;
        json!({
            "case": self.case.name, "form": setting.form, "figure": finding.figure, "unit": finding.unit,
            "method": self.method.name, "angle": setting.angle, "ratio": setting.ratio, "across": setting.across,
            "step": setting.step, "rate": setting.rate, "seeds": setting.seeds,
            "particles": self.outcome.particles, "reference": finding.reference, "obtained": finding.obtained,
            "error": finding.error(), "tolerance": finding.tolerance(), "check": finding.check.word(),
            "pass": finding.passes(), "seconds": self.seconds,
        })
        .to_string()
    }

    fn line(&self, finding: &Finding) -> String {
        let setting = &self.setting;
        let case = format!("{} {}", self.case.name, setting.form);
        format!(
            "{} {:<16} {:<6} {:>4}° {:>5} 1/{:<4} {:>8}  {:<26} {:>9} for {:>9} {:<9} ({} {})  {}",
            if finding.passes() { "right" } else { "WRONG" },
            case.trim_end(),
            self.method.name,
            setting.angle,
            setting.ratio,
            setting.across,
            grouped(self.outcome.particles as f64),
            finding.figure,
            digits(finding.obtained),
            digits(finding.reference),
            finding.unit,
            finding.check.word(),
            digits(finding.tolerance()),
            duration(self.seconds),
        )
    }
}

/// Four digits of a number.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size > 0.0 && size < 1e-3 => format!("{value:.1e}"),
        size if size < 10.0 => format!("{value:.3}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
