"""Puts a mesh beside each frame of a run: a ball that grows and moves, so that no two frames are alike."""

import sys
from pathlib import Path

import numpy as np

run = Path(sys.argv[1])
(run / "meshes").mkdir(exist_ok=True)
rings, steps = 12, 24
angles = [(np.pi * i / rings, 2 * np.pi * j / steps) for i in range(1, rings) for j in range(steps)]
unit = [[np.sin(a) * np.cos(b), np.cos(a), np.sin(a) * np.sin(b)] for a, b in angles]
unit = np.array([[0, 1, 0], *unit, [0, -1, 0]])
last = len(unit) - 1
triangles = []
for j in range(steps):
    k = (j + 1) % steps
    triangles.append([0, 1 + k, 1 + j])
    triangles.append([last, last - steps + j, last - steps + k])
    for i in range(rings - 2):
        a, b = 1 + i * steps + j, 1 + i * steps + k
        triangles += [[a, b, a + steps], [b, b + steps, a + steps]]
for number, _ in enumerate(sorted((run / "frames").glob("*.arrow"))):
    vertices = (0.3 + 0.02 * number) * unit + [0.1 * number, 0.5, 0]
    with open(run / f"meshes/{number:06}.ply", "wb") as file:
        file.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(vertices))
        file.write(b"property float x\nproperty float y\nproperty float z\n")
        file.write(b"element face %d\nproperty list uchar int vertex_indices\nend_header\n" % len(triangles))
        file.write(vertices.astype("<f4").tobytes())
        for triangle in triangles:
            file.write(b"\3" + np.array(triangle, "<i4").tobytes())
