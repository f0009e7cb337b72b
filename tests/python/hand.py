"""The hand of h5py in tests/interop_model: changes files as it is told, a line for each step.

usage: hand.py    (steps on standard input; each is answered with a line: "ok", or "failed" and why)
"""
import sys
import zlib

import h5py
import numpy

KINDS = {
    "i4": numpy.dtype("<i4"),
    "f8": numpy.dtype("<f8"),
    "s8": numpy.dtype("S8"),
    "text": h5py.string_dtype(),
    "pair": numpy.dtype([("a", "<i2"), ("b", "<f4")]),
}

FILTERS = {"none": {}, "gzip": {"compression": "gzip", "compression_opts": 1}, "shuffle": {"shuffle": True}}


def value(kind, number):
    """The value that stands for a number, as tests/interop_model/values.rs has it."""
    return {
        "i4": lambda: number,
        "f8": lambda: number / 8,
        "s8": lambda: f"v{number}".encode(),
        "text": lambda: "x" * (number % 20) + str(number),
        "pair": lambda: (number % 1000, number / 4),
    }[kind]()


def values(kind, seed, count):
    made = numpy.empty(count, KINDS[kind])
    for i in range(count):
        made[i] = value(kind, seed * 31 + i)
    return made


def shape(text):
    return tuple(int(n) if n != "-" else None for n in text.split("x")) if text != "." else ()


def as_text(item):
    if isinstance(item, bytes):
        return item.decode()
    if isinstance(item, numpy.void):
        return "(" + ",".join(as_text(field) for field in item) + ")"
    if isinstance(item, (float, numpy.floating)):
        return f"{float(item):.3f}"
    return str(item)


def kind_of(dtype):
    if h5py.check_string_dtype(dtype) is not None and h5py.check_string_dtype(dtype).length is None:
        return "text"
    return next(name for name, known in KINDS.items() if known == dtype)


def contents(array):
    text = "|".join(as_text(item) for item in numpy.asarray(array).reshape(-1))
    return f"{zlib.crc32(text.encode()):08x}"


def dims(numbers):
    return "x".join("-" if n is None else str(n) for n in numbers) or "."


def attributes(path, thing):
    for name in sorted(thing.attrs.keys()):
        attribute = thing.attrs.get_id(name)
        # Not through thing.attrs[name], which makes arrays of objects of what has a variable length.
        array = numpy.asarray(thing.attrs[name], dtype=object if kind_of(attribute.dtype) == "text" else None)
        yield f"{path}@{name} {kind_of(attribute.dtype)} {dims(attribute.shape)} {contents(array)}"


def lines(path, group, seen):
    """What is in a group, a line for each thing; what is below a group only where it is first met."""
    seen.add(hash(group.id))
    for name in sorted(group.keys()):
        below = f"{path}/{name}"
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            yield f"{below} soft {link.path}"
            continue
        if isinstance(link, h5py.ExternalLink):
            yield f"{below} external {link.filename} {link.path}"
            continue
        thing = group[name]
        yield f"{below} links {h5py.h5o.get_info(thing.id).rc}"
        yield from attributes(below, thing)
        if isinstance(thing, h5py.Group):
            if hash(thing.id) not in seen:
                yield from lines(below, thing, seen)
        else:
            kind = kind_of(thing.dtype)
            yield f"{below} dataset {kind} {dims(thing.shape)} {dims(thing.maxshape)} {contents(thing[()])}"


class Hand:
    def __init__(self):
        self.file = None

    def open(self, path, mode, low):
        bounds = {"earliest": ("earliest", "latest"), "v18": ("v108", "latest"), "v110": ("v110", "latest"),
                  "latest": ("latest", "latest")}[low]
        self.file = h5py.File(path, mode, libver=bounds)

    def close(self):
        self.file.close()

    def group(self, path, order):
        self.file.create_group(path, track_order=order == "order")

    def dataset(self, path, kind, now, most, chunk, choice):
        choices = dict(FILTERS[choice])
        if chunk != ".":
            choices |= {"chunks": shape(chunk), "maxshape": shape(most)}
        # Without a fill value of its own, what nobody wrote is what was left in the file by something else.
        fill = {} if kind == "text" else {"fillvalue": numpy.array(value(kind, 0 if kind == "pair" else 7), KINDS[kind])[()]}
        self.file.create_dataset(path, shape(now), KINDS[kind], **choices, **fill)

    def write(self, path, start, count, seed):
        dataset = self.file[path]
        start, count = shape(start), shape(count)
        kind = kind_of(dataset.dtype)
        # In the dataset's own type: strings of different character sets are not converted.
        block = values(kind, int(seed), int(numpy.prod(count, dtype=int))).reshape(count).astype(dataset.dtype)
        dataset[tuple(slice(a, a + n) for a, n in zip(start, count))] = block

    def resize(self, path, now):
        self.file[path].resize(shape(now))

    def attribute(self, path, name, kind, count, seed):
        made = values(kind, int(seed), int(count))
        self.file[path or "/"].attrs.create(name, made, dtype=KINDS[kind])

    def unattribute(self, path, name):
        del self.file[path or "/"].attrs[name]

    def remove(self, path):
        del self.file[path]

    def move(self, old, new):
        self.file.move(old, new)

    def soft(self, path, target):
        self.file[path] = h5py.SoftLink(target)

    def external(self, path, file, target):
        self.file[path] = h5py.ExternalLink(file, target)

    def hard(self, path, target):
        self.file[path] = self.file[target]

    def dump(self):
        for line in attributes("", self.file["/"]):
            print(line)
        for line in lines("", self.file["/"], set()):
            print(line)


def main():
    hand = Hand()
    for line in sys.stdin:
        step, *args = line.rstrip("\n").split("\t")
        try:
            getattr(hand, step)(*args)
            print("ok", flush=True)
        except Exception as error:  # whatever it is, the test is told
            print(f"failed: {type(error).__name__}: {error}".replace("\n", " "), flush=True)


main()
