//! A studio: camera, light and looks that all pictures of a run share, and how one picture is taken in it.

use super::bodies::{Bodies, Placed};
use super::bvh::Bvh;
use super::camera::Camera;
use super::columns::{self, Values};
use super::grains::Grains;
use super::look::Look;
use super::paint::{Scale, ends};
use super::picture::Picture;
use super::ray::Ray;
use super::sky::Sky;
use super::survey::{central_points, with_bodies};
use super::world::{Cloud, Skin, World};
use super::{RenderError, film, framing, legend};
use crate::surface::SurfaceMesh;
use barchan_sim::model::Model;
use barchan_sim::scene::{CameraPath, Render, View};
use barchan_sim::state::Particles;
use glam::{Quat, Vec3};

/// How far the sun stands to the left of the camera's back, if nobody says [rad].
const SUN_ASIDE: f32 = 1.05;
/// The scene's size over the distance from the camera to what it looks at.
const EXTENT: f32 = 0.6;
/// How high an automatic camera climbs to get out of bodies [rad].
const CLIMB: [f32; 4] = [0.17, 0.45, 0.85, 1.25];

/// Places in the material that an automatic camera tries to see, about.
const SIGHTED: usize = 256;

/// Camera, light and looks.
pub struct Studio<'a> {
    /// The scene's bodies and axes.
    pub model: &'a Model,
    /// How pictures are made.
    pub settings: Render,
    /// Looks of the materials.
    pub looks: Vec<Look>,
    /// The camera.
    pub camera: CameraPath,
    /// The colour scale, where colours come from a column.
    pub scale: Option<Scale>,
}

/// What one picture shows.
pub struct Subject<'a> {
    /// The particles.
    pub particles: &'a Particles,
    /// Their surface, to be drawn in their place.
    pub mesh: Option<&'a SurfaceMesh>,
    /// The bodies.
    pub bodies: Vec<Placed>,
    /// The time [s].
    pub time: f64,
}

/// A picture and what was not in it.
pub struct Shot {
    /// The picture.
    pub picture: Picture,
    /// Grains that could not be drawn: not finite, or absurdly far off.
    pub left_out: usize,
}

impl Studio<'_> {
    /// Takes a picture.
    ///
    /// # Errors
    /// If the camera stands inside a body, or there is no column to colour by.
    pub fn shoot(&self, subject: Subject<'_>) -> Result<Shot, RenderError> {
        let (up, size) = (self.model.up, self.settings.size);
        let camera = Camera::on_path(&self.camera, subject.time, up, size);
        self.check_camera(&camera, &subject.bodies)?;
        let values = match &self.settings.color {
            Some(name) => {
                Some(columns::values(subject.particles, up, name).map_err(RenderError::Column)?)
            }
            None => None,
        };
        let world = self.world(subject, values.as_ref());
        let film = film::expose(&world, &camera, size, self.settings.samples);
        let left_out = world
            .cloud
            .as_ref()
            .map_or(0, |cloud| cloud.grains.left_out());
        drop(world);
        let mut picture = film.develop(self.settings.exposure);
        if let (Some(name), Some(scale), Some(values)) =
            (&self.settings.color, &self.scale, &values)
        {
            let unit = if values.unit == "1" {
                String::new()
            } else {
                format!(" ({})", values.unit)
            };
            legend::draw(&mut picture, scale, &format!("{name}{unit}"));
        }
        Ok(Shot { picture, left_out })
    }

    fn world<'b>(&'b self, subject: Subject<'b>, values: Option<&'b Values>) -> World<'b> {
        let particles = subject.particles;
        // Beneath a surface, spheres are where particles carry its texture; they must reach it.
        let grow = if subject.mesh.is_some() {
            2.0
        } else {
            self.settings.grain_scale
        };
        let grains = Grains::new(&particles.position, |i| particles.radius[i] * grow);
        let paint = values
            .zip(self.scale)
            .map(|(values, scale)| (values.numbers.as_slice(), scale));
        let skin = subject.mesh.map(|mesh| Skin {
            mesh,
            bvh: Bvh::new(&mesh.positions, &mesh.triangles),
        });
        World {
            sky: self.sky(),
            looks: &self.looks,
            cloud: Some(Cloud {
                grains,
                particles,
                paint,
            }),
            skin,
            bodies: subject.bodies,
            extent: self.extent(),
        }
    }

    /// Size of the scene as the camera first sees it [m].
    fn extent(&self) -> f32 {
        let view = self.camera.keys[0].1;
        EXTENT * view.at.distance(view.look_at)
    }

    /// Sun and sky; the sun stays where it is when the camera moves.
    fn sky(&self) -> Sky {
        let (sun, up) = (self.settings.sun, self.model.up);
        let view = self.camera.keys[0].1;
        let back = view.at - view.look_at;
        let back = (back - up * back.dot(up)).normalize_or(framing::front(up));
        let level = match sun.azimuth {
            Some(azimuth) => Quat::from_axis_angle(up, azimuth) * framing::front(up),
            None => Quat::from_axis_angle(up, -SUN_ASIDE) * back,
        };
        let direction = level * sun.elevation.cos() + up * sun.elevation.sin();
        Sky::new(up, direction, sun.size, (sun.strength, self.settings.sky))
    }

    fn check_camera(&self, camera: &Camera, bodies: &[Placed]) -> Result<(), RenderError> {
        match body_around(camera.at, bodies) {
            None => Ok(()),
            Some(body) => Err(RenderError::CameraInside {
                at: camera.at,
                body: self.model.bodies[body].name.clone(),
            }),
        }
    }
}

