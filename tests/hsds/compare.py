"""Compares two files with h5py or h5pyd: groups, links, types, shapes, values, attributes.

usage: compare.py ONE OTHER [--without NAME,..]
A name that begins with hdf5:// is a domain of the service. Differences are printed; the exit code says whether there are
any. Names that are left out are paths of objects, PATH@ATTRIBUTE, or `chunks`: the shapes of all chunks.
"""

import sys

import numpy as np


def opened(name):
    if name.startswith("hdf5://"):
        import h5pyd

        return h5pyd.File(name.removeprefix("hdf5:/"), "r"), h5pyd
    import h5py

    return h5py.File(name, "r"), h5py


class Comparison:
    def __init__(self, one, other, without):
        self.libraries = (one[1], other[1])
        self.without, self.differences, self.compared, self.seen = without, [], 0, set()
        self.group("/", one[0], other[0])

    def differ(self, path, what, *values):
        self.differences.append(f"{path}: {what}: {' | '.join(str(value) for value in values)}")

    def equal(self, path, what, one, other):
        self.compared += 1
        if one != other:
            self.differ(path, what, one, other)

    def kind(self, item, library):
        if isinstance(item, library.Group):
            return "group"
        return "dataset" if isinstance(item, library.Dataset) else "datatype"

    def attempt(self, path, what, act):
        try:
            act()
        except Exception as error:  # a defect of either library is a difference
            self.differ(path, what, type(error).__name__, error)

    def link(self, group, name, library):
        link = group.get(name, getlink=True)
        if isinstance(link, library.SoftLink):
            return ("soft", link.path)
        return ("external", link.filename, link.path) if isinstance(link, library.ExternalLink) else ("hard",)

    def group(self, path, one, other):
        self.attributes(path, one, other)
        self.equal(path, "links", sorted(one), sorted(other))
        for name in sorted(set(one) & set(other)):
            below = path + name
            if below in self.without:
                continue
            links = [self.link(group, name, library) for group, library in zip((one, other), self.libraries)]
            self.equal(below, "link", *links)
            if links[0][0] == "hard":
                self.attempt(below, "object", lambda: self.object(below, one[name], other[name]))

    def object(self, path, one, other):
        kinds = [self.kind(item, library) for item, library in zip((one, other), self.libraries)]
        self.equal(path, "kind", *kinds)
        if kinds == ["group", "group"]:
            return self.group(path + "/", one, other)
        self.attributes(path, one, other)
        self.equal(path, "type", self.type(one.dtype), self.type(other.dtype))
        if kinds == ["dataset", "dataset"]:
            self.equal(path, "shape", (one.shape, one.maxshape), (other.shape, other.maxshape))
            if "chunks" not in self.without:
                self.equal(path, "chunks", one.chunks, other.chunks)
            self.values(path, [self.resolved(item, library) for item, library in zip((one, other), self.libraries)])

    def type(self, dtype):
        """A type as text: what numpy adds for a library does not count."""
        if dtype.names:
            return [(name, self.type(dtype[name])) for name in dtype.names]
        if dtype.shape:
            return (self.type(dtype.base), dtype.shape)
        for key in ("vlen", "enum", "ref"):
            if dtype.metadata and key in dtype.metadata:
                value = dtype.metadata[key]
                value = "text" if value in (str, bytes) else getattr(value, "__name__", value)
                value = sorted(value.items()) if isinstance(value, dict) else value
                return (key, str(value))
        return dtype.str

    def resolved(self, item, library):
        value = item[()]
        if item.dtype.metadata and "ref" in item.dtype.metadata:
            file = item.file
            is_region = item.dtype.metadata["ref"].__name__ == "RegionReference"
            return [self.target(file, reference, is_region, library) for reference in np.ravel(value)]
        return value

    def target(self, file, reference, is_region, library):
        """What a reference leads to: the kind and shape of the object, or the shapes of the dataset and the region."""
        if not reference:
            return None
        if is_region:
            return (tuple(file.regionref.shape(reference)), tuple(file.regionref.selection(reference)))
        target = file[reference]
        return (self.kind(target, library), getattr(target, "shape", None))

    def plain(self, value):
        if isinstance(value, np.ndarray) and value.dtype.names is None and value.dtype.kind != "O":
            return (value.shape, value.astype(value.dtype.newbyteorder("<")).tobytes())
        if isinstance(value, np.ndarray):
            return (value.shape, [self.plain(part) for part in value.ravel()])
        if isinstance(value, np.void) and value.dtype.names:
            return [self.plain(value[name]) for name in value.dtype.names]
        if isinstance(value, (list, tuple)):
            return [self.plain(part) for part in value]
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, np.generic) and not isinstance(value, (np.bytes_, np.str_)):
            return value.astype(value.dtype.newbyteorder("<")).tobytes()
        return bytes(value) if isinstance(value, bytes) else value

    def values(self, path, values):
        plain = [self.plain(value) for value in values]
        self.compared += 1
        if plain[0] != plain[1]:
            self.differ(path, "values", *values)

    def attributes(self, path, one, other):
        self.equal(path, "attributes", sorted(one.attrs), sorted(other.attrs))
        for name in sorted(set(one.attrs) & set(other.attrs)):
            at = f"{path}@{name}"
            if at not in self.without:
                self.attempt(at, "attribute", lambda: self.values(at, [one.attrs[name], other.attrs[name]]))


def main(one, other, *rest):
    without = set(rest[1].split(",")) if rest[:1] == ("--without",) else set()
    comparison = Comparison(opened(one), opened(other), without)
    print(*comparison.differences, sep="\n")
    print(f"{comparison.compared} things compared, {len(comparison.differences)} differ")
    sys.exit(bool(comparison.differences))


main(*sys.argv[1:])
