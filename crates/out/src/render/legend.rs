//! The scale bar: what the colours of a picture mean, in numbers.

use super::font;
use super::paint::Scale;
use super::picture::Picture;

/// Draws the scale of `title` into the lower left corner.
pub fn draw(picture: &mut Picture, scale: &Scale, title: &str) {
    let zoom = (picture.height / 360).max(1);
    let (bar_width, bar_height) = (picture.width / 4, 6 * zoom);
    let line = (font::LETTER[1] + 3) * zoom;
    let margin = 8 * zoom;
    let box_height = 2 * line + bar_height + 2 * zoom;
    if bar_width < 40 || picture.height < box_height + 2 * margin {
        return; // too small to be read
    }
    let (left, top) = (margin, picture.height - margin - box_height);
    shade(
        picture,
        [left - 4 * zoom, top - 4 * zoom],
        [bar_width + 8 * zoom, box_height + 6 * zoom],
    );
    font::draw(picture, title, [left, top], zoom, [255; 3]);
    for x in 0..bar_width {
        let part = x as f32 / (bar_width - 1) as f32;
        let color = scale.srgb(scale.from + (scale.to - scale.from) * part);
        for y in 0..bar_height {
            picture.set(left + x, top + line + y, color);
        }
    }
    let below = top + line + bar_height + 3 * zoom;
    let middle = 0.5 * (scale.from + scale.to);
    for (value, part) in [(scale.from, 0), (middle, 1), (scale.to, 2)] {
        let text = number(value);
        let room = bar_width - font::width(&text, zoom).min(bar_width);
        font::draw(
            picture,
            &text,
            [left + room * part / 2, below],
            zoom,
            [255; 3],
        );
    }
}

/// Darkens a rectangle, so that letters can be read on it.
fn shade(picture: &mut Picture, [left, top]: [usize; 2], [width, height]: [usize; 2]) {
    for y in top..(top + height).min(picture.height) {
        for x in left..(left + width).min(picture.width) {
            let pixel = &mut picture.pixels[y * picture.width + x];
            *pixel = pixel.map(|part| (u16::from(part) * 2 / 5) as u8);
        }
    }
}

/// A number with three digits that count.
pub fn number(value: f32) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e5).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = if size >= 100.0 || size == 0.0 {
        0
    } else {
        (2 - size.log10().floor() as i32).max(0) as usize
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let all = [0.0, 1.0, 2.5, 0.125, 12.34, 1234.5, 2.5e-7, -3.25e9].map(number);
        assert_eq!(
            all,
            [
                "0", "1", "2.5", "0.125", "12.3", "1234", "2.50e-7", "-3.25e9"
            ]
        );
    }

    #[test]
    fn the_bar_shows_the_whole_scale_and_small_pictures_stay_as_they_are() {
        let mut picture = Picture::new(640, 360, [200; 3]);
        let scale = Scale { from: 0.0, to: 2.0 };
        draw(&mut picture, &scale, "speed (m/s)");
        let drawn = |color: [u8; 3]| picture.pixels.contains(&color);
        assert!(drawn(scale.srgb(0.0)) && drawn(scale.srgb(2.0)) && drawn([255; 3]));
        let mut small = Picture::new(32, 20, [200; 3]);
        draw(&mut small, &scale, "speed");
        assert_eq!(small, Picture::new(32, 20, [200; 3]));
    }
}
