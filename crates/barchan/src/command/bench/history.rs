//! `barchan bench --history`: what earlier benchmarks found, as a table and as plots.

use crate::command::Failure;
use crate::command::say::{grouped, out, talk};
use barchan_out::plot::{Mark, Plot, STYLE, Series};
use barchan_sim::atomic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The figures that tell how fast something is, the first that a line has counts; all but the last are the better the larger.
const FIGURES: [&str; 5] = [
    "particle_steps_per_second",
    "grain_steps_per_second",
    "particles_per_second",
    "bytes_per_second",
    "seconds",
];
/// The largest file that is read [bytes].
const MOST_BYTES: u64 = 64 << 20;

/// One measurement.
struct Entry {
    name: String,
    figure: &'static str,
    value: f64,
    time: u64,
    commit: String,
    /// Machine, threads and amount of work: only the like can be compared.
    circumstances: String,
}

/// Runs `bench --history`: prints the table, and writes a page with plots to `folder` if one is given.
pub fn history(file: &Path, folder: Option<&Path>) -> Result<(), Failure> {
    let entries = read(file)?;
    let mut groups: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for entry in &entries {
        let group = (entry.name.as_str(), entry.circumstances.as_str());
        groups.entry(group).or_default().push(entry);
    }
    for ((name, circumstances), group) in &groups {
        out(&format!("{name}  ({circumstances})"));
        for (number, entry) in group.iter().enumerate() {
            let before = number.checked_sub(1).map(|before| group[before].value);
            out(&row(entry, before));
        }
    }
    let Some(folder) = folder else {
        return Ok(());
    };
    let path = folder.join("index.html");
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| atomic::write_bytes(&path, page(&groups).as_bytes()));
    written.map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
    talk(&format!("open {}", path.display()));
    Ok(())
}

fn row(entry: &Entry, before: Option<f64>) -> String {
    let change = before.map_or(String::new(), |before| {
        format!("{:+.1} %", 100.0 * (entry.value - before) / before)
    });
    let value = match entry.figure {
        "seconds" => format!("{:.3}", entry.value),
        _ => grouped(entry.value),
    };
    format!(
        "  {}  {:18} {value:>16} {:26} {change:>9}",
        date(entry.time),
        entry.commit,
        entry.figure.replace('_', " ")
    )
}

fn read(file: &Path) -> Result<Vec<Entry>, Failure> {
    let refuse =
        |reason: String| Failure::Input(format!("cannot read {}: {reason}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| refuse(error.to_string()))?;
    if !size.is_file() || size.len() > MOST_BYTES {
        return Err(refuse("it is not a file of benchmarks".into()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| refuse(error.to_string()))?;
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match entry(line) {
            Some(entry) => entries.push(entry),
            // The other lines are still worth telling about.
            None if line.trim().is_empty() => {}
            None => talk(&format!(
                "warning: line {} of {} is no benchmark, and is left out",
                number + 1,
                file.display()
            )),
        }
    }
    if entries.is_empty() {
        return Err(refuse(
            "there are no benchmarks in it; make some with barchan bench NAME --append FILE".into(),
        ));
    }
    entries.sort_by_key(|entry| entry.time);
    Ok(entries)
}

fn entry(line: &str) -> Option<Entry> {
    let line: Value = serde_json::from_str(line).ok()?;
    let figure = FIGURES.into_iter().find(|key| line[*key].is_number())?;
    let text = |key: &str| line[key].as_str().unwrap_or("unknown").to_owned();
    let amount = ["particles", "grains", "triangles"]
        .into_iter()
        .find_map(|key| Some(format!(", {} {key}", grouped(line[key].as_f64()?))));
    Some(Entry {
        name: line["name"].as_str()?.to_owned(),
        figure,
        value: line[figure].as_f64().filter(|value| value.is_finite())?,
        time: line["time"].as_u64()?,
        commit: text("commit"),
        circumstances: format!(
            "{}, {} threads{}",
            text("machine"),
            line["threads"],
            amount.unwrap_or_default()
        ),
    })
}

/// A plot each benchmark, in the order of measuring; a line each set of circumstances.
fn page(groups: &BTreeMap<(&str, &str), Vec<&Entry>>) -> String {
    let mut plots: BTreeMap<&str, Plot> = BTreeMap::new();
    for ((name, circumstances), group) in groups {
        let plot = plots.entry(name).or_insert_with(|| Plot {
            title: format!("{name}: {}, in order", group[0].figure.replace('_', " ")),
            series: Vec::new(),
        });
        let points = group.iter().enumerate();
        plot.series.push(Series {
            name: (*circumstances).to_owned(),
            points: points
                .map(|(i, entry)| [(i + 1) as f64, entry.value])
                .collect(),
            mark: Mark::Dots,
        });
    }
    let plots: String = plots.values().map(Plot::svg).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Barchan: benchmarks</title>\n<style>{STYLE}</style>\n\
         <h1>Benchmarks</h1>\n{plots}</html>\n"
    )
}

/// The day of a time in seconds since 1970, as 2026-11-15 (Hinnant's civil_from_days).
fn date(time: u64) -> String {
    let days = time / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year + 400 * era, month + 3),
        _ => (year + 400 * era + 1, month - 9),
    };
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_794_700_800), "2026-11-15");
    }

    #[test]
    fn lines_that_are_no_benchmark_are_none() {
        assert!(entry("{}").is_none() && entry("not json").is_none());
        let line = r#"{"name":"flip","particles":10,"particle_steps_per_second":2.0,"seconds":1,"time":3,"threads":2}"#;
        let entry = entry(line).expect("a benchmark");
        assert_eq!(entry.figure, "particle_steps_per_second");
        assert_eq!(entry.circumstances, "unknown, 2 threads, 10 particles");
    }
}
