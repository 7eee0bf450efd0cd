//! JPEG pictures as a movie: Motion JPEG in AVI, which players and editing programs have known for thirty years.

use std::io::{self, Seek, SeekFrom, Write};

/// Players give up on an AVI without extensions that is larger [bytes].
pub const MOST_BYTES: u64 = 1 << 30;

/// A movie being written.
pub struct Avi<W> {
    to: W,
    size: [u32; 2],
    fps: f64,
    /// Where each picture begins after the word `movi`, and how long it is.
    index: Vec<[u32; 2]>,
    largest: u32,
    written: u64,
}

/// Bytes from the start of the file to the first picture.
const HEAD: u32 = 12 + 8 + 192 + 12;

impl<W: Write + Seek> Avi<W> {
    /// Begins a movie of pictures of `size` pixels, `fps` a second.
    ///
    /// # Errors
    /// What the disk says.
    pub fn new(mut to: W, size: [u32; 2], fps: f64) -> io::Result<Self> {
        to.write_all(&[0; HEAD as usize])?;
        Ok(Self {
            to,
            size,
            fps,
            index: Vec::new(),
            largest: 0,
            written: 0,
        })
    }

    /// Adds a JPEG picture.
    ///
    /// # Errors
    /// What the disk says, or if the movie has become too large.
    pub fn add(&mut self, jpeg: &[u8]) -> io::Result<()> {
        let length = jpeg.len() as u32;
        self.index.push([4 + self.written as u32, length]);
        self.largest = self.largest.max(length);
        self.to.write_all(b"00dc")?;
        self.to.write_all(&length.to_le_bytes())?;
        self.to.write_all(jpeg)?;
        if length % 2 == 1 {
            self.to.write_all(&[0])?;
        }
        self.written += u64::from(8 + length + length % 2);
        if self.written > MOST_BYTES {
            return Err(io::Error::other(
                "it is larger than an AVI can be; install ffmpeg, or make fewer or smaller pictures",
            ));
        }
        Ok(())
    }

    /// Writes the index and the head.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.write_all(b"idx1")?;
        self.to
            .write_all(&(16 * self.index.len() as u32).to_le_bytes())?;
        for [offset, length] in &self.index {
            self.to.write_all(b"00dc")?;
            // Every picture stands for itself: a key frame.
            for word in [0x10, *offset, *length] {
                self.to.write_all(&word.to_le_bytes())?;
            }
        }
        let head = self.head();
        self.to.seek(SeekFrom::Start(0))?;
        self.to.write_all(&head)
    }

    /// The head: the main header, one stream, and the lengths of what follows.
    fn head(&self) -> Vec<u8> {
        let count = self.index.len() as u32;
        let movie = 4 + self.written as u32;
        let whole = HEAD - 8 + self.written as u32 + 8 + 16 * count;
        let [width, height] = self.size;
        // A rate as a fraction: thousandths are exact enough for any.
        let rate = (self.fps * 1000.0).round() as u32;
        let micros = (1e6 / self.fps).round() as u32;
        let mut head = Chunk::default();
        head.tag(b"RIFF").word(whole).tag(b"AVI ");
        head.tag(b"LIST").word(192).tag(b"hdrl");
        head.tag(b"avih").word(56);
        let rate_bytes = (f64::from(self.largest) * self.fps) as u32;
        // Has an index; one stream; sizes of buffer and picture.
        head.words(&[
            micros,
            rate_bytes,
            0,
            0x10,
            count,
            0,
            1,
            self.largest,
            width,
            height,
            0,
            0,
            0,
            0,
        ]);
        head.tag(b"LIST").word(116).tag(b"strl");
        head.tag(b"strh").word(56).tag(b"vids").tag(b"MJPG");
        head.words(&[0, 0, 0, 1000, rate, 0, count, self.largest, u32::MAX, 0]);
        head.word(0).word(width | height << 16);
        head.tag(b"strf").word(40);
        head.words(&[40, width, height, 24 << 16 | 1]).tag(b"MJPG");
        head.words(&[width * height * 3, 0, 0, 0, 0]);
        head.tag(b"LIST").word(movie).tag(b"movi");
        head.0
    }
}

/// Bytes of a head.
#[derive(Default)]
struct Chunk(Vec<u8>);

impl Chunk {
    fn tag(&mut self, tag: &[u8; 4]) -> &mut Self {
        self.0.extend(tag);
        self
    }

    fn word(&mut self, word: u32) -> &mut Self {
        self.0.extend(word.to_le_bytes());
        self
    }

    fn words(&mut self, words: &[u32]) -> &mut Self {
        for word in words {
            self.word(*word);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_index_say_where_pictures_are() {
        let mut bytes = io::Cursor::new(Vec::new());
        let mut avi = Avi::new(&mut bytes, [32, 16], 24.0).unwrap();
        avi.add(b"first").unwrap();
        avi.add(b"second").unwrap();
        avi.finish().unwrap();
        let bytes = bytes.into_inner();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(word(4) + 8, bytes.len());
        let movie = bytes.windows(4).position(|tag| tag == b"movi").unwrap();
        assert_eq!(movie + 4, HEAD as usize);
        assert_eq!(&bytes[movie - 8..movie - 4], b"LIST");
        let index = movie + word(movie - 4);
        assert_eq!(&bytes[index..index + 4], b"idx1");
        for (entry, picture) in [(0, &b"first"[..]), (1, b"second")] {
            let at = movie + word(index + 8 + 16 * entry + 8);
            let length = word(index + 8 + 16 * entry + 12);
            assert_eq!(
                (&bytes[at..at + 4], &bytes[at + 8..at + 8 + length]),
                (&b"00dc"[..], picture)
            );
        }
    }
}
