"""Makes and edits with libhdf5 files in which objects share messages, as tools/cli/tests/program/shared_messages.rs asks for.

usage: shared_messages.py make FILE MAX_LIST MIN_BTREE    a file with datasets that share all that can be shared
       shared_messages.py edit FILE        deletes an object, adds attributes, and makes more objects
       shared_messages.py empty FILE       deletes everything, and makes some of it again

h5py has no function for the indexes of shared messages, so the functions of its libhdf5 are called.
"""
import ctypes
import sys

import h5py
import numpy as np

# Dataspaces, datatypes, fill values, filter pipelines, attributes.
ALL_TYPES = 0x182A
SMALLEST = 1
DATASETS = 12
# More attributes than a header keeps.
MANY = 11


def libhdf5():
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/libhdf5" in line and "_hl" not in line}
    return ctypes.CDLL(min(paths))


def create(path, max_list, min_btree):
    plist = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    library, ident = libhdf5(), ctypes.c_int64(plist.id)
    assert library.H5Pset_shared_mesg_nindexes(ident, ctypes.c_uint(2)) >= 0
    for index, types in enumerate([ALL_TYPES & ~0x1000, 0x1000]):
        args = [ctypes.c_uint(n) for n in (index, types, SMALLEST)]
        assert library.H5Pset_shared_mesg_index(ident, *args) >= 0
    assert library.H5Pset_shared_mesg_phase_change(ident, ctypes.c_uint(max_list), ctypes.c_uint(min_btree)) >= 0
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_LATEST)
    return h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, plist, access))


def make_dataset(file, number):
    dtype = np.dtype([("a", "i4"), ("b", "f8", (3,))]) if number % 3 else np.dtype("i4")
    data = file.create_dataset(f"data{number}", (8,), dtype, maxshape=(None,), chunks=(4,), compression=1, fillvalue=None)
    data[:3] = np.zeros(3, dtype)
    for n in range(MANY if number % 4 == 1 else 3):
        data.attrs.create(f"attribute{n}", np.arange(5, dtype="i8") + n)
    data.attrs["own"] = np.arange(number + 1)


def make(path, max_list, min_btree):
    with create(path, int(max_list), int(min_btree)) as file:
        for number in range(DATASETS):
            make_dataset(file, number)
        file.create_dataset("unlike", data=np.arange(6, dtype="f4").reshape(2, 3), fillvalue=7)


def edit(path):
    with h5py.File(path, "r+") as file:
        for name in sorted(file):
            for attribute in sorted(file[name].attrs):
                file[name].attrs[attribute]
            file[name][()]
        for name in sorted(file)[::2]:
            # libhdf5 2.0 damages headers when it removes shared attributes or changes shared extents.
            file[name].attrs["theirs"] = np.arange(5, dtype="i8")
        for name in sorted(file)[:1]:
            del file[name]
        for number in range(DATASETS):
            if f"data{number}" not in file:
                make_dataset(file, number)


def empty(path):
    with h5py.File(path, "r+") as file:
        for name in sorted(file):
            del file[name]
    # The same messages again: they must not be looked for where they were.
    with h5py.File(path, "r+") as file:
        for number in range(4):
            make_dataset(file, number)
        for number in range(4):
            assert len(file[f"data{number}"].attrs) == (MANY if number % 4 == 1 else 3) + 1


{"make": make, "edit": edit, "empty": empty}[sys.argv[1]](*sys.argv[2:])
