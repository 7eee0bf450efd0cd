"""USD through Pixar's own library."""

import sys

import numpy as np
from check import FPS, FRAMES, RUN, missing, report, truth

try:
    from pxr import Usd, UsdGeom
except ImportError:
    missing("usd-core")


def stage_of(matched, path):
    stage = Usd.Stage.Open(str(path))
    matched.same("frame range", [stage.GetStartTimeCode(), stage.GetEndTimeCode()], [0, FRAMES[-1]])
    matched.same("frames a second", stage.GetTimeCodesPerSecond(), FPS)
    matched.same("up, metres", [UsdGeom.GetStageUpAxis(stage) == "Y", UsdGeom.GetStageMetersPerUnit(stage)], [1, 1])
    return stage


def points(matched, path):
    stage = stage_of(matched, RUN / "export" / path)
    schema = UsdGeom.Points(stage.GetPrimAtPath("/barchan/particles"))
    for frame in FRAMES:
        matched.same("count, positions", np.array(schema.GetPointsAttr().Get(frame)), truth("position", frame))
        matched.same("ids", np.array(schema.GetIdsAttr().Get(frame)), truth("id", frame))
        matched.same("velocities", np.array(schema.GetVelocitiesAttr().Get(frame)), truth("velocity", frame))
        matched.same("widths", np.array(schema.GetWidthsAttr().Get(frame)), 2 * truth("radius", frame))
        for name in ("mass", "material"):
            variable = UsdGeom.PrimvarsAPI(schema).GetPrimvar(name)
            matched.same(name, np.array(variable.Get(frame)), truth(name, frame))
            matched.same("a value a point", variable.GetInterpolation() == "vertex", True)
        bounds = np.array(schema.GetExtentAttr().Get(frame))
        reach = truth("radius", frame)[:, None]
        expected = [(truth("position", frame) - reach).min(0), (truth("position", frame) + reach).max(0)]
        matched.same("bounds", bounds, expected, 1e-6)
    matched.same("times", schema.GetPointsAttr().GetTimeSamples(), list(FRAMES))


def surface(matched, path):
    stage = stage_of(matched, RUN / "export-mesh" / path)
    schema = UsdGeom.Mesh(stage.GetPrimAtPath("/barchan/mesh"))
    for frame in FRAMES:
        matched.same("vertices", np.array(schema.GetPointsAttr().Get(frame)), truth("vertices", frame))
        corners = np.array(schema.GetFaceVertexIndicesAttr().Get(frame)).reshape(-1, 3)
        matched.same("triangles", corners, truth("triangles", frame))


name = "usd-core " + ".".join(str(part) for part in Usd.GetVersion()[1:])
done = [
    report("usd, particles", name, lambda matched: points(matched, "usd/particles.usda")),
    report("usd, mesh", name, lambda matched: surface(matched, "usd/mesh.usda")),
    report("usdc, particles", name, lambda matched: points(matched, "usdc/particles.usdc")),
    report("usdc, mesh", name, lambda matched: surface(matched, "usdc/mesh.usdc")),
]
sys.exit(0 if all(done) else 1)
