//! Runs side by side: the same moments from the same camera, their profiles and their figures.

mod page;
mod profile;

pub use page::page;

use crate::cache::{FrameError, RunFolder};
use crate::plot::{Mark, Plot, Series};
use crate::render::{Picture, RenderError, Stage, draw_text, share_view, text_width};
use crate::stats::{FrameStats, fit_pile, frame_stats};
use barchan_sim::scene::{Render, Scene};

/// Moments shown as pictures.
const MOMENTS: usize = 5;
/// Moments whose figures are taken.
const FIGURES: usize = 25;
/// Pixels between pictures.
const GAP: usize = 4;
/// Height of the line of text over each row [pixels].
const LINE: usize = 22;

/// One of the runs.
pub struct Side<'a> {
    /// What it is called.
    pub name: String,
    /// Its folder.
    pub run: &'a RunFolder,
    /// Its scene.
    pub scene: &'a Scene,
}

/// What the comparison found.
pub struct Comparison {
    /// Names of the runs.
    pub names: Vec<String>,
    /// A row of pictures each, one above the other; the same moment in each column.
    pub strip: Picture,
    /// Figures of each run, in time.
    pub figures: Vec<Vec<FrameStats>>,
    /// How thick the material lies along the middle of the scene at the end, of each run; [m] over [m].
    pub profiles: Vec<Vec<[f64; 2]>>,
    /// Seconds that simulating each run took, where its record tells.
    pub seconds: Vec<Option<f64>>,
    /// What could not be read or drawn.
    pub trouble: Vec<String>,
}

