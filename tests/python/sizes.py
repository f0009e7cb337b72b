"""Makes with h5py what tests/library/file_size.rs makes with h5live, and prints how large the files are (bytes), a line each.

usage: sizes.py FOLDER LOW DATASETS CHUNKS LINKS
"""
import os
import sys

import h5py
import numpy


def main():
    folder, low = sys.argv[1], {"earliest": "earliest", "v110": "v110", "latest": "latest"}[sys.argv[2]]
    datasets, chunks, links = map(int, sys.argv[3:6])

    def size(name, make):
        path = os.path.join(folder, name)
        with h5py.File(path, "w", libver=(low, "latest")) as file:
            make(file)
        print(name, os.path.getsize(path), flush=True)
        os.unlink(path)

    def small(file):
        for i in range(datasets):
            file.create_dataset(f"dataset {i}", data=numpy.arange(4, dtype="<i4"))

    def many_chunks(file):
        data = file.create_dataset("data", (chunks * 16,), "<i4", chunks=(16,), maxshape=(None,))
        step = 1 << 16
        for begin in range(0, chunks * 16, step):
            end = min(begin + step, chunks * 16)
            data[begin:end] = numpy.arange(begin, end, dtype="<i4")

    def many_links(file):
        # Room for the heap of all names, which libhdf5 would otherwise write out with every link.
        room = file.id.get_mdc_config()
        room.set_initial_size, room.incr_mode, room.flash_incr_mode, room.decr_mode = True, 0, 0, 0
        room.initial_size = room.min_size = room.max_size = 128 << 20
        file.id.set_mdc_config(room)
        group = file.create_group("group")
        for i in range(links):
            group[f"link {i}"] = h5py.SoftLink("/somewhere")

    size("datasets", small)
    size("chunks", many_chunks)
    size("links", many_links)


main()
