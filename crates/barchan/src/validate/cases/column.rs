//! Columns that collapse when they are released: how far they run and how high they stay (Lube et al. 2004, 2005).

use super::super::lab::{G, Lab};
use super::super::profile::Profile;
use super::super::scene_text::{MIRROR, SceneText, block, cylinder, intersection};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;

/// Radius of the cylinder, or width of the column in a channel [m].
const RADIUS: f64 = 0.12;
/// Time from the release to where it is measured, over √(h / g), and the same for a height of one radius added.
const LASTS: f64 = 6.0;
/// Thickness of a channel, in spacings.
const THICK: f64 = 8.0;

/// Run-out over the radius of a cylinder of aspect ratio `a` (Lube et al. 2004).
fn cylinder_reach(a: f64) -> f64 {
    if a < 1.7 { 1.24 * a } else { 1.6 * a.sqrt() }
}

/// Height over the radius that stays of a cylinder of aspect ratio `a`; not told from 1 to 1.7.
fn cylinder_height(a: f64) -> Option<f64> {
    match a {
        _ if a < 1.0 => Some(a),
        _ if a > 1.7 => Some(0.88 * a.powf(1.0 / 6.0)),
        _ => None,
    }
}

/// Run-out over the width of a column in a channel (Lube et al. 2005).
fn channel_reach(a: f64) -> f64 {
    if a < 2.3 {
        1.2 * a
    } else {
        1.9 * a.powf(2.0 / 3.0)
    }
}

/// A column of the setting's aspect ratio is released and spreads.
pub fn column(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let (a, d) = (setting.ratio, RADIUS / setting.across);
    let height = a * RADIUS;
    let is_round = setting.form == "cylinder";
    let text = SceneText::new(trial, d)
        .seed(1)
        .sand(setting.angle)
        .ground(setting.angle.to_radians().tan());
    let text = if is_round {
        let whole = cylinder(RADIUS, 0.0, height);
        let quarter = block([0.0; 3], [RADIUS, height, RADIUS]);
        text.quarter().fill(&intersection(&[whole, quarter]))
    } else {
        text.slice(THICK * d)
            .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
            .fill(&block([0.0; 3], [RADIUS, height, THICK * d]))
    };
    let mut lab = Lab::new(trial, &text)?;
    lab.until(LASTS * ((height / G).sqrt() + (RADIUS / G).sqrt()))?;
    let profile = if is_round {
        Profile::of_quarter(&lab, d)
    } else {
        Profile::of_slice(&lab, d, THICK * d)
    };
    // The edge: where less than half of a layer of particles is left.
    let reach = profile.front(0.5 * d) / RADIUS - 1.0;
    let kept = lab.top_near(0.1 * RADIUS, d) / RADIUS;
    let (reach_reference, height_reference) = if is_round {
        (cylinder_reach(a), cylinder_height(a))
    } else {
        (channel_reach(a), None)
    };
    let part = Check::Part(0.15);
    let mut findings = vec![finding(("run-out", "radii"), reach_reference, reach, part)];
    findings.extend(
        height_reference.map(|reference| finding(("height", "radii"), reference, kept, part)),
    );
    Ok(Outcome {
        particles: lab.most,
        findings,
        curves: vec![Curve {
            plot: "height [radii] of collapsed columns over the distance [radii]",
            name: format!("{} a = {a} {}", setting.form, trial.method.name),
            points: profile
                .points()
                .iter()
                .map(|point| point.map(|x| x / RADIUS))
                .collect(),
            is_reference: false,
        }],
    })
}
