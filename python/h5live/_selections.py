"""What a key in brackets selects."""

import numpy as np

from ._h5live import Selection as RawSelection
from ._types import RegionReference


class MultiBlockSlice:
    """Blocks at regular distances along one dimension, as HDF5's hyperslabs have them."""

    def __init__(self, start=0, stride=1, count=None, block=1):
        if start < 0:
            raise ValueError("Start can't be negative")
        if stride < 1 or (count is not None and count < 1) or block < 1:
            raise ValueError("Stride, count and block can't be 0 or negative")
        if block > stride:
            raise ValueError("Blocks will overlap if block > stride")
        self.start, self.stride, self.count, self.block = start, stride, count, block

    def indices(self, length):
        """Start, stride, count and block in a dimension of a length."""
        count = self.count
        if self.start + self.block > length:
            raise ValueError(f"Start ({self.start}) + block ({self.block}) out of range ({length})")
        if count is None:
            count = (length - self.start - self.block) // self.stride + 1
        end = self.start + self.block + (count - 1) * self.stride
        if end > length:
            raise ValueError(f"{self.__repr__()} range ({self.start} - {end - 1}) extends beyond maximum ({length - 1})")
        return self.start, self.stride, count, self.block

    def _repr(self, count=None):
        return f"{self.__class__.__name__}(start={self.start}, stride={self.stride}, count={count}, block={self.block})"

    def __repr__(self):
        return self._repr(count=self.count)


class Selection:
    """Elements of a shape.

    Attributes
    ----------
    shape : the shape from which is selected
    mshape : the shape of what is selected, with all dimensions
    array_shape : the same without the dimensions of single indices
    nselect : the number of elements
    """

    def __init__(self, shape, raw, mshape, array_shape=None, is_simple=False):
        self.shape = tuple(shape)
        self.raw = raw
        self.mshape = tuple(mshape)
        self.array_shape = self.mshape if array_shape is None else tuple(array_shape)
        self.is_simple = is_simple

    @property
    def nselect(self):
        return product(self.mshape)

    @property
    def id(self):
        from .h5py import h5s

        return h5s.SpaceID(self.shape, selection=self)

    def expand_shape(self, source_shape):
        """The shape of an array with all dimensions of the selection.

        Raises
        ------
        TypeError
            If the array does not fit and cannot be repeated so that it does.
        """
        if not self.is_simple:
            fits = source_shape == self.array_shape or len(self.array_shape) == 1 and product(source_shape) == self.nselect
            if not fits:
                raise TypeError("Broadcasting is not supported for complex selections")
            return self.mshape
        scalar = self._scalar
        remaining, shape = list(source_shape), []
        for at in range(1, len(self.mshape) + 1):
            if not remaining or scalar[-at]:
                shape.append(1)
                continue
            size = remaining.pop()
            if size not in (1, self.mshape[-at]):
                raise TypeError(f"Can't broadcast {source_shape} -> {self.array_shape}")
            shape.append(size)
        if any(size > 1 for size in remaining):
            raise TypeError(f"Can't broadcast {source_shape} -> {self.array_shape}")
        return tuple(shape[::-1])

    _scalar = ()


class SimpleSelection(Selection):
    """A box, perhaps with steps."""

    def __init__(self, shape, box=None):
        rank = len(shape)
        if box is None:
            box = ((0,) * rank, tuple(shape), (1,) * rank, (False,) * rank)
        start, count, step, scalar = box
        ones = [1] * rank
        if rank == 0:
            raw = RawSelection.all()
        elif 0 in count:
            raw = RawSelection.none()
        else:
            raw = RawSelection.hyperslab(list(start), list(step), list(count), ones)
        array_shape = tuple(n for n, is_scalar in zip(count, scalar) if not is_scalar)
        super().__init__(shape, raw, count, array_shape, is_simple=True)
        self._scalar = scalar
        self.box = box


