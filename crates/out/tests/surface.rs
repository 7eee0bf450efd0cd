//! What a surface must be: exact for one particle, smooth for many, closed and manifold for any, the same on any number of threads.
#![allow(clippy::unwrap_used)]

use barchan_base::random::Random;
use barchan_out::surface::{
    Points, Settings, Style, Surface, SurfaceError, SurfaceMesh, build, topology,
};
use glam::Vec3;

const STYLES: [Style; 4] = [
    Style::ZhuBridson,
    Style::Blobby,
    Style::Sph,
    Style::Anisotropic,
];
/// Particles one apart.
const RADIUS: f32 = 0.5;

fn surface(positions: &[Vec3], settings: &Settings) -> Surface {
    let radii = vec![RADIUS; positions.len()];
    let points = Points {
        positions,
        radii: &radii,
        ..Points::default()
    };
    build(&points, settings).unwrap()
}

fn style(style: Style) -> Settings {
    Settings {
        style,
        ..Settings::default()
    }
}

/// One particle at a random place of each unit cube within `half` of the origin, of those that `keep` takes.
fn jittered(half: i32, keep: impl Fn(Vec3) -> bool) -> Vec<Vec3> {
    let random = Random::new(1, 0);
    let edge = 2 * half;
    let place = |i: i32| {
        let corner = glam::IVec3::new(i % edge, i / edge % edge, i / edge / edge) - half;
        corner.as_vec3() + random.in_cube(i as u64, 0)
    };
    (0..edge.pow(3)).map(place).filter(|p| keep(*p)).collect()
}

/// Mean and standard deviation.
fn spread(values: impl Iterator<Item = f32>) -> (f64, f64) {
    let values: Vec<f64> = values.map(f64::from).collect();
    assert!(!values.is_empty());
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (square / values.len() as f64).sqrt())
}

fn is_whole(mesh: &SurfaceMesh) -> bool {
    let found = topology(mesh);
    found.odd_sides == 0 && found.odd_vertices == 0 && found.volume >= 0.0
}

#[test]
fn one_particle_is_its_sphere() {
    let random = Random::new(5, 0);
    for i in 0..20 {
        let center = random.in_cube(i, 0) * 3.0;
        let mesh = surface(&[center], &Settings::default()).mesh;
        assert!(is_whole(&mesh) && mesh.positions.len() >= 6);
        for (place, normal) in mesh.positions.iter().zip(&mesh.normals) {
            let away = *place - center;
            let error = (away.length() - RADIUS).abs() / RADIUS;
            assert!(error < 1e-3, "radius off by {error}");
            assert!(normal.dot(away.normalize()) > 0.9999);
        }
    }
    // On a fine grid the volume is a ball's too, but for what flat triangles cut off.
    let fine = Settings {
        cell: Some(0.025),
        ..Settings::default()
    };
    let volume = topology(&surface(&[Vec3::ZERO], &fine).mesh).volume;
    let ball = std::f64::consts::PI / 6.0;
    assert!((volume / ball - 1.0).abs() < 2e-3, "{volume} for {ball}");
}

/// As the authors seed: those near the surface at exactly one spacing from it (their half cell), with that radius.
fn as_the_authors(style: Style) -> Settings {
    Settings {
        style,
        radius: 2.0,
        ..Settings::default()
    }
}

#[test]
fn a_flat_layer_is_less_than_half_as_rough_as_blobs() {
    let mut layer = jittered(12, |p| p.y.abs() < 4.0);
    for p in layer.iter_mut().filter(|p| p.y.abs() > 2.0) {
        p.y = p.y.signum() * 3.0;
    }
    let rough = |style| {
        let mesh = surface(&layer, &as_the_authors(style)).mesh;
        let top = mesh.positions.iter();
        let top = top.filter(|p| p.y > 0.0 && p.x.abs() < 8.0 && p.z.abs() < 8.0);
        spread(top.map(|p| p.y))
    };
    let ((height, ours), (_, blobs)) = (rough(Style::ZhuBridson), rough(Style::Blobby));
    assert!(ours < 0.5 * blobs, "{ours} of {blobs}");
    assert!((height - 4.0).abs() < 0.02, "the layer ends at {height}");
}

#[test]
fn a_sphere_is_less_than_half_as_rough_as_blobs() {
    let mut ball = jittered(13, |p| p.length() < 12.0);
    for p in ball.iter_mut().filter(|p| p.length() > 10.0) {
        *p = p.normalize() * 11.0;
    }
    let rough = |style| {
        let mesh = surface(&ball, &as_the_authors(style)).mesh;
        spread(mesh.positions.iter().map(|p| p.length()))
    };
    let ((radius, ours), (_, blobs)) = (rough(Style::ZhuBridson), rough(Style::Blobby));
    assert!(ours < 0.5 * blobs, "{ours} of {blobs}");
    assert!((radius - 12.0).abs() < 0.06, "the ball ends at {radius}");
}

#[test]
fn a_filled_sphere_keeps_its_volume() {
    let ball = jittered(21, |p| p.length() < 20.0);
    let surface = surface(&ball, &Settings::default());
    let found = topology(&surface.mesh);
    let ratio = found.volume / ball.len() as f64;
    assert!(
        (ratio - 1.0).abs() < 0.03,
        "volume {ratio} of the particles'"
    );
    assert_eq!(found.pieces, 1);
}

