"""Appends the first rows to datasets whose headers lie in two chunks each, the dataspace in the later one, live with libhdf5.

usage: split.py FILE DATASETS. It writes the names of the datasets, and for each line that it reads, it appends two rows to the
next one, each with a flush.
"""
import os
import sys

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../verify/prove/libhdf5"))
from write import LONG, split_header, values

SHAPES = {
    "extensible": ((0,), (None,), (1,)),
    "fixed": ((0,), (40,), (1,)),
    "btree2": ((0, 1), (None, None), (1, 1)),
}


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    file = h5py.File(path, "w", libver="latest")
    datasets = []
    for n in range(count):
        index = list(SHAPES)[n % len(SHAPES)]
        shape, limit, chunk = SHAPES[index]
        datasets.append(file.create_dataset(f"{n}", shape, LONG[index], chunks=chunk, maxshape=limit))
    file["behind"] = 1
    file.flush()
    datasets = [dataset for dataset in datasets if split_header(dataset)]
    assert len(datasets) > count / 2, "few headers are split"
    file.swmr_mode = True
    print(*(dataset.name for dataset in datasets), flush=True)
    for dataset, _ in zip(datasets, sys.stdin):
        for row in range(2):
            dataset.resize(row + 1, axis=0)
            dataset[row] = values("d", [row]).view(dataset.dtype)
            dataset.flush()
    sys.stdin.read()


main()
