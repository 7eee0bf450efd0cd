//! The scene file, key by key. These doc comments are what `barchan schema` and editors show.

use super::grains::{AlduanDoc, ContactDoc, GrainDoc, StiffnessDoc};
use super::quantity::{
    Acceleration, Acute, Angle, Density, FrameAway, Frequency, Length, Mass, NotNegative, Positive,
    Pressure, Quantity, Rate, Ratio, Speed, Spin, Time, Triple, Unit, UpToStraight, Viscosity,
};
use super::read::{Count, Read, Text};
use super::render::RenderDoc;
use super::shapes::ShapeDoc;
use crate::{keywords, table};
use std::collections::BTreeMap;

/// The highest frame number that file names can hold.
pub const MOST_FRAMES: u64 = 999_999;

table! {
    /// A scene: what is simulated, how, and what is kept of it. Numbers are SI and degrees; strings may carry a unit.
    pub struct SceneDoc {
        /// Version of the scene format: 1.
        schema: Count<1>,
        /// Name of the run and of its folder; the file's name if left out.
        name: Option<Text>,
        /// Frames to simulate after frame 0, which is the start.
        frames: Count<1, MOST_FRAMES>,
        /// Frames a second.
        fps: Quantity<Frequency, Positive> = Quantity::of(24.0),
        /// The axis that points up; gravity pulls against it.
        up: UpDoc = UpDoc::Y,
        /// Gravity as a vector, in place of 9.81 m/s² against `up`.
        gravity: Option<Triple<Acceleration>>,
        /// Seed of everything random.
        seed: Count<0> = Count(0),
        /// How it is simulated.
        solver: SolverDoc,
        /// The materials, by name.
        materials: BTreeMap<String, MaterialDoc>,
        /// Material that is there at the start.
        fill: Vec<FillDoc>,
        /// Material that arrives later.
        emit: Vec<EmitDoc>,
        /// Where material disappears.
        sink: Vec<SinkDoc>,
        /// Where material turns wet or dry.
        wet: Vec<WetDoc>,
        /// Solids that material meets.
        body: Vec<BodyDoc>,
        /// What ties dynamic bodies to each other or to the world.
        joint: Vec<JointDoc>,
        /// Air that brakes and carries free grains; left out, they fly in a vacuum.
        air: Option<AirDoc>,
        /// How frames and checkpoints are kept.
        output: OutputDoc,
        /// Many small grains in place of each particle, made when the run is done.
        detail: Option<DetailDoc>,
        /// The surface around the material, made when the run is done.
        surface: Option<SurfaceDoc>,
        /// How `barchan spread` moves crowded grains apart on a surface.
        spread: Option<SpreadDoc>,
        /// Files to write when the run is done.
        export: Option<ExportDoc>,
        /// Pictures to make when the run is done.
        render: Option<RenderDoc>,
    }
}

keywords! {
    /// An axis.
    pub enum UpDoc {
        /// x is up.
        X = "x",
        /// y is up.
        Y = "y",
        /// z is up.
        Z = "z",
    }
}

