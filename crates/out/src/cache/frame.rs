//! One frame, one Arrow IPC (Feather) file: a column a quantity, units and the frame's own facts in the metadata.
//!
//! The bytes depend on nothing but the frame. The footer holds a checksum of everything before it, so that a damaged
//! file is noticed before it is believed. Of what the footer repeats nothing else is read: no checksum covers it.

use super::grains::GrainKey;
use super::message;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use barchan_base::column::{ColumnSpec, Kind};
use barchan_sim::scene::{Compression, Scene};
use barchan_sim::solids::BodyPlace;
use barchan_sim::state::Particles;
use glam::Vec3;
use serde_json::json;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Rows in a batch: bounds the memory that writing takes.
const BATCH: usize = 1 << 19;
/// Arrow files begin and end with this.
const MAGIC: &[u8; 6] = b"ARROW1";
/// The longest footer that is looked for [bytes].
const MOST_FOOTER: u64 = 1 << 22;
/// What follows the footer: its length and the file's last word [bytes].
const TRAILER: usize = 4 + MAGIC.len();
/// Key of the checksum in the footer.
pub(super) const CHECKSUM: &str = "barchan.xxh3";
/// Key of the frame's number.
const NUMBER: &str = "barchan.frame";

/// The facts about a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameMeta {
    /// Number of the frame; 0 is the start.
    pub frame: u32,
    /// Time [s].
    pub time: f64,
    /// Frames a second.
    pub fps: f64,
    /// Name of the scene.
    pub scene: String,
    /// Unit vector up.
    pub up: Vec3,
    /// Gravity [m/s²].
    pub gravity: Vec3,
    /// Names of the materials, in the order of their indices.
    pub materials: Vec<String>,
    /// Where the bodies are, in the order of the scene.
    pub bodies: Vec<BodyPlace>,
}

impl FrameMeta {
    /// The facts about frame `frame` of `scene`, without the places of its bodies.
    pub fn of(scene: &Scene, frame: u32) -> Self {
        Self {
            frame,
            time: f64::from(frame) / scene.fps,
            fps: scene.fps,
            scene: scene.name.clone(),
            up: scene.model.up,
            gravity: scene.model.gravity,
            materials: scene
                .model
                .materials
                .iter()
                .map(|material| material.name.clone())
                .collect(),
            bodies: Vec::new(),
        }
    }

    fn to_pairs(&self) -> HashMap<String, String> {
        let vector = |v: Vec3| format!("{} {} {}", v.x, v.y, v.z);
        HashMap::from(
            [
                ("barchan.format", "1".to_owned()),
                (NUMBER, self.frame.to_string()),
                ("barchan.time", self.time.to_string()),
                ("barchan.fps", self.fps.to_string()),
                ("barchan.scene", self.scene.clone()),
                ("barchan.up", vector(self.up)),
                ("barchan.gravity", vector(self.gravity)),
                ("barchan.materials", self.materials.join("\n")),
                ("barchan.bodies", json!(self.bodies).to_string()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        )
    }

    fn from_pairs(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let vector = |key: &str| -> Option<Vec3> {
            let text = get(key)?;
            let parts: Vec<f32> = text
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            Some(Vec3::from_array(parts.try_into().ok()?))
        };
        Some(Self {
            frame: get(NUMBER)?.parse().ok()?,
            time: get("barchan.time")?.parse().ok()?,
            fps: get("barchan.fps")?.parse().ok()?,
            scene: get("barchan.scene")?,
            up: vector("barchan.up")?,
            gravity: vector("barchan.gravity")?,
            materials: get("barchan.materials")?
                .split('\n')
                .map(str::to_owned)
                .collect(),
            // Frames of before bodies were recorded have none.
            bodies: match get("barchan.bodies") {
                Some(text) => serde_json::from_str(&text).ok()?,
                None => Vec::new(),
            },
        })
    }
}

/// A frame as it comes from disk.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its facts.
    pub meta: FrameMeta,
    /// Its particles, with the solver's own columns.
    pub particles: Particles,
}

/// A frame file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not a whole, undamaged frame.
    #[error("{path} is damaged ({reason}); delete it and run the scene again to make it anew")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It is another frame than its name says.
    #[error(
        "{path} is frame {found}, not frame {expected} as its name says; give the files their own names again, or delete it and run \
         the scene again to make it anew"
    )]
    Misnamed {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: u32,
        /// What it should be.
        expected: u32,
    },
}

