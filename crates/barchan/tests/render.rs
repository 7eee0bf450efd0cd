//! Pictures as a user makes them: the same bytes on any number of threads, made once, and never stopped by one bad frame.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::out::render::Picture;
use barchan::sim::state::Particles;
#[cfg(unix)]
use common::told_on_a_full_disk;
use common::{change_frame, damage_frame, files, folder_with_run, folder_with_scene, run, told};
use std::path::Path;
use std::process::Output;

/// Small pictures, quickly made.
const SMALL: [&str; 4] = ["--size", "96x54", "--samples", "2"];

fn render(folder: &Path, more: &[&str]) -> Output {
    run(
        folder,
        &[&["render", "out/drop"][..], &SMALL, more].concat(),
    )
}

fn picture(folder: &Path, frame: u32) -> Picture {
    Picture::read(&folder.join(format!("out/drop/images/{frame:06}.png"))).unwrap()
}

/// The first picture of the sand among these bodies, in the colour of the slowest: violet.
fn violet_sand_among(bodies: &str) -> Picture {
    let folder = folder_with_scene();
    let text = common::SCENE.to_owned() + bodies;
    std::fs::write(folder.path().join("drop.toml"), text).unwrap();
    let output = run(folder.path(), &["run", "drop.toml", "-q"]);
    assert!(output.status.success(), "{}", told(&output));
    let output = render(folder.path(), &["--frames", "0", "--color", "speed"]);
    assert!(output.status.success(), "{}", told(&output));
    picture(folder.path(), 0)
}

fn violet_pixels(picture: &Picture) -> usize {
    let violet = |pixel: &&[u8; 3]| u32::from(pixel[2]) > 2 * u32::from(pixel[1]);
    picture.pixels.iter().filter(violet).count()
}

#[test]
fn a_camera_without_a_place_sees_over_walls_and_through_those_without_end() {
    let open = violet_sand_among("");
    let planes = [
        ("[1, 0, 0]", "[-0.5, 0, 0]"),
        ("[-1, 0, 0]", "[0.5, 0, 0]"),
        ("[0, 0, 1]", "[0, 0, -0.5]"),
        ("[0, 0, -1]", "[0, 0, 0.5]"),
    ]
    .map(|(normal, at)| {
        format!("\n[[body]]\nshape = {{ plane = {{ normal = {normal}, at = {at} }} }}\n")
    });
    assert!(violet_sand_among(&planes.concat()).pixels == open.pixels);
    let boxes = [
        ("[0.1, 1.2, 1.2]", "[0.55, 0.6, 0]"),
        ("[0.1, 1.2, 1.2]", "[-0.55, 0.6, 0]"),
        ("[1.2, 1.2, 0.1]", "[0, 0.6, 0.55]"),
        ("[1.2, 1.2, 0.1]", "[0, 0.6, -0.55]"),
    ]
    .map(|(size, at)| format!("\n[[body]]\nshape = {{ box = {{ size = {size}, at = {at} }} }}\n"));
    let walled = violet_sand_among(&boxes.concat());
    let seen = [&open, &walled].map(violet_pixels);
    assert!(seen[0] > 200 && seen[1] > 100, "{seen:?}");
}

#[test]
fn pictures_are_the_same_on_any_number_of_threads_and_made_once() {
    let folder = folder_with_run();
    let images = folder.path().join("out/drop/images");
    let mut made = Vec::new();
    for threads in ["1", "2", "3"] {
        let output = render(folder.path(), &["--threads", threads, "--color", "speed"]);
        assert!(told(&output).contains("5 pictures in"), "{}", told(&output));
        made.push(files(&images));
        std::fs::remove_dir_all(&images).unwrap();
    }
    assert!(made[0].len() == 5 && made[0] == made[1] && made[0] == made[2]);
    // Made once, kept when asked for again, made anew with other settings.
    render(folder.path(), &[]);
    let (first, movie) = (files(&images), folder.path().join("out/drop"));
    let again = told(&render(folder.path(), &[]));
    assert!(
        again.contains("0 pictures") && again.contains("5 were there already"),
        "{again}"
    );
    let other = told(&render(
        folder.path(),
        &["--frames", "2", "--set", "render.sun.elevation=10"],
    ));
    assert!(other.contains("1 pictures in"), "{other}");
    assert_eq!(
        files(&images)
            .iter()
            .filter(|(path, bytes)| first[*path] != **bytes)
            .count(),
        1
    );
    assert!(movie.join("movie.avi").exists() || movie.join("movie.mp4").exists());
}

