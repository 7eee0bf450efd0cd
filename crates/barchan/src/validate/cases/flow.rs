//! Sand that leaves through an opening, and sand that leans on the walls of a silo.

use super::super::lab::{G, Lab};
use super::super::profile::line;
use super::super::scene_text::{ROUGH, SceneText, block, cylinder, difference, intersection};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;
use std::f64::consts::PI;

/// Diameter of the smallest opening [m].
const OPENING: f64 = 0.08;
/// Diameters of the openings over the smallest.
const OPENINGS: [f64; 3] = [1.0, 1.4, 2.0];
/// Radius of the bin, in openings.
const BIN: f64 = 1.25;
/// Height of the fill, in openings; measured until two are left.
const FILL: f64 = 3.0;
/// The rim that grains do not pass, in particle spacings (Beverloo et al. 1961).
const RIM: f64 = 1.4;
/// Time for the flow to begin, over √(D / g).
const BEGIN: f64 = 1.0;
/// Parts of the time in which the flow is compared.
const PARTS: usize = 4;

/// What went through an opening.
struct Discharge {
    /// Time [s] and mass that has left [kg].
    points: Vec<[f64; 2]>,
    particles: usize,
}

impl Discharge {
    /// Lets sand run through an opening of `opening` [m] until two openings of its height are left.
    fn run(trial: &Trial, seed: u32, opening: f64, d: f64) -> Result<Self, Trouble> {
        let (bin, height) = (BIN * opening, FILL * opening);
        let far = bin + 0.2;
        let plate = difference(&[
            block([-far, -4.0 * d, -far], [far, 0.0, far]),
            cylinder(0.5 * opening, -5.0 * d, d),
        ]);
        let wall = difference(&[
            block([-far, 0.0, -far], [far, 2.0 * height, far]),
            cylinder(bin, -d, 3.0 * height),
        ]);
        let fill = intersection(&[
            cylinder(bin, 0.0, height),
            block([0.0; 3], [bin, height, bin]),
        ]);
        let sink = block([-far, -1.0, -far], [far, -10.0 * d, far]);
        let text = SceneText::new(trial, d)
            .seed(seed)
            .sand(trial.setting.angle)
            .quarter()
            .body(&plate, ROUGH)
            .body(&wall, 0.3)
            .fill(&fill)
            .table(&format!("[[sink]]\nshape = {sink}"));
        let mut lab = Lab::new(trial, &text)?;
        let total = lab.mass();
        let begin = BEGIN * (opening / G).sqrt() + (20.0 * d / G).sqrt();
        // Five times as long as Beverloo's flow would take: an opening that jams is not waited for.
        let expected = 0.58 * G.sqrt() * (opening - RIM * d).powf(2.5) * 0.25;
        let longest = begin + 5.0 * (0.25 * PI * bin * bin * opening) / expected;
        let mut points = Vec::new();
        let gone = |lab: &Lab| lab.state.tally.sunk[0].mass;
        while lab.time() < longest && gone(&lab) < (1.0 - 2.0 / FILL) * total {
            lab.frame()?;
            if lab.time() > begin {
                points.push([lab.time(), gone(&lab)]);
            }
        }
        Ok(Self {
            points,
            particles: lab.most,
        })
    }

    /// Mass a second [kg/s].
    fn rate(&self) -> f64 {
        line(&self.points).map_or(0.0, |(_, slope)| slope)
    }

    /// The largest difference of the flow in a part of the time to the mean of the parts, over the mean.
    fn unevenness(&self) -> f64 {
        let part = (self.points.len() / PARTS).max(1);
        let rates: Vec<f64> = self
            .points
            .chunks_exact(part)
            .take(PARTS)
            .filter_map(|points| Some(line(points)?.1))
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let worst = rates.iter().map(|rate| (rate / mean - 1.0).abs());
        if rates.len() < PARTS || mean <= 0.0 {
            return f64::NAN;
        }
        worst.fold(0.0, f64::max)
    }
}