fn data_type(kind: Kind) -> DataType {
    let floats = |count| {
        DataType::FixedSizeList(
            Arc::new(Field::new("item", DataType::Float32, false)),
            count,
        )
    };
    match kind {
        Kind::F32 => DataType::Float32,
        Kind::F64 => DataType::Float64,
        Kind::Vec3 => floats(3),
        Kind::Vec4 => floats(4),
        Kind::Mat3 => floats(9),
        Kind::U16 => DataType::UInt16,
        Kind::U32 => DataType::UInt32,
        Kind::U64 => DataType::UInt64,
    }
}

pub(super) fn field(spec: ColumnSpec) -> Field {
    let unit = HashMap::from([("unit".to_owned(), spec.unit.to_owned())]);
    Field::new(spec.name, data_type(spec.kind), false).with_metadata(unit)
}

/// Copies bytes into an array of their kind.
fn array(kind: Kind, bytes: &[u8]) -> ArrayRef {
    fn scalars<T: ArrowNativeType>(bytes: &[u8]) -> ScalarBuffer<T> {
        ScalarBuffer::from(Buffer::from_slice_ref(bytes))
    }
    let list = |width: i32| -> ArrayRef {
        let values = Arc::new(PrimitiveArray::<Float32Type>::new(scalars(bytes), None));
        let item = Arc::new(Field::new("item", DataType::Float32, false));
        Arc::new(FixedSizeListArray::new(item, width, values, None))
    };
    match kind {
        Kind::F32 => Arc::new(PrimitiveArray::<Float32Type>::new(scalars(bytes), None)),
        Kind::F64 => Arc::new(PrimitiveArray::<Float64Type>::new(scalars(bytes), None)),
        Kind::Vec3 => list(3),
        Kind::Vec4 => list(4),
        Kind::Mat3 => list(9),
        Kind::U16 => Arc::new(PrimitiveArray::<UInt16Type>::new(scalars(bytes), None)),
        Kind::U32 => Arc::new(PrimitiveArray::<UInt32Type>::new(scalars(bytes), None)),
        Kind::U64 => Arc::new(PrimitiveArray::<UInt64Type>::new(scalars(bytes), None)),
    }
}

/// Hashes and counts what passes through.
struct Hashing<W> {
    to: W,
    hash: Xxh3,
    count: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a frame to `to`.
///
/// # Errors
/// What the disk says.
pub fn write_frame(
    to: impl Write,
    meta: &FrameMeta,
    particles: &Particles,
    compression: Compression,
) -> io::Result<()> {
    write_columns(to, meta, &particles.raw(), compression)
}

/// Writes a frame of these columns to `to`.
pub(super) fn write_columns(
    to: impl Write,
    meta: &FrameMeta,
    columns: &[(ColumnSpec, &[u8])],
    compression: Compression,
) -> io::Result<()> {
    write_arrow(to, meta, columns, compression).map_err(disk_error)
}

fn write_arrow(
    to: impl Write,
    meta: &FrameMeta,
    columns: &[(ColumnSpec, &[u8])],
    compression: Compression,
) -> Result<(), ArrowError> {
    let specs: Vec<ColumnSpec> = columns.iter().map(|(spec, _)| *spec).collect();
    let mut writer = FrameWriter::of_columns(to, meta, &specs, compression)?;
    writer.rows(columns)?;
    writer.finish(&[])
}

/// Writes a frame piece by piece, for those who never have all of it in memory.
pub(crate) struct FrameWriter<W: Write> {
    writer: FileWriter<Hashing<W>>,
    schema: Arc<Schema>,
}

impl<W: Write> FrameWriter<W> {
    /// A frame of columns of one entry a row.
    pub fn of_columns(
        to: W,
        meta: &FrameMeta,
        columns: &[ColumnSpec],
        compression: Compression,
    ) -> Result<Self, ArrowError> {
        let fields: Vec<Field> = columns.iter().map(|spec| field(*spec)).collect();
        Self::new(to, (meta, &[]), fields, compression)
    }

