//! From rays to a picture: samples of each pixel, even light on smooth surfaces, tones as film gives them.

use super::camera::Camera;
use super::paint::srgb;
use super::picture::Picture;
use super::ray::{Sampler, mix, unit};
use super::shade::{Lit, Sample, trace};
use super::world::World;
use glam::{Vec2, Vec3};
use rayon::prelude::*;

/// Rounds of smoothing, each twice as wide as the one before.
const ROUNDS: u32 = 4;
/// Rays a pixel from which on not each of them needs to find the light on smooth surfaces.
const ENOUGH: u32 = 16;

/// Where the mean normal of a pixel's rays is shorter than this, or the farthest is this much farther than the nearest, the pixel shows two
/// surfaces at once: their edge.
const SHORTEST_NORMAL: f32 = 0.95;
const FARTHEST: f32 = 1.1;

/// What the rays through one pixel brought.
#[derive(Clone, Copy, Default)]
struct Pixel {
    /// Light that is shown as it is.
    light: Vec3,
    /// Mean colour of smooth surfaces times the part of the pixel they cover.
    albedo: Vec3,
    /// Mean light on them.
    irradiance: Vec3,
    /// How uncertain the brightness of that light is: the variance of the mean.
    variance: f32,
    normal: Vec3,
    depth: f32,
    /// True where some ray met a smooth surface.
    smooth: bool,
}

/// Takes a picture of `size` pixels with `samples` rays each.
pub fn expose(world: &World<'_>, camera: &Camera, size: [u32; 2], samples: u32) -> Film {
    let [width, height] = size.map(|side| side as usize);
    let mut pixels = vec![Pixel::default(); width * height];
    pixels
        .par_chunks_mut(width)
        .enumerate()
        .for_each(|(y, row)| {
            for (x, pixel) in row.iter_mut().enumerate() {
                *pixel = sample_pixel(world, camera, [x as u32, y as u32], samples);
            }
        });
    Film {
        width,
        height,
        pixels,
    }
}

/// An exposed picture.
pub struct Film {
    width: usize,
    height: usize,
    pixels: Vec<Pixel>,
}

/// A number between -1 and 1, likelier near zero: a tent over the pixel and its neighbours.
fn tent(u: f32) -> f32 {
    let u = 2.0 * u - 1.0;
    u.signum() * (1.0 - (1.0 - u.abs()).max(0.0).sqrt())
}

fn sample_pixel(world: &World<'_>, camera: &Camera, [x, y]: [u32; 2], samples: u32) -> Pixel {
    let mut pixel = Pixel::default();
    let (mut smooth, mut lit, mut bright, mut squares) = (0u32, 0u32, 0f32, 0f32);
    // What the smooth surfaces show, ray by ray; nearest and farthest of them.
    let (mut shown, mut nearest, mut farthest) = (Vec3::ZERO, f32::INFINITY, 0f32);
    for sample in 0..samples {
        let mut sampler = Sampler::new(x, y, sample);
        let u = sampler.pair();
        let at = Vec2::new(
            x as f32 + 0.5 + 0.8 * tent(u.x),
            y as f32 + 0.5 + 0.8 * tent(u.y),
        );
        let ray = camera.ray(at, &mut sampler);
        // Where light is even, every second ray will do.
        let enough = samples >= ENOUGH && sample % 2 == 1 && lit > 0;
        let look = if enough { Lit::Rough } else { Lit::All };
        let Sample {
            light,
            albedo,
            irradiance,
            normal,
            depth,
        } = trace(world, ray, &mut sampler, look);
        pixel.light += light;
        if depth.is_finite() {
            smooth += 1;
            pixel.albedo += albedo;
            pixel.normal += normal;
            pixel.depth += depth;
            (nearest, farthest) = (nearest.min(depth), farthest.max(depth));
        }
        if let Some(irradiance) = irradiance {
            lit += 1;
            pixel.irradiance += irradiance;
            shown += albedo * irradiance;
            bright += brightness(irradiance);
            squares += brightness(irradiance).powi(2);
        }
    }
    let (all, met, lit) = (samples as f32, smooth.max(1) as f32, lit.max(1) as f32);
    pixel.light /= all;
    pixel.albedo /= all;
    pixel.irradiance /= lit;
    let is_edge = pixel.normal.length() < SHORTEST_NORMAL * met || farthest > FARTHEST * nearest;
    if smooth > 1 && is_edge {
        // Colours and lights of two surfaces must not be mixed apart from each other.
        pixel.light += shown * (met / (lit * all));
        pixel.albedo = Vec3::ZERO;
        return pixel;
    }
    pixel.normal = pixel.normal.normalize_or_zero();
    pixel.depth /= met;
    let mean = bright / lit;
    pixel.variance = (squares / lit - mean * mean).max(0.0) / lit;
    pixel.smooth = smooth > 0;
    pixel
}

