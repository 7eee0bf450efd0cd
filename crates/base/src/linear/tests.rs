//! The ladder: dense twins, symmetry, optimality, growth of iterations, threads.

use super::*;
use crate::random::Random;
use glam::IVec3;
use std::collections::HashMap;

/// A grid to solve on: which cells there are, and how they hold together.
pub struct Grid {
    pub cells: Vec<IVec3>,
    pub rows: Vec<Row>,
}

pub const SIDES: [IVec3; 6] = [
    IVec3::NEG_X,
    IVec3::X,
    IVec3::NEG_Y,
    IVec3::Y,
    IVec3::NEG_Z,
    IVec3::Z,
];

/// The same number for both sides of a face.
fn face(cell: IVec3, side: usize) -> u64 {
    let low = if side.is_multiple_of(2) {
        cell + SIDES[side]
    } else {
        cell
    };
    let key = (low + 100_000).as_u64vec3();
    (key.x * 400_000 + key.y) * 400_000 * 3 + key.z * 3 + (side / 2) as u64
}

impl Grid {
    /// Cells of the cube of width n for which `inside` holds, in block-major order. `coefficient` gets the random number of a
    /// face; `excess` the number of a face without neighbour and its cell and side.
    pub fn new(
        n: i32,
        inside: impl Fn(IVec3) -> bool,
        coefficient: impl Fn(f32) -> f32,
        excess: impl Fn(f32, IVec3, usize) -> f32,
    ) -> Self {
        let random = Random::new(7, 7);
        let mut cells = Vec::new();
        let blocks = n / 4 + 1;
        for block in 0..blocks * blocks * blocks {
            let corner = 4 * IVec3::new(
                block % blocks,
                block / blocks % blocks,
                block / blocks / blocks,
            );
            for i in 0..64 {
                let cell = corner + IVec3::new(i & 3, i >> 2 & 3, i >> 4);
                if cell.max_element() < n && inside(cell) {
                    cells.push(cell);
                }
            }
        }
        let numbers: HashMap<IVec3, u32> = cells
            .iter()
            .enumerate()
            .map(|(i, &c)| (c, i as u32))
            .collect();
        let rows = cells
            .iter()
            .map(|&cell| {
                let mut row = Row::default();
                for (side, &towards) in SIDES.iter().enumerate() {
                    let noise = random.uniform(face(cell, side), 0);
                    if let Some(&other) = numbers.get(&(cell + towards)) {
                        row.neighbors[side] = other;
                        row.coefficients[side] = coefficient(noise);
                    } else {
                        row.excess += excess(noise, cell, side);
                    }
                }
                row
            })
            .collect();
        Self { cells, rows }
    }

    pub fn stencil(&self) -> Stencil {
        Stencil::new(&self.cells, |i| self.rows[i])
    }

    /// A full box, closed but for the top.
    pub fn tank(n: i32) -> Self {
        Self::new(
            n,
            |_| true,
            |_| 1.0,
            |_, cell, side| {
                if side == 3 && cell.y == n - 1 {
                    2.0
                } else {
                    0.0
                }
            },
        )
    }

    /// Balls of all sizes above a closed floor, in the open, with ghost fluid distances to the surface.
    pub fn blobs(n: i32) -> Self {
        let random = Random::new(1, 2);
        let balls: Vec<_> = (0..40)
            .map(|i| {
                let center = (random.in_cube(i, 0)) * n as f32;
                (
                    center,
                    (0.04 + 0.2 * random.uniform(i, 3).powi(2)) * n as f32,
                )
            })
            .collect();
        Self::new(
            n,
            |cell| {
                balls
                    .iter()
                    .any(|(center, radius)| (cell.as_vec3() - *center).length() < *radius)
            },
            |_| 1.0,
            |noise, cell, side| {
                if cell.y == 0 && side == 2 {
                    0.0
                } else {
                    1.0 / noise.max(0.05)
                }
            },
        )
    }

    /// A slope of steps under ghost fluid distances, on a closed floor between closed walls.
    pub fn slope(n: i32) -> Self {
        Self::new(
            n,
            |cell| 3 * cell.y < 2 * cell.x,
            |_| 1.0,
            |noise, _, side| {
                if side == 3 {
                    1.0 / noise.max(0.05)
                } else {
                    0.0
                }
            },
        )
    }

