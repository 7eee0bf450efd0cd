//! Plots as SVG, drawn by hand: points and lines between two axes, and how pages that hold them look.

use std::fmt::Write;

/// The style sheet of pages with plots.
pub const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;background:#faf9f7;color:#222}\
img{max-width:100%;border-radius:4px}table{border-collapse:collapse;margin:1.5rem 0;font-size:13px}\
td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
svg{background:#fff;border:1px solid #ddd;margin:0 1rem 1rem 0}";

/// Size of a plot [pixels].
const SIZE: [f64; 2] = [520.0, 320.0];
/// Room for the numbers beside the axes, and for the legend on the right [pixels].
const LEFT: f64 = 56.0;
const BELOW: f64 = 36.0;
const ABOVE: f64 = 30.0;
const RIGHT: f64 = 170.0;
/// Colours of what was found, in turn.
const COLORS: [&str; 8] = [
    "#c2702d", "#2d6fc2", "#3f9a4b", "#9a3f8e", "#b8a12e", "#3fa0a0", "#c23b3b", "#666666",
];

/// The colour of series `number`.
pub fn color(number: usize) -> &'static str {
    COLORS[number % COLORS.len()]
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Dots joined by a thin line.
    Dots,
    /// A line.
    Line,
    /// A broken grey line: what it should be.
    Reference,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<[f64; 2]>,
    /// How it is drawn.
    pub mark: Mark,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What is on its axes.
    pub title: String,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Where points are on the paper.
struct Frame {
    low: [f64; 2],
    high: [f64; 2],
}

impl Frame {
    /// Around everything, and zero where it is not far.
    fn around(series: &[Series]) -> Option<Self> {
        let mut all = series
            .iter()
            .flat_map(|series| &series.points)
            .filter(|point| point.iter().all(|x| x.is_finite()))
            .peekable();
        all.peek()?;
        let (mut low, mut high) = ([f64::MAX; 2], [f64::MIN; 2]);
        for point in all {
            for axis in 0..2 {
                low[axis] = low[axis].min(point[axis]);
                high[axis] = high[axis].max(point[axis]);
            }
        }
        for axis in 0..2 {
            if low[axis] > 0.0 && low[axis] < 0.4 * high[axis] {
                low[axis] = 0.0;
            }
            if high[axis] - low[axis] < 1e-12 {
                high[axis] += 1.0;
            }
        }
        Some(Self { low, high })
    }

    fn place(&self, point: [f64; 2]) -> [f64; 2] {
        let part =
            |axis: usize| (point[axis] - self.low[axis]) / (self.high[axis] - self.low[axis]);
        let [width, height] = SIZE;
        [
            LEFT + part(0) * (width - LEFT - RIGHT),
            height - BELOW - part(1) * (height - BELOW - ABOVE),
        ]
    }

    /// Round numbers along an axis.
    fn ticks(&self, axis: usize) -> Vec<f64> {
        let range = self.high[axis] - self.low[axis];
        let rough = range / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|k| k * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(power);
        let first = (self.low[axis] / step).ceil() as i64;
        let last = (self.high[axis] / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

impl Plot {
    /// The plot as SVG; nothing where there is nothing to draw.
    pub fn svg(&self) -> String {
        let Some(frame) = Frame::around(&self.series) else {
            return String::new();
        };
        let [width, height] = SIZE;
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-size=\"11\">\
             <text x=\"8\" y=\"18\" font-size=\"13\">{}</text>",
            escaped(&self.title)
        );
        axes(&mut svg, &frame);
        let mut found = 0;
        for (row, series) in self.series.iter().enumerate() {
            let paint = match series.mark {
                Mark::Reference => "#999999",
                _ => {
                    found += 1;
                    color(found - 1)
                }
            };
            draw(&mut svg, &frame, series, paint);
            let y = ABOVE + 13.0 * row as f64 + 6.0;
            let x = width - RIGHT + 10.0;
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{}\" width=\"9\" height=\"9\" fill=\"{paint}\"/><text x=\"{}\" y=\"{y}\" font-size=\"10\">{}</text>",
                y - 8.0,
                x + 13.0,
                escaped(&series.name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn axes(svg: &mut String, frame: &Frame) {
    let [width, height] = SIZE;
    for tick in frame.ticks(0) {
        let [x, _] = frame.place([tick, frame.low[1]]);
        let (bottom, top) = (height - BELOW, ABOVE);
        let _ = write!(
            svg,
            "<path d=\"M{x:.1} {bottom}V{top}\" stroke=\"#eee\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{}</text>",
            bottom + 15.0,
            short(tick)
        );
    }
    for tick in frame.ticks(1) {
        let [_, y] = frame.place([frame.low[0], tick]);
        let _ = write!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#eee\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
            width - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(tick)
        );
    }
}

fn draw(svg: &mut String, frame: &Frame, series: &Series, color: &str) {
    let places = || {
        let finite = |point: &&[f64; 2]| point.iter().all(|x| x.is_finite());
        let points = series.points.iter().filter(finite);
        points.map(|point| frame.place(*point))
    };
    let line: Vec<String> = places().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let style = match series.mark {
        Mark::Reference => "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"",
        Mark::Line => "stroke-width=\"1.5\"",
        Mark::Dots => "stroke-width=\"0.7\"",
    };
    let _ = write!(
        svg,
        "<polyline fill=\"none\" stroke=\"{color}\" {style} points=\"{}\"/>",
        line.join(" ")
    );
    if series.mark == Mark::Dots {
        for [x, y] in places() {
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"
            );
        }
    }
}

/// A number on an axis, without needless zeros.
fn short(value: f64) -> String {
    let text = digits(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Three or four digits of a number.
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size > 0.0 && size < 1e-3 => format!("{value:.1e}"),
        size if size < 10.0 => format!("{value:.3}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Text that is safe between tags.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_holds_its_points_and_escapes_its_names() {
        let plot = Plot {
            title: "a < b".into(),
            series: vec![Series {
                name: "x & y".into(),
                points: vec![[20.0, 21.0], [45.0, f64::NAN], [40.0, 38.0]],
                mark: Mark::Dots,
            }],
        };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("x &amp; y"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        let plot = Plot {
            title: "t".into(),
            series: vec![],
        };
        assert_eq!(plot.svg(), "");
    }
}
