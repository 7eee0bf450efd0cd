//! Grains spread on a surface: the frames of a run with crowded grains moved apart. `docs/spread.md` explains.

use crate::cache::{Frame, FrameError, RunFolder, write_frame};
use crate::detail::Walls;
use crate::surface::{Points, Settings as SurfaceSettings, SurfaceError, build};
use barchan_base::mesh::Mesh;
use barchan_base::spread::{
    self, Bound, Detail, Faces, FacesError, Lattice, NONE, Net, Report, Rule, STEEPEST, SpreadError,
};
use barchan_sim::atomic;
use barchan_sim::body::SequenceError;
use barchan_sim::model::Model;
use barchan_sim::scene::{Compression, SpreadDoc, SpreadRule};
use barchan_sim::solids::Solid;
use glam::{Vec2, Vec3};
use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// Width of a face, in spacings, if nobody says: sixteen grains fit on it.
const CELL: f32 = 4.0;

/// The most cells along an axis.
const MOST_CELLS: f32 = 20_000.0;

/// How often a grain's distance is mended.
const LIFTS: u32 = 6;

/// What grains are spread on.
#[derive(Clone, Debug)]
pub enum On<'a> {
    /// The solids of a model, where the frame has them.
    Bodies(&'a Model),
    /// The surface around all particles.
    Material,
    /// A mesh of one's own.
    Mesh(&'a Mesh),
}

/// What became of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Faces that look up, and how many of them are triangles.
    pub faces: usize,
    /// Triangles among them.
    pub triangles: usize,
    /// What was done.
    pub report: Report,
}

/// Why grains of a frame are not spread.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// There is nothing to spread on.
    #[error("frame {0}: {1}")]
    Faces(u32, FacesError),
    /// What is asked for makes no sense.
    #[error("frame {0}: {1}")]
    Spread(u32, SpreadError),
    /// No grain has a size.
    #[error("frame {0}: no particle has a place and a radius, so nothing can be counted")]
    Nothing(u32),
    /// Cells too small for the space.
    #[error(
        "frame {0}: {1:.0} cells of {2} m along an axis are more than {MOST_CELLS}; choose a larger cell"
    )]
    TooFine(u32, f32, f32),
    /// The material has no surface.
    #[error("frame {0}: {1}")]
    Surface(u32, SurfaceError),
    /// A body cannot be placed.
    #[error("a body cannot be placed: {0}")]
    Body(#[from] SequenceError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Lengths that one frame is worked with [m].
struct Scale {
    spacing: f32,
    cell: f32,
    reach: f32,
    low: Vec3,
    high: Vec3,
}

/// Spreads the grains of frame `number` of `from` on a surface and writes the frame to the folder `to`.
///
/// # Errors
/// If the frame cannot be read or written, or there is nothing to spread on.
pub fn frame(
    from: &RunFolder,
    number: u32,
    on: &On<'_>,
    doc: &SpreadDoc,
    to: &Path,
) -> Result<Made, StageError> {
    let mut frame = from.read_frame(number)?;
    let scale = Scale::of(&frame, doc).ok_or(StageError::Nothing(number))?;
    let size = (scale.high - scale.low).max_element() / scale.cell;
    if size.is_nan() || size > MOST_CELLS {
        return Err(StageError::TooFine(number, size, scale.cell));
    }
    let mut walls = Walls::default();
    if let On::Bodies(model) = on {
        walls.place_at(model, &frame.meta)?;
    }
    let solids = walls.solids.all();
    let faces = faces(&frame, (on, solids), doc, &scale)?;
    let settings = spread::Settings {
        bound: match &doc.max_per_face {
            Some(count) => Bound::PerFace(count.si as f32),
            None => Bound::Spacing(scale.spacing),
        },
        rule: match doc.rule {
            SpreadRule::Transport => Rule::Transport,
            SpreadRule::Metaballs => Rule::Metaballs,
        },
        reach: scale.reach,
        passes: doc.passes.0 as u32,
        ..spread::Settings::default()
    };
    let before = frame.particles.position.clone();
    let report = spread::spread(&faces, &mut frame.particles.position, &settings)
        .map_err(|error| StageError::Spread(number, error))?;
    if let On::Bodies(_) = on {
        let moved = before.par_iter().zip(&mut frame.particles.position);
        moved
            .filter(|(from, to)| from.is_finite() && from != to)
            .for_each(|(from, to)| lift(solids, *from, to));
    }
    write(&frame, &to.join(format!("frames/{number:06}.arrow")))?;
    Ok(Made {
        faces: faces.len(),
        triangles: faces.triangles(),
        report,
    })
}

fn write(frame: &Frame, path: &Path) -> Result<(), StageError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| {
            atomic::write(path, |file| {
                write_frame(file, &frame.meta, &frame.particles, Compression::None)
            })
        })
        .map_err(|source| StageError::Write {
            path: path.to_owned(),
            source,
        })
}

