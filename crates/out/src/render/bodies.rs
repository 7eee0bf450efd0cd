//! The scene's solids, ready for rays: planes and meshes met exactly, other shapes by marching along their distance.

use super::bvh::Bvh;
use super::ray::Ray;
use barchan_base::mesh::Mesh;
use barchan_base::shape::Shape;
use barchan_base::{Bounds, Pose};
use barchan_sim::body::{Body, Form, SequenceError};
use barchan_sim::model::Model;
use barchan_sim::solids::BodyPlace;
use glam::{Quat, Vec3};
use std::sync::Arc;

/// Steps of a march before it gives up: only rays that graze a surface take so many.
const MOST_STEPS: usize = 160;
/// How near a march must come, over the size of the shape.
const NEAR: f32 = 1e-5;
/// Interpolated normals further than this cosine from the triangle's own cross an edge, and are not used.
const CREASE: f32 = 0.8;

/// Planes whose normal has less than this part upward are walls, not ground.
const LEAST_UPWARD: f32 = 0.5;

/// What a body is drawn as, in its own coordinates.
enum Form3 {
    /// Everything below the plane at `offset` along `normal`.
    Plane { normal: Vec3, offset: f32 },
    /// A ball.
    Ball { centre: Vec3, radius: f32 },
    /// Triangles with normals at their corners.
    Mesh(Box<MeshForm>),
    /// Any other shape, with its size [m].
    Shape(Box<Shape>, f32),
}

/// Triangles, ready for rays.
pub struct MeshForm {
    bvh: Bvh,
    mesh: Mesh,
    normals: Vec<Vec3>,
}

/// A part of a body, placed for a frame.
#[derive(Clone)]
pub struct Placed {
    form: Arc<Form3>,
    pose: Pose,
    bounds: Bounds,
    /// Index of the body in the scene.
    pub body: usize,
}

/// Where a ray meets a body.
#[derive(Clone, Copy, Debug)]
pub struct BodyHit {
    /// How far along the ray [m].
    pub t: f32,
    /// Unit normal.
    pub normal: Vec3,
    /// True for a plane without end.
    pub endless: bool,
}

/// The bodies of a scene; what never changes is prepared once.
pub struct Bodies {
    parts: Vec<Vec<Arc<Form3>>>,
}

impl Bodies {
    /// Prepares the bodies of `model`.
    pub fn new(model: &Model) -> Self {
        let parts = model.bodies.iter().map(|body| {
            let mut parts = Vec::new();
            match &body.form {
                Form::Static(shape) | Form::Keyframed(shape, _) => {
                    collect(shape, Pose::IDENTITY, 1.0, &mut parts);
                }
                Form::Dynamic(dynamic) => collect(&dynamic.shape, Pose::IDENTITY, 1.0, &mut parts),
                Form::Sequence(_) => {}
            }
            parts.retain(|form| !shuts_out(form, model.up));
            parts
        });
        Self {
            parts: parts.collect(),
        }
    }

    /// The bodies as they stand at `time` [s]; `places` are what the frame recorded of them, where there is a frame.
    ///
    /// # Errors
    /// If a file of a mesh sequence cannot be used.
    pub fn placed(
        &self,
        model: &Model,
        time: f64,
        places: &[BodyPlace],
    ) -> Result<Vec<Placed>, SequenceError> {
        let mut placed = Vec::new();
        for (index, body) in model.bodies.iter().enumerate() {
            let pose = pose_at(body, time, places.get(index));
            let all = self.parts[index]
                .iter()
                .cloned()
                .chain(sequence_at(body, time)?);
            placed.extend(all.map(|form| Placed::new(form, pose, index)));
        }
        Ok(placed)
    }
}

/// True for a wall without end: drawn, it would hide all that it holds and let no light in.
fn shuts_out(form: &Form3, up: Vec3) -> bool {
    matches!(form, Form3::Plane { normal, .. } if normal.dot(up) < LEAST_UPWARD)
}

