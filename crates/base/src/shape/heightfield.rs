//! Terrain from a grid of heights, as a closed mesh: the surface, a skirt and a floor.

use crate::mesh::{Mesh, MeshError};
use glam::Vec3;
use std::io::Cursor;

/// Heights on a regular grid, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Heightfield {
    heights: Vec<f32>,
    columns: usize,
}

/// Why heights do not make a terrain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HeightfieldError {
    /// Rows of different lengths, or fewer than two each way.
    #[error("a heightfield needs at least 2 × 2 heights, in rows of one length")]
    Shape,
    /// The image cannot be read.
    #[error("the height image cannot be read: {0}")]
    Image(String),
    /// The mesh made from it is refused.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

/// The most samples an image may have: 4096², which make a mesh of 34 million triangles.
const MOST_SAMPLES: u64 = 1 << 24;

impl Heightfield {
    /// Heights [m] row by row; rows run along x, one after the other along z.
    ///
    /// # Errors
    /// If there are fewer than two rows or columns, or rows differ in length.
    pub fn from_rows(rows: &[Vec<f32>]) -> Result<Self, HeightfieldError> {
        let columns = rows.first().map_or(0, Vec::len);
        if rows.len() < 2 || columns < 2 || rows.iter().any(|row| row.len() != columns) {
            return Err(HeightfieldError::Shape);
        }
        Ok(Self {
            heights: rows.concat(),
            columns,
        })
    }

    /// Reads a grey PNG image, 8 or 16 bits; black is 0 and white is 1. Of colours, red counts.
    ///
    /// # Errors
    /// If the bytes are not such an image.
    pub fn from_png(bytes: &[u8]) -> Result<Self, HeightfieldError> {
        let broken = |e: png::DecodingError| HeightfieldError::Image(e.to_string());
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().map_err(broken)?;
        let (width, height) = (reader.info().width, reader.info().height);
        let fits = u64::from(width) * u64::from(height) <= MOST_SAMPLES;
        let size = reader.output_buffer_size().filter(|_| fits);
        let mut pixels = vec![
            0;
            size.ok_or_else(|| HeightfieldError::Image(format!(
                "{width} × {height} samples are more than {MOST_SAMPLES}"
            )))?
        ];
        let frame = reader.next_frame(&mut pixels).map_err(broken)?;
        let channels = frame.color_type.samples();
        let heights: Vec<f32> = match frame.bit_depth {
            png::BitDepth::Sixteen => {
                let (samples, _) = pixels.as_chunks::<2>();
                let grey = samples.iter().step_by(channels);
                grey.map(|s| f32::from(u16::from_be_bytes(*s)) / 65535.0)
                    .collect()
            }
            _ => pixels
                .iter()
                .step_by(channels)
                .map(|s| f32::from(*s) / 255.0)
                .collect(),
        };
        let columns = frame.width as usize;
        if columns < 2 || frame.height < 2 {
            return Err(HeightfieldError::Shape);
        }
        Ok(Self { heights, columns })
    }

    /// A closed mesh centred on the origin: `size` [m] along x and z, heights scaled by `size.y`, and a floor
    /// `depth` [m] below the lowest of height zero and the heights.
    ///
    /// # Errors
    /// If the sizes or heights are not finite.
    pub fn mesh(&self, size: Vec3, depth: f32) -> Result<Mesh, HeightfieldError> {
        let (columns, rows) = (self.columns, self.heights.len() / self.columns);
        let lowest = self.heights.iter().fold(0.0f32, |low, h| low.min(*h)) * size.y;
        let floor = lowest - depth;
        let place = |i: usize, j: usize, y: f32| {
            let (u, v) = (
                i as f32 / (columns - 1) as f32,
                j as f32 / (rows - 1) as f32,
            );
            Vec3::new((u - 0.5) * size.x, y, (v - 0.5) * size.z)
        };
        let level = |top: bool| {
            let heights = &self.heights;
            (0..rows).flat_map(move |j| {
                (0..columns).map(move |i| {
                    place(
                        i,
                        j,
                        if top {
                            heights[i + columns * j] * size.y
                        } else {
                            floor
                        },
                    )
                })
            })
        };
        let vertices: Vec<Vec3> = level(true).chain(level(false)).collect();
        Ok(Mesh::new(vertices, closed_box(columns, rows))?)
    }
}

