//! Grains in about nine bytes each: places in 16 bits an axis and velocities in 8, within the box of their particle's grains.
//!
//! A row is a particle with its grains. The steps of places and velocities are powers of two and boxes begin at whole
//! steps, so that what was rounded once is not rounded again: what rests stays.

use super::frame::{FrameMeta, FrameWriter, disk_error, field};
use super::grains::{Bunch, GrainKey, Grains, ORIENTATION, SEED, describe};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt8Type, UInt16Type, UInt64Type};
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_sim::scene::Compression;
use barchan_sim::state::Particles;
use glam::Vec3;
use rayon::prelude::*;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// Grains in a batch, and batches made at a time.
const BATCH: usize = 1 << 18;
const AT_ONCE: usize = 8;
/// Steps of a place and of a velocity; a few less than the bits can tell apart, for the corner is rounded down.
const PLACES: f32 = 65_530.0;
const SPEEDS: f32 = 250.0;
/// Whole numbers that a float holds exactly: places are whole steps.
const EXACT: f32 = 8_388_608.0;

/// A lattice along three axes: where it begins, and its step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lattice {
    corner: Vec3,
    step: Vec3,
}

impl Lattice {
    /// The finest one that holds all `values` in so many steps.
    fn around(values: &[Vec3], steps: f32) -> Self {
        let finite = values.iter().filter(|value| value.is_finite());
        let (least, most) = finite.fold((Vec3::INFINITY, Vec3::NEG_INFINITY), |(a, b), value| {
            (a.min(*value), b.max(*value))
        });
        if !(least.is_finite() && most.is_finite()) {
            return Self {
                corner: Vec3::ZERO,
                step: Vec3::ZERO,
            };
        }
        let largest = least.abs().max(most.abs());
        let step = ((most - least) / steps).max(largest / EXACT);
        let step = Vec3::from_array(step.to_array().map(power_of_two));
        let whole = |x: f32, step: f32| {
            if step > 0.0 {
                (x / step).floor() * step
            } else {
                x
            }
        };
        Self {
            corner: Vec3::new(
                whole(least.x, step.x),
                whole(least.y, step.y),
                whole(least.z, step.z),
            ),
            step,
        }
    }

    fn code(&self, value: Vec3, most: f32) -> Vec3 {
        // A step of zero has all values at the corner; NaN becomes zero when cast.
        let code = ((value - self.corner) / self.step).round();
        let code = Vec3::select(self.step.cmpgt(Vec3::ZERO), code, Vec3::ZERO);
        code.clamp(Vec3::ZERO, Vec3::splat(most))
    }

    fn value(&self, code: Vec3) -> Vec3 {
        self.corner + self.step * code
    }
}

/// The least power of two that is not less than `x`; zero for zero.
fn power_of_two(x: f32) -> f32 {
    if x.is_nan() || x <= f32::MIN_POSITIVE {
        return 0.0;
    }
    let floor = f32::from_bits(x.to_bits() & 0x7f80_0000);
    if floor < x { 2.0 * floor } else { floor }
}

/// Rounds grains to what a compact frame can hold.
pub fn round(grains: &mut Grains) {
    grains.each(|_, places, speeds| {
        round_to(places, PLACES, f32::from(u16::MAX));
        round_to(speeds, SPEEDS, f32::from(u8::MAX));
    });
}

fn round_to(values: &mut [Vec3], steps: f32, most: f32) {
    let lattice = Lattice::around(values, steps);
    for value in values {
        *value = lattice.value(lattice.code(*value, most));
    }
}

const ID: ColumnSpec = ColumnSpec::new("id", "1", Kind::U64);
const RADIUS: ColumnSpec = ColumnSpec::new("radius", "m", Kind::F32);
const MASS: ColumnSpec = ColumnSpec::new("mass", "kg", Kind::F32);
const MATERIAL: ColumnSpec = ColumnSpec::new("material", "1", Kind::U16);
const WETNESS: ColumnSpec = ColumnSpec::new("wetness", "1", Kind::F32);
const CORNER: ColumnSpec = ColumnSpec::new("corner", "m", Kind::Vec3);
const STEP: ColumnSpec = ColumnSpec::new("step", "m", Kind::Vec3);
const SLOWEST: ColumnSpec = ColumnSpec::new("slowest", "m/s", Kind::Vec3);
const FASTER: ColumnSpec = ColumnSpec::new("faster", "m/s", Kind::Vec3);

