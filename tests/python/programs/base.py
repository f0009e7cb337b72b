"""What the files of the other programs share: the list of them, and comparisons."""
import importlib

import numpy as np

MAKERS = []


class Maker:
    """Files of a program: how one is made, what the program reads of it, and where rows may be appended.

    `make(path)` writes the file, and `read(path)` returns what the program reads of it. `same(before, after)` raises
    where they differ. `tables` has for each dataset that grows: its path, the rows as lines of JSON, and a function
    that raises if what the program reads afterwards is not what it read before with these rows.
    """

    def __init__(self, name, needs, suffix, make, read, same, tables):
        self.name, self.needs, self.suffix = name, needs, suffix
        self.make, self.read, self.same, self.tables = make, read, same, tables

    def missing(self):
        """The modules that are needed and are not here."""
        out = []
        for module in self.needs:
            try:
                importlib.import_module(module)
            except Exception as error:  # a module may fail in any way, as without a library of the system
                out.append(f"{module} ({type(error).__name__})")
        return out


def maker(name, needs, suffix, same, tables=()):
    """Takes a class with `make` and `read` for the files of a program."""

    def take(cls):
        MAKERS.append(Maker(name, needs, suffix, cls.make, cls.read, same, tables))
        return cls

    return take


def same_values(before, after, path=""):
    """Raises where two trees of dicts, lists, arrays, frames and scalars differ, in types or in values."""
    assert type(before) is type(after), f"{path}: {type(before)} became {type(after)}"
    if isinstance(before, dict):
        assert list(before) == list(after), f"{path}: {list(before)} became {list(after)}"
        for key in before:
            same_values(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, (list, tuple)):
        assert len(before) == len(after), f"{path}: {len(before)} became {len(after)}"
        for i, (one, two) in enumerate(zip(before, after)):
            same_values(one, two, f"{path}[{i}]")
    elif isinstance(before, np.ndarray):
        assert before.dtype == after.dtype, f"{path}: {before.dtype} became {after.dtype}"
        assert before.shape == after.shape, f"{path}: {before.shape} became {after.shape}"
        if before.dtype.names:
            # Field by field: what stands in gaps between them is no value.
            for name in before.dtype.names:
                same_values(before[name], after[name], f"{path}.{name}")
        elif before.dtype.hasobject:
            same_values(before.tolist(), after.tolist(), path)
        else:
            # Bit by bit, so that NaN is NaN.
            assert before.tobytes() == after.tobytes(), f"{path}: {before} became {after}"
    elif isinstance(before, (float, complex)):
        assert repr(before) == repr(after), f"{path}: {before!r} became {after!r}"
    else:
        assert before == after, f"{path}: {before!r} became {after!r}"
