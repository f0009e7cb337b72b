"""Looks with h5py at the files that tests/library/mmap_publish_btree2.rs writes.

usage: both_ways.py follow FILE    follows a live file until all chunks are there
       both_ways.py look LIST      reads files of killed writers (in each line: FILE LEAST, with the chunks it must have)
"""
import sys

import h5py
import numpy as np

ROWS, COLUMNS, EDGE = 16, 32, 48
ORDER = [at for n in range(EDGE) for at in [(n, i) for i in range(n + 1)] + [(i, n) for i in range(n)]]


def written(shape):
    """What the elements are when all have been written."""
    rows, columns = (np.arange(extent, dtype="u8") for extent in shape)
    number = (rows[:, None] << np.uint64(20)) | columns
    return (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)


def present(dataset, where):
    """How many chunks are there, each whole or not at all, and the first one that is not."""
    shape = dataset.shape
    found, wanted = dataset[...], written(shape)
    present, absent = 0, None
    for at in ORDER:
        part = tuple(slice(i * size, (i + 1) * size) for i, size in zip(at, (ROWS, COLUMNS)))
        if any(side.stop > extent for side, extent in zip(part, shape)):
            break
        if not found[part].any():
            absent = absent or at
            continue
        assert (found[part] == wanted[part]).all(), f"{where}: the chunk at {at} is in pieces"
        present += 1
    return present, absent


def follow(path):
    file = h5py.File(path, "r", swmr=True)
    dataset, seen = file["data"], 0
    while seen < len(ORDER):
        dataset.refresh()
        now, _ = present(dataset, path)
        assert now >= seen, f"from {seen} chunks back to {now}"
        seen = now


def look(listed):
    with open(listed) as lines:
        for line in lines:
            path, least = line.split()
            with h5py.File(path, "r", swmr=True) as file:
                found, absent = present(file["data"], path)
                assert found >= int(least), f"{path}: {found} chunks of {least}"
                assert absent is None or ORDER.index(absent) == found, f"{path}: none at {absent}"


if sys.argv[1] == "follow":
    follow(sys.argv[2])
else:
    look(sys.argv[2])
