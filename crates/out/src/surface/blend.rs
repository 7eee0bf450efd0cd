//! Particles between two frames: for the shutter of a camera, particles are interpolated, not surfaces, so that nothing
//! that moves further than its own width is lost (Zhu & Bridson 2005).

use barchan_sim::state::Particles;

/// The particles at `part` (0..1) of the way from the frame `first` to the next, `second`, in the order of their ids.
///
/// Straight lines: what does not sink into a flat floor at the frames does not sink into it between them. A particle that is
/// only in one of the frames keeps its velocity and is there for the half of the time nearer to that frame. `seconds` is the
/// time between the frames.
pub fn between(first: &Particles, second: &Particles, part: f32, seconds: f32) -> Particles {
    let (one, two) = (by_id(first), by_id(second));
    let mut picked: Vec<(Option<u32>, Option<u32>)> = Vec::with_capacity(one.len().max(two.len()));
    let (mut i, mut j) = (0, 0);
    while i < one.len() || j < two.len() {
        let id = |order: &[u32], at: usize, from: &Particles| {
            order.get(at).map_or(u64::MAX, |k| from.id[*k as usize])
        };
        let (a, b) = (id(&one, i, first), id(&two, j, second));
        // At the end of one list its id is the largest there is.
        let (take_a, take_b) = (a <= b && i < one.len(), b <= a && j < two.len());
        picked.push((take_a.then(|| one[i]), take_b.then(|| two[j])));
        i += usize::from(take_a);
        j += usize::from(take_b);
    }
    picked.retain(|pair| match pair {
        (Some(_), Some(_)) => true,
        (Some(_), None) => part < 0.5,
        _ => part >= 0.5,
    });
    let mut particles = Particles::default();
    particles.resize(picked.len());
    for (to, pair) in picked.iter().enumerate() {
        match *pair {
            (Some(a), Some(b)) => mix(&mut particles, to, (first, a), (second, b), part),
            (Some(a), None) => drift(&mut particles, to, (first, a), part * seconds),
            (None, Some(b)) => drift(&mut particles, to, (second, b), (part - 1.0) * seconds),
            (None, None) => {}
        }
    }
    particles
}

fn by_id(particles: &Particles) -> Vec<u32> {
    let mut order: Vec<u32> = (0..particles.len() as u32).collect();
    order.sort_unstable_by_key(|i| particles.id[*i as usize]);
    order
}

fn mix(to: &mut Particles, at: usize, a: (&Particles, u32), b: (&Particles, u32), part: f32) {
    drift(to, at, if part < 0.5 { a } else { b }, 0.0);
    let ((first, i), (second, j)) = ((a.0, a.1 as usize), (b.0, b.1 as usize));
    to.position[at] = first.position[i].lerp(second.position[j], part);
    to.velocity[at] = first.velocity[i].lerp(second.velocity[j], part);
    to.radius[at] = first.radius[i] + (second.radius[j] - first.radius[i]) * part;
}

/// A copy that has moved on for so many seconds.
fn drift(to: &mut Particles, at: usize, (from, i): (&Particles, u32), seconds: f32) {
    let i = i as usize;
    to.id[at] = from.id[i];
    to.position[at] = from.position[i] + from.velocity[i] * seconds;
    to.velocity[at] = from.velocity[i];
    to.radius[at] = from.radius[i];
    to.mass[at] = from.mass[i];
    to.material[at] = from.material[i];
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3;

    fn particles(ids: &[u64], x: f32) -> Particles {
        let mut particles = Particles::default();
        particles.resize(ids.len());
        particles.id.copy_from_slice(ids);
        particles.position.fill(Vec3::new(x, 0.0, 0.0));
        particles.velocity.fill(Vec3::new(24.0, 0.0, 0.0));
        particles.radius.fill(0.1);
        particles
    }

    #[test]
    fn particles_meet_by_id_and_go_straight() {
        let (first, second) = (particles(&[3, 1, 2], 0.0), particles(&[1, 3, 7], 1.0));
        let early = between(&first, &second, 0.25, 1.0 / 24.0);
        assert_eq!(early.id, [1, 2, 3]);
        assert!(early.position.iter().all(|p| (p.x - 0.25).abs() < 1e-6));
        let late = between(&first, &second, 0.75, 1.0 / 24.0);
        assert_eq!(late.id, [1, 3, 7]);
        assert!(late.position.iter().all(|p| (p.x - 0.75).abs() < 1e-6));
    }

    #[test]
    fn the_ends_are_the_frames() {
        let (first, second) = (particles(&[1, 2], 0.0), particles(&[2, 3], 1.0));
        assert_eq!(between(&first, &second, 0.0, 0.1), first);
        assert_eq!(between(&first, &second, 1.0, 0.1), second);
        let empty = Particles::default();
        assert!(between(&empty, &empty, 0.5, 0.1).is_empty());
    }
}
