"""The operations of random sequences, with h5live or with h5py, and what both tell of their values.

    python sequence_operations.py {h5live,h5py}

Runs the sequences that come in, one in each line, and answers each in a line.
"""

import json
import os
import sys
import tempfile
import warnings

NAMES = ["a", "b", "g", "g/a", "g/h/c", "soft"]
DTYPES = ["i1", ">i4", "u8", "f2", "f4", ">f8", "c8", "bool", "S3", "vlen str", "vlen i4", "enum", "(2,)i2", "pair"]


def dtype_of(h5, name):
    import numpy as np

    special = {"vlen str": h5.string_dtype, "vlen i4": lambda: h5.vlen_dtype(np.int32),
               "enum": lambda: h5.enum_dtype({"OFF": 0, "ON": 1}, basetype="u1"),
               "pair": lambda: np.dtype([("x", "i4"), ("y", "f8")])}
    return special[name]() if name in special else np.dtype(name)


def values_for(dtype, shape, start):
    """Values of a kind for a dtype: the same on both sides."""
    import numpy as np

    count = int(np.prod(shape, dtype=int))
    numbers = [(start + n) % 100 for n in range(count)]
    if dtype.kind == "O":
        out = np.empty(shape, object)
        vlen = (dtype.metadata or {}).get("vlen")
        for at, n in zip(np.ndindex(*shape), numbers):
            out[at] = f"t{n}" if vlen is str else np.arange(n % 4, dtype="i4")
        return out.astype(dtype)
    if dtype.names:
        return np.array([(n, n / 2) for n in numbers], dtype=dtype).reshape(shape)
    if dtype.kind == "S":
        return np.array([f"{n}".encode() for n in numbers], dtype=dtype).reshape(shape)
    if dtype.subdtype:
        base, dims = dtype.subdtype
        return np.resize(np.array(numbers or [0], base), tuple(shape) + dims)
    if dtype.metadata and "enum" in dtype.metadata:
        return (np.array(numbers) % 2).astype("u1").reshape(shape)
    return np.array(numbers).astype(dtype).reshape(shape)


def key_of(h5, parts):
    """A key in brackets from what JSON can hold."""
    import numpy as np

    made = []
    for part in parts:
        if part == "...":
            made.append(Ellipsis)
        elif isinstance(part, dict) and "mask" in part:
            made.append(np.array(part["mask"], dtype=bool))
        elif isinstance(part, dict) and "count" in part:
            made.append(h5.MultiBlockSlice(**part))
        elif isinstance(part, dict):
            made.append(slice(part["start"], part["stop"], part["step"]))
        else:
            made.append(part)
    return tuple(made)


