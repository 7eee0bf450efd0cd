"""Writes what the frames and meshes of a run hold as truth.npz, for readers that have numpy alone."""

import sys
from pathlib import Path

import numpy as np
import pyarrow.feather as feather

run = Path(sys.argv[1])
arrays = {}
for number, path in enumerate(sorted((run / "frames").glob("*.arrow"))):
    table = feather.read_table(path)
    arrays[f"time{number}"] = float(table.schema.metadata[b"barchan.time"])
    for name in table.column_names:
        column = table[name].combine_chunks()
        width = getattr(column.type, "list_size", None)
        arrays[f"{name}{number}"] = column.flatten().to_numpy().reshape(-1, width) if width else column.to_numpy()
    if not (run / "meshes").exists():
        continue
    ply = (run / f"meshes/{number:06}.ply").read_bytes()
    header, body = ply.split(b"end_header\n", 1)
    vertices, faces = [int(line.split()[2]) for line in header.splitlines() if line.startswith(b"element")]
    arrays[f"vertices{number}"] = np.frombuffer(body, "<f4", vertices * 3).reshape(-1, 3)
    faces = np.frombuffer(body[vertices * 12 :], np.dtype([("n", "u1"), ("v", "<i4", 3)]), faces)
    arrays[f"triangles{number}"] = faces["v"]
arrays["frames"] = number + 1
np.savez(run / "truth.npz", **arrays)
