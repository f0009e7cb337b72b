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
        self._selection, self._raw = None, None

    def select_none(self):
        self._selection = Selection(self._shape, RawSelection.none(), (0,))

    def select_elements(self, points, op=SELECT_SET):
        found = PointSelection(self._shape, points)
        if op in (SELECT_APPEND, SELECT_PREPEND) and isinstance(self._selection, PointSelection):
            pair = (self._selection._points, found._points)
            found = PointSelection(self._shape, np.concatenate(pair if op == SELECT_APPEND else pair[::-1]))
        self._selection, self._raw = found, None

    def select_hyperslab(self, start, count, stride=None, block=None, op=SELECT_SET):
        rank = self.rank
        stride, block = stride or (1,) * rank, block or (1,) * rank
        dims = [n * size for n, size in zip(count, block)]
        raw = RawSelection.hyperslab(list(start), list(stride), list(count), list(block))
        found = Selection(self._shape, raw, dims)
        found.slab = (tuple(start), tuple(stride), tuple(count), tuple(block))
        if op != SELECT_SET:
            found = self._combined(SpaceID(self._shape, self._max, found), op)
        self._selection, self._raw = found, None

    # --- combinations ---------------------------------------------------------------------------

    def _mask(self):
        """An array of the shape of the dataspace: which elements are selected."""
        mask = np.zeros(self._shape, bool)
        if self._selection is None:
            mask[...] = True
        elif isinstance(self._selection, PointSelection):
            mask[tuple(self._selection._points.T.astype(int))] = True
        elif hasattr(self._selection, "parts"):
            mask[np.ix_(*self._selection.parts)] = True
        elif self._selection.nselect:
            start, stride, count, block = self.get_regular_hyperslab()
            mask[np.ix_(*(_indices(*part) for part in zip(start, stride, count, block)))] = True
        return mask

    def _combined(self, other, op):
        """The selection of what this one and another one select."""
        if op not in _OPERATIONS:
            raise ValueError(f"the selections cannot be combined by {op}")
        mask = _OPERATIONS[op](self._mask(), other._mask())
        found = PointSelection.from_mask(mask)
        found.is_hyperslab = True
        return found

    def combine_select(self, space2, op):
        """A dataspace with what this one and another one select."""
        return SpaceID(self._shape, self._max, self._combined(space2, op))

    def modify_select(self, space2, op):
        """Selects what this dataspace and another one select."""
        self._selection = self._combined(space2, op)

    def combine_hyperslab(self, start, count, stride=None, block=None, op=SELECT_SET):
        """A dataspace with what this one and a hyperslab select."""
        made = self.copy()
        made.select_hyperslab(start, count, stride, block, op)
        return made

    def select_copy(self, src):
        """Selects what another dataspace selects."""
        self._selection, self._raw = src._selection, src._raw

    def select_shape_same(self, space2):
        """Whether two selections have the same shape, wherever they are."""
        first, second = _cropped(self._mask()), _cropped(space2._mask())
        rank = max(first.ndim, second.ndim)
        first, second = (mask.reshape((1,) * (rank - mask.ndim) + mask.shape) for mask in (first, second))
        return first.shape == second.shape and bool((first == second).all())

    def select_valid(self):
        """Whether all that is selected is in the dataspace."""
        if self._selection is None or not self._selection.nselect:
            return True
        return all(end < dim for end, dim in zip(self.get_select_bounds()[1], self._shape))

    def offset_simple(self, offset=None):
        """Moves the selection; without an offset, back to where it was."""
        if offset is not None and any(offset):
            raise NotImplementedError("selections that are moved")

    # --- description ----------------------------------------------------------------------------

    def get_select_type(self):
        if self._selection is None:
            return SEL_ALL
        if isinstance(self._selection, PointSelection) and not hasattr(self._selection, "is_hyperslab"):
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
        if self._selection is not None and not self.is_regular_hyperslab():
            places = np.argwhere(self._mask())
            return tuple(places.min(0).tolist()), tuple(places.max(0).tolist())
        if self._selection is None:
            return (0,) * self.rank, tuple(n - 1 for n in self._shape)
        start, stride, count, block = self.get_regular_hyperslab()
        end = (np.array(start) + (np.array(count) - 1) * np.array(stride) + np.array(block) - 1).tolist()
        return tuple(start), tuple(end)

    def get_select_hyper_blocklist(self):
        """The blocks that are selected: the first and the last element of each."""
        return np.array(_blocks(self._mask()), dtype=int).reshape(-1, 2, self.rank)

    def get_select_hyper_nblocks(self):
        return len(self.get_select_hyper_blocklist())

    def get_select_elem_pointlist(self):
        """The points that are selected."""
        if not isinstance(self._selection, PointSelection):
            raise ValueError("no points are selected")
        return self._selection._points.copy()

    def get_select_elem_npoints(self):
        return len(self.get_select_elem_pointlist())

    # --- for the engine -------------------------------------------------------------------------

    def raw_selection(self):
        """The selection as the engine has it."""
        if self._raw is not None:
            return self._raw
        return RawSelection.all() if self._selection is None else self._selection.raw

    def extent(self):
        """The dimensions."""
        return [int(n) for n in self._shape or ()]


_OPERATIONS = {
    SELECT_OR: np.logical_or,
    SELECT_AND: np.logical_and,
    SELECT_XOR: np.logical_xor,
    SELECT_NOTB: lambda first, second: first & ~second,
    SELECT_NOTA: lambda first, second: second & ~first,
    SELECT_SET: lambda first, second: second,
}


def _indices(start, stride, count, block):
    """What a hyperslab selects along a dimension."""
    return (int(start) + np.arange(count)[:, None] * int(stride) + np.arange(block)).reshape(-1)


def _cropped(mask):
    """The smallest box that has all that is selected."""
    places = np.argwhere(mask)
    if not len(places):
        return np.zeros((0,) * mask.ndim, bool)
    return mask[tuple(slice(first, last + 1) for first, last in zip(places.min(0), places.max(0)))]


def _runs(selected):
    """The first and the last index of each run of what is selected along a dimension."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], selected, [False])).astype("i1")))
    return list(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist()))


def _blocks(mask):
    """The blocks of a mask, in the order of their elements: equal slices that follow each other are one."""
    if mask.ndim == 0:
        return [((), ())] if mask else []
    if mask.ndim == 1:
        return [((first,), (last,)) for first, last in _runs(mask)]
    found, begin = [], 0
    for at in range(1, len(mask) + 1):
        if at < len(mask) and (mask[at] == mask[begin]).all():
            continue
        found += [((begin, *first), (at - 1, *last)) for first, last in _blocks(mask[begin])]
        begin = at
    return found


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