    /// A frame of any fields, with more to say than its facts.
    pub fn new(
        to: W,
        (meta, more): (&FrameMeta, &[(String, String)]),
        fields: Vec<Field>,
        compression: Compression,
    ) -> Result<Self, ArrowError> {
        let mut pairs = meta.to_pairs();
        pairs.extend(more.iter().cloned());
        let schema = Arc::new(Schema::new_with_metadata(fields, pairs));
        let codec = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd => Some(CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::default().try_with_compression(codec)?;
        let hashing = Hashing {
            to,
            hash: Xxh3::new(),
            count: 0,
        };
        let writer = FileWriter::try_new_with_options(hashing, &schema, options)?;
        Ok(Self { writer, schema })
    }

    /// Adds rows, as bytes column by column.
    pub fn rows(&mut self, columns: &[(ColumnSpec, &[u8])]) -> Result<(), ArrowError> {
        let count = columns
            .first()
            .map_or(0, |(spec, bytes)| bytes.len() / spec.kind.size());
        // An empty frame still has one batch, so that every reader finds its columns.
        for start in (0..count.max(1)).step_by(BATCH) {
            let rows = start..(start + BATCH).min(count);
            let slice = |(spec, bytes): &(ColumnSpec, &[u8])| {
                let size = spec.kind.size();
                array(spec.kind, &bytes[rows.start * size..rows.end * size])
            };
            self.arrays(columns.iter().map(slice).collect())?;
        }
        Ok(())
    }

    /// Adds rows, as arrays of the fields' types.
    pub fn arrays(&mut self, arrays: Vec<ArrayRef>) -> Result<(), ArrowError> {
        self.writer
            .write(&RecordBatch::try_new(self.schema.clone(), arrays)?)
    }

    /// Ends the file with its checksum and with `notes`, keys and words that [`super::RunFolder::frame_note`] finds.
    pub fn finish(mut self, notes: &[(&str, &str)]) -> Result<(), ArrowError> {
        let hashing = self.writer.get_ref();
        let checksum = format!("{} {:016x}", hashing.count, hashing.hash.digest());
        self.writer.write_metadata(CHECKSUM, checksum);
        for (key, words) in notes {
            self.writer.write_metadata(*key, *words);
        }
        self.writer.finish()?;
        self.writer.into_inner()?.to.flush()?;
        Ok(())
    }
}

/// What the disk says, where a frame could not be written.
pub(crate) fn disk_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

/// Reads a frame file, whatever its name; a run's are read by [`super::RunFolder::read_frame`].
///
/// # Errors
/// If it cannot be read, is damaged, or lacks a column.
pub fn read_frame(path: &Path) -> Result<Frame, FrameError> {
    let bytes = barchan_base::mesh::read_file(path).map_err(|source| FrameError::Io {
        path: path.to_owned(),
        source,
    })?;
    parse_frame(bytes).map_err(|reason| FrameError::Damaged {
        path: path.to_owned(),
        reason,
    })
}

/// Refuses the file of frame `expected` where it is frame `found`: files can be renamed, and the time and the bodies of a frame are its own.
pub(super) fn check_number(path: &Path, found: u32, expected: u32) -> Result<(), FrameError> {
    if found == expected {
        return Ok(());
    }
    Err(FrameError::Misnamed {
        path: path.to_owned(),
        found,
        expected,
    })
}

/// What the footer of the file of frame `number` says under `key`, without reading the rest.
pub(super) fn frame_note(
    path: &Path,
    number: u32,
    key: &str,
) -> Result<Option<String>, FrameError> {
    let bytes = end_of(path).map_err(|source| FrameError::Io {
        path: path.to_owned(),
        source,
    })?;
    let read = || -> Result<_, String> {
        let footer = footer(&bytes)?;
        let found = number_in(&footer).ok_or("it does not say which frame it is")?;
        Ok((found, note(&footer, key).map(str::to_owned)))
    };
    let (found, words) = read().map_err(|reason| FrameError::Damaged {
        path: path.to_owned(),
        reason,
    })?;
    check_number(path, found, number)?;
    Ok(words)
}

/// The footer of a file and what follows it, as far as there is such a thing.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let last = |length: u64| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&file).seek(SeekFrom::Start(size.saturating_sub(length)))?;
        (&file).take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let trailer = last(TRAILER as u64)?;
    let length = trailer
        .first_chunk()
        .map(|length| i32::from_le_bytes(*length));
    let length = length.and_then(|length| u64::try_from(length).ok());
    last(TRAILER as u64 + length.unwrap_or(0).min(MOST_FOOTER))
}

/// Which frame a file is, as its footer repeats it.
fn number_in(footer: &arrow_ipc::Footer<'_>) -> Option<u32> {
    let pairs = footer.schema()?.custom_metadata()?;
    let pair = pairs.iter().find(|pair| pair.key() == Some(NUMBER))?;
    pair.value()?.parse().ok()
}

pub(super) fn parse_frame(bytes: Vec<u8>) -> Result<Frame, String> {
    let buffer = Buffer::from_vec(bytes);
    let covered = covered(&buffer)?;
    let mut at = MAGIC.len()
        + covered[MAGIC.len()..]
            .iter()
            .take_while(|b| **b == 0)
            .count();
    let (head, _) = message::take(covered, &mut at)?;
    let schema = message::schema(&head)?;
    let get = |key: &str| schema.metadata().get(key).cloned();
    let meta = FrameMeta::from_pairs(get).ok_or("it lacks the frame's facts")?;
    let compact = GrainKey::from_pairs(get)?;
    let decoder = FileDecoder::new(schema.clone(), head.version());
    let mut particles = Particles::default();
    while at < covered.len() {
        let (message, block) = message::take(covered, &mut at)?;
        let data = buffer.slice_with_length(block.offset() as usize, at - block.offset() as usize);
        message::check(&message, &schema, &data[block.metaDataLength() as usize..])?;
        let batch = decoder
            .read_record_batch(&block, &data)
            .map_err(|e| e.to_string())?;
        let batch = batch.ok_or("a batch is empty")?;
        if let Some(key) = compact {
            super::compact::append(&mut particles, &batch, key)?;
            continue;
        }
        let before = particles.len();
        append(&mut particles, &batch)?;
        super::extra::append(&mut particles, before, &batch)?;
    }
    Ok(Frame { meta, particles })
}

/// The footer at the end of `bytes`.
fn footer(bytes: &[u8]) -> Result<arrow_ipc::Footer<'_>, String> {
    if bytes.len() < 20 || !bytes.ends_with(MAGIC) {
        return Err("it is not a whole Arrow file".into());
    }
    let trailer = bytes.len() - TRAILER;
    let length = i32::from_le_bytes(bytes[trailer..trailer + 4].try_into().expect("four bytes"));
    let start = usize::try_from(length)
        .ok()
        .and_then(|length| trailer.checked_sub(length));
    let footer = &bytes[start.ok_or("its footer has an impossible length")?..trailer];
    arrow_ipc::root_as_footer(footer).map_err(|e| format!("its footer makes no sense: {e}"))
}

