//! Everything that a ray can meet in one frame.

use super::bodies::{BodyHit, Placed};
use super::bvh::{Bvh, TriangleHit};
use super::grains::{GrainHit, Grains};
use super::look::{GROUND, Look, body_color};
use super::paint::Scale;
use super::ray::{Ray, mix, unit};
use super::sky::Sky;
use crate::surface::SurfaceMesh;
use barchan_sim::state::Particles;
use glam::Vec3;

/// How far from a surface its own rays begin, over the size of the scene.
const LIFT: f32 = 2e-5;
/// The same for grains, over the radius of a grain.
const GRAIN_LIFT: f32 = 1e-3;
/// Distance at which half of the ground is lost in haze, over the size of the scene.
const HAZE: f32 = 14.0;
/// Edge of a grain in the texture of a surface, over the radius of a particle.
const TEXEL: f32 = 0.3;
/// What is left of the light of sun and sky under clear water, roughly.
pub const THROUGH_WATER: f32 = 0.7;

/// Grains with what they look like.
pub struct Cloud<'a> {
    /// The spheres.
    pub grains: Grains,
    /// Where ids and materials come from.
    pub particles: &'a Particles,
    /// Values and their colours, in place of the materials' own.
    pub paint: Option<(&'a [f32], Scale)>,
}

/// A surface with the particles beneath it.
pub struct Skin<'a> {
    /// The triangles.
    pub mesh: &'a SurfaceMesh,
    /// The same, ready for rays.
    pub bvh: Bvh,
}

/// Everything that a ray can meet.
pub struct World<'a> {
    /// The light.
    pub sky: Sky,
    /// Looks of the materials.
    pub looks: &'a [Look],
    /// The particles; drawn where there is no skin, and the texture of the skin where there is.
    pub cloud: Option<Cloud<'a>>,
    /// The surface.
    pub skin: Option<Skin<'a>>,
    /// The solids.
    pub bodies: Vec<Placed>,
    /// Size of what the picture shows [m].
    pub extent: f32,
}

/// What a ray has met.
#[derive(Clone, Copy, Debug)]
pub enum Met {
    /// A grain.
    Grain(GrainHit),
    /// A body, by its index in the scene.
    Body(BodyHit, usize),
    /// The surface.
    Skin(TriangleHit),
}

impl Met {
    /// How far along the ray [m].
    pub fn t(&self) -> f32 {
        match self {
            Self::Grain(hit) => hit.t,
            Self::Body(hit, _) => hit.t,
            Self::Skin(hit) => hit.t,
        }
    }
}

/// A point on something, and what it looks like there.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Where rays from it begin [m].
    pub position: Vec3,
    /// Unit normal for shading.
    pub normal: Vec3,
    /// Unit normal of the shape itself, against the ray.
    pub face: Vec3,
    /// Part of red, green and blue light that it gives back.
    pub albedo: Vec3,
    /// Strength of its highlight.
    pub gloss: f32,
    /// True where neighbouring pixels may share their light.
    pub smooth: bool,
    /// True where light passes through.
    pub clear: bool,
    /// Part that is lost in haze.
    pub haze: f32,
}

