//! How a run tells of itself: a bar on a terminal, a line a frame in a pipe, JSON for machines.

use super::say::{duration, grouped, out, talk};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::time::Instant;

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Nothing but errors.
    Quiet,
    /// A bar or a line a frame.
    Normal,
    /// A line a step as well.
    Verbose,
}

/// The talk of one stage.
pub struct Progress {
    bar: Option<ProgressBar>,
    voice: Voice,
    json: bool,
    frames: u32,
    began: Instant,
    first_frame: u32,
    substeps: u64,
    particle_steps: f64,
}

/// What is known when a frame is done.
pub struct FrameDone {
    /// Its number.
    pub frame: u32,
    /// Its time [s].
    pub time: f64,
    /// Particles in it.
    pub particles: usize,
}

impl Progress {
    /// Begins at frame `first_frame` of `frames`.
    pub fn new(
        stage: &'static str,
        first_frame: u32,
        frames: u32,
        voice: Voice,
        json: bool,
    ) -> Self {
        let show_bar = voice != Voice::Quiet && !json && std::io::stderr().is_terminal();
        let bar = show_bar.then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(frames.into()), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(
                "{prefix} [{bar:30}] frame {pos}/{len}  {msg}  {eta} left",
            )
            .expect("the template is valid")
            .progress_chars("=> ");
            bar.set_style(style);
            bar.set_prefix(stage);
            bar.set_position(first_frame.into());
            bar.reset_eta();
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Self {
            bar,
            voice,
            json,
            frames,
            began: Instant::now(),
            first_frame,
            substeps: 0,
            particle_steps: 0.0,
        }
    }

    /// A step is done.
    pub fn step(&mut self, step: u64, time: f64, dt: f64, particles: usize) {
        self.substeps += 1;
        self.particle_steps += particles as f64;
        if self.voice == Voice::Verbose && !self.json {
            self.say(&format!(
                "step {step}: time {time:.6} s, dt {:.3} ms, {particles} particles",
                dt * 1e3
            ));
        }
    }

    /// A frame is done.
    pub fn frame(&mut self, done: &FrameDone) {
        let elapsed = self.began.elapsed().as_secs_f64();
        let rate = self.particle_steps / elapsed.max(1e-9);
        let made = f64::from(done.frame.saturating_sub(self.first_frame).max(1));
        let left = elapsed / made * f64::from(self.frames.saturating_sub(done.frame));
        let substeps = std::mem::take(&mut self.substeps);
        if self.json {
            let line = json!({
                "event": "frame", "frame": done.frame, "time": done.time, "particles": done.particles,
                "substeps": substeps, "particle_steps_per_second": rate, "seconds": elapsed, "seconds_left": left,
            });
            out(&line.to_string());
        } else if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "{substeps} substeps  {} particles  {} /s",
                grouped(done.particles as f64),
                grouped(rate)
            ));
            bar.set_position(done.frame.into());
        } else if self.voice != Voice::Quiet {
            talk(&format!(
                "frame {}/{}  time {:.3} s  {substeps} substeps  {} particles  {} particle-steps/s  {} left",
                done.frame,
                self.frames,
                done.time,
                grouped(done.particles as f64),
                grouped(rate),
                duration(left)
            ));
        }
    }

    /// So many pieces are done, for stages that have nothing more to tell.
    pub fn tick(&self, done: u32) {
        if let Some(bar) = &self.bar {
            bar.set_position(done.into());
        }
    }

    /// A line of talk that does not tear the bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if self.voice != Voice::Quiet => talk(line),
            None => {}
        }
    }

    /// The stage is over; the bar goes.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}
