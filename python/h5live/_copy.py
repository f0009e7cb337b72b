"""Copies of objects."""

import posixpath

from ._base import HLObject, name_text
from ._links import ExternalLink, SoftLink


def copy(group, source, dest, name, flags):
    """Copies an object; the parameters are those of `Group.copy`."""
    from ._groups import Group

    source_object = source if isinstance(source, HLObject) else group[source]
    if isinstance(dest, Group):
        if name is None:
            path = source_object.name if isinstance(source, HLObject) else name_text(source)
            name = posixpath.basename(path.rstrip("/"))
        target, path = dest, name_text(name)
    elif isinstance(dest, HLObject):
        raise TypeError("Destination must be path or Group object")
    else:
        target, path = group, name_text(dest)
    if path in target:
        raise RuntimeError("Unable to copy object (destination object already exists)")
    parent = posixpath.dirname(path).strip("/")
    if parent:
        target.require_group(posixpath.dirname(path))
    if any(flags.values()) and isinstance(source_object, Group):
        _copy_group(source_object, target.create_group(path), flags, flags["shallow"])
    else:
        target._handle.copy_from(source_object._handle, path)
        if flags["without_attrs"]:
            target[path].attrs.clear()


def _copy_group(source, target, flags, is_shallow):
    from ._groups import Group

    if not flags["without_attrs"]:
        for name in source.attrs:
            _copy_attribute(source, target, name)
    for name in source:
        link = source.get(name, getlink=True)
        expand = flags["expand_soft"] and isinstance(link, SoftLink) or \
            flags["expand_external"] and isinstance(link, ExternalLink)
        if isinstance(link, (SoftLink, ExternalLink)) and not (expand and name in source):
            target[name] = link
            continue
        found = source[name]
        if isinstance(found, Group):
            made = target.create_group(name)
            if is_shallow:
                if not flags["without_attrs"]:
                    for attribute in found.attrs:
                        _copy_attribute(found, made, attribute)
            else:
                _copy_group(found, made, flags, False)
            continue
        target._handle.copy_from(found._handle, name)
        if flags["without_attrs"]:
            target[name].attrs.clear()
    if flags["expand_refs"]:
        _copy_references(source, target)


def _copy_attribute(source, target, name):
    from ._base import Empty
    from ._types import dtype_of

    datatype, shape, _, _ = source.attrs._found(name)
    dtype = dtype_of(datatype.spec())
    value = source.attrs[name]
    target.attrs.create(name, Empty(dtype) if shape is None else value, dtype=dtype)


def _copy_references(source, target):
    """Copies the objects to which references in datasets of a group lead, and makes the copies refer to the copies."""
    import numpy as np

    from ._datasets import Dataset
    from ._types import check_ref_dtype

    copied = {}
    for name in source:
        dataset = source.get(name)
        if not isinstance(dataset, Dataset) or check_ref_dtype(dataset.dtype) is None:
            continue
        references = np.atleast_1d(dataset[()])
        out = references.copy()
        for at, reference in enumerate(references.flat):
            if not reference:
                continue
            found = source[reference]
            inner = (found.name or "").rsplit("/", 1)[-1]
            if found not in copied:
                if inner not in target:
                    target._handle.copy_from(found._handle, inner)
                copied[found] = target[inner]
            out.flat[at] = copied[found].ref
        target[name][...] = out.reshape(dataset.shape)
