//! Running the command as a user would.
#![allow(dead_code)] // each test file uses its own part of this
#![allow(clippy::unwrap_used)]

use barchan::out::cache::{read_frame, write_frame};
use barchan::sim::scene::Compression;
use barchan::sim::state::Particles;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A small scene that runs in a moment.
pub const SCENE: &str = r#"schema = 1
name   = "drop"
frames = 4

[solver]
method     = "ballistic"
resolution = "4 cm"

[materials.sand]
preset = "dry-sand"

[[fill]]
material = "sand"
shape    = { sphere = { radius = 0.3, at = [0, 0.5, 0] } }

[[body]]
shape    = "ground"
friction = 0.5
"#;

/// The program, to be run in `folder`, plain and without colours.
pub fn barchan(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_barchan"));
    command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("RUST_BACKTRACE");
    command
}

/// Runs it with `args`.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    barchan(folder).args(args).output().unwrap()
}

/// Exit code and stderr, for a snapshot.
pub fn told(output: &Output) -> String {
    let talk = String::from_utf8_lossy(&output.stderr);
    let code = output
        .status
        .code()
        .map_or("killed".to_owned(), |code| code.to_string());
    format!("exit code {code}\n{}", talk.trim_end())
}

/// A temporary folder with the small scene in it.
pub fn folder_with_scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("drop.toml"), SCENE).unwrap();
    folder
}

/// The same with a run of five frames in out/drop.
pub fn folder_with_run() -> tempfile::TempDir {
    let folder = folder_with_scene();
    let output = run(folder.path(), &["run", "drop.toml", "-q"]);
    assert!(output.status.success(), "{}", told(&output));
    folder
}

/// Changes the particles of frame `number` of the run in out/drop.
pub fn change_frame(folder: &Path, number: u32, change: impl FnOnce(&mut Particles)) {
    let path = folder.join(format!("out/drop/frames/{number:06}.arrow"));
    let mut frame = read_frame(&path).unwrap();
    change(&mut frame.particles);
    let file = std::fs::File::create(&path).unwrap();
    write_frame(file, &frame.meta, &frame.particles, Compression::None).unwrap();
}

/// Changes one bit in the middle of frame `number` of the run in out/drop.
pub fn damage_frame(folder: &Path, number: u32) {
    let path = folder.join(format!("out/drop/frames/{number:06}.arrow"));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

/// Runs the program where no file can become larger than so many kilobytes, which stands for a full disk; what it told.
#[cfg(unix)]
pub fn told_on_a_full_disk(folder: &Path, kilobytes: usize, args: &str) -> String {
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" {args}");
    let output = Command::new("bash")
        .args(["-c", &script])
        .arg(barchan(folder).get_program())
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output();
    told(&output.unwrap())
}

/// Every file below `path` with its bytes, except locks.
pub fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![path.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.file_name().is_some_and(|name| name != ".lock") {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The frame files of a run, by name.
pub fn frames(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files(&run.join("frames"))
        .into_iter()
        .map(|(path, bytes)| (name(&path), bytes))
        .collect()
}

/// The root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}
