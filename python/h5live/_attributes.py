"""Attributes of objects, as a mapping."""

import struct

import numpy as np

from . import _base, _transfer, _types
from ._base import Empty, attribute_name
from ._h5live import Datatype as RawDatatype
from ._selections import product


# What most attributes are: the bytes of such a value, and their type.
_PACKED = {int: (struct.Struct("=q").pack, _types.number_type_of(np.dtype(int))),
           float: (struct.Struct("=d").pack, _types.number_type_of(np.dtype(float)))}


class AttributeManager(_base.MutableMappingHDF5):
    """The attributes of an object: names and values (numpy scalars and arrays, strings).

    ``attrs[name] = value`` takes the type from the value; :meth:`create` takes type and shape, :meth:`modify` keeps them.
    """

    def __init__(self, parent):
        self._object = parent
        self._raw = parent._handle.attributes

    def _found(self, name):
        return self._raw.get(attribute_name(name))

    def __getitem__(self, name):
        datatype, shape, raw, _ = self._found(name)
        plain = _types.plain_dtype_of(datatype)
        if plain is not None and shape is not None:
            array = np.frombuffer(raw, plain)
            return array.reshape(shape).copy() if shape else array[0]
        stored, dt = _types.described(datatype)
        if shape is None:
            return Empty(dt)
        shape = tuple(shape)
        if dt.subdtype is not None:
            array = self._elements(name, dt, stored, shape)
            dt = dt.base
        else:
            array = self._elements(name, dt, stored, shape)
        info = _types.check_string_dtype(dt)
        if info and info.length is None:
            texts = [item.decode("utf-8", "surrogateescape") for item in array.flat]
            array = np.array(texts, dtype=dt).reshape(array.shape)
        return array[()] if array.ndim == 0 else array

    def _elements(self, name, dt, stored, shape):
        def read(datatype, memory):
            memory[:] = np.frombuffer(self._raw.get_as(attribute_name(name), datatype), "u1")

        return _transfer.fetch(self._object._handle.file, shape, dt, stored, read)

    def get_id(self, name):
        """The attribute as h5py's low level has it."""
        from .h5py import h5a

        return h5a.AttrID(self._object, attribute_name(name), *self._found(name))

    def __setitem__(self, name, value):
        packed = _PACKED.get(type(value))
        if packed is not None:
            try:
                raw = packed[0](value)
            except (struct.error, OverflowError):
                # A larger one is no int64.
                return self.create(name, data=value)
            return self._replace(name, packed[1], [], packed[1], raw)
        self.create(name, data=value)

    def _replace(self, name, *arguments):
        """Sets an attribute as :meth:`create` does it. h5py deletes one that is there first, with an error of its own."""
        try:
            self._set(name, *arguments)
        except OSError as error:
            if "open for reading only" in str(error) and name in self:
                raise KeyError(f"Can't delete attribute ({error})") from None
            raise

    def __delitem__(self, name):
        try:
            self._raw.remove(attribute_name(name))
        except UnicodeError:
            raise
        except ValueError as error:
            raise KeyError(f"Couldn't delete attribute ({error})") from None

    def create(self, name, data, shape=None, dtype=None):
        """Sets an attribute, in place of one of the same name.

        Parameters
        ----------
        name : str
        data : array_like or Empty
        shape : tuple of int, optional
            The shape, if it is not that of `data`.
        dtype : dtype or Datatype, optional
            The type, if it is not that of `data`.
        """
        from ._datatypes import Datatype

        if not isinstance(data, Empty):
            data = _base.array_for_new_object(data, specified_dtype=dtype)
        shape = data.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        named = dtype if isinstance(dtype, Datatype) else None
        dtype = dtype.dtype if named is not None else data.dtype if dtype is None else np.dtype(dtype)
        original = dtype
        if named is None and dtype.kind in "iuf" and dtype.metadata is None and isinstance(data, np.ndarray):
            if product(shape) != data.size:
                raise ValueError("Shape of new attribute conflicts with shape of data")
            datatype = _types.number_type_of(dtype)
            data = np.ascontiguousarray(data, dtype=dtype)
            self._replace(name, datatype, list(shape), datatype, _transfer.memory(data))
            return
        if dtype.subdtype is not None:
            dtype, dims = dtype.subdtype
            if shape[-len(dims):] != dims:
                raise ValueError(f"Array dtype shape {dims} is incompatible with data shape {shape}")
            shape = shape[:-len(dims)]
        else:
            if shape is not None and product(shape) != product(data.shape):
                raise ValueError("Shape of new attribute conflicts with shape of data")
            if not isinstance(data, Empty) and shape != data.shape:
                data = data.reshape(shape)
        if not isinstance(data, Empty):
            data = np.asarray(data, dtype=dtype, order="C")
        file = self._object._handle.file
        datatype = named._datatype if named is not None else file.stored_type(_types.datatype_of(original))
        target = datatype if named is None or named._handle is None else named._handle
        if isinstance(data, Empty):
            self._replace(name, target, None, datatype, b"")
            return
        stored = datatype.spec()
        inner = stored[2] if original.subdtype is not None and stored[0] == "array" else stored
        if file.mode in ("read", "swmr_read"):
            # Variable-length data would be written before the attribute is.
            error = KeyError if name in self else OSError
            raise error(f"Can't write attribute {name!r} (the file is open for reading only)")
        memory, memory_type = _transfer.prepare(file, data, inner)
        if original.subdtype is not None:
            memory_type = RawDatatype(("array", tuple(int(n) for n in original.subdtype[1]), memory_type.spec()))
        self._replace(name, target, list(shape), memory_type, memory)

    def _set(self, name, *arguments):
        try:
            self._raw.set(attribute_name(name), *arguments)
        except ValueError as error:
            if "open for reading only" in str(error):
                raise OSError(f"Can't write attribute ({error})") from None
            raise

    def modify(self, name, value):
        """Changes the value of an attribute and keeps its type and shape; sets one that is not there."""
        if name not in self:
            self[name] = value
            return
        datatype, shape, _, _ = self._found(name)
        if shape is None:
            raise OSError("Empty attributes can't be modified")
        stored, shape = datatype.spec(), tuple(shape)
        dt = _types.dtype_of(stored)
        value = np.asarray(value, order="C", dtype=None if isinstance(value, np.ndarray) else dt.base)
        full = shape + (dt.shape if dt.subdtype is not None else ())
        if value.shape != full and not (value.size == 1 and product(full) == 1):
            raise TypeError("Shape of data is incompatible with existing attribute")
        file = self._object._handle.file
        memory, memory_type = _transfer.prepare(file, value, stored[2] if dt.subdtype is not None else stored)
        if dt.subdtype is not None:
            memory_type = RawDatatype(("array", stored[1], memory_type.spec()))
        self._set(name, datatype, list(shape), memory_type, memory)

    def __len__(self):
        return len(self._raw.names(False))

    def __iter__(self):
        yield from self._raw.names(self._raw.tracks_order())

    def __reversed__(self):
        yield from reversed(self._raw.names(self._raw.tracks_order()))

    def __contains__(self, name):
        return self._raw.contains(attribute_name(name))

    def __repr__(self):
        if not self._raw.is_open:
            return "<Attributes of closed HDF5 object>"
        return f"<Attributes of HDF5 object at {id(self._object)}>"
