//! Pictures: the `[render]` table, and what it means.

use super::problem::{Problem, Problems};
use super::quantity::{
    Acute, Angle, Length, NotNegative, Positive, Quantity, Ratio, Time, Triple, UpToStraight,
};
use super::read::{Count, Text};
use crate::{keywords, table};
use glam::Vec3;

table! {
    /// Pictures to make when the run is done.
    pub struct RenderDoc {
        /// Width and height in pixels, as "1280x720".
        size: Text = Text { value: "1280x720".into(), span: 0..0 },
        /// Rays a pixel: more are smoother and take longer.
        samples: Count<1> = Count(8),
        /// What is drawn.
        what: What = What::Auto,
        /// Colour by a column of the frames (speed, mass, …), with a scale bar; each material's own colour if left out.
        color: Option<Text>,
        /// Ends of the colour scale; found over the run if left out.
        range: Option<RangeDoc>,
        /// Drawn size of grains over their true size.
        grain_scale: Quantity<Ratio, Positive> = Quantity::of(1.0),
        /// Grains on the side of a plane that its normal points to are left out: a look inside.
        cut: Option<CutDoc>,
        /// Where it is seen from; a camera that frames the whole run if left out.
        camera: Option<CameraDoc>,
        /// The sun.
        sun: SunDoc,
        /// Brightness of the sky, 1 for a clear day.
        sky: Quantity<Ratio, NotNegative> = Quantity::of(1.0),
        /// Brightness of the picture: 2 is twice as bright.
        exposure: Quantity<Ratio, Positive> = Quantity::of(1.0),
        /// Whether a movie is made of the pictures.
        movie: bool = true,
    }
}

keywords! {
    /// What is drawn.
    pub enum What {
        /// The surface where there is one, the grains where not.
        Auto = "auto",
        /// The grains.
        Grains = "grains",
        /// The surface.
        Mesh = "mesh",
    }
}

table! {
    /// The ends of a colour scale.
    pub struct RangeDoc {
        /// What gets the first colour.
        from: Quantity<Ratio>,
        /// What gets the last colour.
        to: Quantity<Ratio>,
    }
}

table! {
    /// A plane that grains are cut away before.
    pub struct CutDoc {
        /// Somewhere on it.
        at: Triple<Length>,
        /// The side that is left out.
        normal: Triple<Ratio>,
    }
}

table! {
    /// A camera.
    pub struct CameraDoc {
        /// Where it stands.
        at: Triple<Length>,
        /// What is in the middle of the picture.
        look_at: Triple<Length>,
        /// Focal length on film 36 mm wide: 18 mm sees wide, 85 mm near.
        focal: Quantity<Length, Positive> = Quantity::of(0.035),
        /// Diameter of the lens: what is nearer or further than `focus` blurs. 0 is sharp everywhere.
        aperture: Quantity<Length, NotNegative> = Quantity::of(0.0),
        /// Distance that is sharp; that of `look_at` if left out.
        focus: Option<Quantity<Length, Positive>>,
        /// Places on its way, in place of `at`, `look_at` and `focal`.
        keyframes: Vec<CameraKeyDoc>,
    }
}

table! {
    /// Where the camera is at a time.
    pub struct CameraKeyDoc {
        /// The time.
        time: Quantity<Time, NotNegative>,
        /// Where it stands.
        at: Triple<Length>,
        /// What is in the middle of the picture.
        look_at: Triple<Length>,
        /// Focal length; the camera's own if left out.
        focal: Option<Quantity<Length, Positive>>,
    }
}

table! {
    /// The sun.
    pub struct SunDoc {
        /// Height above the horizon.
        elevation: Quantity<Angle, Acute> = Quantity::of(38.0),
        /// Direction it stands in, about the up axis; 40 degrees to the left behind the camera if left out.
        azimuth: Option<Quantity<Angle>>,
        /// How wide it is; wider makes softer shadows. The real one is half a degree.
        size: Quantity<Angle, UpToStraight> = Quantity::of(2.0),
        /// Brightness, 1 for a clear day.
        strength: Quantity<Ratio, NotNegative> = Quantity::of(1.0),
    }
}

/// How pictures are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Render {
    /// Width and height [pixels].
    pub size: [u32; 2],
    /// Rays a pixel.
    pub samples: u32,
    /// What is drawn.
    pub what: What,
    /// Column that decides the colours; the materials' own if none.
    pub color: Option<String>,
    /// Ends of the colour scale.
    pub range: Option<[f64; 2]>,
    /// Drawn size of grains over their true size.
    pub grain_scale: f32,
    /// The plane that grains are cut away before, if any.
    pub cut: Option<Cut>,
    /// Camera; one that frames the run if none.
    pub camera: Option<CameraPath>,
    /// The sun.
    pub sun: Sun,
    /// Brightness of the sky.
    pub sky: f32,
    /// Brightness of the picture.
    pub exposure: f32,
    /// Whether a movie is made.
    pub movie: bool,
}

/// A plane that grains are cut away before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// Somewhere on it [m].
    pub at: Vec3,
    /// The side that is left out; of length one.
    pub normal: Vec3,
}

impl Cut {
    /// Whether something at `point` [m] is left out; not if it is nowhere, which is told of otherwise.
    pub fn hides(&self, point: Vec3) -> bool {
        (point - self.at).dot(self.normal) > 0.0
    }
}