fn list(name: &str, kind: DataType) -> Field {
    let item = Arc::new(Field::new("item", kind, false));
    Field::new(name, DataType::List(item), false)
}

/// Writes rounded grains as a compact frame; `notes` as [`FrameWriter::finish`] takes them.
///
/// # Errors
/// What the disk says.
pub(crate) fn write(
    to: impl Write,
    meta: &FrameMeta,
    grains: &Grains,
    compression: Compression,
    notes: &[(&str, &str)],
) -> io::Result<()> {
    let columns = [
        ID, RADIUS, MASS, MATERIAL, WETNESS, CORNER, STEP, SLOWEST, FASTER,
    ];
    let mut fields: Vec<Field> = columns.iter().map(|spec| field(*spec)).collect();
    fields.push(list("places", DataType::UInt16));
    fields.push(list("speeds", DataType::UInt8));
    let write = || -> Result<(), ArrowError> {
        let more = [grains.key.to_pair()];
        let mut writer = FrameWriter::new(to, (meta, &more), fields, compression)?;
        let pieces = grains.pieces(BATCH);
        for some in pieces.chunks(AT_ONCE) {
            let coded: Vec<Vec<ArrayRef>> = some
                .par_iter()
                .map(|(bunches, all)| code(grains, bunches.clone(), all.clone()))
                .collect();
            for arrays in coded {
                writer.arrays(arrays)?;
            }
        }
        if pieces.is_empty() {
            writer.arrays(code(grains, 0..0, 0..0))?;
        }
        writer.finish(notes)
    };
    write().map_err(disk_error)
}

fn code(grains: &Grains, bunches: Range<usize>, all: Range<usize>) -> Vec<ArrayRef> {
    let rows = &grains.bunches[bunches];
    let mut lattices: [Vec<f32>; 4] = Default::default();
    let mut places: Vec<u16> = Vec::with_capacity(3 * all.len());
    let mut speeds: Vec<u8> = Vec::with_capacity(3 * all.len());
    let mut at = all.start;
    for bunch in rows {
        let own = at..at + bunch.count as usize;
        at = own.end;
        let (position, velocity) = (&grains.position[own.clone()], &grains.velocity[own]);
        let (box_, rates) = (
            Lattice::around(position, PLACES),
            Lattice::around(velocity, SPEEDS),
        );
        let parts = [box_.corner, box_.step, rates.corner, rates.step];
        for (column, part) in lattices.iter_mut().zip(parts) {
            column.extend(part.to_array());
        }
        for place in position {
            let code = box_.code(*place, f32::from(u16::MAX));
            places.extend(code.to_array().map(|c| c as u16));
        }
        for velocity in velocity {
            let code = rates.code(*velocity, f32::from(u8::MAX));
            speeds.extend(code.to_array().map(|c| c as u8));
        }
    }
    let floats = |of: fn(&Bunch) -> f32| -> ArrayRef {
        Arc::new(PrimitiveArray::<Float32Type>::from_iter_values(
            rows.iter().map(of),
        ))
    };
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(PrimitiveArray::<UInt64Type>::from_iter_values(
            rows.iter().map(|bunch| bunch.id),
        )),
        floats(|bunch| bunch.radius),
        floats(|bunch| bunch.mass),
        Arc::new(PrimitiveArray::<UInt16Type>::from_iter_values(
            rows.iter().map(|bunch| bunch.material),
        )),
        floats(|bunch| bunch.wetness),
    ];
    arrays.extend(lattices.map(triples));
    arrays.extend(lists(rows, places, speeds));
    arrays
}

/// The codes of places and velocities, a list for each bunch.
fn lists(rows: &[Bunch], places: Vec<u16>, speeds: Vec<u8>) -> [ArrayRef; 2] {
    let lengths = || OffsetBuffer::from_lengths(rows.iter().map(|b| 3 * b.count as usize));
    let item = |kind| Arc::new(Field::new("item", kind, false));
    let places = Arc::new(PrimitiveArray::<UInt16Type>::new(places.into(), None));
    let speeds = Arc::new(PrimitiveArray::<UInt8Type>::new(speeds.into(), None));
    [
        Arc::new(ListArray::new(
            item(DataType::UInt16),
            lengths(),
            places,
            None,
        )),
        Arc::new(ListArray::new(
            item(DataType::UInt8),
            lengths(),
            speeds,
            None,
        )),
    ]
}

fn triples(values: Vec<f32>) -> ArrayRef {
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let values = Arc::new(PrimitiveArray::<Float32Type>::new(values.into(), None));
    Arc::new(FixedSizeListArray::new(item, 3, values, None))
}

