//! Water: at rest, as a dam that breaks, sloshing, and as a vortex.

use super::super::lab::{G, Lab};
use super::super::scene_text::{MIRROR, SceneText, block};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;
use barchan_sim::scene::Transfer;
use glam::Vec3;

/// Density of water [kg/m³].
const DENSITY: f64 = 1000.0;
/// Reference length [m].
const LENGTH: f64 = 0.2;

/// A tank without friction over x in 0..`length` and z in 0..`width`.
fn tank(text: SceneText, length: f64, width: f64) -> SceneText {
    text.ground(MIRROR)
        .slice(width)
        .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        .wall([-1.0, 0.0, 0.0], [length, 0.0, 0.0], MIRROR)
}

/// A still pool laid out as a lattice: it does not move, and has the pressure of its depth.
pub fn rest(trial: &Trial) -> Result<Outcome, Trouble> {
    let d = LENGTH / trial.setting.across;
    let depth = 1.5 * LENGTH;
    let pool = block([0.0; 3], [LENGTH, depth, LENGTH]);
    let text = tank(SceneText::new(trial, d).water(), LENGTH, LENGTH).table(&format!(
        "[[fill]]\nmaterial = \"m\"\nseeding = \"lattice\"\nshape = {pool}"
    ));
    let mut lab = Lab::new(trial, &text)?;
    lab.until(1.0)?;
    let fastest = lab.line.as_ref().map_or(f64::NAN, |line| line.max_speed);
    let particles = &lab.state.particles;
    let column = particles.extra.iter().find(|c| c.spec.name == "pressure");
    let pressure = column.ok_or("it has no pressure")?.entries::<f32>();
    // A cell has one pressure: that of its middle.
    let cell = f64::from(lab.scene.model.resolution);
    let off = |(place, pressure): (&Vec3, &f32)| {
        let middle = ((f64::from(place.y) / cell).floor() + 0.5) * cell;
        (f64::from(*pressure) - DENSITY * G * (depth - middle)).abs() / (DENSITY * G * depth)
    };
    let worst = particles.position.iter().zip(pressure).map(off);
    let worst = worst.fold(0.0, f64::max);
    Ok(Outcome {
        particles: lab.most,
        findings: vec![
            finding(("fastest", "m/s"), 0.0, fastest, Check::Within(1e-4)),
            finding(("pressure off", ""), 0.0, worst, Check::Within(0.01)),
        ],
        curves: Vec::new(),
    })
}

/// Front of a dam twice as high as wide, over its width, at times t √(2 g / a) (Martin & Moyce 1952).
const FRONT: [[f64; 2]; 7] = [
    [0.84, 1.22],
    [1.43, 1.67],
    [1.83, 2.11],
    [2.20, 2.56],
    [2.51, 3.00],
    [2.83, 3.44],
    [3.11, 3.89],
];
/// Part of the water that is behind the front; the rest may be spray.
const BEHIND: f64 = 0.995;

/// A dam breaks: the worst of the seven places of its front.
pub fn dam(trial: &Trial) -> Result<Outcome, Trouble> {
    let a = 0.8 * LENGTH;
    let d = LENGTH / trial.setting.across;
    let width = 8.0 * d;
    let text = tank(SceneText::new(trial, d).seed(1).water(), 20.0 * a, width)
        .fill(&block([0.0; 3], [a, 2.0 * a, width]));
    let mut lab = Lab::new(trial, &text)?;
    let scale = (2.0 * G / a).sqrt();
    let mut points = vec![[0.0, 1.0]];
    while lab.time() * scale < FRONT[6][0] {
        lab.frame()?;
        let mut places: Vec<f32> = lab.state.particles.position.iter().map(|p| p.x).collect();
        places.sort_by(f32::total_cmp);
        let front = places[((places.len() - 1) as f64 * BEHIND) as usize];
        points.push([lab.time() * scale, f64::from(front) / a]);
    }
    let off = |[time, front]: [f64; 2]| between(&points, time) / front - 1.0;
    let worst = FRONT
        .into_iter()
        .max_by(|x, y| off(*x).abs().total_cmp(&off(*y).abs()))
        .unwrap_or(FRONT[0]);
    let curve = |name: &str, points: Vec<[f64; 2]>, is_reference| Curve {
        plot: "front [widths] of a broken dam over time [√(a / 2 g)]",
        name: name.into(),
        points,
        is_reference,
    };
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("front where it is worst", "widths"),
            worst[1],
            between(&points, worst[0]),
            Check::Part(0.1),
        )],
        curves: vec![
            curve(trial.method.name, points.clone(), false),
            curve("Martin & Moyce", FRONT.to_vec(), true),
        ],
    })
}