/// Where the camera is, over time.
#[derive(Clone, Debug, PartialEq)]
pub struct CameraPath {
    /// Times [s] and views, in order; at least one.
    pub keys: Vec<(f64, View)>,
    /// Diameter of the lens [m].
    pub aperture: f32,
    /// Distance that is sharp [m]; that of what is looked at if none.
    pub focus: Option<f32>,
}

/// What a camera sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Where it stands [m].
    pub at: Vec3,
    /// What is in the middle of the picture [m].
    pub look_at: Vec3,
    /// Focal length [m] on film 36 mm wide.
    pub focal: f32,
}

/// The sun.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sun {
    /// Height above the horizon [rad].
    pub elevation: f32,
    /// Direction about the up axis [rad]; behind the camera if none.
    pub azimuth: Option<f32>,
    /// Diameter [rad].
    pub size: f32,
    /// Brightness.
    pub strength: f32,
}

impl Default for Render {
    fn default() -> Self {
        Self {
            size: [1280, 720],
            samples: 8,
            what: What::Auto,
            color: None,
            range: None,
            grain_scale: 1.0,
            cut: None,
            camera: None,
            sun: Sun {
                elevation: 38f32.to_radians(),
                azimuth: None,
                size: 2f32.to_radians(),
                strength: 1.0,
            },
            sky: 1.0,
            exposure: 1.0,
            movie: true,
        }
    }
}

/// The widest and highest picture [pixels].
const MOST_PIXELS: u32 = 16_384;
/// The most rays a pixel.
const MOST_SAMPLES: u64 = 65_536;

/// Reads a size such as `1280x720`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_size(text: &str) -> Result<[u32; 2], String> {
    let parts: Vec<Option<u32>> = text
        .split('x')
        .map(|part| part.trim().parse().ok())
        .collect();
    match parts[..] {
        [Some(width), Some(height)]
            if (1..=MOST_PIXELS).contains(&width) && (1..=MOST_PIXELS).contains(&height) =>
        {
            Ok([width, height])
        }
        _ => Err(format!(
            "\"{text}\" is not a size such as 1280x720, with at most {MOST_PIXELS} pixels a side"
        )),
    }
}

/// What `[render]` means.
pub fn render(doc: &RenderDoc, problems: &mut Problems) -> Option<Render> {
    let size = match parse_size(&doc.size.value) {
        Ok(size) => size,
        Err(message) => {
            return problems.none(Problem::new(doc.size.span.clone(), message));
        }
    };
    if doc.samples.0 > MOST_SAMPLES {
        let message = format!("\"render.samples\" must be at most {MOST_SAMPLES}");
        return problems.none(Problem::new(doc.span.clone(), message));
    }
    if let Some(range) = doc
        .range
        .as_ref()
        .filter(|range| range.from.si >= range.to.si)
    {
        let message = "\"render.range\" must have \"from\" below \"to\"";
        return problems.none(Problem::new(range.span.clone(), message));
    }
    let camera = match &doc.camera {
        Some(camera) => Some(path(camera, problems)?),
        None => None,
    };
    let cut = match &doc.cut {
        Some(cut) => Some(plane(cut, problems)?),
        None => None,
    };
    Some(Render {
        size,
        samples: doc.samples.0 as u32,
        what: doc.what,
        color: doc.color.as_ref().map(|color| color.value.clone()),
        range: doc.range.as_ref().map(|range| [range.from.si, range.to.si]),
        grain_scale: doc.grain_scale.si as f32,
        cut,
        camera,
        sun: Sun {
            elevation: doc.sun.elevation.si as f32,
            azimuth: doc.sun.azimuth.as_ref().map(|azimuth| azimuth.si as f32),
            size: doc.sun.size.si as f32,
            strength: doc.sun.strength.si as f32,
        },
        sky: doc.sky.si as f32,
        exposure: doc.exposure.si as f32,
        movie: doc.movie,
    })
}

fn plane(doc: &CutDoc, problems: &mut Problems) -> Option<Cut> {
    let Some(normal) = doc.normal.vec3().try_normalize() else {
        let message = "\"render.cut.normal\" must point somewhere";
        return problems.none(Problem::new(doc.span.clone(), message));
    };
    Some(Cut {
        at: doc.at.vec3(),
        normal,
    })
}

fn path(doc: &CameraDoc, problems: &mut Problems) -> Option<CameraPath> {
    let focal = doc.focal.si as f32;
    let first = View {
        at: doc.at.vec3(),
        look_at: doc.look_at.vec3(),
        focal,
    };
    let mut keys: Vec<(f64, View)> = doc
        .keyframes
        .iter()
        .map(|key| {
            let view = View {
                at: key.at.vec3(),
                look_at: key.look_at.vec3(),
                focal: key.focal.as_ref().map_or(focal, |focal| focal.si as f32),
            };
            (key.time.si, view)
        })
        .collect();
    if let Some(late) = (1..keys.len()).find(|i| keys[*i].0 <= keys[i - 1].0) {
        let message = format!(
            "a keyframe must be later than the one before it ({} s)",
            keys[late - 1].0
        );
        return problems.none(Problem::new(doc.keyframes[late].time.span.clone(), message));
    }
    if keys.is_empty() {
        keys.push((0.0, first));
    }
    if keys
        .iter()
        .any(|(_, view)| view.at.distance(view.look_at) == 0.0)
    {
        let problem = Problem::new(doc.span.clone(), "the camera stands where it looks");
        return problems.none(problem.help("move \"at\" away from \"look_at\""));
    }
    Some(CameraPath {
        keys,
        aperture: doc.aperture.si as f32,
        focus: doc.focus.as_ref().map(|focus| focus.si as f32),
    })
}
