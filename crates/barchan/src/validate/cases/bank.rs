//! Sand that holds together: a vertical bank that stands or falls, and a block that is wetted and dries.

use super::super::lab::{G, Lab};
use super::super::scene_text::{MIRROR, ROUGH, SceneText, block};
use super::super::trial::{Check, Outcome, Trial, Trouble};
use super::finding;

/// Height of the bank [m].
const HEIGHT: f64 = 0.2;
/// Density of the sand [kg/m³].
const DENSITY: f64 = 1600.0;
/// Up to this part of its height a bank that stands may move in the mean, next to its face; one that falls moves more than
/// four times as far.
const STANDS: f64 = 0.05;

/// Time [s] for which a bed settles before the bank is cut from it.
const SETTLE: f64 = 0.5;

/// A vertical bank, cut from a bed at rest, of `ratio` times the height that its cohesion holds: 4 c / (ρ g) tan(45° + φ/2).
pub fn cohesion(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = HEIGHT / setting.across;
    let length = 2.0 * HEIGHT;
    let width = 6.0 * d;
    let steep = (45.0 + 0.5 * setting.angle).to_radians().tan();
    let cohesion = DENSITY * G * HEIGHT / setting.ratio / (4.0 * steep);
    let text = SceneText::new(trial, d)
        .seed(1)
        .cohesive_sand(setting.angle, cohesion)
        .ground(ROUGH)
        .slice(width)
        .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        .wall([-1.0, 0.0, 0.0], [length + HEIGHT, 0.0, 0.0], MIRROR)
        .fill(&block([0.0; 3], [length + HEIGHT, HEIGHT, width]));
    let mut lab = Lab::new(trial, &text)?;
    lab.until(SETTLE)?;
    lab.remove(|place| f64::from(place.x) > length);
    let face = lab.places(|place| f64::from(place.x) > length - 0.5 * HEIGHT);
    lab.until(SETTLE + 1.0)?;
    let moved = lab.moved(&face) / HEIGHT;
    let what = ("moved", "heights");
    let found = if setting.ratio < 1.0 {
        finding(what, STANDS, moved, Check::AtMost)
    } else {
        finding(what, 4.0 * STANDS, moved, Check::AtLeast)
    };
    Ok(Outcome {
        particles: lab.most,
        findings: vec![found],
        curves: Vec::new(),
    })
}

/// A block of dry sand that is wet from the start, and dries after 0.6 s: it stands, then it flows.
pub fn wet(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = HEIGHT / setting.across;
    let width = 0.6 * HEIGHT;
    let everywhere = "{ sphere = { radius = 10 } }";
    let text = SceneText::new(trial, d)
        .seed(1)
        .table(&format!(
            "[materials.m]\npreset = \"dry-sand\"\nfriction_angle = {}\nwet_cohesion = \"2 kPa\"",
            setting.angle
        ))
        .ground(ROUGH)
        .quarter()
        .fill(&block([0.0; 3], [0.5 * width, HEIGHT, 0.5 * width]))
        .table(&format!(
            "[[wet]]\nshape = {everywhere}\nrate = 100\nuntil = 0.1\n\n[[wet]]\nshape = {everywhere}\nwetness = 0\nrate = 100\nfrom = 0.6"
        ));
    let mut lab = Lab::new(trial, &text)?;
    let all = lab.places(|_| true);
    let height = |lab: &Lab| {
        let places = &lab.state.particles.position;
        lab.mean_of(&all, |index, _| f64::from(places[index].y))
    };
    let start = height(&lab);
    lab.until(0.6)?;
    let wet = height(&lab) / start;
    lab.until(1.2)?;
    let dry = height(&lab) / start;
    Ok(Outcome {
        particles: lab.most,
        findings: vec![
            finding(("wet, height kept", ""), 0.9, wet, Check::AtLeast),
            finding(("dried, height kept", ""), 0.7, dry, Check::AtMost),
        ],
        curves: Vec::new(),
    })
}
