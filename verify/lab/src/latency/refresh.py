"""Follows with h5py's refresh loop the dataset that `h5live latency` writes: how late each row is seen (ns).

usage: python -c '...' ROWS FILE
"""
import sys
import time

import h5py


def main():
    rows, path = int(sys.argv[1]), sys.argv[2]
    file = h5py.File(path, "r", swmr=True)
    dataset = file["times"]
    print("ready", flush=True)
    seen, late = 0, []
    while seen < rows:
        dataset.refresh()
        extent = dataset.shape[0]
        if extent > seen:
            times = dataset[seen:extent]
            now = time.time_ns()
            late.extend(now - int(at) for at in times)
            seen = extent
    print(*late, flush=True)


main()
