"""Follows with h5py the datasets that tests/interop/ writes, until all rows are there.

Every value is compared with the rule that made it when it is first seen, and once more at the end; an element that
is fill below the extent is an error.

usage: follow.py FILE ROWS
"""
import sys

import h5py

import rule

# Rows before the new ones that are read again with them.
AGAIN = 40


def check(dataset, series, first, last):
    name, shape, dtype, *_ = series
    values, expected = dataset[first:last], rule.rows(name, shape, dtype, first, last)
    assert (values == expected).all(), (name, first, last, values, expected)


def main():
    path, rows = sys.argv[1], int(sys.argv[2])
    file = h5py.File(path, "r", swmr=True)
    datasets = [(file[series[0]], series) for series in rule.DATASETS]
    print("following", flush=True)
    seen = [0] * len(datasets)
    refreshes = 0
    while min(seen) < rows:
        for i, (dataset, series) in enumerate(datasets):
            dataset.refresh()
            extent = dataset.shape[0]
            assert extent >= seen[i], f"{series[0]}: from {seen[i]} back to {extent}"
            check(dataset, series, max(0, seen[i] - AGAIN), extent)
            seen[i] = extent
            refreshes += 1
    for dataset, series in datasets:
        check(dataset, series, 0, rows)
    print(f"{refreshes} refreshes", flush=True)


main()
