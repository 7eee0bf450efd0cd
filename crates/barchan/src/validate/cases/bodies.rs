//! Balls on and into a bed of sand.

use super::super::lab::{G, Lab};
use super::super::profile::line;
use super::super::scene_text::{MIRROR, ROUGH, SceneText, block};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;

/// Density of the sand [kg/m³].
const DENSITY: f64 = 1600.0;
/// Diameter of a ball [m].
const BALL: f64 = 0.06;

/// A box of sand over x in 0..`size[0]` and z in 0..`size[2]`, `size[1]` deep, as wide as its floor.
fn bed(text: SceneText, size: [f64; 3]) -> SceneText {
    text.ground(ROUGH)
        .slice(size[2])
        .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        .wall([-1.0, 0.0, 0.0], [size[0], 0.0, 0.0], MIRROR)
        .fill(&block([0.0; 3], size))
}

/// A ball of `density` [kg/m³] with its centre at `at`, moving down at `speed` [m/s].
fn ball(diameter: f64, density: f64, at: [f64; 3], speed: f64) -> String {
    let radius = 0.5 * diameter;
    format!(
        "[[body]]\nmotion = \"dynamic\"\ndensity = {density}\nvelocity = [0, {}, 0]\nfriction = 0.5\nshape = {{ sphere = {{ radius = {radius}, at = {at:?} }} }}",
        -speed
    )
}

/// Bodies of a bed before its balls: ground and four walls.
const BEFORE_BALLS: usize = 5;

/// Height of the underside of ball `index` [m].
fn underside(lab: &Lab, index: usize, diameter: f64) -> f64 {
    let places = lab.state.solids.places();
    f64::from(places[BEFORE_BALLS + index].center[1]) - 0.5 * diameter
}

/// Densities of the balls laid on a bed, over the sand's.
const DENSITIES: [f64; 3] = [0.5, 1.0, 3.0];

/// Three balls are laid on a bed: none sinks below its equator and a spacing, and the heavier lies deeper.
pub fn buoyancy(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = BALL / setting.across;
    let size = [6.0 * BALL, 1.5 * BALL, 2.0 * BALL];
    let mut text = bed(SceneText::new(trial, d).seed(1).sand(setting.angle), size);
    for (index, density) in DENSITIES.into_iter().enumerate() {
        let at = [
            (1.0 + 2.0 * index as f64) * BALL,
            size[1] + 0.5 * BALL + d,
            BALL,
        ];
        text = text.table(&ball(BALL, density * DENSITY, at, 0.0));
    }
    let mut lab = Lab::new(trial, &text)?;
    lab.until(1.5)?;
    let depths: Vec<f64> = (0..3)
        .map(|index| size[1] - underside(&lab, index, BALL))
        .collect();
    let deepest = depths.iter().copied().fold(f64::MIN, f64::max);
    let ordered = depths.windows(2).map(|pair| pair[1] - pair[0]);
    let least = ordered.fold(f64::MAX, f64::min);
    Ok(Outcome {
        particles: lab.most,
        findings: vec![
            finding(
                ("deepest", "spacings"),
                0.5 * setting.across + 1.0,
                deepest / d,
                Check::AtMost,
            ),
            finding(
                ("heavier deeper by", "spacings"),
                0.0,
                least / d,
                Check::AtLeast,
            ),
        ],
        curves: Vec::new(),
    })
}

/// A ball that is dropped.
#[derive(Clone, Copy)]
struct Drop {
    diameter: f64,
    density: f64,
    height: f64,
}

/// The drops of a sweep, with the number that is swept.
fn drops(swept: &str) -> [(f64, Drop); 3] {
    let usual = Drop {
        diameter: BALL,
        density: 2.0 * DENSITY,
        height: BALL,
    };
    match swept {
        "density" => [1.0, 2.0, 4.0].map(|part| {
            let density = part * DENSITY;
            (density, Drop { density, ..usual })
        }),
        "diameter" => [0.7, 1.0, 1.4].map(|part| {
            let diameter = part * BALL;
            (diameter, Drop { diameter, ..usual })
        }),
        _ => [1.0, 3.0, 9.0].map(|part| {
            let height = part * BALL;
            (height, Drop { height, ..usual })
        }),
    }
}

/// Size of the bed that balls are dropped into [m].
const BED: [f64; 3] = [4.0 * BALL, 3.0 * BALL, 4.0 * BALL];
/// Time for it to settle [s], and the longest that a ball is watched.
const SETTLE: f64 = 0.3;
const WATCH: f64 = 0.5;

/// Drops a ball into a bed that has settled; tells its depth [m] over time [s] until it stops.
fn dropped(trial: &Trial, settled: &Lab, drop: Drop) -> Result<Vec<[f64; 2]>, Trouble> {
    let d = BALL / trial.setting.across;
    let heights = settled.state.particles.position.iter();
    let surface = heights.map(|p| f64::from(p.y)).fold(f64::MIN, f64::max) + 0.5 * d;
    let centre = [0.5 * BED[0], surface + 0.5 * drop.diameter, 0.5 * BED[2]];
    let speed = (2.0 * G * drop.height).sqrt();
    let text = bed(
        SceneText::new(trial, d).seed(1).sand(trial.setting.angle),
        BED,
    )
    .table(&ball(drop.diameter, drop.density, centre, speed));
    let mut lab = Lab::unpacked(trial, &text)?;
    lab.state.particles = settled.state.particles.clone();
    lab.state.memory = settled.state.memory.clone();
    let mut points = vec![[0.0, 0.0]];
    while lab.time() < WATCH {
        lab.frame()?;
        let depth = surface - underside(&lab, 0, drop.diameter);
        let before = points.last().map_or(0.0, |point| point[1]);
        points.push([lab.time(), depth]);
        if depth <= before {
            break;
        }
    }
    Ok(points)
}

/// Balls that are dropped: how their depth goes with density, diameter, or the whole way H that they fall, depth
/// included (Uehara et al. 2003).
pub fn impact(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = BALL / setting.across;
    let text = bed(SceneText::new(trial, d).seed(1).sand(setting.angle), BED);
    let mut settled = Lab::new(trial, &text)?;
    settled.until(SETTLE)?;
    let mut outcome = Outcome {
        particles: settled.most,
        ..Outcome::default()
    };
    let mut points = Vec::new();
    for (cause, drop) in drops(setting.form) {
        let way = dropped(trial, &settled, drop)?;
        let depth = way.iter().map(|point| point[1]).fold(1e-9, f64::max);
        let fall = drop.height + depth;
        // Along the other two numbers, what the longer fall gives is taken out.
        points.push(match setting.form {
            "fall" => [fall.ln(), depth.ln()],
            _ => [cause.ln(), (depth / fall.cbrt()).ln()],
        });
        outcome.curves.push(Curve {
            plot: "depth [m] of a ball in sand over time [s]",
            name: format!("{} {} {cause:.3}", trial.method.name, setting.form),
            points: way,
            is_reference: false,
        });
    }
    let reference = match setting.form {
        "density" => 0.5,
        "diameter" => 2.0 / 3.0,
        _ => 1.0 / 3.0,
    };
    let exponent = line(&points).map_or(f64::NAN, |(_, slope)| slope);
    let figure = finding(("exponent", ""), reference, exponent, Check::Within(0.1));
    outcome.findings.push(figure);
    Ok(outcome)
}
