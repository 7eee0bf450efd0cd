//! Two runs side by side: the same moments from the same camera, and their figures.

mod page;

pub use page::page;

use crate::cache::{FrameError, RunFolder, read_frame};
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
    pub names: [String; 2],
    /// A row of pictures each, one above the other.
    pub strip: Picture,
    /// Figures of each run, in time.
    pub figures: [Vec<FrameStats>; 2],
    /// What could not be read or drawn.
    pub trouble: Vec<String>,
}

/// Compares two runs, with pictures as `settings` say.
///
/// # Errors
/// If a run has no frames, or cannot be drawn at all.
pub fn compare(sides: &[Side<'_>; 2], settings: &Render) -> Result<Comparison, RenderError> {
    let mut settings = settings.clone();
    let runs = [
        (sides[0].run, sides[0].scene),
        (sides[1].run, sides[1].scene),
    ];
    share_view(&runs, &mut settings)?;
    let mut trouble = Vec::new();
    let [width, height] = settings.size.map(|side| side as usize);
    let row = LINE + height + GAP;
    let mut strip = Picture::new(MOMENTS * (width + GAP) - GAP, 2 * row - GAP, [24, 24, 26]);
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
    let mut figures: [Vec<FrameStats>; 2] = Default::default();
    for (number, side) in sides.iter().enumerate() {
        for frame in spread(&side.run.frames()?, FIGURES) {
            match figures_of(side.run, frame) {
                Ok(stats) => figures[number].push(stats),
                Err(error) => trouble.push(format!("{}: {error}", side.name)),
            }
        }
    }
    trouble.dedup();
    let names = [sides[0].name.clone(), sides[1].name.clone()];
    Ok(Comparison {
        names,
        strip,
        figures,
        trouble,
    })
}

fn figures_of(run: &RunFolder, frame: u32) -> Result<FrameStats, FrameError> {
    let frame = read_frame(&run.frame_path(frame))?;
    let mut stats = frame_stats(&frame);
    stats.pile = fit_pile(&frame);
    Ok(stats)
}

/// Frames of one side within the time that both sides have.
fn matching(sides: &[Side<'_>; 2], number: usize) -> Result<Vec<u32>, RenderError> {
    let mut ends = [0.0; 2];
    for (end, side) in ends.iter_mut().zip(sides) {
        *end = side
            .run
            .frames()?
            .last()
            .map_or(0.0, |last| f64::from(*last) / side.scene.fps);
    }
    let last = ends[0].min(ends[1]) + 1e-9;
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

/// Rows of the table: what is compared, its unit, and how a frame's figures give it.
type Row = (&'static str, &'static str, fn(&FrameStats) -> Option<f64>);

/// The figures that are compared.
pub const ROWS: [Row; 9] = [
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
    ("pile reach", "m", |stats| {
        stats.pile.map(|pile| pile.runout_radius)
    }),
];

impl Comparison {
    /// The last figures of each run, row by row: name with unit, first, second, and their difference in percent.
    pub fn table(&self) -> Vec<[String; 4]> {
        let last = |side: usize, value: fn(&FrameStats) -> Option<f64>| {
            self.figures[side].last().and_then(value)
        };
        let text = |value: Option<f64>| value.map_or("-".into(), shown);
        ROWS.iter()
            .map(|(name, unit, value)| {
                let (a, b) = (last(0, *value), last(1, *value));
                let difference = match (a, b) {
                    (Some(a), Some(b)) if a != 0.0 => {
                        format!("{:+.1} %", 100.0 * (b - a) / a.abs())
                    }
                    _ => String::new(),
                };
                let name = if unit.is_empty() {
                    (*name).into()
                } else {
                    format!("{name} [{unit}]")
                };
                [name, text(a), text(b), difference]
            })
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
