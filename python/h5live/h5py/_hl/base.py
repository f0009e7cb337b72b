"""What objects have in common."""

import os

from ..._base import (Empty, HLObject, ItemsViewHDF5, KeysViewHDF5, MappingHDF5, MutableMappingHDF5,  # noqa: F401
                      ValuesViewHDF5, array_for_new_object, find_item_type, guess_dtype)
from ..._files import superblock_offset
from ..._selections import product  # noqa: F401
from .._objects import phil, with_phil  # noqa: F401


def is_hdf5(fname):
    """Whether a path is an HDF5 file; False if nothing is there."""
    return superblock_offset(os.path.abspath(os.fspath(fname))) is not None


def is_empty_dataspace(obj):
    """Whether an identity has a null dataspace."""
    return obj.get_space().get_simple_extent_type() == 2
