//! What spreading promises: the pressure an independent solver finds, densities within the bound, and nothing else touched.

use super::*;
use crate::random::Random;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SupportedConeT,
};
use glam::{IVec3, Vec2};

/// Rolling hills over `cells` by `cells` cells of edge 1.
fn hill(at: Vec2, cells: i32) -> f32 {
    let part = at / cells as f32;
    cells as f32 * (0.5 + 0.05 * (part.x * 9.0).sin() * (part.y * 7.0).cos())
}

fn hills(cells: i32) -> Net {
    let lattice = Lattice {
        origin: Vec3::ZERO,
        cell: 1.0,
        nodes: IVec3::splat(cells + 1),
    };
    let height = |node: IVec3| hill(Vec2::new(node.x as f32, node.z as f32), cells);
    Net::new(&lattice, |node| 0.8 * (node.y as f32 - height(node)))
}

fn upward(net: &Net) -> Faces {
    Faces::new(Vec3::Y, &net.vertices, &net.corners, STEEPEST).unwrap()
}

/// Nine heaps of points on the hills, each within a radius of `radius` cells.
fn heaps(count: u64, cells: i32, radius: f32) -> Vec<Vec3> {
    let random = Random::new(5, 0);
    let place = |i: u64| {
        let middle = Vec2::new((i % 3) as f32 + 0.5, (i / 3 % 3) as f32 + 0.5);
        let (out, turn) = (random.uniform(i, 0).sqrt(), random.uniform(i, 1));
        let off = Vec2::from_angle(turn * std::f32::consts::TAU) * (out * radius);
        let at = middle * (cells as f32 / 3.0) + off;
        Vec3::new(at.x, hill(at, cells) + 0.1, at.y)
    };
    (0..count).map(place).collect()
}

/// The same quadratic programme, solved by someone else.
fn oracle(faces: &Faces, surplus: &[f32]) -> Vec<f64> {
    let n = faces.len();
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for face in 0..n {
        let mut sum = 0.0;
        for side in 0..4 {
            let other = faces.neighbors[face][side];
            if other == NONE {
                continue;
            }
            let ease = f64::from(faces.ease(face, side));
            sum += ease;
            if (other as usize) > face {
                rows.push(face);
                columns.push(other as usize);
                values.push(-ease);
            }
        }
        rows.push(face);
        columns.push(face);
        values.push(sum);
    }
    let p = CscMatrix::new_from_triplets(n, n, rows, columns, values);
    let q: Vec<f64> = surplus.iter().map(|b| -f64::from(*b)).collect();
    let negated =
        CscMatrix::new_from_triplets(n, n, (0..n).collect(), (0..n).collect(), vec![-1.0; n]);
    let cones: [SupportedConeT<f64>; 1] = [NonnegativeConeT(n)];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-10,
        tol_gap_rel: 1e-10,
        tol_feas: 1e-10,
        ..Default::default()
    };
    let mut solver = DefaultSolver::new(&p, &q, &negated, &vec![0.0; n], &cones, settings).unwrap();
    solver.solve();
    solver.solution.x
}

