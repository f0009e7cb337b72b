"""Writes live with h5py what tests/interop/ follows; goes on when a line comes in.

usage: write.py FILE ROWS RATE     (rows per second; 0 is as fast as it goes)
"""
import sys
import time

import h5py

import rule


def main():
    path, rows, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    file = h5py.File(path, "w", libver="latest")
    datasets = []
    for name, shape, dtype, chunk, choices in rule.DATASETS:
        growing = {"maxshape": (None, *shape), "chunks": (chunk, *shape)}
        values = rule.rows(name, shape, dtype, 0, rows)
        datasets.append((file.create_dataset(name, (0, *shape), dtype, **{**growing, **choices}), values))
    file.swmr_mode = True
    print("writing", flush=True)
    sys.stdin.readline()
    begin = time.monotonic()
    for number in range(1, rows + 1):
        for dataset, values in datasets:
            dataset.resize(number, axis=0)
            dataset[number - 1] = values[number - 1]
            dataset.flush()
        if rate:
            time.sleep(max(0, begin + number / rate - time.monotonic()))
    print(f"{rows} rows, each flushed, in {time.monotonic() - begin:.1f} s", flush=True)
    file.close()


main()
