//! Pressure that keeps a fluid's volume: the projection of the velocity onto fields without divergence.
//!
//! Faces count by the part of them that is open, so walls may lie at any angle (Batty et al. 2007). At the free surface
//! pressure vanishes where the surface is, not at the next cell's centre: the ghost fluid of Enright et al. 2003. How far
//! away the surface is follows from how full the cells on both sides are: particles count by trilinear weights, so a flat
//! surface at height d above a cell's centre fills it by ½ + d − d|d|/2.

use super::boundary::Boundary;
use super::field::Field;
use super::unknowns::{Unknowns, face_of};
use barchan_base::grid::{BESIDE, CELLS};
use barchan_base::linear::{Multigrid, Scratch, Solved, Stencil, Tolerance, conjugate_gradients};
use rayon::prelude::*;

/// The surface is taken to be at least this far from a cell's centre, in cells. Ten times as far, and the order of the projection is lost.
const LEAST_DISTANCE: f32 = 0.01;
/// The solve ends when the divergence left is this part of what it was.
const TOLERANCE: Tolerance = Tolerance {
    relative: 1e-4,
    max_iterations: 60,
};

/// The solve for pressure, scaled by Δt / (ρ Δx) as all stresses are, with ρ of the lightest fluid; the others yield less to it.
#[derive(Default)]
pub(super) struct Pressure {
    stencil: Stencil,
    multigrid: Multigrid,
    inflow: Vec<f32>,
    solution: Vec<f32>,
    scratch: Scratch,
}

impl Pressure {
    /// Projects the field's velocity. `scaled` is the pressure of every cell: what it is likely to be before, what it is
    /// after.
    pub fn project(
        &mut self,
        field: &mut Field,
        boundary: &Boundary,
        unknowns: &Unknowns,
        scaled: &mut [f32],
    ) -> Option<Solved> {
        if unknowns.places.is_empty() {
            return None;
        }
        let seen: &Field = field;
        self.stencil.rebuild(&unknowns.cells, |unknown| {
            let cell = unknowns.places[unknown] as usize;
            unknowns.row(unknown, (seen, boundary), |face| {
                let yielding = face.open * lightness(seen, cell, face.beyond);
                let at_surface = face.open / seen.density[cell];
                (
                    yielding,
                    at_surface / surface_distance(seen, cell, face.beyond),
                )
            })
        });
        self.multigrid.rebuild(&self.stencil);
        let inflow = |cell: &u32| inflow(seen, boundary, *cell as usize);
        self.inflow.clear();
        self.inflow
            .par_extend(unknowns.places.par_iter().map(inflow));
        self.solution.clear();
        self.solution
            .extend(unknowns.places.iter().map(|cell| scaled[*cell as usize]));
        let solved = conjugate_gradients(
            &self.stencil,
            &mut self.multigrid,
            &self.inflow,
            &mut self.solution,
            TOLERANCE,
            &mut self.scratch,
        );
        scaled.fill(0.0);
        for (cell, pressure) in unknowns.places.iter().zip(&self.solution) {
            scaled[*cell as usize] = *pressure;
        }
        push(field, boundary, scaled);
        Some(solved)
    }
}

/// How much more flows into a cell than out of it.
fn inflow(field: &Field, boundary: &Boundary, cell: usize) -> f32 {
    let mut sum = 0.0;
    for side in 0..6 {
        let face = face_of(field, boundary, cell, side);
        let flow = face.open * field.velocity[face.axis][face.face];
        sum += if side.is_multiple_of(2) { flow } else { -flow };
    }
    let walls = boundary.walls(cell / CELLS).iter();
    sum + walls
        .filter(|wall| wall.cell as usize == cell)
        .map(|wall| wall.area.dot(wall.velocity))
        .sum::<f32>()
}

/// Takes the pressure's gradient from the velocity, face by face.
fn push(field: &mut Field, boundary: &Boundary, scaled: &[f32]) {
    let mut velocity = std::mem::take(&mut field.velocity);
    let seen: &Field = field;
    let inside = seen.grid.len() * CELLS;
    for (axis, faces) in velocity.iter_mut().enumerate() {
        faces[..inside]
            .par_iter_mut()
            .enumerate()
            .with_min_len(CELLS)
            .for_each(|(above, velocity)| {
                let below = seen
                    .grid
                    .step(above / CELLS, above % CELLS, BESIDE[2 * axis]);
                if boundary.open(axis, above) > 0.0 {
                    let at_surface = |cell: usize, beyond: usize| {
                        scaled[cell] / seen.density[cell] / surface_distance(seen, cell, beyond)
                    };
                    *velocity += match (seen.active[below], seen.active[above]) {
                        (true, true) => {
                            (scaled[below] - scaled[above]) * lightness(seen, below, above)
                        }
                        (true, false) => at_surface(below, above),
                        (false, true) => -at_surface(above, below),
                        (false, false) => 0.0,
                    };
                }
            });
    }
    field.velocity = velocity;
}

