//! One level of the multigrid hierarchy: a stencil with its red cells first, its smoother, and the ways up and down.

use super::stencil::{NONE, Stencil};
use super::vector::{divide, each};
use glam::IVec3;
use rayon::prelude::*;
use std::collections::HashMap;

/// Cells held by the boundary more than this many times as strongly as by their neighbours are left to the smoother.
const HELD: f32 = 4.0;

/// Red children of a coarse cell, as bits x, y, z of their place: those with an even sum.
const RED: [usize; 4] = [0b000, 0b011, 0b101, 0b110];

/// Number among the [`RED`] of a place.
const RED_NUMBER: [usize; 8] = [0, 0, 0, 1, 0, 2, 3, 0];

/// Which of the [`RED`] children have a given bit on one side: `FACING[side]` lists two of them.
const FACING: [[usize; 2]; 6] = [[0, 3], [1, 2], [0, 2], [1, 3], [0, 1], [2, 3]];

/// Cells of one colour touch only cells of the other, so a whole colour is relaxed at once. Red cells, whose coordinates have
/// an even sum, come first.
#[derive(Clone, Debug, Default)]
pub struct Level {
    reds: usize,
    cells: Vec<IVec3>,
    /// Which connected part each cell belongs to.
    parts: Vec<u32>,
    /// Neighbours, counted within the other colour; anything where the coefficient is zero.
    neighbors: Vec<[u32; 6]>,
    coefficients: Vec<[f32; 6]>,
    excess: Vec<f32>,
    /// One over the diagonal; zero where that is zero.
    inverse: Vec<f32>,
    /// The coarse cell over each cell, times eight, plus the place under it; [`NONE`] for cells that are left out.
    parents: Vec<u32>,
    /// The cells of the finer level under each cell, by place; [`NONE`] where missing.
    children: Vec<[u32; 8]>,
    /// One number for each red child, on the way up or down.
    corners: Vec<[f32; 4]>,
    /// Right side.
    pub b: Vec<f32>,
    /// Solution.
    pub x: Vec<f32>,
}

/// The cells of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Coordinates with an even sum.
    Red,
    /// Coordinates with an odd sum.
    Black,
}

fn is_red(cell: IVec3) -> bool {
    (cell.x ^ cell.y ^ cell.z) & 1 == 0
}

/// Sorts numbers by the colour of their cells, red first, keeping the order within a colour. Writes who comes where into
/// `order` and where each went into `places`; returns the number of red ones.
fn sort_by_color(cells: &[IVec3], order: &mut Vec<u32>, places: &mut Vec<u32>) -> usize {
    let reds = cells.par_iter().filter(|&&cell| is_red(cell)).count();
    order.resize(cells.len(), 0);
    places.resize(cells.len(), 0);
    let mut next = [reds, 0];
    for (i, &cell) in cells.iter().enumerate() {
        let next = &mut next[usize::from(is_red(cell))];
        order[*next] = i as u32;
        places[i] = *next as u32;
        *next += 1;
    }
    reds
}

impl Level {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    fn resize(&mut self, len: usize) {
        self.cells.resize(len, IVec3::ZERO);
        self.parts.resize(len, 0);
        self.neighbors.resize(len, [0; 6]);
        self.coefficients.resize(len, [0.0; 6]);
        self.excess.resize(len, 0.0);
        self.inverse.resize(len, 0.0);
        self.b.resize(len, 0.0);
        self.x.resize(len, 0.0);
    }

    /// Makes this the finest level. `order` receives the index in the stencil of each of its cells, `places` the inverse.
    pub fn copy(&mut self, stencil: &Stencil, order: &mut Vec<u32>, places: &mut Vec<u32>) {
        let reds = sort_by_color(stencil.cells(), order, places);
        self.reds = reds;
        self.resize(order.len());
        let (order, places) = (&*order, &*places);
        self.fill(|i| {
            let from = order[i] as usize;
            let coefficients = stencil.coefficients()[from];
            let mut neighbors = stencil.neighbors()[from];
            for side in 0..6 {
                neighbors[side] = if coefficients[side] > 0.0 {
                    places[neighbors[side] as usize]
                } else {
                    NONE
                };
            }
            Fill {
                cell: stencil.cells()[from],
                part: stencil.first_of_part()[from],
                neighbors,
                coefficients,
                excess: stencil.excess()[from],
            }
        });
    }

    /// Writes the rows. Neighbours are given by their index in the level.
    fn fill(&mut self, row: impl Fn(usize) -> Fill + Sync) {
        let reds = self.reds;
        self.cells
            .par_iter_mut()
            .zip(&mut self.parts)
            .zip(self.neighbors.par_iter_mut().zip(&mut self.coefficients))
            .zip(self.excess.par_iter_mut().zip(&mut self.inverse))
            .enumerate()
            .for_each(
                |(i, (((cell, part), (neighbors, coefficients)), (excess, inverse)))| {
                    let row = row(i);
                    let first = if i < reds { reds as u32 } else { 0 };
                    *cell = row.cell;
                    *part = row.part;
                    *neighbors = row.neighbors.map(|neighbor| {
                        if neighbor == NONE {
                            0
                        } else {
                            neighbor - first
                        }
                    });
                    *coefficients = row.coefficients;
                    *excess = row.excess;
                    *inverse = divide(1.0, row.excess + row.coefficients.iter().sum::<f32>());
                },
            );
    }