/// What a footer says under `key`.
fn note<'a>(footer: &arrow_ipc::Footer<'a>, key: &str) -> Option<&'a str> {
    let pairs = footer.custom_metadata();
    let mut pairs = pairs.iter().flatten();
    pairs
        .find(|pair| pair.key() == Some(key))
        .and_then(|pair| pair.value())
}

/// The bytes that the checksum in the footer is of, if it is right.
fn covered(bytes: &[u8]) -> Result<&[u8], String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it is not a whole Arrow file".into());
    }
    let footer = footer(bytes)?;
    let (count, hash) = note(&footer, CHECKSUM)
        .and_then(|text| text.split_once(' '))
        .ok_or("it has no checksum")?;
    let count: usize = count.parse().map_err(|_| "its checksum makes no sense")?;
    let covered = bytes.get(..count).ok_or("it is cut short")?;
    if format!("{:016x}", xxh3_64(covered)) != hash {
        return Err("its checksum does not match".into());
    }
    if count < MAGIC.len() {
        return Err("it is cut short".into());
    }
    Ok(covered)
}

fn append(particles: &mut Particles, batch: &RecordBatch) -> Result<(), String> {
    let column = |name: &str| {
        batch
            .column_by_name(name)
            .ok_or_else(|| format!("it lacks the column {name}"))
    };
    let wrong = |name: &str| format!("its column {name} has another type");
    fn vectors(array: &ArrayRef) -> Option<Vec<Vec3>> {
        let list = array
            .as_fixed_size_list_opt()
            .filter(|list| list.value_length() == 3)?;
        let values = list.values().as_primitive_opt::<Float32Type>()?.values();
        if values.len() != 3 * list.len() {
            return None;
        }
        let (triples, _) = values.as_chunks::<3>();
        Some(
            triples
                .iter()
                .map(|triple| Vec3::from_array(*triple))
                .collect(),
        )
    }
    let ids = column("id")?
        .as_primitive_opt::<UInt64Type>()
        .ok_or_else(|| wrong("id"))?;
    particles.id.extend(ids.values());
    particles
        .position
        .extend(vectors(column("position")?).ok_or_else(|| wrong("position"))?);
    particles
        .velocity
        .extend(vectors(column("velocity")?).ok_or_else(|| wrong("velocity"))?);
    let floats = |name: &str| -> Result<&[f32], String> {
        Ok(column(name)?
            .as_primitive_opt::<Float32Type>()
            .ok_or_else(|| wrong(name))?
            .values())
    };
    particles.radius.extend(floats("radius")?);
    particles.mass.extend(floats("mass")?);
    let materials = column("material")?
        .as_primitive_opt::<UInt16Type>()
        .ok_or_else(|| wrong("material"))?;
    particles.material.extend(materials.values());
    particles.wetness.extend(floats("wetness")?);
    Ok(())
}

