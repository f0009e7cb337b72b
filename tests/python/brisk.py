"""Looks with h5py at the files that tests/library/mmap_append.rs writes.

usage: brisk.py follow FILE ROWS    follows a live file until each dataset has so many rows
       brisk.py look LIST           reads files of killed writers (in each line: FILE LEAST, with the rows it must have)
"""
import sys

import h5py
import numpy as np

DATASETS = {"narrow": 1, "wide": 8, "whole": 64}


def check(values, first, where):
    wanted = (np.arange(first, first + values.size, dtype="u8") + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    assert (values.reshape(-1) == wanted).all(), f"{where}, from element {first} on: {values}"


def follow(path, rows):
    file = h5py.File(path, "r", swmr=True)
    datasets = {name: file[name] for name in DATASETS}
    seen = dict.fromkeys(DATASETS, 0)
    while min(seen.values()) < rows:
        for name, dataset in datasets.items():
            dataset.refresh()
            extent = dataset.shape[0]
            assert extent >= seen[name], f"{name}: from {seen[name]} back to {extent}"
            check(dataset[seen[name]:extent], seen[name] * DATASETS[name], name)
            seen[name] = extent


def look(listed):
    with open(listed) as lines:
        for line in lines:
            path, least = line.split()
            with h5py.File(path, "r", swmr=True) as file:
                for name in DATASETS:
                    dataset = file[name]
                    assert len(dataset) >= int(least), f"{path}: {name} has {len(dataset)} rows of {least}"
                    check(dataset[...], 0, f"{path}: {name}")


if sys.argv[1] == "follow":
    follow(sys.argv[2], int(sys.argv[3]))
else:
    look(sys.argv[2])
