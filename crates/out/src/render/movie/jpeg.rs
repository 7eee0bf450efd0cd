//! A baseline JPEG writer (ITU-T T.81): full colour resolution, the standard's own tables.

use crate::render::picture::Picture;

/// Places of an 8 × 8 block in the order they are written, from coarse to fine (T.81, figure 5).
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Steps of brightness and of colour at quality 50 (T.81, tables K.1 and K.2), row by row.
const BRIGHT_STEPS: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const COLOR_STEPS: [u8; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

/// Huffman codes as the standard lists them: how many of each length from 1 to 16, and what they stand for, shortest
/// first (T.81, tables K.3 to K.6).
struct Codes {
    counts: [u8; 16],
    symbols: &'static [u8],
}

const LEVELS: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const BRIGHT_MEAN: Codes = Codes {
    counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
    symbols: LEVELS,
};
const COLOR_MEAN: Codes = Codes {
    counts: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
    symbols: LEVELS,
};
#[rustfmt::skip]
const BRIGHT_DETAIL: Codes = Codes {
    counts: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
    symbols: &[
        0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07,
        0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0,
        0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28,
        0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49,
        0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69,
        0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
        0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
        0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
        0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
        0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
        0xf9, 0xfa,
    ],
};
#[rustfmt::skip]
const COLOR_DETAIL: Codes = Codes {
    counts: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
    symbols: &[
        0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71,
        0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0,
        0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26,
        0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
        0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
        0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87,
        0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
        0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
        0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
        0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
        0xf9, 0xfa,
    ],
};

/// Codes by symbol: the bits and how many.
type CodeBook = [(u16, u8); 256];

impl Codes {
    fn book(&self) -> CodeBook {
        let mut book = [(0, 0); 256];
        let (mut code, mut next) = (0u16, self.symbols.iter());
        for (length, count) in (1u8..).zip(self.counts) {
            for symbol in next.by_ref().take(count.into()) {
                book[*symbol as usize] = (code, length);
                code = code.wrapping_add(1);
            }
            code = code.wrapping_shl(1);
        }
        book
    }
}

/// Bits, written from the highest down, with a zero after every byte of ones.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: u16, count: u8) {
        self.pending = self.pending << count | u32::from(bits);
        self.count += u32::from(count);
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.pending >> self.count) as u8;
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
        self.pending &= (1 << self.count) - 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            let fill = (8 - self.count) as u8;
            self.put((1 << fill) - 1, fill);
        }
        self.bytes
    }
}

/// The picture as a JPEG file of `quality` 1 to 100.
pub fn encode(picture: &Picture, quality: u32) -> Vec<u8> {
    let steps = [
        scaled(&BRIGHT_STEPS, quality),
        scaled(&COLOR_STEPS, quality),
    ];
    let mut file = header(picture, &steps);
    let books = [
        [BRIGHT_MEAN.book(), BRIGHT_DETAIL.book()],
        [COLOR_MEAN.book(), COLOR_DETAIL.book()],
    ];
    let cosines = cosines();
    let mut bits = Bits::default();
    let mut means = [0i32; 3];
    for top in (0..picture.height).step_by(8) {
        for left in (0..picture.width).step_by(8) {
            for (channel, mean) in means.iter_mut().enumerate() {
                let kind = usize::from(channel > 0);
                let levels = levels(&block(picture, left, top, channel), &cosines, &steps[kind]);
                write_block(&mut bits, &levels, mean, &books[kind]);
            }
        }
    }
    file.extend(bits.finish());
    file.extend([0xff, 0xd9]);
    file
}

fn scaled(steps: &[u8; 64], quality: u32) -> [u8; 64] {
    let quality = quality.clamp(1, 100);
    let percent = if quality < 50 {
        5000 / quality
    } else {
        200 - 2 * quality
    };
    steps.map(|step| ((u32::from(step) * percent + 50) / 100).clamp(1, 255) as u8)
}

fn header(picture: &Picture, steps: &[[u8; 64]; 2]) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    let mut segment = |marker: u8, content: &[u8]| {
        file.extend([0xff, marker]);
        file.extend((content.len() as u16 + 2).to_be_bytes());
        file.extend(content);
    };
    segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    for (number, steps) in (0u8..).zip(steps) {
        let mut content = vec![number];
        content.extend(ZIGZAG.map(|place| steps[place]));
        segment(0xdb, &content);
    }
    let mut frame = vec![8];
    frame.extend((picture.height as u16).to_be_bytes());
    frame.extend((picture.width as u16).to_be_bytes());
    frame.extend([3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1]);
    segment(0xc0, &frame);
    for (class, codes) in [
        (0x00, BRIGHT_MEAN),
        (0x10, BRIGHT_DETAIL),
        (0x01, COLOR_MEAN),
        (0x11, COLOR_DETAIL),
    ] {
        let mut content = vec![class];
        content.extend(codes.counts);
        content.extend(codes.symbols);
        segment(0xc4, &content);
    }
    segment(0xda, &[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]);
    file
}

