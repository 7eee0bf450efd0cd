//! Shapes as the scene file writes them, and how they become solids.

use super::builder::Builder;
use super::problem::Problem;
use super::quantity::{Angle, Length, NotNegative, Positive, Quantity, Ratio, Triple};
use super::read::Text;
use crate::{choice, table};
use barchan_base::Pose;
use barchan_base::shape::{Heightfield, Shape};
use glam::{Quat, Vec3};

/// A shape's own keys, and where it is placed.
macro_rules! shape_table {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident { $( $(#[doc = $field_doc:literal])* $field:ident : $type:ty $(= $default:expr)?, )* }
    ) => {
        table! {
            $(#[doc = $doc])*
            pub struct $name {
                $( $(#[doc = $field_doc])* $field: $type $(= $default)?, )*
                /// Where its centre is.
                at: Triple<Length> = Triple::of([0.0; 3]),
                /// Turned by these angles about x, then y, then z.
                rotate: Triple<Angle> = Triple::of([0.0; 3]),
                /// Scaled by this factor.
                scale: Quantity<Ratio, Positive> = Quantity::of(1.0),
            }
        }

        impl $name {
            fn place(&self, shape: Shape) -> Shape {
                shape.placed(pose(&self.at, &self.rotate), self.scale.si as f32)
            }
        }
    };
}

/// The pose of `at` and `rotate`: about x, then y, then z.
pub fn pose(at: &Triple<Length>, rotate: &Triple<Angle>) -> Pose {
    let turn = rotate.vec3();
    let rotation = Quat::from_rotation_z(turn.z)
        * Quat::from_rotation_y(turn.y)
        * Quat::from_rotation_x(turn.x);
    Pose::new(at.vec3(), rotation)
}

choice! {
    /// A shape. Bodies of revolution stand along the scene's up axis.
    pub enum ShapeDoc {
        /// A ball.
        Sphere(SphereDoc) = "sphere",
        /// A box.
        Box(BoxDoc) = "box",
        /// A cylinder.
        Cylinder(CylinderDoc) = "cylinder",
        /// A cylinder with round ends.
        Capsule(CapsuleDoc) = "capsule",
        /// A cone, apex up.
        Cone(ConeDoc) = "cone",
        /// A ring that lies flat.
        Torus(TorusDoc) = "torus",
        /// Everything on the far side of a plane.
        Plane(PlaneDoc) = "plane",
        /// Everything below the origin's level.
        Ground(GroundDoc) = "ground",
        /// Terrain from heights.
        Heightfield(HeightfieldDoc) = "heightfield",
        /// A triangle mesh from a file.
        Mesh(MeshDoc) = "mesh",
        /// What is in any of the parts.
        Union(PartsDoc) = "union",
        /// What is in all of the parts.
        Intersection(PartsDoc) = "intersection",
        /// The first part without the others.
        Difference(PartsDoc) = "difference",
        /// A union with its creases filled.
        SmoothUnion(SmoothPartsDoc) = "smooth_union",
    }
}

shape_table! {
    /// A ball.
    pub struct SphereDoc {
        /// Radius.
        radius: Quantity<Length, Positive>,
    }
}

shape_table! {
    /// A box.
    pub struct BoxDoc {
        /// Edge lengths along x, y and z.
        size: Triple<Length>,
    }
}

shape_table! {
    /// An upright cylinder.
    pub struct CylinderDoc {
        /// Radius.
        radius: Quantity<Length, Positive>,
        /// Height.
        height: Quantity<Length, Positive>,
    }
}

shape_table! {
    /// An upright cylinder with hemispherical ends.
    pub struct CapsuleDoc {
        /// Radius.
        radius: Quantity<Length, Positive>,
        /// Height of the straight part.
        height: Quantity<Length, NotNegative>,
    }
}

shape_table! {
    /// An upright cone, centred at half its height.
    pub struct ConeDoc {
        /// Radius of the base.
        radius: Quantity<Length, Positive>,
        /// Height.
        height: Quantity<Length, Positive>,
    }
}

shape_table! {
    /// A ring that lies flat.
    pub struct TorusDoc {
        /// From the centre to the middle of the tube.
        radius: Quantity<Length, Positive>,
        /// Radius of the tube.
        tube: Quantity<Length, Positive>,
    }
}

shape_table! {
    /// Everything on the side of a plane that its normal points away from.
    pub struct PlaneDoc {
        /// Direction out of the solid, of any length.
        normal: Triple<Ratio>,
    }
}

shape_table! {
    /// Everything below a level.
    pub struct GroundDoc {
    }
}

shape_table! {
    /// Terrain: a grid of heights over a rectangle, solid down to a floor.
    pub struct HeightfieldDoc {
        /// A grey PNG image, relative to the scene; black is low and white is high.
        file: Option<Text>,
        /// Heights row by row, in place of an image.
        heights: Option<Vec<Vec<Quantity<Ratio>>>>,
        /// Width, height of the highest value 1, and depth; the middle one is along up.
        size: Triple<Length>,
        /// Thickness of the ground below the lowest height.
        depth: Quantity<Length, Positive> = Quantity::of(0.1),
        /// Cell size of the sampled distance; chosen from the size of the terrain if left out.
        cell: Option<Quantity<Length, Positive>>,
    }
}

shape_table! {
    /// A triangle mesh; holes and overlaps do no harm.
    pub struct MeshDoc {
        /// An .obj, .stl, .ply, .gltf or .glb file, relative to the scene.
        file: Text,
        /// Scale and centre it first so that its longest edge has this length.
        fit: Option<Quantity<Length, Positive>>,
        /// Cell size of the sampled distance; chosen from the resolution and the size of the mesh if left out.
        cell: Option<Quantity<Length, Positive>>,
    }
}

shape_table! {
    /// Parts to combine.
    pub struct PartsDoc {
        /// The parts.
        of: Vec<ShapeDoc>,
    }
}

shape_table! {
    /// Parts to join smoothly.
    pub struct SmoothPartsDoc {
        /// The parts.
        of: Vec<ShapeDoc>,
        /// Width of the fillets.
        width: Quantity<Length, Positive>,
    }
}

impl ShapeDoc {
    /// The solid; problems are noted in the builder.
    pub fn build(&self, builder: &mut Builder<'_>) -> Option<Shape> {
        let upright = Pose::new(Vec3::ZERO, builder.upright());
        Some(match self {
            Self::Sphere(doc) => doc.place(Shape::Sphere {
                radius: doc.radius.si as f32,
            }),
            Self::Box(doc) => doc.place(doc.cuboid(builder)?),
            Self::Cylinder(doc) => {
                let (radius, half_height) = (doc.radius.si as f32, 0.5 * doc.height.si as f32);
                doc.place(
                    Shape::Cylinder {
                        radius,
                        half_height,
                    }
                    .placed(upright, 1.0),
                )
            }
            Self::Capsule(doc) => {
                let (radius, half_height) = (doc.radius.si as f32, 0.5 * doc.height.si as f32);
                doc.place(
                    Shape::Capsule {
                        radius,
                        half_height,
                    }
                    .placed(upright, 1.0),
                )
            }
            Self::Cone(doc) => {
                let (radius, half_height) = (doc.radius.si as f32, 0.5 * doc.height.si as f32);
                doc.place(
                    Shape::Cone {
                        radius,
                        half_height,
                    }
                    .placed(upright, 1.0),
                )
            }
            Self::Torus(doc) => {
                let (major, minor) = (doc.radius.si as f32, doc.tube.si as f32);
                doc.place(Shape::Torus { major, minor }.placed(upright, 1.0))
            }
            Self::Plane(doc) => doc.place(doc.half_space(builder)?),
            Self::Ground(doc) => doc.place(Shape::HalfSpace {
                normal: builder.up(),
            }),
            Self::Heightfield(doc) => doc.place(doc.terrain(builder)?.placed(upright, 1.0)),
            Self::Mesh(doc) => doc.place(doc.fitted(builder)?),
            Self::Union(doc) => doc.place(Shape::Union(parts(&doc.of, &doc.span, builder)?)),
            Self::Intersection(doc) => {
                doc.place(Shape::Intersection(parts(&doc.of, &doc.span, builder)?))
            }
            Self::Difference(doc) => {
                let mut of = parts(&doc.of, &doc.span, builder)?;
                let kept = of.remove(0);
                doc.place(Shape::Difference(Box::new(kept), of))
            }
            Self::SmoothUnion(doc) => {
                let of = parts(&doc.of, &doc.span, builder)?;
                doc.place(Shape::SmoothUnion(of, doc.width.si as f32))
            }
        })
    }
}

impl BoxDoc {
    fn cuboid(&self, builder: &mut Builder<'_>) -> Option<Shape> {
        if self.size.si.iter().any(|edge| *edge <= 0.0) {
            let message = format!("a box must have positive edges, got {:?} m", self.size.si);
            return builder.none(Problem::new(self.size.span.clone(), message));
        }
        Some(Shape::Cuboid {
            half: self.size.vec3() * 0.5,
        })
    }
}

impl PlaneDoc {
    fn half_space(&self, builder: &mut Builder<'_>) -> Option<Shape> {
        let Some(normal) = self.normal.vec3().try_normalize() else {
            let message = "a plane's normal must not be zero";
            return builder.none(Problem::new(self.normal.span.clone(), message));
        };
        Some(Shape::HalfSpace { normal })
    }
}

fn parts(
    of: &[ShapeDoc],
    span: &std::ops::Range<usize>,
    builder: &mut Builder<'_>,
) -> Option<Vec<Shape>> {
    if of.is_empty() {
        return builder.none(
            Problem::new(span.clone(), "a combination needs at least one part")
                .help("add shapes to of = […]"),
        );
    }
    let built: Vec<Option<Shape>> = of.iter().map(|part| part.build(builder)).collect();
    built.into_iter().collect()
}

impl MeshDoc {
    fn fitted(&self, builder: &mut Builder<'_>) -> Option<Shape> {
        let mesh = builder.load_mesh(&self.file)?;
        let bounds = mesh.bounds();
        let (scale, centre) = match &self.fit {
            Some(fit) => (
                fit.si as f32 / bounds.size().max_element(),
                0.5 * (bounds.min + bounds.max),
            ),
            None => (1.0, Vec3::ZERO),
        };
        let total = scale * self.scale.si as f32;
        let shape = builder.mesh_shape(mesh, self.cell.as_ref(), total, &self.file.span)?;
        Some(Shape::Mesh(shape).placed(Pose::new(-centre * scale, Quat::IDENTITY), scale))
    }
}

impl HeightfieldDoc {
    fn terrain(&self, builder: &mut Builder<'_>) -> Option<Shape> {
        let field = match (&self.file, &self.heights) {
            (Some(file), None) => Heightfield::from_png(&builder.read_file(file)?),
            (None, Some(rows)) => {
                let row = |row: &Vec<Quantity<Ratio>>| {
                    row.iter().map(|height| height.si as f32).collect()
                };
                Heightfield::from_rows(&rows.iter().map(row).collect::<Vec<_>>())
            }
            _ => {
                let message = "a heightfield needs either a file or heights";
                return builder.none(Problem::new(self.span.clone(), message));
            }
        };
        let mesh = field.and_then(|field| field.mesh(self.size.vec3(), self.depth.si as f32));
        match mesh {
            Ok(mesh) => {
                let shape = builder.mesh_shape(
                    mesh,
                    self.cell.as_ref(),
                    self.scale.si as f32,
                    &self.span,
                )?;
                Some(Shape::Mesh(shape))
            }
            Err(error) => builder.none(Problem::new(self.span.clone(), error.to_string())),
        }
    }
}
