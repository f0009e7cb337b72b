"""Writes a file with h5py as prove's workloads do with h5live, and remarks what it does in FILE.marks.

usage: write.py FILE rows INDEX FIRST COUNT CHUNK [MOST] | rewrite|resize|sparse INDEX CHUNK COUNT ROWS [CHUNKS...]
                | split INDEX FIRST COUNT CHUNK [MOST] | two COUNT | attributes FIRST COUNT | links FIRST COUNT | texts COUNT
"""
import sys

import h5py
import numpy as np


def value(name, row, version):
    """As `Series::value`."""
    number = 7
    for byte in name.encode():
        number = number * 31 + byte
    return ((row + 1) * 0x9E3779B97F4A7C15 ^ number << 56) & 0xFFFFFFFFFFFFFFF0 | version


def values(name, rows, version=1):
    return np.array([value(name, row, version) for row in rows], "<u8")


class Writer:
    def __init__(self, path):
        self.file = h5py.File(path, "w", libver="latest")
        self.marks = open(path + ".marks", "wb", buffering=0)

    def mark(self, text):
        self.marks.write(text.encode())

    def add(self, name, index, chunk, rows=0, most=None, kind="<u8", **more):
        wide = index == "btree2"
        shape, limit = {
            "extensible": ((rows,), (None,)),
            "fixed": ((rows,), (most,)),
            "single": ((rows,), (rows,)),
            "btree2": ((rows, 1), (None, None)),
        }[index]
        chunks = (chunk, 1) if wide else (chunk,)
        return self.file.create_dataset(name, shape, kind, chunks=chunks, maxshape=limit, **more)

    def begin(self, **counts):
        self.file.flush()
        self.file.swmr_mode = True
        self.mark("begin")
        for name, count in counts.items():
            self.mark(f"{name}.issued {count}")
            self.mark(f"{name}.flushed {count}")
        self.mark("start")

    def append(self, name, row):
        dataset = self.file[name]
        self.mark(f"{name}.issued {row + 1}")
        dataset.resize(row + 1, axis=0)
        dataset[row] = values(name, [row]).view(dataset.dtype)
        dataset.flush()
        self.mark(f"{name}.flushed {row + 1}")


def rows(writer, index, first, count, chunk, most=0):
    first, count, chunk, most = int(first), int(count), int(chunk), int(most)
    dataset = writer.add("d", index, chunk, first, most)
    if first:
        dataset[:] = values("d", range(first)).reshape(dataset.shape)
    writer.begin(d=first)
    for row in range(first, first + count):
        writer.append("d", row)


def split(writer, index, first, count, chunk, most=0):
    """As rows, in a dataset whose header has the layout in its first chunk, and the dataspace in another."""
    first, most = int(first), int(most)
    dataset = writer.add("d", index, int(chunk), first, most, kind=LONG[index])
    if first:
        dataset[:] = values("d", range(first)).reshape(dataset.shape).view(dataset.dtype)
    writer.file.flush()
    writer.file["behind"] = np.arange(4)
    writer.file.flush()
    assert split_header(dataset), "the header of d is not split"
    writer.begin(d=first)
    for row in range(first, first + int(count)):
        writer.append("d", row)


# Types of 8 bytes with a name that fills the first chunk of a header, so that there is no room for an attribute.
LONG = {index: np.dtype([("x" * length, "<u8")]) for index, length in
        {"extensible": 140, "fixed": 165, "btree2": 140}.items()}

DATASPACE, LAYOUT, CONTINUATION = 1, 8, 16


def split_header(dataset):
    """Has the header of a dataset of such a type be in two chunks, the layout in the first, the dataspace in the other, and
    says whether it is so; it is not if there is room behind the header."""
    file = dataset.file
    dataset.attrs["a"] = np.uint8(1)
    file.flush()
    spread = messages(file.filename, h5py.h5o.get_info(dataset.id).addr)
    return LAYOUT in spread[0] and len(spread) == 2 and DATASPACE in spread[1]