#[test]
fn sand_is_seen_where_it_is() {
    let folder = folder_with_run();
    render(
        folder.path(),
        &["--frames", "0", "--camera", "0,0.5,2:0,0.5,0"],
    );
    let picture = picture(folder.path(), 0);
    let at = |x: usize, y: usize| picture.pixels[y * picture.width + x].map(i32::from);
    // The ball of sand in the middle is warm, the sky above blue.
    let [red, _, blue] = at(48, 27);
    assert!(red > blue + 20, "{:?}", at(48, 27));
    let [red, _, blue] = at(48, 1);
    assert!(blue > red + 10, "{:?}", at(48, 1));
}

/// The mean difference of two pictures in the columns of pixels `from..to`, over all channels, of 255.
fn difference(one: &Picture, other: &Picture, (from, to): (usize, usize)) -> f64 {
    let pairs = one.pixels.iter().zip(&other.pixels).enumerate();
    let within = pairs.filter(|(i, _)| (from..to).contains(&(i % one.width)));
    let off = within.map(|(_, (a, b))| (0..3).map(|c| f64::from(a[c].abs_diff(b[c]))).sum::<f64>());
    off.sum::<f64>() / (3 * (to - from) * one.height) as f64
}

/// Frame 1 is frame 0 but for some grains on the right that have moved; in frame 2 all have crept on by a hundredth of a grain, in frame 3 by
/// three grains; frame 4 is frame 0 again.
#[test]
fn what_stands_still_does_not_flicker_and_what_creeps_changes_little() {
    let folder = folder_with_run();
    let path = folder.path().join("out/drop/frames/000000.arrow");
    let first = barchan::out::cache::read_frame(&path).unwrap().particles;
    let crept = |part: f32| {
        let mut all = first.clone();
        for (place, radius) in all.position.iter_mut().zip(&first.radius) {
            *place += glam::Vec3::new(0.6, -0.8, 0.0) * (2.0 * part * radius);
        }
        all
    };
    change_frame(folder.path(), 1, |particles| {
        *particles = first.clone();
        let moved = particles.position.iter_mut().filter(|place| place.x > 0.22);
        moved.for_each(|place| place.y -= 0.05);
    });
    change_frame(folder.path(), 2, |particles| *particles = crept(0.01));
    change_frame(folder.path(), 3, |particles| *particles = crept(3.0));
    change_frame(folder.path(), 4, |particles| *particles = first.clone());
    let made = run(
        folder.path(),
        &["surface", "out/drop", "-q", "--frames", "0..4"],
    );
    assert!(made.status.success(), "{}", told(&made));
    for what in ["grains", "mesh"] {
        let camera = [
            "--camera",
            "0,0.5,2:0,0.5,0",
            "--frames",
            "0..4",
            "--what",
            what,
        ];
        let made = render(folder.path(), &camera);
        assert!(made.status.success(), "{}", told(&made));
        let [still, beside, slow, far, again] =
            [0, 1, 2, 3, 4].map(|frame| picture(folder.path(), frame));
        assert!(still.pixels == again.pixels, "{what}");
        // What is seen on the left has not moved, but a little less light comes to it from the right.
        let left = difference(&still, &beside, (0, 48));
        let right = difference(&still, &beside, (48, 96));
        assert!(left < 0.01 * right, "{what}: {left} and {right}");
        let (slow, far) = (
            difference(&still, &slow, (0, 96)),
            difference(&still, &far, (0, 96)),
        );
        assert!(slow < 0.1 * far, "{what}: {slow} of {far}");
    }
}

