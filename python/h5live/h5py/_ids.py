"""The objects behind ``.id``: what h5py's users read of them."""

from collections import namedtuple

import numpy as np

from .. import _selections
from .._base import name_text
from . import h5s, h5t
from ._objects import ObjectID

StoreInfo = namedtuple("StoreInfo", ["chunk_offset", "filter_mask", "byte_offset", "size"])


def id_of(obj):
    """The identity of an object of the high level."""
    from .._datasets import Dataset
    from .._datatypes import Datatype
    from .._files import File

    if isinstance(obj, File):
        return FileID(obj)
    if isinstance(obj, Dataset):
        return DatasetID(obj)
    if isinstance(obj, Datatype):
        if obj._handle is None:
            return obj._type
        return h5t.type_of(obj._handle.datatype.spec(), obj._handle)
    return GroupID(obj)


class _HandleID(ObjectID):
    """An identity with a handle."""

    def __init__(self, obj):
        self._obj = obj
        self._handle = obj._handle

    @property
    def id(self):
        return hash(self) & 0x7FFFFFFF if self.valid else 0

    @property
    def valid(self):
        return int(self._handle is not None and self._handle.is_open)

    def _key(self):
        return self._obj._key()

    def __eq__(self, other):
        return isinstance(other, _HandleID) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def close(self):
        """Nothing to be done: a handle goes with its object."""

    _close = close

    def get_access_plist(self):
        from . import h5p

        return h5p.of_access(self._obj)

    def get_create_plist(self):
        from . import h5p

        return h5p.of_creation(self._obj)


class LinkProxy:
    """The links of a group."""

    def __init__(self, handle):
        self._handle = handle

    def get_info(self, name, lapl=None):
        from . import h5l

        parent, _, last = name_text(name).rpartition("/")
        group = self._handle.open(parent or "/") if "/" in name_text(name) else self._handle
        link = group.link(last)
        if link is None:
            raise KeyError(f"Unable to get link info (no {name!r})")
        return h5l.LinkInfo(link)

    def exists(self, name):
        return self._handle.link(name_text(name)) is not None

    def visit(self, func, *, obj_name=".", info=False):
        """Calls ``func(name)``, with the description of the link if `info` is true, until it returns something."""
        from .._groups import Group
        from .._walk import walk_links

        name = name_text(obj_name)
        group = Group(self._handle if name == "." else self._handle.open(name))

        def call(path, _):
            raw = path.encode("utf-8", "surrogateescape")
            return func(raw, self.get_info(path)) if info else func(raw)

        return walk_links(group, call)


class GroupID(_HandleID):
    """A group."""

    @property
    def links(self):
        return LinkProxy(self._handle)

    def get_num_objs(self):
        return self._handle.len()

    def __iter__(self):
        return (name.encode() for name in self._handle.names(False))

    def __contains__(self, name):
        return self._handle.link(name_text(name)) is not None

    def unlink(self, name):
        self._handle.unlink(name_text(name))


class FileID(GroupID):
    """A file."""

    @property
    def valid(self):
        return int(bool(self._obj))

    @property
    def name(self):
        return self._obj.filename.encode()

    def close(self):
        self._obj.close()

    def _close_open_objects(self, types):
        self._obj.close()

    def get_file_image(self):
        """The bytes of the file."""
        shared = self._obj._shared
        if hasattr(shared, "image"):
            return shared.image()
        self._obj.flush()
        with open(shared.filename, "rb") as file:
            return file.read()

    def get_filesize(self):
        return len(self.get_file_image())

    def get_intent(self):
        from . import h5f

        return {"read": h5f.ACC_RDONLY, "swmr_read": h5f.ACC_SWMR_READ, "swmr_write": h5f.ACC_SWMR_WRITE | h5f.ACC_RDWR,
                }.get(self._obj._raw.mode, h5f.ACC_RDWR)

    def start_swmr_write(self):
        self._obj.start_swmr()

    def get_vfd_handle(self, fapl=None):
        raise NotImplementedError("handles of libhdf5's drivers")


class DatasetID(_HandleID):
    """A dataset."""

    @property
    def shape(self):
        return self._handle.shape()

    @property
    def rank(self):
        return len(self.shape or ())

    @property
    def dtype(self):
        return self._obj.dtype

    def get_type(self):
        committed = self._handle.description().get("committed")
        return h5t.type_of(self._obj._stored[0], committed)

    def get_space(self):
        limits = self._handle.max_shape()
        limits = None if limits is None else tuple(h5s.UNLIMITED if n is None else n for n in limits)
        return h5s.SpaceID(self.shape, limits)

    def get_offset(self):
        chunks = [] if self._obj.chunks else self._handle.chunks()
        return chunks[0][2] if chunks else None

    def get_storage_size(self):
        return sum(size for _, _, _, size in self._handle.chunks())

    def refresh(self):
        self._handle.refresh()

    def flush(self):
        self._handle.flush()

    def set_extent(self, shape):
        self._handle.resize([int(n) for n in shape])

    extend = set_extent

    # --- chunks ---------------------------------------------------------------------------------

    def _check_chunked(self):
        if self._obj.chunks is None:
            raise ValueError("Chunked dataset required")

    def get_num_chunks(self, space=None):
        self._check_chunked()
        return len(self._handle.chunks())

    def get_chunk_info(self, index, space=None):
        self._check_chunked()
        offset, mask, address, size = self._handle.chunks()[index]
        return StoreInfo(tuple(offset), mask, address, size)

    def get_chunk_info_by_coord(self, chunk_offset):
        self._check_chunked()
        for offset, mask, address, size in self._handle.chunks():
            if tuple(offset) == tuple(chunk_offset):
                return StoreInfo(tuple(offset), mask, address, size)
        return StoreInfo(tuple(chunk_offset), 0, None, 0)

    def chunk_iter(self, func):
        self._check_chunked()
        for offset, mask, address, size in self._handle.chunks():
            result = func(StoreInfo(tuple(offset), mask, address, size))
            if result is not None:
                return result
        return None

    def _scaled(self, offsets):
        self._check_chunked()
        return [int(at) // size for at, size in zip(offsets, self._obj.chunks)]

    def read_direct_chunk(self, offsets, dxpl=None, out=None):
        found = self._handle.read_chunk(self._scaled(offsets))
        if found is None:
            raise ValueError("the chunk is not stored")
        mask, data = found
        if out is None:
            return mask, data
        view = memoryview(out)
        if not view.c_contiguous:
            raise ValueError("Requires contiguous buffer")
        view = view.cast("B")
        if view.readonly:
            raise BufferError("Object is not writable.")
        if len(view) < len(data):
            raise ValueError(f"the output buffer is only {len(view)} bytes, {len(data)} are needed")
        view[:len(data)] = data
        return mask, view[:len(data)]

    def write_direct_chunk(self, offsets, data, filter_mask=0, dxpl=None):
        self._handle.write_chunk(self._scaled(offsets), filter_mask, np.frombuffer(data, "u1"))

    # --- elements -------------------------------------------------------------------------------

    def read(self, mspace, fspace, arr_obj, mtype=None, dxpl=None):
        selection = _selection_of(fspace, self.shape)
        arr_obj[...] = self._obj._read(selection, arr_obj.shape, arr_obj.dtype)

    def write(self, mspace, fspace, arr_obj, mtype=None, dxpl=None):
        selection = _selection_of(fspace, self.shape)
        self._obj._write(selection, np.asarray(arr_obj), np.shape(arr_obj))


def _selection_of(space, shape):
    if space is None or isinstance(space, int) or space._selection is None:
        return _selections.SimpleSelection(shape)
    return space._selection