fn brightness(light: Vec3) -> f32 {
    light.dot(Vec3::new(0.25, 0.6, 0.15))
}

impl Film {
    /// The finished picture, `exposure` times as bright.
    pub fn develop(mut self, exposure: f32) -> Picture {
        for round in 0..ROUNDS {
            self.smooth(1 << round);
        }
        let develop = |(i, pixel): (usize, &Pixel)| {
            let light = (pixel.light + pixel.albedo * pixel.irradiance) * exposure;
            // Rounded up or down by chance, the same in every frame: the sky has no bands.
            let chance = unit(mix(i as u32 ^ 0x68bc_21eb));
            filmic(light)
                .to_array()
                .map(|part| (srgb(part) * 255.0 + chance).min(255.0) as u8)
        };
        let pixels = self.pixels.par_iter().enumerate().map(develop).collect();
        Picture {
            width: self.width,
            height: self.height,
            pixels,
        }
    }

    /// Evens out the light on smooth surfaces over pixels `step` apart, no further than noise explains: across an edge,
    /// a bend or a shadow's border nothing is mixed (edge-avoiding à-trous wavelets, Dammertz et al. 2010, with the
    /// noise measured as in Schied et al. 2017).
    fn smooth(&mut self, step: usize) {
        let (width, old) = (self.width, &self.pixels);
        let mixed: Vec<(Vec3, f32)> = old
            .par_iter()
            .enumerate()
            .map(|(i, pixel)| {
                if !pixel.smooth {
                    return (pixel.irradiance, pixel.variance);
                }
                self.mixed_light(i % width, i / width, step)
            })
            .collect();
        for (pixel, (irradiance, variance)) in self.pixels.iter_mut().zip(mixed) {
            (pixel.irradiance, pixel.variance) = (irradiance, variance);
        }
    }

    fn mixed_light(&self, x: usize, y: usize, step: usize) -> (Vec3, f32) {
        const KERNEL: [f32; 2] = [0.5, 0.25];
        let here = &self.pixels[y * self.width + x];
        let bright = brightness(here.irradiance);
        let noise = 4.0 * self.variance_about(x, y).sqrt() + 0.02 * bright + 1e-3;
        let (mut sum, mut variance, mut weights) = (Vec3::ZERO, 0.0, 0.0);
        for (dy, dx) in (0..9i32).map(|i| (i / 3 - 1, i % 3 - 1)) {
            let (at_x, at_y) = (x as i32 + dx * step as i32, y as i32 + dy * step as i32);
            if at_x < 0 || at_y < 0 || at_x as usize >= self.width || at_y as usize >= self.height {
                continue;
            }
            let there = &self.pixels[at_y as usize * self.width + at_x as usize];
            if !there.smooth {
                continue;
            }
            let bend = here.normal.dot(there.normal).max(0.0).powi(64);
            let apart = (there.depth - here.depth).abs() / (0.02 * here.depth * step as f32 + 1e-9);
            let brighter = (brightness(there.irradiance) - bright).abs() / noise;
            let kernel = KERNEL[dx.unsigned_abs() as usize] * KERNEL[dy.unsigned_abs() as usize];
            // Falls off like an exponential, and is cheaper.
            let far = apart + brighter;
            let weight = kernel * bend / (1.0 + far * (1.0 + far * (0.5 + far * 0.25)));
            sum += there.irradiance * weight;
            variance += there.variance * weight * weight;
            weights += weight;
        }
        if weights <= 0.0 {
            return (here.irradiance, here.variance);
        }
        (sum / weights, variance / (weights * weights))
    }

    /// Mean variance of a pixel and its neighbours: a single one is too uncertain itself.
    fn variance_about(&self, x: usize, y: usize) -> f32 {
        let (mut sum, mut count) = (0.0, 0.0);
        for at_y in y.saturating_sub(1)..(y + 2).min(self.height) {
            for at_x in x.saturating_sub(1)..(x + 2).min(self.width) {
                let pixel = &self.pixels[at_y * self.width + at_x];
                if pixel.smooth {
                    sum += pixel.variance;
                    count += 1.0;
                }
            }
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }
}

/// Tones as film gives them: bright light fades into white (the curve that Narkowicz fitted to ACES in 2015).
fn filmic(light: Vec3) -> Vec3 {
    // A little more colour than the curve leaves.
    let gray = Vec3::splat(brightness(light));
    let x = (gray + (light - gray) * 1.06).max(Vec3::ZERO) * 0.60;
    let curve = (x * (x * 2.51 + 0.03)) / (x * (x * 2.43 + 0.59) + 0.14);
    curve.clamp(Vec3::ZERO, Vec3::ONE)
}
