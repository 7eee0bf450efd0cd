//! A reader of its own, written from the format rather than from the writer.

use super::super::samples;
use super::*;
use std::collections::BTreeMap;
use std::io::Cursor;

struct Reader(Vec<u8>);

impl Reader {
    fn word(&self, at: u64) -> u64 {
        let at = at as usize;
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn children(&self, group: u64) -> Vec<u64> {
        assert_eq!(group >> 63, 0, "a group, not data");
        if group == 0 {
            return Vec::new();
        }
        (1..=self.word(group))
            .map(|i| self.word(group + 8 * i))
            .collect()
    }

    fn data(&self, entry: u64) -> &[u8] {
        assert_eq!(entry >> 63, 1, "data, not a group");
        let at = entry & !(1 << 63);
        if at == 0 {
            return &[];
        }
        let size = self.word(at) as usize;
        &self.0[at as usize + 8..at as usize + 8 + size]
    }

    /// Name, info, samples and child of each property of a compound; headers are those of small files.
    fn properties(&self, compound: u64) -> BTreeMap<String, (u32, u8, u64)> {
        let children = self.children(compound);
        let (headers, properties) = children.split_last().expect("headers");
        let (bytes, mut at, mut found) = (self.data(*headers), 0, BTreeMap::new());
        for &property in properties {
            let info = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            assert_eq!(info >> 2 & 3, 0, "numbers of one byte");
            at += 4;
            let mut samples = 0;
            if info & 3 != 0 {
                samples = bytes[at];
                assert_eq!(info & 0x200, 0, "no first and last change");
                at += 1 + (info >> 8 & 1) as usize;
            }
            let end = at + 1 + bytes[at] as usize;
            let name = String::from_utf8_lossy(&bytes[at + 1..end]).into_owned();
            found.insert(name, (info, samples, property));
            at = end;
        }
        assert_eq!(at, bytes.len(), "headers are used up");
        found
    }

    /// Sample `index` of an array, without its key.
    fn sample(&self, (info, _, property): (u32, u8, u64), index: usize) -> &[u8] {
        let index = if info & 0x800 != 0 { 0 } else { index };
        let data = self.data(self.children(property)[2 * index]);
        data.get(16..).unwrap_or_default()
    }
}

fn archive(snapshots: Vec<Snapshot>) -> Reader {
    let mut file = Cursor::new(Vec::new());
    write(&mut file, &mut snapshots.into_iter()).expect("memory takes all");
    Reader(file.into_inner())
}

/// The properties of the geometry, and the arbitrary ones.
fn geometry(reader: &Reader, object: u64) -> [BTreeMap<String, (u32, u8, u64)>; 2] {
    let properties = reader.properties(reader.children(object)[0]);
    let geometry = reader.properties(properties[".geom"].2);
    let extra = reader.properties(geometry[".arbGeomParams"].2);
    [geometry, extra]
}

#[test]
fn samples_of_points_come_back() {
    let frames = vec![
        samples::particles(3, 4),
        samples::particles(0, 5),
        samples::particles(3, 6),
    ];
    let reader = archive(frames);
    assert!(reader.0.starts_with(b"Ogawa\xff\x00\x01"));
    let root = reader.children(reader.word(8));
    assert_eq!(root.len(), 6);
    let top = reader.children(root[2]);
    assert_eq!(top.len(), 3, "properties, one child, headers");
    let [points, extra] = geometry(&reader, top[1]);
    let place: Vec<f32> = bytemuck::pod_collect_to_vec(reader.sample(points["P"], 2));
    assert_eq!(place, [0.0, -3.0, 6.0, 1.0, -2.5, 6.0, 2.0, -2.0, 6.0]);
    assert!(reader.sample(points["P"], 1).is_empty());
    let ids: Vec<u64> = bytemuck::pod_collect_to_vec(reader.sample(points[".pointIds"], 0));
    assert_eq!(ids, [7, 8, 9]);
    let widths: Vec<f32> = bytemuck::pod_collect_to_vec(reader.sample(points[".widths"], 2));
    assert_eq!(widths, [0.25, 2.25, 4.25]);
    let heat: Vec<f64> = bytemuck::pod_collect_to_vec(reader.sample(extra["heat of it"], 2));
    assert_eq!(heat, [273.0, 274.0, 275.0]);
    assert_eq!(points["P"].1, 3);
    // Times: Alembic's own sampling, then 24 a second from frame 4 on.
    let times = reader.data(root[4]);
    assert_eq!(times.len(), 2 * 24);
    assert_eq!(times[24..28], 3u32.to_le_bytes());
    assert_eq!(times[28..36], (1.0f64 / 24.0).to_le_bytes());
    assert_eq!(times[40..48], (4.0f64 / 24.0).to_le_bytes());
}

#[test]
fn what_does_not_change_is_stored_once_and_faces_run_clockwise() {
    let reader = archive((0..5).map(samples::tetrahedron).collect());
    let root = reader.children(reader.word(8));
    let [mesh, _] = geometry(&reader, reader.children(root[2])[1]);
    let corners = mesh[".faceIndices"];
    assert_eq!((corners.0 & 0x800, corners.1), (0x800, 5));
    assert_eq!(reader.children(corners.2).len(), 2);
    let corners: Vec<u32> = bytemuck::pod_collect_to_vec(reader.sample(corners, 3));
    assert_eq!(corners[..6], [2, 1, 0, 1, 3, 0]);
    assert_eq!(reader.children(mesh[".velocities"].2).len(), 10);
    assert_eq!(
        reader.sample(mesh[".velocities"], 4)[4..8],
        4f32.to_le_bytes()
    );
}

#[test]
fn uneven_times_are_told_one_by_one_and_other_ups_are_turned() {
    let mut frames = vec![
        samples::particles(1, 0),
        samples::particles(1, 1),
        samples::particles(1, 3),
    ];
    for frame in &mut frames {
        frame.meta.up = Vec3::Z;
    }
    let reader = archive(frames);
    let root = reader.children(reader.word(8));
    let times = reader.data(root[4]);
    assert_eq!(times[28..36], (f64::MAX / 32.0).to_le_bytes());
    assert_eq!(times[36..40], 3u32.to_le_bytes());
    assert_eq!(times[56..64], (3.0f64 / 24.0).to_le_bytes());
    let upright = reader.children(reader.children(root[2])[1]);
    let properties = reader.properties(upright[0]);
    let xform = reader.properties(properties[".xform"].2);
    let values = reader.data(reader.children(xform[".vals"].2)[0]);
    let values: Vec<f64> = bytemuck::pod_collect_to_vec(&values[16..]);
    // Row vectors: z (the third row) becomes y.
    assert!((values[9] - 1.0).abs() < 1e-6, "{values:?}");
    assert_eq!(geometry(&reader, upright[1])[0]["P"].1, 3);
}
