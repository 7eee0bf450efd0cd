//! Finished pictures: eight bits a channel, written as PNG with the settings they were made with.

use barchan_sim::atomic;
use std::io;
use std::path::Path;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width [pixels].
    pub width: usize,
    /// Height [pixels].
    pub height: usize,
    /// Red, green and blue of each pixel, row by row from the upper left.
    pub pixels: Vec<[u8; 3]>,
}

/// Keyword of the text in a PNG that says what it was made with.
const STAMP: &str = "barchan.made-with";
/// Larger pictures are not ours.
const MOST_PIXELS: usize = 1 << 28;

impl Picture {
    /// A picture of one color.
    pub fn new(width: usize, height: usize, color: [u8; 3]) -> Self {
        Self {
            width,
            height,
            pixels: vec![color; width * height],
        }
    }

    /// Sets a pixel; outside the picture nothing happens.
    pub fn set(&mut self, x: usize, y: usize, color: [u8; 3]) {
        if x < self.width && y < self.height {
            self.pixels[y * self.width + x] = color;
        }
    }

    /// Copies `other` so that its upper left corner is at `x`, `y`.
    pub fn paste(&mut self, other: &Self, x: usize, y: usize) {
        for row in 0..other.height {
            for column in 0..other.width {
                self.set(
                    x + column,
                    y + row,
                    other.pixels[row * other.width + column],
                );
            }
        }
    }

    /// The PNG file of the picture, with `stamp` as what it was made with.
    ///
    /// # Errors
    /// Never for pictures that have pixels.
    pub fn to_png(&self, stamp: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder.add_text_chunk(STAMP.to_owned(), stamp.to_owned())?;
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        Ok(bytes)
    }

    /// Writes the picture to `path`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn write(&self, path: &Path, stamp: &str) -> io::Result<()> {
        atomic::write_bytes(path, &self.to_png(stamp)?)
    }

    /// Reads a picture that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// If it is not such a picture, in words.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = barchan_base::mesh::read_file(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&bytes).map_err(|reason| format!("{} is damaged: {reason}", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = png::Decoder::new(io::Cursor::new(bytes))
            .read_info()
            .map_err(|error| error.to_string())?;
        let info = reader.info();
        let (width, height) = (info.width as usize, info.height as usize);
        let rgb = info.color_type == png::ColorType::Rgb && info.bit_depth == png::BitDepth::Eight;
        if !rgb || width.saturating_mul(height) > MOST_PIXELS {
            return Err("it is not a picture of ours".into());
        }
        let mut pixels = vec![[0; 3]; width * height];
        reader
            .next_frame(pixels.as_flattened_mut())
            .map_err(|error| error.to_string())?;
        Ok(Self {
            width,
            height,
            pixels,
        })
    }

    /// What the picture at `path` was made with; none if there is no whole picture.
    pub fn stamp(path: &Path) -> Option<String> {
        let bytes = barchan_base::mesh::read_file(path).ok()?;
        // The file is written in one piece, so an end that is there means all is there.
        if !bytes.ends_with(b"IEND\xaeB`\x82") {
            return None;
        }
        let reader = png::Decoder::new(io::Cursor::new(&bytes))
            .read_info()
            .ok()?;
        let texts = &reader.info().uncompressed_latin1_text;
        Some(
            texts
                .iter()
                .find(|text| text.keyword == STAMP)?
                .text
                .clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_back_with_what_they_were_made_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("000001.png");
        let mut picture = Picture::new(5, 3, [10, 20, 30]);
        picture.set(4, 2, [255, 0, 128]);
        picture.set(9, 9, [1, 1, 1]);
        picture.write(&path, "these settings").unwrap();
        assert_eq!(Picture::read(&path).unwrap(), picture);
        assert_eq!(Picture::stamp(&path).unwrap(), "these settings");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(Picture::stamp(&path).is_none());
        std::fs::write(&path, &bytes[..40]).unwrap();
        assert!(Picture::read(&path).is_err());
    }
}
