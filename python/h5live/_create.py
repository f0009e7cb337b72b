"""New datasets, from h5py's keywords."""

import os
import sys
import warnings

import numpy as np

from . import _base, _filters, _transfer, _types
from ._base import Empty
from ._datatypes import Datatype
from ._filters import FilterRefBase
from ._selections import SimpleSelection, product

_GZIP_LEVELS = frozenset(range(10))


def _gzip_levels():
    """The numbers that mean gzip; h5py's module of this name may say otherwise."""
    module = sys.modules.get(f"{__package__}.h5py._hl.dataset")
    return getattr(module, "_LEGACY_GZIP_COMPRESSION_VALS", _GZIP_LEVELS)


class H5pyDeprecationWarning(UserWarning):
    """A way to use the package that will go."""


def _shape_of(shape, dtype, data):
    if shape is None:
        if data is None:
            if dtype is None:
                raise TypeError("One of data, shape or dtype must be specified")
            data = Empty(getattr(dtype, "dtype", dtype))
        return data.shape, data
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if data is not None and product(shape) != product(data.shape):
        raise ValueError("Shape tuple is incompatible with data")
    return shape, data


def _type_of(dtype, data, file):
    """The dtype, and the datatype or the handle of a committed type."""
    if isinstance(dtype, Datatype):
        return dtype.dtype, dtype._handle or dtype._datatype
    if hasattr(dtype, "_datatype"):
        return dtype.dtype, dtype._datatype
    if dtype is None and data is None:
        warnings.warn("Creating a dataset without passing data or dtype is deprecated. Pass an explicit dtype. "
                      "Using dtype='f4' will keep the current default behaviour.", H5pyDeprecationWarning, stacklevel=5)
        dtype = np.dtype("=f4")
    elif dtype is None:
        dtype = data.dtype
    dtype = np.dtype(dtype)
    return dtype, file.stored_type(_types.datatype_of(dtype))


def _check_chunks(chunks, shape, maxshape):
    if isinstance(chunks, tuple):
        limits = maxshape if isinstance(maxshape, tuple) else shape
        if any(chunk > dim for dim, chunk in zip(limits or (), chunks) if dim is not None):
            raise ValueError("Chunk shape must not be greater than data shape in any dimension. "
                             f"{chunks} is not compatible with {shape}")


def _legacy_compression(compression, options):
    if compression is True:
        return "gzip", 4 if options is None else options
    if not isinstance(compression, (FilterRefBase, str, bytes)) and compression in _gzip_levels():
        if options is not None:
            raise TypeError("Conflict in compression options")
        return "gzip", compression
    return compression, options


def _fill_element(file, fillvalue, dtype, stored):
    """A fill value as the file has elements."""
    info = _types.check_string_dtype(dtype)
    if info is not None:
        value = np.array(fillvalue, dtype=object) if not isinstance(fillvalue, np.ndarray) else fillvalue
        texts = [_transfer._text(value.item() if value.ndim == 0 else value.reshape(-1)[0])]
        raw, _ = _transfer.raw_texts(file, texts, stored)
        return raw.tobytes()
    value = np.asarray(fillvalue)
    if dtype.names is not None and value.ndim == 0 and value.dtype.names is None:
        raise ValueError(f"{fillvalue!r} is no element of {dtype}")
    if value.dtype.kind == "O" or dtype.kind == "V" and value.dtype.kind != "V":
        value = np.asarray(fillvalue, dtype=dtype.base)
    if dtype.subdtype is not None:
        value = np.broadcast_to(value, dtype.shape)
    memory, memory_type = _transfer.prepare(file, np.ascontiguousarray(value), stored if dtype.subdtype is None else stored[2])
    return _converted(memory, memory_type, stored, dtype)


def _converted(memory, memory_type, stored, dtype):
    """Bytes of one element as those of the file's type: a dataset in memory converts them."""
    from ._h5live import Datatype as RawDatatype
    from ._h5live import File as RawFile
    from ._h5live import Selection as RawSelection

    if dtype.subdtype is not None:
        memory_type = RawDatatype(("array", stored[1], memory_type.spec()))
    root = RawFile.in_memory(None, "write", {}).root()
    one = root.create_dataset("one", RawDatatype(stored), {"shape": []})
    one.write_from(RawSelection.all(), memory_type, memory)
    out = bytearray(RawDatatype(stored).size)
    one.read_into(RawSelection.all(), RawDatatype(stored), out)
    return bytes(out)


