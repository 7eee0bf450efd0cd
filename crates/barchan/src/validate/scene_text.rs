//! Scenes of cases, written piece by piece as the TOML that a user would write.

use super::trial::Trial;
use std::fmt::Write;

/// Frames a second of every case: bodies, emitters and gravity may be changed between frames.
pub const FPS: f64 = 50.0;
/// Friction of a wall that holds sand as sand does.
pub const ROUGH: f64 = 2.0;
/// Friction of a wall that stands for a mirror.
pub const MIRROR: f64 = 0.0;

/// A point or a size [m].
pub type Triple = [f64; 3];

/// A scene that is being written.
pub struct SceneText {
    top: String,
    solver: String,
    tables: String,
    grain: String,
}

impl SceneText {
    /// Nothing yet: the method and the resolution of `trial`, particles `spacing` [m] apart.
    pub fn new(trial: &Trial, spacing: f64) -> Self {
        let method = trial.method;
        let top = format!("schema = 1\nframes = 999999\nfps = {FPS}\n");
        let solver = format!(
            "\n[solver]\n{}\nresolution = {}\n",
            method.keys,
            spacing * method.cell
        );
        Self {
            top,
            solver,
            tables: String::new(),
            grain: trial.grain.clone(),
        }
    }

    /// Sand of `angle` [deg] as the only material.
    pub fn sand(self, angle: f64) -> Self {
        self.cohesive_sand(angle, 0.0)
    }

    /// Sand of `angle` [deg] with `cohesion` [Pa].
    pub fn cohesive_sand(self, angle: f64, cohesion: f64) -> Self {
        let grain = self.grain.clone();
        self.table(&format!(
            "[materials.m]\npreset = \"dry-sand\"\nfriction_angle = {angle}\ncohesion = {cohesion}\n{grain}"
        ))
    }

    /// Water as the only material.
    pub fn water(self) -> Self {
        self.table("[materials.m]\npreset = \"water\"")
    }

    /// The seed of everything random.
    pub fn seed(self, seed: u32) -> Self {
        self.top(&format!("seed = {seed}"))
    }

    /// Gravity along `direction`, of any length.
    pub fn gravity(self, gravity: Triple) -> Self {
        self.top(&format!("gravity = {gravity:?}"))
    }

    /// A body of `shape`.
    pub fn body(self, shape: &str, friction: f64) -> Self {
        self.table(&format!("[[body]]\nshape = {shape}\nfriction = {friction}"))
    }

    /// The half-space behind the plane at `at` that `normal` points out of.
    pub fn wall(self, normal: Triple, at: Triple, friction: f64) -> Self {
        self.body(
            &format!("{{ plane = {{ normal = {normal:?}, at = {at:?} }} }}"),
            friction,
        )
    }

    /// Mirrors at z = 0 and z = `width` [m]: a slice of something that goes on for ever along z.
    pub fn slice(self, width: f64) -> Self {
        self.wall([0.0, 0.0, 1.0], [0.0; 3], MIRROR).wall(
            [0.0, 0.0, -1.0],
            [0.0, 0.0, width],
            MIRROR,
        )
    }

    /// Mirrors at x = 0 and z = 0: a quarter of something round.
    pub fn quarter(self) -> Self {
        self.wall([1.0, 0.0, 0.0], [0.0; 3], MIRROR)
            .wall([0.0, 0.0, 1.0], [0.0; 3], MIRROR)
    }

    /// The ground at y = 0.
    pub fn ground(self, friction: f64) -> Self {
        self.body("\"ground\"", friction)
    }

    /// Material in `shape` at the start.
    pub fn fill(self, shape: &str) -> Self {
        self.table(&format!("[[fill]]\nmaterial = \"m\"\nshape = {shape}"))
    }

    /// More keys of the solver.
    pub fn solver(mut self, keys: &str) -> Self {
        let _ = writeln!(self.solver, "{keys}");
        self
    }

    /// Any other table.
    pub fn table(mut self, text: &str) -> Self {
        let _ = writeln!(self.tables, "\n{text}");
        self
    }

    fn top(mut self, text: &str) -> Self {
        let _ = writeln!(self.top, "{text}");
        self
    }

    /// The whole text.
    pub fn text(&self) -> String {
        format!("{}{}{}", self.top, self.solver, self.tables)
    }
}

/// The box between two corners.
pub fn block(min: Triple, max: Triple) -> String {
    let size: Vec<f64> = min.iter().zip(max).map(|(a, b)| b - a).collect();
    let at: Vec<f64> = min.iter().zip(max).map(|(a, b)| 0.5 * (a + b)).collect();
    format!("{{ box = {{ size = {size:?}, at = {at:?} }} }}")
}

/// An upright cylinder on y = `bottom`.
pub fn cylinder(radius: f64, bottom: f64, top: f64) -> String {
    let (height, middle) = (top - bottom, 0.5 * (top + bottom));
    format!("{{ cylinder = {{ radius = {radius}, height = {height}, at = [0, {middle}, 0] }} }}")
}

/// What is in all of the shapes.
pub fn intersection(of: &[String]) -> String {
    format!("{{ intersection = {{ of = [{}] }} }}", of.join(", "))
}

/// The first shape without the others.
pub fn difference(of: &[String]) -> String {
    format!("{{ difference = {{ of = [{}] }} }}", of.join(", "))
}