impl World<'_> {
    /// The first thing that `ray` meets.
    pub fn meet(&self, ray: &Ray) -> Option<Met> {
        let mut met = None;
        let mut limit = f32::INFINITY;
        for body in &self.bodies {
            if let Some(hit) = body.hit(ray, limit) {
                limit = hit.t;
                met = Some(Met::Body(hit, body.body));
            }
        }
        if let Some(skin) = &self.skin {
            if let Some(hit) = skin.bvh.hit(ray, 0.0, limit) {
                met = Some(Met::Skin(hit));
            }
        } else if let Some(hit) = self
            .cloud
            .as_ref()
            .and_then(|cloud| cloud.grains.hit(ray, limit))
        {
            met = Some(Met::Grain(hit));
        }
        met
    }

    /// Part of the sun's light that comes through along `ray`.
    pub fn shadow(&self, ray: &Ray) -> f32 {
        if self
            .bodies
            .iter()
            .any(|body| body.hit(ray, f32::INFINITY).is_some())
        {
            return 0.0;
        }
        let Some(skin) = &self.skin else {
            let grain = self
                .cloud
                .as_ref()
                .and_then(|cloud| cloud.grains.hit(ray, f32::INFINITY));
            return if grain.is_some() { 0.0 } else { 1.0 };
        };
        if self.looks.iter().any(|look| look.clear) {
            let hit = skin.bvh.hit(ray, 0.0, f32::INFINITY);
            let through = |hit: TriangleHit| {
                if self.skin_look(skin, &hit).clear {
                    THROUGH_WATER
                } else {
                    0.0
                }
            };
            return hit.map_or(1.0, through);
        }
        if skin.bvh.is_hit(ray, 0.0, f32::INFINITY) {
            0.0
        } else {
            1.0
        }
    }

    /// How much water [m] a ray has passed that met a surface of water; none where it met something else.
    pub fn water_before(&self, ray: &Ray, met: &Met) -> Option<f32> {
        let (Met::Skin(hit), Some(skin)) = (met, &self.skin) else {
            return None;
        };
        if !self.skin_look(skin, hit).clear {
            return None;
        }
        let corners = skin.mesh.triangles[hit.triangle as usize];
        let [a, b, c] = corners.map(|corner| skin.mesh.positions[corner as usize]);
        let leaves = (b - a).cross(c - a).dot(ray.direction) > 0.0;
        Some(if leaves { hit.t } else { 0.0 })
    }

    /// What was met looks like this.
    pub fn point(&self, ray: &Ray, met: &Met) -> Point {
        let at = ray.at(met.t());
        match met {
            Met::Grain(hit) => self.grain_point(at, hit),
            Met::Body(hit, body) => {
                let far = hit.t / (HAZE * self.extent);
                Point {
                    position: at + hit.normal * (LIFT * self.extent + 1e-6 * hit.t),
                    normal: hit.normal,
                    face: hit.normal,
                    albedo: if hit.endless {
                        GROUND
                    } else {
                        body_color(*body)
                    },
                    gloss: if hit.endless { 0.0 } else { 0.05 },
                    smooth: true,
                    clear: false,
                    haze: if hit.endless {
                        far * far / (1.0 + far * far)
                    } else {
                        0.0
                    },
                }
            }
            Met::Skin(hit) => self.skin_point(ray, at, hit),
        }
    }

    /// The colour of what was met, roughly: for light that comes from it.
    pub fn rough_color(&self, met: &Met) -> Vec3 {
        match met {
            Met::Grain(hit) => match (hit.grain, &self.cloud) {
                (Some(grain), Some(cloud)) => cloud.color(self.looks, grain as usize),
                _ => Vec3::splat(0.02),
            },
            Met::Body(hit, body) => {
                if hit.endless {
                    GROUND
                } else {
                    body_color(*body)
                }
            }
            Met::Skin(hit) => self
                .skin
                .as_ref()
                .map_or(GROUND, |skin| self.skin_look(skin, hit).color),
        }
    }

    fn grain_point(&self, at: Vec3, hit: &GrainHit) -> Point {
        let (Some(grain), Some(cloud)) = (hit.grain, &self.cloud) else {
            return Point {
                position: at,
                normal: hit.normal,
                face: hit.normal,
                albedo: Vec3::splat(0.03),
                gloss: 0.0,
                smooth: false,
                clear: false,
                haze: 0.0,
            };
        };
        let grain = grain as usize;
        let look = cloud.look(self.looks, grain);
        let id = cloud.particles.id[grain];
        Point {
            position: at + hit.normal * (GRAIN_LIFT * cloud.particles.radius[grain]),
            normal: look.facet(hit.normal, id),
            face: hit.normal,
            albedo: cloud.color(self.looks, grain),
            gloss: if cloud.paint.is_some() {
                0.0
            } else {
                look.gloss
            },
            smooth: false,
            clear: false,
            haze: 0.0,
        }
    }

    fn skin_look(&self, skin: &Skin<'_>, hit: &TriangleHit) -> Look {
        let corner = skin.mesh.triangles[hit.triangle as usize][0] as usize;
        let material = skin.mesh.materials.get(corner).copied().unwrap_or(0);
        let plain = Look::of_preset("dry-sand", GROUND);
        self.looks.get(material as usize).copied().unwrap_or(plain)
    }

    fn skin_point(&self, ray: &Ray, at: Vec3, hit: &TriangleHit) -> Point {
        let skin = self.skin.as_ref().expect("a skin was met");
        let look = self.skin_look(skin, hit);
        let corners = skin.mesh.triangles[hit.triangle as usize].map(|corner| corner as usize);
        let [v, w] = hit.weights;
        let blend = |column: &[Vec3]| -> Vec3 {
            let parts = corners.iter().zip([1.0 - v - w, v, w]);
            parts.map(|(corner, weight)| column[*corner] * weight).sum()
        };
        let [a, b, c] = corners.map(|corner| skin.mesh.positions[corner]);
        let outward = (b - a).cross(c - a).normalize_or(-ray.direction);
        let side = if outward.dot(ray.direction) > 0.0 {
            -1.0
        } else {
            1.0
        };
        let smooth = if skin.mesh.normals.is_empty() {
            outward
        } else {
            blend(&skin.mesh.normals)
        };
        let normal = smooth.normalize_or(outward) * side;
        let texture = (!look.clear)
            .then(|| self.texture(at, normal, &look))
            .flatten();
        let color = if skin.mesh.colors.is_empty() {
            look.color
        } else {
            blend(&skin.mesh.colors)
        };
        let (albedo, normal) = texture.unwrap_or((color, normal));
        Point {
            position: at + outward * (side * (LIFT * self.extent + 1e-6 * hit.t)),
            normal,
            face: outward * side,
            albedo,
            gloss: look.gloss,
            smooth: texture.is_none(),
            clear: look.clear,
            haze: 0.0,
        }
    }

    /// Colour and normal of a surface of grains: a texture in space that the nearest particle carries along.
    ///
    /// Zhu & Bridson blend such textures of the particles around; the nearest one alone keeps grains sharp, and borders
    /// between particles are lost among the grains.
    fn texture(&self, at: Vec3, normal: Vec3, look: &Look) -> Option<(Vec3, Vec3)> {
        let cloud = self.cloud.as_ref()?;
        let near = cloud.grains.near(at);
        let (centre, radius, grain) = near.min_by(|a, b| {
            a.0.distance_squared(at)
                .total_cmp(&b.0.distance_squared(at))
        })?;
        let id = cloud.particles.id[grain as usize];
        let bits = mix(id as u32 ^ mix((id >> 32) as u32 ^ 0x1656_67b1));
        let shift = Vec3::new(unit(bits), unit(mix(bits ^ 5)), unit(mix(bits ^ 6))) * 64.0;
        let (texel, off) = nearest_texel((at - centre) / (TEXEL * radius) + shift);
        let texel = u64::from(texel) << 20 ^ id;
        let color = match cloud.paint {
            Some((values, scale)) => scale.linear(values[grain as usize]),
            None => look.grain_color(texel),
        };
        // Each grain of the texture is a little ball.
        let round = (normal + off * 0.55).normalize_or(normal);
        Some((color, look.facet(round, texel)))
    }
}

