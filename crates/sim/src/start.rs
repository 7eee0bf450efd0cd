//! The state at time zero: every fill seeded with particles.

use crate::body::SequenceError;
use crate::clock::Clock;
use crate::grain::{Grain, ORIENTATION, orientation};
use crate::model::{Fill, Model};
use crate::solids::Solids;
use crate::state::{Particles, State, Sunk, Tally};
use barchan_base::column::{Column, ColumnSpec};
use barchan_base::random::Random;
use barchan_base::sampling::{self, FillError, Layout};
use glam::{Vec3, Vec4};

/// Why a run cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A fill cannot be seeded.
    #[error("fill.{index}: {source}")]
    Fill {
        /// Index of the fill, from 0.
        index: usize,
        /// What is wrong.
        source: FillError,
    },
    /// A mesh sequence cannot be used.
    #[error(transparent)]
    Sequence(#[from] SequenceError),
}

/// Streams of random numbers, one for each use.
pub(crate) const FILL_STREAM: u64 = 1 << 32;
const NUDGE_STREAM: u64 = 6 << 32;
pub(crate) const EMIT_STREAM: u64 = 2 << 32;

/// A new particle's common properties.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    /// Where.
    pub position: Vec3,
    /// How fast.
    pub velocity: Vec3,
    /// Index of the material.
    pub material: usize,
}

/// Adds particles, with fresh ids; solver columns begin at zero.
pub fn add(
    model: &Model,
    particles: &mut Particles,
    tally: &mut Tally,
    births: impl ExactSizeIterator<Item = Birth>,
) {
    let old = particles.len();
    let radius = model.particle_radius();
    let masses: Vec<f32> = (0..model.materials.len())
        .map(|m| model.particle_mass(m) as f32)
        .collect();
    particles.resize(old + births.len());
    for (i, birth) in (old..).zip(births) {
        particles.id[i] = tally.next_id;
        tally.next_id += 1;
        particles.position[i] = birth.position;
        particles.velocity[i] = birth.velocity;
        particles.radius[i] = radius;
        particles.mass[i] = masses[birth.material];
        particles.material[i] = birth.material as u16;
    }
    if !model.grains.is_empty() {
        shape_grains(model, particles, old);
    }
    turn_grains(model, particles, old);
}

/// Places in a fill for grains that do not overlap and lie wholly inside.
fn whole_grains(
    fill: &Fill,
    grain: &Grain,
    spacing: f32,
    random: Random,
) -> Result<Vec<Vec3>, FillError> {
    let apart = match fill.layout {
        Layout::BlueNoise => spacing / sampling::DISK,
        _ => spacing,
    };
    let mut points = sampling::fill(&fill.shape, apart, fill.layout, random)?;
    let radius = 0.5 * grain.largest() as f32;
    points.retain(|point| fill.shape.distance(*point) <= -radius);
    Ok(points)
}

/// Gives the particles from `first` on the size and mass of single grains.
fn shape_grains(model: &Model, particles: &mut Particles, first: usize) {
    for i in first..particles.len() {
        let (id, material) = (particles.id[i], particles.material[i] as usize);
        let grain = &model.grains[material];
        let radius = grain.radius(model.seed, id);
        particles.radius[i] = radius;
        particles.mass[i] = grain.mass(radius, model.materials[material].grain_density) as f32;
    }
}

/// Turns the particles from `first` on, each in a way of its own, where the method turns them.
fn turn_grains(model: &Model, particles: &mut Particles, first: usize) {
    let ids = &particles.id;
    let turns = particles.extra.iter_mut().find(|c| c.spec == ORIENTATION);
    if let Some(turns) = turns {
        let turns = turns.entries_mut::<Vec4>();
        for (turn, id) in turns[first..].iter_mut().zip(&ids[first..]) {
            *turn = Vec4::from_array(orientation(model.seed, *id).to_array());
        }
    }
}

/// Moves grains on a lattice, from `first` on, aside as far as their own cells have room: in columns to the last bit they
/// would stand as no grains do.
fn nudge(model: &Model, particles: &mut Particles, first: usize) {
    let random = Random::new(model.seed, NUDGE_STREAM);
    for i in first..particles.len() {
        let room = (0.5 * model.spacing - particles.radius[i]).max(0.0) / 3f32.sqrt();
        let id = particles.id[i];
        let aside = [0, 1, 2].map(|lane| 2.0 * random.uniform(id, lane) - 1.0);
        particles.position[i] += Vec3::from(aside) * room;
    }
}

/// The state at time zero.
///
/// # Errors
/// If a fill is unbounded or too large, or a mesh sequence cannot be used.
pub fn start(model: &Model, fps: f64, columns: &[ColumnSpec]) -> Result<State, StartError> {
    let mut particles = Particles {
        extra: columns.iter().map(|spec| Column::zeros(*spec, 0)).collect(),
        ..Default::default()
    };
    let mut tally = Tally {
        emitted: vec![0; model.emitters.len()],
        sunk: vec![Sunk::default(); model.sinks.len()],
        ..Default::default()
    };
    for (index, fill) in model.fills.iter().enumerate() {
        let random = Random::new(model.seed, FILL_STREAM + index as u64);
        let points = match model.grains.get(fill.material) {
            None => sampling::fill(&fill.shape, model.spacing, fill.layout, random),
            Some(grain) => whole_grains(fill, grain, model.spacing, random),
        };
        let points = points.map_err(|source| StartError::Fill { index, source })?;
        let births = points.into_iter().map(|position| Birth {
            position,
            velocity: fill.velocity,
            material: fill.material,
        });
        let first = particles.len();
        add(model, &mut particles, &mut tally, births);
        if !model.grains.is_empty() && fill.layout == Layout::Lattice {
            nudge(model, &mut particles, first);
        }
    }
    let mut solids = Solids::default();
    solids.place(model, 0.0, 0.0)?;
    Ok(State {
        clock: Clock::new(fps),
        particles,
        tally,
        memory: Vec::new(),
        solids,
    })
}
