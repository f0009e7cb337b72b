"""Tries with libhdf5 to write and to follow live a file whose groups are symbol tables, as tests/interop/old_files.rs asks for.

usage: old_files.py NEW LIVE    NEW is made here; h5live writes LIVE, and a line of input says that it has closed it
"""
import sys

import h5py


def is_refused(attempt):
    try:
        attempt()
    except (OSError, ValueError, RuntimeError):
        return True
    return False


def start_writing(path):
    file = h5py.File(path, "w", libver="earliest")
    file.create_group("group")
    file.swmr_mode = True


def main():
    new, live = sys.argv[1:]
    print("writing:", "refused" if is_refused(lambda: start_writing(new)) else "allowed", flush=True)
    print("following:", "refused" if is_refused(lambda: h5py.File(live, "r", swmr=True)) else "allowed", flush=True)
    sys.stdin.readline()
    with h5py.File(live, "r") as file:
        print(len(file["group"]), "links", flush=True)


main()
