//! Checkpoints: the whole state, checksummed, to the bit.
//!
//! A file is a magic word and a version, then blocks. A block is the length of its data before compression, after it,
//! an xxh3 checksum of the compressed bytes, and those bytes (zstd). The first block is the header, in postcard; the
//! coupling and the columns follow in blocks of at most a mebibyte each; an end word closes the file.

use crate::clock::{Clock, TICKS_PER_FRAME};
use crate::scene::Scene;
use crate::solids::Solids;
use crate::state::{Particles, State, Tally};
use barchan_base::column::{AnyColumn, Column, ColumnSpec, Entry};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"barchan\x01";
const END: &[u8; 8] = b"\x02nahcrab";
/// Changed whenever a file written before could no longer be understood.
const VERSION: u32 = 4;
/// Bytes in a block of a column before compression.
const BLOCK: usize = 1 << 20;
/// The header is small; a larger one is damage.
const MOST_HEADER: usize = 1 << 26;
/// Fast: floats hardly compress, zeros and ids do.
const ZSTD_LEVEL: i32 = 1;

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Another kind of file.
    #[error("it is not a Barchan checkpoint")]
    Magic,
    /// Written by another version.
    #[error("it has format {found}, this version of Barchan reads format {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
    /// Cut short or altered.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// Of another scene.
    #[error("it belongs to another scene")]
    OtherScene,
}

#[derive(Serialize, Deserialize)]
struct Header {
    scene: u128,
    clock: Clock,
    tally: Tally,
    particles: u64,
    /// Bytes that the coupling saved.
    coupling: u64,
    /// Name and kind of each column.
    columns: Vec<(String, String)>,
    /// Name, kind and length of each column of the solver's memory.
    memory: Vec<(String, String, u64)>,
}

/// Writes the state of the run of `scene` and what its coupling saved.
///
/// # Errors
/// What the disk says, or if there are more counts than a header holds.
pub fn write(
    to: &mut impl Write,
    scene: u128,
    (clock, tally, particles, memory): (&Clock, &Tally, &Particles, &[Column]),
    coupling: &[u8],
) -> io::Result<()> {
    let columns = particles.raw();
    let header = Header {
        scene,
        clock: *clock,
        tally: tally.clone(),
        particles: particles.len() as u64,
        coupling: coupling.len() as u64,
        columns: columns
            .iter()
            .map(|(spec, _)| (spec.name.to_owned(), spec.kind.name().to_owned()))
            .collect(),
        memory: memory
            .iter()
            .map(|column| {
                let ColumnSpec { name, kind, .. } = column.spec;
                (name.to_owned(), kind.name().to_owned(), column.len() as u64)
            })
            .collect(),
    };
    to.write_all(MAGIC)?;
    to.write_all(&VERSION.to_le_bytes())?;
    let header = postcard::to_stdvec(&header).map_err(io::Error::other)?;
    if header.len() > MOST_HEADER {
        return Err(io::Error::other("nobody could read so large a header"));
    }
    write_block(to, &header)?;
    let columns = columns.into_iter().map(|(_, bytes)| bytes);
    let remembered = memory.iter().map(Column::bytes);
    for bytes in std::iter::once(coupling).chain(columns).chain(remembered) {
        for block in bytes.chunks(BLOCK) {
            write_block(to, block)?;
        }
    }
    to.write_all(END)
}

fn write_block(to: &mut impl Write, data: &[u8]) -> io::Result<()> {
    let packed = zstd::bulk::compress(data, ZSTD_LEVEL)?;
    to.write_all(&(data.len() as u32).to_le_bytes())?;
    to.write_all(&(packed.len() as u32).to_le_bytes())?;
    to.write_all(&xxh3_64(&packed).to_le_bytes())?;
    to.write_all(&packed)
}

