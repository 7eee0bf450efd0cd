//! Letters five pixels wide and seven high, for the numbers in pictures.

use super::picture::Picture;

/// Width of a letter with the gap to the next, and height [pixels].
pub const LETTER: [usize; 2] = [6, 7];

/// Each letter's pixels: seven rows of five bits, from the top, the left pixel the highest bit.
#[rustfmt::skip]
const LETTERS: [(char, u64); 77] = [
    ('0', 0x03a33ae62e),
    ('1', 0x011842108e),
    ('2', 0x03a213221f),
    ('3', 0x03a213062e),
    ('4', 0x008ca97c42),
    ('5', 0x07e1e0862e),
    ('6', 0x01910f462e),
    ('7', 0x07c2222108),
    ('8', 0x03a317462e),
    ('9', 0x03a317844c),
    ('.', 0x000000018c),
    (',', 0x0000003088),
    ('-', 0x00000f8000),
    ('+', 0x00084f9080),
    ('/', 0x0042222210),
    ('_', 0x000000001f),
    ('(', 0x0088842082),
    (')', 0x0208210888),
    (':', 0x0018c03180),
    ('%', 0x0672222273),
    ('=', 0x0001f07c00),
    ('°', 0x0325260000),
    ('²', 0x0324447800),
    ('³', 0x0704c17000),
    ('·', 0x0000020000),
    ('A', 0x03a31fc631),
    ('B', 0x07a31f463e),
    ('C', 0x03a308422e),
    ('D', 0x07a318c63e),
    ('E', 0x07e10f421f),
    ('F', 0x07e10f4210),
    ('G', 0x03a30bc62e),
    ('H', 0x04631fc631),
    ('I', 0x038842108e),
    ('J', 0x01c4210a4c),
    ('K', 0x04654c5251),
    ('L', 0x042108421f),
    ('M', 0x04775ac631),
    ('N', 0x047359c631),
    ('O', 0x03a318c62e),
    ('P', 0x07a31f4210),
    ('Q', 0x03a318d64d),
    ('R', 0x07a31f5251),
    ('S', 0x03e107043e),
    ('T', 0x07c8421084),
    ('U', 0x046318c62e),
    ('V', 0x046318c544),
    ('W', 0x04631ad771),
    ('X', 0x0462a22a31),
    ('Y', 0x0462a21084),
    ('Z', 0x07c222221f),
    ('a', 0x0000e0be2f),
    ('b', 0x0421e8c63e),
    ('c', 0x0000e8422e),
    ('d', 0x0042f8c62f),
    ('e', 0x0000e8fe0e),
    ('f', 0x01928e2108),
    ('g', 0x0000f8bc2e),
    ('h', 0x04216cc631),
    ('i', 0x0100c2108e),
    ('j', 0x0080610a4c),
    ('k', 0x04212a6292),
    ('l', 0x030842108e),
    ('m', 0x0001aad6b5),
    ('n', 0x00016cc631),
    ('o', 0x0000e8c62e),
    ('p', 0x0001e8fa10),
    ('q', 0x0000f8bc21),
    ('r', 0x00016cc210),
    ('s', 0x0000f8383e),
    ('t', 0x0211c42126),
    ('u', 0x000118c66d),
    ('v', 0x000118c544),
    ('w', 0x000118d6aa),
    ('x', 0x0001151151),
    ('y', 0x000118bc2e),
    ('z', 0x0001f1111f),
];

/// Draws `text` with its upper left corner at `x`, `y`, `zoom` times as large. Letters that are not known stay blank.
pub fn draw(picture: &mut Picture, text: &str, [x, y]: [usize; 2], zoom: usize, color: [u8; 3]) {
    for (place, letter) in text.chars().enumerate() {
        let known = LETTERS.iter().find(|(known, _)| *known == letter);
        let bits = known.map_or(0, |(_, bits)| *bits);
        for pixel in (0..35).filter(|pixel| bits >> (34 - pixel) & 1 == 1) {
            let left = x + (place * LETTER[0] + pixel % 5) * zoom;
            let top = y + pixel / 5 * zoom;
            for i in 0..zoom * zoom {
                picture.set(left + i % zoom, top + i / zoom, color);
            }
        }
    }
}

/// Width [pixels] of `text` when drawn.
pub fn width(text: &str, zoom: usize) -> usize {
    text.chars().count() * LETTER[0] * zoom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_drawn_where_it_belongs() {
        let mut picture = Picture::new(20, 16, [0; 3]);
        draw(&mut picture, "1", [2, 1], 2, [255; 3]);
        let lit = |x: usize, y: usize| picture.pixels[y * 20 + x] == [255; 3];
        // The foot of the one: its second to fourth pixel in the last row, each two by two.
        assert!(lit(4, 13) && lit(9, 14) && !lit(3, 13) && !lit(10, 14));
        assert_eq!(
            picture
                .pixels
                .iter()
                .filter(|pixel| pixel[0] == 255)
                .count(),
            10 * 4
        );
        assert_eq!(width("12.5", 2), 48);
    }
}
