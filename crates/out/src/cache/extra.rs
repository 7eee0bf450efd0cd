//! The columns of a frame that only its solver knows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use barchan_base::column::{AnyColumn, Column, ColumnSpec, Kind, as_bytes};
use barchan_sim::state::Particles;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Columns beyond the common ones that are read from one file, and names kept for all files: no solver has nearly as many.
const MOST: usize = 64;

/// Names and units of columns are few and live as long as the program: each is kept once, and no file can ask for more.
fn kept(text: &str) -> Option<&'static str> {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = KEPT.lock().ok()?;
    if let Some(name) = names.get(text) {
        return Some(name);
    }
    if names.len() >= 2 * MOST || text.len() > MOST {
        return None;
    }
    let name: &'static str = Box::leak(text.to_owned().into_boxed_str());
    names.insert(name);
    Some(name)
}

/// The column that `field` describes, if it is one of ours; others are for someone else to read.
fn spec(field: &Field) -> Option<ColumnSpec> {
    let kind = match field.data_type() {
        DataType::Float32 => Kind::F32,
        DataType::Float64 => Kind::F64,
        DataType::FixedSizeList(_, 3) => Kind::Vec3,
        DataType::FixedSizeList(_, 4) => Kind::Vec4,
        DataType::FixedSizeList(_, 9) => Kind::Mat3,
        DataType::UInt16 => Kind::U16,
        DataType::UInt32 => Kind::U32,
        DataType::UInt64 => Kind::U64,
        _ => return None,
    };
    Some(ColumnSpec {
        name: kept(field.name())?,
        unit: kept(field.metadata().get("unit").map_or("1", String::as_str))?,
        kind,
    })
}

fn bytes_of(array: &ArrayRef, kind: Kind) -> Option<&[u8]> {
    Some(match kind {
        Kind::F32 => as_bytes(array.as_primitive_opt::<Float32Type>()?.values()),
        Kind::F64 => as_bytes(array.as_primitive_opt::<Float64Type>()?.values()),
        Kind::U16 => as_bytes(array.as_primitive_opt::<UInt16Type>()?.values()),
        Kind::U32 => as_bytes(array.as_primitive_opt::<UInt32Type>()?.values()),
        Kind::U64 => as_bytes(array.as_primitive_opt::<UInt64Type>()?.values()),
        Kind::Vec3 | Kind::Vec4 | Kind::Mat3 => {
            let values = array.as_fixed_size_list_opt()?.values();
            as_bytes(values.as_primitive_opt::<Float32Type>()?.values())
        }
    })
}

/// Appends the solver's columns of `batch` to those of `particles`, which had `before` rows.
pub(super) fn append(
    particles: &mut Particles,
    before: usize,
    batch: &RecordBatch,
) -> Result<(), String> {
    let schema = batch.schema();
    let common = |field: &Field| {
        Particles::COLUMNS
            .iter()
            .any(|spec| spec.name == field.name())
    };
    let extra = schema.fields().iter().zip(batch.columns());
    for (field, array) in extra.filter(|(field, _)| !common(field)).take(MOST) {
        let Some(spec) = spec(field) else { continue };
        let wrong = || format!("its column {} has another type", spec.name);
        let size = spec.kind.size();
        let bytes = bytes_of(array, spec.kind)
            .filter(|bytes| bytes.len() == batch.num_rows() * size)
            .ok_or_else(wrong)?;
        let column = match particles.extra.iter_mut().position(|c| c.spec == spec) {
            Some(place) => &mut particles.extra[place],
            None => {
                particles.extra.push(Column::zeros(spec, before));
                particles.extra.last_mut().expect("just pushed")
            }
        };
        column.resize_to(before + batch.num_rows());
        column.bytes_mut()[before * size..].copy_from_slice(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_not_without_end() {
        let first = kept("heat").expect("there is room");
        assert!(std::ptr::eq(first, kept("heat").expect("kept before")));
        assert!(kept(&"x".repeat(MOST + 1)).is_none());
    }
}
