//! Where benchmarks tell what they found: the median of several runs, as text or JSON, with the machine and the commit, and kept in a file if
//! asked.

use crate::command::Failure;
use crate::command::machine::{self, Possible, possible};
use crate::command::say::{bytes, grouped, out, talk};
use barchan_sim::state::Particles;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What one run of fixed work found.
pub struct Finding {
    /// How long it took [s].
    pub seconds: f64,
    /// How many things were done in that time, and what one of them is called: particle-steps, say.
    pub done: (f64, &'static str),
    /// Bytes that had to be read or written at the very least.
    pub bytes: f64,
    /// All else, for machines.
    pub line: Value,
    /// The same for people.
    pub text: String,
}

impl Finding {
    /// Of whole steps: `per_frame` of them make a frame, and `memory` bytes were held at most.
    pub fn of_steps(
        name: &str,
        all: &Particles,
        (steps, seconds): (u32, f64),
        per_frame: f64,
        memory: f64,
    ) -> Self {
        let particles = all.len() as f64;
        let particle_steps = particles * f64::from(steps);
        let rate = particle_steps / seconds;
        let frame = seconds / f64::from(steps) * per_frame;
        let memory = memory / particles;
        Self {
            seconds,
            done: (particle_steps, "particle-step"),
            bytes: bytes_of_steps(all, particle_steps),
            line: json!({
                "name": name, "particles": all.len(), "steps": steps, "particle_steps_per_second": rate,
                "seconds_per_frame": frame, "bytes_per_particle": memory,
            }),
            text: format!(
                "{name:24} {} particles  {} particle-steps/s  {frame:.3} s a frame  {} a particle at most",
                grouped(particles),
                grouped(rate),
                bytes(memory)
            ),
        }
    }

    /// What one thing took [ns].
    fn nanoseconds_each(&self) -> f64 {
        1e9 * self.seconds / self.done.0.max(1.0)
    }
}

/// How a benchmark is to be done and told.
pub struct Manner {
    /// Lines of JSON instead of text.
    pub json: bool,
    /// File to keep lines in.
    pub keep: Option<PathBuf>,
    /// How often the work is done; the median counts.
    pub runs: u32,
    /// Whether each line is told beside the first: the same over sizes or threads.
    pub scaling: bool,
}

/// Measures, tells and keeps the lines of a benchmark.
pub struct Ledger {
    manner: Manner,
    machine: String,
    commit: Option<String>,
    /// Seconds since 1970.
    time: u64,
    possible: Possible,
    /// Memory that the program itself takes [bytes].
    program: Option<f64>,
    /// What one thing took in the first line [ns].
    first: Option<f64>,
    failed: bool,
}

impl Ledger {
    /// One that tells in this manner.
    pub fn new(manner: Manner) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            manner,
            machine: machine::name(),
            commit: commit(),
            time: since.map_or(0, |since| since.as_secs()),
            possible: Possible::NOTHING,
            program: None,
            first: None,
            failed: false,
        }
    }

    /// Finds out what the machine can do with the threads there are now. Before anything else is in memory: its arrays must not be among what
    /// the benchmark is found to hold.
    pub fn weigh_machine(&mut self) {
        self.possible = possible();
        machine::forget_peak_memory();
        // Later there is what earlier measurements have left behind.
        let now = machine::peak_memory().unwrap_or(0.0);
        self.program.get_or_insert(now);
    }

    /// Memory that the program takes before it measures anything [bytes].
    pub fn program(&self) -> f64 {
        self.program.unwrap_or(0.0)
    }

    /// What the machine can do.
    pub fn possible(&self) -> Possible {
        self.possible
    }

    /// How often each measurement is taken.
    pub fn runs(&self) -> u32 {
        self.manner.runs
    }

    /// Does the work as often as asked, and tells of the run whose time is the median; of an even number, the faster one of the two in the middle.
    pub fn measure(
        &mut self,
        work: impl FnMut() -> Result<Finding, Failure>,
    ) -> Result<(), Failure> {
        let runs = std::iter::repeat_with(work).take(self.manner.runs as usize);
        let mut found = runs.collect::<Result<Vec<Finding>, Failure>>()?;
        let times: Vec<f64> = found.iter().map(|run| run.seconds).collect();
        found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let median = found.swap_remove((found.len() - 1) / 2);
        self.tell(median, &times);
        Ok(())
    }

    /// Tells of a run that stands for all, and keeps it.
    fn tell(&mut self, finding: Finding, times: &[f64]) {
        let each = finding.nanoseconds_each();
        let of_first = each / *self.first.get_or_insert(each);
        let text = format!(
            "{}\n  {}",
            finding.text,
            self.summary(&finding, times, of_first)
        );
        let mut line = finding.line;
        line["seconds"] = finding.seconds.into();
        line["seconds_of_runs"] = times.into();
        line["each"] = finding.done.1.into();
        line["nanoseconds_each"] = each.into();
        if self.manner.scaling {
            line["of_first"] = of_first.into();
        }
        line["of_possible_bytes"] = self
            .of_possible_bytes(finding.bytes, finding.seconds)
            .into();
        line["threads"] = rayon::current_num_threads().into();
        line["machine"] = self.machine.clone().into();
        line["commit"] = self.commit.clone().into();
        line["version"] = env!("CARGO_PKG_VERSION").into();
        line["time"] = self.time.into();
        let json = line.to_string();
        if let Some(path) = &self.manner.keep
            && let Err(error) = append(path, &json)
        {
            self.failed = true;
            talk(&format!("cannot write {}: {error}", path.display()));
        }
        out(if self.manner.json { &json } else { &text });
    }

    /// What part of the machine's memory bandwidth is reached at the very least.
    fn of_possible_bytes(&self, bytes: f64, seconds: f64) -> f64 {
        bytes / seconds / self.possible.bytes_per_second
    }

    /// The line of text that all benchmarks have.
    fn summary(&self, finding: &Finding, times: &[f64], of_first: f64) -> String {
        let threads = match rayon::current_num_threads() {
            1 => "1 thread".into(),
            threads => format!("{threads} threads"),
        };
        let spread = match times {
            [_] => "one run".into(),
            times => format!(
                "median of {} runs, {:.3} to {:.3} s",
                times.len(),
                times.iter().copied().fold(f64::INFINITY, f64::min),
                times.iter().copied().fold(0.0, f64::max)
            ),
        };
        let beside = match self.manner.scaling {
            true => format!("; {of_first:.2} of the first"),
            false => String::new(),
        };
        format!(
            "{threads}: {:.1} ns a {}, {:.1} % of the bytes possible; {spread}{beside}",
            finding.nanoseconds_each(),
            finding.done.1,
            100.0 * self.of_possible_bytes(finding.bytes, finding.seconds),
        )
    }

    /// The end: a failure where a line could not be kept.
    pub fn close(self) -> Result<(), Failure> {
        match self.failed {
            true => Err(Failure::Run("not every line was kept".into())),
            false => Ok(()),
        }
    }
}

/// One write a line, so that two programs do not mix theirs.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Bytes of a particle's columns.
pub fn bytes_of_state(particles: &Particles) -> f64 {
    let columns = particles.raw();
    columns
        .iter()
        .map(|(spec, _)| spec.kind.size() as f64)
        .sum()
}

/// Bytes that must be moved where all particles are read and written once in each of so many particle-steps.
pub fn bytes_of_steps(particles: &Particles, particle_steps: f64) -> f64 {
    2.0 * bytes_of_state(particles) * particle_steps
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
