"""What `benches/growth` does, by libhdf5 (h5py): growth_libhdf5.py NAME COUNT FOLDER; without arguments, the names.

It prints the same lines for each phase. Python itself takes some microseconds for each operation, so what counts here is
how times and memory grow.
"""

import json
import os
import sys
import tempfile
import time

import h5py
import numpy as np

IN_A_GROUP = 1000


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096


def most_resident():
    """The most memory that this process had in use up to now (bytes)."""
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM:"))


def phase(name, operations, work):
    before, begun = resident(), time.perf_counter()
    done = work()
    seconds, after = time.perf_counter() - begun, resident()
    print(json.dumps({"phase": name, "operations": operations, "seconds": seconds, "grown": max(after - before, 0),
                      "resident": after, "most": most_resident()}), flush=True)
    return done


def jumping(count):
    return (n * 7919 % count for n in range(count))


def create(file, count):
    made = []
    for n in range(count):
        made.append(file.create_dataset(f"{n // IN_A_GROUP}/{n % IN_A_GROUP}", (0,), "u8", maxshape=(None,), chunks=(16,)))
    return made


def append(dataset, rows=np.full(16, 7, "u8")):
    length = len(dataset)
    dataset.resize(length + len(rows), 0)
    dataset[length:] = rows


def datasets(path, count):
    file = h5py.File(path, "w", libver="latest")
    made = phase("create", count, lambda: create(file, count))
    phase("start", count, lambda: setattr(file, "swmr_mode", True))
    phase("append", count, lambda: [append(dataset) for dataset in made])
    phase("flush all", count, file.flush)
    phase("append and flush each", count, lambda: [(append(dataset), dataset.flush()) for dataset in made])
    phase("append and flush the file", count // 10, lambda: [(append(dataset), file.flush()) for dataset in made[::10]])
    phase("close", count, file.close)


def opened(path, count):
    with h5py.File(path, "w", libver="latest") as file:
        create(file, count)
    names = [f"{n // IN_A_GROUP}/{n % IN_A_GROUP}" for n in range(count)]
    reader = h5py.File(path, "r", libver="latest", swmr=True, locking=False)
    followed = phase("open in a follower", count, lambda: [reader[name] for name in names])
    phase("refresh each", count, lambda: [dataset.refresh() for dataset in followed])


def links(path, count):
    file = h5py.File(path, "w", libver="latest")
    target, group = file.create_group("target"), file.create_group("all")

    def link():
        for n in jumping(count):
            group[f"{n:09}"] = target
        file.flush()

    def unlink():
        for n in jumping(count):
            if n % 2 == 0:
                del group[f"{n:09}"]
        file.flush()

    phase("link", count, link)
    phase("look up", count, lambda: [group.get(f"{n:09}", getlink=True) for n in jumping(count)] and None)
    phase("list", count, lambda: list(group))
    phase("unlink half", count // 2, unlink)
    phase("close", count, file.close)


def attributes(path, count):
    file = h5py.File(path, "w", libver="latest")
    attrs = file.create_group("all").attrs

    def write(value):
        for n in jumping(count):
            attrs[f"{n:09}"] = value

    phase("set", count, lambda: write(1))
    phase("read", count, lambda: [attrs[f"{n:09}"] for n in jumping(count)] and None)
    phase("change", count, lambda: write(2))
    phase("list", count, lambda: list(attrs))
    phase("close", count, file.close)


def write_chunks(file, dataset, count, at):
    chunk = bytes([7] * 8)

    def write():
        for n in jumping(count):
            dataset.id.write_direct_chunk(at(n), chunk)
        file.flush()

    phase("write", count, write)
    phase("read", count, lambda: [dataset.id.read_direct_chunk(at(n)) for n in jumping(count)] and None)
    phase("close", count, file.close)


def chunks(path, count):
    file = h5py.File(path, "w", libver="latest")
    dataset = file.create_dataset("d", (count * 8,), "u1", maxshape=(None,), chunks=(8,))
    write_chunks(file, dataset, count, lambda n: (n * 8,))


def chunks_spread(path, count):
    file = h5py.File(path, "w", libver="latest")
    dataset = file.create_dataset("d", (count * 8000, 1000), "u1", maxshape=(None, None), chunks=(8, 1))
    write_chunks(file, dataset, count, lambda n: (n * 8000, n % 1000))


def followers(path, count):
    file = h5py.File(path, "w", libver="latest")
    written = file.create_dataset("d", (0,), "u8", maxshape=(None,), chunks=(1024,))
    file.swmr_mode = True
    open_one = lambda: h5py.File(path, "r", libver="latest", swmr=True, locking=False)["d"]
    readers = phase("open", count, lambda: [open_one() for _ in range(count)])

    def follow():
        for round in range(50):
            append(written)
            written.flush()
            for reader in readers:
                reader.refresh()
                reader[round * 16 : round * 16 + 16]

    phase("follow", count * 50, follow)


AXES = {"datasets": datasets, "open": opened, "links": links, "attributes": attributes, "chunks": chunks,
        "chunks-spread": chunks_spread, "followers": followers}

if __name__ == "__main__":
    if len(sys.argv) < 4:
        print("\n".join(AXES))
        sys.exit()
    with tempfile.TemporaryDirectory(dir=sys.argv[3]) as folder:
        AXES[sys.argv[1]](os.path.join(folder, "libhdf5.h5"), int(sys.argv[2]))
