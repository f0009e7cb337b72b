"""Paths of filter plugins. Filters are built in; no plugins are loaded."""

_paths = []


def append(path):
    _paths.append(bytes(path))


def prepend(path):
    _paths.insert(0, bytes(path))


def insert(path, index):
    _paths.insert(index, bytes(path))


def replace(path, index):
    _paths[index] = bytes(path)


def remove(index):
    del _paths[index]


def get(index):
    return _paths[index]


def size():
    return len(_paths)
