"""Follows the datasets that tests/interop.rs writes, with h5py, until all rows are there.

Every value is compared with the rule that made it; an element that is fill below the extent is an error.

usage: follow.py FILE ROWS
"""
import sys

import h5py
import numpy as np

# The last rows of each dataset that are read after every refresh.
WINDOW = 40


def expected(name, first, last):
    rows = np.arange(first + 1, last + 1)
    if name == "frames":
        return np.broadcast_to(rows.astype("u2")[:, None, None], (len(rows), 8, 16))
    return rows / 1000


def check(name, dataset, first, last):
    values = dataset[first:last]
    if name == "rows":
        assert (values["number"] == np.arange(first + 1, last + 1)).all(), (name, first, last)
        values = values["time"]
    assert (values == expected(name, first, last)).all(), (name, first, last, values)


def main():
    path, rows = sys.argv[1], int(sys.argv[2])
    file = h5py.File(path, "r", swmr=True)
    datasets = {name: file[name] for name in ("frames", "times", "rows")}
    print("following", flush=True)
    seen = dict.fromkeys(datasets, 0)
    reads = 0
    while min(seen.values()) < rows:
        for name, dataset in datasets.items():
            dataset.refresh()
            extent = dataset.shape[0]
            assert extent >= seen[name], f"{name}: from {seen[name]} back to {extent}"
            check(name, dataset, max(0, extent - WINDOW), extent)
            seen[name] = extent
            reads += 1
    for name, dataset in datasets.items():
        check(name, dataset, 0, rows)
    print(f"{reads} reads", flush=True)


main()
