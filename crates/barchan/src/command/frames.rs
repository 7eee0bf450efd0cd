//! Ranges of frames on the command line.

use barchan_sim::scene::MOST_FRAMES;
use std::str::FromStr;

/// Frames from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    /// The first.
    pub first: u32,
    /// The last; the end of the run if none.
    pub last: Option<u32>,
}

impl FromStr for FrameRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let number = part.parse::<u32>().ok();
            number
                .filter(|number| u64::from(*number) <= MOST_FRAMES)
                .ok_or_else(|| format!("\"{part}\" is not a frame number, from 0 to {MOST_FRAMES}"))
        };
        let range = match text.split_once("..") {
            None => {
                let frame = number(text)?;
                Self {
                    first: frame,
                    last: Some(frame),
                }
            }
            Some((first, last)) => Self {
                first: if first.is_empty() { 0 } else { number(first)? },
                last: if last.is_empty() {
                    None
                } else {
                    Some(number(last.trim_start_matches('='))?)
                },
            },
        };
        match range.last {
            Some(last) if last < range.first => Err(format!("{text} ends before it begins")),
            _ => Ok(range),
        }
    }
}

impl FrameRange {
    /// True where `frame` is in it.
    pub fn contains(self, frame: u32) -> bool {
        frame >= self.first && self.last.is_none_or(|last| frame <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |text: &str| text.parse::<FrameRange>();
        assert_eq!(
            range("5"),
            Ok(FrameRange {
                first: 5,
                last: Some(5)
            })
        );
        assert_eq!(
            range("5..9"),
            Ok(FrameRange {
                first: 5,
                last: Some(9)
            })
        );
        assert_eq!(
            range("5.."),
            Ok(FrameRange {
                first: 5,
                last: None
            })
        );
        assert_eq!(
            range("..9"),
            Ok(FrameRange {
                first: 0,
                last: Some(9)
            })
        );
        assert!(range("9..5").is_err() && range("x").is_err() && range("-1").is_err());
        assert!(range("..999999").is_ok() && range("..1000000").is_err());
        assert!(range("5..9").is_ok_and(|r| r.contains(9) && !r.contains(10)));
    }
}
