"""Looks at a file with libhdf5: how it hands out its space, and whether everything in it can be read and changed.

usage: space.py FILE: prints strategy, persist, threshold and page size; then deletes a dataset, and adds one.
"""
import sys

import h5py
import numpy


def read(file):
    def each(_, item):
        if isinstance(item, h5py.Dataset):
            assert (item[...] == numpy.arange(item.size)).all(), item.name

    file.visititems(each)


def main():
    path = sys.argv[1]
    with h5py.File(path, "r") as file:
        plist = file.id.get_create_plist()
        strategy, persist, threshold = plist.get_file_space_strategy()
        names = ["fsm-aggr", "page", "aggr", "none"]
        print(names[strategy], str(bool(persist)).lower(), threshold, plist.get_file_space_page_size())
        read(file)
    with h5py.File(path, "r+") as file:
        del file["data 7"]
        file["theirs"] = numpy.arange(700)
    with h5py.File(path, "r") as file:
        read(file)


main()
