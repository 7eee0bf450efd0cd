//! Layers on inclines: where they begin to flow, how fast they slide, and slopes that were cut or drained.

use super::super::lab::{G, Lab};
use super::super::method::Skill;
use super::super::profile::{Profile, line};
use super::super::scene_text::{MIRROR, ROUGH, SceneText, block};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;
use glam::{DQuat, DVec3, Vec3};
use std::collections::BTreeMap;

/// Distance between particles [m] of what has the reference length of `across` spacings.
const LENGTH: f64 = 0.4;

/// How fast the box is tilted [deg/s].
const TILT_RATE: f64 = 2.0;
/// The box that lies askew is turned this much [deg].
const ASKEW: f64 = 20.0;
/// It begins this much [deg] below the angle,
const TILT_BELOW: f64 = 5.0;
/// and ends this much above.
const TILT_ABOVE: f64 = 10.0;
/// Time to settle before the tilt [s].
const SETTLE: f64 = 0.4;
/// The part of a layer that is looked at, from the top.
const UPPER: f64 = 0.4;
/// Speed of it that counts as flow, over the one at which it would keep the surface as steep as it is while the box turns.
const FLOWS: f64 = 0.25;
/// How long [s] it must flow.
const FLOWS_ON: f64 = 0.1;

/// Gravity of an incline of `angle` [deg] that goes down along x.
fn inclined(angle: f64) -> [f64; 3] {
    let angle = angle.to_radians();
    [G * angle.sin(), -G * angle.cos(), 0.0]
}

/// A box of sand that is tilted slowly: the angle at which the upper layer flows. Gravity turns about a box that lies along the grid or
/// askew to it, or the box turns.
pub fn tilt(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let (d, n) = (LENGTH / setting.across, setting.across);
    let size = [LENGTH, 0.25 * n * d, 8.0 * d];
    // The ratio is how far around the angle is looked, over the usual.
    let begin = (setting.angle - TILT_BELOW * setting.ratio).max(0.0);
    let last = setting.angle + TILT_ABOVE * setting.ratio;
    let turns_box = setting.form == "box";
    let askew = f64::from(setting.form == "askew") * ASKEW;
    let from = if turns_box { 0.0 } else { begin };
    let text = SceneText::new(trial, d)
        .seed(trial.seed)
        .sand(setting.angle);
    let text = boxed(text, trial, (size, d), (askew, last))
        .gravity(inclined(from - askew))
        .fill(&turned(&block([0.0; 3], size), askew));
    let mut lab = Lab::new(trial, &text)?;
    let upper = upper_middle(&lab, size, askew);
    let mut found = f64::NAN;
    let mut flowing = None;
    let mut points = Vec::new();
    loop {
        let angle = from + (TILT_RATE * (lab.time() - SETTLE)).max(0.0);
        if angle > last {
            break;
        }
        if !turns_box {
            lab.scene.model.gravity = Vec3::from(inclined(angle - askew).map(|g| g as f32));
        }
        lab.frame()?;
        let turning = f64::from(turns_box && lab.time() > SETTLE) * TILT_RATE.to_radians();
        let speed = speed_in_box(&lab, &upper, turning) / keeping(size);
        points.push([angle, speed]);
        // A jolt is no flow: it must go on.
        let flows = lab.time() > SETTLE && speed > FLOWS;
        flowing = flows.then(|| flowing.unwrap_or((angle, lab.time())));
        if let Some((angle, since)) = flowing
            && lab.time() - since > FLOWS_ON
        {
            found = angle;
            break;
        }
    }
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("onset", "°"),
            setting.angle,
            found,
            Check::Within(2.0),
        )],
        curves: vec![Curve {
            plot: "speed of the upper layer, over the one that keeps its slope, by tilt [°]",
            name: format!("{}° {} {}", setting.angle, setting.form, trial.method.name),
            points,
            is_reference: false,
        }],
    })
}

/// Speed [m/s] at which the upper part of a layer keeps its surface as steep as it is: what the turn lifts of the upper half must
/// pass the middle.
fn keeping([length, depth, _]: [f64; 3]) -> f64 {
    TILT_RATE.to_radians() * length * length / (8.0 * UPPER * depth)
}

