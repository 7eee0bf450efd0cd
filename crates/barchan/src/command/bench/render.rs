//! `barchan bench render`: a heap of grains, and a surface of triangles.

use super::Cases;
use super::ledger::{Finding, Ledger};
use crate::command::Failure;
use crate::command::machine::peak_memory;
use crate::command::say::{bytes, grouped};
use barchan_base::random::Random;
use barchan_base::shape::Shape;
use barchan_out::render::{Picture, still};
use barchan_out::surface::SurfaceMesh;
use barchan_sim::body::{Body, Form};
use barchan_sim::model::Model;
use barchan_sim::scene::{PRESETS, Render};
use barchan_sim::state::Particles;
use glam::Vec3;
use rayon::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Grains of the heap if nobody says.
pub const GRAINS: u64 = 20_000_000;
/// Rays a pixel for grains, which hide noise, and for the surface, which shows it.
const GRAIN_SAMPLES: u32 = 4;
const SURFACE_SAMPLES: u32 = 16;
/// Edge of the floor that the heap covers [m].
const EDGE: f32 = 2.0;
/// Triangles along each side of the surface: 2 × 448² = 401,408.
const SIDE: u32 = 448;

/// Runs the benchmark, the headline, grains, last; pictures go to `folder` if one is given.
pub fn bench(
    grains: u64,
    folder: Option<&Path>,
    cases: Cases,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    let model = model();
    if cases == Cases::All {
        let settings = Render {
            size: [1280, 720],
            samples: SURFACE_SAMPLES,
            ..Render::default()
        };
        let surface = ripples();
        let none = Particles::default();
        let shown = ("triangles", surface.triangles.len());
        ledger.measure(|| {
            let take = || still(&model, &none, Some(&surface), &settings);
            let (finding, picture) = measure("render surface", shown, &settings, take)?;
            keep(folder, "surface.png", &picture).map(|()| finding)
        })?;
    }
    let settings = Render {
        size: [1920, 1080],
        samples: GRAIN_SAMPLES,
        ..Render::default()
    };
    let heap = heap(grains);
    let shown = ("grains", heap.len());
    ledger.measure(|| {
        let take = || still(&model, &heap, None, &settings);
        let (finding, picture) = measure("render grains", shown, &settings, take)?;
        keep(folder, "grains.png", &picture).map(|()| finding)
    })
}

type Taken = Result<barchan_out::render::Shot, barchan_out::render::RenderError>;

fn measure(
    name: &str,
    (what, count): (&str, usize),
    settings: &Render,
    take: impl FnOnce() -> Taken,
) -> Result<(Finding, Picture), Failure> {
    let began = Instant::now();
    let shot = take().map_err(Failure::run)?;
    let seconds = began.elapsed().as_secs_f64();
    let [width, height] = settings.size;
    let memory = peak_memory().unwrap_or(0.0);
    let pixels = f64::from(width) * f64::from(height);
    let mut line = json!({
        "name": name, "width": width, "height": height, "samples": settings.samples, "peak_bytes": memory,
    });
    line[what] = count.into();
    let finding = Finding {
        seconds,
        done: (pixels * f64::from(settings.samples), "ray"),
        // Every pixel is written once: rays ask for little, but anywhere.
        bytes: pixels * 3.0,
        line,
        text: format!(
            "{name:16} {} {what}  {width}x{height}, {} rays a pixel  {seconds:.2} s  {} at most",
            grouped(count as f64),
            settings.samples,
            bytes(memory)
        ),
    };
    Ok((finding, shot.picture))
}

fn keep(folder: Option<&Path>, name: &str, picture: &Picture) -> Result<(), Failure> {
    let Some(folder) = folder else {
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| picture.write(&folder.join(name), ""))
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", folder.display())))
}

