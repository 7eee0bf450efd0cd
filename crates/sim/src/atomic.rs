//! Files that are whole or not there: written beside, flushed to disk, renamed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::TempPath;

/// Prefix of files in the making; what a crash leaves of them is swept up by [`sweep`].
const PREFIX: &str = ".part-";

/// How much must have reached the disk when a write returns. Waiting for a disk takes long: many times a frame's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The bytes; the new name follows when the system likes, but not after what is synced later.
    Bytes,
    /// The bytes and the new name.
    BytesAndName,
}

/// Writes `path` through `fill`, bytes and name; on any error the old file stays as it was.
///
/// # Errors
/// What `fill` or the disk says.
pub fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    write_synced(path, Sync::BytesAndName, fill)
}

/// Like [`write`], waiting only for what `sync` says.
///
/// # Errors
/// As [`write`].
pub fn write_synced(
    path: &Path,
    sync: Sync,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let part = write_part(path, fill)?;
    part.persist(path).map_err(|error| error.error)?;
    if sync == Sync::BytesAndName {
        sync_name(path);
    }
    Ok(())
}

/// Writes what is to be at `path` to a file beside it, and waits for the bytes.
fn write_part(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<TempPath> {
    let part = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(folder_of(path))?;
    let (file, part) = part.into_parts();
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    fill(&mut writer)?;
    let file = writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    make_readable(&file)?;
    file.sync_all()?;
    Ok(part)
}

/// Waits for the new name.
fn sync_name(path: &Path) {
    // Some systems cannot open folders, and do without.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Temporary files are private; results are for everyone.
#[cfg(unix)]
fn make_readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &File) -> io::Result<()> {
    Ok(())
}

/// Writes `bytes` to `path`, where nothing may be yet.
///
/// # Errors
/// What the disk says, or that there is something.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = write_part(path, |writer| writer.write_all(bytes))?;
    part.persist_noclobber(path).map_err(|error| error.error)?;
    sync_name(path);
    Ok(())
}

/// Writes `bytes` to `path`.
///
/// # Errors
/// What the disk says.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, |writer| writer.write_all(bytes))
}

/// True for a file in the making.
pub fn is_part(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

/// Removes what a crash left half written in `folder`.
pub fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if is_part(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        write_bytes(&path, b"old").unwrap();
        let failed = write(&path, |writer| {
            writer.write_all(b"half of the new")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_there_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        create(&path, b"first").unwrap();
        let again = create(&path, b"second").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn sweeping_takes_only_half_written_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".part-abc"), "x").unwrap();
        std::fs::write(folder.path().join("frame"), "x").unwrap();
        sweep(folder.path());
        assert!(folder.path().join("frame").exists() && !folder.path().join(".part-abc").exists());
    }
}
