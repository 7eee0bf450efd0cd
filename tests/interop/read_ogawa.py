"""The one thing of an Alembic file that Blender does not show, the ids, through a small reader of Ogawa."""

import struct
import sys

import numpy as np
from check import FRAMES, RUN, report, truth

BYTES = (RUN / "export/abc/particles.abc").read_bytes()
DATA = 1 << 63


def children(group):
    (count,) = struct.unpack_from("<Q", BYTES, group)
    return struct.unpack_from(f"<{count}Q", BYTES, group + 8)


def data(entry):
    place = entry & ~DATA
    (size,) = struct.unpack_from("<Q", BYTES, place)
    return BYTES[place + 8 : place + 8 + size] if place else b""


def ids(matched):
    assert BYTES.startswith(b"Ogawa\xff\x00\x01")
    root = children(struct.unpack_from("<Q", BYTES, 8)[0])
    points = children(children(root[2])[1])
    geometry = children(children(points[0])[0])
    names = data(geometry[-1])
    assert names.find(b".pointIds") > names.find(b"P") > 0
    samples = children(geometry[1])
    for frame in FRAMES:
        found = np.frombuffer(data(samples[2 * frame])[16:], "<u8")
        matched.same("ids", found, truth("id", frame))


sys.exit(0 if report("abc, particles", "own reader of Ogawa", ids) else 1)
