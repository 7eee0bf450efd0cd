//! The report: one HTML file that needs nothing else.

use super::record::Record;
use super::trial::Setting;
use barchan_out::plot::{Mark, Plot, STYLE, Series, digits, escaped};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What this page has beyond others: words on the left, and wrong figures marked.
const OWN_STYLE: &str =
    "td:nth-child(-n+4),th:nth-child(-n+4){text-align:left}tr.wrong{background:#fbe3dc}";

/// A figure that is plotted over what was turned.
struct Swept {
    cases: &'static [&'static str],
    figures: &'static [&'static str],
    title: &'static str,
    over: fn(&Setting) -> f64,
}

/// The figures that are plotted over what was turned.
const SWEPT: &[Swept] = &[
    Swept {
        cases: &["pile", "tilt", "drain"],
        figures: &["slope", "onset"],
        title: "angle obtained [°] over the angle asked for [°]",
        over: |setting| setting.angle,
    },
    Swept {
        cases: &["column"],
        figures: &["run-out"],
        title: "run-out [radii] over the aspect ratio",
        over: |setting| setting.ratio,
    },
    Swept {
        cases: &["column"],
        figures: &["height"],
        title: "height that stays [radii] over the aspect ratio",
        over: |setting| setting.ratio,
    },
    Swept {
        cases: &["silo"],
        figures: &["floor pressure"],
        title: "pressure on the floor of a silo [Pa] over the fill [radii]",
        over: |setting| setting.ratio,
    },
];

/// The page of `records`.
pub fn page(records: &[Record], size: &str, seconds: f64) -> String {
    let figures: Vec<_> = records
        .iter()
        .flat_map(|record| &record.outcome.findings)
        .collect();
    let right = figures.iter().filter(|finding| finding.passes()).count();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Barchan: validation</title>\n<style>{STYLE}{OWN_STYLE}</style>\n\
         <h1>Validation</h1>\n<p>{right} of {} figures are right. Barchan {}, size {size}, {} threads, {seconds:.0} s.</p>\n",
        figures.len(),
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
    );
    for plot in swept_plots(records).iter().chain(&curve_plots(records)) {
        html.push_str(&plot.svg());
    }
    table(&mut html, records);
    html.push_str("</html>\n");
    html
}

/// Figures over what was turned, a series for each form, method, resolution and step, and their references.
fn swept_plots(records: &[Record]) -> Vec<Plot> {
    let plot = |swept: &Swept| {
        let mut found: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
        let mut references: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
        for record in records
            .iter()
            .filter(|record| swept.cases.contains(&record.case.name))
        {
            let setting = &record.setting;
            let x = (swept.over)(setting);
            let mut name = format!(
                "{} {} 1/{}",
                record.name(),
                record.method.name,
                setting.across
            );
            if setting.step < 1.0 {
                name += ", half step";
            }
            if setting.rate < 1.0 {
                name += ", half rate";
            }
            for finding in record.outcome.findings.iter() {
                if swept.figures.contains(&finding.figure) {
                    found
                        .entry(name.clone())
                        .or_default()
                        .push([x, finding.obtained]);
                    let reference = references.entry(setting.form.to_owned()).or_default();
                    reference.push([x, finding.reference]);
                }
            }
        }
        let series = |mark: Mark, prefix: &'static str| {
            move |(name, mut points): (String, Vec<[f64; 2]>)| {
                points.sort_by(|a, b| a[0].total_cmp(&b[0]));
                Series {
                    name: format!("{prefix}{name}"),
                    points,
                    mark,
                }
            }
        };
        let found = found.into_iter().map(series(Mark::Dots, ""));
        let references = references
            .into_iter()
            .map(series(Mark::Reference, "reference "));
        Plot {
            title: swept.title.into(),
            series: found.chain(references).collect(),
        }
    };
    SWEPT.iter().map(plot).collect()
}

/// The curves of the trials, those of one kind in one plot; each reference once.
fn curve_plots(records: &[Record]) -> Vec<Plot> {
    let mut plots: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
    for record in records {
        for curve in &record.outcome.curves {
            let series = plots.entry(curve.plot).or_default();
            let known = series.iter().any(|known| known.name == curve.name);
            if !(curve.is_reference && known) {
                series.push(Series {
                    name: curve.name.clone(),
                    points: curve.points.clone(),
                    mark: if curve.is_reference {
                        Mark::Reference
                    } else {
                        Mark::Line
                    },
                });
            }
        }
    }
    let plot = |(title, series): (&str, Vec<Series>)| Plot {
        title: title.into(),
        series,
    };
    plots.into_iter().map(plot).collect()
}

fn table(html: &mut String, records: &[Record]) {
    html.push_str(
        "<table><tr><th>case</th><th>method</th><th>turned</th><th>figure</th><th>particles</th><th>reference</th>\
         <th>obtained</th><th>error</th><th>tolerance</th><th>seconds</th></tr>\n",
    );
    for record in records {
        for finding in &record.outcome.findings {
            let class = if finding.passes() { "right" } else { "wrong" };
            let _ = writeln!(
                html,
                "<tr class=\"{class}\"><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} {}</td><td>{}</td><td>{}</td><td>{} {}</td><td>{:.1}</td></tr>",
                record.name(),
                record.method.name,
                record.turned(),
                finding.figure,
                record.outcome.particles,
                digits(finding.reference),
                finding.unit,
                digits(finding.obtained),
                digits(finding.error()),
                finding.check.word(),
                digits(finding.tolerance()),
                record.seconds,
            );
        }
        if let Some(trouble) = &record.trouble {
            let _ = writeln!(
                html,
                "<tr class=\"wrong\"><td colspan=\"10\">{}</td></tr>",
                escaped(trouble)
            );
        }
    }
    html.push_str("</table>\n");
}