table! {
    /// How the scene is simulated. A key that not every method understands begins with the names of those that do.
    pub struct SolverDoc {
        /// The method.
        method: Method,
        /// Cell size, particle spacing or grain size, whichever the method has.
        resolution: Quantity<Length, Positive>,
        /// The longest time step allowed; the method's own limits still hold.
        max_step: Option<Quantity<Time, Positive>>,
        /// sph: how pressure and friction are solved for; "implicit" if left out.
        scheme: Option<SphScheme>,
        /// sph: sweeps over all particles in a step; 5 if left out, 3 with scheme = "ihmsen".
        iterations: Option<Count<1>>,
        /// sph: how friction depends on the flow; "constant" if left out.
        law: Option<SphLaw>,
        /// dem: the law of contact; "hertz-mindlin" if left out.
        contact: Option<ContactDoc>,
        /// dem: Young's modulus of the grains, or "auto": as soft as `overlap` allows, for longer steps; "auto" if left out.
        stiffness: Option<StiffnessDoc>,
        /// dem: how deep grains may press into each other with stiffness = "auto", over their radius; 1 % if left out.
        overlap: Option<Quantity<Ratio, Positive>>,
        /// dem: the constants of contact = "alduan"; those of the paper if left out.
        alduan: Option<AlduanDoc>,
        /// flip: how granular material resists shearing.
        friction: FrictionDoc = FrictionDoc::Implicit,
        /// flip: how velocity goes from particles to the grid and back; left out, "apic" with implicit friction and "flip" else.
        transfer: Option<TransferDoc>,
        /// flip: 1 keeps every detail of the motion (FLIP), 0 smooths it out (PIC); left out, 0.97 for fluids and 0.1 for sand.
        flip_ratio: Option<Quantity<Ratio, Unit>>,
        /// flip, hybrid: cells that the fastest particle may cross in a step; left out, 1, and 5 with friction = "zhu-bridson", as in their work.
        cfl: Option<Quantity<Ratio, Positive>>,
        /// hybrid: cells below the surface that never turn solid; 0 if left out.
        depth: Option<Count<0>>,
        /// hybrid: how long material must rest before it turns solid; ten times what a cell's fall takes if left out.
        rest_time: Option<Quantity<Time, Positive>>,
        /// hybrid: cells around the box about a moving body in which nothing is solid; 4 if left out.
        reach: Option<Count<1>>,
    }
}

keywords! {
    /// A way to solve for pressure and friction with particles.
    pub enum SphScheme {
        /// Together, and kept from step to step: piles rest and keep their angle.
        Implicit = "implicit",
        /// As published by Ihmsen et al. in 2013: anew in each step, by prediction and correction.
        Ihmsen = "ihmsen",
    }
}

keywords! {
    /// How friction depends on the flow.
    pub enum SphLaw {
        /// Not at all.
        Constant = "constant",
        /// It grows with the inertial number, for grains of the material's `grain_size`.
        Inertial = "inertial",
    }
}

keywords! {
    /// A model of friction on the grid.
    pub enum FrictionDoc {
        /// Pressure, friction within and friction at walls in one solve that remembers its stresses.
        Implicit = "implicit",
        /// As published by Zhu and Bridson in 2005: rigid groups and sliding stress, cell by cell.
        ZhuBridson = "zhu-bridson",
    }
}

keywords! {
    /// How velocity travels between particles and the grid.
    pub enum TransferDoc {
        /// Particles carry an affine velocity (Jiang et al. 2015).
        Apic = "apic",
        /// The blend of FLIP and PIC that `flip_ratio` says.
        Flip = "flip",
    }
}

keywords! {
    /// A method of simulation.
    pub enum Method {
        /// Free grains: gravity, drag, wind and bouncing off bodies, but not off each other.
        Ballistic = "ballistic",
        /// Sand and water on a grid that follows the particles (Zhu and Bridson 2005).
        Flip = "flip",
        /// Sand as particles that carry a continuum (Ihmsen et al. 2013).
        Sph = "sph",
        /// Grain by grain: rigid grains of one or more spheres that touch (Alduán et al. 2009).
        Dem = "dem",
        /// Three phases: what rests is solid and costs nothing, what flows is flip, what flies is ballistic (Munns 2015).
        Hybrid = "hybrid",
    }
}

table! {
    /// A material. Start from a preset and override what differs.
    pub struct MaterialDoc {
        /// A preset; `barchan info presets` lists them with their sources.
        preset: Option<Text>,
        /// Density of the material as it lies, air between its grains included.
        density: Option<Quantity<Density, Positive>>,
        /// Density of a single grain.
        grain_density: Option<Quantity<Density, Positive>>,
        /// Diameter of a single grain; drag depends on it.
        grain_size: Option<Quantity<Length, Positive>>,
        /// Angle of internal friction: the slope of a pile.
        friction_angle: Option<Quantity<Angle, Acute>>,
        /// Shear strength without load.
        cohesion: Option<Quantity<Pressure, NotNegative>>,
        /// Shear strength without load that being wet adds; 1 kPa if left out.
        wet_cohesion: Quantity<Pressure, NotNegative> = Quantity::of(1000.0),
        /// Artificial viscosity that being wet adds; 0.3 if left out.
        wet_viscosity: Quantity<Ratio, NotNegative> = Quantity::of(0.3),
        /// Part of the speed that a grain keeps when it bounces.
        restitution: Option<Quantity<Ratio, Unit>>,
        /// dem: its single grains; hybrid: their shape alone.
        grain: GrainDoc,
    }
}