def messages(path, at):
    """The types of the messages in each chunk of the object header (of version 2) at `at`."""
    with open(path, "rb") as file:
        image = file.read()
    number = lambda start, size: int.from_bytes(image[start : start + size], "little")
    flags = number(at + 5, 1)
    start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    frame = 6 if flags & 4 else 4
    chunks, found = [(start + width, number(start, width))], []
    for start, size in chunks:
        end, kinds = start + size, []
        while start + frame <= end:
            kind, length = number(start, 1), number(start + 1, 2)
            kinds.append(kind)
            start += frame
            if kind == CONTINUATION:
                chunks.append((number(start, 8) + 4, number(start + 8, 8) - 8))
            start += length
        found.append(kinds)
    return found


def rewrite(writer, index, chunk, count, length):
    length = int(length)
    dataset = writer.add("d", index, int(chunk), length, length)
    writer.begin(d=0)
    for version in range(1, int(count) + 1):
        writer.mark(f"d.issued {version}")
        dataset[:] = values("d", range(length), version)
        dataset.flush()
        writer.mark(f"d.flushed {version}")


def resize(writer, index, chunk, count, length):
    """Chunks of another size each time, stored without their filter."""
    chunk, length = int(chunk), int(length)
    dataset = writer.add("d", index, chunk, length, length, compression="gzip")
    writer.begin(d=0)
    for version in range(1, int(count) + 1):
        writer.mark(f"d.issued {version}")
        for first in range(0, length, chunk):
            stored = values("d", range(first, first + chunk), version).tobytes() + bytes(8 * version)
            dataset.id.write_direct_chunk((first,), stored, 1)
        dataset.flush()
        writer.mark(f"d.flushed {version}")


def sparse(writer, index, chunk, count, length, *order):
    chunk = int(chunk)
    dataset = writer.add("d", index, chunk, int(length), int(length))
    writer.begin(d=0)
    for number, at in enumerate(order[: int(count)]):
        writer.mark(f"d.issued {number + 1}")
        written = range(int(at) * chunk, int(at) * chunk + chunk - 1)
        dataset[written.start : written.stop] = values("d", written).reshape((-1, *dataset.shape[1:]))
        dataset.flush()
        writer.mark(f"d.flushed {number + 1}")


def two(writer, count):
    writer.add("d", "extensible", 1)
    writer.add("e", "fixed", 2, most=10)
    writer.begin(d=0, e=0)
    for row in range(int(count)):
        writer.append("d", row)
        writer.append("e", row)


def attributes(writer, first, count):
    first = int(first)
    dataset = writer.add("d", "extensible", 1)
    for number in range(first):
        dataset.attrs[f"a{number}"] = np.uint64(number)
    writer.begin(a=first)
    for number in range(first, first + int(count)):
        writer.mark(f"a.issued {number + 1}")
        dataset.attrs[f"a{number}"] = np.uint64(number)
        dataset.flush()
        writer.mark(f"a.flushed {number + 1}")


def links(writer, first, count):
    def make(number):
        writer.file.create_dataset(f"o{number}", data=values("o", range(2)), chunks=(2,), maxshape=(None,))

    first = int(first)
    for number in range(first):
        make(number)
    writer.begin(o=first)
    for number in range(first, first + int(count)):
        writer.mark(f"o.issued {number + 1}")
        make(number)
        writer.file.flush()
        writer.mark(f"o.flushed {number + 1}")


def texts(writer, count):
    dataset = writer.file.create_dataset("s", (0,), h5py.string_dtype(), chunks=(2,), maxshape=(None,))
    writer.begin(s=0)
    for row in range(int(count)):
        writer.mark(f"s.issued {row + 1}")
        dataset.resize(row + 1, axis=0)
        dataset[row] = f"row {row} " * (4 + row % 3)
        dataset.flush()
        writer.mark(f"s.flushed {row + 1}")


def main():
    path, case, *arguments = sys.argv[1:]
    writer = Writer(path)
    cases = (rows, split, rewrite, resize, sparse, two, attributes, links, texts)
    {run.__name__: run for run in cases}[case](writer, *arguments)
    writer.file.close()
    writer.mark("closed")


if __name__ == "__main__":
    main()
