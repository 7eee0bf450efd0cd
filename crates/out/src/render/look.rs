//! What materials look like: grains of many tints, matte or glittering; water.

use super::ray::{mix, unit};
use barchan_sim::scene::Scene;
use glam::Vec3;

/// Presets have the colours of a pile in daylight; lit again they would be pale. By eye.
const DEPTH: f32 = 1.25;

/// How a material is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Linear red, green and blue in daylight.
    pub color: Vec3,
    /// How much grains differ: 0 not at all, 1 from black to white.
    pub variation: f32,
    /// How rough grains are: the tilt of their facets.
    pub roughness: f32,
    /// How much they glitter.
    pub gloss: f32,
    /// True for what light passes through.
    pub clear: bool,
}

impl Look {
    /// How the materials of `scene` look, in their order.
    pub fn of(scene: &Scene) -> Vec<Self> {
        let preset = |name: &str| {
            let preset = &scene.parameters["materials"][name]["preset"];
            preset.as_str().unwrap_or("dry-sand").to_owned()
        };
        let look = |material: &barchan_sim::model::Material| {
            Self::of_preset(&preset(&material.name), Vec3::from_array(material.color))
        };
        scene.model.materials.iter().map(look).collect()
    }

    /// The look of a material whose preset is not known; what has no friction is water.
    pub fn plain(material: &barchan_sim::model::Material) -> Self {
        let preset = if material.friction_angle == 0.0 {
            "water"
        } else {
            ""
        };
        Self::of_preset(preset, Vec3::from_array(material.color))
    }

    /// The look of a preset in its colour.
    pub fn of_preset(preset: &str, color: Vec3) -> Self {
        // Variation, roughness, gloss: chosen by eye.
        let (variation, roughness, gloss) = match preset {
            "dry-sand" => (0.34, 0.35, 0.10),
            "wet-sand" => (0.28, 0.30, 0.35),
            "gravel" => (0.40, 0.55, 0.06),
            "soil" => (0.32, 0.60, 0.0),
            "coffee" => (0.25, 0.55, 0.08),
            "sugar" => (0.08, 0.45, 0.70),
            "snow" => (0.04, 0.40, 0.50),
            "rice" => (0.08, 0.10, 0.18),
            "popcorn" => (0.12, 0.60, 0.02),
            "water" => (0.0, 0.0, 0.9),
            _ => (0.25, 0.35, 0.08),
        };
        Self {
            color: color.powf(DEPTH),
            variation,
            roughness,
            gloss,
            clear: preset == "water",
        }
    }

    /// Colour of the grain with this `id`: always the same one.
    pub fn grain_color(&self, id: u64) -> Vec3 {
        let bits = mix(id as u32 ^ mix((id >> 32) as u32 ^ 0x5bd1_e995));
        let (shade, tint, kind) = (unit(bits), unit(mix(bits ^ 1)), unit(mix(bits ^ 2)));
        // Two numbers make the middle likelier than the ends.
        let shade = shade + unit(mix(bits ^ 3)) - 1.0;
        let mut color = self.color * (1.4 * self.variation * shade).exp();
        // Warmer or cooler.
        color *= Vec3::ONE + Vec3::new(0.5, 0.0, -0.5) * (self.variation * (tint - 0.5));
        // Some dark minerals, some pale quartz.
        if kind < 0.16 * self.variation {
            color *= 0.38;
        } else if kind > 1.0 - 0.35 * self.variation {
            color = color.lerp(Vec3::splat(0.82), 0.45);
        }
        color.clamp(Vec3::ZERO, Vec3::splat(0.95))
    }

    /// The normal of a rough grain where a smooth one has `normal`: flat facets, the same ones in every frame.
    pub fn facet(&self, normal: Vec3, id: u64) -> Vec3 {
        // The cell of a lattice, turned for each grain by its own shift, that the normal points to.
        const FACETS: f32 = 2.3;
        let bits = mix(id as u32 ^ 0x2c1b_3c6d);
        let shift = Vec3::new(unit(bits), unit(mix(bits ^ 7)), unit(mix(bits ^ 9)));
        let cell = (normal * FACETS + shift * 8.0).floor().as_ivec3();
        let key = mix(cell.x as u32 ^ mix(cell.y as u32 ^ mix(cell.z as u32 ^ bits)));
        let tilt = Vec3::new(unit(key), unit(mix(key ^ 1)), unit(mix(key ^ 2))) - 0.5;
        (normal + tilt * (1.4 * self.roughness)).normalize_or(normal)
    }
}

/// Colours of bodies, by turns: plaster, slate, terracotta, sage, straw.
pub fn body_color(body: usize) -> Vec3 {
    const COLORS: [Vec3; 5] = [
        Vec3::new(0.33, 0.38, 0.42),
        Vec3::new(0.50, 0.28, 0.20),
        Vec3::new(0.56, 0.54, 0.50),
        Vec3::new(0.34, 0.40, 0.30),
        Vec3::new(0.58, 0.50, 0.34),
    ];
    COLORS[body % COLORS.len()]
}

/// Colour of the ground.
pub const GROUND: Vec3 = Vec3::new(0.41, 0.375, 0.33);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_differ_about_their_materials_colour() {
        let look = Look::of_preset("dry-sand", Vec3::new(0.76, 0.62, 0.42));
        let colors: Vec<Vec3> = (0..20_000).map(|id| look.grain_color(id)).collect();
        let mean = colors.iter().sum::<Vec3>() / colors.len() as f32;
        assert!((mean - look.color).length() < 0.1, "{mean}");
        let spread = colors
            .iter()
            .map(|color| (color.y - mean.y).powi(2))
            .sum::<f32>();
        assert!((spread / colors.len() as f32).sqrt() > 0.05);
        assert_eq!(look.grain_color(77), look.grain_color(77));
    }
}