/// The upper part in the middle of a layer of this size [m] that lies `askew` [deg].
fn upper_middle(lab: &Lab, [length, depth, _]: [f64; 3], askew: f64) -> BTreeMap<u64, Vec3> {
    lab.places(|place| {
        let place = DQuat::from_rotation_z(askew.to_radians()) * place.as_dvec3();
        place.y > (1.0 - UPPER) * depth && (0.3..0.7).contains(&(place.x / length))
    })
}

/// Mean velocity [m/s] of particles, as seen by who turns with the box, clockwise by so much a second.
fn speed_in_box(lab: &Lab, which: &BTreeMap<u64, Vec3>, turning: f64) -> f64 {
    let particles = &lab.state.particles;
    let relative = |index: usize, _| {
        let carried = (DVec3::NEG_Z * turning).cross(particles.position[index].as_dvec3());
        particles.velocity[index].as_dvec3() - carried
    };
    lab.mean_of(which, relative).length()
}

/// The box around sand of this size [m], as high at its ends as the sand; a box that turns does so until `last` [deg]. Particles without a
/// grid lie half a spacing above every surface: their ends are a spacing lower, or what flows out would have to climb.
fn boxed(
    text: SceneText,
    trial: &Trial,
    ([length, depth, width], spacing): ([f64; 3], f64),
    (askew, last): (f64, f64),
) -> SceneText {
    let climb = f64::from(trial.method.can(Skill::Meshless)) * spacing;
    let walls = [length, depth - climb, width];
    match trial.setting.form {
        "box" => turned_box(text, walls, askew, &turning(last)),
        "askew" => turned_box(text, walls, askew, ""),
        _ => fixed_box(text, walls),
    }
}

/// The walls of a box in which gravity turns.
fn fixed_box(text: SceneText, [x, y, z]: [f64; 3]) -> SceneText {
    let high = 4.0 * LENGTH;
    text.ground(ROUGH)
        .slice(z)
        .body(&block([-0.1, -0.1, -high], [0.0, y, high]), MIRROR)
        .body(&block([x, -0.1, -high], [x + 0.1, y, high]), MIRROR)
}

/// What turns a box about the edge at the origin, from level to `last` [deg].
fn turning(last: f64) -> String {
    let (end, turn) = (SETTLE + last / TILT_RATE, -last);
    format!(
        "interpolation = \"linear\"\nkeyframes = [{{ time = 0 }}, {{ time = {SETTLE} }}, {{ time = {end}, rotate = [0, 0, {turn}] }}]"
    )
}

/// A shape turned clockwise about the origin by `angle` [deg].
fn turned(shape: &str, angle: f64) -> String {
    format!(
        "{{ union = {{ of = [{shape}], rotate = [0, 0, {}] }} }}",
        -angle
    )
}

/// The walls of a box at the origin that lies `askew` [deg] and moves as `motion` says.
fn turned_box(text: SceneText, [x, y, z]: [f64; 3], askew: f64, motion: &str) -> SceneText {
    let far = 0.3;
    let walls = [
        (block([-far, -far, -far], [x + far, 0.0, z + far]), ROUGH),
        (block([-far, -far, -far], [0.0, y, z + far]), MIRROR),
        (block([x, -far, -far], [x + far, y, z + far]), MIRROR),
        (block([-far, -far, -far], [x + far, y + far, 0.0]), MIRROR),
        (block([-far, -far, z], [x + far, y + far, z + far]), MIRROR),
    ];
    walls.into_iter().fold(text, |text, (shape, friction)| {
        let shape = turned(&shape, askew);
        text.table(&format!(
            "[[body]]\nshape = {shape}\nfriction = {friction}\n{motion}"
        ))
    })
}