impl Scale {
    fn of(frame: &Frame, doc: &SpreadDoc) -> Option<Self> {
        let particles = &frame.particles;
        let usable = || {
            let both = particles.position.iter().zip(&particles.radius);
            both.filter(|(p, r)| p.is_finite() && r.is_finite() && **r > 0.0)
        };
        let count = usable().count();
        if count == 0 {
            return None;
        }
        let mean = usable().map(|(_, r)| f64::from(*r)).sum::<f64>() / count as f64;
        let si = |length: f64| length as f32;
        let spacing = doc.spacing.as_ref().map_or(2.0 * mean as f32, |s| si(s.si));
        let cell = doc.cell.as_ref().map_or(CELL * spacing, |c| si(c.si));
        let reach = doc.reach.as_ref().map_or(cell, |r| si(r.si));
        let low = usable().fold(Vec3::INFINITY, |low, (p, _)| low.min(*p));
        let high = usable().fold(Vec3::NEG_INFINITY, |high, (p, _)| high.max(*p));
        // Room to spread into, on all sides: as much as the grains fill when they lie side by side.
        let room = (count as f32).sqrt() * spacing + reach + 2.0 * cell;
        Some(Self {
            spacing,
            cell,
            reach,
            low: low - room,
            high: high + room,
        })
    }
}

