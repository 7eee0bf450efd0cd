"""The particles of `barchan bench surface` through splashsurf: prints the times of each run, on the clock and of all processors, and the number of triangles as JSON.

stdin: positions, three floats each. argv: radius, smoothing length and cell in radii, runs, after one to warm up.
"""

import json
import sys
import time

import numpy as np
import pysplashsurf

radius, smoothing_length, cell, repeats = sys.argv[1:]
particles = np.frombuffer(sys.stdin.buffer.read(), "<f4").reshape(-1, 3)
runs = []
for _ in range(1 + int(repeats)):
    began, idle = time.perf_counter(), time.process_time()
    made = pysplashsurf.reconstruct_surface(
        particles,
        particle_radius=float(radius),
        smoothing_length=float(smoothing_length),
        cube_size=float(cell),
        iso_surface_threshold=0.6,
        multi_threading=True,
        simd=True,
        subdomain_grid=True,
    )
    runs.append([time.perf_counter() - began, time.process_time() - idle])
print(json.dumps({"runs": runs[1:], "triangles": len(made.mesh.triangles)}))
