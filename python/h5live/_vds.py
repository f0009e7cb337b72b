"""Virtual datasets: arrays whose elements are in other datasets."""

import os
from collections import namedtuple
from contextlib import contextmanager
from copy import copy

import numpy as np

from . import _selections, _types
from ._create import _fill_element
from ._h5live import Selection as RawSelection
from ._selections import SimpleSelection, select

UNLIMITED = 2**64 - 1


class VDSmap(namedtuple("VDSmap", ("vspace", "file_name", "dset_name", "src_space"))):
    """Elements of a virtual dataset, and those of a source in their place."""


def _select(shape, key):
    """A selection in which a slice may be without end (stop = UNLIMITED)."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(part, slice) and part.stop == UNLIMITED for part in keys):
        return select(shape, key)
    finite = tuple(slice(part.start, None, part.step) if isinstance(part, slice) and part.stop == UNLIMITED else part
                   for part in keys)
    found = select(shape, finite)
    expanded = _selections._expand(keys, len(shape))
    start, count, step, scalar = found.box
    count = tuple(UNLIMITED if isinstance(part, slice) and part.stop == UNLIMITED else n
                  for part, n in zip(expanded, count))
    found.is_unlimited = True
    found.raw = RawSelection.hyperslab(list(start), list(step), list(count), [1] * len(shape))
    return found


def _is_unlimited(selection):
    return getattr(selection, "is_unlimited", False)


class VirtualSource:
    """A dataset, or part of one (``source[0:10]``), as a source of virtual datasets.

    Parameters
    ----------
    path_or_dataset : str, path or Dataset
    name, shape, dtype, maxshape
        What a dataset is at a path.
    """

    def __init__(self, path_or_dataset, name=None, shape=None, dtype=None, maxshape=None):
        from ._datasets import Dataset

        if isinstance(path_or_dataset, Dataset):
            given = {"name": name, "shape": shape, "dtype": dtype, "maxshape": maxshape}
            failed = {key: value for key, value in given.items() if value is not None}
            if failed:
                raise TypeError("If a Dataset is passed as the first argument then no other arguments may be passed.  "
                                f"You passed {failed}")
            dataset = path_or_dataset
            path, name, shape = dataset.file.filename, dataset.name, dataset.shape
            dtype, maxshape = dataset.dtype, dataset.maxshape
        else:
            path = path_or_dataset
            if name is None:
                raise TypeError("The name parameter is required when specifying a source by path")
            if shape is None:
                raise TypeError("The shape parameter is required when specifying a source by path")
            shape = (shape,) if isinstance(shape, int) else shape
            maxshape = (maxshape,) if isinstance(maxshape, int) else maxshape
        self.path = path
        self.name = name
        self.dtype = dtype
        self.maxshape = shape if maxshape is None else tuple(UNLIMITED if n is None else n for n in maxshape)
        self.sel = SimpleSelection(shape)
        self._all_selected = True

    @property
    def shape(self):
        return self.sel.array_shape

    def __getitem__(self, key):
        if not self._all_selected:
            raise RuntimeError("VirtualSource objects can only be sliced once.")
        made = copy(self)
        made.sel = _select(self.shape, key)
        made._all_selected = False
        return made


class VirtualLayout:
    """The description of a virtual dataset: assign sources to parts of it."""

    def __init__(self, shape, dtype, maxshape=None, filename=None):
        self.shape = (shape,) if isinstance(shape, int) else shape
        self.dtype = dtype
        self.maxshape = (maxshape,) if isinstance(maxshape, int) else maxshape
        self._filename = filename
        self.sources = []

    def __setitem__(self, key, source):
        selection = _select(self.shape, key)
        if not _is_unlimited(selection) and not _is_unlimited(source.sel) and selection.nselect != source.sel.nselect:
            raise ValueError(f"the source has a different number of elements ({source.sel.nselect}) than its place "
                             f"({selection.nselect})")
        self.sources.append((source, selection))

    def _source_name(self, path, target):
        path = os.fsdecode(path)
        return "." if path == os.fsdecode(target) else path

    def make_dataset(self, parent, name, fillvalue=None):
        """Makes the dataset below a group, and returns its handle."""
        from ._datatypes import Datatype

        target = parent.file.filename
        if self._filename is not None and os.fsdecode(self._filename) != target:
            raise Exception(f"{target!r} != {self._filename!r}")
        file = parent._handle.file
        if isinstance(self.dtype, Datatype):
            datatype, dtype = self.dtype._handle, self.dtype.dtype
            stored = datatype.datatype.spec()
        else:
            dtype = np.dtype(self.dtype)
            datatype = file.stored_type(_types.datatype_of(dtype))
            stored = datatype.spec()
        entries = []
        for source, selection in self.sources:
            entries.append((self._source_name(source.path, target), source.name, source.sel.raw,
                            [int(n) for n in source.sel.shape], selection.raw, [int(n) for n in self.shape]))
        options = {"shape": [int(n) for n in self.shape], "virtual": entries}
        if self.maxshape is not None:
            options["max_shape"] = [None if n in (None, UNLIMITED) else int(n) for n in self.maxshape]
        if fillvalue is not None:
            options["fill"] = list(_fill_element(file, fillvalue, dtype, stored))
        return parent._handle.create_dataset(name, datatype, options)


@contextmanager
def build_virtual_dataset(parent, name, shape, dtype, maxshape=None, fillvalue=None):
    """A context that gives a layout, of which it makes the dataset at its end."""
    layout = VirtualLayout(shape, dtype, maxshape, parent.file.filename)
    yield layout
    layout.make_dataset(parent, name, fillvalue)
