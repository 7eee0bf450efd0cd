//! A trial that was made, as a line of text or of JSON.

use super::grains::of_shape;
use super::method::Method;
use super::side_by_side::Plan;
use super::table::Case;
use super::trial::{Finding, Outcome, Setting, Trial, Trouble};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// A trial that was made.
pub struct Record {
    /// Of which case.
    pub case: &'static Case,
    /// With what turned.
    pub setting: Setting,
    /// By which method.
    pub method: &'static Method,
    /// Changes to its scenes.
    pub set: Arc<[String]>,
    /// What it found.
    pub outcome: Outcome,
    /// How long it took [s].
    pub seconds: f64,
    /// Why it broke down.
    pub trouble: Option<Trouble>,
}

impl Record {
    /// Makes a trial. One that breaks down finds nothing, which is wrong.
    pub fn make(plan: &Plan) -> Self {
        let began = Instant::now();
        let trial = Trial {
            setting: plan.setting,
            method: plan.method,
            grain: plan.setting.shape.map(of_shape).unwrap_or_default(),
            seed: 1,
            set: plan.set.clone(),
        };
        let (outcome, trouble) = match (plan.case.measure)(&trial) {
            Ok(outcome) => (outcome, None),
            Err(trouble) => {
                let broken = Outcome {
                    findings: vec![Finding::broken()],
                    ..Outcome::default()
                };
                (broken, Some(trouble))
            }
        };
        Self {
            case: plan.case,
            setting: plan.setting,
            method: plan.method,
            set: plan.set.clone(),
            outcome,
            seconds: began.elapsed().as_secs_f64(),
            trouble,
        }
    }

    /// The case and its form.
    pub fn name(&self) -> String {
        let name = format!("{} {}", self.case.name, self.setting.form);
        name.trim_end().to_owned()
    }

    /// A figure as a line of JSON.
    pub fn json(&self, finding: &Finding) -> String {
        let setting = &self.setting;
        json!({
            "case": self.case.name, "form": setting.form, "figure": finding.figure, "unit": finding.unit,
            "method": self.method.name, "angle": setting.angle, "ratio": setting.ratio, "across": setting.across,
            "step": setting.step, "rate": setting.rate, "seeds": setting.seeds, "shape": setting.shape,
            "set": *self.set,
            "particles": self.outcome.particles, "reference": finding.reference, "obtained": finding.obtained,
            "error": finding.error(), "tolerance": finding.tolerance(), "check": finding.check.word(),
            "pass": finding.passes(), "seconds": self.seconds,
        })
        .to_string()
    }

    /// What was turned, in short.
    pub fn turned(&self) -> String {
        let setting = &self.setting;
        let mut text = format!("{}°", setting.angle);
        if !self.case.ratio.is_empty() {
            text += &format!(", {} {}", self.case.ratio, setting.ratio);
        }
        text += &format!(", 1/{}", setting.across);
        if let Some(shape) = setting.shape {
            text += &format!(", {shape}");
        }
        for (name, value) in [("step", setting.step), ("rate", setting.rate)] {
            if (value - 1.0).abs() > 1e-9 {
                text += &format!(", {name} × {value}");
            }
        }
        for change in self.set.iter() {
            text += &format!(", {change}");
        }
        text
    }
}