/// Where a body is at `time` [s], when `place` is what a frame recorded of it.
pub fn pose_at(body: &Body, time: f64, place: Option<&BodyPlace>) -> Pose {
    match &body.form {
        Form::Keyframed(_, track) => track.pose(time),
        Form::Static(_) | Form::Sequence(_) => Pose::IDENTITY,
        Form::Dynamic(_) => place.map_or(Pose::IDENTITY, |place| {
            let rotation = Quat::from_array(place.rotation);
            Pose::new(Vec3::from_array(place.position), rotation)
        }),
    }
}

fn sequence_at(body: &Body, time: f64) -> Result<Option<Arc<Form3>>, SequenceError> {
    let Form::Sequence(sequence) = &body.form else {
        return Ok(None);
    };
    let (a, b, f) = sequence.files_at(time);
    let (first, second) = (sequence.load(a)?, sequence.load(b)?);
    let mesh = sequence.blend(&first, &second, b, f)?;
    Ok(Some(Arc::new(Form3::Mesh(Box::new(MeshForm::new(mesh))))))
}

/// Takes a shape apart into what is met exactly and what must be marched to.
fn collect(shape: &Shape, pose: Pose, scale: f32, parts: &mut Vec<Arc<Form3>>) {
    let placed = |shape: &Shape| shape.clone().placed(pose, scale);
    let form = match shape {
        Shape::Placed(inner, at, size) => {
            let position = pose.point(at.position * scale);
            let outer = Pose::new(position, pose.rotation * at.rotation);
            return collect(inner, outer, scale * size, parts);
        }
        Shape::Union(all) => {
            for part in all {
                collect(part, pose, scale, parts);
            }
            return;
        }
        Shape::HalfSpace { normal } => {
            let normal = pose.vector(*normal);
            Form3::Plane {
                normal,
                offset: normal.dot(pose.position),
            }
        }
        Shape::Sphere { radius } => Form3::Ball {
            centre: pose.position,
            radius: radius * scale,
        },
        Shape::Mesh(mesh) => {
            let moved = mesh.mesh().mapped(|vertex| pose.point(vertex * scale));
            match moved {
                Ok(mesh) => Form3::Mesh(Box::new(MeshForm::new(mesh))),
                // Scaled to nothing: there is nothing to see.
                Err(_) => return,
            }
        }
        other => {
            let shape = placed(other);
            let size = shape.bounds().size().max_element();
            let size = if size.is_finite() { size } else { 1.0 };
            Form3::Shape(Box::new(shape), size)
        }
    };
    parts.push(Arc::new(form));
}

impl MeshForm {
    /// Prepares `mesh`.
    pub fn new(mesh: Mesh) -> Self {
        let mut normals = vec![Vec3::ZERO; mesh.vertices().len()];
        for (i, corners) in mesh.triangles().iter().enumerate() {
            for corner in corners {
                normals[*corner as usize] += mesh.area_vector(i);
            }
        }
        for normal in &mut normals {
            *normal = normal.normalize_or_zero();
        }
        Self {
            bvh: Bvh::new(mesh.vertices(), mesh.triangles()),
            mesh,
            normals,
        }
    }

    fn hit(&self, ray: &Ray, from: f32, limit: f32) -> Option<(f32, Vec3)> {
        let hit = self.bvh.hit(ray, from, limit)?;
        let face = self
            .mesh
            .area_vector(hit.triangle as usize)
            .normalize_or(-ray.direction);
        let corners = self.mesh.triangles()[hit.triangle as usize];
        let [v, w] = hit.weights;
        let smooth = corners
            .iter()
            .zip([1.0 - v - w, v, w])
            .map(|(corner, weight)| self.normals[*corner as usize] * weight)
            .sum::<Vec3>()
            .normalize_or(face);
        let normal = if smooth.dot(face) > CREASE {
            smooth
        } else {
            face
        };
        // Thin sheets are seen from both sides.
        let normal = if face.dot(ray.direction) > 0.0 {
            -normal
        } else {
            normal
        };
        Some((hit.t, normal))
    }
}