/// Brightness (0) or colour (1 blue, 2 red) of the block at `left`, `top`; past the border the last pixels go on.
fn block(picture: &Picture, left: usize, top: usize, channel: usize) -> [f32; 64] {
    std::array::from_fn(|i| {
        let (x, y) = (
            (left + i % 8).min(picture.width - 1),
            (top + i / 8).min(picture.height - 1),
        );
        let [r, g, b] = picture.pixels[y * picture.width + x].map(f32::from);
        match channel {
            0 => 0.299 * r + 0.587 * g + 0.114 * b - 128.0,
            1 => -0.168_736 * r - 0.331_264 * g + 0.5 * b,
            _ => 0.5 * r - 0.418_688 * g - 0.081_312 * b,
        }
    })
}

/// The cosine transform's rows: frequency by place.
fn cosines() -> [[f32; 8]; 8] {
    std::array::from_fn(|frequency| {
        std::array::from_fn(|place| {
            let scale: f64 = if frequency == 0 { 0.125f64.sqrt() } else { 0.5 };
            let angle = (2 * place + 1) as f64 * frequency as f64 * std::f64::consts::PI / 16.0;
            (scale * angle.cos()) as f32
        })
    })
}

/// The block's frequencies in steps, in zigzag order.
fn levels(block: &[f32; 64], cosines: &[[f32; 8]; 8], steps: &[u8; 64]) -> [i32; 64] {
    let mut rows = [0f32; 64];
    for y in 0..8 {
        for (u, wave) in cosines.iter().enumerate() {
            rows[y * 8 + u] = (0..8).map(|x| block[y * 8 + x] * wave[x]).sum();
        }
    }
    ZIGZAG.map(|place| {
        let (v, u) = (place / 8, place % 8);
        let sum: f32 = (0..8).map(|y| rows[y * 8 + u] * cosines[v][y]).sum();
        (sum / f32::from(steps[place])).round() as i32
    })
}

/// Bits that a number takes, and the bits: negative ones less one (T.81, F.1.2.1).
fn number(value: i32) -> (u8, u16) {
    let size = (32 - value.unsigned_abs().leading_zeros()) as u8;
    let bits = if value < 0 { value - 1 } else { value };
    (size, (bits & ((1 << size) - 1)) as u16)
}

fn write_block(
    bits: &mut Bits,
    levels: &[i32; 64],
    mean: &mut i32,
    [means, details]: &[CodeBook; 2],
) {
    let mut symbol = |book: &CodeBook, symbol: u8, value: Option<(u8, u16)>| {
        let (code, length) = book[symbol as usize];
        bits.put(code, length);
        if let Some((size, value)) = value {
            bits.put(value, size);
        }
    };
    let (size, value) = number(levels[0] - *mean);
    *mean = levels[0];
    symbol(means, size, Some((size, value)));
    let mut zeros = 0;
    for level in &levels[1..] {
        if *level == 0 {
            zeros += 1;
            continue;
        }
        for _ in 0..zeros / 16 {
            symbol(details, 0xf0, None);
        }
        let (size, value) = number(*level);
        symbol(details, (zeros % 16) << 4 | size, Some((size, value)));
        zeros = 0;
    }
    if zeros > 0 {
        symbol(details, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // Table K.5: 0/1 is 00, 0/4 is 1011, the end of a block 1010, sixteen zeros 11111111001.
        let book = BRIGHT_DETAIL.book();
        let codes = [0x01, 0x04, 0x00, 0xf0].map(|symbol| book[symbol]);
        assert_eq!(
            codes,
            [(0b00, 2), (0b1011, 4), (0b1010, 4), (0b111_1111_1001, 11)]
        );
        for codes in [BRIGHT_MEAN, BRIGHT_DETAIL, COLOR_MEAN, COLOR_DETAIL] {
            let listed: usize = codes.counts.iter().map(|count| *count as usize).sum();
            assert_eq!(listed, codes.symbols.len());
            let mut sorted = codes.symbols.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), listed, "each symbol once");
        }
    }

    #[test]
    fn numbers_and_bits_are_packed_as_the_standard_says() {
        assert_eq!(
            [number(0), number(1), number(-1), number(-3), number(5)],
            [(0, 0), (1, 1), (1, 0), (2, 0), (3, 5)]
        );
        let mut bits = Bits::default();
        bits.put(0xff, 8);
        bits.put(0b10, 2);
        assert_eq!(bits.finish(), [0xff, 0x00, 0b1011_1111]);
    }

    #[test]
    fn an_even_picture_has_only_means() {
        let jpeg = encode(&Picture::new(16, 8, [128; 3]), 90);
        assert!(jpeg.starts_with(&[0xff, 0xd8]) && jpeg.ends_with(&[0xff, 0xd9]));
        // Two blocks of three channels: gray is all zeros, two bits of mean and four or two of end each.
        let data = &jpeg[jpeg.len() - 2 - 4..jpeg.len() - 2];
        assert_eq!(data[0] >> 2, 0b00_1010, "mean 0, end of block");
    }
}
