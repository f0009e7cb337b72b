"""Walks over files with 100,000 groups and a million attributes, with examples/walk and with h5py's low-level API.

Fails if the example takes more memory than the metadata cache's budget and 64 MiB; the times are for reading.

usage: walk.py EXAMPLE FOLDER
"""
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from h5py import h5a, h5f, h5g, h5p, h5s, h5t, version

GROUPS, ATTRIBUTES = 100_000, 10
BUDGET_MIB = 64 + 64
BOUNDS = {"earliest": (h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST), "latest": (h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)}


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
    # In processes of their own: what this one has taken would be counted for those that it starts.
    this = [sys.executable, __file__]
    for name in BOUNDS:
        path = folder / f"{name}.h5"
        subprocess.run([*this, "--make", path, name], check=True)
        begin = time.monotonic()
        process = subprocess.Popen([example, path], stdout=subprocess.PIPE, text=True)
        said = process.stdout.read().strip()
        _, status, used = os.wait4(process.pid, 0)
        ours = time.monotonic() - begin
        assert status == 0, status
        most = max(most, used.ru_maxrss // 1024)
        walked = subprocess.run([*this, "--walk", path], check=True, capture_output=True, text=True)
        groups, attributes, theirs = map(float, walked.stdout.split())
        assert said.startswith(f"{groups:.0f} groups,") and f" {attributes:.0f} attributes" in said, said
        print(f"{name}: {said}; at most {most} MiB")
        print(f"{name}: h5py {version.version} {theirs:.2f} s: {theirs / ours:.1f} times as long")
        path.unlink()
    sys.exit(most > BUDGET_MIB)


if sys.argv[1] == "--make":
    make(Path(sys.argv[2]), BOUNDS[sys.argv[3]])
elif sys.argv[1] == "--walk":
    start = time.monotonic()
    print(*walk(Path(sys.argv[2])), time.monotonic() - start)
else:
    main()
