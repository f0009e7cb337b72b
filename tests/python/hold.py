"""Opens an HDF5 file in one of four modes, says whether that was allowed, and holds it until it is told to close it.

usage: hold.py FILE    (on standard input, in turns: one of read, write, swmr-read, swmr-write; "close", if it was opened)
"""
import sys

import h5py
from h5py import h5f, h5p

FLAGS = {
    "read": h5f.ACC_RDONLY,
    "write": h5f.ACC_RDWR,
    "swmr-read": h5f.ACC_RDONLY | h5f.ACC_SWMR_READ,
    "swmr-write": h5f.ACC_RDWR | h5f.ACC_SWMR_WRITE,
}


def main():
    path = sys.argv[1]
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_V110, h5f.LIBVER_LATEST)
    for mode in sys.stdin:
        try:
            held = h5f.open(path.encode(), FLAGS[mode.strip()], access)
        except OSError:
            print("refused", flush=True)
            continue
        print("open", flush=True)
        sys.stdin.readline()
        h5py.File(held).close()
        print("closed", flush=True)


main()
