//! The comparison as one HTML file that needs nothing else: pictures, table and curves are in it.

use super::Comparison;
use crate::plot::{STYLE, color, escaped};
use crate::render::to_jpeg;
use base64::Engine;
use std::fmt::Write;

/// Quality of the strip in the page, 1 to 100.
const QUALITY: u32 = 88;

/// The page of a comparison.
pub fn page(comparison: &Comparison) -> String {
    let names: Vec<String> = comparison.names.iter().map(|name| escaped(name)).collect();
    let title = names.join(", ");
    let painted = |(number, name): (usize, &String)| {
        format!("<span style=\"color:{}\">{name}</span>", color(number))
    };
    let heading: Vec<String> = names.iter().enumerate().map(painted).collect();
    let jpeg = to_jpeg(&comparison.strip, QUALITY);
    let strip = base64::engine::general_purpose::STANDARD.encode(jpeg);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{}</h1>\n\
         <img alt=\"{title}, from above to below; in time from left to right\" src=\"data:image/jpeg;base64,{strip}\">\n",
        heading.join(", ")
    );
    table(&mut html, comparison, &names);
    for plot in comparison.plots() {
        html.push_str(&plot.svg());
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

fn table(html: &mut String, comparison: &Comparison, names: &[String]) {
    let two = names.len() == 2;
    let mut heads = vec!["at the end"];
    heads.extend(names.iter().map(String::as_str));
    heads.extend(two.then_some("difference"));
    let _ = writeln!(html, "<table><tr><th>{}</th></tr>", heads.join("</th><th>"));
    for row in comparison.table() {
        let mut cells = vec![row.name.as_str()];
        cells.extend(row.values.iter().map(String::as_str));
        cells.extend(two.then_some(row.difference.as_str()));
        let _ = writeln!(html, "<tr><td>{}</td></tr>", cells.join("</td><td>"));
    }
    html.push_str("</table>\n");
}
