"""Writes live with h5py what libhdf5 does not refuse while others follow, though it says that it does not support it.

New datasets and groups, links and attributes that become dense, strings of any length: it publishes some of that before
what it leads to. The file is made anew in rounds: a group for each, with datasets 0, 1, 2, ... in it; dataset N holds
N, N + 1, ... and text-N, text-N+1, ...

usage: races.py FILE SECONDS
"""
import sys
import time

import h5py
import numpy as np

# Datasets of a group: more than are kept in its header.
MANY = 20


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    file = h5py.File(path, "w", libver="latest")
    numbers = file.create_dataset("numbers", (0,), maxshape=(None,), chunks=(4,), dtype="u8")
    texts = file.create_dataset("texts", (0,), maxshape=(None,), chunks=(4,), dtype=h5py.string_dtype())
    file.swmr_mode = True
    print("writing", flush=True)
    begin, rounds, rows = time.monotonic(), 0, 0
    while time.monotonic() - begin < seconds:
        group = file.create_group(f"round-{rounds}")
        for n in range(MANY):
            inner = group.create_dataset(f"{n}", (0,), maxshape=(None,), chunks=(3,), dtype="u8")
            words = group.create_dataset(f"text-{n}", (0,), maxshape=(None,), chunks=(3,), dtype=h5py.string_dtype())
            for dataset, values in (
                (inner, np.arange(n, n + 5, dtype="u8")),
                (words, [f"text-{i}" for i in range(n, n + 5)]),
            ):
                dataset.resize(5, axis=0)
                dataset[:] = values
                dataset.flush()
            group.attrs[f"attribute-{n}"] = n
            for dataset, value in ((numbers, rows), (texts, f"text-{rows}")):
                dataset.resize(rows + 1, axis=0)
                dataset[rows] = value
                dataset.flush()
            rows += 1
            if n % 3 == 0:
                file.flush()
        rounds += 1
    file.flush()
    file.close()
    print(rounds, rows, flush=True)


main()
