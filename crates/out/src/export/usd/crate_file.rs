//! USD's binary container, the crate file, as version 0.8.0 has it: values stand wherever they were written, and tables at the end say
//! what they are values of.
//!
//! Tables are compressed with LZ4. Ours are a few kilobytes, however many frames there are, so they are stored as LZ4 that copies:
//! every reader unpacks it, and no compressor is needed. Arrays are raw.

use std::collections::HashMap;
use std::io::{self, Seek, SeekFrom, Write};

const VERSION: [u8; 8] = [0, 8, 0, 0, 0, 0, 0, 0];
/// The file begins with a mark, the version, where the table of contents is, and room for later versions.
const BEGIN: usize = 88;
const ARRAY: u64 = 1 << 63;
const INLINED: u64 = 1 << 62;
/// Ends a set of fields.
const END_OF_SET: u32 = u32::MAX;

/// What a value is, in the numbers of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Int = 3,
    Int64 = 5,
    Float = 8,
    Double = 9,
    String = 10,
    Token = 11,
    Matrix4d = 15,
    Quath = 18,
    Vec3d = 23,
    Vec3f = 24,
    PathListOp = 34,
    TokenVector = 41,
    Specifier = 42,
    Variability = 44,
    TimeSamples = 46,
    DoubleVector = 48,
}

/// A value: its type, and itself where it is small, else where it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value(u64);

impl Value {
    fn new(kind: ValueType, payload: u64) -> Self {
        Self((kind as u64) << 48 | payload)
    }

    fn inlined(kind: ValueType, payload: u32) -> Self {
        Self(Self::new(kind, u64::from(payload)).0 | INLINED)
    }

    /// Something is defined here.
    pub fn define() -> Self {
        Self::inlined(ValueType::Specifier, 0)
    }

    /// Does not change with time.
    pub fn uniform() -> Self {
        Self::inlined(ValueType::Variability, 1)
    }
}

/// What stands at a path, in the numbers of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecType {
    Attribute = 1,
    Prim = 6,
    Root = 7,
    Relationship = 8,
}

/// One path and what stands there.
struct Spec {
    kind: SpecType,
    /// How many paths lead to it from the root.
    depth: usize,
    name: u32,
    fields: u32,
}

/// A file in the making.
pub struct CrateFile<'a, W> {
    file: &'a mut W,
    /// Bytes written.
    at: u64,
    tokens: HashMap<String, u32>,
    /// The tokens in order, each with a zero behind.
    token_text: Vec<u8>,
    strings: Vec<u32>,
    field_names: Vec<u32>,
    field_values: Vec<u64>,
    field_sets: Vec<u32>,
    specs: Vec<Spec>,
}

impl<'a, W: Write + Seek> CrateFile<'a, W> {
    /// Begins a file.
    pub fn new(file: &'a mut W) -> io::Result<Self> {
        file.write_all(&[0; BEGIN])?;
        let mut begun = Self {
            file,
            at: BEGIN as u64,
            tokens: HashMap::new(),
            token_text: Vec::new(),
            strings: Vec::new(),
            field_names: Vec::new(),
            field_values: Vec::new(),
            field_sets: Vec::new(),
            specs: Vec::new(),
        };
        // Names of properties are told from others by a minus, which zero does not have.
        begun.token_index("");
        Ok(begun)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Goes on at a multiple of eight bytes, where readers can use arrays as they stand; returns the place.
    fn align(&mut self) -> io::Result<u64> {
        let gap = self.at.next_multiple_of(8) - self.at;
        self.put(&[0; 8][..gap as usize])?;
        Ok(self.at)
    }

    fn token_index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.tokens.get(text) {
            return *index;
        }
        let index = self.tokens.len() as u32;
        self.tokens.insert(text.to_owned(), index);
        self.token_text.extend_from_slice(text.as_bytes());
        self.token_text.push(0);
        index
    }

    /// A word.
    pub fn token(&mut self, text: &str) -> Value {
        Value::inlined(ValueType::Token, self.token_index(text))
    }

    /// A text.
    pub fn string(&mut self, text: &str) -> Value {
        let token = self.token_index(text);
        self.strings.push(token);
        Value::inlined(ValueType::String, self.strings.len() as u32 - 1)
    }

