//! Columns that collapse when they are released: how far they run and how high they stay (Lube et al. 2004, 2005).

use super::super::lab::{G, Lab};
use super::super::profile::Profile;
use super::super::scene_text::{SceneText, block, cylinder, intersection};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;

/// Radius of the cylinder, or width of the column in a channel [m].
const RADIUS: f64 = 0.12;
/// Time from the release to where it is measured, over √(h / g), and the same for a height of one radius added.
const LASTS: f64 = 6.0;
/// From the middle of the channel to its wall, in widths of the column: the experiment's is 20 cm wide, its columns 9 cm (Crosta et al. 2009).
const HALF_CHANNEL: f64 = 1.1;
/// Friction of the channel's smooth walls: of sand on glass, some 22°.
const WALL_FRICTION: f64 = 0.4;

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

/// What a column came to.
struct Fallen {
    /// Run-out over the radius.
    reach: f64,
    /// Height near the axis over the radius.
    kept: f64,
    profile: Profile,
    particles: usize,
}

impl Fallen {
    /// Releases a column of the setting's aspect ratio, and waits until it lies.
    fn of(trial: &Trial, seed: u32) -> Result<Self, Trouble> {
        let setting = &trial.setting;
        let d = RADIUS / setting.across;
        let height = setting.ratio * RADIUS;
        let across = HALF_CHANNEL * RADIUS;
        let text = SceneText::new(trial, d)
            .seed(seed)
            .sand(setting.angle)
            .ground(setting.angle.to_radians().tan());
        let text = if is_round(trial) {
            let whole = cylinder(RADIUS, 0.0, height);
            let quarter = block([0.0; 3], [RADIUS, height, RADIUS]);
            text.quarter().fill(&intersection(&[whole, quarter]))
        } else {
            text.quarter()
                .wall([0.0, 0.0, -1.0], [0.0, 0.0, across], WALL_FRICTION)
                .fill(&block([0.0; 3], [RADIUS, height, across]))
        };
        let mut lab = Lab::new(trial, &text)?;
        lab.until(LASTS * ((height / G).sqrt() + (RADIUS / G).sqrt()))?;
        let profile = if is_round(trial) {
            Profile::of_quarter(&lab, d)
        } else {
            Profile::of_slice(&lab, d, across)
        };
        Ok(Self {
            // The edge: where less than half of a layer of particles is left.
            reach: profile.front(0.5 * d) / RADIUS - 1.0,
            kept: lab.top_near(0.1 * RADIUS, d) / RADIUS,
            profile,
            particles: lab.most,
        })
    }

    fn curve(&self, trial: &Trial) -> Curve {
        let (setting, method) = (&trial.setting, trial.method.name);
        let points = self.profile.points().into_iter();
        Curve {
            plot: "height [radii] of collapsed columns over the distance [radii]",
            name: format!("{} a = {} {method}", setting.form, setting.ratio),
            points: points.map(|point| point.map(|x| x / RADIUS)).collect(),
            is_reference: false,
        }
    }
}

fn is_round(trial: &Trial) -> bool {
    trial.setting.form == "cylinder"
}

/// Columns are released and spread: the mean of the seeds.
pub fn column(trial: &Trial) -> Result<Outcome, Trouble> {
    let a = trial.setting.ratio;
    let mut outcome = Outcome::default();
    let (mut reach, mut kept) = (0.0, 0.0);
    for seed in trial.seed..trial.seed + trial.setting.seeds {
        let fallen = Fallen::of(trial, seed)?;
        reach += fallen.reach / f64::from(trial.setting.seeds);
        kept += fallen.kept / f64::from(trial.setting.seeds);
        outcome.particles = outcome.particles.max(fallen.particles);
        if seed == trial.seed {
            outcome.curves.push(fallen.curve(trial));
        }
    }
    let (reach_reference, height_reference) = if is_round(trial) {
        (cylinder_reach(a), cylinder_height(a))
    } else {
        (channel_reach(a), None)
    };
    let part = Check::Part(0.15);
    let found = &mut outcome.findings;
    found.push(finding(("run-out", "radii"), reach_reference, reach, part));
    found.extend(
        height_reference.map(|reference| finding(("height", "radii"), reference, kept, part)),
    );
    Ok(outcome)
}
