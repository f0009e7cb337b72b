"""What objects have in common."""

import os

from ..._base import (Empty, HLObject, ItemsViewHDF5, KeysViewHDF5, MappingHDF5, MutableMappingHDF5,  # noqa: F401
                      ValuesViewHDF5, array_for_new_object, find_item_type, guess_dtype)
from ..._selections import product  # noqa: F401
from .._objects import phil, with_phil  # noqa: F401

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(fname):
    """Whether a path is an HDF5 file; False if nothing is there."""
    path = os.path.abspath(os.fspath(fname))
    if not os.path.isfile(path):
        return False
    offset, size = 0, os.path.getsize(path)
    with open(path, "rb") as file:
        while offset + 8 <= size:
            file.seek(offset)
            if file.read(8) == _SIGNATURE:
                return True
            offset = 512 if offset == 0 else 2 * offset
    return False


def is_empty_dataspace(obj):
    """Whether an identity has a null dataspace."""
    return obj.get_space().get_simple_extent_type() == 2
