//! Ogawa, the container of Alembic: data and groups of data, each known by its place in the file. Everything is written once, from
//! front to back, but for the place of the root group, which is known last.

use std::io::{self, Seek, SeekFrom, Write};

/// Magic, a byte that says "finished", the version, and room for the root's place.
const HEADER: [u8; 16] = *b"Ogawa\xff\x00\x01\0\0\0\0\0\0\0\0";
const ROOT_PLACE: u64 = 8;
/// Set in a group's entry that is data rather than a group; alone, it is empty data.
const DATA: u64 = 1 << 63;

/// An entry of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    pub const EMPTY_DATA: Self = Self(DATA);
}

pub struct Ogawa<'a, W> {
    to: &'a mut W,
    place: u64,
}

impl<'a, W: Write + Seek> Ogawa<'a, W> {
    pub fn begin(to: &'a mut W) -> io::Result<Self> {
        to.write_all(&HEADER)?;
        let place = HEADER.len() as u64;
        Ok(Self { to, place })
    }

    /// Writes the parts one after another as one piece of data.
    pub fn data(&mut self, parts: &[&[u8]]) -> io::Result<Entry> {
        let size = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if size == 0 {
            return Ok(Entry::EMPTY_DATA);
        }
        let place = self.place;
        self.to.write_all(&size.to_le_bytes())?;
        for part in parts {
            self.to.write_all(part)?;
        }
        self.place += 8 + size;
        Ok(Entry(place | DATA))
    }

    pub fn group(&mut self, entries: &[Entry]) -> io::Result<Entry> {
        // The empty group is place zero, where no group can be.
        if entries.is_empty() {
            return Ok(Entry(0));
        }
        let place = self.place;
        self.to.write_all(&(entries.len() as u64).to_le_bytes())?;
        for entry in entries {
            self.to.write_all(&entry.0.to_le_bytes())?;
        }
        self.place += 8 + 8 * entries.len() as u64;
        Ok(Entry(place))
    }

    pub fn finish(self, root: Entry) -> io::Result<()> {
        self.to.seek(SeekFrom::Start(ROOT_PLACE))?;
        self.to.write_all(&root.0.to_le_bytes())?;
        self.to.seek(SeekFrom::End(0))?;
        Ok(())
    }
}
