"""The particles of `barchan bench surface` through splashsurf: prints its best times and the number of triangles as JSON.

stdin: positions, three floats each. argv: radius, smoothing length and cell in radii, repeats.
"""

import json
import sys
import time

import numpy as np
import pysplashsurf

radius, smoothing_length, cell, repeats = sys.argv[1:]
particles = np.frombuffer(sys.stdin.buffer.read(), "<f4").reshape(-1, 3)
best = worked = float("inf")
for _ in range(int(repeats)):
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
    best = min(best, time.perf_counter() - began)
    worked = min(worked, time.process_time() - idle)
print(json.dumps({"seconds": best, "processor_seconds": worked, "triangles": len(made.mesh.triangles)}))