/// The faces of a surface that look up.
fn faces(
    frame: &Frame,
    (on, all): (&On<'_>, &[Solid]),
    doc: &SpreadDoc,
    scale: &Scale,
) -> Result<Faces, StageError> {
    let number = frame.meta.frame;
    let up = frame.meta.up;
    let upward = |vertices: &[Vec3], corners: &[[u32; 4]]| {
        Faces::new(up, vertices, corners, STEEPEST).map_err(|e| StageError::Faces(number, e))
    };
    let triangles = |all: &[[u32; 3]]| -> Vec<[u32; 4]> {
        all.iter().map(|t| [t[0], t[1], t[2], NONE]).collect()
    };
    match on {
        On::Mesh(mesh) => upward(mesh.vertices(), &triangles(mesh.triangles())),
        On::Material => {
            let particles = &frame.particles;
            let points = Points {
                positions: &particles.position,
                radii: &particles.radius,
                ..Points::default()
            };
            let settings = SurfaceSettings {
                cell: Some(f64::from(scale.cell)),
                ..SurfaceSettings::default()
            };
            let surface = build(&points, &settings).map_err(|e| StageError::Surface(number, e))?;
            upward(&surface.mesh.positions, &triangles(&surface.mesh.triangles))
        }
        On::Bodies(_) => {
            let net = net(all, up, scale).map_err(|e| StageError::Faces(number, e))?;
            let faces = upward(&net.vertices, &net.corners)?;
            if !doc.refine {
                return Ok(faces);
            }
            let dense = crowded(&faces, &frame.particles.position, scale);
            let fine = Net::refined(&faces, |face| dense[face], |at| onto(all, at).0);
            upward(&fine.vertices, &fine.corners)
        }
    }
}

/// The surface of solids, with vertices on its steep edges.
fn net(solids: &[Solid], up: Vec3, scale: &Scale) -> Result<Net, FacesError> {
    let lattice = Lattice::covering(scale.low, scale.high, scale.cell);
    let net = Net::new(&lattice, |node| nearest(solids, lattice.place(node)).0);
    net.detailed(up, &Detail::default(), |at| onto(solids, at))
}

/// The distance of the nearest solid, and which it is.
fn nearest(solids: &[Solid], at: Vec3) -> (f32, usize) {
    let distances = solids.iter().map(|solid| solid.distance(at));
    let closer = |a: (f32, usize), b: (f32, usize)| if b.0 < a.0 { b } else { a };
    distances.zip(0..).fold((f32::INFINITY, 0), closer)
}

/// The point of the solids' surface near `at`, and the normal there.
fn onto(solids: &[Solid], at: Vec3) -> (Vec3, Vec3) {
    let mut point = at;
    let mut normal = Vec3::Y;
    // Twice: distances of scaled and joined shapes may fall short.
    for _ in 0..2 {
        let (_, solid) = nearest(solids, point);
        let contact = solids[solid].contact(point);
        normal = contact.normal;
        point -= normal * contact.distance;
    }
    (point, normal)
}

/// Lifts or sinks a grain that moved to where it is as far from the solids as it was: faces are flat, solids need not be.
fn lift(solids: &[Solid], from: Vec3, to: &mut Vec3) {
    let (wanted, _) = nearest(solids, from);
    for _ in 0..LIFTS {
        let (_, solid) = nearest(solids, *to);
        let contact = solids[solid].contact(*to);
        *to += contact.normal * (wanted - contact.distance);
    }
}

/// Faces that hold more points than fit on them.
fn crowded(faces: &Faces, points: &[Vec3], scale: &Scale) -> Vec<bool> {
    let counts = spread::counts(faces, points, scale.reach);
    let most = |face: usize| faces.areas()[face] / Vec2::splat(scale.spacing).element_product();
    (0..faces.len())
        .map(|face| counts[face] as f32 > most(face))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{FrameMeta, read_frame};
    use barchan_sim::scene::{self, Asked};
    use barchan_sim::solids::BodyPlace;
    use barchan_sim::state::Particles;

    const SCENE: &str = "schema = 1\nframes = 1\n[solver]\nmethod = \"ballistic\"\nresolution = 0.1\n[materials.sand]\npreset = \"dry-sand\"\n\
                         [[fill]]\nmaterial = \"sand\"\nshape = { box = { size = [1, 1, 1], at = [5, 0, 0] } }\n\
                         [[body]]\nname = \"table\"\nmotion = \"dynamic\"\ndensity = 1000\n\
                         shape = { box = { size = [1, 0.2, 1], at = [0, 5, 0] } }\n";

    #[test]
    fn grains_are_spread_on_a_dynamic_body_where_the_frame_has_it() {
        let place = tempfile::tempdir().expect("a folder");
        let frames = place.path().join("frames");
        std::fs::create_dir(&frames).expect("room");
        let scene = scene::parse(SCENE, "s.toml".as_ref(), &[]).expect("a scene");
        let mut meta = FrameMeta::of(&scene, 0);
        meta.bodies = vec![BodyPlace {
            name: "table".into(),
            motion: "dynamic".into(),
            position: [0.0, -4.0, 0.0],
            rotation: [0.0, 0.0, 0.0, 1.0],
            center: [0.0, 1.0, 0.0],
            velocity: [0.0; 3],
            spin: [0.0; 3],
        }];
        // All in one heap on the table, which has come down to a height of one.
        let mut particles = Particles::default();
        particles.resize(200);
        for i in 0..200u16 {
            let part = f32::from(i) / 200.0;
            particles.position[usize::from(i)] = Vec3::new(0.01 * part, 1.11, 0.01 - 0.01 * part);
        }
        particles.radius.fill(0.01);
        let file = std::fs::File::create(frames.join("000000.arrow")).expect("room");
        write_frame(file, &meta, &particles, Compression::None).expect("room");
        let run = RunFolder::open(place.path()).expect("a run");
        let doc = Asked::default().spread().expect("settings");
        let to = place.path().join("to");
        let made = frame(&run, 0, &On::Bodies(&scene.model), &doc, &to).expect("a table");
        assert!(made.faces > 0);
        let spread = read_frame(&to.join("frames/000000.arrow")).expect("whole");
        let far = spread.particles.position.iter().map(|p| p.x.hypot(p.z));
        assert!(far.fold(0.0, f32::max) > 0.1, "nothing was spread");
    }
}
