"""Alembic, USD, OpenVDB, PLY and GLB through Blender, frame by frame."""

import sys

import numpy as np
from check import FRAMES, FPS, RUN, mesh, missing, particles, report, truth

try:
    import bpy
except ImportError:
    missing("bpy")


def fresh():
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = int(FPS)


def at(frame):
    """The one object with data, as it is at `frame`."""
    bpy.context.scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    (found,) = [o for o in bpy.context.scene.objects if o.type in ("POINTCLOUD", "MESH", "VOLUME")]
    return found.evaluated_get(graph)


def column(data, name, width):
    attribute = data.attributes[name].data
    values = np.empty(len(attribute) * width, np.float32)
    attribute.foreach_get("vector" if width == 3 else "value", values)
    return values.reshape(-1, 3) if width == 3 else values


def world(object, points):
    matrix = np.array(object.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def upright(points):
    """Blender's z is up, ours is y."""
    return np.stack([points[:, 0], -points[:, 2], points[:, 1]], axis=1)


def corners(data):
    return np.array([list(polygon.vertices) for polygon in data.polygons])


def cloud(matched, velocities):
    scene = bpy.context.scene
    matched.same("frame range", [scene.frame_start, scene.frame_end], [0, FRAMES[-1]])
    for frame in FRAMES:
        found = at(frame)
        positions = world(found, column(found.data, "position", 3))
        matched.same("count, positions", positions, upright(truth("position", frame)), 1e-5)
        matched.same("radii", column(found.data, "radius", 1), truth("radius", frame), 1e-6)
        matched.same("mass", column(found.data, "mass", 1), truth("mass", frame), 1e-6)
        speeds = np.linalg.norm(column(found.data, "velocity", 3), axis=1)
        expected = np.linalg.norm(truth("velocity", frame), axis=1) * velocities
        matched.same("velocities", speeds, expected, 1e-4)


def surface(matched, animated=True):
    for frame in FRAMES if animated else [0]:
        found = at(frame)
        vertices = world(found, column(found.data, "position", 3))
        matched.same("vertices", vertices, upright(truth("vertices", frame)), 1e-5)
        turned = np.sort(corners(found.data), axis=1)
        matched.same("triangles", turned, np.sort(truth("triangles", frame), axis=1))
        outward = np.array([p.normal for p in found.data.polygons])
        away = np.array([p.center for p in found.data.polygons])
        middle = column(found.data, "position", 3)
        matched.same("outward", (np.einsum("ij,ij->i", outward, away - middle.mean(axis=0)) > 0).all(), True)


def alembic(matched):
    fresh()
    bpy.ops.wm.alembic_import(filepath=str(RUN / "export/abc/particles.abc"))
    cloud(matched, 1.0)


def alembic_mesh(matched):
    fresh()
    bpy.ops.wm.alembic_import(filepath=str(RUN / "export-mesh/abc/mesh.abc"))
    surface(matched)


def usd(matched, path="usd/particles.usda"):
    fresh()
    bpy.ops.wm.usd_import(filepath=str(RUN / "export" / path))
    cloud(matched, 1.0)


def usd_mesh(matched, path="usd/mesh.usda"):
    fresh()
    bpy.ops.wm.usd_import(filepath=str(RUN / "export-mesh" / path))
    surface(matched)


def vdb(matched):
    for frame in FRAMES:
        fresh()
        bpy.ops.object.volume_import(filepath=particles("vdb", frame, "vdb"))
        grids = at(0).data.grids
        grids.load()
        matched.same("grids", sorted(g.name for g in grids) == ["density", "distance", "velocity"], True)


def ply(matched):
    for frame in FRAMES:
        fresh()
        bpy.ops.wm.ply_import(filepath=particles("ply", frame, "ply"), forward_axis="NEGATIVE_Z", up_axis="Y")
        found = at(0)
        positions = world(found, column(found.data, "position", 3))
        matched.same("count, positions", positions, upright(truth("position", frame)), 1e-5)
        matched.same("radii", column(found.data, "radius", 1), truth("radius", frame), 1e-6)
        matched.same("velocities", column(found.data, "vx", 1), truth("velocity", frame)[:, 0], 1e-6)


def glb(matched):
    for frame in FRAMES:
        fresh()
        bpy.ops.import_scene.gltf(filepath=particles("glb", frame, "glb"))
        found = at(0)
        positions = world(found, column(found.data, "position", 3))
        matched.same("count, positions", positions, upright(truth("position", frame)), 1e-5)
        matched.same("radii", column(found.data, "_RADIUS", 1), truth("radius", frame), 1e-6)
        matched.same("velocities", column(found.data, "_VELOCITY_Y", 1), truth("velocity", frame)[:, 1], 1e-6)


def glb_mesh(matched):
    fresh()
    bpy.ops.import_scene.gltf(filepath=mesh("glb", 0, "glb"))
    found = at(0)
    box = world(found, column(found.data, "position", 3))
    expected = upright(truth("vertices", 0))
    matched.same("bounds", [box.min(0), box.max(0)], [expected.min(0), expected.max(0)], 1e-5)
    matched.same("triangles", len(found.data.polygons), len(truth("triangles", 0)))


name = "Blender " + bpy.app.version_string
checks = {
    "abc, particles": alembic,
    "abc, mesh": alembic_mesh,
    "usd, particles": usd,
    "usd, mesh": usd_mesh,
    "usdc, particles": lambda matched: usd(matched, "usdc/particles.usdc"),
    "usdc, mesh": lambda matched: usd_mesh(matched, "usdc/mesh.usdc"),
    "vdb, particles": vdb,
    "ply, particles": ply,
    "glb, particles": glb,
    "glb, mesh": glb_mesh,
}
done = [report(format, name, check) for format, check in checks.items()]
sys.exit(0 if all(done) else 1)
