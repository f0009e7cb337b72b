"""Selections."""

from ..._selections import (FancySelection, PointSelection, Selection, SimpleSelection, region, select)  # noqa: F401


def guess_shape(space):
    """The shape of a selection."""
    return space._selection.mshape if space._selection is not None else space.shape
