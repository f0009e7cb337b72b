"""Writes a source of a virtual dataset live, with libhdf5; the file of the virtual dataset is closed before.

usage: sources.py FOLDER. It reads lines: "row" appends a row to the source and flushes it, "close" closes the source. After
each it writes how many rows there are.
"""
import os
import sys

import h5py
import numpy as np


def main():
    folder = sys.argv[1]
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple((0,), (unlimited,))
    space.select_hyperslab((0,), (1,), block=(unlimited,))
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_virtual(space, b"source.h5", b"rows", space)
    with h5py.File(os.path.join(folder, "whole.h5"), "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"whole", h5py.h5t.NATIVE_UINT64, space, layout)
    file = h5py.File(os.path.join(folder, "source.h5"), "w", libver="latest")
    rows = file.create_dataset("rows", (0,), maxshape=(None,), chunks=(4,), dtype="u8")
    print("locked", flush=True)
    count = 0
    for line in sys.stdin:
        if line.strip() == "live":
            file.swmr_mode = True
        elif line.strip() == "row":
            rows.resize(count + 1, axis=0)
            rows[count] = np.uint64(count + 1)
            rows.flush()
            count += 1
        elif line.strip() == "close":
            file.close()
        print(count, flush=True)


main()