    /// Wavy sheets one to three cells thick, closed below, open above only at one rim.
    pub fn sheets(n: i32) -> Self {
        Self::new(
            n,
            |cell| {
                let wave = (cell.x as f32 * 0.15).sin() * 3.0 + (cell.z as f32 * 0.1).sin() * 3.0;
                (cell.y as f32 + wave).rem_euclid(12.0) < 2.2
            },
            |_| 1.0,
            |noise, cell, side| {
                if side == 3 && cell.x < 3 {
                    1.0 / noise.max(0.05)
                } else {
                    0.0
                }
            },
        )
    }

    /// A closed tank with coefficients from 0.05 to 20.
    pub fn wild(n: i32) -> Self {
        Self::new(
            n,
            |_| true,
            |noise| 0.05 * 400f32.powf(noise),
            |noise, cell, side| {
                if side == 3 && cell.y == n - 1 {
                    1.0 / noise.max(0.05)
                } else {
                    0.0
                }
            },
        )
    }

    /// The blobs, with coefficients as cut faces have.
    pub fn cut(n: i32) -> Self {
        let mut grid = Self::blobs(n);
        let random = Random::new(7, 9);
        for i in 0..grid.cells.len() {
            for side in 0..6 {
                grid.rows[i].coefficients[side] *=
                    random.uniform(face(grid.cells[i], side), 0).max(0.05);
            }
        }
        grid
    }
}

pub fn noise(len: usize, seed: u64) -> Vec<f32> {
    let random = Random::new(seed, 0);
    (0..len)
        .map(|i| random.uniform(i as u64, 0) - 0.5)
        .collect()
}

/// The whole matrix.
fn dense(operator: &impl Operator) -> Vec<Vec<f64>> {
    let len = operator.len();
    (0..len)
        .map(|i| {
            let mut unit = vec![0.0; len];
            let mut column = vec![0.0; len];
            unit[i] = 1.0;
            operator.apply(&unit, &mut column);
            column.into_iter().map(f64::from).collect()
        })
        .collect()
}

/// Cholesky, written plainly.
fn direct(matrix: &[Vec<f64>], b: &[f32]) -> Vec<f64> {
    let len = b.len();
    let mut l = vec![vec![0.0; len]; len];
    for i in 0..len {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            let rest = matrix[i][j] - known;
            l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
        }
    }
    let mut x: Vec<f64> = b.iter().map(|&b| f64::from(b)).collect();
    for i in 0..len {
        x[i] = (x[i] - (0..i).map(|k| l[i][k] * x[k]).sum::<f64>()) / l[i][i];
    }
    for i in (0..len).rev() {
        x[i] = (x[i] - (i + 1..len).map(|k| l[k][i] * x[k]).sum::<f64>()) / l[i][i];
    }
    x
}

/// A matrix that is no grid.
struct Full {
    rows: Vec<Vec<f32>>,
    diagonal: Vec<f32>,
}

impl Full {
    /// Random and positive: BᵀB plus something on the diagonal.
    fn random(len: usize, seed: u64) -> Self {
        let factor: Vec<Vec<f32>> = (0..len)
            .map(|i| noise(len, 100 * seed + i as u64))
            .collect();
        let rows: Vec<Vec<f32>> = (0..len)
            .map(|i| {
                (0..len)
                    .map(|j| {
                        let product: f32 = factor.iter().map(|row| row[i] * row[j]).sum();
                        product + if i == j { 0.05 } else { 0.0 }
                    })
                    .collect()
            })
            .collect();
        let diagonal = (0..len).map(|i| rows[i][i]).collect();
        Self { rows, diagonal }
    }
}

