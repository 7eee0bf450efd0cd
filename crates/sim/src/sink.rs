//! Sinks, and the quarantine: particles that leave, counted, their ids never given again.

use crate::clock::Step;
use crate::model::Model;
use crate::state::State;
use barchan_base::parallel::chunks;
use rayon::prelude::*;

/// Removes the particles that are inside sinks at the end of the step, those that work during a part of it included; returns
/// how many.
pub fn drain(model: &Model, state: &mut State, step: &Step) -> u64 {
    let active =
        |sink: &crate::model::Sink| step.end > sink.active.from && step.start < sink.active.until;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene;
    use std::path::Path;

    #[test]
    fn a_sink_acts_in_every_step_that_it_shares_a_moment_with() {
        let text = |from: f64, until: f64| {
            format!(
                "schema = 1\nframes = 1\n[solver]\nmethod = \"ballistic\"\nresolution = 0.1\n[materials.sand]\n\
                 [[fill]]\nmaterial = \"sand\"\nshape = {{ sphere = {{ radius = 0.3 }} }}\n\
                 [[sink]]\nshape = {{ sphere = {{ radius = 1 }} }}\nfrom = {from}\nuntil = {until}\n"
            )
        };
        let step = Step {
            ticks: 1,
            start: 1.0,
            end: 2.0,
            dt: 1.0,
        };
        for (from, until, acts) in [
            (0.0, 1.5, true),
            (1.2, 1.3, true),
            (0.0, 9.0, true),
            (0.0, 1.0, false),
            (2.0, 3.0, false),
        ] {
            let scene = scene::parse(&text(from, until), Path::new("s.toml"), &[]).unwrap();
            let mut state = crate::start::start(&scene.model, 24.0, &[]).unwrap();
            let removed = drain(&scene.model, &mut state, &step);
            assert_eq!(removed > 0, acts, "from {from} until {until}");
        }
    }
}
