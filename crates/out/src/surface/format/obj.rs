//! Wavefront text: positions with sRGB colours behind them, as most programs take them, and normals.

use super::About;
use crate::geometry::ply::to_srgb;
use crate::surface::SurfaceMesh;
use std::io::{self, Write};

pub(super) fn write(file: &mut impl Write, mesh: &SurfaceMesh, about: &About) -> io::Result<()> {
    writeln!(file, "# {}", about.stamp)?;
    writeln!(file, "# frame {}, time {} s", about.frame, about.time)?;
    for (i, p) in mesh.positions.iter().enumerate() {
        write!(file, "v {} {} {}", p.x, p.y, p.z)?;
        if let Some(color) = mesh.colors.get(i) {
            for channel in color.to_array() {
                write!(file, " {:.4}", f32::from(to_srgb(channel)) / 255.0)?;
            }
        }
        writeln!(file)?;
    }
    for n in &mesh.normals {
        writeln!(file, "vn {:.6} {:.6} {:.6}", n.x, n.y, n.z)?;
    }
    for triangle in &mesh.triangles {
        let [a, b, c] = triangle.map(|corner| u64::from(corner) + 1);
        if mesh.normals.is_empty() {
            writeln!(file, "f {a} {b} {c}")?;
        } else {
            writeln!(file, "f {a}//{a} {b}//{b} {c}//{c}")?;
        }
    }
    Ok(())
}