impl Operator for Full {
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn apply(&self, x: &[f32], y: &mut [f32]) {
        for (y, row) in y.iter_mut().zip(&self.rows) {
            *y = vector::dot(row, x) as f32;
        }
    }
    fn diagonal(&self) -> &[f32] {
        &self.diagonal
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    vector::Sums::default().dot(a, b)
}

fn apply(operator: &impl Operator, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    operator.apply(x, &mut y);
    y
}

const KINDS: [fn(i32) -> Grid; 6] = [
    Grid::tank,
    Grid::blobs,
    Grid::slope,
    Grid::sheets,
    Grid::wild,
    Grid::cut,
];

fn solve(stencil: &Stencil, b: &[f32], relative: f64) -> (Vec<f32>, Solved) {
    let mut x = vec![0.0; b.len()];
    let tolerance = Tolerance {
        relative,
        max_iterations: 100,
    };
    let mut multigrid = Multigrid::new(stencil);
    let solved = conjugate_gradients(
        stencil,
        &mut multigrid,
        b,
        &mut x,
        tolerance,
        &mut Scratch::default(),
    );
    (x, solved)
}

#[test]
fn a_stencil_does_what_its_rows_say() {
    for make in KINDS {
        let grid = make(7);
        let stencil = grid.stencil();
        let x = noise(stencil.len(), 1);
        let y = apply(&stencil, &x);
        for (i, row) in grid.rows.iter().enumerate() {
            let mut expected = f64::from(row.excess) * f64::from(x[i]);
            for (&neighbor, &coefficient) in row.neighbors.iter().zip(&row.coefficients) {
                if neighbor != NONE {
                    expected += f64::from(coefficient) * f64::from(x[i] - x[neighbor as usize]);
                }
            }
            assert!(
                (f64::from(y[i]) - expected).abs()
                    < 1e-5 * (1.0 + f64::from(stencil.diagonal()[i]))
            );
        }
    }
}

#[test]
fn stencil_and_preconditioner_are_symmetric_and_positive() {
    for make in KINDS {
        let stencil = make(20).stencil();
        let mut multigrid = Multigrid::new(&stencil);
        let (x, y) = (noise(stencil.len(), 1), noise(stencil.len(), 2));
        let scale = dot(&x, &apply(&stencil, &x));
        let difference = dot(&x, &apply(&stencil, &y)) - dot(&y, &apply(&stencil, &x));
        assert!(scale > 0.0 && difference.abs() < 1e-6 * scale);
        let mut precondition = |r: &[f32]| {
            let mut z = vec![0.0; r.len()];
            multigrid.precondition(r, &mut z);
            z
        };
        let scale = dot(&x, &precondition(&x));
        let difference = dot(&x, &precondition(&y)) - dot(&y, &precondition(&x));
        assert!(
            scale > 0.0 && difference.abs() < 1e-5 * scale,
            "{difference} of {scale}"
        );
    }
}

#[test]
fn the_preconditioner_has_no_negative_direction() {
    for make in KINDS {
        let stencil = make(9).stencil();
        let mut multigrid = Multigrid::new(&stencil);
        for seed in 0..50 {
            let mut r = noise(stencil.len(), seed);
            // Rough and smooth ones.
            for _ in 0..seed % 10 {
                let image = apply(&stencil, &r);
                let diagonal = stencil.diagonal();
                for i in 0..r.len() {
                    r[i] -= if seed % 2 == 0 { 0.5 } else { 1.0 }
                        * vector::divide(image[i], diagonal[i]);
                }
            }
            stencil.make_compatible(&mut r);
            let mut z = vec![0.0; r.len()];
            multigrid.precondition(&r, &mut z);
            assert!(dot(&r, &z) > 0.0);
        }
    }
}

#[test]
fn gradients_agree_with_a_direct_solve() {
    for make in [Grid::tank, Grid::blobs, Grid::slope, Grid::wild, Grid::cut] {
        let stencil = make(9).stencil();
        let b = noise(stencil.len(), 5);
        let (x, solved) = solve(&stencil, &b, 1e-6);
        assert_eq!(solved.end, End::Converged);
        let exact = direct(&dense(&stencil), &b);
        let largest = exact.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        for (x, exact) in x.iter().zip(&exact) {
            assert!((f64::from(*x) - exact).abs() < 1e-4 * largest);
        }
    }
}

#[test]
fn iterations_hardly_grow_with_the_grid() {
    for make in KINDS {
        let [small, large] = [16, 64].map(|n| {
            let stencil = make(n).stencil();
            solve(&stencil, &noise(stencil.len(), 5), 1e-4).1
        });
        assert_eq!(large.end, End::Converged);
        assert!(large.iterations <= 20);
        assert!(
            2 * large.iterations <= 3 * small.iterations + 2,
            "{small:?} {large:?}"
        );
    }
}

#[test]
fn a_warm_start_from_the_solution_takes_no_iteration() {
    let stencil = Grid::slope(12).stencil();
    let b = noise(stencil.len(), 5);
    let (mut x, _) = solve(&stencil, &b, 1e-5);
    let solved = conjugate_gradients(
        &stencil,
        &mut Multigrid::new(&stencil),
        &b,
        &mut x,
        Tolerance::default(),
        &mut Scratch::default(),
    );
    assert_eq!((solved.iterations, solved.end), (0, End::Converged));
}

/// Two closed boxes, an open one, and two cells by themselves: one dead, one held. Coordinates are negative too.
fn islands() -> Stencil {
    let grid = Grid::new(
        19,
        |c| c.x % 10 < 9 && c.z < 9 && c.y < 9,
        |_| 1.0,
        |_, c, side| if side == 3 && c.x > 9 { 2.0 } else { 0.0 },
    );
    let mut cells: Vec<IVec3> = grid.cells.iter().map(|&c| c - 7).collect();
    let mut rows = grid.rows;
    cells.extend([IVec3::splat(90), IVec3::splat(-90)]);
    rows.extend([
        Row::default(),
        Row {
            excess: 2.0,
            ..Row::default()
        },
    ]);
    Stencil::new(&cells, |i| rows[i])
}

#[test]
fn closed_parts_lose_their_mean_and_nothing_blows_up() {
    let stencil = islands();
    assert_eq!(
        stencil.floating().map(<[u32]>::len).collect::<Vec<_>>(),
        [9 * 9 * 9, 1]
    );
    let b: Vec<f32> = noise(stencil.len(), 5).iter().map(|b| b + 1.0).collect();
    let (x, solved) = solve(&stencil, &b, 1e-5);
    assert_eq!(solved.end, End::Converged);
    assert!(x.iter().all(|x| x.is_finite()));
    let len = x.len();
    assert_eq!(x[len - 2].to_bits(), 0.0f32.to_bits());
    assert!((x[len - 1] - b[len - 1] / 2.0).abs() < 1e-4);
    let image = apply(&stencil, &x);
    let part = stencil.floating().next().unwrap();
    let mean = part.iter().map(|&i| b[i as usize]).sum::<f32>() / part.len() as f32;
    for &i in part {
        assert!((image[i as usize] - (b[i as usize] - mean)).abs() < 2e-3);
    }
}

#[test]
fn rebuilding_leaves_no_trace_of_the_last_grid() {
    let grids = [
        Grid::tank(20),
        Grid::sheets(9),
        Grid::blobs(24),
        Grid::tank(0),
    ];
    let mut stencil = Stencil::default();
    let mut multigrid = Multigrid::default();
    for grid in grids {
        stencil.rebuild(&grid.cells, |i| grid.rows[i]);
        multigrid.rebuild(&stencil);
        let r = noise(stencil.len(), 1);
        let [mut again, mut fresh] = [0, 1].map(|_| vec![0.0; r.len()]);
        multigrid.precondition(&r, &mut again);
        Multigrid::new(&grid.stencil()).precondition(&r, &mut fresh);
        assert_eq!(
            bytemuck::cast_slice::<f32, u8>(&again),
            bytemuck::cast_slice::<f32, u8>(&fresh)
        );
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let stencil = Grid::blobs(40).stencil();
            let b = noise(stencil.len(), 5);
            let (mut x, solved) = solve(&stencil, &b, 1e-5);
            let mut multigrid = Multigrid::new(&stencil);
            let bounded = nonnegative(
                &stencil,
                &mut multigrid,
                &b,
                &mut x,
                Tolerance::default(),
                &mut Scratch::default(),
            );
            assert_eq!(bounded.end, End::Converged);
            (
                bytemuck::cast_slice::<f32, u8>(&x).to_vec(),
                solved,
                bounded,
            )
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

/// Projected Gauss-Seidel until nothing moves.
fn patient(operator: &impl Operator, b: &[f32]) -> Vec<f64> {
    let matrix = dense(operator);
    let mut x = vec![0.0f64; b.len()];
    for _ in 0..20_000 {
        let mut moved = 0.0f64;
        for i in 0..b.len() {
            let image: f64 = matrix[i].iter().zip(&x).map(|(a, x)| a * x).sum();
            let new = (x[i] + (f64::from(b[i]) - image) / matrix[i][i]).max(0.0);
            moved = moved.max((new - x[i]).abs());
            x[i] = new;
        }
        if moved < 1e-10 {
            break;
        }
    }
    x
}

fn check_nonnegative(
    operator: &impl Operator,
    preconditioner: &mut impl Preconditioner,
    b: &[f32],
) -> Vec<f32> {
    let tolerance = Tolerance {
        relative: 1e-5,
        max_iterations: 2000,
    };
    let mut x = vec![0.0; b.len()];
    let solved = nonnegative(
        operator,
        preconditioner,
        b,
        &mut x,
        tolerance,
        &mut Scratch::default(),
    );
    assert_eq!(solved.end, End::Converged, "{solved:?}");
    // Optimality: x ≥ 0, gradient ≥ 0, and never both positive.
    let image = apply(operator, &x);
    let scale = dot(b, b).sqrt();
    let wrong: f64 = (0..b.len())
        .map(|i| {
            let gradient = f64::from(image[i] - b[i]);
            assert!(x[i] >= 0.0);
            if x[i] > 0.0 {
                gradient * gradient
            } else {
                gradient.min(0.0).powi(2)
            }
        })
        .sum();
    assert!(wrong.sqrt() < 1e-4 * scale, "{} of {scale}", wrong.sqrt());
    x
}

#[test]
fn nonnegative_solutions_are_optimal_on_grids() {
    for make in [Grid::tank, Grid::blobs, Grid::slope, Grid::cut] {
        let stencil = make(7).stencil();
        for seed in 0..4 {
            let b: Vec<f32> = noise(stencil.len(), seed).iter().map(|b| b - 0.1).collect();
            let expected = patient(&stencil, &b);
            let largest = expected.iter().fold(1e-3f64, |most, x| most.max(*x));
            let with_diagonal = check_nonnegative(
                &stencil,
                &mut Jacobi {
                    diagonal: stencil.diagonal(),
                },
                &b,
            );
            let with_multigrid = check_nonnegative(&stencil, &mut Multigrid::new(&stencil), &b);
            for x in [with_diagonal, with_multigrid] {
                for (x, expected) in x.iter().zip(&expected) {
                    assert!((f64::from(*x) - expected).abs() < 2e-3 * largest);
                }
            }
        }
    }
}

#[test]
fn nonnegative_solutions_are_optimal_on_any_matrix() {
    for seed in 0..40 {
        let full = Full::random(5 + seed as usize, seed);
        let b = noise(full.len(), 1000 + seed);
        let x = check_nonnegative(
            &full,
            &mut Jacobi {
                diagonal: &full.diagonal,
            },
            &b,
        );
        let expected = patient(&full, &b);
        let largest = expected.iter().fold(1e-3f64, |most, x| most.max(*x));
        for (x, expected) in x.iter().zip(&expected) {
            assert!((f64::from(*x) - expected).abs() < 1e-2 * largest);
        }
    }
}

/// A matrix without its own opinion on what is unbounded.
struct Plain(Stencil);

impl Operator for Plain {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn apply(&self, x: &[f32], y: &mut [f32]) {
        self.0.apply(x, y);
    }
    fn diagonal(&self) -> &[f32] {
        self.0.diagonal()
    }
}

#[test]
fn what_has_no_minimum_is_reported() {
    let closed = Grid::new(6, |_| true, |_| 1.0, |_, _, _| 0.0).stencil();
    let mut b: Vec<f32> = noise(closed.len(), 1).iter().map(|b| b + 0.1).collect();
    let mut multigrid = Multigrid::new(&closed);
    let plain = Plain(closed.clone());
    let mut x = vec![0.0; b.len()];
    let mut scratch = Scratch::default();
    let tolerance = Tolerance::default();
    let known = nonnegative(&closed, &mut multigrid, &b, &mut x, tolerance, &mut scratch);
    assert_eq!((known.end, known.iterations), (End::Unbounded, 0));
    let mut jacobi = Jacobi {
        diagonal: plain.0.diagonal(),
    };
    let found = nonnegative(&plain, &mut jacobi, &b, &mut x, tolerance, &mut scratch);
    assert_eq!(found.end, End::Unbounded, "{found:?}");
    // Pulled the other way the bound holds it.
    b.iter_mut().for_each(|b| *b -= 0.3);
    check_nonnegative(&closed, &mut multigrid, &b);
    check_nonnegative(&plain, &mut jacobi, &b);
}

#[test]
fn nothing_to_solve_is_solved() {
    let stencil = Stencil::new(&[], |_| Row::default());
    let (x, solved) = solve(&stencil, &[], 1e-4);
    assert!(x.is_empty() && solved.end == End::Converged);
    let stencil = Grid::tank(5).stencil();
    let (x, solved) = solve(&stencil, &[0.0; 125], 1e-4);
    assert!(x.iter().all(|x| x.abs() <= 0.0) && solved.end == End::Converged);
    let bounded = nonnegative(
        &stencil,
        &mut Multigrid::new(&stencil),
        &[0.0; 125],
        &mut [0.0; 125],
        Tolerance::default(),
        &mut Scratch::default(),
    );
    assert_eq!((bounded.iterations, bounded.end), (0, End::Converged));
}
