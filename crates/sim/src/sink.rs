//! Sinks, and the quarantine: particles that leave, counted, their ids never given again.

use crate::clock::Step;
use crate::model::Model;
use crate::state::State;
use barchan_base::parallel::chunks;
use rayon::prelude::*;

/// Removes the particles inside sinks at the end of the step; returns how many.
pub fn drain(model: &Model, state: &mut State, step: &Step) -> u64 {
    let active =
        |sink: &crate::model::Sink| step.end > sink.active.from && step.end <= sink.active.until;
    let mut removed = 0;
    for (index, sink) in model
        .sinks
        .iter()
        .enumerate()
        .filter(|(_, sink)| active(sink))
    {
        let positions = &state.particles.position;
        let keep: Vec<bool> = chunks(positions.len())
            .flat_map_iter(|range| {
                positions[range]
                    .iter()
                    .map(|point| !sink.shape.contains(*point))
            })
            .collect();
        let gone: Vec<usize> = keep
            .iter()
            .enumerate()
            .filter(|(_, keep)| !**keep)
            .map(|(i, _)| i)
            .collect();
        if gone.is_empty() {
            continue;
        }
        let sunk = &mut state.tally.sunk[index];
        sunk.particles += gone.len() as u64;
        sunk.mass += gone
            .iter()
            .map(|i| f64::from(state.particles.mass[*i]))
            .sum::<f64>();
        removed += gone.len() as u64;
        state.particles.retain(&keep);
    }
    removed
}

/// Takes out the particles at `lost` (increasing indices); returns their ids.
pub fn quarantine(state: &mut State, lost: &[usize]) -> Vec<u64> {
    if lost.is_empty() {
        return Vec::new();
    }
    let mut keep = vec![true; state.particles.len()];
    for &index in lost {
        keep[index] = false;
    }
    let ids = lost
        .iter()
        .map(|index| state.particles.id[*index])
        .collect();
    state.particles.retain(&keep);
    state.tally.quarantined += lost.len() as u64;
    ids
}
