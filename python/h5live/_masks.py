"""Masks of which much is set: what is between the elements is read with them."""

import numpy as np

from . import _selections, _transfer
from ._types import datatype_of

# So many bytes are read at once.
_BLOCK_BYTES = 4 << 20
# Going to one element takes as long as reading so many, and as decoding so many.
_MAX_READ_FOR_ONE = 64
_MAX_DECODED_FOR_ONE = 4


def is_dense(dataset, arg, shape, dt):
    """Whether it is a mask of so many elements that going to each costs more than reading what is between them."""
    if not (isinstance(arg, np.ndarray) and arg.dtype.kind == "b" and arg.shape == shape and arg.size):
        return False
    if dt.subdtype is not None or dt.kind == "U" or _transfer.needs_objects(dt):
        return False
    if _selections.product(shape[1:]) * dt.itemsize > _BLOCK_BYTES:
        return False
    sparseness = _MAX_DECODED_FOR_ONE if dataset._handle.description()["filters"] else _MAX_READ_FOR_ONE
    return np.count_nonzero(arg) * sparseness >= arg.size


def read(dataset, mask, dt):
    """The elements at which a mask is true: block by block of rows, of each the smallest box that has them."""
    out = np.empty(np.count_nonzero(mask), dt)
    rows = max(1, _BLOCK_BYTES // max(1, _selections.product(mask.shape[1:]) * dt.itemsize))
    chunks = dataset.chunks
    if chunks and rows > chunks[0]:
        rows -= rows % chunks[0]
    block = np.empty(min(rows, len(mask)) * _selections.product(mask.shape[1:]), dt)
    datatype, at = datatype_of(dt), 0
    for first in range(0, len(mask), rows):
        wanted = mask[first:first + rows]
        count = np.count_nonzero(wanted)
        if count == 0:
            continue
        box = _box(wanted)
        wanted = wanted[box]
        part = block[:wanted.size].reshape(wanted.shape)
        place = (slice(box[0].start + first, box[0].stop + first), *box[1:])
        dataset._handle.read_into(_selections.select(mask.shape, place).raw, datatype, _transfer.memory(part))
        out[at:at + count] = part[wanted]
        at += count
    return out


def _box(mask):
    """The smallest box that has all elements at which a mask is true."""
    box = []
    for axis in range(mask.ndim):
        others = tuple(n for n in range(mask.ndim) if n != axis)
        found = np.flatnonzero(mask.any(axis=others) if others else mask)
        box.append(slice(int(found[0]), int(found[-1]) + 1))
    return tuple(box)