    /// The index in the level of a neighbour that exists.
    fn neighbor(&self, cell: usize, side: usize) -> usize {
        let first = if cell < self.reds { self.reds } else { 0 };
        first + self.neighbors[cell][side] as usize
    }

    /// Makes this level from the finer one.
    pub fn coarsen(&mut self, fine: &mut Level, map: &mut CellMap) {
        map.clear();
        fine.parents.clear();
        for (i, &cell) in fine.cells.iter().enumerate() {
            let coupled: f32 = fine.coefficients[i].iter().sum();
            let parent = if coupled > 0.0 && fine.excess[i] <= HELD * coupled {
                let place = (cell.x & 1) | (cell.y & 1) << 1 | (cell.z & 1) << 2;
                map.insert(cell >> 1, fine.parts[i]) << 3 | place as u32
            } else {
                NONE
            };
            fine.parents.push(parent);
        }
        self.reds = sort_by_color(&map.cells, &mut map.order, &mut map.places);
        let len = map.cells.len();
        self.resize(len);
        self.children.clear();
        self.children.resize(len, [NONE; 8]);
        self.corners.resize(len, [0.0; 4]);
        for (i, parent) in fine.parents.iter_mut().enumerate() {
            if *parent != NONE {
                let place = *parent & 7;
                let at = map.places[(*parent >> 3) as usize];
                *parent = at << 3 | place;
                self.children[at as usize][place as usize] = i as u32;
            }
        }
        let children = std::mem::take(&mut self.children);
        self.fill(|i| {
            let number = map.order[i] as usize;
            fine.coarse_row(map.cells[number], map.parts[number], &children[i])
        });
        self.children = children;
    }

    /// The row of the cell above these children.
    ///
    /// A coarse coupling is four paths side by side, and each path is a row of resistances: from the centre of one
    /// coarse cell half an inner edge, the edge across, and half an inner edge to the other centre. Equal coefficients c
    /// give 4 c / 2; jumps are averaged as the flow sees them.
    fn coarse_row(&self, cell: IVec3, part: u32, children: &[u32; 8]) -> Fill {
        let mut row = Fill {
            cell,
            part,
            neighbors: [NONE; 6],
            coefficients: [0.0; 6],
            excess: 0.0,
        };
        for (place, &child) in children.iter().enumerate().filter(|c| *c.1 != NONE) {
            let child = child as usize;
            let coefficients = &self.coefficients[child];
            let inside = |side: usize, across: f32| {
                let inner = coefficients[side ^ 1];
                0.5 / if inner > 0.0 { inner } else { across }
            };
            let (sum, count) = coefficients
                .iter()
                .filter(|&&c| c > 0.0)
                .fold((0.0, 0.0), |(sum, count), c| (sum + c, count + 1.0));
            if self.excess[child] > 0.0 {
                row.excess += 1.0 / (1.0 / self.excess[child] + 0.5 * count / sum);
            }
            for axis in 0..3 {
                let side = 2 * axis + (place >> axis & 1);
                let across = coefficients[side];
                if across <= 0.0 {
                    continue;
                }
                let other = self.neighbor(child, side);
                let parent = self.parents[other];
                if parent == NONE {
                    row.excess += 1.0 / (1.0 / across + inside(side, across));
                    continue;
                }
                let beyond = self.coefficients[other][side];
                let beyond = 0.5 / if beyond > 0.0 { beyond } else { across };
                row.neighbors[side] = parent >> 3;
                row.coefficients[side] += 1.0 / ((inside(side, across) + beyond) + 1.0 / across);
            }
        }
        row
    }

    /// Relaxes one colour: solves each of its rows for its own unknown.
    pub fn relax(&mut self, color: Color) {
        let reds = self.reds;
        let (red, black) = self.x.split_at_mut(reds);
        let (start, own, other) = match color {
            Color::Red => (0, red, &*black),
            Color::Black => (reds, black, &*red),
        };
        let other = if other.is_empty() { &[0.0] } else { other };
        let (neighbors, coefficients) = (&self.neighbors[start..], &self.coefficients[start..]);
        let (b, inverse) = (&self.b[start..], &self.inverse[start..]);
        each(own, |i, x| {
            let mut sum = b[i];
            for side in 0..6 {
                sum += coefficients[i][side] * other[neighbors[i][side] as usize];
            }
            *x = sum * inverse[i];
        });
    }

    /// Relaxes the red cells as if all others were zero.
    pub fn start(&mut self) {
        let (b, inverse) = (&self.b, &self.inverse);
        each(&mut self.x[..self.reds], |i, x| *x = b[i] * inverse[i]);
    }

