//! How thick the material lies along a line through the middle of a scene: the volume over each place of a slice.

use crate::cache::Frame;
use crate::render::central_bounds;
use barchan_base::Bounds;
use barchan_sim::scene::Scene;
use glam::Vec3;

/// Half the thickness of the slice, over how far the material reaches across it.
const PART: f32 = 0.05;
/// The slice is at least this many particle radii to each side, and a bin so many wide.
const RADII: f32 = 4.0;
/// The most bins, so that they are wider where the material reaches further.
const MOST_BINS: f32 = 1000.0;
/// What is further from nearly all of the material than this part of its size flies alone, and does not count.
const AROUND: f32 = 0.5;

/// A slice that several runs are cut by.
pub struct Slice {
    /// Axis that the profile runs along, and the axis across the slice: 0, 1 or 2.
    along: usize,
    across: usize,
    /// Where the slice is, and half of how thick [m].
    middle: f32,
    half: f32,
    /// Where bins begin, and how wide they are [m].
    start: f32,
    width: f32,
    bins: usize,
}

impl Slice {
    /// Through the middle of the material of all `frames`, along the level axis in which it reaches furthest; nothing where there is
    /// no material.
    pub fn through(frames: &[(&Scene, &Frame)]) -> Option<Self> {
        let all = || frames.iter().map(|(_, frame)| &frame.particles);
        let central = central_bounds(all().flat_map(|some| some.position.iter().copied()));
        let around = AROUND * central.size();
        let (least, most) = (central.min - around, central.max + around);
        let mut bounds = Bounds::EMPTY;
        let (mut radius, mut moment, mut mass) = (0.0f32, Vec3::ZERO, 0.0f32);
        for particles in all() {
            for (place, weight) in particles.position.iter().zip(&particles.mass) {
                if place.cmpge(least).all() && place.cmple(most).all() {
                    bounds = bounds.union(Bounds {
                        min: *place,
                        max: *place,
                    });
                    moment += *place * *weight;
                    mass += *weight;
                }
            }
            radius = particles.radius.iter().copied().fold(radius, f32::max);
        }
        let up = frames.first()?.0.model.up.abs();
        let size = bounds.size();
        if !size.is_finite() || mass <= 0.0 {
            return None;
        }
        let mut level: Vec<usize> = (0..3).filter(|axis| up[*axis] < 0.5).collect();
        level.sort_by(|a, b| size[*b].total_cmp(&size[*a]));
        let [along, across] = level[..] else {
            return None;
        };
        let width = (RADII * radius).max(size[along] / MOST_BINS);
        if width.is_nan() || width <= 0.0 {
            return None;
        }
        Some(Self {
            along,
            across,
            middle: moment[across] / mass,
            half: (PART * size[across]).max(RADII * radius),
            // A quarter, so that rows of a lattice do not lie on the borders of bins.
            start: bounds.min[along] - 0.25 * width,
            width,
            bins: (size[along] / width) as usize + 2,
        })
    }

    /// Places along the line, and how thick the material of `frame` lies there [m].
    pub fn profile(&self, scene: &Scene, frame: &Frame) -> Vec<[f64; 2]> {
        let particles = &frame.particles;
        let mut volumes = vec![0.0f64; self.bins];
        for (i, place) in particles.position.iter().enumerate() {
            let material = scene
                .model
                .materials
                .get(usize::from(particles.material[i]));
            let inside = (place[self.across] - self.middle).abs() <= self.half;
            let bin = (place[self.along] - self.start) / self.width;
            let volume = volumes.get_mut(bin as usize);
            if let (true, Some(material), Some(volume)) = (inside && bin >= 0.0, material, volume) {
                *volume += f64::from(particles.mass[i]) / material.density;
            }
        }
        let area = 2.0 * f64::from(self.half) * f64::from(self.width);
        let middle =
            |bin: usize| f64::from(self.start) + (bin as f64 + 0.5) * f64::from(self.width);
        let bins = volumes.iter().enumerate();
        bins.map(|(bin, volume)| [middle(bin), volume / area])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::FrameMeta;
    use barchan_sim::scene;
    use barchan_sim::state::Particles;

    const SCENE: &str = "schema = 1\nframes = 1\n[solver]\nmethod = \"sph\"\nresolution = 0.1\n[materials.sand]\ndensity = 1600\n\
                         [[fill]]\nmaterial = \"sand\"\nshape = { box = { size = [1, 1, 1] } }\n";

    /// Forty by twenty columns of three, one decimetre apart, and what lies elsewhere.
    fn layer(scene: &Scene, strays: &[Vec3]) -> Frame {
        let mut particles = Particles::default();
        for i in 0..40u16 {
            for j in 0..20u16 {
                for k in 0..3u16 {
                    let place = Vec3::new(f32::from(i), f32::from(k), f32::from(j)) * 0.1;
                    particles.position.push(place);
                }
            }
        }
        particles.position.extend(strays);
        particles.resize(40 * 20 * 3 + strays.len());
        particles.mass.fill(1.6);
        particles.radius.fill(0.05);
        Frame {
            meta: FrameMeta::of(scene, 0),
            particles,
        }
    }

    #[test]
    fn a_level_layer_is_as_thick_everywhere() {
        let scene = scene::parse(SCENE, "s.toml".as_ref(), &[]).expect("a scene");
        let frame = layer(&scene, &[]);
        let slice = Slice::through(&[(&scene, &frame)]).expect("a slice");
        assert_eq!((slice.along, slice.across), (0, 2));
        let profile = slice.profile(&scene, &frame);
        for [x, thickness] in &profile[..20] {
            assert!((thickness - 0.3).abs() < 1e-3, "{thickness} at {x}");
        }
    }

    fn layer_alone(scene: &Scene) -> Vec<[f64; 2]> {
        let frame = layer(scene, &[]);
        let slice = Slice::through(&[(scene, &frame)]).expect("a slice");
        slice.profile(scene, &frame)
    }

    #[test]
    fn grains_far_away_do_not_count() {
        let scene = scene::parse(SCENE, "s.toml".as_ref(), &[]).expect("a scene");
        let strays = [Vec3::new(1e5, 0.0, 1.0), Vec3::new(-1e5, 0.0, 1.0)];
        let frame = layer(&scene, &strays);
        let slice = Slice::through(&[(&scene, &frame)]).expect("a slice");
        let profile = slice.profile(&scene, &frame);
        assert_eq!(profile, layer_alone(&scene), "strays change the profile");
    }

    #[test]
    fn nothing_has_no_slice() {
        let scene = scene::parse(SCENE, "s.toml".as_ref(), &[]).expect("a scene");
        let frame = Frame {
            meta: FrameMeta::of(&scene, 0),
            particles: Particles::default(),
        };
        assert!(Slice::through(&[(&scene, &frame)]).is_none());
    }
}
