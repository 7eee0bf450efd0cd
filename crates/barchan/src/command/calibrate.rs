//! `barchan calibrate`: which contacts between grains give which angle of repose, found by pouring piles of them.

use super::say::{out, talk};
use super::{Failure, start_threads, within};
use crate::validate::{Grains, WAYS, Way};
use barchan_out::plot::{Mark, Plot, Series};
use barchan_sim::atomic;
use barchan_sim::grain::NAMED;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `calibrate`.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Shapes of grains [default: all that have a name]
    #[arg(long = "shape", value_name = "NAME")]
    shapes: Vec<String>,
    /// Coefficients of friction to try, instead of the table's
    #[arg(long, value_delimiter = ',', value_parser = within(0.0, 100.0))]
    friction: Vec<f64>,
    /// Coefficient of rolling resistance to try them with
    #[arg(long, default_value_t = 0.0, requires = "friction", value_parser = within(0.0, 100.0))]
    rolling: f64,
    /// How the angle is measured: a slab or a cone poured, a bed drained, a layer tilted
    #[arg(long, value_name = "WAY", default_value = "slab", value_parser = way)]
    by: &'static Way,
    /// Rate of pouring over the usual one
    #[arg(long, default_value_t = 1.0, value_parser = within(0.01, 10.0))]
    rate: f64,
    /// Grains from the middle of a pile to its foot, or along the bed
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(8..=400))]
    across: u32,
    /// Piles to take the mean of
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// Draw the angles over the friction into an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Friction and rolling resistance along which the table of balls goes: what does not resist rolling runs off like water.
const BALLS: [(f64, f64); 9] = [
    (0.08, 0.01),
    (0.12, 0.025),
    (0.2, 0.05),
    (0.3, 0.1),
    (0.4, 0.2),
    (0.54, 0.3),
    (0.76, 0.56),
    (1.0, 1.0),
    (1.2, 2.0),
];
/// The same for composites, which hold each other by their form: only what friction cannot hold, rolling resistance must.
const COMPOSITES: [(f64, f64); 8] = [
    (0.05, 0.0),
    (0.1, 0.0),
    (0.2, 0.0),
    (0.35, 0.0),
    (0.6, 0.0),
    (0.9, 0.0),
    (1.0, 0.2),
    (1.2, 0.6),
];

fn way(text: &str) -> Result<&'static Way, String> {
    let names: Vec<&str> = WAYS.iter().map(|way| way.name).collect();
    WAYS.iter()
        .find(|way| way.name == text)
        .ok_or_else(|| format!("possible: {}", names.join(", ")))
}

/// Runs `calibrate`.
pub fn calibrate(args: &CalibrateArgs) -> Result<(), Failure> {
    start_threads(args.threads);
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    let unknown = |shape: &&String| !names.contains(&shape.as_str());
    if let Some(unknown) = args.shapes.iter().find(unknown) {
        let message = format!(
            "there is no grain \"{unknown}\"; possible: {}",
            names.join(", ")
        );
        return Err(Failure::Input(message));
    }
    let wanted = |name: &&&str| args.shapes.is_empty() || args.shapes.iter().any(|s| s == **name);
    let contacts = |name: &str| match (args.friction.as_slice(), name) {
        ([], "ball") => BALLS.to_vec(),
        ([], _) => COMPOSITES.to_vec(),
        (some, _) => some.iter().map(|one| (*one, args.rolling)).collect(),
    };
    let mut curves = Vec::new();
    for name in names.iter().filter(wanted) {
        let mut rows = Vec::new();
        for contact in contacts(name) {
            let row = Row::pour(args, name, contact)?;
            if args.json {
                row.tell(name);
            } else {
                talk(&row.line(name));
            }
            rows.push(row);
        }
        if !args.json {
            out(&table(name, &rows));
        }
        curves.push(Series {
            name: (*name).into(),
            points: rows.iter().map(|row| [row.friction, row.angle]).collect(),
            mark: Mark::Dots,
        });
    }
    match &args.plot {
        Some(path) => draw(path, curves),
        None => Ok(()),
    }
}

/// Draws what was found.
fn draw(path: &Path, series: Vec<Series>) -> Result<(), Failure> {
    let plot = Plot {
        title: "angle of repose [°] over the friction of contacts".into(),
        series,
    };
    let failed = |error: std::io::Error| Failure::Run(format!("{}: {error}", path.display()));
    atomic::write_bytes(path, plot.svg().as_bytes()).map_err(failed)
}

