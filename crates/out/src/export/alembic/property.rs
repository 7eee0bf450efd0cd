//! How Alembic lays properties, objects and times into Ogawa (AbcCoreOgawa's WriteUtil).

use super::ogawa::{Entry, Ogawa};
use std::io::{self, Seek, Write};
use xxhash_rust::xxh3::xxh3_128;

/// Alembic's codes for plain types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pod {
    Boolean = 0,
    Uint8 = 1,
    Uint16 = 3,
    Uint32 = 5,
    Int32 = 6,
    Uint64 = 7,
    Float32 = 10,
    Float64 = 11,
}

impl Pod {
    fn size(self) -> usize {
        match self {
            Self::Boolean | Self::Uint8 => 1,
            Self::Uint16 => 2,
            Self::Uint32 | Self::Int32 | Self::Float32 => 4,
            Self::Uint64 | Self::Float64 => 8,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "bool_t",
            Self::Uint8 => "uint8_t",
            Self::Uint16 => "uint16_t",
            Self::Uint32 => "uint32_t",
            Self::Int32 => "int32_t",
            Self::Uint64 => "uint64_t",
            Self::Float32 => "float32_t",
            Self::Float64 => "float64_t",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Scalar = 1,
    Array = 2,
}

/// Name, metadata and type of a property.
#[derive(Clone, Debug)]
pub struct Header {
    pub name: String,
    pub metadata: String,
    pub shape: Shape,
    pub pod: Pod,
    /// Plain values in one element.
    pub extent: usize,
}

/// Metadata is repeated often; files hold each text once and count.
#[derive(Default)]
pub struct MetadataTable(Vec<String>);

impl MetadataTable {
    /// Beyond this the text stands at its place.
    const MOST: usize = 254;
    const IN_PLACE: u32 = 255;

    fn index(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(index) = self.0.iter().position(|known| known == text) {
            return index as u32 + 1;
        }
        if text.len() > 255 || self.0.len() >= Self::MOST {
            return Self::IN_PLACE;
        }
        self.0.push(text.to_owned());
        self.0.len() as u32
    }

    pub fn bytes(&self) -> Vec<u8> {
        let entry = |text: &String| [&[text.len() as u8], text.as_bytes()].concat();
        self.0.iter().flat_map(entry).collect()
    }
}

/// A property over time: samples go to disk as they come, places stay in memory.
pub struct Property {
    header: Header,
    /// One entry a sample; arrays have one more for dimensions, always told by the size.
    entries: Vec<Entry>,
    samples: u32,
    last_key: Option<u128>,
    last_count: Option<usize>,
    constant: bool,
    same_size: bool,
    one_element: bool,
}

impl Property {
    pub fn new(header: Header) -> Self {
        Self {
            header,
            entries: Vec::new(),
            samples: 0,
            last_key: None,
            last_count: None,
            constant: true,
            same_size: true,
            one_element: true,
        }
    }

    pub fn name(&self) -> &str {
        &self.header.name
    }

    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Writes the next sample; one like the last is not written again.
    pub fn add<W: Write + Seek>(&mut self, ogawa: &mut Ogawa<W>, bytes: &[u8]) -> io::Result<()> {
        let key = xxh3_128(bytes);
        let repeated = self.last_key == Some(key);
        let entry = match self.entries.last_chunk::<2>() {
            Some([entry, _]) if repeated && self.header.shape == Shape::Array => *entry,
            _ if repeated => *self.entries.last().expect("a sample was written"),
            // Readers use the key only to tell samples apart.
            _ if bytes.is_empty() => Entry::EMPTY_DATA,
            _ => ogawa.data(&[&key.to_le_bytes(), bytes])?,
        };
        self.entries.push(entry);
        if self.header.shape == Shape::Array {
            self.entries.push(Entry::EMPTY_DATA);
        }
        let count = bytes.len() / (self.header.pod.size() * self.header.extent);
        self.constant &= self.samples == 0 || repeated;
        self.same_size &= self.last_count.is_none_or(|last| last == count);
        self.one_element &= count == 1;
        self.last_key = Some(key);
        self.last_count = Some(count);
        self.samples += 1;
        Ok(())
    }

    /// Ends the property: its group, and its header appended to `headers`.
    pub fn finish<W: Write + Seek>(
        &mut self,
        ogawa: &mut Ogawa<W>,
        (table, headers): (&mut MetadataTable, &mut Vec<u8>),
    ) -> io::Result<Entry> {
        let stored = match (self.constant, self.header.shape) {
            (false, _) => self.entries.len(),
            (true, Shape::Scalar) => self.entries.len().min(1),
            (true, Shape::Array) => self.entries.len().min(2),
        };
        self.write_header(table, headers);
        ogawa.group(&self.entries[..stored])
    }

    fn write_header(&self, table: &mut MetadataTable, to: &mut Vec<u8>) {
        let Header {
            name,
            metadata,
            shape,
            pod,
            extent,
        } = &self.header;
        let longest = name.len().max(metadata.len()).max(self.samples as usize);
        let numbers = Numbers::up_to(longest);
        let index = table.index(metadata);
        let mut info = *shape as u32 | numbers.hint() << 2 | (*pod as u32) << 4;
        info |= u32::from(self.one_element && *shape == Shape::Array);
        info |= TIMED;
        info |= if self.same_size { SAME_SIZE } else { 0 };
        info |= if self.constant { CONSTANT } else { 0 };
        info |= (*extent as u32) << 12 | index << 20;
        to.extend(info.to_le_bytes());
        numbers.push(to, self.samples);
        numbers.push(to, TIME_SAMPLING);
        numbers.push(to, name.len() as u32);
        to.extend(name.as_bytes());
        if index == MetadataTable::IN_PLACE {
            numbers.push(to, metadata.len() as u32);
            to.extend(metadata.as_bytes());
        }
    }
}

/// Bits of a property's header.
const TIMED: u32 = 0x100;
const SAME_SIZE: u32 = 0x400;
const CONSTANT: u32 = 0x800;
/// The time sampling of every property: the second, after Alembic's default.
const TIME_SAMPLING: u32 = 1;

/// The header of a compound of properties.
pub fn compound_header(
    name: &str,
    metadata: &str,
    (table, to): (&mut MetadataTable, &mut Vec<u8>),
) {
    let numbers = Numbers::up_to(name.len().max(metadata.len()));
    let index = table.index(metadata);
    to.extend((numbers.hint() << 2 | index << 20).to_le_bytes());
    numbers.push(to, name.len() as u32);
    to.extend(name.as_bytes());
    if index == MetadataTable::IN_PLACE {
        numbers.push(to, metadata.len() as u32);
        to.extend(metadata.as_bytes());
    }
}

/// The header of an object.
pub fn object_header(name: &str, metadata: &str, table: &mut MetadataTable) -> Vec<u8> {
    let index = table.index(metadata);
    let mut to = (name.len() as u32).to_le_bytes().to_vec();
    to.extend(name.as_bytes());
    to.push(index as u8);
    if index == MetadataTable::IN_PLACE {
        to.extend((metadata.len() as u32).to_le_bytes());
        to.extend(metadata.as_bytes());
    }
    to
}

/// How wide the numbers of a header are.
#[derive(Clone, Copy)]
struct Numbers {
    bytes: usize,
}

impl Numbers {
    fn up_to(longest: usize) -> Self {
        let bytes = match longest {
            0..256 => 1,
            256..65_536 => 2,
            _ => 4,
        };
        Self { bytes }
    }

    fn hint(self) -> u32 {
        self.bytes as u32 / 2
    }

    fn push(self, to: &mut Vec<u8>, number: u32) {
        to.extend(&number.to_le_bytes()[..self.bytes]);
    }
}

/// The times of all samples: Alembic's default, then ours; uniform where the steps are even, else one by one.
pub fn time_samplings(times: &[f64], fps: f64) -> Vec<u8> {
    // Alembic's mark of times told one by one.
    const ACYCLIC: f64 = f64::MAX / 32.0;
    let start = times.first().copied().unwrap_or(0.0);
    let step = 1.0 / fps;
    let uneven = |(i, time): (usize, &f64)| (time - start - i as f64 * step).abs() > 1e-6 * step;
    let (cycle, stored) = if times.iter().enumerate().any(uneven) {
        (ACYCLIC, times)
    } else {
        (step, std::slice::from_ref(&start))
    };
    let mut to = Vec::new();
    for (samples, cycle, stored) in [
        (0, 1.0, [0.0].as_slice()),
        (times.len() as u32, cycle, stored),
    ] {
        to.extend(samples.to_le_bytes());
        to.extend(cycle.to_le_bytes());
        to.extend((stored.len() as u32).to_le_bytes());
        to.extend(stored.iter().flat_map(|time| time.to_le_bytes()));
    }
    to
}
