"""What files, groups, datasets and committed types have in common."""

import posixpath
from collections.abc import ItemsView, KeysView, Mapping, MutableMapping, ValuesView

import numpy as np

from . import _types
from ._h5live import common_type
from ._selections import product  # noqa: F401 - for those who look here


class Empty:
    """What a dataset or an attribute without elements has: a type, and no shape."""

    shape = None
    size = None

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def __eq__(self, other):
        return isinstance(other, Empty) and self.dtype == other.dtype

    def __repr__(self):
        return f"Empty(dtype={self.dtype!r})"


def name_text(name):
    """A name as a string.

    Raises
    ------
    TypeError
        If it is neither a string nor bytes.
    """
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    raise TypeError(f"A name should be string or bytes, not {type(name)}")


def attribute_name(name):
    """The name of an attribute: a string, or bytes if they are no UTF-8.

    Raises
    ------
    TypeError
        If it is neither a string nor bytes.
    """
    if isinstance(name, bytes):
        try:
            return name.decode()
        except UnicodeDecodeError:
            return name
    return name_text(name)


def find_item_type(data):
    """The type of all items of nested lists, or of an array of objects; None if they differ."""
    if isinstance(data, np.ndarray):
        is_special = _types.check_string_dtype(data.dtype) or _types.check_vlen_dtype(data.dtype)
        if data.dtype.kind != "O" or is_special:
            return None
        return common_type(np.ascontiguousarray(data)) if data.size else None
    elif isinstance(data, (list, tuple)):
        types = {find_item_type(item) for item in data}
    else:
        return type(data)
    return types.pop() if len(types) == 1 else None


def guess_dtype(data):
    """The dtype of strings and references; None for other data."""
    item = find_item_type(data)
    if item is _types.RegionReference:
        return _types.regionref_dtype
    if item is _types.Reference:
        return _types.ref_dtype
    if item is bytes:
        return _types.string_dtype("ascii")
    if item is str:
        return _types.string_dtype()
    return None


def array_for_new_object(data, specified_dtype=None):
    """The array that a new dataset or attribute gets."""
    if specified_dtype is not None and not isinstance(specified_dtype, np.dtype):
        of_type = not isinstance(specified_dtype, type) and getattr(specified_dtype, "dtype", None)
        specified_dtype = np.dtype(of_type or specified_dtype)
    is_half = specified_dtype is not None and specified_dtype.kind == "f" and specified_dtype.itemsize == 2
    if is_half or (specified_dtype is not None and not isinstance(data, np.ndarray)):
        as_dtype = specified_dtype
    else:
        as_dtype = guess_dtype(data)
    data = np.asarray(data, order="C", dtype=as_dtype)
    return data if as_dtype is None else data.view(dtype=as_dtype)


class _RegionProxy:
    """Makes region references of a dataset: ``dset.regionref[0:10]``."""

    def __init__(self, obj):
        self.obj = obj

    def __getitem__(self, args):
        from . import _selections

        if not hasattr(self.obj, "_region_reference"):
            raise TypeError("Region references can only be made to datasets")
        if self.obj.shape is None:
            raise ValueError("Region references cannot be made to datasets without elements")
        return self.obj._region_reference(_selections.select(self.obj.shape, args, self.obj))

    def shape(self, ref):
        """The shape of the dataset to which a reference leads."""
        return tuple(self._found(ref)[2][0])

    def selection(self, ref):
        """The shape of the elements to which a reference leads."""
        from . import _selections

        return _selections.region_dims(*self._found(ref)[2])

    def _found(self, ref):
        found = self.obj._handle.file.referent(ref._kind, ref._raw)
        if found is None or len(found) != 3:
            raise ValueError("Invalid HDF5 object reference")
        return found


class HLObject:
    """An object of a file.

    Attributes
    ----------
    file : File
    name : str
        The path; None for an object to which no link leads.
    parent : Group
    attrs : AttributeManager
    ref : Reference
    """

    # A file to which a link led, which stays open as long as its objects are used.
    _keep = None

    def __init__(self, handle, name=None):
        self._handle = handle
        self._path = name

    @property
    def _id(self):
        return self.id

    @property
    def id(self):
        from .h5py import _ids

        return _ids.id_of(self)

    @property
    def file(self):
        from ._files import File

        return File._of_handle(self._handle.file)

    @property
    def name(self):
        if self._path is None:
            path = self._handle.path
            self._path = False if path.startswith("0x") else posixpath.normpath("/" + path.lstrip("/"))
        return self._path or None

    @property
    def parent(self):
        if self.name is None:
            raise ValueError("Parent of an anonymous object is undefined")
        return self.file[posixpath.dirname(self.name)]

    @property
    def ref(self):
        return _types.Reference(self._handle.reference())

    @property
    def regionref(self):
        return _RegionProxy(self)

    @property
    def attrs(self):
        from ._attributes import AttributeManager

        return AttributeManager(self)

    def _key(self):
        return self._handle.id, self._handle.file.key

    def __hash__(self):
        return hash(self._key())

    def __eq__(self, other):
        if isinstance(other, HLObject):
            return self._key() == other._key()
        return NotImplemented

    def __bool__(self):
        return self._handle.is_open

    def __getstate__(self):
        raise TypeError("h5py objects cannot be pickled")

    def __reduce_ex__(self, protocol):
        file = self._handle.file
        if file.mode not in ("read", "swmr_read") or self.name is None:
            raise TypeError("h5py objects cannot be pickled")
        return _reopen, (file.name, file.mode, self.name)


def _reopen(location, mode, name):
    from ._files import File

    file = File(location, "r", swmr=mode == "swmr_read")
    return file if name == "/" else file[name]


class KeysViewHDF5(KeysView):
    def __str__(self):
        return f"<KeysViewHDF5 {list(self)}>"

    def __reversed__(self):
        yield from reversed(self._mapping)

    __repr__ = __str__


class ValuesViewHDF5(ValuesView):
    def __contains__(self, value):
        return any(value == self._mapping.get(key) for key in self._mapping)

    def __iter__(self):
        for key in self._mapping:
            yield self._mapping.get(key)

    def __reversed__(self):
        for key in reversed(self._mapping):
            yield self._mapping.get(key)


class ItemsViewHDF5(ItemsView):
    def __contains__(self, item):
        key, value = item
        return key in self._mapping and value == self._mapping.get(key)

    def __iter__(self):
        for key in self._mapping:
            yield key, self._mapping.get(key)

    def __reversed__(self):
        for key in reversed(self._mapping):
            yield key, self._mapping.get(key)


class MappingHDF5(Mapping):
    """Names to objects, read-only."""

    def keys(self):
        return KeysViewHDF5(self)

    def values(self):
        return ValuesViewHDF5(self)

    def items(self):
        return ItemsViewHDF5(self)

    def _ipython_key_completions_(self):
        return sorted(self.keys())


class MutableMappingHDF5(MappingHDF5, MutableMapping):
    """Names to objects."""
