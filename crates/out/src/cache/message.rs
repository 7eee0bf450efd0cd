//! The messages that an Arrow file is made of, looked at before they are decoded: the decoder believes where they say that things lie.

use arrow_ipc::{Block, Message, RecordBatch, convert::try_fb_to_schema, root_as_message};
use arrow_schema::{DataType, Schema};
use std::sync::Arc;

/// A message begins with four of these bytes and its length.
const MARK: u8 = 0xff;
const PREFIX: usize = 8;
/// More entries than any column of a batch has: what a damaged length may ask for.
const MOST_ENTRIES: i64 = 1 << 26;
/// Bytes of the largest entry.
const LARGEST: i64 = 8;

/// The message of `bytes` that begins at `at`, and where it lies; moves `at` to its end.
///
/// # Errors
/// If it makes no sense or is not all there.
pub fn take<'a>(bytes: &'a [u8], at: &mut usize) -> Result<(Message<'a>, Block), String> {
    let cut = || "a part of it is cut short".to_owned();
    let senseless = || "a part of it makes no sense".to_owned();
    let rest = bytes.get(*at..).ok_or_else(cut)?;
    let (prefix, rest) = rest.split_first_chunk::<PREFIX>().ok_or_else(cut)?;
    let [MARK, MARK, MARK, MARK, a, b, c, d] = *prefix else {
        return Err(senseless());
    };
    let length = i32::from_le_bytes([a, b, c, d]);
    let head = usize::try_from(length).map_err(|_| senseless())?;
    let message = root_as_message(rest.get(..head).ok_or_else(cut)?).map_err(|_| senseless())?;
    let body = usize::try_from(message.bodyLength()).map_err(|_| senseless())?;
    if body > rest.len() - head {
        return Err(cut());
    }
    let whole = length.checked_add(PREFIX as i32).ok_or_else(senseless)?;
    let block = Block::new(*at as i64, whole, body as i64);
    *at += PREFIX + head + body;
    Ok((message, block))
}

/// The columns that a message announces, if they are such as frames have: numbers, and lists of numbers.
pub fn schema(message: &Message<'_>) -> Result<Arc<Schema>, String> {
    let schema = message.header_as_schema();
    let schema = schema.ok_or("it does not say what its columns are")?;
    let schema = try_fb_to_schema(schema).map_err(|error| error.to_string())?;
    let is_plain = |kind: &DataType| match kind {
        DataType::List(item) => item.data_type().is_primitive(),
        DataType::FixedSizeList(item, width) => *width > 0 && item.data_type().is_primitive(),
        other => other.is_primitive(),
    };
    match schema
        .fields()
        .iter()
        .find(|field| !is_plain(field.data_type()))
    {
        Some(field) => Err(format!("its column {} has another type", field.name())),
        None => Ok(Arc::new(schema)),
    }
}

/// Adds how many bytes an entry has in each buffer of a column: of bits that tell gaps, of any length, of the ends of lists, of numbers.
fn add_widths(kind: &DataType, widths: &mut Vec<i64>) {
    widths.push(1);
    match kind {
        DataType::List(item) => {
            widths.push(size_of::<i32>() as i64);
            add_widths(item.data_type(), widths);
        }
        DataType::FixedSizeList(item, _) => add_widths(item.data_type(), widths),
        number => widths.push(number.primitive_width().unwrap_or(1) as i64),
    }
}

/// Refuses a batch of `schema` that points outside of its `body`, has parts of entries or gaps, or asks for more than any batch has.
pub fn check(message: &Message<'_>, schema: &Schema, body: &[u8]) -> Result<(), String> {
    let batch = message.header_as_record_batch();
    let batch: RecordBatch<'_> = batch.ok_or("a part of it is not a batch")?;
    let is_packed = batch.compression().is_some();
    let mut widths = Vec::new();
    for field in schema.fields() {
        add_widths(field.data_type(), &mut widths);
    }
    for (buffer, width) in batch.buffers().into_iter().flatten().zip(widths) {
        let start = usize::try_from(buffer.offset()).ok();
        let length = usize::try_from(buffer.length()).ok();
        let range = start
            .zip(length)
            .and_then(|(start, length)| Some(start..start.checked_add(length)?));
        let bytes = range.and_then(|range| body.get(range));
        let bytes = bytes.ok_or("a batch points outside of itself")?;
        // What is packed begins with its length, or with -1 where packing did not pay.
        let length = match bytes.first_chunk().filter(|_| is_packed) {
            Some(said) if *said != [MARK; 8] => i64::from_le_bytes(*said),
            Some(_) => bytes.len() as i64 - 8,
            None => bytes.len() as i64,
        };
        if length > MOST_ENTRIES * LARGEST || length % width != 0 {
            return Err("a batch has an impossible length".into());
        }
    }
    let counts = 0..=MOST_ENTRIES;
    let mut nodes = batch.nodes().into_iter().flatten();
    let fits = nodes.all(|node| counts.contains(&node.length()) && node.null_count() == 0);
    match fits && counts.contains(&batch.length()) {
        true => Ok(()),
        false => Err("a batch has gaps, or an impossible length".into()),
    }
}