/// Discharge through three openings, constant in time, and as their width to the power of five halves: the mean of the seeds.
pub fn hourglass(trial: &Trial) -> Result<Outcome, Trouble> {
    let (d, seeds) = (OPENING / trial.setting.across, trial.setting.seeds);
    let mut outcome = Outcome::default();
    let mut powers = Vec::new();
    for part in OPENINGS {
        let opening = OPENING * part;
        let (mut rate, mut unevenness) = (0.0, 0.0);
        for seed in trial.seed..trial.seed + seeds {
            let discharge = Discharge::run(trial, seed, opening, d)?;
            rate += discharge.rate() / f64::from(seeds);
            unevenness += discharge.unevenness() / f64::from(seeds);
            outcome.particles = outcome.particles.max(discharge.particles);
            if seed == trial.seed {
                outcome.curves.push(Curve {
                    plot: "discharged mass [kg] over time [s]",
                    name: format!("D = {:.3} m {}", opening, trial.method.name),
                    points: discharge.points,
                    is_reference: false,
                });
            }
        }
        powers.push([(opening - RIM * d).ln(), rate.max(1e-12).ln()]);
        if part == OPENINGS[2] {
            outcome.findings.push(finding(
                ("unevenness of the flow", ""),
                0.0,
                unevenness,
                Check::Within(0.05),
            ));
        }
    }
    let exponent = line(&powers).map_or(f64::NAN, |(_, slope)| slope);
    outcome.findings.push(finding(
        ("exponent", ""),
        2.5,
        exponent,
        Check::Within(0.15),
    ));
    Ok(outcome)
}

/// Radius of the silo [m].
const SILO: f64 = 0.1;
/// Friction of its wall.
const WALL_FRICTION: f64 = 0.4;
/// The body that is its floor.
const FLOOR: usize = 0;

/// How far the floor gives way, over the radius; how long it does before the pressure is read [s], and while it is [s].
const GIVES_WAY: f64 = 1.0 / 60.0;
const SINKS: f64 = 0.3;
const READ: f64 = 0.2;

/// A rough floor that sinks by `way` [m] from `begin` [s] until the pressure on it is found.
fn sinking_floor(begin: f64, way: f64) -> String {
    let end = begin + SINKS + READ;
    format!(
        "[[body]]\nshape = {{ plane = {{ normal = [0, 1, 0] }} }}\nfriction = {ROUGH}\nkeyframes = [\n  \
         {{ time = {begin}, at = [0, 0, 0] }},\n  {{ time = {end}, at = [0, {}, 0] }},\n]",
        -way
    )
}

/// A silo filled by rain to a height of `ratio` radii: the pressure on its floor (Janssen 1895).
pub fn silo(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = SILO / setting.across;
    let height = setting.ratio * SILO;
    let (sin, area) = (setting.angle.to_radians().sin(), 0.25 * PI * SILO * SILO);
    // Twenty spacings a second rise: calm, and no slower than need be.
    let rain = height / (20.0 * d);
    let top = height + 6.0 * d;
    let nozzle = intersection(&[
        cylinder(SILO - d, top, top + 2.0 * d),
        block([0.0, top, 0.0], [SILO, top + 2.0 * d, SILO]),
    ]);
    let far = SILO + 0.2;
    let wall = difference(&[
        block([-far, -0.1, -far], [far, 2.0 * top, far]),
        cylinder(SILO, -0.2, 3.0 * top),
    ]);
    let filled = rain + (2.0 * top / G).sqrt() + 0.3;
    let text = SceneText::new(trial, d).seed(1).sand(setting.angle);
    // What rained down has hardly slid along the wall, and single grains spring back and are held down by it. Where the floor
    // gives way, the wall bears what it can (Vanel & Clément 1999).
    let text = text.table(&sinking_floor(filled, GIVES_WAY * SILO));
    let text = text.quarter().body(&wall, WALL_FRICTION).table(&format!(
        "[[emit]]\nmaterial = \"m\"\nshape = {nozzle}\nrate = {}\nuntil = {rain}",
        area * height / rain
    ));
    let mut lab = Lab::new(trial, &text)?;
    lab.until(filled + SINKS)?;
    lab.taken_by(FLOOR);
    let begin = lab.time();
    lab.until(begin + READ)?;
    let pressure = -lab.taken_by(FLOOR).y / (lab.time() - begin) / area;
    // How high it lies is what was found, not what was asked for: it may have come to lie more or less densely.
    let height = 2.0 * lab.center_of_mass().y;
    let density = lab.mass() / (area * height);
    // Sand at rest presses sideways with 1 − sin φ of what it carries (Jáky 1944).
    let decay = SILO / (2.0 * WALL_FRICTION * (1.0 - sin));
    let expected = density * G * decay * (1.0 - (-height / decay).exp());
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("floor pressure", "Pa"),
            expected,
            pressure,
            Check::Part(0.15),
        )],
        curves: Vec::new(),
    })
}