    /// The residual of a red cell.
    fn red_residual(&self, cell: usize) -> f32 {
        let own = self.x[cell];
        let mut sum = self.b[cell] - self.excess[cell] * own;
        let black = &self.x[self.reds..];
        for side in 0..6 {
            let coefficient = self.coefficients[cell][side];
            if coefficient > 0.0 {
                sum += coefficient * (black[self.neighbors[cell][side] as usize] - own);
            }
        }
        sum
    }

    /// Collects the residual of the finer level into b. Its black cells have just been relaxed and have none.
    pub fn restrict(&mut self, fine: &Level) {
        let children = &self.children;
        each(&mut self.corners, |i, corners| {
            for (corner, place) in corners.iter_mut().zip(RED) {
                let child = children[i][place];
                *corner = if child == NONE {
                    0.0
                } else {
                    fine.red_residual(child as usize)
                };
            }
        });
        let mut b = std::mem::take(&mut self.b);
        let level = &*self;
        each(&mut b, |i, b| {
            let mut weights = [1.0f32; 4];
            let mut sum = 0.0;
            for side in 0..6 {
                if level.coefficients[i][side] > 0.0 {
                    let other = &level.corners[level.neighbor(i, side)];
                    sum += other[FACING[side ^ 1][0]] + other[FACING[side ^ 1][1]];
                } else {
                    weights[FACING[side][0]] += 1.0;
                    weights[FACING[side][1]] += 1.0;
                }
            }
            for (corner, weight) in level.corners[i].iter().zip(weights) {
                sum += corner * weight;
            }
            *b = 0.25 * sum;
        });
        self.b = b;
    }

    /// Adds the solution, interpolated, to the red cells of the finer level. Its black cells are relaxed next, which forgets what they hold.
    pub fn prolong(&mut self, fine: &mut Level) {
        let mut corners = std::mem::take(&mut self.corners);
        let level = &*self;
        each(&mut corners, |i, corners| {
            let own = level.x[i];
            *corners = [own; 4];
            for side in 0..6 {
                let value = if level.coefficients[i][side] > 0.0 {
                    level.x[level.neighbor(i, side)]
                } else {
                    own
                };
                corners[FACING[side][0]] += value;
                corners[FACING[side][1]] += value;
            }
        });
        let parents = &fine.parents;
        each(&mut fine.x[..fine.reds], |i, x| {
            let parent = parents[i];
            if parent != NONE {
                let corner = RED_NUMBER[(parent & 7) as usize];
                *x += 0.25 * corners[(parent >> 3) as usize][corner];
            }
        });
        self.corners = corners;
    }

    /// The entry of the matrix, in `f64`.
    pub fn entry(&self, row: usize, column: usize) -> f64 {
        let coefficients = self.coefficients[row].map(f64::from);
        if row == column {
            return f64::from(self.excess[row]) + coefficients.iter().sum::<f64>();
        }
        (0..6)
            .filter(|&side| coefficients[side] > 0.0 && self.neighbor(row, side) == column)
            .map(|side| -coefficients[side])
            .sum()
    }
}

/// One row on its way into a level.
struct Fill {
    cell: IVec3,
    part: u32,
    neighbors: [u32; 6],
    coefficients: [f32; 6],
    excess: f32,
}

/// Numbers cells in the order they come. Cells of different parts are different even at the same place, so parts that do not touch
/// never share a coarse cell.
#[derive(Clone, Debug, Default)]
pub struct CellMap {
    cells: Vec<IVec3>,
    parts: Vec<u32>,
    /// Indices of the cells by colour, and where each cell is among them.
    order: Vec<u32>,
    places: Vec<u32>,
    /// Blocks of 4×4×4 cells, because the next cell is mostly in the block of the last.
    blocks: HashMap<(IVec3, u32), u32>,
    numbers: Vec<[u32; 64]>,
    last: Option<((IVec3, u32), u32)>,
}

impl CellMap {
    fn clear(&mut self) {
        self.cells.clear();
        self.parts.clear();
        self.blocks.clear();
        self.numbers.clear();
        self.last = None;
    }

    /// The number of the cell; the next one if it is new.
    fn insert(&mut self, cell: IVec3, part: u32) -> u32 {
        let block = (cell >> 2, part);
        let slot = match self.last {
            Some((last, slot)) if last == block => slot,
            _ => {
                let numbers = &mut self.numbers;
                *self.blocks.entry(block).or_insert_with(|| {
                    numbers.push([NONE; 64]);
                    numbers.len() as u32 - 1
                })
            }
        };
        self.last = Some((block, slot));
        let within = cell & 3;
        let place = within.x | within.y << 2 | within.z << 4;
        let number = &mut self.numbers[slot as usize][place as usize];
        if *number == NONE {
            *number = self.cells.len() as u32;
            self.cells.push(cell);
            self.parts.push(part);
        }
        *number
    }
}