impl Placed {
    fn new(form: Arc<Form3>, pose: Pose, body: usize) -> Self {
        let local = match &*form {
            Form3::Plane { .. } => Bounds::EVERYTHING,
            Form3::Ball { centre, radius } => Bounds::of([*centre]).grown(*radius),
            Form3::Mesh(mesh) => mesh.mesh.bounds(),
            // A little room, for marches end a little outside.
            Form3::Shape(shape, size) => shape.bounds().grown(1e-3 * size),
        };
        let bounds = pose.bounds(local);
        Self {
            form,
            pose,
            bounds,
            body,
        }
    }

    /// Where `ray` first meets the body before `limit` [m].
    pub fn hit(&self, ray: &Ray, limit: f32) -> Option<BodyHit> {
        let (enter, leave) = slab(self.bounds, ray);
        let (enter, leave) = (enter.max(0.0), leave.min(limit));
        if enter > leave {
            return None;
        }
        let local = Ray {
            origin: self.pose.local_point(ray.origin),
            direction: self.pose.local_vector(ray.direction),
        };
        let (t, normal) = match &*self.form {
            Form3::Plane { normal, offset } => {
                let t = (offset - normal.dot(local.origin)) / normal.dot(local.direction);
                // From above only, and not within the solid.
                let met = t > 0.0 && t < limit && normal.dot(local.direction) < 0.0;
                met.then_some((t, *normal))?
            }
            Form3::Ball { centre, radius } => ball(*centre, *radius, &local, limit)?,
            Form3::Mesh(mesh) => mesh.hit(&local, 0.0, limit)?,
            Form3::Shape(shape, size) => march(shape, *size, &local, (enter, leave))?,
        };
        let endless = matches!(*self.form, Form3::Plane { .. });
        Some(BodyHit {
            t,
            normal: self.pose.vector(normal),
            endless,
        })
    }

    /// How far `point` is inside the solid [m]; negative outside. Meshes without thickness have no inside.
    pub fn depth(&self, point: Vec3) -> f32 {
        let local = self.pose.local_point(point);
        match &*self.form {
            Form3::Plane { normal, offset } => offset - normal.dot(local),
            Form3::Ball { centre, radius } => radius - local.distance(*centre),
            Form3::Mesh(mesh) => {
                let tree = barchan_base::mesh::WindingTree::new(&mesh.mesh);
                if tree.contains(local) {
                    f32::MIN_POSITIVE
                } else {
                    -1.0
                }
            }
            Form3::Shape(shape, _) => -shape.distance(local),
        }
    }

    /// Box around it; infinite for planes.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }
}

/// Marches by the distance it is told (sphere tracing, Hart 1996).
fn march(shape: &Shape, size: f32, ray: &Ray, (from, limit): (f32, f32)) -> Option<(f32, Vec3)> {
    let mut t = from;
    let near = NEAR * size;
    let mut distance = shape.distance(ray.at(t));
    // A ray that begins on the surface first has to get away from it.
    let mut away = distance > near;
    for _ in 0..MOST_STEPS {
        if distance >= near + 1e-6 * t {
            t += distance;
        } else if away || distance < -near {
            let normal = shape.surface(ray.at(t)).normal;
            return (normal.dot(ray.direction) < 0.0).then_some((t, normal));
        } else {
            t += near;
        }
        if t > limit {
            return None;
        }
        distance = shape.distance(ray.at(t));
        away |= distance > 2.0 * near;
    }
    None
}

/// Where `ray` enters a ball.
fn ball(centre: Vec3, radius: f32, ray: &Ray, limit: f32) -> Option<(f32, Vec3)> {
    let to = centre - ray.origin;
    let middle = to.dot(ray.direction);
    let aside = (to - ray.direction * middle).length_squared();
    let t = middle - (radius * radius - aside).max(0.0).sqrt();
    let met = aside < radius * radius && t > 0.0 && t < limit;
    met.then(|| (t, (ray.at(t) - centre) / radius))
}

