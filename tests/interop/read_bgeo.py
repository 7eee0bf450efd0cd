"""bgeo through splashsurf, which reads partio's flavour of it: converted to VTK and compared."""

import subprocess
import sys

from check import FRAMES, RUN, missing, particles, report, truth

try:
    import pysplashsurf  # noqa: F401, run in a process of its own: it can be called once
    import pyvista
except ImportError:
    missing("pysplashsurf")


def points(matched):
    for frame in FRAMES:
        out = RUN / "bgeo.vtk"
        out.unlink(missing_ok=True)
        command = ["convert", "--particles", particles("bgeo", frame, "bgeo"), "-o", str(out)]
        program = f"import pysplashsurf; pysplashsurf.run_splashsurf({['splashsurf', *command]})"
        subprocess.run([sys.executable, "-c", program], check=True)
        matched.same("count, positions", pyvista.read(out).points, truth("position", frame))


sys.exit(0 if report("bgeo, particles", "splashsurf", points) else 1)