    /// A value that is not an array, by its bytes.
    pub fn single(&mut self, kind: ValueType, bytes: &[u8]) -> io::Result<Value> {
        let place = self.align()?;
        self.put(bytes)?;
        Ok(Value::new(kind, place))
    }

    /// `count` values of one type, with their number before them.
    fn counted(&mut self, count: usize, bytes: &[u8]) -> io::Result<u64> {
        let place = self.align()?;
        self.put(&(count as u64).to_le_bytes())?;
        self.put(bytes)?;
        Ok(place)
    }

    /// An array of `count` values.
    pub fn array(&mut self, kind: ValueType, count: usize, bytes: &[u8]) -> io::Result<Value> {
        let place = match count {
            0 => 0,
            _ => self.counted(count, bytes)?,
        };
        Ok(Value(Value::new(kind, place).0 | ARRAY))
    }

    fn words(&mut self, words: &[&str]) -> Vec<u8> {
        let indices = words.iter().map(|word| self.token_index(word));
        indices.flat_map(u32::to_le_bytes).collect()
    }

    /// An array of words, as attributes have them.
    pub fn token_array(&mut self, words: &[&str]) -> io::Result<Value> {
        let bytes = self.words(words);
        self.array(ValueType::Token, words.len(), &bytes)
    }

    /// A list of words, as the format itself has them.
    pub fn token_list(&mut self, words: &[&str]) -> io::Result<Value> {
        let bytes = self.words(words);
        let place = self.counted(words.len(), &bytes)?;
        Ok(Value::new(ValueType::TokenVector, place))
    }

    /// Paths that a relationship leads to, as `spec` gave them.
    pub fn targets(&mut self, paths: &[u32]) -> io::Result<Value> {
        // A list that stands for itself, and has entries.
        const EXPLICIT: u8 = 0b11;
        let place = self.align()?;
        self.put(&[EXPLICIT])?;
        self.put(&(paths.len() as u64).to_le_bytes())?;
        for path in paths {
            self.put(&path.to_le_bytes())?;
        }
        Ok(Value::new(ValueType::PathListOp, place))
    }

    /// The times of samples, which many attributes can share.
    pub fn times(&mut self, times: &[f64]) -> io::Result<Value> {
        let bytes: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
        let place = self.counted(times.len(), &bytes)?;
        Ok(Value::new(ValueType::DoubleVector, place))
    }

    /// A value for each of `times`.
    pub fn time_samples(&mut self, times: Value, values: &[Value]) -> io::Result<Value> {
        // Times and values could each stand after something else, so that far has to be jumped: over the jump itself.
        const JUMP: [u8; 8] = 8u64.to_le_bytes();
        let place = self.align()?;
        self.put(&JUMP)?;
        self.put(&times.0.to_le_bytes())?;
        self.put(&JUMP)?;
        self.put(&(values.len() as u64).to_le_bytes())?;
        for value in values {
            self.put(&value.0.to_le_bytes())?;
        }
        Ok(Value::new(ValueType::TimeSamples, place))
    }

    /// Adds what stands at a path: `name` under the last one added with a lower `depth`. Parents come before their children. Returns
    /// the number of the path.
    pub fn spec(
        &mut self,
        kind: SpecType,
        depth: usize,
        name: &str,
        fields: &[(&str, Value)],
    ) -> u32 {
        let path = self.specs.len() as u32;
        let spec = Spec {
            kind,
            depth,
            name: self.token_index(name),
            fields: self.field_sets.len() as u32,
        };
        self.specs.push(spec);
        for (name, value) in fields {
            self.field_sets.push(self.field_values.len() as u32);
            let name = self.token_index(name);
            self.field_names.push(name);
            self.field_values.push(value.0);
        }
        self.field_sets.push(END_OF_SET);
        path
    }