/// Gives damaged bytes the checksum that they would have, if their footer still has one.
#[cfg(test)]
pub(super) fn seal(bytes: &mut [u8]) {
    let said = footer(bytes).ok().and_then(|footer| {
        let (count, hash) = note(&footer, CHECKSUM)?.split_once(' ')?;
        Some((count.parse::<usize>().ok()?, hash.as_bytes().to_vec()))
    });
    let Some((count, said)) = said else {
        return;
    };
    let at = bytes.windows(said.len()).rposition(|part| part == said);
    if let (Some(at), Some(covered)) = (at, bytes.get(..count)) {
        let hash = format!("{:016x}", xxh3_64(covered));
        let length = said.len().min(hash.len());
        bytes[at..at + length].copy_from_slice(&hash.as_bytes()[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::column::Column;

    const HEAT: ColumnSpec = ColumnSpec::new("heat", "K", Kind::F64);
    const STRAIN: ColumnSpec = ColumnSpec::new("strain", "1", Kind::Mat3);

    fn sample(count: usize) -> (FrameMeta, Particles) {
        let mut particles = Particles {
            extra: vec![Column::zeros(HEAT, 0), Column::zeros(STRAIN, 0)],
            ..Default::default()
        };
        particles.resize(count);
        for i in 0..count {
            particles.id[i] = i as u64;
            particles.position[i] = Vec3::new(i as f32, 0.5, -1.0);
            particles.velocity[i] = Vec3::splat(i as f32 * 0.1);
            particles.mass[i] = 2.0;
            particles.extra[0].set(i, i as f64 * 0.5);
            particles.extra[1].set(i, glam::Mat3::from_diagonal(Vec3::splat(i as f32)));
        }
        let meta = FrameMeta {
            frame: 12,
            time: 0.5,
            fps: 24.0,
            scene: "sample".into(),
            up: Vec3::Y,
            gravity: Vec3::new(0.0, -9.81, 0.0),
            materials: vec!["sand".into(), "gravel".into()],
            bodies: vec![BodyPlace {
                name: "a \"crate\"\n".into(),
                motion: "dynamic".into(),
                position: [0.1, f32::MIN_POSITIVE, -0.0],
                rotation: [0.0, 0.6, 0.0, 0.8],
                center: [1.0 / 3.0, 2.0, 3.0],
                velocity: [-1e-20, 0.0, 1e20],
                spin: [0.0; 3],
            }],
        };
        (meta, particles)
    }

    fn bytes(count: usize, compression: Compression) -> Vec<u8> {
        let (meta, particles) = sample(count);
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &meta, &particles, compression).unwrap();
        bytes
    }

    #[test]
    fn frames_come_back_as_they_went() {
        for count in [0, 1, 1000, BATCH + 5] {
            for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
                let frame = parse_frame(bytes(count, compression)).unwrap();
                let (meta, particles) = sample(count);
                assert_eq!((frame.meta, frame.particles), (meta, particles));
            }
        }
    }

    #[test]
    fn the_same_frame_has_the_same_bytes() {
        assert_eq!(
            bytes(5000, Compression::None),
            bytes(5000, Compression::None)
        );
    }

    #[test]
    fn damage_anywhere_before_the_footer_is_noticed() {
        let whole = bytes(300, Compression::None);
        for at in (0..whole.len() - 2500).step_by(101) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(parse_frame(damaged).is_err(), "byte {at}");
        }
        for cut in [0, 8, 100, whole.len() / 2, whole.len() - 1] {
            assert!(parse_frame(whole[..cut].to_vec()).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn damage_in_the_footer_is_noticed_or_changes_nothing() {
        let whole = bytes(60, Compression::None);
        let intact = parse_frame(whole.clone()).unwrap();
        for at in whole.len() - 4000..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            if let Ok(frame) = parse_frame(damaged) {
                let same = frame.meta == intact.meta && frame.particles == intact.particles;
                assert!(same, "byte {at} of {}", whole.len());
            }
        }
    }

    #[test]
    fn hostile_frames_that_seal_themselves_do_not_panic() {
        let wholes = [Compression::None, Compression::Lz4, Compression::Zstd].map(|c| bytes(60, c));
        bolero::check!()
            .with_iterations(6000)
            .with_type::<(u8, Vec<(u16, u8)>)>()
            .for_each(|(which, edits)| {
                let mut damaged = wholes[*which as usize % 3].clone();
                for (at, value) in edits.iter().take(3) {
                    // Where the schema and the first batch say what follows.
                    let at = *at as usize % damaged.len().min(4000);
                    damaged[at] = *value;
                }
                seal(&mut damaged);
                let _ = parse_frame(damaged);
            });
    }

    #[test]
    fn hostile_frames_do_not_panic() {
        let whole = bytes(60, Compression::None);
        bolero::check!()
            .with_iterations(4000)
            .with_type::<(Vec<(u16, u8)>, u16, Vec<u8>)>()
            .for_each(|(edits, cut, noise)| {
                let mut damaged = whole.clone();
                // The footer is what no checksum covers: aim there.
                let tail = damaged.len().saturating_sub(2500);
                for (at, value) in edits {
                    let at = tail + *at as usize % (damaged.len() - tail);
                    damaged[at] = *value;
                }
                damaged.truncate(damaged.len() - *cut as usize % 3);
                let _ = parse_frame(damaged);
                let _ = parse_frame(noise.clone());
            });
    }
}
