//! A movie of pictures: through ffmpeg where it is installed, as Motion JPEG where not.

mod avi;
mod jpeg;

use super::RenderError;
use super::picture::Picture;
use avi::Avi;
use barchan_sim::atomic;
use rayon::prelude::*;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Quality of the pictures in a movie, 1 to 100: sand is all fine detail.
const QUALITY: u32 = 88;
/// Pictures that are read and packed at the same time.
const TOGETHER: usize = 8;

pub use jpeg::encode as to_jpeg;

/// Makes a movie of `pictures`, `fps` a second, in `folder`; returns its file.
///
/// # Errors
/// If a picture cannot be read, they differ in size, or the movie cannot be written.
pub fn movie(folder: &Path, pictures: &[PathBuf], fps: f64) -> Result<PathBuf, RenderError> {
    let mp4 = folder.join("movie.mp4");
    if with_ffmpeg(&mp4, pictures, fps).is_some() {
        return Ok(mp4);
    }
    let path = folder.join("movie.avi");
    let failed = |source| RenderError::Write {
        path: path.clone(),
        source,
    };
    let size = match pictures.first() {
        Some(first) => Picture::read(first).map(|first| [first.width as u32, first.height as u32]),
        None => Err("there are no pictures".into()),
    };
    let size = size.map_err(|reason| failed(io::Error::other(reason)))?;
    let write = |file: &mut io::BufWriter<std::fs::File>| {
        let mut avi = Avi::new(file, size, fps)?;
        for some in pictures.chunks(TOGETHER) {
            let jpegs: Vec<_> = some.par_iter().map(|path| packed(path, size)).collect();
            for jpeg in jpegs {
                avi.add(&jpeg.map_err(io::Error::other)?)?;
            }
        }
        avi.finish()
    };
    atomic::write(&path, write).map_err(failed)?;
    Ok(path)
}

fn packed(path: &Path, size: [u32; 2]) -> Result<Vec<u8>, String> {
    let picture = Picture::read(path)?;
    if [picture.width as u32, picture.height as u32] != size {
        return Err(format!(
            "{} has another size than the first picture",
            path.display()
        ));
    }
    Ok(jpeg::encode(&picture, QUALITY))
}

/// Lets ffmpeg make an MP4; none if it is not there or does not want to.
fn with_ffmpeg(path: &Path, pictures: &[PathBuf], fps: f64) -> Option<()> {
    let first = Picture::read(pictures.first()?).ok()?;
    let part = path.with_file_name(".part-movie.mp4");
    let mut ffmpeg = Command::new("ffmpeg")
        .args([
            "-y",
            "-loglevel",
            "error",
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
        ])
        .args([
            "-s",
            &format!("{}x{}", first.width, first.height),
            "-r",
            &fps.to_string(),
            "-i",
            "-",
        ])
        // Players want even sizes and the usual colours.
        .args([
            "-vf",
            "pad=ceil(iw/2)*2:ceil(ih/2)*2",
            "-pix_fmt",
            "yuv420p",
            "-crf",
            "20",
        ])
        .args(["-movflags", "+faststart", "-threads", "2"])
        .arg(&part)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = ffmpeg.stdin.take()?;
    let all_sent = pictures.iter().all(|path| {
        let picture = Picture::read(path).ok();
        let same = picture
            .filter(|picture| (picture.width, picture.height) == (first.width, first.height));
        same.is_some_and(|picture| input.write_all(picture.pixels.as_flattened()).is_ok())
    });
    drop(input);
    let done = ffmpeg.wait().is_ok_and(|status| status.success());
    if all_sent && done && std::fs::rename(&part, path).is_ok() {
        return Some(());
    }
    let _ = std::fs::remove_file(&part);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_movie_needs_pictures_of_one_size() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..3)
            .map(|i| folder.path().join(format!("{i}.png")))
            .collect();
        for (i, path) in paths.iter().enumerate() {
            Picture::new(40 + 8 * (i / 2), 24, [i as u8 * 80, 90, 30])
                .write(path, "")
                .unwrap();
        }
        let made = movie(folder.path(), &paths[..2], 24.0).unwrap();
        assert!(made.metadata().unwrap().len() > 500);
        let error = movie(folder.path(), &paths, 24.0).unwrap_err().to_string();
        assert!(error.contains("another size"), "{error}");
        assert!(movie(folder.path(), &[], 24.0).is_err());
    }
}
