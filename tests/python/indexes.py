"""The other side of tests/library/indexes.rs.

indexes.py create|extend|shrink|check PATH STEP [EARLIEST [LATEST]]: makes the datasets with the extents of a step, extends
and writes them to those of a step, shrinks them to those, or checks that they hold what the rule says up to it."""
import math
import sys

import h5py
import numpy as np

U = None
# Name, chunk, maximum, extents by step, whether it is compressed.
DATASETS = (
    ("line", (3,), (U,), [(400,), (1000,), (1300,), (5000,)], False),
    ("plane", (2, 2), (U, U), [(60, 100), (140, 150), (170, 200), (200, 210)], False),
    ("packed", (3, 2), (U, U), [(30, 40), (90, 100), (120, 130), (150, 140)], True),
    ("room", (2, 2, 2), (U, U, U), [(10, 10, 10), (16, 20, 18), (20, 22, 24), (26, 25, 24)], True),
    ("bounded", (2, 2, 5), (U, U, 10), [(10, 10, 10), (16, 20, 10), (20, 22, 10), (40, 25, 10)], False),
    ("four", (1, 2, 2, 3), (U, U, 20, U), [(3, 4, 4, 6), (6, 8, 8, 9), (8, 9, 10, 13), (9, 10, 11, 14)], True),
)


def rule(first, last, rest):
    """The rows first..last: each element says where it is."""
    at = np.indices((last - first, *rest), dtype=np.int64)
    at[0] += first
    return sum(at[dim] * (1, 1009, 31, 7)[dim] for dim in range(len(at))).astype("<i4") + 1


def fill(dataset, chunk, extent):
    """Writes all of a dataset, blocks of rows in another order than that of the file."""
    blocks = math.ceil(extent[0] / chunk[0])
    step = next(n for n in range(7, 100) if math.gcd(n, blocks) == 1)
    for n in range(blocks):
        first = n * step % blocks * chunk[0]
        last = min(first + chunk[0], extent[0])
        dataset[first:last] = rule(first, last, extent[1:])


def main(what, path, step, *bounds):
    step = int(step) - 1
    libver = tuple(bounds) if len(bounds) == 2 else bounds[0] if bounds else "v110"
    with h5py.File(path, {"create": "w", "check": "r"}.get(what, "r+"), libver=libver) as file:
        for name, chunk, maximum, extents, compressed in DATASETS:
            extent = extents[step]
            if what == "create":
                compression = {"compression": 1, "shuffle": True} if compressed else {}
                dataset = file.create_dataset(name, extent, "<i4", chunks=chunk, maxshape=maximum, **compression)
            dataset = file[name]
            if what in ("extend", "shrink"):
                dataset.resize(extent)
            if what in ("create", "extend"):
                fill(dataset, chunk, extent)
            assert dataset.shape == extent, (name, dataset.shape)
            values = dataset[()]
            wrong = np.argwhere(values != rule(0, extent[0], extent[1:]))
            assert not len(wrong), (name, len(wrong), wrong[:5])
            chunks = math.prod(math.ceil(dim / size) for dim, size in zip(extent, chunk))
            assert dataset.id.get_num_chunks() == chunks, (name, chunks, dataset.id.get_num_chunks())


main(*sys.argv[1:])
