//! Where benchmarks tell what they found: as text or JSON, with the machine and the commit, and kept in a file if asked.

use super::Failure;
use super::machine::{self, Possible, possible};
use super::say::{out, talk};
use barchan_sim::state::Particles;
use serde_json::Value;
use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells and keeps the lines of a benchmark.
pub struct Ledger {
    /// Lines of JSON instead of text.
    json: bool,
    /// File to keep lines in.
    keep: Option<PathBuf>,
    machine: String,
    commit: Option<String>,
    /// Seconds since 1970.
    time: u64,
    possible: Possible,
    failed: Cell<bool>,
}

impl Ledger {
    /// One that prints, and appends to `keep` if it is a file.
    pub fn new(json: bool, keep: Option<PathBuf>) -> Self {
        // Before anything else is in memory: its arrays must not be among what the benchmark is found to hold.
        let measured = possible();
        machine::forget_peak_memory();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            json,
            keep,
            machine: machine::name(),
            commit: commit(),
            time: since.map_or(0, |since| since.as_secs()),
            possible: measured,
            failed: Cell::new(false),
        }
    }

    /// What the machine can do.
    pub fn possible(&self) -> Possible {
        self.possible
    }

    /// What part of the machine's memory bandwidth is reached at the very least, where `rate` particles a second, each of `bytes`, are
    /// advanced by a step: all of them must be read and written once.
    pub fn of_possible_bytes(&self, bytes: f64, rate: f64) -> f64 {
        2.0 * bytes * rate / self.possible().bytes_per_second
    }

    /// Tells a line, by its JSON or by `text`, and keeps it.
    pub fn tell(&self, mut line: Value, text: impl FnOnce() -> String) {
        line["threads"] = rayon::current_num_threads().into();
        line["machine"] = self.machine.clone().into();
        line["commit"] = self.commit.clone().into();
        line["version"] = env!("CARGO_PKG_VERSION").into();
        line["time"] = self.time.into();
        let json = line.to_string();
        if let Some(path) = &self.keep {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            // One write a line, so that two programs do not mix theirs.
            let written = file.and_then(|mut file| file.write_all(format!("{json}\n").as_bytes()));
            if let Err(error) = written {
                self.failed.set(true);
                talk(&format!("cannot write {}: {error}", path.display()));
            }
        }
        match self.json {
            true => out(&json),
            false => out(&text()),
        }
    }

    /// The end: a failure where a line could not be kept.
    pub fn close(&self) -> Result<(), Failure> {
        match self.failed.get() {
            true => Err(Failure::Run("not every line was kept".into())),
            false => Ok(()),
        }
    }
}

/// Bytes of a particle's columns.
pub fn bytes_of_state(particles: &Particles) -> f64 {
    let columns = particles.raw();
    columns
        .iter()
        .map(|(spec, _)| spec.kind.size() as f64)
        .sum()
}

/// The commit of the source that this folder is in, if it is Barchan's and git is there.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if !root.join("crates/barchan/Cargo.toml").is_file() {
        return None;
    }
    git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=10",
        "--exclude=*",
    ])
}
