//! `barchan validate`: runs the cases, tells what each found, and fails where one fails.

use super::say::{duration, grouped, out, talk};
use super::{Failure, start_threads, within};
use crate::validate::{
    CASES, Case, Finding, METHODS, Method, Plan, Record, Size, Skill, Wanted, make_all, method,
    page,
};
use barchan_out::plot::digits;
use barchan_sim::atomic;
use barchan_sim::grain::NAMED;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// Friction angles in place of the case's own, in degrees
    #[arg(long = "angle", value_name = "DEG,…", value_delimiter = ',', value_parser = within(1.0, 60.0))]
    angles: Vec<f64>,
    /// Aspect ratios (or what the case calls its ratio) in place of its own
    #[arg(long = "ratio", value_name = "R,…", value_delimiter = ',', value_parser = within(-60.0, 60.0))]
    ratios: Vec<f64>,
    /// Particles along the case's reference length in place of its own
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = within(4.0, 400.0))]
    across: Vec<f64>,
    /// Distance between particles (and a grid's cells) as a part of what it would be: 0.5 is twice as fine
    #[arg(long, value_name = "PART", value_parser = within(0.1, 1.0))]
    spacing: Option<f64>,
    /// Lengths of steps, as parts of what the method would take
    #[arg(long = "step", value_name = "PART,…", value_delimiter = ',', value_parser = within(0.01, 2.0))]
    steps: Vec<f64>,
    /// Rate of pouring over the usual one, where a case pours
    #[arg(long, value_name = "PART", value_parser = within(0.01, 2.0))]
    rate: Option<f64>,
    /// Seeds that the mean is taken of, where a case knows seeds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: Option<u32>,
    /// Shape of the single grains of dem [default: ball]
    #[arg(long, value_name = "NAME", value_parser = shape)]
    shape: Option<&'static str>,
    /// Only this form, where a case has several: slab or cone, cylinder or channel, …
    #[arg(long, value_name = "NAME")]
    form: Option<String>,
    /// Change a key of the cases' scenes, as in --set solver.law=inertial or --set materials.m.grain_size="1 mm"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Folder for the report, index.html
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Runs `validate`.
pub fn validate(args: &ValidateArgs) -> Result<(), Failure> {
    let threads = start_threads(args.threads);
    let size = if args.size == "full" {
        Size::Full
    } else {
        Size::Fast
    };
    let wanted = Wanted {
        angles: args.angles.clone(),
        ratios: args.ratios.clone(),
        across: args.across.clone(),
        spacing: args.spacing,
        steps: args.steps.clone(),
        rate: args.rate,
        seeds: args.seeds,
        shape: args.shape,
        form: args.form.clone(),
    };
    let (cases, methods) = (chosen_cases(&args.cases)?, chosen_methods(&args.methods)?);
    if let Some(shape) = args.shape
        && !methods.iter().all(|method| method.can(Skill::Grains))
    {
        return Err(Failure::Input(format!(
            "only dem has grains of a shape: --method dem --shape {shape}"
        )));
    }
    let began = Instant::now();
    let mut plans = Vec::new();
    let set: Arc<[String]> = args.set.clone().into();
    for case in cases {
        for method in methods.iter().filter(|method| case.applies_to(method)) {
            let settings = case.settings(method, size, &wanted).into_iter();
            plans.extend(settings.map(|setting| Plan {
                case,
                setting,
                method,
                set: set.clone(),
            }));
        }
    }
    if let Some(form) = &args.form
        && plans.is_empty()
    {
        return Err(Failure::Input(format!(
            "none of these cases has a form \"{form}\"; there are: {}",
            forms().join(", ")
        )));
    }
    let records = make_all(&plans, threads, |record| tell(record, args.json));
    let seconds = began.elapsed().as_secs_f64();
    if let Some(folder) = &args.output {
        write_report(folder, &page(&records, &args.size, seconds))?;
    }
    conclude(&records, seconds)
}

/// The names of all forms of all cases.
fn forms() -> Vec<&'static str> {
    let sweeps = CASES
        .iter()
        .flat_map(|case| case.fast.iter().chain(case.full));
    let mut forms: Vec<&str> = sweeps.map(|sweep| sweep.base.form).collect();
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| !form.is_empty());
    forms
}

fn shape(text: &str) -> Result<&'static str, String> {
    let mut names = NAMED.iter().map(|(name, _)| *name);
    names.find(|name| *name == text).ok_or_else(|| {
        let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        format!("possible: {}", names.join(", "))
    })
}

/// Tells what a trial found.
fn tell(record: &Record, as_json: bool) {
    if let Some(trouble) = &record.trouble {
        talk(&format!(
            "{} by {}: {trouble}",
            record.name(),
            record.method.name
        ));
    }
    for finding in &record.outcome.findings {
        out(&match as_json {
            true => record.json(finding),
            false => line(record, finding),
        });
    }
}

fn write_report(folder: &Path, page: &str) -> Result<(), Failure> {
    let path = folder.join("index.html");
    let written =
        std::fs::create_dir_all(folder).and_then(|()| atomic::write_bytes(&path, page.as_bytes()));
    written.map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
    talk(&format!("report: {}", path.display()));
    Ok(())
}

/// How many are right; a failure where one is wrong.
fn conclude(records: &[Record], seconds: f64) -> Result<(), Failure> {
    let figures = || records.iter().flat_map(|record| &record.outcome.findings);
    let all = figures().count();
    let wrong = figures().filter(|finding| !finding.passes()).count();
    talk(&format!(
        "{} of {all} figures are right, in {}",
        all - wrong,
        duration(seconds)
    ));
    match (all, wrong) {
        (0, _) => Err(Failure::Input(
            "none of these cases says anything about these methods".into(),
        )),
        (_, 0) => Ok(()),
        _ => Err(Failure::Run(format!("{wrong} of {all} figures are wrong"))),
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

/// A figure as a line of text.
fn line(record: &Record, finding: &Finding) -> String {
    format!(
        "{} {:<16} {:<9} {:<28} {:>8}  {:<24} {:>9} for {:>9} {:<9} ({} {})  {}",
        if finding.passes() { "right" } else { "WRONG" },
        record.name(),
        record.method.name,
        record.turned(),
        grouped(record.outcome.particles as f64),
        finding.figure,
        digits(finding.obtained),
        digits(finding.reference),
        finding.unit,
        finding.check.word(),
        digits(finding.tolerance()),
        duration(record.seconds),
    )
}
