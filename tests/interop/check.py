"""What all readers share: the truth, comparisons that say what they compared, and a line a result."""

import sys
import traceback
from pathlib import Path

import numpy as np

RUN = Path(sys.argv[1])
RESULTS = Path(sys.argv[2])
TRUTH = np.load(RUN / "truth.npz")
FRAMES = range(int(TRUTH["frames"]))
FPS = 24.0


def truth(name, frame):
    return TRUTH[f"{name}{frame}"]


def particles(format, frame, extension):
    return str(RUN / f"export/{format}/particles_{frame:06}.{extension}")


def mesh(format, frame, extension):
    return str(RUN / f"export-mesh/{format}/mesh_{frame:06}.{extension}")


class Matched:
    """Collects what matched; anything that does not raises."""

    def __init__(self):
        self.words = []

    def same(self, word, found, expected, tolerance=0.0):
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            raise AssertionError(f"{word}: shape {found.shape}, expected {expected.shape}")
        if found.size and not np.allclose(found, expected, rtol=0, atol=tolerance):
            worst = np.abs(found.astype(float) - expected.astype(float)).max()
            raise AssertionError(f"{word}: off by {worst}")
        if word not in self.words:
            self.words.append(word)


def report(format, reader, check):
    """Runs `check` and notes its line; False where something does not match."""
    matched = Matched()
    try:
        check(matched)
        line = ", ".join(matched.words)
    except Exception as error:
        traceback.print_exc()
        line = "MISMATCH: " + str(error).split("\n")[0]
    with open(RESULTS, "a") as results:
        results.write(f"{format}\t{reader}\t{line}\n")
    return not line.startswith("MISMATCH")


def missing(module):
    """Leaves quietly where a reader is not installed; run.sh has said so."""
    print(f"interop: {module} is not there, its checks are skipped", file=sys.stderr)
    sys.exit(0)
