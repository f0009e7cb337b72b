"""Walks over files with 100,000 groups and a million attributes, with examples/walk and with h5py's low-level API.

Fails if the example takes more memory than the metadata cache's budget and 64 MiB; the times are for reading.

usage: walk.py EXAMPLE FOLDER
"""
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from h5py import h5a, h5f, h5g, h5p, h5s, h5t, version

GROUPS, ATTRIBUTES = 100_000, 10
BUDGET_MIB = 64 + 64


def make(path, bounds):
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(*bounds)
    file = h5f.create(bytes(path), h5f.ACC_TRUNC, fapl=access)
    scalar, value = h5s.create(h5s.SCALAR), np.zeros((), "i4")
    names = [b"a%d" % i for i in range(ATTRIBUTES)]
    for top in range(GROUPS // 1000):
        outer = h5g.create(file, b"t%d" % top)
        for inner in range(999):
            group = h5g.create(outer, b"g%d" % inner)
            for name in names:
                h5a.create(group, name, h5t.NATIVE_INT32, scalar).write(value)
    file.close()


def walk(path):
    counts, value = [0, 0], np.empty((), "i4")
    waiting = [h5g.open(h5f.open(bytes(path), h5f.ACC_RDONLY), b"/")]
    while waiting:
        group = waiting.pop()
        counts[0] += 1
        names = []
        h5a.iterate(group, lambda name: names.append(name))
        for name in names:
            h5a.open(group, name).read(value)
            counts[1] += 1
        waiting.extend(h5g.open(group, name) for name in group)
    return counts


def main():
    example, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    most = 0
    for name, bounds in (("earliest", (h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)), ("latest", (h5f.LIBVER_LATEST,) * 2)):
        path = folder / f"{name}.h5"
        make(path, bounds)
        begin = time.monotonic()
        said = subprocess.run([example, path], check=True, capture_output=True, text=True).stdout.strip()
        ours = time.monotonic() - begin
        most = max(most, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
        begin = time.monotonic()
        groups, attributes = walk(path)
        theirs = time.monotonic() - begin
        assert said.startswith(f"{groups} groups,") and f" {attributes} attributes" in said, said
        print(f"{name}: {said}; at most {most} MiB")
        print(f"{name}: h5py {version.version} {theirs:.2f} s: {theirs / ours:.1f} times as long")
        path.unlink()
    sys.exit(most > BUDGET_MIB)


main()
