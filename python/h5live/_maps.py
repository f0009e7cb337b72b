"""Maps: keys and values of any type, found by key."""

from collections.abc import MutableMapping

from . import _types
from ._base import HLObject

_PAIRS_AT_ONCE = 1024


class Map(HLObject, MutableMapping):
    """A map in a file, as a mapping in the order of its keys."""

    @classmethod
    def create(cls, group, name, key_dtype, value_dtype):
        """Makes a map below a group."""
        file = group._handle.file
        keys, values = (file.stored_type(_types.datatype_of(dt)) for dt in (key_dtype, value_dtype))
        return cls(group._handle.create_map(name, keys, values))

    def __getitem__(self, key):
        found = self._handle.get(key)
        if found is None:
            raise KeyError(key)
        return found[0]

    def __setitem__(self, key, value):
        self._handle.put_many([(key, value)])

    def put_many(self, pairs):
        """Sets many pairs at once: a mapping, or an iterable of (key, value)."""
        self._handle.put_many(list(pairs.items() if hasattr(pairs, "items") else pairs))

    def __delitem__(self, key):
        if not self._handle.remove_many([key]):
            raise KeyError(key)

    def __len__(self):
        return self._handle.len()

    def __contains__(self, key):
        return self._handle.contains(key)

    def __iter__(self):
        for key, _ in self.range():
            yield key

    def items(self):
        return list(self.range())

    def range(self, first=None, end=None):
        """The pairs whose keys are at or after `first` and before `end`, in the order of the keys."""
        after = False
        while True:
            pairs = self._handle.pairs(first, end, after, _PAIRS_AT_ONCE)
            yield from pairs
            if len(pairs) < _PAIRS_AT_ONCE:
                return
            first, after = pairs[-1][0], True

    def flush(self):
        """Publishes what was set."""
        self._handle.flush()

    def refresh(self):
        """Takes up what the writer of a live file has published."""
        self._handle.refresh()

    __hash__ = HLObject.__hash__
    __eq__ = HLObject.__eq__

    def __repr__(self):
        return f"<h5live map {self.name!r} ({len(self)} pairs)>" if self else "<Closed h5live map>"
