//! How light comes along a ray: sun with soft shadows, sky with what hides it, one bounce, water.

use super::ray::{Ray, Sampler, cosine_direction};
use super::world::{Point, THROUGH_WATER, World};
use glam::Vec3;

/// Surfaces of water that a ray may pass before it is given up.
const MOST_SURFACES: usize = 8;
/// Refractive index of water.
const WATER: f32 = 1.333;
/// No ray is brighter: rare glints would leave single white pixels.
const BRIGHTEST: f32 = 6.0;
/// Part of the light on a surface that its neighbours pass on to each other.
const BOUNCE: f32 = 0.5;

/// What comes along one ray through a pixel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Light that is shown as it is.
    pub light: Vec3,
    /// Colour of a smooth surface; zero for anything else.
    pub albedo: Vec3,
    /// Light on the smooth surface; none where this ray did not look for it.
    pub irradiance: Option<Vec3>,
    /// Its normal.
    pub normal: Vec3,
    /// Its distance [m]; infinite for anything else.
    pub depth: f32,
}

/// Which surfaces a ray finds the light on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lit {
    /// Every one.
    All,
    /// Not smooth ones, where other rays through the pixel and its neighbours find the same.
    Rough,
}

/// What comes along `ray`.
pub fn trace(world: &World<'_>, ray: Ray, sampler: &mut Sampler, lit: Lit) -> Sample {
    let mut ray = ray;
    let mut passed = Vec3::ONE;
    let mut inside = false;
    for surface in 0..MOST_SURFACES {
        let Some(met) = world.meet(&ray) else {
            return plain(passed * world.sky.light(ray.direction));
        };
        if inside {
            passed *= world.absorbed(met.t());
        }
        let point = world.point(&ray, &met);
        if point.clear {
            (ray, inside) = cross_water(&ray, &point, inside, sampler);
            continue;
        }
        let hazy = world.sky.haze(ray.direction) * point.haze;
        if point.haze > 0.99 {
            return plain(passed * hazy);
        }
        let clear = 1.0 - point.haze;
        let smooth = point.smooth && surface == 0;
        let light = (!smooth || lit == Lit::All).then(|| matte(world, &ray, &point, sampler));
        let (irradiance, glint) = light.unwrap_or_default();
        if smooth {
            return Sample {
                light: hazy,
                albedo: point.albedo * clear,
                irradiance: light.map(|_| irradiance + glint),
                normal: point.normal,
                depth: met.t(),
            };
        }
        return plain(passed * ((point.albedo * irradiance + glint) * clear + hazy));
    }
    plain(passed * world.sky.light(ray.direction))
}

fn plain(light: Vec3) -> Sample {
    Sample {
        light: light.min(Vec3::splat(BRIGHTEST)),
        depth: f32::INFINITY,
        ..Sample::default()
    }
}

/// Light on a matte point, and the highlight that the camera sees in it.
fn matte(world: &World<'_>, ray: &Ray, point: &Point, sampler: &mut Sampler) -> (Vec3, Vec3) {
    let (mut light, mut glint) = (Vec3::ZERO, Vec3::ZERO);
    let to_sun = world.sky.towards_sun(sampler.pair());
    let facing = point.normal.dot(to_sun);
    if facing > 0.0 && point.face.dot(to_sun) > 0.0 {
        let through = world.shadow(&Ray {
            origin: point.position,
            direction: to_sun,
        });
        let sun = world.sky.sun_light() * through;
        light += sun * facing;
        let halfway = (to_sun - ray.direction).normalize_or(point.normal);
        let highlight = point.normal.dot(halfway).max(0.0).powi(48);
        glint += sun * (point.gloss * highlight * facing.min(0.5) * 2.0);
    }
    let mut direction = cosine_direction(point.normal, sampler.pair());
    let below = direction.dot(point.face);
    if below < 0.0 {
        direction -= point.face * (2.0 * below);
    }
    let to_sky = Ray {
        origin: point.position,
        direction,
    };
    light += match world.meet(&to_sky) {
        None => world.sky.light(direction),
        Some(met) => match world.water_before(&to_sky, &met) {
            // The sky is seen through water, else everything below it would lie in the dark.
            Some(water) => world.sky.light(direction) * world.absorbed(water) * THROUGH_WATER,
            None => world.rough_color(&met) * world.ambient(),
        },
    };
    (light, glint.min(Vec3::splat(BRIGHTEST)))
}

impl World<'_> {
    /// Light that surfaces get on the whole, for what they pass on.
    fn ambient(&self) -> Vec3 {
        let sun = self.sky.sun_light() * (0.5 * self.sky.sun.dot(self.sky.up).max(0.0));
        (sun + self.sky.light(self.sky.up) * 0.6) * BOUNCE
    }

    /// What is left of light after `distance` [m] of water; its colour is what half the scene leaves.
    fn absorbed(&self, distance: f32) -> Vec3 {
        let clear = self.looks.iter().find(|look| look.clear);
        let color = clear
            .map_or(Vec3::ONE, |look| look.color)
            .max(Vec3::splat(0.02));
        let part = distance / (0.5 * self.extent);
        Vec3::new(color.x.powf(part), color.y.powf(part), color.z.powf(part))
    }
}

/// Goes on through a surface of water or back from it, as likely as light does (Schlick 1994).
fn cross_water(ray: &Ray, point: &Point, inside: bool, sampler: &mut Sampler) -> (Ray, bool) {
    let normal = point.normal;
    let cos = -ray.direction.dot(normal);
    let ratio = if inside { WATER } else { 1.0 / WATER };
    let sin2 = ratio * ratio * (1.0 - cos * cos);
    let straight = ((WATER - 1.0) / (WATER + 1.0)).powi(2);
    let cos_out = (1.0 - sin2).max(0.0).sqrt();
    let grazing = if inside { cos_out } else { cos.clamp(0.0, 1.0) };
    let reflected = straight + (1.0 - straight) * (1.0 - grazing).powi(5);
    // The point lies on the ray's side of the surface; the far side is as much behind it.
    let back =
        2.0 * (point.position - ray.at((point.position - ray.origin).dot(ray.direction))).length();
    if sin2 >= 1.0 || sampler.pair().x < reflected {
        let mut direction = ray.direction + normal * (2.0 * cos);
        let below = direction.dot(point.face);
        if below < 0.0 {
            direction -= point.face * (2.0 * below);
        }
        let direction = direction.normalize_or(point.face);
        return (
            Ray {
                origin: point.position,
                direction,
            },
            inside,
        );
    }
    let direction =
        (ray.direction * ratio + normal * (ratio * cos - cos_out)).normalize_or(ray.direction);
    let origin = point.position - point.face * (back + 4e-5 * point.position.distance(ray.origin));
    (Ray { origin, direction }, !inside)
}