/// Compares runs, with pictures as `settings` say.
///
/// # Errors
/// If a run has no frames, or cannot be drawn at all.
pub fn compare(sides: &[Side<'_>], settings: &Render) -> Result<Comparison, RenderError> {
    let mut settings = settings.clone();
    let runs: Vec<_> = sides.iter().map(|side| (side.run, side.scene)).collect();
    share_view(&runs, &mut settings)?;
    let mut trouble = Vec::new();
    let strip = strip(sides, &settings, &mut trouble)?;
    let mut figures = vec![Vec::new(); sides.len()];
    for (number, side) in sides.iter().enumerate() {
        for frame in spread(&side.run.frames()?, FIGURES) {
            match figures_of(side.run, frame) {
                Ok(stats) => figures[number].push(stats),
                Err(error) => trouble.push(format!("{}: {error}", side.name)),
            }
        }
    }
    let profiles = profiles(sides, &mut trouble)?;
    trouble.dedup();
    let seconds = |side: &Side<'_>| side.run.recorded("wall_seconds")?.parse().ok();
    Ok(Comparison {
        names: sides.iter().map(|side| side.name.clone()).collect(),
        strip,
        figures,
        profiles,
        seconds: sides.iter().map(seconds).collect(),
        trouble,
    })
}

/// The pictures: a row each run, a column each moment.
fn strip(
    sides: &[Side<'_>],
    settings: &Render,
    trouble: &mut Vec<String>,
) -> Result<Picture, RenderError> {
    let [width, height] = settings.size.map(|side| side as usize);
    let row = LINE + height + GAP;
    let mut strip = Picture::new(
        MOMENTS * (width + GAP) - GAP,
        sides.len() * row - GAP,
        [24, 24, 26],
    );
    for (number, side) in sides.iter().enumerate() {
        let stage = Stage::new(side.run, side.scene, settings.clone())?;
        for (place, frame) in spread(&matching(sides, number)?, MOMENTS)
            .into_iter()
            .enumerate()
        {
            let (x, y) = (place * (width + GAP), number * row);
            let label = format!("{}  {:.2} s", side.name, f64::from(frame) / side.scene.fps);
            let zoom = if text_width(&label, 2) <= width { 2 } else { 1 };
            draw_text(&mut strip, &label, [x + 6, y + 4], zoom, [235; 3]);
            match stage.shoot(frame) {
                Ok(shot) => strip.paste(&shot.picture, x, y + LINE),
                Err(error) => trouble.push(format!("{}, frame {frame}: {error}", side.name)),
            }
        }
    }
    Ok(strip)
}

/// The profile of each run at the last moment that all have; empty where that frame cannot be read.
fn profiles(
    sides: &[Side<'_>],
    trouble: &mut Vec<String>,
) -> Result<Vec<Vec<[f64; 2]>>, RenderError> {
    let mut last = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        let frame = matching(sides, number)?.last().copied().unwrap_or(0);
        let frame = side.run.read_frame(frame);
        last.push(frame.map_err(|error| trouble.push(format!("{}: {error}", side.name))));
    }
    let read: Vec<_> = sides
        .iter()
        .zip(&last)
        .filter_map(|(side, frame)| Some((side.scene, frame.as_ref().ok()?)))
        .collect();
    let slice = profile::Slice::through(&read);
    let of = |(side, frame): (&Side<'_>, &Result<_, ()>)| match (&slice, frame) {
        (Some(slice), Ok(frame)) => slice.profile(side.scene, frame),
        _ => Vec::new(),
    };
    Ok(sides.iter().zip(&last).map(of).collect())
}

fn figures_of(run: &RunFolder, frame: u32) -> Result<FrameStats, FrameError> {
    let frame = run.read_frame(frame)?;
    let mut stats = frame_stats(&frame);
    stats.pile = fit_pile(&frame);
    Ok(stats)
}

/// Frames of one side within the time that all sides have.
fn matching(sides: &[Side<'_>], number: usize) -> Result<Vec<u32>, RenderError> {
    let mut last = f64::INFINITY;
    for side in sides {
        let end = side.run.frames()?.last().copied().unwrap_or(0);
        last = last.min(f64::from(end) / side.scene.fps + 1e-9);
    }
    let mut frames = sides[number].run.frames()?;
    frames.retain(|frame| f64::from(*frame) / sides[number].scene.fps <= last);
    Ok(frames)
}

/// At most `count` of `frames`, spread evenly, the first and the last among them.
fn spread(frames: &[u32], count: usize) -> Vec<u32> {
    if frames.len() <= count {
        return frames.to_vec();
    }
    (0..count)
        .map(|i| frames[i * (frames.len() - 1) / (count - 1)])
        .collect()
}

/// What is compared, its unit, and how a frame's figures give it.
type Figure = (&'static str, &'static str, fn(&FrameStats) -> Option<f64>);

/// The figures that are compared.
const FIGURE_ROWS: [Figure; 9] = [
    ("particles", "", |stats| Some(stats.particles as f64)),
    ("mass", "kg", |stats| Some(stats.mass)),
    ("kinetic energy", "J", |stats| Some(stats.kinetic_energy)),
    ("potential energy", "J", |stats| {
        Some(stats.potential_energy)
    }),
    ("fastest", "m/s", |stats| Some(stats.max_speed)),
    ("largest extent", "m", |stats| {
        let sizes = stats
            .bounds_max
            .iter()
            .zip(stats.bounds_min)
            .map(|(high, low)| high - low);
        Some(sizes.fold(0.0, f64::max))
    }),
    ("pile angle", "deg", |stats| {
        stats.pile.map(|pile| pile.repose_angle_deg)
    }),
    ("pile height", "m", |stats| {
        stats.pile.map(|pile| pile.pile_height)
    }),
    ("run-out", "m", |stats| {
        stats.pile.map(|pile| pile.runout_radius)
    }),
];

/// A name with its unit.
fn titled(name: &str, unit: &str) -> String {
    match unit {
        "" => name.to_owned(),
        _ => format!("{name} [{unit}]"),
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is, with its unit.
    pub name: String,
    /// What each run has.
    pub values: Vec<String>,
    /// How far the second of two is from the first, in percent; empty for more runs, or where it means nothing.
    pub difference: String,
}

impl Row {
    fn new(name: String, values: &[Option<f64>]) -> Self {
        let difference = match values {
            [Some(a), Some(b)] if a.abs() > 0.0 => format!("{:+.1} %", 100.0 * (b - a) / a.abs()),
            _ => String::new(),
        };
        let text = |value: &Option<f64>| value.map_or("-".into(), shown);
        Self {
            name,
            values: values.iter().map(text).collect(),
            difference,
        }
    }
}

impl Comparison {
    /// The last figures of each run, and what they cost.
    pub fn table(&self) -> Vec<Row> {
        let last = |value: fn(&FrameStats) -> Option<f64>| -> Vec<Option<f64>> {
            let runs = self.figures.iter();
            runs.map(|run| run.last().and_then(value)).collect()
        };
        let frames = self
            .figures
            .iter()
            .map(|run| run.last().map(|stats| f64::from(stats.frame)));
        let a_frame: Vec<Option<f64>> = self
            .seconds
            .iter()
            .zip(frames)
            .map(|(seconds, frames)| Some((*seconds)? / frames.filter(|count| *count > 0.0)?))
            .collect();
        let mut rows: Vec<Row> = FIGURE_ROWS
            .iter()
            .map(|(name, unit, value)| Row::new(titled(name, unit), &last(*value)))
            .collect();
        rows.push(Row::new("cost of the run [s]".into(), &self.seconds));
        rows.push(Row::new("cost of a frame [s]".into(), &a_frame));
        rows
    }

    /// Profiles and figures, as plots.
    fn plots(&self) -> Vec<Plot> {
        let plot = |title: String, points: Vec<Vec<[f64; 2]>>| Plot {
            title,
            series: self
                .names
                .iter()
                .zip(points)
                .map(|(name, points)| Series {
                    name: name.clone(),
                    points,
                    mark: Mark::Line,
                })
                .collect(),
        };
        let over_time = |value: fn(&FrameStats) -> Option<f64>| {
            let points = |run: &Vec<FrameStats>| -> Vec<[f64; 2]> {
                run.iter()
                    .filter_map(|stats| Some([stats.time, value(stats)?]))
                    .collect()
            };
            self.figures.iter().map(points).collect()
        };
        let profile = plot(
            "how thick the material lies along the middle [m], at the end".into(),
            self.profiles.clone(),
        );
        let figures = FIGURE_ROWS.iter().skip(2).map(|(name, unit, value)| {
            plot(
                format!("{} over time [s]", titled(name, unit)),
                over_time(*value),
            )
        });
        std::iter::once(profile)
            .chain(figures)
            .filter(|plot| plot.series.iter().any(|series| series.points.len() > 1))
            .collect()
    }
}

/// A number with five digits that count, as few as it needs.
fn shown(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.4e}");
    }
    let digits = if value == 0.0 {
        0
    } else {
        (4 - value.abs().log10().floor() as i32).max(0) as usize
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spread_from_the_first_to_the_last() {
        let frames: Vec<u32> = (0..=48).collect();
        assert_eq!(spread(&frames, 5), [0, 12, 24, 36, 48]);
        assert_eq!(spread(&frames[..3], 5), [0, 1, 2]);
    }

    #[test]
    fn numbers_have_five_digits_that_count() {
        assert_eq!(
            [0.0, 12.5, 65_432.0, 0.001_234_567, 3e-9].map(shown),
            ["0", "12.5", "65432", "0.0012346", "3.0000e-9"]
        );
    }
}
