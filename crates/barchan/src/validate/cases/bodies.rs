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

/// Depth [m] to which a dropped ball goes.
fn depth(trial: &Trial, drop: Drop, outcome: &mut Outcome) -> Result<f64, Trouble> {
    let Drop {
        diameter,
        density,
        height,
    } = drop;
    let d = BALL / trial.setting.across;
    let size = [4.0 * BALL, 3.0 * BALL, 4.0 * BALL];
    let centre = [2.0 * BALL, size[1] + 0.5 * diameter + d, 2.0 * BALL];
    let text = bed(
        SceneText::new(trial, d).seed(1).sand(trial.setting.angle),
        size,
    );
    let mut lab = Lab::new(trial, &text)?;
    // The bed settles first: a bed and its ball would meet while it does.
    lab.until(0.3)?;
    let heights = lab.state.particles.position.iter().map(|p| f64::from(p.y));
    let surface = heights.fold(f64::MIN, f64::max) + 0.5 * d;
    let text = bed(
        SceneText::new(trial, d).seed(1).sand(trial.setting.angle),
        size,
    )
    .table(&ball(diameter, density, centre, (2.0 * G * height).sqrt()));
    let settled = lab.state.particles.clone();
    let memory = lab.state.memory.clone();
    let mut lab = Lab::new(trial, &text)?;
    (lab.state.particles, lab.state.memory) = (settled, memory);
    let mut deepest = 0.0f64;
    let mut points = Vec::new();
    while lab.time() < 0.5 {
        lab.frame()?;
        let now = surface - underside(&lab, 0, diameter);
        deepest = deepest.max(now);
        points.push([lab.time(), now]);
    }
    outcome.particles = outcome.particles.max(lab.most);
    outcome.curves.push(Curve {
        plot: "depth [m] of a ball in sand over time [s]",
        name: format!(
            "{} D = {diameter} m, {density} kg/m³, H = {height:.3} m",
            trial.method.name
        ),
        points,
        is_reference: false,
    });
    Ok(deepest)
}

/// A ball that is dropped: what it is, and which of its three numbers is swept.
#[derive(Clone, Copy)]
struct Drop {
    diameter: f64,
    density: f64,
    height: f64,
}

/// The drops of a sweep, by the number that is swept.
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

/// Balls that are dropped: how their depth goes with density, diameter, and the whole way H that they fall, depth
/// included (Uehara et al. 2003).
pub fn impact(trial: &Trial) -> Result<Outcome, Trouble> {
    let mut outcome = Outcome::default();
    for (figure, swept, reference) in [
        ("exponent of the density", "density", 0.5),
        ("exponent of the fall", "fall", 1.0 / 3.0),
        ("exponent of the diameter", "diameter", 2.0 / 3.0),
    ] {
        let mut points = Vec::new();
        for (cause, drop) in drops(swept) {
            let depth = depth(trial, drop, &mut outcome)?.max(1e-9);
            let fall = drop.height + depth;
            // Along the other two numbers, what the longer fall gives is taken out.
            points.push(match swept {
                "fall" => [fall.ln(), depth.ln()],
                _ => [cause.ln(), (depth / fall.cbrt()).ln()],
            });
        }
        let exponent = line(&points).map_or(f64::NAN, |(_, slope)| slope);
        outcome.findings.push(finding(
            (figure, ""),
            reference,
            exponent,
            Check::Within(0.1),
        ));
    }
    Ok(outcome)
}