/// Reads a checkpoint of the run of `scene`; `extra` are the solver's own columns, `memory` those of its memory. Returns
/// the state, its solids not yet placed, and what the coupling saved.
///
/// # Errors
/// If the file is not a whole, undamaged checkpoint of this scene.
pub fn read(
    from: &mut impl Read,
    scene: &Scene,
    (extra, memory): (&[ColumnSpec], &[ColumnSpec]),
) -> Result<(State, Vec<u8>), CheckpointError> {
    let mut magic = [0; 8];
    read_exactly(from, &mut magic)?;
    if &magic != MAGIC {
        return Err(CheckpointError::Magic);
    }
    let found = read_u32(from)?;
    if found != VERSION {
        return Err(CheckpointError::Version { found });
    }
    let header = read_block(from, MOST_HEADER)?;
    let header: Header = postcard::from_bytes(&header)
        .map_err(|_| CheckpointError::Damaged("its header makes no sense"))?;
    if header.scene != scene.identity {
        return Err(CheckpointError::OtherScene);
    }
    let expected = Particles::COLUMNS.iter().chain(extra);
    let matches = |((name, kind), spec): (&(String, String), &ColumnSpec)| {
        name == spec.name && kind == spec.kind.name()
    };
    if header.columns.len() != Particles::COLUMNS.len() + extra.len()
        || !header.columns.iter().zip(expected).all(matches)
    {
        return Err(CheckpointError::Damaged(
            "its columns are not those of this solver",
        ));
    }
    check_counts(&header, scene)?;
    let coupling = read_bytes(from, header.coupling, 1)?;
    let particles = read_particles(from, header.particles, extra)?;
    let materials = scene.model.materials.len();
    if particles
        .material
        .iter()
        .any(|m| usize::from(*m) >= materials)
    {
        return Err(CheckpointError::Damaged("a material is not of this scene"));
    }
    let memory = read_memory(from, &header.memory, memory)?;
    let mut end = [0; 8];
    read_exactly(from, &mut end)?;
    if &end != END {
        return Err(CheckpointError::Damaged("its end is missing"));
    }
    let state = State {
        clock: header.clock,
        particles,
        tally: header.tally,
        memory,
        solids: Solids::default(),
    };
    Ok((state, coupling))
}

/// What the header counts must be what the scene has.
fn check_counts(header: &Header, scene: &Scene) -> Result<(), CheckpointError> {
    let (clock, tally) = (&header.clock, &header.tally);
    if clock.fps.to_bits() != scene.fps.to_bits() || clock.tick >= TICKS_PER_FRAME {
        return Err(CheckpointError::Damaged("its clock makes no sense"));
    }
    let (emitters, sinks) = (scene.model.emitters.len(), scene.model.sinks.len());
    if tally.emitted.len() != emitters || tally.sunk.len() != sinks {
        return Err(CheckpointError::Damaged(
            "its emitters and sinks are not those of this scene",
        ));
    }
    Ok(())
}

fn read_particles(
    from: &mut impl Read,
    count: u64,
    extra: &[ColumnSpec],
) -> Result<Particles, CheckpointError> {
    Ok(Particles {
        id: read_column(from, count)?,
        position: read_column(from, count)?,
        velocity: read_column(from, count)?,
        radius: read_column(from, count)?,
        mass: read_column(from, count)?,
        material: read_column(from, count)?,
        wetness: read_column(from, count)?,
        extra: extra
            .iter()
            .map(|spec| read_extra(from, *spec, count))
            .collect::<Result<_, _>>()?,
    })
}

/// The solver's memory: none, or all of its columns.
fn read_memory(
    from: &mut impl Read,
    found: &[(String, String, u64)],
    expected: &[ColumnSpec],
) -> Result<Vec<Column>, CheckpointError> {
    let matches = |((name, kind, _), spec): (&(String, String, u64), &ColumnSpec)| {
        name == spec.name && kind == spec.kind.name()
    };
    if !found.is_empty()
        && (found.len() != expected.len() || !found.iter().zip(expected).all(matches))
    {
        return Err(CheckpointError::Damaged(
            "its memory is not that of this solver",
        ));
    }
    found
        .iter()
        .zip(expected)
        .map(|((_, _, count), spec)| read_extra(from, *spec, *count))
        .collect()
}

