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
    source = h5py.VirtualSource("source.h5", "rows", shape=(0,), maxshape=(None,), dtype="u8")
    layout = h5py.VirtualLayout(shape=(0,), maxshape=(None,), dtype="u8")
    layout[0:unlimited] = source[0:unlimited]
    with h5py.File(os.path.join(folder, "whole.h5"), "w", libver="latest") as file:
        file.create_virtual_dataset("whole", layout)
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
