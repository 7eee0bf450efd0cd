//! What this machine has left, and what it can do.

use glam::Vec4;
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;

/// Memory [bytes] that can be used now; `None` where the system does not tell.
pub fn available_memory() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// What to call this machine: its processor, and how many cores of it can be used.
pub fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
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

/// Lets [`peak_memory`] begin anew, where the system can.
pub fn forget_peak_memory() {
    // Where it cannot, the peak is that of the whole process: too high, never too low.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Time [s] that this process has worked, all threads together, to a hundredth; zero where the system does not tell.
pub fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets: the 12th and 13th are ticks for itself and in the kernel, a hundred a second.
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|word| word.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// What the machine can do, measured.
#[derive(Clone, Copy, Debug)]
pub struct Possible {
    /// Bytes a second that all threads read and write together, as a copy does.
    pub bytes_per_second: f64,
    /// Additions and multiplications of single numbers a second, of all threads, four at a time.
    pub flops_per_second: f64,
}

impl Possible {
    /// Before it was measured.
    pub const NOTHING: Self = Self {
        bytes_per_second: 0.0,
        flops_per_second: 0.0,
    };
}

/// Measures it: the best of a few short runs.
pub fn possible() -> Possible {
    const LENGTH: usize = 1 << 25;
    let from = vec![1.0f32; LENGTH];
    let mut to = vec![0.0f32; LENGTH];
    let best = |work: &mut dyn FnMut()| {
        let time = |work: &mut dyn FnMut()| {
            let began = Instant::now();
            work();
            began.elapsed().as_secs_f64()
        };
        (0..4).map(|_| time(work)).fold(f64::MAX, f64::min)
    };
    let copy = best(&mut || {
        let pairs = to.par_chunks_mut(1 << 16).zip(from.par_chunks(1 << 16));
        pairs.for_each(|(to, from)| to.copy_from_slice(from));
    });
    std::hint::black_box(&to);
    const ROUNDS: usize = 1 << 22;
    let threads = rayon::current_num_threads();
    let reckon = best(&mut || {
        (0..threads).into_par_iter().for_each(|thread| {
            std::hint::black_box(add_and_multiply(thread as f32, ROUNDS));
        });
    });
    Possible {
        bytes_per_second: 8.0 * LENGTH as f64 / copy,
        flops_per_second: (threads * ROUNDS * 64) as f64 / reckon,
    }
}

/// 64 additions and multiplications a round, in eight chains that do not wait for each other.
fn add_and_multiply(seed: f32, rounds: usize) -> f32 {
    let mut chains = [Vec4::splat(seed); 8];
    let (factor, term) = (Vec4::splat(0.999), Vec4::splat(0.001));
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = *chain * factor + term;
        }
    }
    chains.iter().map(|chain| chain.element_sum()).sum()
}
