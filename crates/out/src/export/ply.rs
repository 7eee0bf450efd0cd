//! Binary PLY points: float x y z vx vy vz, int id. Ids beyond 2³¹ − 1 wrap around, as PLY has no larger integer.

use crate::cache::Frame;
use std::io::{self, Write};

pub(super) fn write(file: &mut impl Write, frame: &Frame) -> io::Result<()> {
    let particles = &frame.particles;
    write!(
        file,
        "ply\nformat binary_little_endian 1.0\ncomment Barchan, scene {}, frame {}, time {} s\n\
         element vertex {}\nproperty float x\nproperty float y\nproperty float z\n\
         property float vx\nproperty float vy\nproperty float vz\nproperty int id\nend_header\n",
        frame.meta.scene.replace('\n', " "),
        frame.meta.frame,
        frame.meta.time,
        particles.len()
    )?;
    for i in 0..particles.len() {
        let (p, v) = (particles.position[i], particles.velocity[i]);
        for value in [p.x, p.y, p.z, v.x, v.y, v.z] {
            file.write_all(&value.to_le_bytes())?;
        }
        file.write_all(&(particles.id[i] as i32).to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::FrameMeta;
    use barchan_sim::state::Particles;
    use glam::Vec3;

    #[test]
    fn points_stand_where_the_header_says() {
        let mut particles = Particles::default();
        particles.resize(2);
        particles.position[1] = Vec3::new(1.0, 2.0, 3.0);
        particles.velocity[1] = Vec3::new(4.0, 5.0, 6.0);
        particles.id[1] = 77;
        let meta = FrameMeta {
            frame: 1,
            time: 0.5,
            fps: 24.0,
            scene: "a\nb".into(),
            up: Vec3::Y,
            gravity: Vec3::NEG_Y,
            materials: vec![],
            bodies: Vec::new(),
        };
        let mut bytes = Vec::new();
        write(&mut bytes, &Frame { meta, particles }).unwrap();
        let end = b"end_header\n";
        let start = bytes.windows(end.len()).position(|w| w == end).unwrap() + end.len();
        assert_eq!(bytes.len() - start, 2 * 28);
        let last: Vec<f32> = bytes[start + 28..start + 52]
            .chunks(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect();
        assert_eq!(last, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(bytes[start + 52..], 77i32.to_le_bytes());
    }
}