table! {
    /// Where material turns wet or dry while it runs.
    pub struct WetDoc {
        /// Particles with their centre inside change.
        shape: ShapeDoc,
        /// What their wetness becomes: 1 is wet, 0 is dry.
        wetness: Quantity<Ratio, Unit> = Quantity::of(1.0),
        /// How much of it changes in a second.
        rate: Quantity<Frequency, Positive> = Quantity::of(1.0),
        /// When it begins.
        from: Quantity<Time, NotNegative> = Quantity::of(0.0),
        /// When it ends; never, if left out.
        until: Option<Quantity<Time, NotNegative>>,
    }
}

table! {
    /// Material that is there at the start.
    pub struct FillDoc {
        /// Which material.
        material: Text,
        /// What it fills.
        shape: ShapeDoc,
        /// Velocity at the start.
        velocity: Triple<Speed> = Triple::of([0.0; 3]),
        /// How particles are laid out; left out, "jittered", and "lattice" for dem, whose grains must not overlap.
        seeding: Option<SeedingDoc>,
    }
}

keywords! {
    /// A layout of particles.
    pub enum SeedingDoc {
        /// At the centres of cubes.
        Lattice = "lattice",
        /// At a random place in each cube.
        Jittered = "jittered",
        /// Random, but never close together.
        BlueNoise = "blue-noise",
        /// Jittered, but what is less than a cell below the surface moved to half a cell below it (Zhu and Bridson 2005).
        Settled = "settled",
    }
}

table! {
    /// Material that arrives while the scene runs.
    pub struct EmitDoc {
        /// Which material.
        material: Text,
        /// Where it appears.
        shape: ShapeDoc,
        /// How much a second: a volume, or "500 particles/s".
        rate: Rate,
        /// Velocity on arrival.
        velocity: Triple<Speed> = Triple::of([0.0; 3]),
        /// Directions spread evenly within this angle of the velocity.
        spread: Quantity<Angle, UpToStraight> = Quantity::of(0.0),
        /// When it begins.
        from: Quantity<Time, NotNegative> = Quantity::of(0.0),
        /// When it ends; never, if left out.
        until: Option<Quantity<Time, NotNegative>>,
    }
}

table! {
    /// Where material disappears; what was removed is counted.
    pub struct SinkDoc {
        /// Particles with their centre inside are removed.
        shape: ShapeDoc,
        /// When it begins.
        from: Quantity<Time, NotNegative> = Quantity::of(0.0),
        /// When it ends; never, if left out.
        until: Option<Quantity<Time, NotNegative>>,
    }
}

table! {
    /// A solid. It has a shape, or a sequence of mesh files; it stands still unless it has keyframes, a sequence, or is
    /// dynamic.
    pub struct BodyDoc {
        /// Its name in reports and for joints.
        name: Option<Text>,
        /// How it moves; left out, it stands still or follows its keyframes or its sequence.
        motion: Option<MotionDoc>,
        /// Its shape.
        shape: Option<ShapeDoc>,
        /// Mesh files, one a frame: the solid moves and deforms from each to the next.
        sequence: Option<SequenceDoc>,
        /// Places on its way, applied on top of the shape's own placement.
        keyframes: Vec<KeyframeDoc>,
        /// How it moves from keyframe to keyframe.
        interpolation: InterpolationDoc = InterpolationDoc::Smooth,
        /// Density of a dynamic body; its shape gives the mass and how it resists turning.
        density: Option<Quantity<Density, Positive>>,
        /// Mass of a dynamic body, in place of its density.
        mass: Option<Quantity<Mass, Positive>>,
        /// Velocity of a dynamic body's centre of mass at the start.
        velocity: Option<Triple<Speed>>,
        /// Angular velocity of a dynamic body at the start, about x, y and z.
        spin: Option<Triple<Spin>>,
        /// Coefficient of Coulomb friction; between two bodies, the mean of theirs.
        friction: Quantity<Ratio, NotNegative> = Quantity::of(0.6),
        /// Part of the speed that a grain keeps when it bounces off; the material's own if left out. Between two
        /// bodies, the mean of theirs, where left out counts as 0.
        restitution: Option<Quantity<Ratio, Unit>>,
    }
}