impl Cloud<'_> {
    fn look(&self, looks: &[Look], grain: usize) -> Look {
        let plain = Look::of_preset("dry-sand", Vec3::new(0.76, 0.62, 0.42));
        let material = self.particles.material[grain] as usize;
        looks.get(material).copied().unwrap_or(plain)
    }

    fn color(&self, looks: &[Look], grain: usize) -> Vec3 {
        match self.paint {
            Some((values, scale)) => scale.linear(values[grain]),
            None => self
                .look(looks, grain)
                .grain_color(self.particles.id[grain]),
        }
    }
}

/// The nearest of points scattered one to a unit cube (Worley 1996): its hash, and the way from it to `at`.
fn nearest_texel(at: Vec3) -> (u32, Vec3) {
    let cell = at.floor();
    let mut best = (0, Vec3::INFINITY);
    for i in 0..27 {
        let place = cell + Vec3::new((i % 3) as f32, (i / 3 % 3) as f32, (i / 9) as f32) - 1.0;
        let key = place.as_ivec3();
        let bits = mix(key.x as u32 ^ mix(key.y as u32 ^ mix(key.z as u32)));
        let point = place + Vec3::new(unit(bits), unit(mix(bits ^ 1)), unit(mix(bits ^ 2)));
        let off = at - point;
        if off.length_squared() < best.1.length_squared() {
            best = (bits, off);
        }
    }
    best
}