#[test]
fn the_pressure_is_the_one_that_another_solver_finds() {
    let precise = Tolerance {
        relative: 1e-6,
        max_iterations: 2000,
    };
    let net = hills(24);
    let detailed = net.detailed(
        Vec3::Y,
        &Detail {
            steep: 0.1,
            flat: 0.0,
            ..Detail::default()
        },
        |at| {
            let height = hill(Vec2::new(at.x, at.z), 24);
            (
                Vec3::new(at.x, height, at.z),
                Vec3::new(0.3, 1.0, 0.1).normalize(),
            )
        },
    );
    for (net, what) in [(net, "quads"), (detailed.unwrap(), "quads and triangles")] {
        let faces = upward(&net);
        assert_eq!(faces.triangles() > 0, what != "quads", "{what}");
        let random = Random::new(8, 0);
        // Few and many crowded faces, and room for all of it.
        for (crowded, room) in [(0.01, -3.0), (0.3, -3.0), (0.02, -0.6)] {
            let surplus: Vec<f32> = (0..faces.len() as u64)
                .map(|i| {
                    let chance = random.uniform(i, 0);
                    let much = if chance < crowded {
                        9.0 * random.uniform(i, 1)
                    } else {
                        room
                    };
                    much * faces.areas[i as usize]
                })
                .collect();
            assert!(surplus.iter().sum::<f32>() < 0.0);
            let found = pressure(&faces, &surplus, precise);
            let expected = oracle(&faces, &surplus);
            let most = expected.iter().copied().fold(0.0, f64::max);
            assert!(most > 0.1);
            for (face, (found, expected)) in found.values.iter().zip(&expected).enumerate() {
                let error = (f64::from(*found) - expected).abs() / most;
                assert!(error < 1e-4, "{what}, face {face}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn heaps_spread_until_no_face_has_too_many() {
    let cells = 60;
    let faces = upward(&hills(cells));
    for (count, per_face, radius) in [(10_000, 20.0, 1.0), (100_000, 60.0, 4.0), (3000, 4.0, 0.5)] {
        let start = heaps(count, cells, radius);
        let mut points = start.clone();
        let settings = Settings {
            bound: Bound::PerFace(per_face),
            ..Settings::default()
        };
        let report = spread(&faces, &mut points, &settings).unwrap();
        assert!(report.is_feasible());
        assert!(report.before.most > 2.0, "{:?}", report.before);
        assert!(report.after.most <= 1.05, "{report:?}");
        assert_eq!(report.points, points.len());
        // Heights above the surface are kept, up to how flat faces are.
        for point in &points {
            let above = point.y - hill(Vec2::new(point.x, point.z), cells);
            assert!((above - 0.1).abs() < 0.4, "{point}: {above}");
        }
    }
}

#[test]
fn what_is_not_crowded_keeps_its_bits() {
    let cells = 40;
    let faces = upward(&hills(cells));
    // One heap, and points all over the rest, fewer than the bound allows.
    let random = Random::new(9, 0);
    let sparse = (0..3000).map(|i| {
        let at = Vec2::new(random.uniform(i, 0), random.uniform(i, 1)) * 36.0 + 2.0;
        Vec3::new(at.x, hill(at, cells), at.y)
    });
    let middle = Vec2::splat(20.0);
    let heap = (0..300).map(|i| {
        let at = middle + Vec2::new(random.uniform(i, 2), random.uniform(i, 3)) * 0.5;
        Vec3::new(at.x, hill(at, cells), at.y)
    });
    let start: Vec<Vec3> = sparse.chain(heap).collect();
    let mut points = start.clone();
    let report = spread(&faces, &mut points, &Settings::default()).unwrap();
    assert!(
        report.after.most <= 1.05 && report.moved >= 250,
        "{report:?}"
    );
    for (before, after) in start.iter().zip(&points) {
        let away = Vec2::new(before.x, before.z).distance(middle);
        // 300 points at 20 a face fill a disc of radius 2.3; one more face may be pushed.
        if away > 5.0 {
            assert_eq!(
                before.to_array().map(f32::to_bits),
                after.to_array().map(f32::to_bits)
            );
        }
    }
}

#[test]
fn a_bound_that_cannot_be_reached_is_raised_and_told() {
    let cells = 10;
    let faces = upward(&hills(cells));
    let mut points = heaps(10_000, cells, 1.0);
    let report = spread(&faces, &mut points, &Settings::default()).unwrap();
    assert!(!report.is_feasible());
    let mean = report.points as f64 / faces.len() as f64;
    assert!(
        report.allowed > mean && report.allowed < 1.2 * mean,
        "{report:?}"
    );
    assert!(report.after.most <= 1.05, "{report:?}");
    // With what the report says, the same is asked for and reached.
    let settings = Settings {
        bound: Bound::PerFace(report.allowed as f32),
        ..Settings::default()
    };
    let again = spread(&faces, &mut heaps(10_000, cells, 1.0), &settings).unwrap();
    assert!(again.is_feasible() && again.after.most <= 1.05, "{again:?}");
}

#[test]
fn one_pass_moves_towards_less_pressure_and_part_of_the_way_when_asked() {
    let faces = upward(&hills(30));
    let start = heaps(3000, 30, 1.0);
    let way = |step: f32, passes: u32| {
        let mut points = start.clone();
        let settings = Settings {
            passes,
            step,
            rule: Rule::Metaballs,
            ..Settings::default()
        };
        let report = spread(&faces, &mut points, &settings).unwrap();
        assert!(report.after.excess < report.before.excess, "{report:?}");
        points
            .iter()
            .zip(&start)
            .map(|(a, b)| f64::from(a.distance(*b)))
            .sum::<f64>()
    };
    let (whole, part) = (way(1.0, 1), way(0.1, 1));
    assert!((part / whole - 0.1).abs() < 0.01, "{part} of {whole}");
}

/// How many points of a heap lie in each ring of two cells' width about its middle, over what the bound allows there, and how far
/// away the furthest is.
fn rings(faces: &Faces, rule: Rule) -> ([f32; 4], f32) {
    let middle = Vec2::splat(30.2);
    let random = Random::new(6, 0);
    let mut points: Vec<Vec3> = (0..4000)
        .map(|i| {
            let (out, turn) = (random.uniform(i, 0).sqrt(), random.uniform(i, 1));
            let at = middle + Vec2::from_angle(turn * std::f32::consts::TAU) * (out * 1.8);
            Vec3::new(at.x, 6.3, at.y)
        })
        .collect();
    let settings = Settings {
        rule,
        passes: 1,
        ..Settings::default()
    };
    spread(faces, &mut points, &settings).unwrap();
    let away = |point: &Vec3| Vec2::new(point.x, point.z).distance(middle);
    let ring = |k: usize| {
        let (low, high) = (2.0 * k as f32, 2.0 * (k + 1) as f32);
        let within = points.iter().filter(|p| (low..high).contains(&away(p)));
        within.count() as f32 / (20.0 * std::f32::consts::PI * (high * high - low * low))
    };
    let furthest = points.iter().map(away).fold(0.0, f32::max);
    (std::array::from_fn(ring), furthest)
}

/// 4000 points that may be 20 a face, and 18 are aimed at, make a disc of radius 8.4 cells: without gaps, and without points that
/// are sent ahead.
#[test]
fn a_heap_becomes_a_disc_in_one_pass() {
    let lattice = Lattice::covering(Vec3::ZERO, Vec3::new(60.0, 12.0, 60.0), 1.0);
    let flat = Net::new(&lattice, |node| node.y as f32 - 6.3);
    let faces = upward(&flat);
    let off = |rings: [f32; 4]| rings.map(|density| (density - 0.9).abs());
    let worst = |rings: [f32; 4]| off(rings).into_iter().fold(0.0, f32::max);
    let (found, furthest) = rings(&faces, Rule::Transport);
    assert!(worst(found) < 0.15, "{found:?} of the bound");
    assert!(furthest < 10.0, "{furthest} cells from the middle");
    // A step along the gradient does not make one.
    let (thesis, _) = rings(&faces, Rule::Metaballs);
    assert!(
        worst(thesis) > 2.0 * worst(found),
        "{thesis:?} of the bound"
    );
}

#[test]
fn bad_input_has_a_clear_answer() {
    let net = hills(12);
    let down = Faces::new(Vec3::NEG_Y, &net.vertices, &net.corners, STEEPEST);
    assert!(matches!(down, Err(FacesError::NoneUp(_))));
    let wrong = Faces::new(Vec3::Y, &net.vertices, &[[0, 1, 99_999, NONE]], STEEPEST);
    assert!(matches!(
        wrong,
        Err(FacesError::Index { vertex: 99_999, .. })
    ));
    let faces = upward(&net);
    let mut points = vec![Vec3::new(6.0, hill(Vec2::splat(6.0), 12), 6.0); 500];
    let try_bound = |bound: Bound, points: &mut [Vec3]| {
        spread(
            &faces,
            points,
            &Settings {
                bound,
                ..Settings::default()
            },
        )
    };
    for nothing in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        for bound in [Bound::PerFace(nothing), Bound::Spacing(nothing)] {
            assert!(
                matches!(try_bound(bound, &mut points), Err(SpreadError::Bound(_))),
                "{bound:?}"
            );
        }
    }
    let few = try_bound(Bound::PerFace(0.1), &mut points);
    assert!(few.is_err_and(|e| e.to_string().contains("0.100 points on a face")));
    let step = Settings {
        step: 0.0,
        ..Settings::default()
    };
    assert!(matches!(
        spread(&faces, &mut points, &step),
        Err(SpreadError::Step(_))
    ));
    // All at one place, with some that are nowhere.
    points.extend([
        Vec3::NAN,
        Vec3::new(f32::INFINITY, 0.0, 0.0),
        Vec3::splat(1e30),
    ]);
    let report = try_bound(Bound::PerFace(20.0), &mut points).unwrap();
    assert_eq!((report.broken, report.points), (2, 500));
    assert!(
        report.after.most <= 1.05 && points[500].is_nan(),
        "{report:?}"
    );
    let none = spread(&faces, &mut [], &Settings::default()).unwrap();
    assert_eq!((none.points, none.passes), (0, 0));
}

#[test]
fn the_same_on_any_number_of_threads() {
    let faces = upward(&hills(40));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut points = heaps(20_000, 40, 2.0);
            let report = spread(&faces, &mut points, &Settings::default()).unwrap();
            (points, report)
        })
    };
    let (points, report) = run(1);
    for threads in [2, 3] {
        let (others, other) = run(threads);
        assert!(report == other);
        assert!(
            points
                .iter()
                .zip(&others)
                .all(|(a, b)| a.to_array().map(f32::to_bits) == b.to_array().map(f32::to_bits))
        );
    }
}