fn read_column<T: Entry>(from: &mut impl Read, count: u64) -> Result<Vec<T>, CheckpointError> {
    let bytes = read_bytes(from, count, size_of::<T>())?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}

fn read_extra(
    from: &mut impl Read,
    spec: ColumnSpec,
    count: u64,
) -> Result<Column, CheckpointError> {
    let bytes = read_bytes(from, count, spec.kind.size())?;
    let mut column = Column::zeros(spec, 0);
    column.resize_to(count as usize);
    column.bytes_mut().copy_from_slice(&bytes);
    Ok(column)
}

/// Reads a column block by block: a header that promises too much runs into the end of the file, not out of memory.
fn read_bytes(from: &mut impl Read, count: u64, size: usize) -> Result<Vec<u8>, CheckpointError> {
    let total = count
        .checked_mul(size as u64)
        .ok_or(CheckpointError::Damaged("its size makes no sense"))?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < total {
        let block = read_block(from, BLOCK)?;
        if block.is_empty() || (bytes.len() + block.len()) as u64 > total {
            return Err(CheckpointError::Damaged("a column has the wrong length"));
        }
        bytes.extend(block);
    }
    Ok(bytes)
}

fn read_block(from: &mut impl Read, most: usize) -> Result<Vec<u8>, CheckpointError> {
    let (length, packed_length) = (read_u32(from)? as usize, read_u32(from)? as usize);
    if length > most || packed_length > zstd::zstd_safe::compress_bound(most) {
        return Err(CheckpointError::Damaged("a block has an impossible length"));
    }
    let mut checksum = [0; 8];
    read_exactly(from, &mut checksum)?;
    let mut packed = Vec::new();
    from.take(packed_length as u64).read_to_end(&mut packed)?;
    if packed.len() < packed_length {
        return Err(CheckpointError::Damaged("it ends too early"));
    }
    if xxh3_64(&packed).to_le_bytes() != checksum {
        return Err(CheckpointError::Damaged("a checksum does not match"));
    }
    let data = zstd::bulk::decompress(&packed, length)
        .map_err(|_| CheckpointError::Damaged("a block does not unpack"))?;
    if data.len() != length {
        return Err(CheckpointError::Damaged("a block has the wrong length"));
    }
    Ok(data)
}

