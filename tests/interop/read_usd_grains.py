"""Grains with their shapes, as instances, through Pixar's own library."""

import sys

import numpy as np
from check import FRAMES, RUN, missing, report, truth

try:
    from pxr import Usd, UsdGeom
except ImportError:
    missing("usd-core")

SPHERES = {"gravel_0": 4, "popcorn_1": 9}


def turned(orientation, vectors):
    """Vectors turned by quaternions x, y, z, w."""
    imaginary, real = orientation[:, :3], orientation[:, 3:]
    twice = 2 * np.cross(imaginary, vectors)
    return vectors + real * twice + np.cross(imaginary, twice)


def instances(matched, path):
    stage = Usd.Stage.Open(str(RUN / "export" / path))
    schema = UsdGeom.PointInstancer(stage.GetPrimAtPath("/barchan/grains"))
    prototypes = [stage.GetPrimAtPath(path) for path in schema.GetPrototypesRel().GetTargets()]
    found = {prim.GetName(): len([child for child in prim.GetChildren() if child.IsA(UsdGeom.Sphere)]) for prim in prototypes}
    matched.same("prototypes", found == SPHERES, True)
    # A grain's radius is one there: its farthest sphere ends at one.
    for prim in prototypes:
        spheres = [UsdGeom.Sphere(child) for child in prim.GetChildren()]
        places = [np.array(UsdGeom.Xformable(s).GetLocalTransformation())[3, :3] for s in spheres]
        reach = [np.linalg.norm(place) + s.GetRadiusAttr().Get() for place, s in zip(places, spheres)]
        matched.same("radius of prototypes", max(reach), 1.0, 1e-6)
    for frame in FRAMES:
        matched.same("count, positions", np.array(schema.GetPositionsAttr().Get(frame)), truth("position", frame))
        matched.same("ids", np.array(schema.GetIdsAttr().Get(frame)), truth("id", frame))
        matched.same("which prototype", np.array(schema.GetProtoIndicesAttr().Get(frame)), truth("material", frame))
        matched.same("velocities", np.array(schema.GetVelocitiesAttr().Get(frame)), truth("velocity", frame))
        # What a renderer makes of all attributes together.
        matrices = np.array(schema.ComputeInstanceTransformsAtTime(frame, frame))
        axis = np.tile([1.0, 0.0, 0.0], (len(matrices), 1))
        expected = turned(truth("orientation", frame), axis) * truth("radius", frame)[:, None]
        # USD's quaternions have 16 bits a part: each is off by up to 2.4e-4, and what they turn by up to eight times that.
        matched.same("turns and sizes", matrices[:, 0, :3], expected, 2e-3 * truth("radius", frame).max())
        matched.same("places", matrices[:, 3, :3], truth("position", frame), 1e-6)


name = "usd-core " + ".".join(str(part) for part in Usd.GetVersion()[1:])
done = [
    report("usd, grains", name, lambda matched: instances(matched, "usd/grains.usda")),
    report("usdc, grains", name, lambda matched: instances(matched, "usdc/grains.usdc")),
]
sys.exit(0 if all(done) else 1)
