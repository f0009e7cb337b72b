"""Compares files with the manifests of what they held before links and attributes "zz..." were added.

manifests.py SHARED FOLDER   reads the names of files below FOLDER, and prints for each in what it differs
"""

import os
import sys

shared, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(shared, "oracle"))
sys.setrecursionlimit(10000)
import manifest  # noqa: E402


def rows(text):
    return [line for line in text.split("\n") if line]


for line in sys.stdin:
    name = line.strip()
    with open(os.path.join(shared, "corpus", name + ".manifest"), encoding="utf-8") as file:
        expected = rows(file.read())
    try:
        walk = manifest.Walk(os.path.join(folder, name))
        walk.run()
        found = ["\t".join(row[:6]) for row in walk.rows]
    except Exception as error:
        found = [f"cannot be read: {error}"]
    ours = [row for row in found if "/zz" in row.split("\t")[0] or "@zz" in row.split("\t")[0]]
    found = [row for row in found if row not in set(ours)]
    wrong = sorted(set(expected) ^ set(found))
    print(f"{name}\t{len(ours)}\t{' | '.join(wrong[:4])}", flush=True)
sys.stdout.flush()
os._exit(0)
