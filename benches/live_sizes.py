"""How large live files become that are flushed before their chunks are full, by h5live and by libhdf5 (h5py).

usage: live_sizes.py H5LIVE    prints a table in Markdown; it takes some minutes

Rows of one dimension: 10,000 numbers of 8 bytes in chunks of 1,000. Rows of two unlimited dimensions: 5,000 of 32
numbers in chunks of 1 x 4. The size is that of the closed file. "Kept open": another process has the file open all the
time. The time is that of the writer from its start to its end; it starts another process in both cases.
"""
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

WRITER = """
import sys, h5py, numpy as np
path, every, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
values = np.fromfile(sys.argv[4], "u8").reshape((-1, columns) if columns else -1)
with h5py.File(path, "r+", libver="latest") as file:
    file.swmr_mode = True
    data = file["d"]
    for n in range(0, len(values), every):
        part = values[n : n + every]
        data.resize(n + len(part), 0)
        data[n : n + len(part)] = part
        data.flush()
"""

FILTERS = {
    "none": {},
    "gzip": {"compression": "gzip", "compression_opts": 1},
    "fletcher32": {"fletcher32": True},
    "scale-offset": {"scaleoffset": 0},
}


def values(count):
    """Numbers of 40 bits in no order."""
    return (np.arange(count, dtype="u8") * np.uint64(2654435761)) % np.uint64(2**40)


def size_and_time(program, folder, filters, every, columns, is_kept_open):
    path, source = os.path.join(folder, "live.h5"), os.path.join(folder, "rows")
    rows, shape, chunk = (5000, (0, columns), (1, 4)) if columns else (10_000, (0,), (1000,))
    with h5py.File(path, "w", libver="latest") as file:
        maximum = (None,) * len(shape)
        file.create_dataset("d", shape=shape, maxshape=maximum, chunks=chunk, dtype="u8", **filters)
    wanted = values(rows * max(columns, 1))
    wanted.tofile(source)
    holder = open(path, "rb") if is_kept_open else None
    began = time.monotonic()
    if program:
        shape = ["--shape", str(columns)] if columns else []
        command = [program, "record", "--format", "raw", "--dtype", "u64", "--every", str(every), *shape, path, "d"]
        with open(source, "rb") as rows_of:
            subprocess.run(command, stdin=rows_of, stderr=subprocess.DEVNULL, check=True)
    else:
        subprocess.run([sys.executable, "-c", WRITER, path, str(every), str(columns), source], check=True)
    took = time.monotonic() - began
    if holder:
        holder.close()
    with h5py.File(path) as file:
        assert (file["d"][...].reshape(-1) == wanted).all(), "the rows are not what was written"
    size = os.path.getsize(path)
    os.remove(path)
    return size, took


def main():
    program = os.path.abspath(sys.argv[1])
    print("| rows | filter | flushes in a chunk | h5live | kept open | libhdf5 | times the elements | h5live, s | libhdf5, s |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for columns, flushes in ((0, (1, 10, 1000)), (32, (1,))):
            for name, filters in FILTERS.items():
                for number in flushes:
                    every = 1 if columns else 1000 // number
                    run = lambda program, kept: size_and_time(program, folder, filters, every, columns, kept)
                    alone, took = run(program, False)
                    kept, _ = run(program, True)
                    other, took_other = run(None, False)
                    raw = 5000 * 32 * 8 if columns else 10_000 * 8
                    shape = "5,000 x 32" if columns else "10,000"
                    print(
                        f"| {shape} | {name} | {number} | {alone:,} | {kept:,} | {other:,} | {kept / raw:.2f} | {took:.2f} | {took_other:.2f} |",
                        flush=True,
                    )


main()
