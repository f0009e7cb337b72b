"""Attributes."""

import numpy as np

from .. import _transfer, _types
from .._base import attribute_name
from . import h5s, h5t
from ._objects import ObjectID


class AttrID(ObjectID):
    """An attribute."""

    def __init__(self, obj, name, datatype, shape, raw, committed=None):
        super().__init__()
        self._object, self._name, self._datatype, self._raw = obj, name, datatype, raw
        self._shape = None if shape is None else tuple(shape)
        self._committed = committed

    @property
    def name(self):
        return self._name if isinstance(self._name, bytes) else self._name.encode()

    @property
    def shape(self):
        return self._shape

    @property
    def rank(self):
        return len(self._shape or ())

    @property
    def dtype(self):
        return _types.dtype_of(self._datatype.spec())

    def get_name(self):
        return self.name

    def get_type(self):
        return h5t.type_of(self._datatype.spec(), self._committed)

    def get_space(self):
        return h5s.SpaceID(self._shape)

    def get_storage_size(self):
        return len(self._raw)

    def read(self, arr, mtype=None):
        manager = self._object.attrs
        arr[...] = manager._elements(self._name, arr.dtype, self._datatype.spec(), self._shape)

    def write(self, arr, mtype=None):
        arr = np.ascontiguousarray(arr)
        memory, memory_type = _transfer.prepare(self._object._handle.file, arr, self._datatype.spec())
        shape = None if self._shape is None else list(self._shape)
        self._object.attrs._raw.set(self._name, self._datatype, shape, memory_type, memory)

    def close(self):
        """Nothing to be done."""


def _object(loc):
    return loc._obj


def open(loc, name=None, index=-1, obj_name=b".", index_type=0, order=0, lapl=None):
    """An attribute by name."""
    obj = _object(loc)
    name = attribute_name(name) if name is not None else list(obj.attrs)[index]
    return obj.attrs.get_id(name)


def create(loc, name, tid, space, obj_name=b".", lapl=None):
    """Makes an attribute, with zeros."""
    obj = _object(loc)
    is_null = space.get_simple_extent_type() == h5s.NULL
    shape = None if is_null else list(space.shape)
    count = 0 if is_null else int(np.prod(space.shape, dtype=int))
    obj.attrs._raw.set(attribute_name(name), tid._datatype, shape, tid._datatype, bytes(count * tid.get_size()))
    return open(loc, name)


def exists(loc, name, obj_name=b".", lapl=None):
    return attribute_name(name) in _object(loc).attrs


def delete(loc, name=None, index=-1, obj_name=b".", lapl=None):
    del _object(loc).attrs[name]


def get_num_attrs(loc):
    return len(_object(loc).attrs)