def create_dataset(parent, name, shape=None, dtype=None, data=None, chunks=None, compression=None, shuffle=None,
                   fletcher32=None, maxshape=None, compression_opts=None, fillvalue=None, scaleoffset=None,
                   track_times=False, external=None, track_order=None, dcpl=None, dapl=None, efile_prefix=None,
                   virtual_prefix=None, allow_unknown_filter=False, rdcc_nslots=None, rdcc_nbytes=None, rdcc_w0=None,
                   *, fill_time=None):
    """Makes a dataset below a group, and returns its handle. The keywords are h5py's."""
    del dapl, efile_prefix, virtual_prefix, rdcc_nslots, rdcc_nbytes, rdcc_w0
    file = parent._handle.file
    if data is not None and not isinstance(data, Empty):
        data = _base.array_for_new_object(data, specified_dtype=dtype)
    shape, data = _shape_of(shape, dtype, data)
    if isinstance(maxshape, int) and not isinstance(maxshape, bool):
        maxshape = (maxshape,)
    if isinstance(chunks, int) and not isinstance(chunks, bool):
        chunks = (chunks,)
    _check_chunks(chunks, shape, maxshape)
    dtype, target = _type_of(dtype, data, file)
    if any((compression, shuffle, fletcher32, maxshape, scaleoffset)) and chunks is False:
        raise ValueError("Chunked format required for given storage options")
    compression, compression_opts = _legacy_compression(compression, compression_opts)
    if scaleoffset is False:
        scaleoffset = None
    options = _filters.storage(shape, dtype, chunks, compression, compression_opts, shuffle, fletcher32, maxshape,
                               scaleoffset, external, allow_unknown_filter, fill_time)
    _fit_external(options, shape, dtype)
    datatype = getattr(target, "datatype", target)
    if dcpl is not None:
        options = {**{key: value for key, value in dcpl.options(dtype, datatype.spec(), file).items() if value},
                   **{key: value for key, value in options.items() if value}}
    if fillvalue is not None:
        options["fill"] = list(_fill_element(file, fillvalue, dtype, datatype.spec()))
    if track_times is not None and track_times not in (True, False):
        raise TypeError("track_times must be either True or False")
    if track_order not in (None, True, False):
        raise TypeError("track_order must be either True or False")
    options["track_times"] = bool(track_times)
    options["track_order"] = track_order
    options["shape"] = None if shape is None or isinstance(data, Empty) else [int(n) for n in shape]
    handle = parent._handle.create_dataset(name, target, options)
    if data is not None and not isinstance(data, Empty):
        _write_first(handle, data, shape, dtype, datatype.spec())
    return handle


def access_of(parent, dapl=None, efile_prefix=None, virtual_prefix=None, rdcc_nslots=None, rdcc_nbytes=None,
              rdcc_w0=None, **kwds):
    """How a dataset is accessed: the properties that are given, by their names in h5py's lists."""
    del kwds
    access = {} if dapl is None else dict(dapl._values)
    for name, folder in (("efile_prefix", efile_prefix), ("virtual_prefix", virtual_prefix)):
        if folder is not None:
            access[name] = os.fsencode(folder)
        if name in access:
            origin = os.fsencode(os.path.dirname(os.path.abspath(parent._handle.file.name)))
            access[name] = access[name].replace(b"${ORIGIN}", origin, 1)
    if rdcc_nslots is not None or rdcc_nbytes is not None or rdcc_w0 is not None:
        known = access.get("chunk_cache") or parent.file._shared.cache[1:]
        given = (rdcc_nslots, rdcc_nbytes, rdcc_w0)
        access["chunk_cache"] = tuple(old if new is None else new for new, old in zip(given, known))
    return access


def accessed(dataset, access):
    """A dataset that is accessed so.

    Raises
    ------
    NotImplementedError
        For a folder of external files, if their names are relative.
    """
    if not access:
        return dataset
    if access.get("efile_prefix") and any(not os.path.isabs(name) for name, _, _ in dataset.external or ()):
        raise NotImplementedError("a folder for the external files of one dataset: set HDF5_EXTFILE_PREFIX")
    if dataset.is_virtual and access.get("virtual_prefix"):
        dataset._handle.set_source_folder(os.fsdecode(access["virtual_prefix"]))
    dataset._access = access
    return dataset


def _fit_external(options, shape, dtype):
    """The last external file is as long as the elements need."""
    if options.get("external"):
        options["layout"] = None
        needed = product(shape) * dtype.itemsize
        files = []
        for file, offset, size in options["external"]:
            size = needed if size == _filters.UNLIMITED else size
            files.append((file, offset, size))
            needed -= min(size, needed)
        options["external"] = files


def _write_first(handle, data, shape, dtype, stored):
    from ._datasets import Dataset

    dataset = Dataset(handle)
    dims = dtype.shape if dtype.subdtype is not None else ()
    if dims and data.dtype.subdtype is None and data.shape[-len(dims):] != dims:
        raise TypeError(f"data of shape {data.shape} does not fit elements of shape {dims}")
    if product(shape) == 0:
        return
    dataset._write(SimpleSelection(shape), data.reshape(tuple(shape) + dims), tuple(shape))
