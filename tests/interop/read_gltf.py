"""GLB through trimesh."""

import sys

from check import FRAMES, mesh, missing, particles, report, truth

try:
    import trimesh
except ImportError:
    missing("trimesh")


def points(matched):
    for frame in FRAMES:
        scene = trimesh.load(particles("glb", frame, "glb"))
        cloud = next(iter(scene.geometry.values()))
        matched.same("count, positions", cloud.vertices, truth("position", frame), 1e-6)


def surface(matched):
    for frame in FRAMES:
        scene = trimesh.load(mesh("glb", frame, "glb"), process=False)
        found = next(iter(scene.geometry.values()))
        matched.same("vertices", found.vertices, truth("vertices", frame), 1e-6)
        matched.same("triangles", found.faces, truth("triangles", frame))


name = "trimesh " + trimesh.__version__
done = [report("glb, particles", name, points), report("glb, mesh", name, surface)]
sys.exit(0 if all(done) else 1)