#[test]
fn the_surface_of_a_ball_is_found_and_its_lower_half_left_out() {
    let radius = 10.0;
    let lattice = Lattice::covering(Vec3::splat(-12.3), Vec3::splat(12.3), 0.5);
    let net = Net::new(&lattice, |node| lattice.place(node).length() - radius);
    assert!(
        net.vertices
            .iter()
            .all(|v| (v.length() - radius).abs() < 0.1)
    );
    let faces = upward(&net);
    let expected = std::f64::consts::TAU * 100.0 * (1.0 - f64::from(STEEPEST.cos()));
    assert!(
        (faces.total_area() / expected - 1.0).abs() < 0.02,
        "{}",
        faces.total_area()
    );
    // Neighbours know each other, and all are one part.
    for (face, around) in faces.neighbors().iter().enumerate() {
        for &other in around.iter().filter(|n| **n != NONE) {
            assert!(faces.neighbors()[other as usize].contains(&(face as u32)));
        }
    }
    // But for a few at the rim that touch no other.
    let first = faces.parts[faces.len() / 2];
    let apart = faces.parts.iter().filter(|part| **part != first).count();
    assert!(apart * 200 < faces.len(), "{apart} of {}", faces.len());
    // The same surface in a lattice eight times as large costs no more vertices.
    let large = Lattice::covering(Vec3::splat(-100.3), Vec3::splat(100.3), 0.5);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let again = Net::new(&large, |node| {
        asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        large.place(node).length() - radius
    });
    let nodes = large.nodes.as_vec3().element_product();
    assert!(again.vertices.len() < 2 * net.vertices.len());
    assert!((asked.into_inner() as f32) < 0.02 * nodes);
}

