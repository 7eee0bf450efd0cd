#!/usr/bin/env bash
# Counts the instructions of a second frame by each method, of a surface and of fine grains, with callgrind: a clock is no guard on a noisy machine,
# counts are the same to a thousandth.
#
#   tests/instructions/run.sh [path of barchan] [--write]
#
# Ends with 1 where a count is a tenth above the one in counts.tsv. --write puts today's counts there: after work that was meant to cost, or a
# new compiler. Counts are those of the development build of .ci/run (CARGO_INCREMENTAL=0; else they differ by some percent) on one thread; skipped, with a word, without valgrind.
set -euo pipefail
cd "$(dirname "$0")/../.."
barchan="$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/barchan}")"
here=tests/instructions
if ! command -v valgrind >/dev/null; then
    timeout 120 apt-get install -y -q valgrind >/dev/null 2>&1 || { echo "instructions: valgrind cannot be installed here, not counted"; exit 0; }
fi
compiler="$(rustc --version 2>/dev/null || echo unknown)"
if [ "${2:-}" != --write ] && [ "$(sed -n 's/^# //p' $here/counts.tsv | tail -1)" != "$compiler" ]; then
    echo "instructions: counts.tsv was made with another compiler than $compiler; not counted"
    exit 0
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# Instructions of a command.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$barchan" "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : *//p'
}
# Instructions of the second frame alone: what starting and the first frame take is the same in both.
frame() {
    local name="$1" one two
    shift
    one=$(count run $here/block.toml -q --threads 1 -o "$work/$name-1" --frames ..1 "$@")
    two=$(count run $here/block.toml -q --threads 1 -o "$work/$name-2" --frames ..2 "$@")
    printf '%s\t%s\n' "$name" $((two - one))
}
{
    frame flip
    frame zhu-bridson --set 'solver.friction="zhu-bridson"'
    frame water --set 'materials.sand.preset="water"'
    frame sph --set 'solver.method="sph"'
    frame dem --set 'solver.method="dem"' --set 'solver.resolution="4 cm"'
    frame hybrid --set 'solver.method="hybrid"'
    printf 'surface\t%s\n' "$(count surface "$work/flip-2" -q --threads 1 --frames 2)"
    printf 'detail\t%s\n' "$(count detail "$work/flip-2" -q --threads 1 --grains 4)"
} >"$work/counts.tsv"
if [ "${2:-}" = --write ]; then
    { echo "# Instructions, by tests/instructions/run.sh --write"; echo "# $compiler"; cat "$work/counts.tsv"; } >$here/counts.tsv
    cat $here/counts.tsv
    exit 0
fi
join -t $'\t' <(grep -v '^#' $here/counts.tsv | sort) <(sort "$work/counts.tsv") | awk -F'\t' '
    { change = $3 / $2 - 1; bad = change > 0.1; failed += bad
      printf "%-12s %13.0f for %13.0f, %+6.1f %%%s\n", $1, $3, $2, 100 * change, bad ? "  MORE" : "" }
    END { exit failed > 0 }'
