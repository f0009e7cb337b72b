"""Reads files in Log VOL's layout by the rules of Log VOL 1.4.0, with h5py, and compares the values with others.

usage: log_vol_reader.py LOG WANTED [LOG WANTED]...

WANTED is a plain HDF5 file, or the JSON of a sample (`*.values.json`): each dataset by its stored path, with its shape and
the SHA-256 of its bytes. What Log VOL would not open is an error here: a visible dataset that is no anchor, a number that
is not counted, entries that do not fill their log, data outside of the data log that begins before it. Data is taken in
the order of its place in the file, as Log VOL does. The last line is how many datasets were compared.

Source: "Log" in the shared reference facts, and the behaviour of Log VOL 1.4.0.
"""

import hashlib
import json
import math
import struct
import sys
import zlib

import h5py
import numpy as np

SEVERAL, ENCODED, REFERENCE, RECORD = 0x01, 0x04, 0x10, 0x20
# Of larger datasets the entries are read, and no values compared (bytes).
MAX_VALUES = 64 << 20


def visible(path):
    """Whether Log VOL shows an object: a name with one underscore in front is its own."""
    return not (path[0] == "_" and path[1:2] != "_")


def dtype_of(dataset):
    """The dtype of a dataset; `None` if numpy has none that is the datatype in the file, byte by byte."""
    try:
        dtype = dataset.dtype
        same = h5py.h5t.py_create(dtype, logical=True) == dataset.id.get_type()
    except (KeyError, TypeError, ValueError):
        return None
    return dtype if same and not dtype.hasobject else None


class Anchor:
    """A dataset that Log VOL opens."""

    def __init__(self, path, dataset, dims, most):
        self.path, self.dims, self.most = path, tuple(map(int, dims)), tuple(map(int, most))
        self.size = dataset.id.get_type().get_size()
        self.dtype = dtype_of(dataset)
        self.values = None
        if self.dtype is not None and math.prod(self.dims) * self.size <= MAX_VALUES:
            plist, fill = dataset.id.get_create_plist(), np.zeros((), self.dtype)
            if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
                plist.get_fill_value(fill)
            self.values = np.full(self.dims, np.frombuffer(fill.tobytes(), f"V{self.size}")[0])


def anchors(file, count):
    """Each dataset that Log VOL opens, by its number."""
    found = {}

    def visit(path, item):
        if not isinstance(item, h5py.Dataset) or not visible(path):
            return
        attributes = {name: h5py.h5a.open(item.id, name) for name in (b"_ID", b"_dims", b"_mdims")}
        values = {name: item.attrs[name] for name in attributes}
        assert all(attribute.get_space().get_simple_extent_ndims() == 1 for attribute in attributes.values()), path
        assert (values[b"_ID"].dtype, values[b"_dims"].dtype, values[b"_mdims"].dtype) == ("<i4", "<i8", "<i8"), path
        (number,) = values[b"_ID"]
        assert 0 <= number < count and number not in found, (path, number)
        assert item.id.get_space().get_simple_extent_type() == h5py.h5s.NULL, path
        found[number] = Anchor(path, item, values[b"_dims"], values[b"_mdims"])

    file.visititems(visit)
    return found