class PointSelection(Selection):
    """Points, in the order in which they are given."""

    def __init__(self, shape, points=()):
        points = np.ascontiguousarray(np.atleast_2d(np.asarray(points, dtype="u8")))
        if points.size == 0:
            points = points.reshape(0, len(shape))
        super().__init__(shape, RawSelection.points(points, len(shape)), (len(points),))
        self._points = points

    @classmethod
    def from_mask(cls, mask):
        """The elements at which a mask is true."""
        if not (isinstance(mask, np.ndarray) and mask.dtype.kind == "b"):
            raise TypeError("PointSelection.from_mask only works with bool arrays")
        return cls(mask.shape, np.transpose(mask.nonzero()))

    def append(self, points):
        """Adds points at the end."""
        self.__init__(self.shape, np.concatenate([self._points, np.atleast_2d(np.asarray(points, "u8"))]))

    def prepend(self, points):
        """Adds points at the start."""
        self.__init__(self.shape, np.concatenate([np.atleast_2d(np.asarray(points, "u8")), self._points]))

    def set(self, points):
        """Replaces the points."""
        self.__init__(self.shape, points)


class FancySelection(Selection):
    """A selection with a list of indices, or with blocks."""


def product(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


def select(shape, args, dataset=None):
    """The selection of a key in brackets.

    Raises
    ------
    TypeError, ValueError, IndexError
        As numpy and h5py do.
    """
    if not isinstance(args, tuple):
        args = (args,)
    if len(args) == 1:
        arg = args[0]
        if isinstance(arg, Selection):
            if arg.shape != tuple(shape):
                raise TypeError("Mismatched selection shape")
            return arg
        if isinstance(arg, np.ndarray) and arg.dtype.kind == "b":
            if arg.shape == tuple(shape):
                return PointSelection.from_mask(arg)
            if arg.shape != tuple(shape[:1]):
                raise TypeError("Boolean indexing array has incompatible shape")
        if isinstance(arg, RegionReference):
            if dataset is None:
                raise TypeError("Cannot apply a region reference without a dataset")
            found = region(arg, dataset)
            if found.shape != tuple(shape):
                raise TypeError("Reference shape does not match dataset shape")
            return found
    return _product(tuple(shape), args)


def region(reference, dataset):
    """The elements to which a region reference leads."""
    found = dataset._handle.file.referent(reference._kind, reference._raw)
    if found is None or len(found) != 3:
        raise ValueError("Invalid HDF5 object reference")
    target, raw, (shape, dims, count) = found
    if target.id != dataset._handle.id:
        raise ValueError("Region reference must point to this dataset")
    return Selection(shape, raw, region_dims(shape, dims, count))


def region_dims(shape, dims, count):
    """The shape of the elements to which a region reference leads: of their box, if it is full."""
    if count == 0:
        return tuple(shape) if 0 in shape else (0,) * max(len(shape), 1)
    return tuple(dims) if product(dims) == count else (count,)


def _expand(args, rank, shape=()):
    ellipses = sum(1 for arg in args if arg is Ellipsis)
    if ellipses > 1:
        raise ValueError("Only one ellipsis may be used.")
    named = len(args) - ellipses
    if named > rank:
        # What is wrong with the first of them comes first, as in h5py.
        for arg, length in zip(args, shape):
            if arg is Ellipsis:
                break
            if not hasattr(arg, "__len__"):
                _dimension(arg, length)
            elif np.asarray(arg).dtype.kind == "b" and (rank == 1 or len(arg) != length):
                raise TypeError("a mask that is not the only index has one dimension of several")
            else:
                _check_indices(np.asarray(arg), length)
        raise ValueError(f"{named} indexing arguments for {rank} dimensions")
    if not ellipses:
        args = args + (Ellipsis,)
    at = next(i for i, arg in enumerate(args) if arg is Ellipsis)
    return args[:at] + (slice(None),) * (rank - named) + args[at + 1:]


def _slice(arg, length):
    if arg.step is not None and arg.step == 0:
        raise ValueError("slice step cannot be zero")
    start, stop, step = arg.indices(length)
    if step < 1:
        raise ValueError("Step must be >= 1 (got %d)" % step)
    count = max(0, (stop - start + step - 1) // step)
    return start, step, count


def _check_indices(array, length):
    """What is wrong with indices, in the order in which h5py finds it: one that is just behind the end comes later."""
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        return
    array = np.where(array < 0, array + length, array)
    if array.min() < 0 or array.max() > length:
        raise IndexError(f"Fancy indexing out of range for (0-{length - 1})")
    if (array[1:] <= array[:-1]).any():
        raise TypeError("Indexing elements must be in increasing order")


def _list(arg, length):
    array = np.asarray(arg)
    if array.dtype.kind == "b":
        if array.ndim != 1 or array.shape[0] != length:
            raise TypeError(f"boolean index array has shape {array.shape}, not ({length},)")
        return array.nonzero()[0].tolist()
    if array.size == 0:
        return []
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError("Indexing arrays must have integer dtypes" if array.dtype.kind not in "iu" else
                        "Only 1D arrays allowed for fancy indexing")
    array = array.astype("i8")
    array = np.where(array < 0, array + length, array)
    _check_indices(array, length)
    if array[-1] >= length:
        raise IndexError(f"Fancy indexing out of range for (0-{length - 1})")
    return array.tolist()


def _dimension(arg, length):
    """What an argument selects: its kind, and what belongs to the kind."""
    if isinstance(arg, slice):
        return "range", _slice(arg, length)
    if isinstance(arg, MultiBlockSlice):
        return "blocks", arg.indices(length)
    if isinstance(arg, (bool, np.bool_)):
        raise TypeError("a single truth value is no index")
    if hasattr(arg, "__index__") and not (isinstance(arg, np.ndarray) and arg.ndim):
        index = arg.__index__()
        found = index + length if index < 0 else index
        if not 0 <= found < length:
            last = length - 1
            raise IndexError(f"Index ({index}) out of range for (0-{last})" if length else
                             f"Index ({index}) out of range for empty dimension")
        return "index", found
    if isinstance(arg, (str, bytes, float)) or not hasattr(arg, "__len__"):
        raise TypeError(f"Simple selections can only process integers, slices and lists, not {type(arg).__name__}")
    return "list", _list(arg, length)


def _product(shape, args):
    args = _expand(args, len(shape), shape)
    parts = [_dimension(arg, length) for arg, length in zip(args, shape)]
    kinds = [kind for kind, _ in parts]
    if kinds.count("list") > 1:
        raise TypeError("Only one indexing vector or array is currently allowed for fancy indexing")
    if "list" in kinds:
        return _with_list(shape, parts)
    start, count, step, scalar, block = [], [], [], [], []
    for kind, part in parts:
        if kind == "index":
            entry = (part, 1, 1, True, 1)
        elif kind == "range":
            entry = (part[0], part[2], part[1], False, 1)
        else:
            entry = (part[0], part[2], part[1], False, part[3])
        for values, value in zip((start, count, step, scalar, block), entry):
            values.append(value)
    if "blocks" not in kinds:
        return SimpleSelection(shape, (tuple(start), tuple(count), tuple(step), tuple(scalar)))
    mshape = [n * size for n, size in zip(count, block)]
    array_shape = [n for n, is_scalar in zip(mshape, scalar) if not is_scalar]
    raw = RawSelection.none() if 0 in mshape else RawSelection.hyperslab(start, step, count, block)
    return FancySelection(shape, raw, mshape, array_shape)


def _with_list(shape, parts):
    dims, mshape, array_shape = [], [], []
    for kind, part in parts:
        if kind == "index":
            dims.append(part)
            mshape.append(1)
            continue
        if kind == "list":
            dims.append(part)
            size = len(part)
        elif kind == "range":
            dims.append((part[0], part[1], part[2]))
            size = part[2]
        else:
            start, stride, count, block = part
            indices = (start + np.arange(count)[:, None] * stride + np.arange(block)).reshape(-1)
            dims.append(indices.tolist())
            size = len(indices)
        mshape.append(size)
        array_shape.append(size)
    raw = RawSelection.none() if 0 in mshape else RawSelection.product(dims)
    return FancySelection(shape, raw, mshape, array_shape)