/// A layer on a rough incline: above its angle it gains speed by g (sin θ − μ cos θ), below it rests.
pub fn slide(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    // The ratio is the incline's angle less the material's [deg].
    let incline = setting.angle + setting.ratio;
    let d = LENGTH / setting.across;
    // Above its angle so long that what its ends do cannot be felt in the middle: half as long, it goes 3 % faster, a quarter as
    // long, 10 %. Below it, it has a toe in place of a free end.
    let length = if setting.ratio < 0.0 { 3.0 } else { 6.0 };
    let size = [length * LENGTH, 0.2 * LENGTH, 6.0 * d];
    let text = SceneText::new(trial, d)
        .seed(trial.seed)
        .sand(setting.angle)
        .gravity(inclined(incline))
        .ground(ROUGH)
        .slice(size[2])
        .fill(&block([0.0; 3], size));
    // Below its angle the layer needs a toe: a free end would give way, and what is behind it.
    let text = if setting.ratio < 0.0 {
        let end = block([size[0], -0.1, -0.1], [size[0] + 0.1, size[1], 1.0]);
        text.body(&end, MIRROR)
    } else {
        text
    };
    let mut lab = Lab::new(trial, &text)?;
    let middle = lab.places(|place| (0.4..0.6).contains(&(f64::from(place.x) / size[0])));
    lab.until(0.1)?;
    let mut points = vec![[lab.time(), lab.velocity(&middle).x]];
    let before: BTreeMap<u64, Vec3> = {
        let now = lab.places(|_| true);
        now.into_iter()
            .filter(|(id, _)| middle.contains_key(id))
            .collect()
    };
    while lab.time() < 0.3 {
        lab.frame()?;
        points.push([lab.time(), lab.velocity(&middle).x]);
    }
    let gained = line(&points).map_or(f64::NAN, |(_, slope)| slope);
    let (sin, cos) = incline.to_radians().sin_cos();
    let expected = G * (sin - setting.angle.to_radians().tan() * cos);
    let found = if expected > 0.0 {
        finding(
            ("acceleration", "m/s²"),
            expected,
            gained,
            Check::Part(0.05),
        )
    } else {
        let moved = lab.moved(&before) / d;
        finding(("moved", "spacings"), 0.0, moved, Check::Within(0.1))
    };
    Ok(Outcome {
        particles: lab.most,
        findings: vec![found],
        curves: Vec::new(),
    })
}

/// A slope cut at one degree below the angle from a bed at rest stands for 3 s.
pub fn wedge(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = LENGTH / setting.across;
    let fall = (setting.angle - 1.0).to_radians().tan();
    let base = 0.8 * LENGTH;
    let size = [LENGTH, base * fall, 8.0 * d];
    let text = SceneText::new(trial, d)
        .seed(trial.seed)
        .sand(setting.angle)
        .ground(ROUGH)
        .slice(size[2])
        .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        .wall([-1.0, 0.0, 0.0], [size[0], 0.0, 0.0], MIRROR)
        .fill(&block([0.0; 3], size));
    let mut lab = Lab::new(trial, &text)?;
    lab.until(0.5)?;
    lab.remove(|place| f64::from(place.y) > fall * (base - f64::from(place.x)));
    let before = lab.places(|_| true);
    lab.until(0.5 + 3.0 * setting.patience)?;
    let moved = lab.moved(&before) / d;
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("moved", "spacings"),
            0.0,
            moved,
            Check::Within(0.05),
        )],
        curves: Vec::new(),
    })
}

/// A bed drained through a slot at its foot: what stays has the friction angle.
pub fn drain(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let d = LENGTH / setting.across;
    let slot = 6.0 * d;
    let end = slot + LENGTH;
    let height = 1.15 * LENGTH * setting.angle.to_radians().tan();
    let far = 0.3;
    let text = SceneText::new(trial, d)
        .seed(trial.seed)
        .sand(setting.angle)
        .slice(8.0 * d)
        .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        .wall([-1.0, 0.0, 0.0], [end, 0.0, 0.0], MIRROR)
        .body(&block([slot, -far, -far], [end + far, 0.0, far]), ROUGH)
        .fill(&block([0.0; 3], [end, height, 8.0 * d]))
        .table(&format!(
            "[[sink]]\nshape = {}",
            block([-far, -2.0 * far, -far], [end + far, -6.0 * d, far])
        ));
    let mut lab = Lab::new(trial, &text)?;
    lab.until(4.0 * setting.patience)?;
    lab.remove(|place| place.y < 0.0);
    let profile = Profile::of_slice(&lab, 2.0 * d, 8.0 * d).turned(end);
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("slope", "°"),
            setting.angle,
            profile.slope().unwrap_or(f64::NAN),
            Check::Within(2.0),
        )],
        curves: Vec::new(),
    })
}