/// The curve through `points` at `x`.
fn between(points: &[[f64; 2]], x: f64) -> f64 {
    let pair = points.windows(2).find(|pair| pair[1][0] >= x);
    pair.map_or(f64::NAN, |pair| {
        let part = (x - pair[0][0]) / (pair[1][0] - pair[0][0]);
        pair[0][1] + part * (pair[1][1] - pair[0][1])
    })
}

/// Columns that a sloshing tank is cut into.
const COLUMNS: usize = 10;

/// Height at which the centre of the water would be if each column over `length` held its particles at full density.
fn centre_of_full_columns(lab: &Lab, (length, width): (f64, f64)) -> f64 {
    let mut counts = [0.0; COLUMNS];
    for place in &lab.state.particles.position {
        let column = (f64::from(place.x) / length * COLUMNS as f64) as usize;
        counts[column.min(COLUMNS - 1)] += 1.0;
    }
    let area = length * width / COLUMNS as f64;
    let moments = counts.map(|count: f64| count * (0.5 * count * lab.volume() / area));
    moments.iter().sum::<f64>() / counts.iter().sum::<f64>()
}

/// A broken dam sloshes for 10 s: its centre is as high as its volume says, column by column, however its surface lies.
pub fn volume(trial: &Trial) -> Result<Outcome, Trouble> {
    let d = LENGTH / trial.setting.across;
    let (length, width) = (2.0 * LENGTH, 8.0 * d);
    let (wide, high) = (0.6 * LENGTH, 1.2 * LENGTH);
    let text = tank(SceneText::new(trial, d).seed(1).water(), length, width)
        .fill(&block([0.0; 3], [wide, high, width]));
    let mut lab = Lab::new(trial, &text)?;
    let end = 10.0 * trial.setting.patience;
    lab.until(end - 2.0)?;
    let (mut found, mut full, mut count) = (0.0, 0.0, 0.0);
    while lab.time() < end {
        lab.frame()?;
        let heights = lab.state.particles.position.iter().map(|p| f64::from(p.y));
        found += heights.sum::<f64>() / lab.state.particles.len() as f64;
        full += centre_of_full_columns(&lab, (length, width));
        count += 1.0;
    }
    Ok(Outcome {
        particles: lab.most,
        findings: vec![finding(
            ("height of the centre", "m"),
            full / count,
            found / count,
            Check::Part(0.01),
        )],
        curves: Vec::new(),
    })
}

/// Turns of the vortex's middle, and how fast it turns [rad/s].
const TURNS: f64 = 6.0;
const SPIN: f64 = 10.0;

/// A vortex without gravity, by FLIP and by PIC: how much more energy FLIP keeps.
pub fn vortex(trial: &Trial) -> Result<Outcome, Trouble> {
    let d = LENGTH / trial.setting.across;
    let width = 8.0 * d;
    let mut most = 0;
    let mut kept = |ratio: f32| -> Result<f64, Trouble> {
        let text = tank(SceneText::new(trial, d).seed(1).water(), LENGTH, width)
            .gravity([0.0; 3])
            .fill(&block([0.0; 3], [LENGTH, LENGTH, width]))
            .solver(&format!("transfer = \"flip\"\nflip_ratio = {ratio}"));
        let mut lab = Lab::new(trial, &text)?;
        debug_assert_eq!(lab.scene.flip.transfer, Transfer::Flip(ratio));
        let half = 0.5 * LENGTH as f32;
        let particles = &mut lab.state.particles;
        for (velocity, place) in particles.velocity.iter_mut().zip(&particles.position) {
            let r = *place - Vec3::new(half, half, 0.0);
            let fade = (1.0 - (r.x * r.x + r.y * r.y) / (0.75 * half * half)).max(0.0);
            *velocity = Vec3::new(-r.y, r.x, 0.0) * (SPIN as f32) * fade;
        }
        lab.until(TURNS * std::f64::consts::TAU / SPIN)?;
        most = most.max(lab.most);
        Ok(lab.energy())
    };
    let gain = kept(1.0)? / kept(0.0)?;
    Ok(Outcome {
        particles: most,
        findings: vec![finding(
            ("energy of FLIP over PIC", ""),
            5.0,
            gain,
            Check::AtLeast,
        )],
        curves: Vec::new(),
    })
}