/// A contact, and the angle that it gives.
struct Row {
    friction: f64,
    rolling: f64,
    angle: f64,
    scatter: f64,
    /// How many were made, and how many of them had a slope to be measured: a bed may jam, a layer may not flow.
    made: usize,
    measured: usize,
}

impl Row {
    /// Pours the piles of a contact.
    fn pour(
        args: &CalibrateArgs,
        shape: &str,
        (friction, rolling): (f64, f64),
    ) -> Result<Self, Failure> {
        let grains = Grains {
            shape,
            friction,
            rolling,
        };
        let pile = (f64::from(args.across), args.rate);
        let angles = (1..=args.seeds)
            .map(|seed| args.by.angle(grains, pile, seed).map_err(Failure::Run))
            .collect::<Result<Vec<f64>, Failure>>()?;
        Ok(Self::of((friction, rolling), &angles))
    }

    fn of((friction, rolling): (f64, f64), angles: &[f64]) -> Self {
        let made = angles.len();
        let angles: Vec<f64> = angles.iter().copied().filter(|a| a.is_finite()).collect();
        let count = angles.len() as f64;
        let angle = angles.iter().sum::<f64>() / count;
        let squares = angles.iter().map(|one| (one - angle).powi(2)).sum::<f64>();
        Self {
            friction,
            rolling,
            angle,
            scatter: (squares / (count - 1.0).max(1.0)).sqrt(),
            made,
            measured: angles.len(),
        }
    }

    fn line(&self, name: &str) -> String {
        let contact = format!(
            "{name:12} friction {:<5} rolling {:<5}",
            self.friction, self.rolling
        );
        let angle = format!("angle {:5.1} ± {:.1} deg", self.angle, self.scatter);
        match (self.measured, self.made) {
            (0, _) => format!("{contact} no slope to be measured"),
            (measured, made) if measured < made => {
                format!("{contact} {angle}, of {measured} of {made}: the others had no slope")
            }
            _ => format!("{contact} {angle}"),
        }
    }

    fn tell(&self, name: &str) {
        let line = json!({
            "shape": name, "friction": self.friction, "rolling_friction": self.rolling,
            "repose_angle_deg": self.angle, "scatter_deg": self.scatter,
            "made": self.made, "measured": self.measured,
        });
        out(&line.to_string());
    }
}

/// Rows as the table that scenes are read with: those that stand no steeper than one with less friction are left out.
fn table(name: &str, rows: &[Row]) -> String {
    let mut steepest = f64::NEG_INFINITY;
    let mut rising: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| row.angle.is_finite()) {
        if row.angle > steepest {
            rising.push(row);
            steepest = row.angle;
        }
    }
    let list = |part: fn(&Row) -> f64, digits: usize| {
        let numbers = rising.iter().map(|row| format!("{:.digits$}", part(row)));
        format!("[{}]", numbers.collect::<Vec<_>>().join(", "))
    };
    format!(
        "[{name}]\nfriction = {}\nrolling  = {}\nangle    = {}\n",
        list(|row| row.friction, 2),
        list(|row| row.rolling, 3),
        list(|row| row.angle, 1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_rises_and_rows_are_means() {
        let row = |friction, angles: &[f64]| Row::of((friction, 0.0), angles);
        let rows = [
            row(0.1, &[20.0, 22.0]),
            row(0.2, &[19.0]),
            row(0.3, &[25.0]),
        ];
        assert!((rows[0].scatter - 2f64.sqrt()).abs() < 1e-12);
        let text = table("cube", &rows);
        assert!(text.contains("friction = [0.10, 0.30]"), "{text}");
        assert!(text.contains("angle    = [21.0, 25.0]"), "{text}");
    }

    #[test]
    fn what_jams_has_no_part_in_the_mean_and_is_told() {
        let row = Row::of((0.5, 0.0), &[40.0, f64::NAN, 44.0]);
        assert!((row.angle - 42.0).abs() < 1e-12);
        assert!(row.line("popcorn").contains("of 2 of 3"));
        let none = Row::of((0.5, 0.0), &[f64::NAN]);
        assert!(none.line("popcorn").contains("no slope"));
        assert!(table("popcorn", &[none]).contains("angle    = []"));
    }
}