/// Appends the grains of a compact batch to `particles`.
pub(super) fn append(
    particles: &mut Particles,
    batch: &RecordBatch,
    key: GrainKey,
) -> Result<(), String> {
    let rows = Rows::of(batch)?;
    if particles.extra.is_empty() {
        particles.extra = [SEED, ORIENTATION]
            .map(|spec| Column::zeros(spec, particles.len()))
            .into();
    }
    for row in 0..batch.num_rows() {
        let (bunch, places, speeds) = rows.row(row)?;
        let before = particles.len();
        particles.resize(before + bunch.count as usize);
        let ([corner, step], [slowest, faster]) = rows.lattices(row);
        let at = |code: &[f32; 3], lattice: [Vec3; 2]| lattice[0] + lattice[1] * Vec3::from(*code);
        for (number, (place, speed)) in places.iter().zip(speeds).enumerate() {
            let place = place.map(f32::from);
            let speed = speed.map(f32::from);
            particles.position[before + number] = at(&place, [corner, step]);
            particles.velocity[before + number] = at(&speed, [slowest, faster]);
        }
        describe(particles, before, &bunch, &key);
    }
    Ok(())
}

/// The columns of a compact batch, checked.
struct Rows<'a> {
    ids: &'a [u64],
    materials: &'a [u16],
    radii: &'a [f32],
    masses: &'a [f32],
    wetness: &'a [f32],
    lattices: [&'a [[f32; 3]]; 4],
    places: &'a ListArray,
    speeds: &'a ListArray,
}

