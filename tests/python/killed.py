"""Reads with h5py the files whose writers tests/library/killed_after_each_call.rs has killed.

usage: killed.py LIST     (in each line: FILE swmr|closed LEAST MOST, with the rows that each dataset must and may have)
"""
import sys

import h5py
import numpy as np


def check(path, how, least, most):
    with h5py.File(path, "r", swmr=how == "swmr") as file:
        for name in ("extensible", "fixed", "btree"):
            rows = file[name][...].reshape(-1)
            assert least <= len(rows) <= most, f"{path}: {name} has {len(rows)} rows, not {least} to {most}"
            wanted = (np.arange(len(rows), dtype="u8") + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            assert (rows == wanted).all(), f"{path}: {name} is {rows}"
        for row in range(least):
            assert file["extensible"].attrs[f"a{row}"] == row, f"{path}: attribute a{row}"
            assert isinstance(file[f"g{row}"], h5py.Group), f"{path}: group g{row}"


def main():
    with open(sys.argv[1]) as lines:
        for line in lines:
            path, how, least, most = line.split()
            check(path, how, int(least), int(most))


main()