#[test]
fn sand_before_a_cut_is_left_out() {
    let folder = folder_with_run();
    let middle = |cut: &str| {
        let cut = format!("render.cut={cut}");
        let camera = ["--camera", "0,0.5,2:0,0.5,0", "--set", cut.as_str()];
        let said = told(&render(
            folder.path(),
            &[&["--frames", "0"][..], &camera].concat(),
        ));
        let pixel = picture(folder.path(), 0).pixels[27 * 96 + 48].map(i32::from);
        (pixel[0] > pixel[2] + 20, said)
    };
    assert!(middle("{ at = [0, 0, 0], normal = [0, -1, 0] }").0);
    assert!(!middle("{ at = [0, 0, 0], normal = [0, 2, 0] }").0);
    let (_, said) = middle("{ at = [0, 0, 0], normal = [0, 0, 0] }");
    assert!(
        said.starts_with("exit code 2") && said.contains("must point somewhere"),
        "{said}"
    );
}

#[test]
fn one_bad_frame_does_not_stop_the_others() {
    let folder = folder_with_run();
    damage_frame(folder.path(), 2);
    change_frame(folder.path(), 0, |particles| {
        *particles = Particles::default();
    });
    change_frame(folder.path(), 1, |particles| particles.resize(1));
    change_frame(folder.path(), 3, |particles| {
        particles.position[7].x = f32::NAN;
        particles.position[8].y = f32::INFINITY;
        particles.radius[9] = f32::NAN;
    });
    let said = told(&render(folder.path(), &[]));
    assert!(
        said.starts_with("exit code 1") && said.contains("000002.arrow is damaged"),
        "{said}"
    );
    assert!(
        said.contains("4 pictures in") && said.contains("frame 3: 3 grains are not finite"),
        "{said}"
    );
    for frame in [0, 1, 3, 4] {
        assert_eq!(picture(folder.path(), frame).pixels.len(), 96 * 54);
    }
}

