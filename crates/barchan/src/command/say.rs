//! The two voices: results on stdout, talk on stderr. A closed pipe ends the talk, not the program.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

/// Why a line of results could not be written.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// A line of results.
pub fn out(line: &str) {
    match writeln!(std::io::stdout(), "{line}") {
        // Whoever closed the pipe has read enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => _ = LOST.set(error),
        _ => {}
    }
}

/// Why results are missing, where they could not be written.
pub fn lost() -> Option<&'static std::io::Error> {
    LOST.get()
}

/// A line of talk.
pub fn talk(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A count with its thousands set apart: 1,234,567.
pub fn grouped(count: f64) -> String {
    // Nothing is never negative: a sum of no numbers is −0.
    let digits = format!("{:.0}", count.round() + 0.0);
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes for people: 1.2 GB.
pub fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let power = (count.max(1.0).log10() / 3.0).floor().clamp(0.0, 5.0);
    let value = count / 1000f64.powf(power);
    let digits = if power == 0.0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[power as usize])
}

/// Seconds for people: 850 ms, 12 s, 3 min 20 s, 2 h 5 min.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} days", whole / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(1_234_567.0), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(-0.0), "0");
        assert_eq!(bytes(1_234_567.0), "1.2 MB");
        assert_eq!(bytes(42.0), "42 B");
        assert_eq!(duration(0.85), "850 ms");
        assert_eq!(duration(200.0), "3 min 20 s");
        assert_eq!(duration(7500.0), "2 h 5 min");
    }
}
