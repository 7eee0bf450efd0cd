//! Time as whole numbers: frames, and ticks within a frame. Nobody adds up `dt`.

use serde::{Deserialize, Serialize};

/// Ticks in a frame: at 24 frames a second one tick is 10⁻¹¹ s.
pub const TICKS_PER_FRAME: u64 = 1 << 32;

/// Where a run is in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Frames a second.
    pub fps: f64,
    /// Frames completed.
    pub frame: u32,
    /// Ticks since then.
    pub tick: u64,
    /// Steps taken since the start.
    pub step: u64,
}

/// A step about to be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Length in ticks.
    pub ticks: u64,
    /// Time at its start [s].
    pub start: f64,
    /// Time at its end [s].
    pub end: f64,
    /// Length [s].
    pub dt: f64,
}

impl Clock {
    /// Time zero.
    pub fn new(fps: f64) -> Self {
        Self {
            fps,
            frame: 0,
            tick: 0,
            step: 0,
        }
    }

    fn time_at(&self, tick: u64) -> f64 {
        (f64::from(self.frame) + tick as f64 / TICKS_PER_FRAME as f64) / self.fps
    }

    /// Now [s].
    pub fn time(&self) -> f64 {
        self.time_at(self.tick)
    }

    /// The next step: at most `max_dt` [s] long, at least a tick, and such that the frame ends in equal steps.
    pub fn plan(&self, max_dt: f64) -> Step {
        let left = TICKS_PER_FRAME - self.tick;
        let allowed = (max_dt * self.fps * TICKS_PER_FRAME as f64).clamp(1.0, left as f64);
        let steps = (left as f64 / allowed).ceil().max(1.0) as u64;
        let ticks = left.div_ceil(steps).min(left);
        let (start, end) = (self.time(), self.time_at(self.tick + ticks));
        Step {
            ticks,
            start,
            end,
            dt: ticks as f64 / TICKS_PER_FRAME as f64 / self.fps,
        }
    }

    /// Takes a step; true where it completes a frame.
    pub fn advance(&mut self, step: &Step) -> bool {
        self.step += 1;
        self.tick += step.ticks;
        let done = self.tick >= TICKS_PER_FRAME;
        if done {
            self.tick = 0;
            self.frame += 1;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of_a_frame(fps: f64, max_dt: f64) -> Vec<f64> {
        let mut clock = Clock::new(fps);
        let mut steps = Vec::new();
        loop {
            let step = clock.plan(max_dt);
            steps.push(step.dt);
            if clock.advance(&step) {
                assert!((clock.time() - 1.0 / fps).abs() < 1e-15);
                return steps;
            }
        }
    }

    #[test]
    fn frames_are_hit_exactly_in_equal_steps() {
        for (fps, max_dt) in [(24.0, 0.01), (24.0, 1.0), (30.0, 1e-4), (23.976, 0.0071)] {
            let steps = steps_of_a_frame(fps, max_dt);
            assert_eq!(
                steps.len(),
                (1.0 / fps / max_dt).ceil() as usize,
                "{fps} fps, {max_dt} s"
            );
            let (least, most) = steps
                .iter()
                .fold((f64::MAX, 0.0f64), |(a, b), dt| (a.min(*dt), b.max(*dt)));
            assert!(most <= max_dt * (1.0 + 1e-6) && most - least < 1e-9);
        }
    }

    #[test]
    fn impossible_limits_still_move_time() {
        let clock = Clock::new(24.0);
        assert_eq!(clock.plan(0.0).ticks, 1);
        assert_eq!(clock.plan(f64::INFINITY).ticks, TICKS_PER_FRAME);
        assert_eq!(clock.plan(f64::NAN).ticks, TICKS_PER_FRAME);
    }
}
