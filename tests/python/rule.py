"""The rule of the files that tests/interop/ writes, or has h5py write: row `number`, from 1 on, in each dataset."""
import numpy as np

ROW = np.dtype([("number", "u8"), ("time", "f8")])
# Name, shape of a row, stored type, rows of a chunk, other choices.
DATASETS = (
    ("frames", (8, 16), np.dtype("<u2"), 4, {"compression": 4, "shuffle": True}),
    ("times", (), np.dtype("<f8"), 64, {}),
    ("rows", (), ROW, 32, {}),
    ("counts", (3,), np.dtype(">i4"), 16, {"compression": 1}),
    ("labels", (), np.dtype("S12"), 10, {}),
    ("grid", (6,), np.dtype("<u4"), 2, {"maxshape": (None, None), "chunks": (2, 3)}),
)


def rows(name, shape, dtype, first, last):
    """The rows first..last as they should be: [last - first, *shape]."""
    numbers = np.arange(first + 1, last + 1)
    if name == "times":
        return numbers / 1000
    if name == "rows":
        return np.rec.fromarrays([numbers, numbers / 1000], dtype=dtype)
    if name == "labels":
        return np.array([b"row %d" % number for number in numbers], dtype)
    spread = numbers.astype(dtype).reshape(-1, *(1 for _ in shape))
    return np.broadcast_to(spread, (len(numbers), *shape))
