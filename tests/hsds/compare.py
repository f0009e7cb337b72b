"""Compares two files with h5py or h5pyd: groups, links, types, shapes, values, attributes.

usage: compare.py ONE OTHER [--without NAME,..]
A name that begins with hdf5:// is a domain of the service. Differences are printed; the exit code says whether there are
any. Names that are left out are paths of objects, PATH@ATTRIBUTE, or `chunks`: the shapes of all chunks. What the library
cannot read in ONE is not compared.
"""

import re
import sys

import numpy as np


def opened(name):
    if name.startswith("hdf5://"):
        import h5pyd

        return h5pyd.File(name.removeprefix("hdf5:/"), "r"), h5pyd
    import h5py

    return h5py.File(name, "r"), h5py


# How h5pyd gives references to objects in arrays, records and attributes.
IDENTITY = re.compile(rb"[gdt]-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{6}-[0-9a-f]{6}")
IDENTITY_BYTES = 48


class Comparison:
    """Two files, each with its library. What differs is in `differences`."""

    def __init__(self, one, other, without=()):
        self.sides = (one, other)
        self.without, self.differences, self.compared, self.unread, self.seen = without, [], 0, 0, {}
        self.group("/", one[0], other[0])

    def differ(self, path, what, *values):
        self.differences.append(f"{path}: {what}: {' | '.join(str(value) for value in values)}")

    def equal(self, path, what, one, other):
        self.compared += 1
        if one != other:
            self.differ(path, what, one, other)

    def both(self, path, what, read, items):
        """Compares what `read(item, file, library)` gives for the items of both sides."""
        try:
            one = read(items[0], *self.sides[0])
        except Exception:  # there is nothing to compare with
            self.unread += 1
            return
        try:
            other = read(items[1], *self.sides[1])
        except Exception as error:  # a defect of the library is a difference
            self.differ(path, what, type(error).__name__, error)
            return
        self.equal(path, what, one, other)

    def group(self, path, one, other):
        self.attributes(path, one, other)
        self.both(path, "links", lambda group, *_: sorted(group), (one, other))
        for name in sorted(set(one) & set(other)):
            below = path + name
            if below in self.without:
                continue
            self.both(below, "link", lambda group, _, library: link(group, name, library), (one, other))
            if link(one, name, self.sides[0][1]) == ("hard",):
                self.object(below, name, (one, other))

    def object(self, path, name, groups):
        self.both(path, "kind", lambda group, _, library: kind(group[name], library), groups)
        try:
            one, other = (group[name] for group in groups)
        except Exception:
            return
        kinds = [kind(item, library) for item, (_, library) in zip((one, other), self.sides)]
        if kinds[0] != kinds[1]:
            return
        if one.id in self.seen:
            return self.equal(path, "object", self.seen[one.id], identity(other))
        self.seen[one.id] = identity(other)
        if kinds[0] == "group":
            return self.group(path + "/", one, other)
        self.attributes(path, one, other)
        self.both(path, "type", lambda item, *_: type_text(item.dtype), (one, other))
        if kinds[0] == "dataset":
            self.both(path, "shape", lambda item, *_: (item.shape, item.maxshape), (one, other))
            if "chunks" not in self.without:
                self.both(path, "chunks", lambda item, *_: item.chunks, (one, other))
            self.both(path, "fill value", lambda item, *side: plain(item.fillvalue, *side), (one, other))
            self.both(path, "values", lambda item, *side: plain(item[()], *side), (one, other))

    def attributes(self, path, one, other):
        self.both(path, "attributes", lambda item, *_: sorted(item.attrs), (one, other))
        for name in sorted(set(one.attrs) & set(other.attrs)):
            at = f"{path}@{name}"
            if at not in self.without:
                self.both(at, "attribute", lambda item, *side: plain(item.attrs[name], *side), (one, other))


def identity(item):
    return getattr(item.id, "uuid", item.id)


def kind(item, library):
    if isinstance(item, library.Group):
        return "group"
    return "dataset" if isinstance(item, library.Dataset) else "datatype"


def link(group, name, library):
    link = group.get(name, getlink=True)
    if isinstance(link, library.SoftLink):
        return ("soft", link.path)
    return ("external", link.filename, link.path) if isinstance(link, library.ExternalLink) else ("hard",)


def type_text(dtype):
    """A type as text: what numpy adds for a library does not count. A complex number is the compound that it is in a file,
    and an array of arrays is one array."""
    if dtype.kind == "c":
        dtype = parts_of_complex(dtype)
    if dtype.names:
        return [(name, type_text(dtype[name])) for name in dtype.names]
    shape = ()
    while dtype.shape:  # arrays of arrays are one
        dtype, shape = dtype.base, shape + dtype.shape
    if shape:
        return (type_text(dtype), shape)
    for key in ("vlen", "enum", "ref"):
        if dtype.metadata and key in dtype.metadata:
            value = dtype.metadata[key]
            value = "text" if value in (str, bytes) else getattr(value, "__name__", value)
            value = type_text(value) if isinstance(value, np.dtype) else value
            value = sorted(value.items()) if isinstance(value, dict) else value
            return (key, str(value))
    return dtype.str


def parts_of_complex(dtype):
    part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
    return np.dtype([("r", part), ("i", part)])


def target(file, reference, library):
    """What a reference leads to: the kind and shape of the object, or the shapes of the dataset and the region."""
    if not reference:
        return b""
    if isinstance(reference, library.RegionReference):
        return (tuple(file.regionref.shape(reference)), tuple(file.regionref.selection(reference)))
    item = file[reference]
    return (kind(item, library), getattr(item, "shape", None))


def plain(value, file, library):
    """A value as both libraries give it: bytes, and lists of such. Where there is none, they have `None`, 0, or nothing."""
    if value is None or (type(value) is int and value == 0):
        return b""
    if isinstance(value, library.Empty):
        return ("empty", type_text(value.dtype))
    if isinstance(value, (library.Reference, library.RegionReference)):
        return target(file, value, library)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "c":
        value = value.view(parts_of_complex(value.dtype))
        return plain(value if value.shape else value[()], file, library)
    if isinstance(value, np.ndarray):
        are_objects = value.dtype.kind == "O" or value.dtype.str == f"|S{IDENTITY_BYTES}"
        if value.dtype.names is None and not are_objects:
            return (value.shape, little_endian(value).tobytes())
        return (value.shape, [plain(part, file, library) for part in value.ravel()])
    if isinstance(value, np.void) and value.dtype.names:
        return [plain(value[name], file, library) for name in value.dtype.names]
    if isinstance(value, (list, tuple)):
        return [plain(part, file, library) for part in value]
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, np.generic) and not isinstance(value, (np.bytes_, np.str_)):
        return little_endian(value).tobytes()
    if isinstance(value, bytes) and IDENTITY.fullmatch(value):
        return target(file, value, library)
    return bytes(value) if isinstance(value, bytes) else value


def little_endian(value):
    return value.astype(value.dtype.newbyteorder("<"))


def main(one, other, *rest):
    without = set(rest[1].split(",")) if rest[:1] == ("--without",) else set()
    comparison = Comparison(opened(one), opened(other), without)
    print(*comparison.differences, sep="\n")
    print(f"{comparison.compared} things compared, {len(comparison.differences)} differ")
    sys.exit(bool(comparison.differences))


if __name__ == "__main__":
    main(*sys.argv[1:])
