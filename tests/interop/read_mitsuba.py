"""Mitsuba's scenes, loaded and rendered small."""

import sys

import numpy as np
from check import FRAMES, RUN, missing, mesh, particles, report, truth

try:
    import mitsuba as mi
except ImportError:
    missing("mitsuba")
mi.set_variant("scalar_rgb")


def picture(matched, scene):
    film = mi.traverse(scene.sensors()[0])
    film["film.size"] = [160, 90]
    film.update()
    image = np.array(mi.render(scene, spp=4))
    # Grains or mesh stand in front of the grey ground: some pixels are warmer than it.
    warm = (image[..., 0] > 1.1 * image[..., 2]).mean()
    matched.same("renders, content in sight", [np.isfinite(image).all(), 0.005 < warm < 0.9], [True, True])


def grains(matched):
    frame = FRAMES[-1]
    scene = mi.load_file(particles("mitsuba", frame, "xml"))
    spheres = [shape for shape in scene.shapes() if "Sphere" in str(type(shape)) or "Sphere" in str(shape)[:10]]
    boxes = np.array([[shape.bbox().min, shape.bbox().max] for shape in spheres]).reshape(-1, 2, 3)
    matched.same("count, positions", boxes.mean(axis=1), truth("position", frame), 1e-5)
    matched.same("radii", (boxes[:, 1] - boxes[:, 0]).mean(axis=1) / 2, truth("radius", frame), 1e-5)
    picture(matched, scene)


def surface(matched):
    frame = FRAMES[-1]
    scene = mi.load_file(mesh("mitsuba", frame, "xml"))
    shape = [shape for shape in scene.shapes() if shape.is_mesh() and shape.face_count() > 2][0]
    matched.same("vertices", shape.vertex_count(), len(truth("vertices", frame)))
    matched.same("triangles", shape.face_count(), len(truth("triangles", frame)))
    box = np.array([shape.bbox().min, shape.bbox().max])
    expected = [truth("vertices", frame).min(0), truth("vertices", frame).max(0)]
    matched.same("bounds", box, expected, 1e-5)
    picture(matched, scene)


name = "Mitsuba " + mi.__version__
done = [report("mitsuba, particles", name, grains), report("mitsuba, mesh", name, surface)]
sys.exit(0 if all(done) else 1)
