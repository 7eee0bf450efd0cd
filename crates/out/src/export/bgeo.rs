//! Houdini's classic binary geometry, version 5 (`Bgeo V`, big-endian), of points. Houdini, partio and splashsurf read it;
//! attributes have Houdini's own names: `v`, `pscale`, `N`, `Cd`, `id`. Ids beyond 2³¹ − 1 wrap around.

use super::snapshot::Snapshot;
use crate::geometry::{Column, floats, identifier, integers, width};
use barchan_base::column::Kind;
use std::io::{self, Write};

/// Houdini's codes for what an attribute holds.
const FLOAT: u32 = 0;
const INTEGER: u32 = 1;
const VECTOR: u32 = 5;
/// What closes the file where there is nothing extra.
const NO_EXTRA: [u8; 2] = [0x00, 0xff];

fn name(column: &str) -> String {
    match column {
        "velocity" => "v".into(),
        "radius" => "pscale".into(),
        "normal" => "N".into(),
        "color" => "Cd".into(),
        other => identifier(other),
    }
}

/// An attribute's numbers as big-endian words.
fn words((spec, bytes): &Column) -> Vec<[u8; 4]> {
    match integers(spec.kind, bytes) {
        Some(values) => values.iter().map(|v| v.to_be_bytes()).collect(),
        None => floats(spec.kind, bytes)
            .iter()
            .map(|v| v.to_be_bytes())
            .collect(),
    }
}

pub(super) fn write(file: &mut impl Write, snapshot: &Snapshot) -> io::Result<()> {
    let (positions, columns) = (snapshot.positions(), snapshot.columns());
    let too_many = || io::Error::other("more points than a bgeo file can count");
    let count = i32::try_from(positions.len()).map_err(|_| too_many())?;
    file.write_all(b"BgeoV")?;
    let (primitives, groups) = (0, 0);
    let attributes = columns.len() as i32;
    // Version, points, primitives, groups of both, attributes of points, vertices, primitives and the whole.
    for number in [5, count, primitives, groups, groups, attributes, 0, 0, 0] {
        file.write_all(&number.to_be_bytes())?;
    }
    for (spec, _) in &columns {
        let name = name(spec.name);
        let width = width(spec.kind);
        let kind = match spec.kind {
            Kind::U16 | Kind::U32 | Kind::U64 => INTEGER,
            Kind::Vec3 => VECTOR,
            Kind::F32 | Kind::F64 | Kind::Vec4 | Kind::Mat3 => FLOAT,
        };
        file.write_all(&(name.len() as u16).to_be_bytes())?;
        file.write_all(name.as_bytes())?;
        file.write_all(&(width as u16).to_be_bytes())?;
        file.write_all(&kind.to_be_bytes())?;
        file.write_all(&vec![0; 4 * width])?;
    }
    let values: Vec<(usize, Vec<[u8; 4]>)> = columns
        .iter()
        .map(|column| (width(column.0.kind), words(column)))
        .collect();
    for (i, position) in positions.iter().enumerate() {
        for value in position.extend(1.0).to_array() {
            file.write_all(&value.to_be_bytes())?;
        }
        for (width, words) in &values {
            file.write_all(words[i * width..(i + 1) * width].as_flattened())?;
        }
    }
    file.write_all(&NO_EXTRA)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn points_follow_the_declared_attributes() {
        let mut bytes = Vec::new();
        write(&mut bytes, &samples::particles(3, 1)).expect("memory takes all");
        let int = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let short = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two"));
        assert!(bytes.starts_with(b"BgeoV"));
        let header: Vec<i32> = (0..9).map(|i| int(5 + 4 * i)).collect();
        assert_eq!(header, [5, 3, 0, 0, 0, 7, 0, 0, 0]);
        let (mut at, mut declared) = (41, Vec::new());
        for _ in 0..7 {
            let length = short(at) as usize;
            let name = String::from_utf8_lossy(&bytes[at + 2..at + 2 + length]).into_owned();
            at += 2 + length;
            declared.push((name, short(at), int(at + 2)));
            at += 6 + 4 * short(at) as usize;
        }
        let declared: Vec<(&str, u16, i32)> = declared
            .iter()
            .map(|(n, w, k)| (n.as_str(), *w, *k))
            .collect();
        assert_eq!(
            declared,
            [
                ("id", 1, 1),
                ("v", 3, 5),
                ("pscale", 1, 0),
                ("mass", 1, 0),
                ("material", 1, 1),
                ("wetness", 1, 0),
                ("heat_of_it", 1, 0)
            ]
        );
        // Position and weight, then the attributes in their order.
        let row = at + 2 * 4 * (4 + 9);
        let float = |i: usize| f32::from_bits(int(row + 4 * i) as u32);
        let start: Vec<f32> = (0..4).map(float).collect();
        assert_eq!(start, [2.0, -2.0, 1.0, 1.0]);
        assert_eq!(int(row + 16), 9);
        let rest: Vec<f32> = (5..9).map(float).collect();
        assert_eq!(rest, [0.25, -2.0, 1.0, 2.125]);
        assert_eq!(bytes[row + 52..], NO_EXTRA);
    }
}
