"""Datasets."""

from .._base import name_text
from . import h5s
from ._ids import DatasetID, StoreInfo  # noqa: F401

COMPACT, CONTIGUOUS, CHUNKED, VIRTUAL = 0, 1, 2, 3
ALLOC_TIME_DEFAULT, ALLOC_TIME_EARLY, ALLOC_TIME_LATE, ALLOC_TIME_INCR = 0, 1, 2, 3
FILL_TIME_ALLOC, FILL_TIME_NEVER, FILL_TIME_IFSET = 0, 1, 2
FILL_VALUE_UNDEFINED, FILL_VALUE_DEFAULT, FILL_VALUE_USER_DEFINED = 0, 1, 2


def create(loc, name, tid, space, dcpl=None, lcpl=None, dapl=None, gcpl=None):
    """Makes a dataset of a datatype and a dataspace."""
    from .._datasets import Dataset

    options = dict(getattr(dcpl, "options", {}))
    is_null = space.get_simple_extent_type() == h5s.NULL
    options["shape"] = None if is_null else list(space.shape)
    limits = space.get_simple_extent_dims(True)
    if limits and limits != space.shape:
        options["max_shape"] = [None if n == h5s.UNLIMITED else n for n in limits]
    handle = loc._handle.create_dataset(None if name is None else name_text(name), tid._handle or tid._datatype, options)
    return DatasetID(Dataset(handle))


def open(loc, name, dapl=None):
    """Opens a dataset."""
    from .._datasets import Dataset

    return DatasetID(Dataset(loc._handle.open(name_text(name))))
