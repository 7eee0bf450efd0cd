//! Sand poured slowly from just above its own tip until it stands: the slope is the friction angle. And the pile left alone.

use super::super::lab::{G, Lab};
use super::super::profile::Profile;
use super::super::scene_text::{MIRROR, ROUGH, SceneText};
use super::super::trial::{Check, Curve, Outcome, Trial, Trouble};
use super::finding;
use barchan_base::Pose;
use barchan_base::shape::Shape;
use barchan_out::cache::{Frame, FrameMeta};
use barchan_out::stats::fit_pile;
use barchan_sim::scene::Method;
use barchan_sim::state::Particles;
use glam::{Quat, Vec3};

/// Radius of the finished pile [m].
const RADIUS: f64 = 0.24;
/// Thickness of a slab, in spacings.
const THICK: f64 = 8.0;
/// Flux through a line across the flank half-way down, over √g h^1.5, where h is the method's own resolution: a layer of h at half the speed
/// of a fall through it. At twice the rate cones of 25° without a grid stand two degrees flatter, at half of it within one (docs/sph-trials.md).
const FLUX: f64 = std::f64::consts::FRAC_1_SQRT_2;
/// The same of single grains: with eight times as much, a slab of balls 24 to the foot stood nine degrees flatter.
const FLUX_OF_GRAINS: f64 = 0.25;
/// Half the width of the stream, in spacings.
const NOZZLE: f64 = 3.0;
/// Single grains in a stream, over those that a lattice has in its place: more of them would not get out of each other's way.
const STREAM: f64 = 1.0 / 3.0;
/// From the tip to where grains appear, in spacings.
const DROP: f64 = 3.0;
/// Time to come to rest once all is poured [s].
const REST: f64 = 1.0;

/// A pour that is going on.
struct Pour {
    lab: Lab,
    spacing: f64,
    is_cone: bool,
    /// When the last grain is out [s].
    end: f64,
}

impl Pour {
    /// Sand of the trial's angle.
    fn new(trial: &Trial, seed: u32) -> Result<Self, Trouble> {
        let setting = &trial.setting;
        let is_cone = setting.form == "cone";
        let spacing = RADIUS / setting.across;
        let slope = setting.angle.to_radians().tan();
        let resolution = trial.method.cell * spacing;
        let flux = FLUX * setting.rate * G.sqrt() * resolution.powf(1.5);
        // Volume, and how much of it a second: of a quarter of a cone, or of a slab against a wall.
        let (volume, rate) = if is_cone {
            let quarter = 0.25 * std::f64::consts::PI * RADIUS;
            (quarter * RADIUS * RADIUS * slope / 3.0, quarter * flux)
        } else {
            let thickness = THICK * spacing;
            (0.5 * RADIUS * RADIUS * slope * thickness, thickness * flux)
        };
        let end = volume / rate;
        let text = SceneText::new(trial, spacing)
            .seed(seed)
            .sand(setting.angle)
            .ground(ROUGH);
        let text = if is_cone {
            text.quarter()
        } else {
            text.slice(THICK * spacing)
                .wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
        };
        let speed = (G * spacing).sqrt();
        let text = text.table(&format!(
            "[[emit]]\nmaterial = \"m\"\nshape = {{ sphere = {{ radius = 1 }} }}\nrate = {rate}\nuntil = {end}\nvelocity = [0, {}, 0]",
            -speed
        ));
        let mut pour = Self {
            lab: Lab::new(trial, &text)?,
            spacing,
            is_cone,
            end,
        };
        if let Method::Dem = pour.lab.scene.method {
            pour.thin(setting.rate);
        }
        Ok(pour)
    }

    /// Thins the stream of single grains. Of a denser one not all could leave the mouth, and those that wait there would be counted
    /// as if they lay; a faster one wears the pile down.
    fn thin(&mut self, rate: f64) {
        let area = NOZZLE * self.depth() * self.spacing * self.spacing;
        let most = STREAM * rate * area * (G * self.spacing).sqrt() / self.spacing.powi(3);
        let emitter = &mut self.lab.scene.model.emitters[0];
        let part = (most / emitter.rate).min(FLUX_OF_GRAINS / FLUX);
        self.end /= part;
        emitter.rate *= part;
        emitter.active.until = self.end;
    }

    /// Depth of the stream, in spacings.
    fn depth(&self) -> f64 {
        if self.is_cone { NOZZLE } else { THICK }
    }

    /// Height of the tip [m]: of what is near the axis and does not fall.
    fn tip(&self) -> f64 {
        let particles = &self.lab.state.particles;
        let near = (NOZZLE * self.spacing) as f32;
        let slow = (0.5 * (G * self.spacing).sqrt()) as f32;
        let is_near = |place: &Vec3| place.x < near && (!self.is_cone || place.z < near);
        let all = particles.position.iter().zip(&particles.velocity);
        all.filter(|(place, velocity)| is_near(place) && velocity.length() < slow)
            .map(|(place, _)| f64::from(place.y))
            .fold(0.0, f64::max)
    }