fn read_u32(from: &mut impl Read) -> Result<u32, CheckpointError> {
    let mut bytes = [0; 4];
    read_exactly(from, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_exactly(from: &mut impl Read, bytes: &mut [u8]) -> Result<(), CheckpointError> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CheckpointError::Damaged("it ends too early"),
        _ => CheckpointError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene;
    use barchan_base::column::Kind;
    use glam::Vec3;
    use std::path::Path;

    const HEAT: ColumnSpec = ColumnSpec::new("heat", "K", Kind::F32);

    const HEATED: (&[ColumnSpec], &[ColumnSpec]) = (&[HEAT], &[HEAT]);

    /// One material and two emitters.
    fn scene() -> Scene {
        let emit = "[[emit]]\nmaterial = \"sand\"\nshape = { sphere = { radius = 1 } }\nrate = 1\n";
        let text = "schema = 1\nframes = 1\n[solver]\nmethod = \"ballistic\"\nresolution = 1\n[materials.sand]\n";
        let text = text.to_owned() + emit + emit;
        let mut scene = scene::parse(&text, Path::new("s.toml"), &[]).unwrap();
        scene.identity = 42;
        scene
    }

    fn sample(count: usize) -> State {
        let mut particles = Particles {
            extra: vec![Column::zeros(HEAT, 0)],
            ..Default::default()
        };
        particles.resize(count);
        for i in 0..count {
            particles.id[i] = i as u64 * 3;
            particles.position[i] = Vec3::new(i as f32, -0.0, f32::MIN_POSITIVE);
            particles.extra[0].set(i, i as f32 * 0.1);
        }
        let mut clock = Clock::new(24.0);
        clock.frame = 7;
        clock.tick = 12345;
        State {
            clock,
            particles,
            tally: Tally {
                next_id: 99,
                emitted: vec![4, 5],
                ..Default::default()
            },
            memory: vec![Column::zeros(HEAT, 17)],
            solids: Solids::default(),
        }
    }

    fn bytes(state: &State) -> Vec<u8> {
        bytes_with(state, b"world")
    }

    fn bytes_with(state: &State, coupling: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let parts = (
            &state.clock,
            &state.tally,
            &state.particles,
            state.memory.as_slice(),
        );
        write(&mut bytes, 42, parts, coupling).unwrap();
        bytes
    }

    #[test]
    fn a_coupling_may_be_larger_than_a_header() {
        let coupling = vec![7; MOST_HEADER + 5];
        let whole = bytes_with(&sample(3), &coupling);
        let (_, found) = read(&mut whole.as_slice(), &scene(), HEATED).unwrap();
        assert!(found == coupling);
    }

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit() {
        for count in [0, 1, 100_000] {
            let state = sample(count);
            let (found, coupling) = read(&mut bytes(&state).as_slice(), &scene(), HEATED).unwrap();
            assert_eq!(found.particles, state.particles);
            assert_eq!(found.memory, state.memory);
            assert_eq!((found.clock, found.tally), (state.clock, state.tally));
            assert_eq!(coupling, b"world");
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let whole = bytes(&sample(500));
        let scene = scene();
        for cut in [0, 5, 12, 30, whole.len() / 2, whole.len() - 1] {
            assert!(
                read(&mut &whole[..cut], &scene, HEATED).is_err(),
                "cut at {cut}"
            );
        }
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(
                read(&mut damaged.as_slice(), &scene, HEATED).is_err(),
                "byte {at}"
            );
        }
        let mut other = scene.clone();
        other.identity = 43;
        assert!(matches!(
            read(&mut whole.as_slice(), &other, HEATED),
            Err(CheckpointError::OtherScene)
        ));
        assert!(read(&mut whole.as_slice(), &scene, (&[], &[])).is_err());
    }

    #[test]
    fn what_is_not_of_the_scene_is_refused_however_well_it_is_summed() {
        let refused = |change: &dyn Fn(&mut State)| {
            let mut state = sample(5);
            change(&mut state);
            read(&mut bytes(&state).as_slice(), &scene(), HEATED).is_err()
        };
        assert!(!refused(&|_| {}));
        assert!(refused(&|state| state.clock.fps = 25.0));
        assert!(refused(&|state| state.clock.tick = 1 << 32));
        assert!(refused(&|state| state.tally.emitted.truncate(1)));
        assert!(refused(&|state| state.tally.sunk.push(Default::default())));
        assert!(refused(&|state| state.particles.material[3] = 1));
    }

    #[test]
    fn hostile_checkpoints_do_not_panic() {
        let (whole, scene) = (bytes(&sample(50)), scene());
        bolero::check!()
            .with_iterations(3000)
            .with_type::<(Vec<(u16, u8)>, u16, Vec<u8>)>()
            .for_each(|(edits, cut, noise)| {
                let mut damaged = whole.clone();
                for (at, value) in edits {
                    let at = *at as usize % damaged.len();
                    damaged[at] = *value;
                }
                damaged.truncate(damaged.len() - *cut as usize % damaged.len() / 2);
                let _ = read(&mut damaged.as_slice(), &scene, HEATED);
                let _ = read(&mut noise.as_slice(), &scene, HEATED);
                // Past the magic word, so that the blocks themselves are tried.
                let mut after = whole[..12].to_vec();
                after.extend(noise);
                let _ = read(&mut after.as_slice(), &scene, HEATED);
            });
    }
}