/// Where `ray` enters and leaves `bounds`.
fn slab(bounds: Bounds, ray: &Ray) -> (f32, f32) {
    if !bounds.is_finite() {
        return (0.0, f32::INFINITY);
    }
    let inverse = ray.direction.recip();
    let (a, b) = (
        (bounds.min - ray.origin) * inverse,
        (bounds.max - ray.origin) * inverse,
    );
    (a.min(b).max_element(), a.max(b).min_element())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::shape::MeshShape;

    fn placed(shape: Shape) -> Vec<Placed> {
        let body = Body {
            name: "one".into(),
            form: Form::Static(Arc::new(shape)),
            friction: 0.5,
            restitution: None,
        };
        let mut parts = Vec::new();
        let Form::Static(shape) = &body.form else {
            unreachable!("it is static")
        };
        collect(shape, Pose::IDENTITY, 1.0, &mut parts);
        let place = |form| Placed::new(form, Pose::IDENTITY, 0);
        parts.into_iter().map(place).collect()
    }

    #[test]
    fn the_ground_is_drawn_and_walls_without_end_are_not() {
        let shut = |normal: Vec3| shuts_out(&placed(Shape::HalfSpace { normal })[0].form, Vec3::Y);
        assert!(!shut(Vec3::Y));
        assert!(!shut(Vec3::new(0.6, 0.8, 0.0)));
        assert!(shut(Vec3::X) && shut(-Vec3::Z) && shut(-Vec3::Y));
        let wall = placed(Shape::Cuboid { half: Vec3::ONE });
        assert!(!shuts_out(&wall[0].form, Vec3::Y));
    }

    #[test]
    fn shapes_and_their_meshes_are_met_in_the_same_place() {
        let cube = barchan_base::mesh::unit_cube();
        let pose = Pose::new(Vec3::new(1.0, 2.0, 3.0), glam::Quat::from_rotation_y(0.3));
        let mesh = Shape::Mesh(Arc::new(MeshShape::new(cube, 0.05).unwrap())).placed(pose, 2.0);
        let shape = Shape::Cuboid {
            half: Vec3::splat(0.5),
        }
        .placed(pose, 2.0);
        let (mesh, shape) = (placed(mesh), placed(shape));
        for i in 0..200 {
            let origin = Vec3::new(6.0, (i as f32 * 0.7).sin() * 4.0, (i as f32).cos() * 4.0);
            let target = Vec3::new(1.0, 2.0 + (i as f32 * 1.3).sin() * 0.5, 3.0);
            let ray = Ray {
                origin,
                direction: (target - origin).normalize(),
            };
            let a = mesh[0].hit(&ray, 1e9).unwrap();
            let b = shape[0].hit(&ray, 1e9).unwrap();
            assert!((a.t - b.t).abs() < 1e-3, "{} and {}", a.t, b.t);
            assert!(a.normal.dot(ray.direction) < 0.0 && b.normal.dot(ray.direction) < 0.0);
        }
        assert!(mesh[0].depth(pose.position) > 0.0 && shape[0].depth(pose.position) > 0.9);
        assert!(mesh[0].depth(Vec3::ZERO) < 0.0 && shape[0].depth(Vec3::ZERO) < 0.0);
    }

    #[test]
    fn the_ground_is_met_from_above() {
        let up = Vec3::Z;
        let pose = Pose::new(Vec3::new(0.0, 0.0, 0.25), glam::Quat::IDENTITY);
        let ground = placed(Shape::HalfSpace { normal: up }.placed(pose, 1.0));
        let down = Ray {
            origin: Vec3::splat(1.0),
            direction: -up,
        };
        let hit = ground[0].hit(&down, 1e9).unwrap();
        assert!((hit.t - 0.75).abs() < 1e-6 && hit.endless && hit.normal == up);
    }

    #[test]
    fn a_ray_that_leaves_a_surface_does_not_meet_it_again() {
        let ball = placed(Shape::Sphere { radius: 0.5 });
        let capsule = placed(Shape::Capsule {
            radius: 0.5,
            half_height: 0.0,
        });
        for i in 0..100 {
            let angle = i as f32 * 0.0157;
            let ray = Ray {
                origin: Vec3::new(0.0, 0.500_02, 0.0),
                direction: Vec3::new(angle.cos(), angle.sin() + 0.02, 0.0).normalize(),
            };
            assert!(ball[0].hit(&ray, 1e9).is_none(), "{angle}");
            assert!(capsule[0].hit(&ray, 1e9).is_none(), "{angle}");
        }
    }
}
