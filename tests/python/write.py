"""Writes live with h5py what follow.py checks; goes on when a line comes in.

usage: write.py FILE ROWS
"""
import sys

import h5py
import numpy as np


def main():
    path, rows = sys.argv[1], int(sys.argv[2])
    file = h5py.File(path, "w", libver="latest")
    frames = file.create_dataset("frames", (0, 8, 16), "u2", maxshape=(None, 8, 16), chunks=(4, 8, 16), compression=4)
    times = file.create_dataset("times", (0,), "f8", maxshape=(None,), chunks=(64,))
    row = np.dtype([("number", "u8"), ("time", "f8")])
    table = file.create_dataset("rows", (0,), row, maxshape=(None,), chunks=(32,))
    file.swmr_mode = True
    print("writing", flush=True)
    sys.stdin.readline()
    for number in range(1, rows + 1):
        for dataset, value in ((frames, number), (times, number / 1000), (table, (number, number / 1000))):
            dataset.resize(number, axis=0)
            dataset[number - 1] = np.array(value, row) if dataset is table else value
            dataset.flush()
    file.close()


main()
