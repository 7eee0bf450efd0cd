//! The comparison as one HTML file that needs nothing else: pictures, table and curves are in it.

use super::{Comparison, ROWS};
use crate::render::to_jpeg;
use crate::stats::FrameStats;
use base64::Engine;
use std::fmt::Write;

/// Quality of the strip in the page, 1 to 100.
const QUALITY: u32 = 88;
/// Size of a curve [pixels].
const CURVE: [f64; 2] = [420.0, 160.0];
/// Colours of the two runs.
const COLORS: [&str; 2] = ["#c2702d", "#2d6fc2"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;background:#faf9f7;color:#222}\
img{max-width:100%;border-radius:4px}table{border-collapse:collapse;margin:1.5rem 0}\
td,th{padding:.25rem 1rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
svg{background:#fff;border:1px solid #ddd;margin:0 1rem 1rem 0}";

/// Text that is safe between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The page of a comparison.
pub fn page(comparison: &Comparison) -> String {
    let [a, b] = comparison
        .names
        .each_ref()
        .map(|name| escaped(name.as_str()));
    let jpeg = to_jpeg(&comparison.strip, QUALITY);
    let strip = base64::engine::general_purpose::STANDARD.encode(jpeg);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{a} and {b}</title>\n<style>{STYLE}</style>\n\
         <h1><span style=\"color:{}\">{a}</span> and <span style=\"color:{}\">{b}</span></h1>\n\
         <img alt=\"{a} above, {b} below, in time from left to right\" src=\"data:image/jpeg;base64,{strip}\">\n\
         <table><tr><th>at the end</th><th>{a}</th><th>{b}</th><th>difference</th></tr>\n",
        COLORS[0], COLORS[1]
    );
    for [name, first, second, difference] in comparison.table() {
        let _ = writeln!(
            html,
            "<tr><td>{name}</td><td>{first}</td><td>{second}</td><td>{difference}</td></tr>"
        );
    }
    html.push_str("</table>\n");
    for (name, unit, value) in ROWS.iter().skip(2) {
        let name = if unit.is_empty() {
            (*name).into()
        } else {
            format!("{name} [{unit}]")
        };
        html.push_str(&curve(&name, &comparison.figures, *value));
    }
    if !comparison.trouble.is_empty() {
        let lines: Vec<String> = comparison
            .trouble
            .iter()
            .map(|line| escaped(line))
            .collect();
        let _ = write!(html, "<p>Not shown: {}</p>", lines.join("<br>"));
    }
    html.push_str("</html>\n");
    html
}

/// Both runs' `value` over time, as a picture; nothing where neither has any.
fn curve(
    name: &str,
    figures: &[Vec<FrameStats>; 2],
    value: fn(&FrameStats) -> Option<f64>,
) -> String {
    let points = |side: &Vec<FrameStats>| -> Vec<(f64, f64)> {
        side.iter()
            .filter_map(|stats| Some((stats.time, value(stats)?)))
            .collect()
    };
    let lines = figures.each_ref().map(points);
    let all = || lines.iter().flatten();
    if lines.iter().all(|line| line.len() < 2) {
        return String::new();
    }
    let low = all().map(|point| point.1).fold(0.0, f64::min);
    let high = all().map(|point| point.1).fold(f64::MIN_POSITIVE, f64::max);
    let end = all().map(|point| point.0).fold(f64::MIN_POSITIVE, f64::max);
    let [width, height] = CURVE;
    let mut svg = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-size=\"12\">\
         <text x=\"8\" y=\"16\">{name}</text><text x=\"8\" y=\"{}\" fill=\"#888\">0 to {} s; {} to {}</text>",
        height - 6.0,
        super::shown(end),
        super::shown(low),
        super::shown(high)
    );
    for (line, color) in lines.iter().zip(COLORS) {
        let _ = write!(
            svg,
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" points=\""
        );
        for (time, value) in line {
            let x = 8.0 + (width - 16.0) * time / end;
            let y = height - 24.0 - (height - 50.0) * (value - low) / (high - low);
            let _ = write!(svg, "{x:.1},{y:.1} ");
        }
        svg.push_str("\"/>");
    }
    svg.push_str("</svg>\n");
    svg
}