#[test]
fn steep_edges_get_vertices_and_slivers_are_refused() {
    // A slope that bends from flat to steep.
    let height = |x: f32| if x < 0.0 { 0.0 } else { 0.25 * x * x };
    let lattice = Lattice::covering(Vec3::new(-4.0, -1.0, -3.0), Vec3::new(5.0, 8.0, 3.0), 1.0);
    let distance = |at: Vec3| (at.y - height(at.x)) / 3.0;
    let net = Net::new(&lattice, |node| distance(lattice.place(node)));
    let surface = |at: Vec3| {
        let slope = if at.x < 0.0 { 0.0 } else { 0.5 * at.x };
        (
            Vec3::new(at.x, height(at.x), at.z),
            Vec3::new(-slope, 1.0, 0.0).normalize(),
        )
    };
    let detail = Detail {
        flat: 0.001,
        ..Detail::default()
    };
    let detailed = net.detailed(Vec3::Y, &detail, surface).unwrap();
    let (plain, fine) = (upward(&net), upward(&detailed));
    assert!(
        fine.len() > plain.len(),
        "{} for {}",
        fine.len(),
        plain.len()
    );
    assert!((fine.total_area() / plain.total_area() - 1.0).abs() < 0.1);
    for face in 0..fine.len() {
        let outline: Vec<Vec3> = fine.outline(face).collect();
        let longest = (0..outline.len())
            .map(|k| outline[k].distance_squared(outline[(k + 1) % outline.len()]))
            .fold(0.0, f32::max);
        assert!(
            fine.areas()[face] > 0.05 * longest,
            "face {face} is a sliver"
        );
        // Every inner side is shared: cutting opened no gap.
        let inner = outline
            .iter()
            .all(|v| v.x > -2.0 && v.x < 3.0 && v.z.abs() < 1.5);
        let sides = outline.len();
        assert!(!inner || fine.neighbors()[face][..sides].iter().all(|n| *n != NONE));
    }
    // A limit that nothing meets refuses every vertex.
    let strict = Detail {
        sliver: 0.9,
        ..detail
    };
    assert_eq!(
        net.detailed(Vec3::Y, &strict, surface)
            .unwrap()
            .vertices
            .len(),
        net.vertices.len()
    );
}