#[test]
fn random_particles_have_closed_manifold_surfaces_without_crumbs() {
    for seed in 0..200 {
        let random = Random::new(seed, 9);
        let count = 1 + random.bits(0, 7) % 200;
        let size = 2.0 + 8.0 * random.uniform(0, 8);
        let positions: Vec<Vec3> = (0..count)
            .map(|i| (random.in_cube(i, 0) - 0.5) * size)
            .collect();
        let settings = Settings {
            style: STYLES[seed as usize % 4],
            cell: Some(0.3 + 0.5 * f64::from(random.uniform(0, 9))),
            ..Settings::default()
        };
        let mesh = surface(&positions, &settings).mesh;
        let found = topology(&mesh);
        assert!(is_whole(&mesh), "seed {seed}: {found:?}");
        assert!(found.volume > 0.0, "seed {seed}: {found:?}");
        assert!(smallest_piece(&mesh) >= RADIUS, "seed {seed}");
        assert!(mesh.normals.iter().all(|n| n.is_normalized()));
    }
}

/// The longest edge of the smallest piece's bounding box, found without the code under test.
fn smallest_piece(mesh: &SurfaceMesh) -> f32 {
    let mut piece: Vec<usize> = (0..mesh.positions.len()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for triangle in &mesh.triangles {
            let corners = triangle.map(|c| c as usize);
            let least = corners.iter().map(|c| piece[*c]).min().unwrap();
            for corner in corners {
                changed |= piece[corner] != least;
                piece[corner] = least;
            }
        }
    }
    let mut boxes = std::collections::BTreeMap::new();
    for (place, piece) in mesh.positions.iter().zip(&piece) {
        let (low, high) = boxes.entry(*piece).or_insert((*place, *place));
        (*low, *high) = (low.min(*place), high.max(*place));
    }
    let sizes = boxes
        .values()
        .map(|(low, high)| (*high - *low).max_element());
    sizes.fold(f32::INFINITY, f32::min)
}

#[test]
fn threads_do_not_change_a_bit() {
    let ball = jittered(7, |p| p.length() < 6.5);
    for a_style in STYLES {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            pool.install(|| surface(&ball, &style(a_style)).mesh)
        };
        let one = with(1);
        assert!(one == with(2) && one == with(5), "{a_style:?}");
    }
}

#[test]
fn vertices_carry_what_is_beneath_them() {
    let positions = [Vec3::ZERO, Vec3::new(50.0, 0.0, 0.0)];
    let points = Points {
        positions: &positions,
        radii: &[RADIUS; 2],
        velocities: &[Vec3::X, Vec3::Y],
        colors: &[Vec3::ZERO, Vec3::ONE],
        materials: &[3, 7],
    };
    let mesh = build(&points, &Settings::default()).unwrap().mesh;
    assert_eq!(topology(&mesh).pieces, 2);
    for i in 0..mesh.positions.len() {
        let second = mesh.positions[i].x > 25.0;
        let velocity = if second { Vec3::Y } else { Vec3::X };
        assert!((mesh.velocities[i] - velocity).length() < 1e-5);
        assert!((mesh.colors[i].x - f32::from(u8::from(second))).abs() < 1e-5);
        assert_eq!(mesh.materials[i], if second { 7 } else { 3 });
    }
}

#[test]
fn the_space_between_groups_costs_nothing() {
    let near = surface(&[Vec3::ZERO, Vec3::splat(20.0)], &Settings::default());
    let far = surface(&[Vec3::ZERO, Vec3::splat(20_000.0)], &Settings::default());
    assert!(
        far.blocks <= near.blocks + 27,
        "{} and {}",
        far.blocks,
        near.blocks
    );
    assert_eq!(topology(&far.mesh).pieces, 2);
}

#[test]
fn memory_goes_with_the_surface() {
    let blocks = |half| surface(&jittered(half, |_| true), &Settings::default()).blocks as f64;
    // Twice as wide: eight times the volume, four times the surface.
    let growth = blocks(24) / blocks(12);
    assert!(growth < 5.5, "grew {growth} times");
}

#[test]
fn what_is_not_a_particle_is_left_out_and_counted() {
    let positions = [
        Vec3::NAN,
        Vec3::ZERO,
        Vec3::new(f32::INFINITY, 0.0, 0.0),
        Vec3::splat(1e30),
        Vec3::X,
    ];
    let points = Points {
        positions: &positions,
        radii: &[0.5, 0.5, 0.5, 0.5, f32::NAN],
        ..Points::default()
    };
    let found = build(&points, &Settings::default()).unwrap();
    assert_eq!(found.skipped, 4);
    assert!(is_whole(&found.mesh) && !found.mesh.triangles.is_empty());
    let nothing = build(&Points::default(), &Settings::default()).unwrap();
    assert_eq!((nothing.skipped, nothing.mesh), (0, SurfaceMesh::default()));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let positions = [Vec3::ZERO; 2];
    let points = |radii| Points {
        positions: &positions,
        radii,
        ..Points::default()
    };
    let fine = Settings {
        cell: Some(1e-5),
        ..Settings::default()
    };
    let refused = build(&points(&[0.5, 0.5]), &fine);
    assert!(matches!(refused, Err(SurfaceError::TooFine { .. })));
    let uneven = build(&points(&[0.5]), &Settings::default());
    assert!(matches!(uneven, Err(SurfaceError::Columns)));
    let wide = Settings {
        radius: 4.0,
        ..Settings::default()
    };
    let refused = build(&points(&[0.5, 0.5]), &wide);
    assert!(matches!(refused, Err(SurfaceError::Settings { .. })));
}
