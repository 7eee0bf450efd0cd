"""pbrt-v4's scenes, by a strict reader of our own: no package of pbrt can be installed.

Every directive and parameter must be one that pbrt knows, of the type that it wants. Where the camera sees each grain is worked out as
pbrt's source has it and compared with where Mitsuba's own camera sees it in the Mitsuba scene of the same frame.
"""

import re
import sys
from pathlib import Path

import numpy as np
from check import FRAMES, mesh, particles, report, truth

try:
    import mitsuba as mi
except ImportError:
    mi = None

# What may stand before the world begins, within it, and the numbers that a directive without parameters takes.
BEFORE = {"Film", "Camera", "Sampler", "Integrator", "Scale", "LookAt"}
WITHIN = {"AttributeBegin", "AttributeEnd", "LightSource", "MakeNamedMaterial", "NamedMaterial", "Shape", "Translate"}
NUMBERS = {"Scale": 3, "LookAt": 9, "Translate": 3, "AttributeBegin": 0, "AttributeEnd": 0}
# Parameters by directive and kind: type, and how many values (-1: any whole number of threes).
PARAMETERS = {
    ("Film", "rgb"): {"xresolution": ("integer", 1), "yresolution": ("integer", 1), "filename": ("string", 1)},
    ("Camera", "perspective"): {"fov": ("float", 1)},
    ("Sampler", "zsobol"): {"pixelsamples": ("integer", 1)},
    ("Integrator", "path"): {"maxdepth": ("integer", 1)},
    ("LightSource", "infinite"): {"L": ("rgb", 3)},
    ("LightSource", "distant"): {"L": ("rgb", 3), "from": ("point3", 3), "to": ("point3", 3)},
    ("MakeNamedMaterial", None): {"type": ("string", 1), "reflectance": ("rgb", 3)},
    ("NamedMaterial", None): {},
    ("Shape", "sphere"): {"radius": ("float", 1)},
    ("Shape", "trianglemesh"): {"P": ("point3", -1), "indices": ("integer", -1)},
    ("Shape", "plymesh"): {"filename": ("string", 1)},
}
TOKEN = re.compile(r'\s*(#[^\n]*|"[^"\n]*"|\[|\]|[^\s"\[\]#]+)')


def tokens(text):
    at, text = 0, text.rstrip()
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, f"no token at {text[at : at + 30]!r}"
        at = found.end()
        if not found[1].startswith("#"):
            yield found[1]


def value(token, kind):
    """One value of a parameter; strings are quoted, numbers are not."""
    if kind == "string":
        assert token.startswith('"'), token
        return token[1:-1]
    return int(token) if kind == "integer" else float(token)


def parameters(words, allowed):
    """The parameters at the head of `words`, which they are taken from."""
    found = {}
    while words and words[0].startswith('"'):
        kind, name = words.pop(0)[1:-1].split()
        wanted, count = allowed[name]
        assert kind == wanted, f"{name} is {wanted}, not {kind}"
        if words[0] == "[":
            end = words.index("]")
            values = [value(word, kind) for word in words[1:end]]
            del words[: end + 1]
        else:
            values = [value(words.pop(0), kind)]
        assert len(values) == count or (count == -1 and len(values) % 3 == 0), name
        found[name] = values
    return found


def directives(path):
    """Each directive: its name, its kind, its numbers or parameters."""
    words = list(tokens(Path(path).read_text()))
    words.reverse()
    take = words.pop
    within, depth = False, 0
    while words:
        name = take()
        if name == "WorldBegin":
            assert not within, "two worlds"
            within = True
            continue
        assert name in (WITHIN if within else BEFORE), f"{name} out of place"
        depth += {"AttributeBegin": 1, "AttributeEnd": -1}.get(name, 0)
        assert depth in (0, 1), "attributes do not match"
        if name in NUMBERS:
            yield name, None, [float(take()) for _ in range(NUMBERS[name])]
            continue
        kind = take()[1:-1]
        allowed = PARAMETERS.get((name, None), PARAMETERS.get((name, kind)))
        head = []
        while words and not words[-1][0].isalpha():
            head.append(take())
        yield name, kind, parameters(head, allowed)
    assert within and depth == 0, "the world or an attribute does not end"


class Scene:
    def __init__(self, path):
        self.spheres, self.meshes, self.materials = [], [], set()
        place, material = None, None
        for name, kind, values in directives(path):
            if name == "Translate":
                place = values
            elif name == "AttributeBegin":
                place = [0, 0, 0]
            elif name == "MakeNamedMaterial":
                self.materials.add(kind)
            elif name == "NamedMaterial":
                assert kind in self.materials, f"no material {kind}"
                material = kind
            elif name == "Shape" and kind == "sphere":
                self.spheres.append((*place, *values["radius"], int(material.removeprefix("material"))))
            elif name == "Shape" and kind == "plymesh":
                self.meshes.append(Path(path).parent / values["filename"][0])
            elif name in ("Scale", "LookAt", "Film", "Camera"):
                setattr(self, name.lower(), values)

    def pixels(self, points):
        """Where pbrt's camera sees `points`: x right, y down."""
        eye, target, up = np.array(self.lookat).reshape(3, 3)
        ahead = (target - eye) / np.linalg.norm(target - eye)
        right = np.cross(up / np.linalg.norm(up), ahead)
        right /= np.linalg.norm(right)
        seen = (points - eye) @ np.stack([right, np.cross(ahead, right), ahead], axis=1) * self.scale
        size = np.array([self.film["xresolution"][0], self.film["yresolution"][0]])
        half = np.tan(np.radians(self.camera["fov"][0]) / 2) * seen[:, 2:]
        return size / 2 + seen[:, :2] / half * [1, -1] * size.min() / 2


def mitsuba_pixels(path, points):
    """Where Mitsuba's camera sees `points` in its own scene."""
    mi.set_variant("scalar_rgb")
    camera = mi.load_file(path).sensors()[0]

    def pixel(point):
        at = mi.SurfaceInteraction3f()
        at.p = mi.Point3f(*point.tolist())
        return list(camera.sample_direction(at, [0.5, 0.5])[0].uv)

    return np.array([pixel(point) for point in points])


def grains(matched):
    for frame in FRAMES:
        scene = Scene(particles("pbrt", frame, "pbrt"))
        found = np.array(scene.spheres).reshape(-1, 5)
        matched.same("grammar, count, positions", found[:, :3], truth("position", frame), 1e-6)
        matched.same("radii", found[:, 3], truth("radius", frame), 1e-6)
        matched.same("materials", found[:, 4], truth("material", frame))
    if not mi:
        return
    some = truth("position", FRAMES[-1])[::97].astype(float)
    seen = mitsuba_pixels(particles("mitsuba", FRAMES[-1], "xml"), some)
    matched.same("places in the picture", scene.pixels(some), seen, 0.05)


def surface(matched):
    for frame in FRAMES:
        scene = Scene(mesh("pbrt", frame, "pbrt"))
        (path,) = scene.meshes
        header = path.read_bytes().split(b"end_header")[0].decode()
        counts = [int(n) for n in re.findall(r"element \w+ (\d+)", header)]
        matched.same("grammar, mesh", counts, [len(truth("vertices", frame)), len(truth("triangles", frame))])


name = "own reader of pbrt-v4"
done = [report("pbrt, particles", name, grains), report("pbrt, mesh", name, surface)]
sys.exit(0 if all(done) else 1)