/// Sides of faces that have nobody across.
fn rims(faces: &Faces) -> usize {
    let open = |f: usize| {
        let sides = faces.outline(f).count();
        let across = faces.neighbors[f][..sides].iter();
        across.filter(|n| **n == NONE).count()
    };
    (0..faces.len()).map(open).sum()
}

/// Refines a net of 12 × 12 cells in its middle, and looks for gaps.
fn refine(net: &Net, onto: impl Fn(Vec3) -> Vec3) -> (Faces, Faces) {
    // Whatever way they look: a cut face may hang over where the whole one did not.
    let all = |net: &Net| Faces::new(Vec3::Y, &net.vertices, &net.corners, 4.0).unwrap();
    let faces = all(net);
    let dense = |face: usize| {
        let center = faces.plan.point(faces.centers[face]);
        Vec2::new(center.x, center.z).distance(Vec2::splat(6.0)) < 2.0
    };
    let marked = (0..faces.len()).filter(|f| dense(*f)).count();
    let fine = all(&Net::refined(&faces, dense, onto));
    assert!(marked > 3 && fine.len() >= faces.len() + 3 * marked);
    assert_eq!(rims(&fine), rims(&faces), "a gap opened");
    (faces, fine)
}

#[test]
fn faces_are_refined_under_dense_points_without_gaps() {
    let lattice = Lattice::covering(Vec3::ZERO, Vec3::splat(12.0), 1.0);
    let flat = Net::new(&lattice, |node| node.y as f32 - 6.3);
    let (faces, fine) = refine(&flat, |at| Vec3::new(at.x, 6.3, at.z));
    assert!((fine.total_area() / faces.total_area() - 1.0).abs() < 0.01);
}

#[test]
fn faces_are_refined_on_hills_without_gaps() {
    refine(&hills(12), |at| {
        Vec3::new(at.x, hill(Vec2::new(at.x, at.z), 12), at.z)
    });
}
