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
    from .._create import access_of, accessed
    from .._datasets import Dataset

    options = {} if dcpl is None else dcpl.options(tid.dtype, tid._spec, loc._handle.file)
    is_null = space.get_simple_extent_type() == h5s.NULL
    options["shape"] = None if is_null else list(space.shape)
    limits = space.get_simple_extent_dims(True)
    if limits and limits != space.shape:
        options["max_shape"] = [None if n == h5s.UNLIMITED else n for n in limits]
    handle = loc._handle.create_dataset(None if name is None else name_text(name), _type_of(tid), options)
    return DatasetID(accessed(Dataset(handle), access_of(loc._obj, dapl)))


def _type_of(tid):
    """A committed type, or what describes the type."""
    return tid._handle if hasattr(tid._handle, "datatype") else tid._datatype


def open(loc, name, dapl=None):
    """Opens a dataset."""
    from .._datasets import Dataset

    from .._create import access_of, accessed

    return DatasetID(accessed(Dataset(loc._handle.open(name_text(name))), access_of(loc._obj, dapl)))
