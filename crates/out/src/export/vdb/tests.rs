//! A reader of its own, written from the format rather than from the writer.

use super::super::samples;
use super::*;
use glam::{IVec3, Vec3};
use std::collections::BTreeMap;
use std::io::Cursor;

/// A grid: its background, and every voxel of its leaves with whether it is active.
struct Grid {
    background: f32,
    voxel: f64,
    /// First number of each voxel.
    voxels: BTreeMap<[i32; 3], (f32, bool)>,
    /// Tiles of lower nodes that are inside.
    inside_tiles: usize,
}

struct Reader {
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    fn take(&mut self, count: usize) -> &[u8] {
        self.at += count;
        &self.bytes[self.at - count..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    fn f32(&mut self) -> f32 {
        f32::from_bits(self.u32())
    }

    fn text(&mut self) -> String {
        let length = self.u32() as usize;
        String::from_utf8_lossy(self.take(length)).into_owned()
    }

    fn metadata(&mut self) -> BTreeMap<String, Vec<u8>> {
        let count = self.u32();
        let entry = |_| {
            let (name, _kind) = (self.text(), self.text());
            let size = self.u32() as usize;
            (name, self.take(size).to_vec())
        };
        (0..count).map(entry).collect()
    }

    fn mask(&mut self, slots: usize) -> Vec<bool> {
        let words: Vec<u64> = (0..slots / 64).map(|_| self.u64()).collect();
        (0..slots)
            .map(|slot| words[slot / 64] >> (slot % 64) & 1 == 1)
            .collect()
    }

    /// Which inactive values are outside.
    fn signs(&mut self, slots: usize) -> Vec<bool> {
        match self.take(1)[0] {
            0 => vec![true; slots],
            3 => self.mask(slots),
            other => panic!("code {other}"),
        }
    }

    fn place(slot: usize, bits: usize) -> IVec3 {
        let mask = (1 << bits) - 1;
        let axis = |shift: usize| (slot >> shift & mask) as i32;
        IVec3::new(axis(2 * bits), axis(bits), axis(0))
    }

    /// The tree of a grid whose values have `numbers` floats.
    fn grid(&mut self, numbers: usize) -> (String, Grid) {
        let (name, tree, _) = (self.text(), self.text(), self.text());
        assert_eq!(tree.contains("vec3s"), numbers == 3);
        let (start, buffers, end) = (self.u64(), self.u64(), self.u64());
        assert_eq!(start as usize, self.at);
        assert_eq!(self.u32(), 2, "only active values are stored");
        assert_eq!(self.metadata()["name"], name.as_bytes());
        assert_eq!(self.text(), "UniformScaleMap");
        let voxel = f64::from_bits(self.u64());
        self.take(8 * 14);
        assert_eq!(self.u32(), 1, "one buffer");
        let background = (0..numbers).map(|_| self.f32()).fold(f32::MIN, f32::max);
        assert_eq!(self.u32(), 0, "no tiles");
        let (mut leaves, mut inside_tiles) = (Vec::new(), 0);
        for _ in 0..self.u32() {
            let origin = IVec3::new(self.u32() as i32, self.u32() as i32, self.u32() as i32);
            let children = self.mask(32768);
            assert!(!self.mask(32768).contains(&true), "no active tiles");
            self.signs(32768);
            for lower in (0..32768).filter(|&slot| children[slot]) {
                let origin = origin + Self::place(lower, 5) * 128;
                let children = self.mask(4096);
                self.mask(4096);
                let signs = self.signs(4096);
                inside_tiles += (0..4096).filter(|&s| !signs[s] && !children[s]).count();
                for leaf in (0..4096).filter(|&slot| children[slot]) {
                    leaves.push((origin + Self::place(leaf, 4) * 8, self.mask(512)));
                }
            }
        }
        assert_eq!(buffers as usize, self.at);
        let mut voxels = BTreeMap::new();
        for (origin, mask) in leaves {
            assert_eq!(self.mask(512), mask, "the mask stands twice");
            let signs = self.signs(512);
            for slot in 0..512 {
                let mut value = if signs[slot] { background } else { -background };
                if mask[slot] {
                    value = self.f32();
                    self.take(4 * (numbers - 1));
                }
                voxels.insert(
                    (origin + Self::place(slot, 3)).to_array(),
                    (value, mask[slot]),
                );
            }
        }
        assert_eq!(end as usize, self.at);
        let grid = Grid {
            background,
            voxel,
            voxels,
            inside_tiles,
        };
        (name, grid)
    }
}

fn read(snapshot: &Snapshot) -> BTreeMap<String, Grid> {
    let mut file = Cursor::new(Vec::new());
    write(&mut file, snapshot).expect("memory takes all");
    let mut reader = Reader {
        bytes: file.into_inner(),
        at: 0,
    };
    assert_eq!(reader.u64(), 0x5644_4220);
    assert_eq!(reader.u32(), 224);
    reader.take(9 + 36);
    assert_eq!(
        reader.metadata()["frame"],
        snapshot.meta.frame.to_le_bytes()
    );
    let count = reader.u32();
    let grids = (0..count)
        .map(|i| reader.grid(if i == 2 { 3 } else { 1 }))
        .collect();
    assert_eq!(reader.at, reader.bytes.len(), "nothing is left over");
    grids
}

fn cloud() -> Snapshot {
    let mut snapshot = samples::particles(40, 3);
    if let Content::Particles(particles) = &mut snapshot.content {
        for i in 0..40 {
            particles.position[i] = Vec3::new(i as f32 * 0.21 - 4.0, (i % 7) as f32 * 0.3, -0.4);
            particles.radius[i] = 0.1;
        }
    }
    snapshot
}

#[test]
fn particles_become_distance_density_and_velocity() {
    let snapshot = cloud();
    let grids = read(&snapshot);
    let Content::Particles(particles) = &snapshot.content else {
        panic!("particles")
    };
    // All mass is there.
    let density = &grids["density"];
    let sum: f64 = density
        .voxels
        .values()
        .filter(|v| v.1)
        .map(|v| f64::from(v.0))
        .sum();
    assert!(
        (sum * density.voxel.powi(3) / 80.0 - 1.0).abs() < 1e-5,
        "{sum}"
    );
    // Every velocity has 0.25 along x.
    let velocity = grids["velocity"].voxels.values();
    assert!(velocity.filter(|v| v.1).all(|v| (v.0 - 0.25).abs() < 1e-5));
    // Distances are those to the nearest ball, near it and nowhere else.
    let distance = &grids["distance"];
    let voxel = distance.voxel as f32;
    for (place, &(value, active)) in &distance.voxels {
        let place = IVec3::from(*place).as_vec3() * voxel;
        let nearest = particles
            .position
            .iter()
            .map(|p| p.distance(place))
            .fold(f32::MAX, f32::min);
        let exact = nearest - 0.1 * 3f32.sqrt();
        assert_eq!(active, exact < distance.background, "{place} {exact}");
        assert!(
            !active || (value - exact).abs() < 1e-5,
            "{place} {value} {exact}"
        );
    }
    assert!(distance.voxels.values().any(|v| v.0 < 0.0));
}

#[test]
fn the_inside_of_a_mesh_is_negative_to_its_middle() {
    let mut snapshot = samples::tetrahedron(0);
    let Content::Mesh(mesh) = &mut snapshot.content else {
        panic!("a mesh")
    };
    // Split until edges, and so voxels, are small against the whole.
    for _ in 0..6 {
        let mut triangles = Vec::new();
        for [a, b, c] in std::mem::take(&mut mesh.triangles) {
            let mut middle = |i: u32, j: u32| {
                mesh.positions
                    .push((mesh.positions[i as usize] + mesh.positions[j as usize]) / 2.0);
                mesh.positions.len() as u32 - 1
            };
            let (ab, bc, ca) = (middle(a, b), middle(b, c), middle(c, a));
            triangles.extend([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]);
        }
        mesh.triangles = triangles;
    }
    for p in &mut mesh.positions {
        *p = 8.0 * p.normalize();
    }
    mesh.normals = mesh.positions.iter().map(|p| p.normalize()).collect();
    (mesh.velocities, mesh.colors, mesh.materials) = Default::default();
    let grids = read(&snapshot);
    let distance = &grids["distance"];
    for (place, &(value, active)) in &distance.voxels {
        let place = IVec3::from(*place).as_vec3() * distance.voxel as f32;
        let exact = place.length() - 8.0;
        // The ball is one of flat triangles.
        assert!(
            !active || (value - exact).abs() < 0.2,
            "{place} {value} {exact}"
        );
        assert!(
            exact.abs() < 0.2 || (value < 0.0) == (exact < 0.0),
            "{place} {value} {exact}"
        );
    }
    assert!(
        distance.inside_tiles > 0,
        "the middle is far from the surface"
    );
}

#[test]
fn outside_of_the_tip_and_the_rim_of_a_cone_is_positive() {
    const SIDES: u32 = 24;
    let mut snapshot = samples::tetrahedron(0);
    let Content::Mesh(mesh) = &mut snapshot.content else {
        panic!("a mesh")
    };
    let around = |i: u32| {
        let turn = i as f32 / SIDES as f32 * std::f32::consts::TAU;
        Vec3::new(turn.cos(), 0.0, turn.sin())
    };
    mesh.positions = (0..SIDES).map(around).collect();
    mesh.positions.extend([Vec3::Y * 4.0, Vec3::ZERO]);
    let side = |i: u32| {
        let next = (i + 1) % SIDES;
        [[next, i, SIDES], [i, next, SIDES + 1]]
    };
    mesh.triangles = (0..SIDES).flat_map(side).collect();
    (mesh.normals, mesh.velocities, mesh.colors, mesh.materials) = Default::default();
    let distance = &read(&snapshot)["distance"];
    let triangles: Vec<[Vec3; 3]> = mesh_of(&snapshot);
    let mut wrong = 0;
    for (place, &(value, active)) in &distance.voxels {
        let place = IVec3::from(*place).as_vec3() * distance.voxel as f32;
        // Of a convex body all that is not behind every side is outside.
        let before = |[a, b, c]: &[Vec3; 3]| (*b - *a).cross(*c - *a).dot(place - *a) > 1e-4;
        let outside = triangles.iter().any(before);
        wrong += usize::from(active && outside && value < 0.0);
    }
    assert_eq!(wrong, 0, "voxels outside are said to be inside");
}

fn mesh_of(snapshot: &Snapshot) -> Vec<[Vec3; 3]> {
    let Content::Mesh(mesh) = &snapshot.content else {
        panic!("a mesh")
    };
    let corners = |t: &[u32; 3]| t.map(|v| mesh.positions[v as usize]);
    mesh.triangles.iter().map(corners).collect()
}

#[test]
fn empty_frames_have_empty_grids() {
    let grids = read(&samples::particles(0, 0));
    assert!(grids.len() == 3 && grids.values().all(|grid| grid.voxels.is_empty()));
    assert_eq!(read(&samples::particles(1, 1)).len(), 3);
}
