"""VTK and PLY through VTK's own readers, which are ParaView's."""

import sys
import xml.etree.ElementTree as xml

from check import FRAMES, RUN, mesh, missing, particles, report, truth

try:
    import pyvista
except ImportError:
    missing("pyvista")


def vtk_particles(matched):
    times = [float(set.get("timestep")) for set in xml.parse(RUN / "export/vtk/particles.pvd").iter("DataSet")]
    matched.same("times in .pvd", times, [truth("time", f) for f in FRAMES], 1e-9)
    reader = pyvista.get_reader(str(RUN / "export/vtk/particles.pvd"))
    for frame in FRAMES:
        reader.set_active_time_point(frame)
        points = reader.read()[0]
        matched.same("count, positions", points.points, truth("position", frame))
        for name in ("id", "velocity", "radius", "mass", "material"):
            matched.same(name, points.point_data[name], truth(name, frame))
        matched.same("time", points.field_data["TimeValue"][0], truth("time", frame), 1e-9)


def vtk_mesh(matched):
    for frame in FRAMES:
        surface = pyvista.read(mesh("vtk", frame, "vtp"))
        matched.same("vertices", surface.points, truth("vertices", frame))
        matched.same("triangles", surface.regular_faces, truth("triangles", frame))


def ply_particles(matched):
    for frame in FRAMES:
        points = pyvista.read(particles("ply", frame, "ply"))
        matched.same("count, positions", points.points, truth("position", frame))


def ply_mesh(matched):
    for frame in FRAMES:
        surface = pyvista.read(mesh("ply", frame, "ply"))
        matched.same("vertices", surface.points, truth("vertices", frame))
        matched.same("triangles", surface.regular_faces, truth("triangles", frame))


name = f"VTK {pyvista.vtk_version_info.major}.{pyvista.vtk_version_info.minor}"
done = [
    report("vtk, particles", name, vtk_particles),
    report("vtk, mesh", name, vtk_mesh),
    report("ply, particles", name, ply_particles),
    report("ply, mesh", name, ply_mesh),
]
sys.exit(0 if all(done) else 1)