#[test]
fn mistakes_are_told_with_what_to_change() {
    let folder = folder_with_run();
    let inside = told(&render(
        folder.path(),
        &["--frames", "0", "--camera", "0,-1,0:0,0,0"],
    ));
    assert!(
        inside.contains("the camera at [0, -1, 0] is inside \"body 0\""),
        "{inside}"
    );
    let column = told(&render(folder.path(), &["--color", "sped"]));
    assert!(
        column.starts_with("exit code 2") && column.contains("there are speed, height"),
        "{column}"
    );
    let mesh = told(&render(folder.path(), &["--what", "mesh", "--frames", "1"]));
    assert!(
        mesh.starts_with("exit code 1") && mesh.contains("barchan surface"),
        "{mesh}"
    );
    for wrong in [
        ["--size", "12"],
        ["--size", "0x5"],
        ["--camera", "1,2:3"],
        ["--camera", "1,1,1:1,1,1"],
    ] {
        let said = told(&run(
            folder.path(),
            &["render", "out/drop", wrong[0], wrong[1]],
        ));
        assert!(said.starts_with("exit code 2"), "{said}");
    }
    assert!(told(&run(folder.path(), &["render", "nowhere"])).starts_with("exit code 2"));
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_whole_pictures_and_a_clear_word() {
    let folder = folder_with_run();
    // Small pictures fit, larger ones do not.
    let render = |size: &str| {
        let args = format!("render out/drop --size {size} --samples 1");
        told_on_a_full_disk(folder.path(), 8, &args)
    };
    let said = render("640x360");
    assert!(
        said.starts_with("exit code 1") && said.contains("frame 4: cannot write"),
        "{said}"
    );
    assert_eq!(files(&folder.path().join("out/drop/images")).len(), 0);
    assert!(render("32x18 --no-movie").contains("5 pictures in"));
}

#[test]
fn a_scene_with_render_ends_in_a_movie() {
    let folder = folder_with_scene();
    let path = folder.path().join("drop.toml");
    let scene = std::fs::read_to_string(&path).unwrap();
    let table = "\n[render]\nsize = \"64x36\"\nsamples = 1\ncamera = { at = [0, 1, 3], look_at = [0, 0.3, 0] }\n";
    std::fs::write(&path, scene + table).unwrap();
    let output = run(folder.path(), &["run", "drop.toml"]);
    assert!(
        told(&output).contains("movie: out/drop/movie."),
        "{}",
        told(&output)
    );
    assert_eq!(files(&folder.path().join("out/drop/images")).len(), 5);
    assert_eq!(picture(folder.path(), 4).width, 64);
}

#[test]
fn two_runs_are_compared_on_a_page_of_their_own() {
    let folder = folder_with_run();
    let other = [
        "run",
        "drop.toml",
        "-q",
        "-o",
        "out/other",
        "--set",
        "fill.0.shape.sphere.radius=0.25",
    ];
    assert!(run(folder.path(), &other).status.success());
    let args = [&["compare", "out/drop", "out/other"][..], &SMALL].concat();
    let output = run(folder.path(), &args);
    assert!(output.status.success(), "{}", told(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("particles") && table.contains("-4") && table.contains("kinetic energy [J]"),
        "{table}"
    );
    let made = folder.path().join("out/compare-drop-other");
    let page = std::fs::read_to_string(made.join("index.html")).unwrap();
    assert!(
        page.contains("data:image/jpeg;base64,")
            && page.contains("<polyline")
            && !page.contains("http")
    );
    let strip = Picture::read(&made.join("strip.png")).unwrap();
    assert_eq!(strip.width, 5 * 96 + 4 * 4);
}

#[test]
fn one_scene_is_compared_by_several_methods() {
    let folder = tempfile::tempdir().unwrap();
    let scene = common::SCENE
        .replace("ballistic", "flip")
        .replace(
            "resolution = \"4 cm\"",
            "resolution = \"20 cm\"\ncfl = 0.8\nmax_step = \"10 ms\"",
        )
        .replace(
            "material = \"sand\"",
            "material = \"sand\"\nseeding = \"jittered\"",
        );
    std::fs::write(folder.path().join("drop.toml"), scene).unwrap();
    let base = [
        "compare",
        "drop.toml",
        "--methods",
        "flip,sph,dem",
        "-o",
        "m",
    ];
    let args = [&base[..], &SMALL].concat();
    let output = run(folder.path(), &args);
    assert!(output.status.success(), "{}", told(&output));
    let talk = told(&output);
    for word in [
        "solver.cfl is for flip, hybrid only, and is left out",
        "solver.resolution is 0.1 m",
        "fill.0.seeding would lay grains over each other",
        "solver.max_step is left out",
    ] {
        assert!(talk.contains(word), "{word}: {talk}");
    }
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for word in ["flip", "sph", "dem", "cost of the run [s]", "run-out [m]"] {
        assert!(table.contains(word), "{table}");
    }
    let page = std::fs::read_to_string(folder.path().join("m/index.html")).unwrap();
    assert!(page.contains("how thick the material lies") && !page.contains("http"));
    let strip = Picture::read(&folder.path().join("m/strip.png")).unwrap();
    assert_eq!(
        [strip.width, strip.height],
        [5 * 96 + 4 * 4, 3 * (22 + 54 + 4) - 4]
    );
    for method in ["flip", "sph", "dem"] {
        assert_eq!(
            common::frames(&folder.path().join("m").join(method)).len(),
            5
        );
    }
    let wrong = told(&run(
        folder.path(),
        &["compare", "drop.toml", "--methods", "flop"],
    ));
    assert!(
        wrong.starts_with("exit code 2") && wrong.contains("did you mean \"flip\""),
        "{wrong}"
    );
}