/// A particle, and the places and speeds of its grains.
type Row = (Bunch, Vec<[u16; 3]>, Vec<[u8; 3]>);

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, String> {
        fn column<'a, T>(
            batch: &'a RecordBatch,
            name: &str,
            read: impl Fn(&'a ArrayRef) -> Option<T>,
        ) -> Result<T, String> {
            batch
                .column_by_name(name)
                .and_then(read)
                .ok_or_else(|| format!("it lacks the column {name}, or it has another type"))
        }
        let floats = |name: &str| -> Result<&'a [f32], String> {
            column(batch, name, |array| {
                Some(&array.as_primitive_opt::<Float32Type>()?.values()[..])
            })
        };
        let triples = |name: &str| -> Result<&'a [[f32; 3]], String> {
            column(batch, name, |array| {
                let list = array.as_fixed_size_list_opt()?;
                let values = list.values().as_primitive_opt::<Float32Type>()?.values();
                let right = list.value_length() == 3 && values.len() == 3 * batch.num_rows();
                right.then(|| values.as_chunks::<3>().0)
            })
        };
        let lists = |name: &str| column(batch, name, |array| array.as_list_opt::<i32>());
        Ok(Self {
            ids: column(batch, ID.name, |array| {
                Some(&array.as_primitive_opt::<UInt64Type>()?.values()[..])
            })?,
            materials: column(batch, MATERIAL.name, |array| {
                Some(&array.as_primitive_opt::<UInt16Type>()?.values()[..])
            })?,
            radii: floats(RADIUS.name)?,
            masses: floats(MASS.name)?,
            wetness: floats(WETNESS.name)?,
            lattices: [
                triples(CORNER.name)?,
                triples(STEP.name)?,
                triples(SLOWEST.name)?,
                triples(FASTER.name)?,
            ],
            places: lists("places")?,
            speeds: lists("speeds")?,
        })
    }

    /// A particle and the codes of its grains.
    fn row(&self, row: usize) -> Result<Row, String> {
        let wrong = || "its grains have another type".to_owned();
        let (places, speeds) = (self.places.value(row), self.speeds.value(row));
        let places = places.as_primitive_opt::<UInt16Type>().ok_or_else(wrong)?;
        let speeds = speeds.as_primitive_opt::<UInt8Type>().ok_or_else(wrong)?;
        if places.len() != speeds.len() || places.len() % 3 != 0 {
            return Err("its grains do not have as many velocities as places".into());
        }
        let bunch = Bunch {
            id: self.ids[row],
            count: u32::try_from(places.len() / 3).map_err(|_| wrong())?,
            radius: self.radii[row],
            mass: self.masses[row],
            material: self.materials[row],
            wetness: self.wetness[row],
        };
        Ok((
            bunch,
            places.values().as_chunks::<3>().0.to_vec(),
            speeds.values().as_chunks::<3>().0.to_vec(),
        ))
    }

    fn lattices(&self, row: usize) -> ([Vec3; 2], [Vec3; 2]) {
        let part = |column: usize| Vec3::from(self.lattices[column][row]);
        ([part(0), part(1)], [part(2), part(3)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{parse_frame, seal};
    use super::*;

    fn sample(bunches: u64, scale: f32) -> Grains {
        let key = GrainKey {
            per_particle: 50,
            seed: 1,
            spread: 0.2,
        };
        let random = key.random();
        let mut grains = Grains::none(key);
        for id in 0..bunches {
            let count = 1 + (id % 50) as u32;
            grains.bunches.push(Bunch {
                id: 3 * id,
                count,
                radius: 0.001,
                mass: 0.5,
                material: (id % 3) as u16,
                wetness: 0.25,
            });
            for number in 0..u64::from(count) {
                let place = random.in_cube(id * 50 + number, 9) * scale;
                grains.position.push(place + Vec3::splat(id as f32 * 0.01));
                grains.velocity.push(place * 3.0 - Vec3::splat(0.1));
            }
        }
        grains
    }

    fn meta() -> FrameMeta {
        FrameMeta {
            frame: 7,
            time: 0.1,
            fps: 24.0,
            scene: "sample".into(),
            up: Vec3::Y,
            gravity: Vec3::NEG_Y,
            materials: vec!["sand".into()],
            bodies: Vec::new(),
        }
    }

    fn bytes(grains: &Grains) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &meta(), grains, Compression::None, &[]).unwrap();
        bytes
    }

    #[test]
    fn what_was_rounded_comes_back_and_is_not_rounded_again() {
        for (bunches, scale) in [(0, 1.0), (1, 0.0), (300, 0.07), (300, 30.0)] {
            let exact = sample(bunches, scale);
            let mut once = exact.clone();
            round(&mut once);
            let off = |a: &[Vec3], b: &[Vec3]| {
                let each = a.iter().zip(b).map(|(a, b)| (*a - *b).abs().max_element());
                each.fold(0.0, f32::max)
            };
            // Half a step of at most twice the box over the steps.
            assert!(off(&exact.position, &once.position) <= scale / 65_530.0 + 1e-6);
            assert!(off(&exact.velocity, &once.velocity) <= 3.0 * scale / 250.0 + 1e-6);
            let mut twice = once.clone();
            round(&mut twice);
            assert_eq!(once, twice);
            let frame = parse_frame(bytes(&once)).unwrap();
            assert_eq!(frame.particles.position, once.position);
            assert_eq!(frame.particles.velocity, once.velocity);
            let whole = once.particles(0..once.bunches.len(), 0..once.len());
            assert_eq!(frame.particles, whole);
        }
    }

    #[test]
    fn a_grain_takes_less_than_ten_bytes_and_rest_is_exact() {
        let mut grains = sample(0, 1.0);
        let bunch = sample(50, 1.0).bunches[49];
        for id in 0..2000 {
            grains.bunches.push(Bunch { id, ..bunch });
        }
        let random = grains.key.random();
        grains.position = (0..100_000).map(|i| random.in_cube(i, 0)).collect();
        grains.velocity = vec![Vec3::ZERO; 100_000];
        let size = bytes(&grains).len() as f64 / 100_000.0;
        assert!(size < 10.9, "{size}"); // 72 bytes for each fifty
        let frame = parse_frame(bytes(&grains)).unwrap();
        assert!(frame.particles.velocity.iter().all(|v| *v == Vec3::ZERO));
    }

    #[test]
    fn hostile_compact_frames_do_not_panic() {
        let mut grains = sample(20, 1.0);
        round(&mut grains);
        let whole = bytes(&grains);
        bolero::check!()
            .with_iterations(2000)
            .with_type::<(Vec<(u16, u8)>, u16)>()
            .for_each(|(edits, cut)| {
                let mut damaged = whole.clone();
                let tail = damaged.len().saturating_sub(4000);
                for (at, value) in edits {
                    let at = tail + *at as usize % (damaged.len() - tail);
                    damaged[at] = *value;
                }
                damaged.truncate(damaged.len() - *cut as usize % 3);
                let _ = parse_frame(damaged);
                let mut sealed = whole.clone();
                for (at, value) in edits.iter().take(3) {
                    let at = *at as usize % sealed.len().min(5000);
                    sealed[at] = *value;
                }
                seal(&mut sealed);
                let _ = parse_frame(sealed);
            });
    }
}