/// What a force between two cells moves, of what it moves of the lightest fluid: the face between has the mean of their densities.
fn lightness(field: &Field, cell: usize, beyond: usize) -> f32 {
    2.0 / (field.density[cell] + field.density[beyond])
}

/// The distance, in cells, from a cell's centre to the surface before the centre of the cell beyond.
fn surface_distance(field: &Field, cell: usize, beyond: usize) -> f32 {
    let here = depth(field.fill[cell]);
    let there = depth(field.fill[beyond]).min(0.0);
    if here <= 0.0 {
        return LEAST_DISTANCE;
    }
    (here / (here - there)).clamp(LEAST_DISTANCE, 1.0)
}

/// How far a flat surface is above the centre of a cell that is filled so far.
fn depth(fill: f32) -> f32 {
    let fill = fill.clamp(0.0, 1.0);
    if fill >= 0.5 {
        1.0 - (2.0 * (1.0 - fill)).sqrt()
    } else {
        (2.0 * fill).sqrt() - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_sim::solids::Solids;
    use barchan_sim::state::Particles;
    use glam::Vec3;

    /// Radius of a ball of fluid [m], about a point that is nowhere on the grid's lines.
    const RADIUS: f32 = 1.0;
    const CENTER: Vec3 = Vec3::new(0.013, -0.021, 0.017);

    /// A potential that vanishes on the ball's surface, and its slope.
    fn potential(at: Vec3) -> (f32, Vec3) {
        let r = at - CENTER;
        let (shell, wave) = (
            RADIUS * RADIUS - r.length_squared(),
            (1.5 * r.x + r.y).cos(),
        );
        let ripple = Vec3::new(1.5, 1.0, 0.0) * -(1.5 * r.x + r.y).sin();
        (shell * wave, -2.0 * r * wave + shell * ripple)
    }

    /// A ball of fluid, cells of edge `dx`, that moves along the slope of the potential: all of it is to be projected away. Returns the
    /// largest error of the pressure, and the root mean square of the velocity that is left inside.
    fn project_ball(dx: f32) -> (f64, f64) {
        let reach = (RADIUS / dx).ceil() as i32 + 3;
        let mut particles = Particles::default();
        let along = -reach..=reach;
        let points = along.clone().flat_map(|x| {
            let along = along.clone();
            along.clone().flat_map(move |y| {
                along
                    .clone()
                    .map(move |z| (Vec3::new(x as f32, y as f32, z as f32) + 0.5) * dx)
            })
        });
        let points: Vec<Vec3> = points.collect();
        particles.resize(points.len());
        particles.position = points;
        let mut field = Field::default();
        field.lay(&particles, dx);
        let mut boundary = Boundary::default();
        boundary.sample(&field, &Solids::default());
        for cell in 0..field.grid.len() * CELLS {
            let at = field.center(cell / CELLS, cell % CELLS);
            let d = ((RADIUS - at.distance(CENTER)) / dx).clamp(-1.0, 1.0);
            field.fill[cell] = 0.5 + d - 0.5 * d * d.abs();
            field.active[cell] = d > 0.0;
            field.density[cell] = 1.0;
            for axis in 0..3 {
                let face = at - Vec3::AXES[axis] * (0.5 * dx);
                field.velocity[axis][cell] = potential(face).1[axis];
                field.mass[axis][cell] = 1.0;
            }
        }
        let mut unknowns = Unknowns::default();
        unknowns.number(&field);
        let mut scaled = vec![0.0; field.grid.cells()];
        Pressure::default()
            .project(&mut field, &boundary, &unknowns, &mut scaled)
            .expect("there is fluid");
        let (mut worst, mut sum, mut count) = (0.0f64, 0.0f64, 0.0f64);
        for &cell in &unknowns.places {
            let cell = cell as usize;
            let at = field.center(cell / CELLS, cell % CELLS);
            let expected = potential(at).0;
            worst = worst.max(f64::from((scaled[cell] * dx - expected).abs()));
            if at.distance(CENTER) < 0.7 * RADIUS {
                let left = (0..3).map(|axis| f64::from(field.velocity[axis][cell]).powi(2));
                sum += left.sum::<f64>();
                count += 1.0;
            }
        }
        (worst, (sum / count).sqrt())
    }

    /// With a surface that no grid line follows, errors fall with the square of the cell.
    #[test]
    fn the_projection_is_of_second_order() {
        let errors = [0.2, 0.1, 0.05].map(project_ball);
        for pair in errors.windows(2) {
            let order = |coarse: f64, fine: f64| (coarse / fine).log2();
            let pressure = order(pair[0].0, pair[1].0);
            let velocity = order(pair[0].1, pair[1].1);
            assert!(pressure > 1.7 && velocity > 1.7, "{errors:?}");
        }
    }

    #[test]
    fn depth_undoes_how_a_flat_surface_fills_a_cell() {
        for d in [-1.0f32, -0.6, -0.2, 0.0, 0.3, 0.7, 1.0] {
            let fill = 0.5 + d - 0.5 * d * d.abs();
            assert!((depth(fill) - d).abs() < 1e-3, "{d}: {}", depth(fill));
        }
    }
}
