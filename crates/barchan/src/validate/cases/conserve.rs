//! What must be kept: momentum in flight, and energy that nothing gives.

use super::super::lab::{G, Lab};
use super::super::method::Skill;
use super::super::scene_text::SceneText;
use super::super::trial::{Check, Outcome, Trial, Trouble};
use super::finding;

/// Radius of each ball of sand [m].
const RADIUS: f64 = 0.06;
/// How far from the origin sand falls, along each axis and in spacings: it must not matter.
const AWAY: f64 = 300.0;

/// Two balls of sand fly at each other without gravity: in flight momentum is kept, when they meet energy does not grow.
pub fn flight(trial: &Trial) -> Result<Outcome, Trouble> {
    let d = RADIUS / trial.setting.across;
    let ball = |velocity: [f64; 3], at: [f64; 3]| {
        format!(
            "[[fill]]\nmaterial = \"m\"\nvelocity = {velocity:?}\nshape = {{ sphere = {{ radius = {RADIUS}, at = {at:?} }} }}"
        )
    };
    let text = SceneText::new(trial, d)
        .seed(1)
        .sand(trial.setting.angle)
        .gravity([0.0; 3])
        .table(&ball([1.0, 0.5, 0.0], [0.0; 3]))
        .table(&ball([-1.0, 0.0, 0.2], [0.3, 0.02, 0.0]));
    let mut lab = Lab::new(trial, &text)?;
    let (before, mass) = (lab.momentum(), lab.mass());
    lab.until(0.06)?;
    let lost = (lab.momentum() - before).length() / mass;
    let mut energy = lab.energy();
    let mut grown = 0.0f64;
    while lab.time() < 0.4 {
        lab.frame()?;
        grown = grown.max(lab.energy() / energy - 1.0);
        energy = lab.energy();
    }
    let kept = lab.mass() / mass - 1.0;
    Ok(Outcome {
        particles: lab.most,
        findings: vec![
            finding(
                ("momentum lost in flight", "m/s"),
                0.0,
                lost,
                Check::Within(1e-5),
            ),
            finding(
                ("energy gained in a frame", ""),
                0.001,
                grown,
                Check::AtMost,
            ),
            finding(("mass", ""), 0.0, kept, Check::Within(1e-12)),
        ],
        curves: Vec::new(),
    })
}

/// A ball of sand that falls freely has the velocity of a fall, goes straight down, and stays as large as it is.
pub fn fall(trial: &Trial) -> Result<Outcome, Trouble> {
    let d = RADIUS / trial.setting.across;
    let text = SceneText::new(trial, d)
        .seed(1)
        .sand(trial.setting.angle)
        .fill(&format!(
            "{{ sphere = {{ radius = {RADIUS}, at = {:?} }} }}",
            [AWAY * d; 3]
        ));
    let mut lab = Lab::new(trial, &text)?;
    // A frame lets what was laid out at random begin to lie evenly.
    lab.frame()?;
    let (from, size) = (lab.center_of_mass(), lab.size());
    lab.until(0.3)?;
    let speed = -lab.momentum().y / lab.mass();
    let way = lab.center_of_mass() - from;
    let mut findings = vec![
        finding(("speed", "m/s"), G * lab.time(), speed, Check::Part(1e-4)),
        finding(
            ("moved aside", "spacings"),
            0.0,
            way.x.hypot(way.z) / d,
            Check::Within(0.05),
        ),
    ];
    // Single grains spring apart: what pressed them together is gone.
    if trial.method.can(Skill::Continuum) {
        let kept = lab.size() / size;
        findings.push(finding(("size kept", ""), 1.0, kept, Check::Part(0.1)));
    }
    Ok(Outcome {
        particles: lab.most,
        findings,
        curves: Vec::new(),
    })
}