    /// Writes the tables, and where they are.
    pub fn finish(mut self) -> io::Result<()> {
        let sections = [
            ("TOKENS", self.token_section()),
            ("STRINGS", self.string_section()),
            ("FIELDS", self.field_section()),
            ("FIELDSETS", counted_ints(&self.field_sets)),
            ("PATHS", self.path_section()),
            ("SPECS", self.spec_section()),
        ];
        let mut contents = (sections.len() as u64).to_le_bytes().to_vec();
        for (name, bytes) in &sections {
            let mut padded = [0; 16];
            padded[..name.len()].copy_from_slice(name.as_bytes());
            contents.extend_from_slice(&padded);
            contents.extend_from_slice(&self.at.to_le_bytes());
            contents.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            self.put(bytes)?;
        }
        let place = self.at;
        self.put(&contents)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(b"PXR-USDC")?;
        self.file.write_all(&VERSION)?;
        self.file.write_all(&place.to_le_bytes())?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    fn token_section(&self) -> Vec<u8> {
        let mut section = (self.tokens.len() as u64).to_le_bytes().to_vec();
        section.extend_from_slice(&(self.token_text.len() as u64).to_le_bytes());
        section.extend(sized(packed(&self.token_text)));
        section
    }

    fn string_section(&self) -> Vec<u8> {
        let mut section = (self.strings.len() as u64).to_le_bytes().to_vec();
        section.extend(self.strings.iter().flat_map(|index| index.to_le_bytes()));
        section
    }

    fn field_section(&self) -> Vec<u8> {
        let mut section = counted_ints(&self.field_names);
        let values = self
            .field_values
            .iter()
            .flat_map(|value| value.to_le_bytes());
        let values: Vec<u8> = values.collect();
        section.extend(sized(packed(&values)));
        section
    }

    /// Paths in the order of the specs: which it is, its name (minus for properties), and where its relatives are.
    fn path_section(&self) -> Vec<u8> {
        let count = self.specs.len();
        let indices: Vec<u32> = (0..count as u32).collect();
        let name = |spec: &Spec| match spec.kind {
            SpecType::Attribute | SpecType::Relationship => spec.name.wrapping_neg(),
            SpecType::Prim | SpecType::Root => spec.name,
        };
        let names: Vec<u32> = self.specs.iter().map(name).collect();
        let jumps: Vec<u32> = (0..count).map(|i| self.jump(i) as u32).collect();
        let mut section = (count as u64).to_le_bytes().to_vec();
        section.extend(counted_ints(&indices));
        for column in [names, jumps] {
            section.extend(sized(packed_ints(&column)));
        }
        section
    }

    /// From path `i` to its next sibling, its first child being the path after it; -1 without siblings, 0 without children, -2 with
    /// neither.
    fn jump(&self, i: usize) -> i32 {
        let depth = self.specs[i].depth;
        let after = &self.specs[i + 1..];
        let has_child = after.first().is_some_and(|next| next.depth > depth);
        let sibling = after.iter().position(|next| next.depth <= depth);
        let sibling = sibling.filter(|&place| after[place].depth == depth);
        match (has_child, sibling) {
            (false, None) => -2,
            (true, None) => -1,
            (false, Some(_)) => 0,
            (true, Some(place)) => place as i32 + 1,
        }
    }

    fn spec_section(&self) -> Vec<u8> {
        let paths: Vec<u32> = (0..self.specs.len() as u32).collect();
        let fields: Vec<u32> = self.specs.iter().map(|spec| spec.fields).collect();
        let kinds: Vec<u32> = self.specs.iter().map(|spec| spec.kind as u32).collect();
        let mut section = counted_ints(&paths);
        for column in [fields, kinds] {
            section.extend(sized(packed_ints(&column)));
        }
        section
    }
}

/// `bytes` with their number before them.
fn sized(bytes: Vec<u8>) -> Vec<u8> {
    let mut sized = (bytes.len() as u64).to_le_bytes().to_vec();
    sized.extend(bytes);
    sized
}

/// How many integers, and they.
fn counted_ints(values: &[u32]) -> Vec<u8> {
    let mut counted = (values.len() as u64).to_le_bytes().to_vec();
    counted.extend(sized(packed_ints(values)));
    counted
}

/// Integers as the format packs them: two bits each that tell how wide the difference to the one before is, then the differences.
fn packed_ints(values: &[u32]) -> Vec<u8> {
    let mut codes = vec![0u8; values.len().div_ceil(4)];
    let mut differences = Vec::new();
    let mut before = 0;
    for (i, &value) in values.iter().enumerate() {
        let difference = value.wrapping_sub(before) as i32;
        before = value;
        let code = if difference == 0 {
            0
        } else if let Ok(small) = i8::try_from(difference) {
            differences.extend_from_slice(&small.to_le_bytes());
            1
        } else if let Ok(middle) = i16::try_from(difference) {
            differences.extend_from_slice(&middle.to_le_bytes());
            2
        } else {
            differences.extend_from_slice(&difference.to_le_bytes());
            3
        };
        codes[i / 4] |= code << (2 * (i % 4));
    }
    // The difference that needs no bytes is zero.
    let mut bytes = 0i32.to_le_bytes().to_vec();
    bytes.extend(codes);
    bytes.extend(differences);
    packed(&bytes)
}

/// `bytes` as one block of LZ4 that only copies, behind a zero that says it is one.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0];
    match bytes.len() {
        length @ 0..15 => block.push((length as u8) << 4),
        length => {
            block.push(15 << 4);
            let rest = length - 15;
            block.resize(block.len() + rest / 255, 255);
            block.push((rest % 255) as u8);
        }
    }
    block.extend_from_slice(bytes);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What LZ4's rules make of a block that we packed.
    fn unpacked(block: &[u8]) -> Vec<u8> {
        assert_eq!((block[0], block[1] & 15), (0, 0), "one chunk, no match");
        let (mut length, mut at) = (usize::from(block[1] >> 4), 2);
        if length == 15 {
            loop {
                length += usize::from(block[at]);
                at += 1;
                if block[at - 1] != 255 {
                    break;
                }
            }
        }
        assert_eq!(block.len(), at + length);
        block[at..].to_vec()
    }

