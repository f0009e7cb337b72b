"""Makes sound files that hold every kind of structure, for the tests of the file checker: sound.py FOLDER"""

import sys

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

FOLDER = sys.argv[1]


def old():
    """The structures of HDF5 1.6 and before."""
    with h5py.File(f"{FOLDER}/old.h5", "w", libver="earliest") as file:
        group = file.create_group("group")
        for i in range(200):
            group.create_dataset(f"dataset{i:03}", data=np.arange(i % 5))
        group["soft"] = h5py.SoftLink("/group/dataset001")
        file["again"] = group["dataset007"]
        group["up"] = file["/"]
        file.create_dataset("chunks", data=np.arange(2000.0).reshape(100, 20), chunks=(3, 4), maxshape=(None, None))
        file.create_dataset("deflated", data=np.arange(5000), chunks=(50,), compression="gzip")
        file.create_dataset("words", data=["word %d" % i for i in range(300)], dtype=h5py.string_dtype())
        file["type"] = np.dtype("<i4")
        typed = file.create_dataset("typed", (5,), dtype=file["type"])
        typed.attrs["words"] = ["one", "two"]
        for i in range(20):
            group.attrs[f"attribute{i}"] = i


def early(file, name, shape, chunk):
    """A dataset with many chunks in little time."""
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_chunk((chunk,) * len(shape))
    create.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    space = h5s.create_simple(shape, (h5s.UNLIMITED,) * len(shape))
    h5d.create(file.id, name.encode(), h5t.NATIVE_INT8, space, create)


def kinds():
    """A little of everything."""
    with h5py.File(f"{FOLDER}/kinds.h5", "w", libver="latest") as file:
        group = file.create_group("group", track_order=True)
        for i in range(60):
            group[f"a link with a name that takes some space {i}"] = h5py.SoftLink("/")
            group.attrs[f"attribute {i}"] = np.arange(20 + i)
        group.attrs["huge"] = np.arange(2000)
        for name, shape in [("grows", (400,)), ("grid", (20, 20))]:
            early(file, name, shape, 1)
        file.create_dataset("fixed", data=np.arange(1100), chunks=(1,))


def new():
    """The structures of HDF5 1.10 and later."""
    with h5py.File(f"{FOLDER}/new.h5", "w", libver="latest") as file:
        group = file.create_group("group", track_order=True)
        for i in range(500):
            group.create_dataset(f"dataset with a name {i:03}", data=np.int8(i % 100))
        file["again"] = group["dataset with a name 007"]
        group["up"] = file["/"]
        file["few"] = 0
        file["few"].attrs["first"], file["few"].attrs["second"] = 1, 2
        small = file.create_group("small")
        small["first"], small["second"] = 1, 2
        for i in range(100):
            group.attrs[f"attribute{i}"] = np.arange(i)
        file["huge"] = 1
        for i in range(10):
            file["huge"].attrs[f"huge{i}"] = np.arange(2000 + i)
        data = np.arange(100_000)
        file.create_dataset("grows", data=data[:20_000], chunks=(2,), maxshape=(None,))
        file.create_dataset("grows_deflated", data=data[:4000], chunks=(10,), maxshape=(None,), compression="gzip")
        early(file, "grows_paged", (140_000,), 1)
        file.create_dataset("fixed", data=data[:900].reshape(30, 30), chunks=(4, 4))
        file.create_dataset("fixed_paged", data=data[:5000], chunks=(2,))
        file.create_dataset("fixed_deflated", data=data[:5000], chunks=(100,), compression="gzip")
        early(file, "grid", (100, 100), 1)
        file.create_dataset(
            "grid_deflated", data=data[:9000].reshape(100, 90), chunks=(9, 9), maxshape=(None, None), compression="gzip"
        )
        file.create_dataset("single", data=data[:100], chunks=(100,), compression="gzip")
        file.create_dataset("words", data=["word %d" % i for i in range(300)], dtype=h5py.string_dtype())
        file.create_dataset("compact_words", data=["a", "b"], dtype=h5py.string_dtype(), chunks=(1,), maxshape=(None,))
        layout = h5py.VirtualLayout((10,), "i8")
        layout[:] = h5py.VirtualSource("new.h5", "single", (100,))[:10]
        file.create_virtual_dataset("virtual", layout)
        file["type"] = np.dtype("<i4")
        file.create_dataset("typed", (5,), dtype=file["type"]).attrs.create("typed", 5, dtype=file["type"])


def managed():
    """A file that keeps its free space."""
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    create = h5p.create(h5p.FILE_CREATE)
    create.set_file_space_strategy(h5f.FSPACE_STRATEGY_FSM_AGGR, True, 1)
    name = f"{FOLDER}/managed.h5".encode()
    with h5py.File(h5f.create(name, h5f.ACC_TRUNC, create, access)) as file:
        for i in range(20):
            file.create_dataset(f"dataset{i}", data=np.arange(500))
        for i in range(0, 20, 3):
            del file[f"dataset{i}"]


for make in [old, new, kinds, managed]:
    make()
