//! Frames made by hand, for the tests of the writers.

use super::snapshot::Content;
pub(crate) use super::snapshot::Snapshot;
use crate::cache::FrameMeta;
use crate::surface::SurfaceMesh;
use barchan_base::column::{Column, ColumnSpec, Kind};
use barchan_sim::state::Particles;
use glam::Vec3;

pub const HEAT: ColumnSpec = ColumnSpec::new("heat of it", "K", Kind::F64);

pub fn meta(frame: u32) -> FrameMeta {
    FrameMeta {
        frame,
        time: f64::from(frame) / 24.0,
        fps: 24.0,
        scene: "odd \"name\"\n<&> §".into(),
        up: Vec3::Y,
        gravity: Vec3::NEG_Y,
        materials: vec!["sand".into()],
        bodies: Vec::new(),
    }
}

/// `count` particles, all different, in frame `frame`.
pub fn particles(count: usize, frame: u32) -> Snapshot {
    let mut particles = Particles {
        extra: vec![Column::zeros(HEAT, 0)],
        ..Default::default()
    };
    particles.resize(count);
    for i in 0..count {
        let x = i as f32;
        particles.id[i] = 7 + i as u64;
        particles.position[i] = Vec3::new(x, 0.5 * x - 3.0, frame as f32);
        particles.velocity[i] = Vec3::new(0.25, -x, 1.0);
        particles.radius[i] = 0.125 + x;
        particles.mass[i] = 2.0;
        particles.material[i] = i as u16 % 3;
        particles.extra[0].set(i, f64::from(x) + 273.0);
    }
    Snapshot {
        meta: meta(frame),
        content: Content::Particles(particles),
    }
}

/// A tetrahedron around the origin in frame `frame`, outward.
pub fn tetrahedron(frame: u32) -> Snapshot {
    let positions = vec![
        Vec3::new(1.0, 1.0, 1.0),
        Vec3::new(1.0, -1.0, -1.0),
        Vec3::new(-1.0, 1.0, -1.0),
        Vec3::new(-1.0, -1.0, 1.0),
    ];
    let mesh = SurfaceMesh {
        normals: positions.iter().map(|p| p.normalize()).collect(),
        velocities: vec![Vec3::new(0.0, frame as f32, 0.0); 4],
        colors: vec![Vec3::new(1.0, 0.5, 0.0); 4],
        materials: vec![0, 1, 0, 1],
        triangles: vec![[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]],
        positions,
    };
    Snapshot {
        meta: meta(frame),
        content: Content::Mesh(mesh),
    }
}
