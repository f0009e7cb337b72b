"""Follows with h5py what only a reader can follow that knows of headroom: new strings, attributes, objects, dense links.

Waits for a line of input, then looks; says "seen", or what is wrong.

usage: headroom.py FILE
"""
import sys

import h5py


def look(file, datasets):
    for dataset in datasets:
        dataset.refresh()
    texts, numbers = datasets
    assert list(texts.asstr()[...]) == [f"text {n} " + "x" * n for n in range(50)], texts[...]
    assert numbers.attrs["later"] == 7
    assert len(numbers.attrs) == 21, len(numbers.attrs)
    group = file["group"]
    names = sorted(group)
    assert names == sorted(f"new {n}" for n in range(20)), names
    for n in range(20):
        assert (group[f"new {n}"][...] == [n, n + 1, n + 2]).all(), n


def main():
    file = h5py.File(sys.argv[1], "r", swmr=True)
    datasets = [file["texts"], file["numbers"]]
    print("following", flush=True)
    sys.stdin.readline()
    try:
        look(file, datasets)
        print("seen", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


main()
