"""Views of datasets that read otherwise: as another type, as strings, some members, chunk by chunk."""

import numpy as np


class AbstractView:
    """A view of a dataset."""

    def __init__(self, dset):
        self._dset = dset

    def __len__(self):
        return len(self._dset)

    @property
    def ndim(self):
        return self._dset.ndim

    @property
    def shape(self):
        return self._dset.shape

    @property
    def size(self):
        return self._dset.size

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError(f"{self.__class__.__name__}.__array__ received {copy=} "
                             "but memory allocation cannot be avoided on read")
        return np.asarray(self[()], dtype=dtype or self.dtype)


class AsTypeView(AbstractView):
    """Elements of another type."""

    def __init__(self, dset, dtype):
        super().__init__(dset)
        self.dtype = dtype

    def __getitem__(self, idx):
        return self._dset.__getitem__(idx, new_dtype=self.dtype)

    def __array__(self, dtype=None, copy=None):
        return self._dset.__array__(dtype or self.dtype, copy)


class AsStrView(AbstractView):
    """Strings as ``str``."""

    dtype = np.dtype(object)

    def __init__(self, dset, encoding, errors="strict"):
        super().__init__(dset)
        self.encoding = encoding
        self.errors = errors

    def __getitem__(self, idx):
        found = self._dset[idx]
        if isinstance(found, (bytes, np.bytes_)):
            return found.decode(self.encoding, self.errors)
        texts = [item.decode(self.encoding, self.errors) for item in found.flat]
        return np.array(texts, dtype=object).reshape(found.shape)


def subset_dtype(basetype, names):
    """The dtype of some members of a compound."""
    if basetype.names is None:
        raise ValueError("Field names only allowed for compound types")
    for name in names:
        if name not in basetype.names:
            raise ValueError(f"Field {name} does not appear in this type.")
    return np.dtype([(name, basetype.fields[name][0]) for name in names])


class FieldsView(AbstractView):
    """Some members of a compound; just one without the compound around it."""

    def __init__(self, dset, prior_dtype, names):
        super().__init__(dset)
        self.extract_field = names if isinstance(names, str) else None
        self.read_dtype = subset_dtype(prior_dtype, [names] if isinstance(names, str) else names)

    @property
    def dtype(self):
        return self.read_dtype if self.extract_field is None else self.read_dtype[self.extract_field]

    def __getitem__(self, idx):
        data = self._dset.__getitem__(idx, new_dtype=self.read_dtype)
        return data if self.extract_field is None else data[self.extract_field]


class ChunkIterator:
    """The selections of the chunks of a dataset, or of their parts in a selection."""

    def __init__(self, dset, source_sel=None):
        shape = dset.shape
        if not dset.chunks:
            raise TypeError("Chunked dataset required")
        self._layout = dset.chunks
        self._sel = self._bounds(shape, source_sel)
        for part, length in zip(self._sel, shape):
            if part.start < 0 or part.stop > length or part.stop <= part.start:
                raise ValueError("Invalid selection - selection region must be within dataset space")
        self._chunks = self._walk()

    @staticmethod
    def _bounds(shape, source_sel):
        if source_sel is None:
            return tuple(slice(0, length) for length in shape)
        parts = [source_sel] if isinstance(source_sel, (slice, int)) else list(source_sel)
        if len(parts) != len(shape):
            raise ValueError("Invalid selection - selection region must have same rank as dataset")
        bounds = []
        for part, length in zip(parts, shape):
            if isinstance(part, int):
                bounds.append(slice(part, part + 1))
            else:
                bounds.append(slice(part.start or 0, part.stop or length, part.step))
        return tuple(bounds)

    def _walk(self):
        if not self._sel:
            return
        first = [part.start // size for part, size in zip(self._sel, self._layout)]
        counts = [-(-part.stop // size) - start for part, size, start in zip(self._sel, self._layout, first)]
        for index in np.ndindex(*counts):
            yield tuple(
                slice(max(part.start, (start + at) * size), min(part.stop, (start + at + 1) * size), 1)
                for part, size, start, at in zip(self._sel, self._layout, first, index)
            )

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._chunks)