keywords! {
    /// How a body moves.
    pub enum MotionDoc {
        /// It stands still.
        Static = "static",
        /// It follows its keyframes and yields to nothing.
        Keyframed = "keyframed",
        /// It moves by force: gravity, material, other bodies, joints.
        Dynamic = "dynamic",
    }
}

table! {
    /// What ties a dynamic body to another body or to the world. Places are those of time zero.
    pub struct JointDoc {
        /// What it lets free.
        kind: JointKindDoc,
        /// Name of a dynamic body.
        body: Text,
        /// Name of the body it is tied to; the world if left out.
        to: Option<Text>,
        /// Where it holds the body.
        at: Triple<Length>,
        /// Where a rope holds what it is tied to; needed for a rope only.
        to_at: Option<Triple<Length>>,
        /// Direction of a hinge.
        axis: Option<Triple<Ratio>>,
        /// Length of a rope; the distance between its ends at the start if left out.
        length: Option<Quantity<Length, Positive>>,
        /// When it lets go; never, if left out.
        release: Option<Quantity<Time, NotNegative>>,
    }
}

keywords! {
    /// A kind of joint.
    pub enum JointKindDoc {
        /// The two places are never further apart than its length.
        Rope = "rope",
        /// The bodies turn about an axis through the place.
        Hinge = "hinge",
        /// The bodies turn about the place.
        Ball = "ball",
        /// The bodies move as one.
        Fixed = "fixed",
    }
}

table! {
    /// Where a body is at a time.
    pub struct KeyframeDoc {
        /// The time.
        time: Quantity<Time, NotNegative>,
        /// Moved by this much.
        at: Triple<Length> = Triple::of([0.0; 3]),
        /// Turned about the origin by these angles about x, then y, then z.
        rotate: Triple<Angle> = Triple::of([0.0; 3]),
    }
}

keywords! {
    /// How to move between keyframes.
    pub enum InterpolationDoc {
        /// Along a curve without kinks.
        Smooth = "smooth",
        /// Straight, at constant speed.
        Linear = "linear",
    }
}

table! {
    /// A sequence of mesh files with the same triangles and moving vertices.
    pub struct SequenceDoc {
        /// File name relative to the scene; a run of # is the file's number with zeros in front.
        files: Text,
        /// Number of the first file.
        first: Count<0> = Count(1),
        /// Number of the last file.
        last: Count<0>,
        /// Files a second; the scene's frames a second if left out.
        fps: Option<Quantity<Frequency, Positive>>,
        /// Time of the first file.
        start: Quantity<Time, NotNegative> = Quantity::of(0.0),
        /// Moved by this much.
        at: Triple<Length> = Triple::of([0.0; 3]),
        /// Turned by these angles about x, then y, then z.
        rotate: Triple<Angle> = Triple::of([0.0; 3]),
        /// Scaled by this factor.
        scale: Quantity<Ratio, Positive> = Quantity::of(1.0),
        /// Cell size of the sampled distance; chosen from the size of the mesh if left out.
        cell: Option<Quantity<Length, Positive>>,
    }
}

table! {
    /// The air.
    pub struct AirDoc {
        /// Density.
        density: Quantity<Density, Positive> = Quantity::of(1.204),
        /// Dynamic viscosity.
        viscosity: Quantity<Viscosity, Positive> = Quantity::of(1.82e-5),
        /// Velocity of the wind.
        wind: Triple<Speed> = Triple::of([0.0; 3]),
    }
}

