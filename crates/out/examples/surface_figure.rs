//! Draws docs/surface.svg, after figure 4.1 of Zhu (2005): a cut through a ball of particles and two surfaces around it.
//!
//! `cargo run --release -p barchan-out --example surface_figure > docs/surface.svg`
#![allow(clippy::print_stdout)]

use barchan_base::random::Random;
use barchan_out::surface::{Points, Settings, Style, SurfaceMesh, build};
use glam::{IVec3, Vec3};

/// Radius of the ball, in spacings.
const BALL: f32 = 7.0;
/// Pixels to a spacing.
const SCALE: f32 = 30.0;

fn main() {
    let particles = particles();
    let size = 2.0 * (BALL + 2.0);
    println!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{0} {0} {1} {1}\" width=\"{2}\" height=\"{2}\">\n\
         <rect x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\" fill=\"#fff\"/>\n\
         <circle r=\"{BALL}\" fill=\"none\" stroke=\"#999\" stroke-width=\"0.03\" stroke-dasharray=\"0.2 0.2\"/>",
        -0.5 * size,
        size,
        size * SCALE
    );
    for p in particles.iter().filter(|p| p.z.abs() < 0.5) {
        println!(
            "<circle cx=\"{:.3}\" cy=\"{:.3}\" r=\"0.09\" fill=\"#b98\"/>",
            p.x, p.y
        );
    }
    for (style, color) in [(Style::Blobby, "#c33"), (Style::ZhuBridson, "#136")] {
        println!(
            "<path d=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"0.07\" stroke-linecap=\"round\"/>",
            cut(&surface(&particles, style))
        );
    }
    println!("</svg>");
}

/// Jittered, with those near the rim at exactly one spacing from it, as the authors place them.
fn particles() -> Vec<Vec3> {
    let random = Random::new(2, 0);
    let half = BALL.ceil() as i32;
    let edge = 2 * half;
    let place = |i: i32| {
        let corner = IVec3::new(i % edge, i / edge % edge, i / edge / edge) - half;
        corner.as_vec3() + random.in_cube(i as u64, 0)
    };
    let settle = |p: Vec3| {
        if p.length() > BALL - 2.0 {
            p.normalize() * (BALL - 1.0)
        } else {
            p
        }
    };
    let inside = |p: &Vec3| p.length() < BALL;
    (0..edge.pow(3))
        .map(place)
        .filter(inside)
        .map(settle)
        .collect()
}

fn surface(particles: &[Vec3], style: Style) -> SurfaceMesh {
    let points = Points {
        positions: particles,
        radii: &vec![0.5; particles.len()],
        ..Points::default()
    };
    let settings = Settings {
        style,
        radius: 2.0,
        cell: Some(0.25),
        ..Settings::default()
    };
    build(&points, &settings)
        .expect("a ball has a surface")
        .mesh
}

/// Where triangles meet the plane z = 0, as SVG path commands.
fn cut(mesh: &SurfaceMesh) -> String {
    let mut path = String::new();
    for triangle in &mesh.triangles {
        let corners = triangle.map(|i| mesh.positions[i as usize]);
        let sides = (0..3).map(|i| (corners[i], corners[(i + 1) % 3]));
        let meets: Vec<Vec3> = sides
            .filter(|(a, b)| (a.z < 0.0) != (b.z < 0.0))
            .map(|(a, b)| a.lerp(b, a.z / (a.z - b.z)))
            .collect();
        if let [a, b] = meets[..] {
            path += &format!("M{:.3} {:.3}L{:.3} {:.3}", a.x, a.y, b.x, b.y);
        }
    }
    path
}