def positions(numbers, steps, record):
    """Positions from encoded numbers."""
    for number in numbers:
        position = []
        for step in [*steps, 1]:
            position.append(number // step)
            number %= step
        yield [*record, *position]


def selection(body, flags, rank, earlier):
    """The boxes of an entry: starts and counts."""
    record = []
    if flags & RECORD:
        record, body, rank = [struct.unpack_from("<q", body)[0]], body[8:], rank - 1
    if flags & REFERENCE:
        boxes = earlier(struct.unpack("<q", body)[0])
        return [([*record, *start[len(record):]], [*[1 for _ in record], *count[len(record):]]) for start, count in boxes]
    count = 1
    if flags & SEVERAL:
        (count,), body = struct.unpack_from("<i", body), body[4:]
    numbers = struct.unpack(f"<{len(body) // 8}q", body)
    if flags & ENCODED:
        steps, numbers = numbers[: rank - 1], numbers[max(rank - 1, 0):]
        assert len(numbers) == 2 * count
        return list(zip(positions(numbers[:count], steps, record), positions(numbers[count:], steps, [1 for _ in record])))
    assert len(numbers) == 2 * count * rank
    rows = [list(numbers[at * rank:(at + 1) * rank]) for at in range(2 * count)]
    return [([*record, *start], [*[1 for _ in record], *sides]) for start, sides in zip(rows[:count], rows[count:])]


def entries(log, found):
    """The entries of a metadata log: number of the dataset, boxes, place and bytes of the data."""
    (processes,) = struct.unpack_from("<q", log)
    at, boxes = 8 * (processes + 1), {}
    ends = struct.unpack_from(f"<{processes}q", log, 8)
    assert ends[-1] == len(log) and list(ends) == sorted(ends), ends
    while at < len(log):
        size, number, flags, place, length = struct.unpack_from("<iiiqq", log, at)
        assert size >= 28 and at + size <= len(log), (at, size)
        if number in found:
            rank = len(found[number].dims)
            boxes[at] = selection(log[at + 28:at + size], flags, rank, lambda back: boxes[at + back])
            yield number, boxes[at], place, length
        at += size
    assert at == len(log)


def data_logs(group, count):
    """Where each data log begins and ends. Log VOL looks for the last one that begins before a place."""
    places = []
    for number in range(count):
        log = group[f"_ld_{number}"]
        assert log.id.get_type().get_class() == h5py.h5t.BITFIELD and log.chunks is None and log.dtype == "u1"
        places.append((log.id.get_offset(), log.id.get_offset() + log.size))
    assert places == sorted(places), places
    return places


def put(anchor, boxes, data):
    """Puts the data of an entry where it belongs."""
    elements = sum(math.prod(count) for _, count in boxes)
    if len(data) != elements * anchor.size:
        # Nothing else says that data is deflated. Log VOL itself reads it back as garbage.
        data = zlib.decompress(data)
    assert len(data) == elements * anchor.size, (anchor.path, len(data))
    data = np.frombuffer(data, f"V{anchor.size}")
    for start, count in boxes:
        size = math.prod(count)
        box, data = data[:size].reshape(count), data[size:]
        # What lies outside of the extent does not count.
        inside = [max(0, min(side, dim - first)) for first, side, dim in zip(start, count, anchor.dims)]
        target = tuple(slice(first, first + side) for first, side in zip(start, inside))
        if anchor.values is not None:
            anchor.values[target] = box[tuple(slice(0, side) for side in inside)]


def read(path):
    """The anchors of a file, with their values."""
    with h5py.File(path, "r") as file, open(path, "rb") as raw:
        counted, logs, tables, configuration, _ = file.attrs["_int_att"]
        assert file.attrs["_int_att"].dtype == "<i4" and configuration & 0x200 == 0
        found = anchors(file, counted)
        places, pieces = data_logs(file["_LOG"], logs), []
        for number in range(tables):
            table = file["_LOG"][f"_md_{number}"]
            assert table.id.get_type().get_class() == h5py.h5t.BITFIELD
            pieces += entries(table[()].tobytes(), found)
        for number, boxes, place, length in sorted(pieces, key=lambda piece: piece[2]):
            _, end = [log for log in places if log[0] <= place][-1]
            assert place + length <= end
            raw.seek(place)
            put(found[number], boxes, raw.read(length))
        return list(found.values())


def wanted_of(path, anchor):
    """Shape, largest shape and bytes that a dataset should have; `None` if h5py cannot read it."""
    with h5py.File(path, "r") as file:
        # Names are as in the log, where an underscore in front is doubled.
        data = file["/".join(name[1:] if name.startswith("__") else name for name in anchor.path.split("/"))]
        most = tuple(-1 if dim is None else dim for dim in data.maxshape)
        values = np.zeros(data.shape, f"V{anchor.size}")
        try:
            if values.size:
                data.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, data.id.get_type())
        except OSError:
            # It has a filter that this h5py does not have.
            return None
        return data.shape, most, values.tobytes()


def compare(log, wanted):
    """Compares the datasets of two files. Returns how many."""
    compared, samples = 0, None
    if wanted.endswith(".json"):
        with open(wanted, encoding="utf-8") as text:
            samples = json.load(text)
    for anchor in read(log):
        if anchor.values is None:
            continue
        if samples is not None:
            sample = samples.pop(anchor.path)
            assert list(anchor.dims) == sample["shape"], anchor.path
            assert hashlib.sha256(anchor.values.tobytes()).hexdigest() == sample["sha256"], (log, anchor.path)
        else:
            want = wanted_of(wanted, anchor)
            if want is None:
                continue
            assert (anchor.dims, anchor.most) == want[:2], (log, anchor.path, anchor.dims, anchor.most, want[:2])
            assert anchor.values.tobytes() == want[2], (log, anchor.path)
        compared += 1
    assert not samples, samples
    return compared


def main():
    pairs = sys.argv[1:]
    print(sum(compare(log, wanted) for log, wanted in zip(pairs[::2], pairs[1::2])))


if __name__ == "__main__":
    main()