    /// Keeps the place where grains appear above the tip.
    fn follow(&mut self) {
        let (d, tip) = (self.spacing, self.tip());
        let size = Vec3::new((NOZZLE * d) as f32, d as f32, (self.depth() * d) as f32);
        let bottom = Vec3::Y * (tip + DROP * d) as f32;
        let pose = Pose::new(bottom + 0.5 * size, Quat::IDENTITY);
        self.lab.scene.model.emitters[0].shape =
            Shape::Cuboid { half: 0.5 * size }.placed(pose, 1.0);
    }

    /// Pours all of it and lets it come to rest.
    fn finish(&mut self) -> Result<(), Trouble> {
        while self.lab.time() < self.end + REST {
            self.follow();
            self.lab.frame()?;
        }
        Ok(())
    }

    fn profile(&self) -> Profile {
        let width = 2.0 * self.spacing;
        if self.is_cone {
            Profile::of_quarter(&self.lab, width)
        } else {
            Profile::of_slice(&self.lab, width, THICK * self.spacing)
        }
    }

    /// Slope of the pile [deg]: a cone's by the fit that `barchan stats` makes, of the quarter and its mirror images.
    fn slope(&self) -> f64 {
        let found = if self.is_cone {
            fit_pile(&self.whole()).map(|pile| pile.repose_angle_deg)
        } else {
            self.profile().slope()
        };
        found.unwrap_or(f64::NAN)
    }

    /// The quarter and its mirror images.
    fn whole(&self) -> Frame {
        let quarter = &self.lab.state.particles;
        let mut particles = Particles::default();
        let mirrored = |side: Vec3| quarter.position.iter().map(move |place| *place * side);
        let sides = [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)];
        let places: Vec<Vec3> = sides
            .into_iter()
            .flat_map(|(x, z)| mirrored(Vec3::new(x, 1.0, z)))
            .collect();
        particles.resize(places.len());
        particles.position = places;
        particles.radius = quarter.radius.repeat(4);
        Frame {
            meta: FrameMeta::of(&self.lab.scene, self.lab.state.clock.frame),
            particles,
        }
    }
}

/// The slope of piles: the mean of the seeds.
pub fn pile(trial: &Trial) -> Result<Outcome, Trouble> {
    let setting = &trial.setting;
    let mut outcome = Outcome::default();
    let mut sum = 0.0;
    for seed in trial.seed..trial.seed + setting.seeds {
        let mut pour = Pour::new(trial, seed)?;
        pour.finish()?;
        sum += pour.slope();
        outcome.particles = outcome.particles.max(pour.lab.most);
        if seed == trial.seed {
            outcome.curves = profile_curves(trial, &pour);
        }
    }
    let found = sum / f64::from(setting.seeds);
    outcome.findings.push(finding(
        ("slope", "°"),
        setting.angle,
        found,
        Check::Within(2.0),
    ));
    Ok(outcome)
}

fn profile_curves(trial: &Trial, pour: &Pour) -> Vec<Curve> {
    let setting = &trial.setting;
    let points = pour.profile().points();
    let fall = setting.angle.to_radians().tan();
    let name = format!("{} {}° {}", setting.form, setting.angle, trial.method.name);
    let straight = vec![[0.0, RADIUS * fall], [RADIUS, 0.0]];
    let curve = |name: String, points, is_reference| Curve {
        plot: "height [m] of poured piles over the distance [m] from their axis",
        name,
        points,
        is_reference,
    };
    vec![
        curve(name, points, false),
        curve(format!("{}°", setting.angle), straight, true),
    ]
}

/// A finished pile is watched for 10 s.
pub fn rest(trial: &Trial) -> Result<Outcome, Trouble> {
    let mut pour = Pour::new(trial, trial.seed)?;
    pour.finish()?;
    let watch = 10.0 * trial.setting.patience;
    let begin = pour.lab.time();
    let before = pour.profile();
    pour.lab.until(begin + 0.9 * watch)?;
    // Speed over that of a fall through one spacing, the largest of the last tenth of the time.
    let mut speed = 0.0f64;
    while pour.lab.time() < begin + watch {
        pour.lab.frame()?;
        speed = speed.max((2.0 * pour.lab.energy() / pour.lab.mass()).sqrt());
    }
    let moved = pour.profile().difference(&before) / pour.spacing;
    Ok(Outcome {
        particles: pour.lab.most,
        findings: vec![
            finding(
                ("profile moved", "spacings"),
                0.0,
                moved,
                Check::Within(0.5),
            ),
            finding(
                ("speed", "√(g d)"),
                0.0,
                speed / (G * pour.spacing).sqrt(),
                Check::Within(1e-3),
            ),
        ],
        curves: Vec::new(),
    })
}
