"""Grains with their shapes, as instances, through Blender."""

import sys

import numpy as np
from check import FRAMES, RUN, missing, report, truth

try:
    import bpy
except ImportError:
    missing("bpy")


def instances(matched, path):
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.usd_import(filepath=str(RUN / "export" / path))
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        spheres = [i.matrix_world.copy() for i in graph.object_instances if i.is_instance and i.object.type == "MESH"]
        counts = np.where(truth("material", frame) == 0, 4, 9)
        matched.same("count of spheres", len(spheres), counts.sum())
        # Spheres lie about their grain's centre, so that all together have the grains' mean weighted by their number. z is up here.
        centre = np.mean([m.translation for m in spheres], axis=0)
        expected = np.average(truth("position", frame), axis=0, weights=counts) @ [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
        matched.same("places", centre, expected, 1e-4)


name = "Blender " + bpy.app.version_string
done = [
    report("usd, grains", name, lambda matched: instances(matched, "usd/grains.usda")),
    report("usdc, grains", name, lambda matched: instances(matched, "usdc/grains.usdc")),
]
sys.exit(0 if all(done) else 1)
