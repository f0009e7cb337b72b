"""Paths of filter plugins. The filters of many are built in; no plugins are loaded."""

import os

_paths = [os.fsencode(path) for path in os.environ.get("HDF5_PLUGIN_PATH", "/usr/local/hdf5/lib/plugin").split(":") if path]


def append(path):
    """Adds a path at the end."""
    _paths.append(bytes(path))


def prepend(path):
    """Adds a path at the start."""
    _paths.insert(0, bytes(path))


def insert(path, index):
    """Adds a path before another one."""
    _paths.insert(index, bytes(path))


def replace(path, index):
    """Puts a path in another one's place."""
    _paths[index] = bytes(path)


def remove(index):
    """Takes a path away."""
    del _paths[index]


def get(index):
    """A path."""
    return _paths[index]


def size():
    """The number of paths."""
    return len(_paths)
