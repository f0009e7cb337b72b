"""Checks that the service lists these domains of a folder, and nothing else. usage: listed.py FOLDER NAME.."""

import sys

import h5pyd

folder = h5pyd.Folder(sys.argv[1])
assert sorted(folder) == sorted(sys.argv[2:]), sorted(folder)
print(f"{sys.argv[1]}: {', '.join(sorted(folder))}")