table! {
    /// How frames and checkpoints are kept.
    pub struct OutputDoc {
        /// Compression of the frame files.
        compression: Compression = Compression::None,
        /// Frames between checkpoints.
        checkpoint_every: Count<1> = Count(1),
    }
}

keywords! {
    /// Compression of frame files.
    pub enum Compression {
        /// Fast and plain.
        None = "none",
        /// A little smaller, nearly as fast.
        Lz4 = "lz4",
        /// Smallest.
        Zstd = "zstd",
    }
}

table! {
    /// Many small grains that follow the particles. They do not feel each other.
    pub struct DetailDoc {
        /// Grains in place of each particle.
        grains_per_particle: Count<1, 65536> = Count(100),
        /// What moves a grain.
        rule: DetailRule = DetailRule::Ihmsen,
        /// Where a particle's grains begin; "support-points" if left out, "sphere" with rule = "alduan".
        sampling: Option<DetailSampling>,
        /// How far a particle is felt, in its radii.
        reach: Quantity<Ratio, Positive> = Quantity::of(3.0),
        /// The longest time step.
        step: Quantity<Time, Positive> = Quantity::of(0.01),
        /// alduan: steps from one interpolation of the particles' velocities to the next.
        every: Count<1, 1000> = Count(1),
        /// Keeps grains from sinking between the particles and from gathering; false gives the rules as published.
        hold_density: bool = true,
        /// Diameter of a grain; if left out, such that the grains fill the material as sand does.
        size: Option<Quantity<Length, Positive>>,
        /// Grains are up to this part larger or smaller.
        size_spread: Quantity<Ratio, Unit> = Quantity::of(0.3),
        /// How frames of grains are kept.
        storage: DetailStorage = DetailStorage::Full,
        /// Fewer and larger grains far from the camera of `[render]`: full detail up to this distance.
        near: Option<Quantity<Length, Positive>>,
    }
}

impl Default for DetailDoc {
    fn default() -> Self {
        Self::missing().expect("every key has a default")
    }
}

keywords! {
    /// What moves a grain.
    pub enum DetailRule {
        /// The particles' velocity blended with free flight, by weights (Ihmsen et al. 2013).
        Ihmsen = "ihmsen",
        /// The particles' velocity near two or more of them, free flight elsewhere (Alduán et al. 2009).
        Alduan = "alduan",
    }
}

keywords! {
    /// Where a particle's grains begin.
    pub enum DetailSampling {
        /// About seven points in and around it (Ihmsen et al. 2013).
        SupportPoints = "support-points",
        /// Anywhere in its sphere (Alduán et al. 2009).
        Sphere = "sphere",
    }
}

keywords! {
    /// How frames of grains are kept.
    pub enum DetailStorage {
        /// As frames of particles: about 60 bytes a grain.
        Full = "full",
        /// Places in 16 bits and velocities in 8, within the box of each particle's grains: about 10 bytes a grain.
        Compact = "compact",
    }
}

table! {
    /// The surface around the material.
    pub struct SurfaceDoc {
        /// The function whose zero is the surface.
        style: SurfaceStyle = SurfaceStyle::ZhuBridson,
        /// Distance between nodes of the grid; half the particles' spacing if left out.
        cell: Option<Quantity<Length, Positive>>,
        /// How far a particle reaches, in spacings.
        support: Quantity<Ratio, Positive> = Quantity::of(2.0),
        /// Radius of a particle alone, in radii; 1 is half the spacing.
        radius: Quantity<Ratio, Positive> = Quantity::of(1.0),
        /// Passes of smoothing, which fill hollows and wear nothing away; 8 at most.
        smoothing: Count<0, 8> = Count(2),
        /// Formats of the mesh files.
        formats: Vec<MeshFormat> = vec![MeshFormat::Ply],
        /// Makes surfaces within the time that a camera's shutter is open as well.
        shutter: Option<ShutterDoc>,
    }
}

