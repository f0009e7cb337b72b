"""Checks with libhdf5 what a killed writer of `h5live-lab stress` has left.

First as it is, as a SWMR reader; then a copy of it, after `h5clear -s`, as an ordinary reader. Every value is
compared with the rule that made it (verify/lab/src/stress/rule.rs).

usage: after_kill.py FILE SEED ROWS...     (rows flushed of each dataset)
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

SERIES = ("scalars", "big_endian", "floats", "rows", "frames")
# Rows at the end of each dataset that are compared.
TAIL = 2000


def mix(n):
    n = n + np.uint64(0x9E3779B97F4A7C15)
    n = (n ^ (n >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    n = (n ^ (n >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return n ^ (n >> np.uint64(31))


def expected(name, element_bytes, row_bytes, seed, first, last):
    """The stored bytes of rows first..last: [rows, row_bytes]."""
    rows = np.arange(first, last, dtype="u8")
    salt = mix(np.array([len(name) ^ element_bytes << 8], dtype="u8"))
    state = mix(np.uint64(seed) ^ mix(rows ^ salt))
    words = []
    for at in range(0, row_bytes, 8):
        if at % 32 == 0:
            state = mix(state)
        words.append((state | np.uint64(0x0101010101010101)).astype("<u8"))
    return np.stack(words, axis=1).view("u1")[:, :row_bytes]


def check(file, seed, flushed):
    for name, rows in zip(SERIES, flushed, strict=True):
        dataset = file[name]
        extent = dataset.shape[0]
        assert extent >= rows, f"/{name}: {extent} of {rows} flushed rows"
        first = max(0, extent - TAIL)
        stored = np.ascontiguousarray(dataset[first:]).view("u1").reshape(extent - first, -1)
        wanted = expected(name, dataset.dtype.itemsize, stored.shape[1], seed, first, extent)
        wrong = np.flatnonzero((stored != wanted).any(axis=1))
        assert not len(wrong), f"/{name}: row {first + wrong[0]} of {extent} has another value"


def main():
    path, seed, flushed = Path(sys.argv[1]), int(sys.argv[2]), [int(rows) for rows in sys.argv[3:]]
    with h5py.File(path, "r", swmr=True) as file:
        check(file, seed, flushed)
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(path, folder)
        subprocess.run(["h5clear", "-s", copy], check=True)
        with h5py.File(copy, "r") as file:
            check(file, seed, flushed)


main()