/// Triangles of a box whose top and bottom are grids of vertices, the top's first.
fn closed_box(columns: usize, rows: usize) -> Vec<[u32; 3]> {
    let top = |i: usize, j: usize| (i + columns * j) as u32;
    let bottom = |i: usize, j: usize| (columns * rows + i + columns * j) as u32;
    let mut triangles = Vec::with_capacity(4 * columns * rows);
    let mut quad = |a: u32, b: u32, c: u32, d: u32| triangles.extend([[a, b, c], [a, c, d]]);
    let (right, back) = (columns - 1, rows - 1);
    for j in 0..back {
        for i in 0..right {
            quad(top(i, j), top(i, j + 1), top(i + 1, j + 1), top(i + 1, j));
            quad(
                bottom(i, j),
                bottom(i + 1, j),
                bottom(i + 1, j + 1),
                bottom(i, j + 1),
            );
        }
    }
    for i in 0..right {
        quad(top(i, 0), top(i + 1, 0), bottom(i + 1, 0), bottom(i, 0));
        quad(
            top(i + 1, back),
            top(i, back),
            bottom(i, back),
            bottom(i + 1, back),
        );
    }
    for j in 0..back {
        quad(top(0, j + 1), top(0, j), bottom(0, j), bottom(0, j + 1));
        quad(
            top(right, j),
            top(right, j + 1),
            bottom(right, j + 1),
            bottom(right, j),
        );
    }
    triangles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::winding_number;

    #[test]
    fn a_slope_is_a_closed_solid_of_the_right_height() {
        let rows: Vec<Vec<f32>> = (0..5)
            .map(|_| (0..9).map(|i| i as f32 / 8.0).collect())
            .collect();
        let mesh = Heightfield::from_rows(&rows)
            .unwrap()
            .mesh(Vec3::new(2.0, 0.5, 1.0), 0.1)
            .unwrap();
        for (point, inside) in [
            (Vec3::new(0.0, 0.24, 0.1), 1.0),
            (Vec3::new(0.0, 0.26, 0.1), 0.0),
            (Vec3::new(0.8, 0.44, -0.3), 1.0),
            (Vec3::new(0.8, -0.09, 0.3), 1.0),
            (Vec3::new(0.8, -0.11, 0.3), 0.0),
        ] {
            assert!(
                (winding_number(&mesh, point) - inside).abs() < 1e-4,
                "{point}"
            );
        }
    }

    #[test]
    fn ragged_rows_and_broken_images_are_refused() {
        assert_eq!(
            Heightfield::from_rows(&[vec![0.0, 1.0], vec![0.0]]),
            Err(HeightfieldError::Shape)
        );
        assert_eq!(Heightfield::from_rows(&[]), Err(HeightfieldError::Shape));
        assert!(matches!(
            Heightfield::from_png(b"not an image"),
            Err(HeightfieldError::Image(_))
        ));
    }

    #[test]
    fn images_become_heights() {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 3, 2);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::Sixteen);
        let samples: Vec<u8> = [0u16, 32768, 65535, 1, 2, 3]
            .iter()
            .flat_map(|s| s.to_be_bytes())
            .collect();
        encoder
            .write_header()
            .unwrap()
            .write_image_data(&samples)
            .unwrap();
        let field = Heightfield::from_png(&bytes).unwrap();
        assert_eq!(field.columns, 3);
        assert!(
            (field.heights[1] - 0.500_008).abs() < 1e-5 && (field.heights[2] - 1.0).abs() < 1e-6
        );
    }

    #[test]
    fn an_image_too_large_for_a_mesh_is_refused_before_it_is_read() {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 4097, 4097);
        encoder.set_color(png::ColorType::Grayscale);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&vec![0; 4097 * 4097]).unwrap();
        writer.finish().unwrap();
        assert!(matches!(
            Heightfield::from_png(&bytes),
            Err(HeightfieldError::Image(_))
        ));
    }
}