impl Default for SurfaceDoc {
    fn default() -> Self {
        Self::missing().expect("every key has a default")
    }
}

keywords! {
    /// A function whose zero is a surface.
    pub enum SurfaceStyle {
        /// Weighted means of centres and radii (Zhu & Bridson 2005): flat where particles lie flat.
        ZhuBridson = "zhu-bridson",
        /// Blobs that melt together (Blinn 1982), for comparison.
        Blobby = "blobby",
        /// A density, as SPH has it.
        Sph = "sph",
        /// Kernels flattened along the surface (Yu & Turk 2013): smoothest, and best for thin sheets.
        Anisotropic = "anisotropic",
    }
}

table! {
    /// When a camera's shutter is open.
    pub struct ShutterDoc {
        /// When it opens, in frames after the frame; may be negative.
        open: Quantity<Ratio, FrameAway> = Quantity::of(0.0),
        /// When it closes, in frames after the frame.
        close: Quantity<Ratio, FrameAway> = Quantity::of(0.5),
        /// Surfaces in that time, both ends included.
        samples: Count<2, 64> = Count(5),
    }
}

keywords! {
    /// A format of mesh files.
    pub enum MeshFormat {
        /// Stanford polygon files, binary, with all that vertices carry. What `barchan render` reads.
        Ply = "ply",
        /// Wavefront text.
        Obj = "obj",
        /// Triangles for 3D printing, binary.
        Stl = "stl",
        /// Binary glTF.
        Glb = "glb",
        /// ParaView's .vtp.
        Vtk = "vtk",
    }
}

table! {
    /// How crowded grains are moved apart on a surface (Munns 2015).
    pub struct SpreadDoc {
        /// The surface they lie on.
        on: SpreadOn = SpreadOn::Bodies,
        /// Width of the faces that grains are counted on; four spacings if left out.
        cell: Option<Quantity<Length, Positive>>,
        /// How far apart grains shall be; their own diameter if left out.
        spacing: Option<Quantity<Length, Positive>>,
        /// The most grains on a face, in place of a spacing.
        max_per_face: Option<Quantity<Ratio, Positive>>,
        /// How far above or below the surface a grain counts as on it; one cell if left out.
        reach: Option<Quantity<Length, Positive>>,
        /// Passes at most; 1 is what the thesis does.
        passes: Count<1, 1000> = Count(40),
        /// Cuts faces with many grains into four, to move them more finely.
        refine: bool = false,
        /// How grains take up the pressure.
        rule: SpreadRule = SpreadRule::Transport,
    }
}

keywords! {
    /// How grains take up the pressure.
    pub enum SpreadRule {
        /// With its flow, until the densities are what it wants.
        Transport = "transport",
        /// A step along its gradient in each pass (Munns 2015).
        Metaballs = "metaballs",
    }
}

keywords! {
    /// A surface to spread grains on.
    pub enum SpreadOn {
        /// The solids of the scene.
        Bodies = "bodies",
        /// The surface around all particles.
        Material = "material",
    }
}

table! {
    /// Files to write when the run is done.
    pub struct ExportDoc {
        /// Formats, each into its folder under export/.
        formats: Vec<Format>,
    }
}

keywords! {
    /// A format of other programs' files.
    pub enum Format {
        /// Alembic: one .abc with every frame.
        Abc = "abc",
        /// USD as text: one .usda with every frame.
        Usd = "usd",
        /// USD as binary crate: one .usdc with every frame.
        Usdc = "usdc",
        /// OpenVDB: distance, density and velocity on sparse voxels.
        Vdb = "vdb",
        /// Houdini's classic .bgeo of points.
        Bgeo = "bgeo",
        /// Stanford polygon files.
        Ply = "ply",
        /// ParaView's .vtp, with a .pvd for the time axis.
        Vtk = "vtk",
        /// Binary glTF.
        Glb = "glb",
        /// Scenes of pbrt-v4, ready to render.
        Pbrt = "pbrt",
        /// Scenes of Mitsuba 3, ready to render.
        Mitsuba = "mitsuba",
    }
}
