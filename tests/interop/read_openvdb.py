"""OpenVDB volumes through OpenVDB."""

import sys

import numpy as np
from check import FRAMES, mesh, missing, particles, report, truth

try:
    import pyopenvdb as openvdb
except ImportError:
    missing("pyopenvdb")


def voxels(grid, width=1):
    """The active values and their places [m]."""
    low, high = grid.evalActiveVoxelBoundingBox()
    size = tuple(h - l + 1 for l, h in zip(low, high))
    values = np.zeros(size if width == 1 else size + (width,), np.float32)
    grid.copyToArray(values, ijk=low)
    active = np.zeros(size, bool)
    for item in grid.citerOnValues():
        active[tuple(m - l for m, l in zip(item.min, low))] = True
    places = (np.argwhere(active) + low) * grid.transform.voxelSize()[0]
    return values[active], places


def nearest(places, points):
    return np.min(np.linalg.norm(places[:, None, :] - points[None, :, :], axis=2), axis=1)


def fields(matched):
    for frame in FRAMES:
        grids, about = openvdb.readAll(particles("vdb", frame, "vdb"))
        grids = {grid.name: grid for grid in grids}
        matched.same("frame, time", [about["frame"], about["time"]], [frame, truth("time", frame)], 1e-9)
        matched.same("grids", len(grids), 3)
        density, _ = voxels(grids["density"])
        edge = grids["density"].transform.voxelSize()[0]
        mass = truth("mass", frame).sum()
        matched.same("mass", density.sum() * edge**3 / mass, 1.0, 1e-4)
        velocity, _ = voxels(grids["velocity"], 3)
        momentum = (density[:, None] * velocity).sum(axis=0) * edge**3
        expected = (truth("mass", frame)[:, None] * truth("velocity", frame)).sum(axis=0)
        matched.same("momentum", momentum / mass, expected / mass, 1e-3)
        distance, places = voxels(grids["distance"])
        some = slice(None, None, max(1, len(places) // 2000))
        reach = 3**0.5 * truth("radius", frame)
        apart = np.linalg.norm(places[some][:, None, :] - truth("position", frame)[None], axis=2)
        matched.same("distances", distance[some], (apart - reach).min(axis=1), 1e-5)
        matched.same("level set", grids["distance"].gridClass == openvdb.GridClass.LEVEL_SET, True)


def surface(matched):
    for frame in FRAMES:
        grid = openvdb.readAll(mesh("vdb", frame, "vdb"))[0][0]
        vertices = truth("vertices", frame)
        centre = (vertices[0] + vertices[-1]) / 2
        radius = np.linalg.norm(vertices[0] - centre)
        distance, places = voxels(grid)
        exact = np.linalg.norm(places - centre, axis=1) - radius
        # The ball is made of flat triangles, up to 2 % of its radius off.
        matched.same("distances, signs", distance, exact, 0.02 * radius)
        edge = grid.transform.voxelSize()[0]
        middle = tuple(int(round(c / edge)) for c in centre)
        matched.same("inside is negative", grid.getConstAccessor().getValue(middle) < 0, True)


name = "OpenVDB " + ".".join(str(part) for part in openvdb.LIBRARY_VERSION)
done = [report("vdb, particles", name, fields), report("vdb, mesh", name, surface)]
sys.exit(0 if all(done) else 1)
