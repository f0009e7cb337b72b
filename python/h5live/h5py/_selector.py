"""Selections from keys in brackets."""

from .._selections import MultiBlockSlice, select  # noqa: F401
from .._datasets import _FastReader as Reader  # noqa: F401


class Selector:
    """Makes selections of one dataspace."""

    def __init__(self, space):
        self._space = space

    def make_selection(self, args):
        return select(self._space.shape, args)
