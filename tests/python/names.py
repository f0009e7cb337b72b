"""Looks with h5py at files of `h5live-lab stress --names` that were brought into order, and writes on in them.

usage: names.py serve    for each line of its input, {"path": FILE, "entries": [[GROUP, LINKS, ORDERED, NAMES], ...]}: `ok`, or
                         what is wrong
"""
import json
import sys

import h5py
import numpy as np


def names_of(group, links, index):
    found = []
    if links:
        group.id.links.iterate(lambda name: found.append(name.decode()), idx_type=index)
    else:
        h5py.h5a.iterate(group.id, lambda name: found.append(name.decode()), index_type=index)
    return found


def look(file, entries):
    for path, links, ordered, names in entries:
        group = file[path]
        for index in [h5py.h5.INDEX_NAME] + [h5py.h5.INDEX_CRT_ORDER] * ordered:
            found = names_of(group, links, index)
            if sorted(found) != sorted(names):
                return f"{path}: by index {index} there are {sorted(found)} instead of {sorted(names)}"
        if links:
            for name in names:
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.HardLink):
                    group[name]
        else:
            for name in names:
                np.asarray(group.attrs[name])
    return None


def write_on(file, entries):
    """Adds entries and removes all that were there, half of them first."""
    for path, links, _, names in entries:
        group = file[path]
        for number in range(3):
            if links:
                group[f"x{number}"] = h5py.SoftLink(f"/x/{number}")
            else:
                group.attrs.create(f"x{number}", np.arange(1 + 700 * (number == 2)))
        for name in names[: len(names) // 2]:
            del (group if links else group.attrs)[name]


def serve(wish):
    with h5py.File(wish["path"], "r") as file:
        fault = look(file, wish["entries"])
    if fault:
        return fault
    with h5py.File(wish["path"], "r+") as file:
        write_on(file, wish["entries"])
    left = [
        [path, links, ordered, names[len(names) // 2 :] + ["x0", "x1", "x2"]]
        for path, links, ordered, names in wish["entries"]
    ]
    with h5py.File(wish["path"], "r") as file:
        fault = look(file, left)
    return f"written on: {fault}" if fault else "ok"


if sys.argv[1:] != ["serve"]:
    sys.exit(__doc__)
for line in sys.stdin:
    try:
        answer = serve(json.loads(line))
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    print(answer.replace("\n", " "), flush=True)
