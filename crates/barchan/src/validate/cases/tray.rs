//! A tray with a heap on it that drives off.

use super::super::lab::{G, Lab};
use super::super::scene_text::{MIRROR, ROUGH, SceneText, block};
use super::super::trial::{Check, Outcome, Trial, Trouble};
use super::finding;
use std::fmt::Write;

/// Radius of the heap [m].
const RADIUS: f64 = 0.2;
/// Slope of the heap over the friction angle: its side must stand in the turned gravity of the tray.
const SLOPE: f64 = 0.5;
/// When it drives off, and when it is looked at [s].
const FROM: f64 = 0.4;
const UNTIL: f64 = 1.0;
/// Time between keyframes [s]: the curve through them is smooth.
const KEYS: f64 = 0.02;

/// A heap on a tray that accelerates by `ratio` μ g does not move in it.
pub fn truck(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = RADIUS / setting.across;
    let acceleration = setting.ratio * G * setting.angle.to_radians().tan();
    let way = |time: f64| 0.5 * acceleration * (time - FROM).max(0.0).powi(2);
    let mut keys = String::new();
    // One key more than is needed: at its ends the curve is at rest.
    for key in 0..=((UNTIL / KEYS).round() as usize + 2) {
        let time = key as f64 * KEYS;
        let _ = write!(keys, "{{ time = {time}, at = [{}, 0, 0] }}, ", way(time));
    }
    let rise = RADIUS * (SLOPE * setting.angle).to_radians().tan();
    let bed = block(
        [-2.0 * RADIUS, -0.1, -RADIUS],
        [2.0 * RADIUS, 0.0, 2.0 * RADIUS],
    );
    let heap = format!(
        "{{ intersection = {{ of = [{{ cone = {{ radius = {RADIUS}, height = {rise}, at = [0, {}, 0] }} }}, {}] }} }}",
        0.5 * rise,
        block([-RADIUS, 0.0, 0.0], [RADIUS, rise, RADIUS])
    );
    let text = SceneText::new(trial, d)
        .seed(1)
        .sand(setting.angle)
        .wall([0.0, 0.0, 1.0], [0.0; 3], MIRROR)
        .table(&format!(
            "[[body]]\nshape = {bed}\nfriction = {ROUGH}\nkeyframes = [{keys}]"
        ))
        .fill(&heap);
    let mut lab = Lab::new(trial, &text)?;
    lab.until(FROM)?;
    let before = lab.places(|_| true);
    lab.until(UNTIL)?;
    let places = &lab.state.particles.position;
    let slipped = lab.mean_of(&before, |index, was| {
        let away = (places[index] - was).as_dvec3();
        (away - glam::DVec3::X * way(lab.time())).length()
    });
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("moved in the tray", "spacings"),
            1.0,
            slipped / d,
            Check::AtMost,
        )],
        curves: Vec::new(),
    })
}
