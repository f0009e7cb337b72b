"""Selections from keys in brackets."""

from .._datasets import _FastReader as Reader  # noqa: F401
from .._selections import MultiBlockSlice, select  # noqa: F401


class Selector:
    """Makes selections of one dataspace."""

    def __init__(self, space):
        self._space = space

    def make_selection(self, args):
        """Selects elements of the dataspace by a key, and returns the selection."""
        self._space._selection = select(self._space.shape, args)
        return self._space._selection