    #[test]
    fn blocks_of_any_length_unpack() {
        for length in [0, 1, 14, 15, 16, 269, 270, 271, 524, 525, 526, 5000] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
            assert_eq!(unpacked(&packed(&bytes)), bytes, "{length}");
        }
    }

    /// Numbers like those in the comments of USD's own source.
    #[test]
    fn integers_are_packed_as_differences() {
        let bytes = unpacked(&packed_ints(&[123, 124, 125, 100_125, 100_125, 100_025]));
        let mut expected = vec![0, 0, 0, 0, 0b1101_0101, 0b0000_0100];
        expected.extend([123, 1, 1]);
        expected.extend(100_000i32.to_le_bytes());
        expected.extend((-100i8).to_le_bytes());
        assert_eq!(bytes, expected);
    }

    #[test]
    fn paths_know_their_relatives() {
        let mut bytes = io::Cursor::new(Vec::new());
        let mut file = CrateFile::new(&mut bytes).expect("memory takes all");
        let paths = [
            (SpecType::Root, 0, ""),
            (SpecType::Prim, 1, "a"),
            (SpecType::Attribute, 2, "of_a"),
            (SpecType::Prim, 2, "b"),
            (SpecType::Attribute, 3, "of_b"),
            (SpecType::Prim, 1, "c"),
        ];
        for (kind, depth, name) in paths {
            file.spec(kind, depth, name, &[]);
        }
        let jumps: Vec<i32> = (0..paths.len()).map(|i| file.jump(i)).collect();
        assert_eq!(jumps, [-1, 4, 0, -1, -2, -2]);
        file.finish().expect("memory takes all");
        let bytes = bytes.into_inner();
        assert!(bytes.starts_with(b"PXR-USDC\0\x08\0"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let contents = word(16) as usize;
        assert_eq!(word(contents), 6);
        // Each section begins where the one before ends, and the contents end the file.
        let places: Vec<u64> = (0..6).map(|i| word(contents + 8 + 32 * i + 16)).collect();
        let sizes: Vec<u64> = (0..6).map(|i| word(contents + 8 + 32 * i + 24)).collect();
        for i in 0..5 {
            assert_eq!(places[i] + sizes[i], places[i + 1]);
        }
        assert_eq!(bytes.len(), contents + 8 + 6 * 32);
    }
}
