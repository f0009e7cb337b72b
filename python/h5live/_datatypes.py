"""Committed datatypes."""

import numpy as np

from . import _types
from ._base import HLObject


class Datatype(HLObject):
    """A type that has a name in the file. Datasets and attributes can share it.

    ``Datatype(type_id)`` takes a datatype of h5py's low level, which has no name.
    """

    def __init__(self, bind, name=None):
        if hasattr(bind, "_spec"):
            super().__init__(bind._handle, name)
            self._type = bind
        elif hasattr(bind, "datatype"):
            super().__init__(bind, name)
            self._type = None
        else:
            raise ValueError(f"{bind} is not a TypeID")

    @property
    def _datatype(self):
        """The datatype of the engine."""
        return self._handle.datatype if self._handle is not None else self._type._datatype

    @property
    def dtype(self):
        """The numpy dtype."""
        return _types.dtype_of(self._datatype.spec())

    def __bool__(self):
        return self._handle is None or self._handle.is_open

    def __repr__(self):
        if not self:
            return "<Closed HDF5 named type>"
        name = "(anonymous)" if self.name is None else f'"{self.name.rsplit("/", 1)[-1]}"'
        return f"<HDF5 named type {name} (dtype {self.dtype.str})>"


def dtype_from(dtype):
    """A dtype from what a caller gives: a dtype, a committed type, or h5py's low-level type."""
    return dtype.dtype if hasattr(dtype, "dtype") and not isinstance(dtype, np.dtype) else np.dtype(dtype)
