"""Datasets: arrays in a file."""

import posixpath
import sys
from types import MappingProxyType

import numpy as np

from . import _filters, _masks, _selections, _transfer, _types
from ._base import Empty, HLObject, find_item_type, name_text
from ._h5live import Selection as RawSelection
from ._live import LiveDataset
from ._selections import product
from ._views import AsStrView, AsTypeView, ChunkIterator, FieldsView, subset_dtype


def _unwritable(args, names, val):
    """The error of writing to a dataset without elements."""
    if names:
        return TypeError("Illegal slicing argument (not a compound dataset)")
    if args not in ((), (Ellipsis,)):
        return ValueError("Empty datasets cannot be sliced")
    return (OSError if np.shape(val) == () else TypeError)("Empty datasets cannot be written to")


class _FastReader:
    def __init__(self, dataset):
        self._dataset = dataset

    def read(self, args):
        return self._dataset[args]


class Dataset(LiveDataset, HLObject):
    """An array in a file. ``dset[1:5, ::2]`` reads, ``dset[1:5] = values`` writes, as numpy's arrays do.

    Attributes
    ----------
    shape, maxshape, dtype, size, ndim, nbytes, chunks : as numpy's and h5py's
    compression, compression_opts, shuffle, fletcher32, scaleoffset : the filters
    """

    # How it is accessed, by the names of h5py's property lists: what was given when it was opened.
    _access = MappingProxyType({})

    def __init__(self, bind, name=None, *, readonly=False):
        handle = getattr(bind, "_handle", bind)
        if hasattr(bind, "_obj"):
            self._access = getattr(bind._obj, "_access", self._access)
        if not hasattr(handle, "read_into"):
            raise ValueError(f"{bind} is not a DatasetID")
        super().__init__(handle, name)
        self._stored_cache = None
        self._numbers_cache = None

    # --- description ----------------------------------------------------------------------------

    @property
    def _stored(self):
        """The description of the datatype, the dtype, and the datatype. They never change."""
        if self._stored_cache is None:
            datatype = self._handle.datatype()
            self._stored_cache = (*_types.described(datatype), datatype)
        return self._stored_cache

    @property
    def _numbers(self):
        """The datatype in memory and the dtype, if elements are numbers that numpy gives a buffer of; else nothing."""
        if self._numbers_cache is None:
            _, dt, datatype = self._stored
            # Memory of longer floats is exported in one byte order only.
            is_number = dt.kind in "iufb" and dt.itemsize <= 8
            self._numbers_cache = (_types.memory_type_of(datatype), np.empty, dt, dt.type) if is_number else ()
        return self._numbers_cache

    @property
    def shape(self):
        return self._handle.shape()

    @shape.setter
    def shape(self, shape):
        self.resize(shape)

    @property
    def dtype(self):
        return self._stored[1]

    @property
    def ndim(self):
        return len(self.shape or ())

    @property
    def size(self):
        shape = self.shape
        return None if shape is None else product(shape)

    @property
    def nbytes(self):
        size = self.size
        return 0 if size is None else self.dtype.itemsize * size

    @property
    def maxshape(self):
        return self._handle.max_shape()

    @property
    def _is_empty(self):
        return self.shape is None

    @property
    def _extent_type(self):
        shape = self.shape
        return 2 if shape is None else 0 if shape == () else 1

    @property
    def _selector(self):
        from .h5py._selector import Selector

        return Selector(self.id.get_space())

    @property
    def _fast_reader(self):
        return _FastReader(self)

    @property
    def _fast_read_ok(self):
        return self._extent_type == 1 and self._stored[0][0] in ("int", "float")

    @property
    def chunks(self):
        return self._handle.description().get("chunks")

    @property
    def _filters(self):
        return _filters.pipeline(self._handle.description()["filters"])

    @property
    def compression(self):
        found = self._filters
        for name in _filters.COMPRESSIONS:
            if name in found:
                return name
        return "unknown" if any(name not in _filters.KNOWN for name in found) else None

    @property
    def compression_opts(self):
        return self._filters.get(self.compression)

    @property
    def filter_ids(self):
        return tuple(code for code, _, _, _ in self._handle.description()["filters"])

    @property
    def filter_names(self):
        filters = self._handle.description()["filters"]
        return tuple(name or {1: "deflate"}.get(code, _filters.name_of(code)) for code, _, name, _ in filters)

    @property
    def shuffle(self):
        return "shuffle" in self._filters

    @property
    def fletcher32(self):
        return "fletcher32" in self._filters

    @property
    def scaleoffset(self):
        found = self._filters
        return found["scaleoffset"][1] if "scaleoffset" in found else None

    @property
    def external(self):
        return self._handle.description().get("external")

    @property
    def is_virtual(self):
        return self._handle.description()["layout"] == "virtual"

    def virtual_sources(self):
        """The sources of a virtual dataset."""
        from ._vds import VDSmap
        from .h5py import h5s

        if not self.is_virtual:
            raise RuntimeError("Not a virtual dataset")
        entries = self._handle.description()["virtual"]
        return [VDSmap(h5s.SpaceID.of_raw(self.shape, target), file, dset, h5s.SpaceID.of_raw(None, source))
                for (file, dset), source, target in entries]

    @property
    def fillvalue(self):
        spec, dt, _ = self._stored
        raw = self._handle.description().get("fill")
        base = dt.base
        if raw is None or not any(raw):
            zeros = np.zeros((1,), dt)
            if _types.check_string_dtype(dt) and dt.kind == "O":
                return b""
            return None if _types.check_vlen_dtype(dt) is not None else zeros[0]

        def read(datatype, memory):
            # A dataset of this one element, in memory, converts it.
            from ._h5live import File as RawFile

            root = RawFile.in_memory(None, "write", {}).root()
            one = root.create_dataset("one", self._stored[2], {"shape": [], "fill": raw})
            one.read_into(RawSelection.all(), datatype, memory)

        if _transfer.needs_objects(base):
            array = _transfer.to_objects(self._handle.file, np.frombuffer(raw, _transfer.raw_form(dt, spec)[0]), dt, spec)
            return array[0]
        return _transfer.fetch(None, (1,), dt, spec, read)[0]

    @property
    def dims(self):
        """The dimensions, with their labels and scales."""
        from ._dims import DimensionManager

        return DimensionManager(self)

    def make_scale(self, name=""):
        """Makes it a scale, which can be attached to dimensions of other datasets."""
        try:
            self._handle.make_scale(name_text(name))
        except ValueError as error:
            raise RuntimeError(f"Unable to make a scale ({error})") from None

    @property
    def is_scale(self):
        return self._handle.is_scale()

    # --- views ----------------------------------------------------------------------------------

    def astype(self, dtype):
        """A view that reads elements of another type."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype.kind == "T" and _types.check_string_dtype(self.dtype) is None:
            raise TypeError(f"dset.astype({dtype}) can only be used on datasets with an HDF5 string datatype")
        return AsTypeView(self, dtype)

    def asstr(self, encoding=None, errors="strict"):
        """A view that reads strings as ``str``."""
        info = _types.check_string_dtype(self.dtype)
        if info is None:
            raise TypeError("dset.asstr() can only be used on datasets with an HDF5 string datatype")
        return AsStrView(self, encoding or info.encoding, errors=errors)

    def fields(self, names, *, _prior_dtype=None):
        """A view that reads some members of a compound."""
        return FieldsView(self, self.dtype if _prior_dtype is None else _prior_dtype, names)

    def iter_chunks(self, sel=None):
        """Goes through the selections of the chunks, or of their parts in `sel`."""
        return ChunkIterator(self, sel)

    # --- shape ----------------------------------------------------------------------------------

    def resize(self, size, axis=None):
        """Changes the shape, or one dimension of it. Elements keep their coordinates."""
        if self.chunks is None:
            raise TypeError("Only chunked datasets can be resized")
        if axis is not None:
            if not 0 <= axis < self.ndim:
                raise ValueError(f"Invalid axis (0 to {self.ndim - 1} allowed)")
            try:
                length = int(size)
            except TypeError:
                raise TypeError("Argument must be a single int if axis is specified") from None
            size = list(self.shape)
            size[axis] = length
        size = tuple(size)
        if len(size) != self.ndim:
            raise TypeError(f"New shape length ({len(size)}) must match dataset rank ({self.ndim})")
        try:
            self._handle.resize([int(n) for n in size])
        except ValueError as error:
            if "open for reading only" in str(error):
                raise RuntimeError(f"Unable to change a dataset's dimensions ({error})") from None
            raise

    def __len__(self):
        size = self.len()
        if size > sys.maxsize:
            raise OverflowError("Value too big for Python's __len__; use Dataset.len() instead.")
        return size

    def len(self):
        """The number of rows; unlike ``len(dset)`` also above what Python's lengths can be."""
        shape = self.shape
        if not shape:
            raise TypeError("Attempt to take len() of scalar dataset")
        return shape[0]

    def __iter__(self):
        shape = self.shape
        if not shape:
            raise TypeError("Can't iterate over a scalar dataset")
        for i in range(shape[0]):
            yield self[i]

    # --- reading --------------------------------------------------------------------------------

    def __getitem__(self, args, new_dtype=None):
        numbers = self._numbers
        if numbers and new_dtype is None:
            found = self._handle.read_simple(args, *numbers)
            if found is not None:
                return found
        dt = self.dtype
        args = args if isinstance(args, tuple) else (args,)
        if any(arg is None for arg in args):
            raise TypeError("Indexing with None (or np.newaxis) is not supported")
        is_all = args == () or len(args) == 1 and args[0] is Ellipsis
        shape = self.shape
        if shape is None:
            if is_all:
                return Empty(dt)
            raise ValueError("Empty datasets cannot be sliced")
        names = tuple(arg for arg in args if isinstance(arg, str))
        if names:
            rest = tuple(arg for arg in args if not isinstance(arg, str))
            return self.fields(names[0] if len(names) == 1 else names, _prior_dtype=new_dtype)[rest]
        new_dtype = dt if new_dtype is None else np.dtype(new_dtype)
        if len(args) == 1 and isinstance(args[0], _types.RegionReference):
            selection = _selections.region(args[0], self)
            if shape == ():
                return self[...] if selection.nselect else Empty(dt)
            return self._read(selection, selection.mshape, new_dtype)
        if shape == ():
            if args != () and args != (Ellipsis,):
                raise ValueError("Illegal slicing argument for scalar dataspace")
            array = self._read(_selections.SimpleSelection(()), (), new_dtype)
            return array[()] if args == () else array
        if is_all and 0 in shape:
            return np.zeros(shape, new_dtype)
        if len(args) == 1 and _masks.is_dense(self, args[0], shape, new_dtype):
            return _masks.read(self, args[0], new_dtype)
        selection = _selections.select(shape, args, self)
        array = self._read(selection, selection.array_shape, new_dtype)
        return array[()] if array.shape == () else array

    def _read(self, selection, shape, dt):
        spec = self._stored[0]

        def read(datatype, memory):
            self._handle.read_into(selection.raw, datatype, memory)

        if dt.kind == "U":
            raise TypeError(f"No conversion path for dtype: {dt!r}")
        return _transfer.fetch(self._handle.file, shape, dt, spec, read)

    def read_direct(self, dest, source_sel=None, dest_sel=None):
        """Reads into an array that is there. Selections are as in ``numpy.s_[...]``."""
        if self._is_empty:
            raise TypeError("Empty datasets have no numpy representation")
        source = self._selection(self.shape, source_sel, self)
        if not (dest.flags.c_contiguous and dest.flags.writeable):
            raise TypeError("Array must be C-contiguous and writable")
        target = self._selection(dest.shape, dest_sel, None)
        whole = dest_sel is None and source.array_shape == dest.shape and not _transfer.needs_objects(dest.dtype)
        if whole:
            if dest.size:
                self._handle.read_into(source.raw, _types.datatype_of(dest.dtype), _transfer.memory(dest))
            return
        values = self._read(source, source.mshape, dest.dtype)
        flat = np.broadcast_to(values.reshape(target.expand_shape(source.array_shape)), target.mshape)
        self._put(dest, target, dest_sel, flat)

    @staticmethod
    def _put(dest, target, dest_sel, values):
        if dest_sel is None or isinstance(dest_sel, _selections.Selection) and target.is_simple:
            key = tuple(slice(start, start + count * step, step) for start, count, step, _ in zip(*target.box))
            dest[key] = values.reshape(dest[key].shape)
        else:
            dest[dest_sel] = values.reshape(dest[dest_sel].shape)

    @staticmethod
    def _selection(shape, key, dataset):
        if key is None:
            return _selections.SimpleSelection(shape)
        return _selections.select(shape, key, dataset)

    def write_direct(self, source, source_sel=None, dest_sel=None):
        """Writes from an array. Selections are as in ``numpy.s_[...]``."""
        if self._is_empty:
            raise TypeError("Empty datasets cannot be written to")
        if not source.flags.c_contiguous:
            raise TypeError("Array must be C-contiguous")
        if source_sel is not None:
            # What is wrong with a key is told as for datasets.
            self._selection(source.shape, source_sel, None)
        values = source if source_sel is None else source[source_sel]
        target = self._selection(self.shape, dest_sel, self)
        self._write(target, np.asarray(values), np.shape(values))

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError(f"Dataset.__array__ received {copy=} but memory allocation cannot be avoided on read")
        shape = self.shape
        if shape is None:
            raise TypeError("Empty datasets have no numpy representation")
        dt = self.dtype if dtype is None else np.dtype(dtype)
        if 0 in shape:
            return np.zeros(shape, dt)
        return self._read(_selections.SimpleSelection(shape), shape, dt)

    # --- writing --------------------------------------------------------------------------------

    def __setitem__(self, args, val):
        args = args if isinstance(args, tuple) else (args,)
        names = tuple(arg for arg in args if isinstance(arg, str))
        args = tuple(arg for arg in args if not isinstance(arg, str))
        dt = self.dtype
        val = self._array_to_write(val, names)
        if self._is_empty:
            raise _unwritable(args, names, val)
        shape = val.shape
        if dt.subdtype is not None:
            dims = dt.subdtype[1]
            if shape[-len(dims):] != dims:
                raise TypeError("When writing to array types, last N dimensions have to match "
                                f"(got {shape[-len(dims):]}, but should be {dims})")
            shape = shape[:len(shape) - len(dims)]
        elif names:
            val = self._members_to_write(val, names)
            shape = val.shape
        selection = _selections.select(self.shape, args, self)
        if shape == () and selection.array_shape != () and dt.subdtype is not None:
            raise TypeError("Scalar broadcasting is not supported for array dtypes")
        if shape == () and not selection.is_simple:
            shape = selection.array_shape
            val = np.broadcast_to(val, shape)
        self._write(selection, val, shape)

    def _array_to_write(self, val, names):
        """The array for a value, of a type that the file's can be made from."""
        dt = self.dtype
        vlen = _types.check_vlen_dtype(dt)
        if vlen is not None and vlen not in (bytes, str):
            return _vlen_array(val, vlen, dt)
        is_foreign = not isinstance(val, np.ndarray) or val.dtype.kind != "V"
        if dt.kind == "O" or dt.kind == "V" and is_foreign and dt.subdtype is None:
            if len(names) == 1 and dt.fields is not None:
                if names[0] not in dt.fields:
                    raise ValueError(f"No such field for indexing: {names[0]}")
                member = dt.fields[names[0]][0]
                val = np.asarray(val, dtype=member.base, order="C").view(np.dtype([(names[0], member)]))
                return val.reshape(val.shape[:len(val.shape) - len(member.shape)])
            if dt.kind == "O" and isinstance(val, np.ndarray) and val.dtype.kind == "T":
                return val
            return np.asarray(val, dtype=dt.base, order="C")
        info = _types.check_string_dtype(dt)
        if dt.kind == "S" and info.encoding == "utf-8" and find_item_type(val) is str:
            texts = np.asarray(val, order="C", dtype=object)
            return np.array([text.encode("utf-8") for text in texts.flat], dtype=dt).reshape(texts.shape)
        return np.asarray(val, order="C", dtype=None if isinstance(val, np.ndarray) else dt.base)

    def _members_to_write(self, val, names):
        dt = self.dtype
        if dt.fields is None:
            raise TypeError("Illegal slicing argument (not a compound dataset)")
        missing = [name for name in names if name not in dt.fields]
        if missing:
            listed = ", ".join(f'"{name}"' for name in missing)
            raise ValueError(f"Illegal slicing argument (fields {listed} not in dataset type)")
        if len(names) == 1 and val.dtype.fields is None:
            out = np.empty(val.shape, np.dtype([(names[0], val.dtype)]))
            out[names[0]] = val
            return out
        return val[[name for name in val.dtype.names if name in names]]

    def _write(self, selection, val, shape):
        """Writes an array, repeated as numpy does it. `shape` is that of its elements."""
        expanded = selection.expand_shape(shape)
        if selection.nselect == 0:
            return
        spec, dt, _ = self._stored
        dims = dt.shape if dt.subdtype is not None else ()
        if expanded != selection.mshape:
            val = np.broadcast_to(val.reshape(expanded + dims), selection.mshape + dims)
        inner = spec[2] if dims else spec
        memory, memory_type = _transfer.prepare(self._handle.file, np.ascontiguousarray(val), inner)
        if dims:
            memory_type = type(memory_type)(("array", tuple(int(n) for n in dims), memory_type.spec()))
        try:
            self._handle.write_from(selection.raw, memory_type, memory)
        except ValueError as error:
            if "open for reading only" in str(error):
                raise OSError(f"Can't write data ({error})") from None
            raise

    # --- the rest -------------------------------------------------------------------------------

    def _region_reference(self, selection):
        try:
            return _types.RegionReference(self._handle.region_reference(selection.raw))
        except ValueError as error:
            if "open for reading only" in str(error):
                raise RuntimeError(f"Unable to encode region reference ({error})") from None
            raise

    def refresh(self):
        """Takes up what the writer of a live file has published."""
        self._handle.refresh()

    def flush(self):
        """Publishes what was written: from here on, other processes see it."""
        self._handle.flush()

    def __repr__(self):
        if not self:
            return "<Closed HDF5 dataset>"
        name = "(anonymous)" if self.name is None else f'"{posixpath.basename(posixpath.normpath(self.name))}"'
        return f'<HDF5 dataset {name}: shape {self.shape}, type "{self.dtype.str}">'

    def _repr_html_(self):
        head = ""
        if self.shape:
            head = f"<pre>{np.array2string(self[tuple(slice(0, 3) for _ in self.shape)], threshold=20)}</pre>"
        return f"<b>{self.name}</b>: shape {self.shape}, type {self.dtype}{head}"


def _vlen_array(val, vlen, dt):
    """An array of arrays, one for each element."""
    try:
        val = np.asarray(val, dtype=vlen)
    except (ValueError, TypeError):
        try:
            items = [np.array(item, dtype=vlen) for item in val]
            out = np.empty(len(items), dtype=dt)
            for at, item in enumerate(items):
                out[at] = item
            return out
        except (ValueError, TypeError):
            return np.asarray(val, dtype=dt)
    if val.dtype != vlen:
        return val
    out = np.empty(val.shape[:-1] if val.ndim > 1 else (1,), dtype=dt)
    rows = val.reshape((product(out.shape), val.shape[-1])) if val.ndim > 1 else [val]
    flat = out.reshape(-1)
    for at, row in enumerate(rows):
        flat[at] = row
    return out


__all__ = ["Dataset", "subset_dtype"]