fn model() -> Model {
    Model {
        up: Vec3::Y,
        gravity: Vec3::new(0.0, -9.81, 0.0),
        seed: 0,
        resolution: 0.01,
        spacing: 0.01,
        materials: vec![PRESETS["dry-sand"].material("sand")],
        grains: vec![],
        shapes: vec![],
        fills: vec![],
        emitters: vec![],
        sinks: vec![],
        bodies: vec![Body {
            name: "ground".into(),
            form: Form::Static(Arc::new(Shape::HalfSpace { normal: Vec3::Y })),
            friction: 0.6,
            restitution: None,
        }],
        air: None,
        wet: vec![],
    }
}

/// Height of the heap [m]: two hills on a rippled sheet.
fn height(x: f32, z: f32) -> f32 {
    let hill = |cx: f32, cz: f32, top: f32, slope: f32| {
        (top - slope * ((x - cx).powi(2) + (z - cz).powi(2)).sqrt()).max(0.0)
    };
    let ripple = 0.004 * (60.0 * x + 3.0 * (4.0 * z).sin()).sin();
    hill(-0.3, 0.1, 0.55, 0.67).max(hill(0.45, -0.2, 0.33, 0.62)) + 0.02 + ripple
}

/// About `count` grains under [`height`], one at a random place in each cube of a lattice.
fn heap(count: u64) -> Particles {
    let columns = 200;
    let step = EDGE / columns as f32;
    let at = |i: i32| (i as f32 + 0.5) * step - 0.5 * EDGE;
    let volume: f64 = (0..columns * columns)
        .map(|i| f64::from(height(at(i % columns), at(i / columns)) * step * step))
        .sum();
    let spacing = (volume / count.max(1) as f64).cbrt() as f32;
    let side = (EDGE / spacing) as u64;
    let random = Random::new(1, 0);
    let layer = |z: u64| {
        let mut points = Vec::new();
        for x in 0..side {
            let corner =
                Vec3::new(x as f32, 0.0, z as f32) * spacing - Vec3::new(0.5, 0.0, 0.5) * EDGE;
            let levels = (height(corner.x, corner.z) / spacing) as u64;
            for y in 0..levels.min(1 << 20) {
                let shift = random.in_cube((z * side + x) << 20 | y, 0) + Vec3::Y * y as f32;
                points.push(corner + shift * spacing);
            }
        }
        points
    };
    let layers: Vec<Vec<Vec3>> = (0..side).into_par_iter().map(layer).collect();
    let position: Vec<Vec3> = layers.into_iter().flatten().collect();
    let mut particles = Particles::default();
    particles.resize(position.len());
    particles.id = (0..position.len() as u64).collect();
    particles.radius.fill(0.5 * spacing);
    particles.position = position;
    particles
}

/// A rippled sheet of [`SIDE`]² squares.
fn ripples() -> SurfaceMesh {
    let at = |i: u32| {
        let (x, z) = (i % (SIDE + 1), i / (SIDE + 1));
        let place = |k: u32| (k as f32 / SIDE as f32 - 0.5) * EDGE;
        Vec3::new(place(x), height(place(x), place(z)), place(z))
    };
    let positions: Vec<Vec3> = (0..(SIDE + 1).pow(2)).map(at).collect();
    let corner = |x: u32, z: u32| z * (SIDE + 1) + x;
    let square = |i: u32| {
        let (x, z) = (i % SIDE, i / SIDE);
        let [a, b, c, d] = [
            corner(x, z),
            corner(x, z + 1),
            corner(x + 1, z + 1),
            corner(x + 1, z),
        ];
        [[a, b, c], [a, c, d]]
    };
    let triangles: Vec<[u32; 3]> = (0..SIDE.pow(2)).flat_map(square).collect();
    let mut normals = vec![Vec3::ZERO; positions.len()];
    for triangle in &triangles {
        let [a, b, c] = triangle.map(|i| positions[i as usize]);
        for corner in triangle {
            normals[*corner as usize] += (b - a).cross(c - a);
        }
    }
    SurfaceMesh {
        normals: normals.into_iter().map(Vec3::normalize_or_zero).collect(),
        positions,
        triangles,
        ..SurfaceMesh::default()
    }
}
