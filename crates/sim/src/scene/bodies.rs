//! Bodies and joints: from what the file says to what it means.

use super::builder::Builder;
use super::document::{
    BodyDoc, InterpolationDoc, JointDoc, JointKindDoc, MotionDoc, SceneDoc, SequenceDoc,
};
use super::problem::{Problem, suggest};
use super::read::Text;
use super::shapes::{ShapeDoc, pose};
use crate::body::{Body, Dynamic, Form, Interpolation, Joint, JointKind, MeshSequence, Track};
use crate::coupling::can_collide;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The longest sequence of mesh files.
const MOST_FILES: u64 = 100_000;
/// The longest run of # in their name.
const MOST_DIGITS: usize = 9;

impl Builder<'_> {
    /// The bodies, and the joints in those that own them.
    pub fn bodies(&mut self, doc: &SceneDoc) -> Option<Vec<Body>> {
        let bodies: Vec<Option<Body>> = doc
            .body
            .iter()
            .enumerate()
            .map(|(index, doc)| self.body(doc, index))
            .collect();
        let mut bodies: Vec<Body> = bodies.into_iter().collect::<Option<_>>()?;
        for doc in &doc.joint {
            if let Some((owner, joint)) = self.joint(doc, &bodies)
                && let Form::Dynamic(dynamic) = &mut bodies[owner].form
            {
                dynamic.joints.push(joint);
            }
        }
        self.check_contacts(doc, &bodies);
        Some(bodies)
    }

    fn body(&mut self, doc: &BodyDoc, index: usize) -> Option<Body> {
        self.check_motion(doc)?;
        let form = match (&doc.shape, &doc.sequence) {
            (Some(shape), None) if doc.motion == Some(MotionDoc::Dynamic) => {
                Form::Dynamic(Box::new(self.dynamic(doc, shape)?))
            }
            (Some(shape), None) => {
                let shape = Arc::new(shape.build(self)?);
                if doc.keyframes.is_empty() {
                    Form::Static(shape)
                } else {
                    Form::Keyframed(shape, self.track(doc)?)
                }
            }
            (None, Some(sequence)) if doc.keyframes.is_empty() => {
                Form::Sequence(self.sequence(sequence)?)
            }
            (None, Some(_)) => {
                let problem = Problem::new(
                    doc.span.clone(),
                    "a body with a sequence cannot have keyframes too",
                );
                return self.none(problem.help(
                    "move the meshes in the files, or place them with the sequence's at and rotate",
                ));
            }
            _ => {
                let problem = Problem::new(
                    doc.span.clone(),
                    "a body needs either a shape or a sequence",
                );
                return self.none(problem.help("for example shape = \"ground\""));
            }
        };
        Some(Body {
            name: doc
                .name
                .as_ref()
                .map_or_else(|| format!("body {index}"), |name| name.value.clone()),
            form,
            friction: doc.friction.si as f32,
            restitution: doc
                .restitution
                .as_ref()
                .map(|restitution| restitution.si as f32),
        })
    }

    /// What a body says must fit how it moves.
    fn check_motion(&mut self, doc: &BodyDoc) -> Option<()> {
        let refuse = |message: &str, help: &str| {
            Problem::new(doc.span.clone(), message.to_owned()).help(help.to_owned())
        };
        let free = match doc.motion {
            Some(MotionDoc::Dynamic) if !doc.keyframes.is_empty() || doc.sequence.is_some() => {
                let message =
                    "a dynamic body moves by force: it cannot have keyframes or a sequence";
                return self.none(refuse(message, "remove them, or motion = \"dynamic\""));
            }
            Some(MotionDoc::Static) if !doc.keyframes.is_empty() || doc.sequence.is_some() => {
                let message = "a static body cannot have keyframes or a sequence";
                return self.none(refuse(message, "remove them, or motion = \"static\""));
            }
            Some(MotionDoc::Keyframed) if doc.keyframes.is_empty() => {
                let message = "a keyframed body needs keyframes";
                return self.none(refuse(message, "add keyframes = [{ time = 0 }, …]"));
            }
            motion => motion == Some(MotionDoc::Dynamic),
        };
        let own = [
            ("density", doc.density.as_ref().map(|key| &key.span)),
            ("mass", doc.mass.as_ref().map(|key| &key.span)),
            ("velocity", doc.velocity.as_ref().map(|key| &key.span)),
            ("spin", doc.spin.as_ref().map(|key| &key.span)),
        ];
        let given = own.into_iter().find_map(|(key, span)| Some((key, span?)));
        if let (false, Some((key, span))) = (free, given) {
            let message = format!("\"{key}\" is a dynamic body's");
            let problem = Problem::new(span.clone(), message);
            return self.none(problem.help("add motion = \"dynamic\" to the body"));
        }
        Some(())
    }

    fn dynamic(&mut self, doc: &BodyDoc, shape: &ShapeDoc) -> Option<Dynamic> {
        let span = shape.span();
        let shape = Arc::new(shape.build(self)?);
        let Some(mut dynamic) = Dynamic::of_density(shape, 1.0) else {
            let problem = Problem::new(
                span,
                "this shape has no volume or no end, so it cannot be a dynamic body",
            );
            return self.none(problem.help("a dynamic body needs a solid with a volume"));
        };
        let mass = match (&doc.density, &doc.mass) {
            (Some(density), None) => dynamic.mass * density.si,
            (None, Some(mass)) => mass.si,
            (Some(_), Some(mass)) => {
                let message = "a dynamic body has a density or a mass, not both";
                return self.none(Problem::new(mass.span.clone(), message));
            }
            (None, None) => {
                let message = "a dynamic body needs a density or a mass";
                let problem = Problem::new(doc.span.clone(), message);
                return self.none(problem.help("for example density = \"700 kg/m3\""));
            }
        };
        dynamic.inertia *= mass / dynamic.mass;
        dynamic.mass = mass;
        if let Some(velocity) = &doc.velocity {
            dynamic.velocity = velocity.vec3();
        }
        if let Some(spin) = &doc.spin {
            dynamic.spin = spin.vec3();
        }
        // Rapier reckons with 32-bit floats and the inverse of the inertia.
        let least = dynamic.inertia.determinant().cbrt() as f32;
        if !(least.recip().is_finite() && (mass as f32).recip().is_finite()) {
            let message = format!("a body of {mass:e} kg is too light or too small to be moved");
            return self.none(Problem::new(doc.span.clone(), message));
        }
        Some(dynamic)
    }

    /// The index of the body called `name`.
    fn named(&mut self, name: &Text, bodies: &[Body]) -> Option<usize> {
        let mut found = (0..bodies.len()).filter(|index| bodies[*index].name == name.value);
        let (first, second) = (found.next(), found.next());
        if second.is_some() {
            let message = format!("there are several bodies called \"{}\"", name.value);
            let problem = Problem::new(name.span.clone(), message);
            return self.none(problem.help("give each its own name"));
        }
        if first.is_none() {
            let names: Vec<&str> = bodies.iter().map(|body| body.name.as_str()).collect();
            let message = format!("there is no body \"{}\"", name.value);
            return self
                .none(Problem::new(name.span.clone(), message).help(suggest(&name.value, &names)));
        }
        first
    }

    fn joint(&mut self, doc: &JointDoc, bodies: &[Body]) -> Option<(usize, Joint)> {
        let owner = self.named(&doc.body, bodies);
        let to = match &doc.to {
            Some(name) => Some(self.named(name, bodies)?),
            None => None,
        };
        let owner = owner?;
        if !matches!(bodies[owner].form, Form::Dynamic(_)) {
            let message = format!("\"{}\" is not a dynamic body", doc.body.value);
            let problem = Problem::new(doc.body.span.clone(), message);
            return self.none(problem.help("name the dynamic one as body, the other one as to"));
        }
        if let (Some(index), Some(name)) = (to, &doc.to) {
            let wrong = if index == owner {
                Some("a body cannot be tied to itself")
            } else if matches!(bodies[index].form, Form::Sequence(_)) {
                Some("nothing can be tied to a mesh sequence, which deforms")
            } else {
                None
            };
            if let Some(message) = wrong {
                return self.none(Problem::new(name.span.clone(), message));
            }
        }
        let kind = self.joint_kind(doc)?;
        let joint = Joint {
            kind,
            to,
            at: doc.at.vec3(),
            to_at: doc.to_at.as_ref().unwrap_or(&doc.at).vec3(),
            release: doc
                .release
                .as_ref()
                .map_or(f64::INFINITY, |release| release.si),
        };
        Some((owner, joint))
    }

    fn joint_kind(&mut self, doc: &JointDoc) -> Option<JointKind> {
        let rope = doc.kind == JointKindDoc::Rope;
        let hinge = doc.kind == JointKindDoc::Hinge;
        let misplaced: [(&str, Option<&Range<usize>>, bool); 3] = [
            ("to_at", doc.to_at.as_ref().map(|key| &key.span), rope),
            ("length", doc.length.as_ref().map(|key| &key.span), rope),
            ("axis", doc.axis.as_ref().map(|key| &key.span), hinge),
        ];
        for (key, span, fits) in misplaced {
            if let (Some(span), false) = (span, fits) {
                let message = format!("a {} joint has no \"{key}\"", doc.kind.word());
                return self.none(Problem::new(span.clone(), message));
            }
        }
        match doc.kind {
            JointKindDoc::Ball => Some(JointKind::Ball),
            JointKindDoc::Fixed => Some(JointKind::Fixed),
            JointKindDoc::Hinge => {
                let axis = doc
                    .axis
                    .as_ref()
                    .and_then(|axis| axis.vec3().try_normalize());
                let Some(axis) = axis else {
                    let span = doc.axis.as_ref().map_or(&doc.span, |axis| &axis.span);
                    let problem =
                        Problem::new(span.clone(), "a hinge needs an axis that is not zero");
                    return self.none(problem.help("for example axis = [0, 0, 1]"));
                };
                Some(JointKind::Hinge { axis })
            }
            JointKindDoc::Rope => {
                let Some(end) = &doc.to_at else {
                    let problem = Problem::new(doc.span.clone(), "a rope needs its other end");
                    return self.none(problem.help("add to_at = [x, y, z]"));
                };
                let apart = end.vec3().distance(doc.at.vec3());
                let length = doc.length.as_ref().map_or(apart, |length| length.si as f32);
                if length <= 0.0 {
                    let problem = Problem::new(end.span.clone(), "a rope's ends are at one place");
                    return self.none(problem.help("give its length, or tie it with a ball"));
                }
                Some(JointKind::Rope { length })
            }
        }
    }

    /// Dynamic bodies must be able to meet every other one.
    fn check_contacts(&mut self, doc: &SceneDoc, bodies: &[Body]) {
        if !bodies
            .iter()
            .any(|body| matches!(body.form, Form::Dynamic(_)))
        {
            return;
        }
        for (body, doc) in bodies.iter().zip(&doc.body) {
            let meets = match &body.form {
                Form::Static(shape) | Form::Keyframed(shape, _) => can_collide(shape),
                Form::Dynamic(_) | Form::Sequence(_) => true,
            };
            if !meets {
                let message = format!(
                    "dynamic bodies cannot meet \"{}\": a shape without an end must be a plane, the ground, or a union of such",
                    body.name
                );
                let problem = Problem::new(doc.span.clone(), message);
                self.problems
                    .push(problem.help("use a large box in place of the ground in it"));
            }
        }
    }

    fn track(&mut self, doc: &BodyDoc) -> Option<Track> {
        for pair in doc.keyframes.windows(2) {
            if pair[1].time.si <= pair[0].time.si {
                let message = format!(
                    "a keyframe must be later than the one before it ({} s)",
                    pair[0].time.si
                );
                return self.none(Problem::new(pair[1].time.span.clone(), message));
            }
        }
        let keys: Vec<_> = doc
            .keyframes
            .iter()
            .map(|key| (key.time.si, pose(&key.at, &key.rotate)))
            .collect();
        let interpolation = match doc.interpolation {
            InterpolationDoc::Smooth => Interpolation::Smooth,
            InterpolationDoc::Linear => Interpolation::Linear,
        };
        Some(Track::new(&keys, interpolation))
    }

    fn sequence(&mut self, doc: &SequenceDoc) -> Option<MeshSequence> {
        let pattern = &doc.files.value;
        let digits = pattern.chars().filter(|c| *c == '#').count();
        let run = "#".repeat(digits);
        if digits > MOST_DIGITS {
            let message = format!("the number of a file has at most {MOST_DIGITS} digits");
            return self.none(Problem::new(doc.files.span.clone(), message));
        }
        if digits == 0 || !pattern.contains(&run) {
            let problem = Problem::new(
                doc.files.span.clone(),
                "the name of a sequence needs one run of # for its number",
            );
            return self.none(problem.help("for example blade_####.obj"));
        }
        if doc.last.0 < doc.first.0 || doc.last.0 - doc.first.0 >= MOST_FILES {
            let message = format!(
                "\"last\" ({}) must be from \"first\" ({}) on, and at most {MOST_FILES} files",
                doc.last.0, doc.first.0
            );
            return self.none(Problem::new(doc.span.clone(), message));
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for number in doc.first.0..=doc.last.0 {
            let file = Text {
                value: pattern.replace(&run, &format!("{number:0digits$}")),
                span: doc.files.span.clone(),
            };
            self.read_mesh_file(&file)?;
            files.push(self.folder.join(file.value));
        }
        let sequence = MeshSequence {
            files,
            fps: doc.fps.as_ref().map_or(self.fps, |fps| fps.si),
            start: doc.start.si,
            pose: pose(&doc.at, &doc.rotate),
            scale: doc.scale.si as f32,
            cell: doc.cell.as_ref().map(|cell| cell.si as f32),
            resolution: self.resolution,
        };
        match sequence.load(0) {
            Ok(_) => Some(sequence),
            Err(error) => self.none(Problem::new(doc.files.span.clone(), error.to_string())),
        }
    }
}
