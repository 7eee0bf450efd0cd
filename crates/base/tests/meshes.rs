//! Real meshes against the brute-force winding number: BARCHAN_TEST_MESHES=FOLDER cargo test --test meshes -- --ignored.
//! The synthetic meshes of the unit tests stand for them else.
#![allow(clippy::unwrap_used)]

use barchan_base::mesh::{load_mesh, winding_number};
use barchan_base::random::Random;
use barchan_base::shape::{MeshShape, Shape};
use rayon::prelude::*;
use std::sync::Arc;

#[test]
#[ignore = "needs BARCHAN_TEST_MESHES, a folder of mesh files"]
fn inside_and_outside_agree_with_the_sum_over_all_triangles() {
    let folder = std::env::var_os("BARCHAN_TEST_MESHES").expect("BARCHAN_TEST_MESHES is set");
    let mut tried = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let Ok(mesh) = load_mesh(&entry.path()) else {
            continue;
        };
        tried += 1;
        let bounds = mesh
            .bounds()
            .grown(0.05 * mesh.bounds().size().max_element());
        let cell =
            MeshShape::sensible_cell(mesh.bounds(), 0.01 * mesh.bounds().size().max_element());
        let shape = Shape::Mesh(Arc::new(MeshShape::new(mesh.clone(), cell).unwrap()));
        let random = Random::new(1, 0);
        let points = 10_000u64;
        let [exact, sampled] = (0..points)
            .into_par_iter()
            .map(|i| {
                let point = bounds.min + random.in_cube(i, 0) * bounds.size();
                let inside = winding_number(&mesh, point) > 0.5;
                [
                    shape.contains(point) == inside,
                    (shape.distance(point) < 0.0) == inside,
                ]
                .map(u64::from)
            })
            .reduce(|| [0, 0], |a, b| [a[0] + b[0], a[1] + b[1]]);
        println!(
            "{}: inside agrees for {exact} of {points}, sampled distance for {sampled}",
            entry.path().display()
        );
        assert!(exact as f64 >= 0.999 * points as f64);
        assert!(sampled as f64 >= 0.999 * points as f64);
    }
    assert!(tried > 0, "there is no mesh in the folder");
}