def shown(value):
    """What both sides tell of a value."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, str(value.dtype), list(value.shape), listed(value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, float, slice)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return [[shown(key), shown(item)] for key, item in value.items()]
    if isinstance(value, type):
        return value.__name__
    return [type(value).__name__, getattr(value, "name", None), shown(getattr(value, "shape", None))]


def listed(array):
    import numpy as np

    if array.dtype.kind == "O":
        return [listed(item) if isinstance(item, np.ndarray) else repr(item) for item in np.asarray(array).reshape(-1)]
    return repr(array.tolist())


def is_number(dtype):
    return dtype.kind in "iuf" and dtype.metadata is None


class Objects:
    """Operations on groups and links."""

    def group(self, name, required):
        return self.file.require_group(name) if required else self.file.create_group(name)

    def delete(self, name):
        del self.file[name]
        return sorted(self.file)

    def move(self, name, to):
        if to.startswith(name + "/"):
            # libhdf5 moves a group below itself, where nothing leads to it any more; h5live refuses.
            raise LookupError
        self.file.move(name, to)
        return sorted(self.file)

    def copy(self, name, to, flags):
        if self.file.mode == "r":
            # libhdf5 copies all the same, and cannot close the file then.
            raise PermissionError
        parts = to.split("/")
        if any(isinstance(self.file.get("/".join(parts[:n]), getlink=True), self.h5.SoftLink) for n in range(1, len(parts))):
            # libhdf5 does not copy to a path with a soft link in it; h5live does.
            raise LookupError
        self.file.copy(name, to, **{flag: True for flag in flags})
        return self.describe(to)

    def copy_into(self, name, group, to):
        if self.file.mode == "r":
            raise PermissionError
        target = self.file[group]
        if not isinstance(target, self.h5.Group):
            raise LookupError
        self.file.copy(self.file[name], target, name=to)
        return self.walk()

    def soft(self, name, to):
        self.file[name] = self.h5.SoftLink("/" + to)
        return self.file.get(name, getlink=True).path

    def hard(self, name, to):
        self.file[name] = self.file[to]
        return self.file[name] == self.file[to]

    def external(self, name, file, to):
        if file == "other.h5":
            with self.h5.File(os.path.join(os.path.dirname(self.path), file), "w") as other:
                other["a"] = [1, 2]
        self.file[name] = self.h5.ExternalLink(file, "/" + to)
        found = self.file.get(name, getlink=True)
        return [found.filename, found.path]

    def get(self, name, getclass, getlink):
        found = self.file.get(name, "none", getclass=getclass, getlink=getlink)
        return [found if isinstance(found, str) else type(found).__name__, found if getclass else None]

    def walk(self):
        found = []
        self.file.visititems(lambda name, obj: found.append([name, type(obj).__name__]))
        self.file.visititems_links(lambda name, link: found.append([name, type(link).__name__]))
        return [name in self.file for name in NAMES] + found

    def names(self, name):
        group = self.file[name]
        if not isinstance(group, self.h5.Group):
            raise LookupError
        return [list(group), list(reversed(group)), len(group), [type(item).__name__ for item in group.values()],
                group.parent.name, group.file == self.file]

    def parent(self, name):
        found = self.file[name]
        return [found.parent.name, found.name, found == self.file[name], bool(found)]

    def describe(self, name):
        found = self.file[name]
        if not hasattr(found, "maxshape"):
            return [type(found).__name__, found.name, len(found) if hasattr(found, "keys") else None]
        return [str(found.dtype), found.shape, found.maxshape, found.chunks, found.compression, found.compression_opts,
                found.shuffle, found.fletcher32, found.scaleoffset, shown(found.fillvalue), found.size, found.ndim,
                found.nbytes, found.is_virtual, found.is_scale, len(found) if found.shape else None]

    def refer(self, name, to):
        """A reference in an attribute, and what it leads to."""
        if self.file.mode == "r" or self.file[to].file != self.file:
            # h5live makes references only where it may write; those of another file lead anywhere.
            raise LookupError
        self.file.attrs.create(name, self.file[to].ref, dtype=self.h5.ref_dtype)
        found = self.file[self.file.attrs[name]]
        return [found.name, bool(self.file.attrs[name]), str(self.file.attrs.get_id(name).dtype)]

    def follow(self, name):
        reference = self.file.attrs[name]
        found = self.file[reference]
        return [bool(reference), found == self.file.get(found.name) if found.name else None]


class Values:
    """Operations on datasets."""

    def create(self, name, dtype, shape, options, start):
        dtype = dtype_of(self.h5, dtype)
        options = dict(options)
        if options.pop("chunked", False):
            options.update(maxshape=tuple(None for _ in shape), chunks=tuple(max(1, n) for n in shape))
        else:
            options = {key: value for key, value in options.items() if key == "fillvalue"}
        if dtype.kind not in "iuf":
            options = {key: value for key, value in options.items() if key in ("maxshape", "chunks")}
        # h5py does not make datasets of arrays from data.
        if start is None or dtype.subdtype:
            return self.file.create_dataset(name, tuple(shape), dtype, **options)
        return self.file.create_dataset(name, tuple(shape), dtype, data=values_for(dtype, tuple(shape), start), **options)

    def require(self, name, dtype, shape, exact):
        return self.file.require_dataset(name, tuple(shape), dtype_of(self.h5, dtype), exact=exact)

    def create_like(self, name, other):
        if self.file[other].dtype.subdtype:
            # h5py takes no fill value for them, and gives one here.
            raise LookupError
        self.file.create_dataset_like(name, self.file[other])
        return self.describe(name)

    def create_empty(self, name, dtype):
        self.file[name] = self.h5.Empty(dtype)
        return [self.file[name].shape, shown(self.file[name][()])]

    def commit(self, name, dtype):
        self.file[name] = dtype_of(self.h5, dtype)
        return [type(self.file[name]).__name__, str(self.file[name].dtype)]

    def create_virtual(self, name, sources):
        """A virtual dataset of one row for each source."""
        for source in sources:
            found = self.file.get(source) if source in self.file or "/" not in source else self.file[source]
            if name.startswith(source) or found is not None and (not hasattr(found, "maxshape") or found.is_virtual or found.shape != (3,)):
                # h5py does not end, or crashes, or reads less than there is.
                raise LookupError
        layout = self.h5.VirtualLayout((len(sources), 3), "f8", maxshape=(None, 3))
        for n, source in enumerate(sources):
            layout[n] = self.h5.VirtualSource(".", "/" + source, shape=(3,))
        made = self.file.create_virtual_dataset(name, layout, fillvalue=-1)
        return [shown(made[()]), [list(source)[1:3] for source in made.virtual_sources()], made.maxshape]

    def read(self, name, key):
        return self.file[name][key_of(self.h5, key)]

    def write(self, name, key, start):
        dataset = self.file[name]
        if len(key) > 1 and any(isinstance(part, dict) and "mask" in part for part in key):
            # h5py takes no mask of one dimension with an ellipsis.
            raise LookupError
        key = key_of(self.h5, key)
        import numpy as np

        if any(isinstance(part, self.h5.MultiBlockSlice) for part in key):
            shape = dataset[key].shape
            if np.prod(shape) == 1 and self.h5.check_vlen_dtype(dataset.dtype):
                # h5py takes the one element for the array.
                raise LookupError
        else:
            shape = np.zeros(dataset.shape, bool)[key].shape
        dataset[key] = values_for(dataset.dtype, shape, start)
        return dataset[()]

    def write_one(self, name, key, value):
        """One value in all elements of a selection."""
        is_fancy = any(isinstance(part, list) or isinstance(part, dict) and part.keys() & {"mask", "count"} for part in key)
        if is_fancy and (self.file[name].chunks is None and self.file[name].ndim > 1 or len(key) > 1):
            # h5py does not broadcast there, and takes no mask of one dimension with an ellipsis.
            raise LookupError
        self.file[name][key_of(self.h5, key)] = value
        return self.file[name][()]

    def fill(self, name, value):
        self.file[name][...] = value
        return self.file[name][()]

    def resize(self, name, shape):
        self.file[name].resize(tuple(shape))
        return self.file[name].shape

    def resize_axis(self, name, size, axis):
        self.file[name].resize(size, axis=axis)
        return self.file[name][()]

    def cast(self, name, dtype, key):
        dataset = self.file[name]
        if not is_number(dataset.dtype):
            # What cannot be converted is OSError in h5py, and TypeError in h5live.
            raise LookupError
        return dataset.astype(dtype)[key_of(self.h5, key)]

    def texts(self, name, key):
        view = self.file[name].asstr()
        return [view[key_of(self.h5, key)], len(view)]

    def read_fields(self, name, fields, key):
        view = self.file[name].fields(fields)
        return [view[key_of(self.h5, key)], self.file[name][(*([fields] if isinstance(fields, str) else fields), *key_of(self.h5, key))]]

    def write_field(self, name, field, key, value):
        self.file[name][(field, *key_of(self.h5, key))] = value
        return self.file[name][()]

    def direct(self, name, dtype, source, into):
        import numpy as np

        dataset = self.file[name]
        if not is_number(dataset.dtype) or not dataset.shape:
            # As `cast`.
            raise LookupError
        array = np.full(dataset.shape, 7, dtype)
        dataset.read_direct(array, key_of(self.h5, source), key_of(self.h5, into))
        return array

    def write_direct(self, name, dtype, source, into):
        import numpy as np

        dataset = self.file[name]
        if not is_number(dataset.dtype) or not dataset.shape:
            raise LookupError
        dataset.write_direct(np.ones(dataset.shape, dtype), key_of(self.h5, source), key_of(self.h5, into))
        return dataset[()]

    def chunks(self, name, key):
        return list(self.file[name].iter_chunks(None if key is None else key_of(self.h5, key)))

    def rows(self, name):
        return [shown(row) for row in self.file[name]]

    def region(self, name, key):
        if self.file[name].file != self.file or self.file.mode == "r" or 0 in (self.file[name].shape or ()):
            # As `refer`. Of no elements, h5py keeps whether all of them are meant.
            raise LookupError
        reference = self.file[name].regionref[key_of(self.h5, key)]
        regions = self.file[name].regionref
        return [regions.shape(reference), regions.selection(reference), self.file[name][reference], self.file[reference].name]

    def as_array(self, name, dtype):
        import numpy as np

        if not is_number(self.file[name].dtype):
            raise LookupError
        return np.asarray(self.file[name], dtype)


class Attributes:
    """Operations on attributes, and on dimensions."""

    def set_attribute(self, name, key, value):
        self.file[name].attrs[key] = value
        return self.file[name].attrs[key]

    def create_attribute(self, name, key, dtype, shape, start):
        attrs, dtype = self.file[name].attrs, dtype_of(self.h5, dtype)
        shape = tuple(shape)
        attrs.create(key, values_for(dtype, shape, start), dtype=dtype, shape=shape + dtype.shape)
        return [attrs[key], str(attrs.get_id(key).dtype), attrs.get_id(key).shape]

    def create_empty_attribute(self, name, key, dtype):
        self.file[name].attrs[key] = self.h5.Empty(dtype)
        return self.file[name].attrs[key]

    def modify_attribute(self, name, key, value):
        attrs = self.file[name].attrs
        if key in attrs and attrs.get_id(key).dtype.kind not in "iuf":
            # As `cast`.
            raise LookupError
        attrs.modify(key, value)
        return attrs[key]

    def get_attribute(self, name, key):
        return self.file[name].attrs[key]

    def list_attributes(self, name):
        attrs = self.file[name].attrs
        return [list(attrs), len(attrs), "u" in attrs, attrs.get("v", "none")]

    def delete_attribute(self, name, key):
        del self.file[name].attrs[key]
        return sorted(self.file[name].attrs)

    def label(self, name, axis, text):
        dims = self.file[name].dims
        dims[axis].label = text
        return [dims[axis].label, len(dims), [dim.label for dim in dims]]

    def make_scale(self, name, text):
        self.file[name].make_scale(text)
        return [self.file[name].is_scale, sorted(self.file[name].attrs)]

    def attach(self, name, axis, scale):
        self.file[name].dims[axis].attach_scale(self.file[scale])
        return self.scales(name)

    def detach(self, name, axis, scale):
        self.file[name].dims[axis].detach_scale(self.file[scale])
        return self.scales(name)

    def scales(self, name):
        return [[len(dim), dim.keys(), [found.name for found in dim.values()]] for dim in self.file[name].dims]


class Run(Objects, Values, Attributes):
    """A file, and the operations on it."""

    def __init__(self, h5, path):
        self.h5, self.path = h5, path
        self.file = h5.File(path, "w")

    def close(self):
        self.file.close()

    def reopen(self, mode):
        self.file.close()
        try:
            self.file = self.h5.File(self.path, mode)
        except OSError:
            self.file = self.h5.File(self.path, "a")
            raise
        return self.file.mode

    def flush(self):
        self.file.flush()
        return [self.file.mode, bool(self.file)]


def run_sequence(h5, operations, folder):
    """What each operation returns, or the types of its error."""
    handle, path = tempfile.mkstemp(suffix=".h5", dir=folder)
    os.close(handle)
    run, found = Run(h5, path), []
    try:
        for name, *arguments in operations:
            try:
                found.append(["value", shown(getattr(run, name)(*arguments))])
            except Exception as error:
                found.append(["error", [kind.__name__ for kind in type(error).__mro__], str(error)[:200]])
    finally:
        run.close()
        os.unlink(path)
    return found


def serve(module):
    """Runs sequences, one in each line that comes in, and answers each in a line."""
    warnings.simplefilter("ignore")
    if module == "h5live":
        import h5live.h5py as h5
    else:
        import h5py as h5
    with tempfile.TemporaryDirectory(prefix="h5live-sequences-") as folder:
        for line in sys.stdin:
            try:
                answer = run_sequence(h5, json.loads(line), folder)
            except Exception as error:
                answer = [["the run itself failed", repr(error)]]
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
