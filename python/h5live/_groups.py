"""Groups: names that lead to objects, as a mapping."""

import posixpath

import numpy as np

from . import _base, _create, _filters, _types
from ._base import HLObject, name_text
from ._datasets import Dataset
from ._datatypes import Datatype
from ._elinks import LinkAccess
from ._h5live import Dataset as RawDataset
from ._h5live import Group as RawGroup
from ._h5live import Map as RawMap
from ._h5live import NamedType as RawNamedType
from ._links import ExternalLink, HardLink, SoftLink


def wrap(handle, name=None):
    """The object of a handle."""
    if isinstance(handle, RawDataset):
        return Dataset(handle, name)
    if isinstance(handle, RawGroup):
        return Group(handle, name)
    if isinstance(handle, RawNamedType):
        return Datatype(handle, name)
    from ._maps import Map

    return Map(handle, name)


def _class_of(handle):
    return {RawDataset: Dataset, RawGroup: Group, RawNamedType: Datatype}.get(type(handle)) or type(wrap(handle))


def _default_track_order(track_order):
    from . import _config

    return _config.track_order if track_order is None else track_order


class Group(_base.MutableMappingHDF5, HLObject):
    """Names that lead to groups, datasets and committed types. ``group[name]`` opens, ``group[name] = array`` stores."""

    def __init__(self, bind, name=None):
        handle = getattr(bind, "_handle", bind)
        if not isinstance(handle, RawGroup):
            raise ValueError(f"{bind} is not a GroupID")
        super().__init__(handle, name)

    # A group is the same as another one if it is that object, not if it has the same members.
    __eq__ = HLObject.__eq__
    __hash__ = HLObject.__hash__

    # --- new objects ----------------------------------------------------------------------------

    def create_group(self, name, track_order=None, *, track_times=False):
        """Makes a group, and the groups above it that are not there.

        Raises
        ------
        ValueError
            If the name is taken, or the file is open for reading only.
        """
        del track_times
        if name is None:
            return Group(self._handle.create_unlinked_group(), False)
        try:
            return Group(self._handle.create_group(name_text(name), bool(_default_track_order(track_order))))
        except KeyError as error:
            raise ValueError(f"Unable to create group ({error})") from None

    def create_dataset(self, name, shape=None, dtype=None, data=None, **kwds):
        """Makes a dataset.

        Parameters
        ----------
        name : str or None
            The path; None for a dataset to which no link leads yet.
        shape : int or tuple of int, optional
        dtype : dtype or Datatype, optional
        data : array_like or Empty, optional
        chunks : tuple of int, True or False
        maxshape : tuple of int or None
            None for a dimension without limit.
        compression : str, int or filter object
            "gzip", "lzf", "szip", the number of a filter, an object of hdf5plugin.
        compression_opts, shuffle, fletcher32, scaleoffset, fillvalue, fill_time, external, track_order, track_times
            As h5py's.
        """
        if "track_order" not in kwds:
            kwds["track_order"] = _default_track_order(None) or None
        path = None if name is None else name_text(name)
        if path is not None and "/" in path.lstrip("/"):
            parent, _ = posixpath.split(path)
            if parent.strip("/"):
                self.require_group(parent)
        access = _create.access_of(self, **kwds)
        if access.get("efile_prefix"):
            kwds["external"] = _filters.external_entries(kwds.get("external")) or None
            if any(not posixpath.isabs(name) for name, _, _ in kwds["external"] or ()):
                raise NotImplementedError("efile_prefix with relative names: set HDF5_EXTFILE_PREFIX")
        return _create.accessed(Dataset(_create.create_dataset(self, path, shape, dtype, data, **kwds)), access)

    def create_virtual_dataset(self, name, layout, fillvalue=None):
        """Makes a dataset whose elements are in other datasets (VirtualLayout)."""
        path = name_text(name)
        parent = posixpath.dirname(path)
        if parent.strip("/"):
            self.require_group(parent)
        return Dataset(layout.make_dataset(self, path, fillvalue))

    def build_virtual_dataset(self, name, shape, dtype, maxshape=None, fillvalue=None):
        """A context that gives a VirtualLayout and makes the dataset at its end."""
        from ._vds import build_virtual_dataset

        return build_virtual_dataset(self, name, shape, dtype, maxshape, fillvalue)

    def require_dataset(self, name, shape, dtype, exact=False, **kwds):
        """Opens a dataset, or makes it. TypeError if one is there that does not fit."""
        if name not in self:
            return self.create_dataset(name, shape, dtype, **kwds)
        shape = (shape,) if isinstance(shape, int) else shape
        found = self[name]
        if not isinstance(found, Dataset):
            raise TypeError(f"Incompatible object ({found.__class__.__name__}) already exists")
        if shape != found.shape:
            if "maxshape" not in kwds:
                raise TypeError(f"Shapes do not match (existing {found.shape} vs new {shape})")
            if kwds["maxshape"] != found.maxshape:
                raise TypeError(f"Max shapes do not match (existing {found.maxshape} vs new {kwds['maxshape']})")
        if exact:
            if dtype != found.dtype:
                raise TypeError(f"Datatypes do not exactly match (existing {found.dtype} vs new {dtype})")
        elif not np.can_cast(dtype, found.dtype):
            raise TypeError(f"Datatypes cannot be safely cast (existing {found.dtype} vs new {dtype})")
        return _create.accessed(found, _create.access_of(self, **kwds))

    def create_dataset_like(self, name, other, **kwupdate):
        """Makes a dataset with the shape, type and storage of another one."""
        for key in ("shape", "dtype", "chunks", "compression", "compression_opts", "scaleoffset", "shuffle",
                    "fletcher32", "fillvalue"):
            kwupdate.setdefault(key, getattr(other, key))
        kwupdate.setdefault("track_times", other._handle.info()[1] is not None)
        kwupdate.setdefault("track_order", other._handle.attributes.tracks_order())
        if other.maxshape != other.shape:
            kwupdate.setdefault("maxshape", other.maxshape)
        return self.create_dataset(name, **kwupdate)

    def require_group(self, name):
        """Opens a group, or makes it. TypeError if something else is there."""
        if name not in self:
            return self.create_group(name)
        found = self[name]
        if not isinstance(found, Group):
            raise TypeError(f"Incompatible object ({found.__class__.__name__}) already exists")
        return found

    def create_map(self, name, key_dtype, value_dtype):
        """Makes a map: keys and values of these types, found by key."""
        from ._maps import Map

        return Map.create(self, name_text(name), key_dtype, value_dtype)

    # --- the mapping ----------------------------------------------------------------------------

    def _open(self, name):
        try:
            return self._handle.open(name)
        except UnicodeEncodeError:
            raise KeyError(f"Unable to open object ({name!r} is no UTF-8)") from None
        except FileNotFoundError as error:
            raise KeyError(str(error)) from None

    def __getitem__(self, name):
        if isinstance(name, _types.Reference):
            found = self._handle.file.referent(name._kind, name._raw) if name else None
            if found is None:
                raise ValueError("Invalid HDF5 object reference")
            return wrap(*self._with_name(found[0]))
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"Accessing a group is done with bytes or str, not {type(name)}")
        found = self._open(name_text(name))
        if found.file.key != self._handle.file.key:
            return self._linked(found)
        made = wrap(found)
        made._keep = self._keep
        return made

    def _linked(self, found):
        """The object of a handle of another file, which is accessed as this one."""
        from ._files import File
        from ._walk import path_of

        made = wrap(found, path_of(found.file, found.id))
        made._keep = File._of_link(found.file, self.file)
        return made

    def _open_with(self, access, name):
        """The object at a path, of which external links are followed in a way of their own."""
        from ._walk import path_of

        found, keep = access.follow(self, name)
        made = wrap(found) if keep is None else wrap(found, path_of(found.file, found.id))
        made._keep = self._keep if keep is None else keep
        return made

    def _with_name(self, handle):
        """A handle that was found without a path, and a path to it."""
        from ._walk import path_of

        return handle, path_of(self._handle.file, handle.id)

    def get(self, name, default=None, getclass=False, getlink=False, elink_mode=None, elink_locking=None,
            elink_swmr=None):
        """The object of a name, its class, or its link; `default` if there is none.

        Parameters
        ----------
        getclass, getlink : bool
            For the class of the object, the link (HardLink, SoftLink, ExternalLink), or the class of the link.
        elink_mode : {'r', 'r+'}, optional
        elink_locking : bool or 'best-effort', optional
        elink_swmr : bool, optional
            How a file is opened to which an external link leads, if not as this one.
        """
        access = None
        if elink_mode is not None or elink_locking is not None or elink_swmr is not None:
            access = LinkAccess(self.file, elink_mode, elink_swmr, elink_locking)
        if not (getclass or getlink):
            try:
                return self[name] if access is None else self._open_with(access, name)
            except KeyError:
                return default
        if getlink:
            link = self._link(name_text(name))
            if link is None:
                return default
            return type(link) if getclass else link
        if name not in self:
            return default
        try:
            return _class_of(self._open(name_text(name)))
        except KeyError as error:
            raise RuntimeError(f"Can't get the class of an object ({error})") from None

    def _link(self, name):
        parent, last = posixpath.split(name.rstrip("/"))
        try:
            group = self._handle if not parent else self._open(parent)
            link = group.link(last) if isinstance(group, RawGroup) else None
        except KeyError:
            return None
        if link is None:
            return None
        if link[0] == "soft":
            return SoftLink(link[1])
        if link[0] == "external":
            return ExternalLink(link[1], link[2])
        if link[0] == "hard":
            return HardLink()
        raise TypeError("Unknown link type")

    def __setitem__(self, name, obj):
        path = name_text(name)
        if isinstance(obj, ExternalLink):
            if not path:
                raise ValueError("Unable to create external link (no name)")
            try:
                self._set_link(path, obj)
            except OSError as error:
                raise RuntimeError(f"Unable to create external link ({error})") from None
        elif isinstance(obj, (HLObject, SoftLink)):
            self._set_link(path, obj)
        elif isinstance(obj, np.dtype):
            try:
                self._handle.commit(path, self._handle.file.stored_type(_types.datatype_of(obj)))
            except ValueError as error:
                raise KeyError(f"Unable to commit datatype ({error})") from None
        else:
            if not path:
                raise ValueError("Unable to create link (no name)")
            dataset = self.create_dataset(None, data=obj)
            self._set_link(path, dataset)

    def _set_link(self, path, obj):
        parent, last = posixpath.split(path.rstrip("/"))
        group = self._handle
        if parent.strip("/") or path.startswith("/"):
            try:
                group = self.require_group(parent or "/")._handle
            except (KeyError, TypeError, ValueError) as error:
                raise OSError(f"Unable to create link ({error})") from None
        try:
            if isinstance(obj, SoftLink):
                group.link_soft(last, name_text(obj.path))
            elif isinstance(obj, ExternalLink):
                group.link_external(last, obj.filename, name_text(obj.path))
            else:
                if obj._handle.file.key != self._handle.file.key:
                    raise OSError("Unable to create link (interfile hard links are not allowed)")
                group.link_hard(last, obj._handle)
        except ValueError as error:
            raise OSError(f"Unable to create link ({error})") from None

    def __delitem__(self, name):
        try:
            self._handle.unlink(name_text(name))
        except ValueError as error:
            raise KeyError(f"Couldn't delete link ({error})") from None

    def _names(self):
        return self._handle.names(self._handle.tracks_order()[0])

    def __len__(self):
        return self._handle.len()

    def __iter__(self):
        yield from self._names()

    def __reversed__(self):
        yield from reversed(self._names())

    def __contains__(self, name):
        if not self:
            return False
        if isinstance(name, _types.Reference):
            return bool(name)
        if not name:
            return False
        path = name_text(name)
        if not path.strip("/."):
            return True
        # A link that leads nowhere is in the group; what would be below it is not.
        parent, last = posixpath.split(path.rstrip("/"))
        if last in ("", "."):
            return self._leads_to(path)
        try:
            group = self._handle if not parent else self._handle.open(parent)
            return isinstance(group, RawGroup) and group.link(last) is not None
        except (KeyError, OSError, ValueError):
            return False

    def _leads_to(self, path):
        try:
            return self._handle.leads_to(path)
        except UnicodeEncodeError:
            return False

    # --- copying and walking --------------------------------------------------------------------

    def copy(self, source, dest, name=None, shallow=False, expand_soft=False, expand_external=False,
             expand_refs=False, without_attrs=False, *, progress=None):
        """Copies an object, with what is below it, to a path or into a group of this or another file.

        Parameters
        ----------
        progress : callable, optional
            Called as ``progress(count)`` with the bytes of elements that were copied since the last call. An exception
            of it ends the copy at the next dataset; it is not called for copies with another parameter than ``name``.
        """
        from ._copy import copy

        flags = {"shallow": shallow, "expand_soft": expand_soft, "expand_external": expand_external,
                 "expand_refs": expand_refs, "without_attrs": without_attrs}
        copy(self, source, dest, name, flags, progress)

    def move(self, source, dest):
        """Moves a link to another path. The object does not change."""
        if source == dest:
            return
        try:
            self._handle.rename(name_text(source), name_text(dest))
        except KeyError as error:
            raise ValueError(f"Unable to move link ({error})") from None

    def visit(self, func):
        """Calls ``func(name)`` for each object below, until it returns something other than None."""
        from ._walk import walk

        return walk(self, lambda name, _: func(name))

    def visititems(self, func):
        """Calls ``func(name, object)`` for each object below, until it returns something other than None."""
        from ._walk import walk

        return walk(self, func)

    def visit_links(self, func):
        """Calls ``func(name)`` for each link below, until it returns something other than None."""
        from ._walk import walk_links

        return walk_links(self, lambda name, _: func(name))

    def visititems_links(self, func):
        """Calls ``func(name, link)`` for each link below, until it returns something other than None."""
        from ._walk import walk_links

        return walk_links(self, func)

    def follow(self, *, existing=True, timeout=None):
        """Follows the links that the writer adds: an iterator over (path, object)."""
        follower = self._handle.follow(not existing)
        while (path := follower.next(timeout)) is not None:
            yield path, self[path]

    def refresh(self):
        """Takes up what the writer of a live file has published of this group."""
        self._handle.refresh()

    def __repr__(self):
        if not self:
            return "<Closed HDF5 group>"
        name = "(anonymous)" if self.name is None else f'"{self.name}"'
        return f"<HDF5 group {name} ({len(self)} members)>"
