//! What this machine has left.

use std::path::Path;

/// Memory [bytes] that can be used now; `None` where the system does not tell.
pub fn available_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Free space [bytes] on the disk that `path`, or its nearest existing parent, is on.
#[cfg(unix)]
pub fn free_disk(path: &Path) -> Option<f64> {
    let absolute = std::path::absolute(path).ok()?;
    let existing = absolute.ancestors().find(|path| path.exists())?;
    let about = rustix::fs::statvfs(existing).ok()?;
    // File systems without blocks, such as /proc, are not disks.
    if about.f_blocks == 0 {
        return None;
    }
    Some(about.f_bavail as f64 * about.f_frsize as f64)
}

/// Free space is not known here.
#[cfg(not(unix))]
pub fn free_disk(_: &Path) -> Option<f64> {
    None
}

/// The most memory [bytes] this process has held.
pub fn peak_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}
