"""Dataspaces, and selections of their elements."""

import numpy as np

from .._h5live import Selection as RawSelection
from .._selections import PointSelection, Selection, SimpleSelection, product
from ._objects import ObjectID

UNLIMITED = 2**64 - 1
NO_CLASS, SCALAR, SIMPLE, NULL = -1, 0, 1, 2
SELECT_SET, SELECT_OR, SELECT_AND, SELECT_XOR, SELECT_NOTB, SELECT_NOTA, SELECT_APPEND, SELECT_PREPEND = range(8)
SEL_NONE, SEL_POINTS, SEL_HYPERSLABS, SEL_ALL = 0, 1, 2, 3
ALL = 0


class SpaceID(ObjectID):
    """A dataspace and a selection in it."""

    def __init__(self, shape, maxshape=None, selection=None, raw=None):
        super().__init__()
        self._shape = None if shape is None else tuple(int(n) for n in shape)
        self._max = self._shape if maxshape is None else tuple(maxshape)
        self._selection = selection
        self._raw = raw
        self._is_null = shape is None

    @classmethod
    def of_raw(cls, shape, raw):
        """A dataspace whose selection the engine describes."""
        made = cls(shape, raw=raw)
        made._is_null = False
        return made

    @property
    def shape(self):
        return self._shape

    @property
    def rank(self):
        return len(self._shape or ())

    def copy(self):
        return SpaceID(self._shape, self._max, self._selection, self._raw)

    def get_simple_extent_type(self):
        return NULL if self._is_null else SIMPLE if self._shape else SCALAR

    def get_simple_extent_ndims(self):
        return self.rank

    def get_simple_extent_dims(self, maxdims=False):
        return (self._max if maxdims else self._shape)

    def get_simple_extent_npoints(self):
        return 0 if self._is_null else product(self._shape)

    def is_simple(self):
        return True

    def select_all(self):
        self._selection = None

    def select_none(self):
        self._selection = Selection(self._shape, RawSelection.none(), (0,))

    def select_elements(self, points, op=SELECT_SET):
        del op
        self._selection = PointSelection(self._shape, points)

    def select_hyperslab(self, start, count, stride=None, block=None, op=SELECT_SET):
        if op != SELECT_SET:
            raise NotImplementedError("combined hyperslabs")
        rank = self.rank
        stride, block = stride or (1,) * rank, block or (1,) * rank
        dims = [n * size for n, size in zip(count, block)]
        raw = RawSelection.hyperslab(list(start), list(stride), list(count), list(block))
        self._selection = Selection(self._shape, raw, dims)
        self._selection.slab = (tuple(start), tuple(stride), tuple(count), tuple(block))

    def get_select_type(self):
        if self._selection is None:
            return SEL_ALL
        if isinstance(self._selection, PointSelection):
            return SEL_POINTS
        return SEL_HYPERSLABS if self._selection.nselect else SEL_NONE

    def get_select_npoints(self):
        return self.get_simple_extent_npoints() if self._selection is None else self._selection.nselect

    def is_regular_hyperslab(self):
        return hasattr(self._selection, "slab") or isinstance(self._selection, SimpleSelection)

    def get_regular_hyperslab(self):
        if hasattr(self._selection, "slab"):
            return self._selection.slab
        start, count, step, _ = self._selection.box
        return start, step, count, (1,) * len(start)

    def get_select_bounds(self):
        start, stride, count, block = self.get_regular_hyperslab()
        end = (np.array(start) + (np.array(count) - 1) * np.array(stride) + np.array(block) - 1).tolist()
        return tuple(start), tuple(end)


def create(class_code):
    """A dataspace without dimensions: scalar or null."""
    if class_code == NULL:
        return SpaceID(None)
    if class_code == SCALAR:
        return SpaceID(())
    raise ValueError("a simple dataspace is made by create_simple")


def create_simple(dims, maxdims=None):
    """A dataspace with dimensions."""
    return SpaceID(dims, maxdims)
