"""Copies of objects."""

import posixpath

from ._base import HLObject, name_text
from ._links import ExternalLink, SoftLink


def copy(group, source, dest, name, flags, progress=None):
    """Copies an object; the parameters are those of `Group.copy`."""
    from ._groups import Group

    if isinstance(dest, Group):
        if name is None:
            path = source.name if isinstance(source, HLObject) else name_text(source)
            name = posixpath.basename(path.rstrip("/"))
        target, path = dest, name_text(name)
    elif isinstance(dest, HLObject):
        raise TypeError("Destination must be path or Group object")
    else:
        target, path = group, name_text(dest)
    if path in target:
        raise RuntimeError("Unable to copy object (destination object already exists)")
    if target.file.mode == "r":
        raise RuntimeError("Unable to copy object (the file is open for reading only)")
    try:
        source_object = source if isinstance(source, HLObject) else group[source]
    except KeyError as error:
        raise RuntimeError(f"Unable to copy object ({error})") from None
    # Nothing leads to the copy before it is whole: a group that is copied below itself is not copied with its copy.
    try:
        if any(flags.values()) and isinstance(source_object, Group):
            made = target.create_group(None)
            _GroupCopy(flags).run(source_object, made, flags["shallow"])
            try:
                target._set_link(path, made)
            except OSError as error:
                raise RuntimeError(f"Unable to copy object ({error})") from None
        else:
            target._handle.copy_from(source_object._handle, path, progress)
            if flags["without_attrs"]:
                target[path].attrs.clear()
    except (TypeError, ValueError, KeyError) as error:
        raise RuntimeError(f"Unable to copy object ({error})") from None
    if flags["expand_refs"]:
        _expand_references(source_object, target[path])


class _GroupCopy:
    """A copy of a group as the flags of `Group.copy` want it. What several links lead to is copied once."""

    def __init__(self, flags):
        self._flags = flags
        self._copies = {}

    def run(self, source, target, is_shallow):
        self._copies[source._key()] = target
        self._copy_attributes(source, target)
        for name in source:
            link = source.get(name, getlink=True)
            expand = self._flags["expand_soft"] and isinstance(link, SoftLink) or \
                self._flags["expand_external"] and isinstance(link, ExternalLink)
            if isinstance(link, (SoftLink, ExternalLink)) and not (expand and source.get(name) is not None):
                target[name] = link
                continue
            self._copy_member(source[name], target, name, is_shallow)

    def _copy_member(self, found, target, name, is_shallow):
        from ._groups import Group

        known = self._copies.get(found._key())
        if known is not None:
            target[name] = known
        elif not isinstance(found, Group):
            target._handle.copy_from(found._handle, name, None)
            if self._flags["without_attrs"]:
                target[name].attrs.clear()
            self._copies[found._key()] = target[name]
        elif is_shallow:
            made = self._copies[found._key()] = target.create_group(name)
            self._copy_attributes(found, made)
        else:
            self.run(found, target.create_group(name), False)

    def _copy_attributes(self, source, target):
        if not self._flags["without_attrs"]:
            for name in source.attrs:
                _copy_attribute(source, target, name)


def _copy_attribute(source, target, name):
    from ._base import Empty
    from ._types import dtype_of

    datatype, shape, _, _ = source.attrs._found(name)
    dtype = dtype_of(datatype.spec())
    value = source.attrs[name]
    target.attrs.create(name, Empty(dtype) if shape is None else value, dtype=dtype)


def _expand_references(source, copied):
    """Copies what references of a copied object, and of all below it, lead to, and makes the copies refer to copies.

    Nothing but references leads to a copy of what was not copied with the object.
    """
    from ._groups import Group

    copies, waiting = {}, []

    def note(original, copy):
        below = [(original, copy)]
        if isinstance(original, Group):
            original.visititems(lambda name, obj: below.append((obj, copy.get(name))))
        for pair in below:
            if pair[1] is not None and pair[0]._key() not in copies:
                copies[pair[0]._key()] = pair[1]
                waiting.append(pair)

    def moved(reference):
        if not reference:
            return reference
        original = source.file[reference]
        if original._key() not in copies:
            place = copied.file.create_group(None)
            place._handle.copy_from(original._handle, "copy", None)
            note(original, place["copy"])
        return copies[original._key()].ref

    note(source, copied)
    while waiting:
        _move_references(*waiting.pop(), moved)


def _move_references(original, copy, moved):
    """Makes the references of a copy what `moved` makes of those of the original."""
    import numpy as np

    from ._datasets import Dataset
    from ._types import Reference, check_ref_dtype

    def array_of(value):
        out = np.empty(np.shape(value), object)
        for at in np.ndindex(*out.shape):
            out[at] = moved(value[at] if out.shape else value)
        return out

    for name in copy.attrs:
        dtype = original.attrs.get_id(name).dtype
        if check_ref_dtype(dtype) is Reference and original.attrs.get_id(name).shape is not None:
            copy.attrs.create(name, array_of(original.attrs[name]), dtype=dtype)
    if isinstance(original, Dataset) and check_ref_dtype(original.dtype) is Reference and original.size:
        copy[...] = array_of(original[()])