/// The body that `point` is inside of.
fn body_around(point: Vec3, bodies: &[Placed]) -> Option<usize> {
    let around = |body: &&Placed| body.bounds().contains(point) && body.depth(point) > 0.0;
    bodies.iter().find(around).map(|body| body.body)
}

/// True where a body stands between `eye` and `point`.
fn is_hidden(eye: Vec3, point: Vec3, bodies: &[Placed]) -> bool {
    let way = point - eye;
    let ray = Ray {
        origin: eye,
        direction: way.normalize_or_zero(),
    };
    let limit = 0.999 * way.length();
    bodies.iter().any(|body| body.hit(&ray, limit).is_some())
}

/// A camera that frames the run, high enough to stand outside of all bodies and to see over them.
pub fn automatic(material: Vec<Vec3>, bodies: &[Placed], up: Vec3, size: [u32; 2]) -> CameraPath {
    let stride = material.len() / SIGHTED + 1;
    let sighted: Vec<Vec3> = material.iter().step_by(stride).copied().collect();
    let points = with_bodies(material, bodies);
    let views = CLIMB.map(|rise| framing::frame(&points, up, size, rise));
    let outside = || {
        let free = |view: &&View| body_around(view.at, bodies).is_none();
        views.iter().filter(free)
    };
    let hidden = |view: &&View| {
        let behind = |point: &&Vec3| is_hidden(view.at, **point, bodies);
        sighted.iter().filter(behind).count()
    };
    let sees = outside().find(|view| 2 * hidden(view) <= sighted.len());
    let best = sees.or_else(|| outside().min_by_key(hidden));
    CameraPath {
        keys: vec![(0.0, *best.unwrap_or(&views[0]))],
        aperture: 0.0,
        focus: None,
    }
}

/// A picture of particles in memory, or of the surface around them, among the bodies of `model`.
///
/// # Errors
/// If a body cannot be placed, the camera stands inside one, or there is no column to colour by.
pub fn still(
    model: &Model,
    particles: &Particles,
    mesh: Option<&SurfaceMesh>,
    settings: &Render,
) -> Result<Shot, RenderError> {
    let bodies = Bodies::new(model).placed(model, 0.0, &[])?;
    let camera = settings.camera.clone().unwrap_or_else(|| {
        let mut material = central_points(particles);
        material.extend(mesh.into_iter().flat_map(|mesh| &mesh.positions));
        automatic(material, &bodies, model.up, settings.size)
    });
    let scale = match (&settings.color, settings.range) {
        (_, Some([from, to])) => Some(Scale {
            from: from as f32,
            to: to as f32,
        }),
        (Some(name), None) => {
            let values = columns::values(particles, model.up, name).map_err(RenderError::Column)?;
            Some(ends(values.numbers.into_iter()))
        }
        (None, None) => None,
    };
    let looks = model.materials.iter().map(Look::plain).collect();
    let studio = Studio {
        model,
        settings: settings.clone(),
        looks,
        camera,
        scale,
    };
    studio.shoot(Subject {
        particles,
        mesh,
        bodies,
        time: 0.0,
    })
}
