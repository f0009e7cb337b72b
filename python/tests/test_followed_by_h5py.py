"""What h5py sees, in a process of its own, of live files of this package: objects that are removed, and virtual datasets."""

import json
import os
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

import h5live

# Does what each line says, and prints the shape and the sum of the elements, or the error.
READER = """
import json, sys
import h5py
file = h5py.File(sys.argv[1], "r", libver="latest", swmr=True)
opened = {}
print(json.dumps(sorted(file)), flush=True)
for line in sys.stdin:
    action, name = line.split()
    try:
        if action == "open":
            opened[name] = file[name]
        elif action == "refresh":
            opened[name].refresh()
        values = opened[name] if action != "get" else file[name]
        print(json.dumps([list(values.shape), int(values[...].sum())]), flush=True)
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        print(json.dumps(str(error)), flush=True)
"""

# No mapping of a fixed shape: what lies beyond the extent of its source, libhdf5 leaves as the memory was.
VIRTUAL = """
import sys, h5py
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    source = h5py.VirtualSource("source.h5", "rows", shape=(10,), maxshape=(None,))
    growing = h5py.VirtualLayout((10,), maxshape=(None,), dtype="i4")
    growing[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
    file.create_virtual_dataset("growing", growing, fillvalue=0)
"""

# h5py has no function for them, but the library in it has. Exit code 3: it is not where wheels have it.
SHARED = """
import ctypes, glob, os, sys
import h5py, numpy as np
libraries = glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*"))
if not libraries:
    sys.exit(3)
library = ctypes.CDLL(libraries[0])
created, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
assert library.H5Pset_shared_mesg_nindexes(ctypes.c_int64(created.id), 1) == 0
assert library.H5Pset_shared_mesg_index(ctypes.c_int64(created.id), 0, 0x1F, 10) == 0
with h5py.File(h5py.h5f.create(sys.argv[1].encode(), h5py.h5f.ACC_TRUNC, created, access)) as file:
    for number in range(20):
        rows = file.create_dataset(f"d{number}", (0, 4), maxshape=(None, 4), chunks=(16, 4), dtype="i4", compression=4)
        rows.attrs["settings"] = np.arange(20.0)
"""


@pytest.fixture
def h5py():
    python = os.environ.get("H5LIVE_PYTHON")
    if not python:
        pytest.skip("H5LIVE_PYTHON names no Python with h5py")
    readers = []

    def run(program, *args):
        done = subprocess.run([python, "-c", program, *map(str, args)], capture_output=True, text=True)
        if done.returncode == 3:
            pytest.skip("the h5py there has no libhdf5 of its own")
        assert done.returncode == 0, done.stderr

    def reader(path):
        started = subprocess.Popen([python, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        readers.append(started)
        names = json.loads(started.stdout.readline())

        def ask(action, name):
            print(action, name, file=started.stdin, flush=True)
            return json.loads(started.stdout.readline())

        return names, ask

    yield SimpleNamespace(run=run, reader=reader)
    for started in readers:
        started.stdin.close()
        assert started.wait() == 0


def test_what_is_removed_is_an_error_to_who_had_opened_it_and_never_something_else(tmp_path, h5py):
    path = tmp_path / "run.h5"
    with h5live.File(path, "w", libver="latest") as file:
        for number in range(30):
            file.create_dataset(f"g{number % 3}/d{number}", data=np.full(2000, number, "i4"), chunks=(100,))
        log = file.create_dataset("log", (0,), maxshape=(None,), chunks=(16,), dtype="i4")
        file.swmr_mode = True
        _, ask = h5py.reader(path)
        assert ask("open", "g0/d9") == [[2000], 9 * 2000]
        assert ask("open", "g1/d7") == [[2000], 7 * 2000]
        del file["g0/d9"], file["g1"]
        file.flush()
        for number in range(200):
            log.append(np.arange(1000))
            log.flush()
            file.create_dataset(f"new{number}", data=np.full(2000, -1, "i4"), chunks=(100,))
            file.flush()
            for name, value in [("g0/d9", 9), ("g1/d7", 7)]:
                for action in ["read", "refresh", "get"] if number % 20 == 0 else ["read"]:
                    found = ask(action, name)
                    assert isinstance(found, str) or found == [[2000], value * 2000], (number, action, name, found)
        assert ask("get", "g2/d2") == [[2000], 2 * 2000] and ask("get", "g0/d3") == [[2000], 3 * 2000]
        names, ask = h5py.reader(path)
        assert "g1" not in names and "new199" in names
        assert isinstance(ask("get", "g0/d9"), str)
        assert ask("get", "new199") == [[2000], -2000]


def test_virtual_datasets_over_a_live_file_grow_for_h5py_when_it_refreshes_them(tmp_path, h5py):
    with h5live.File(tmp_path / "source.h5", "w", libver="latest") as file:
        rows = file.create_dataset("rows", (10,), maxshape=(None,), chunks=(16,), dtype="i4")
        rows[:] = 1
        h5py.run(VIRTUAL, tmp_path / "virtual.h5")
        file.swmr_mode = True
        _, ask = h5py.reader(tmp_path / "virtual.h5")
        assert ask("open", "growing") == [[10], 10]
        for more in range(1, 4):
            rows.append(np.full(5, 2))
            rows.flush()
            assert ask("refresh", "growing") == [[10 + 5 * more], 10 + 10 * more]


def test_a_file_with_shared_messages_is_written_live(tmp_path, h5py):
    path = tmp_path / "shared.h5"
    h5py.run(SHARED, path)
    with h5live.File(path, "a") as file:
        file.swmr_mode = True
        names, ask = h5py.reader(path)
        assert len(names) == 20 and ask("open", "d3") == [[0, 4], 0]
        with h5live.open(path) as follower:
            for step in range(1, 6):
                rows = file["d3"]
                rows.append(np.full((7, 4), step))
                rows.attrs["settings"] = np.full(20, step)
                rows.flush()
                total = 28 * step * (step + 1) // 2
                assert ask("refresh", "d3") == [[7 * step, 4], total]
                seen = follower["d3"]
                seen.refresh()
                assert seen.shape == (7 * step, 4) and seen[:].sum() == total and seen.attrs["settings"].sum() == 20 * step
    assert not h5live.check(path).faults
